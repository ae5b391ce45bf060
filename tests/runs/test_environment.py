"""What is known of the machine and the code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import longsumbench
from longsumbench.runs.environment import (
    constraints,
    environment,
    patch,
    peak_memory_gb,
    project_name,
    reset_peak_memory,
)


def test_an_installed_package_has_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside a checkout the commit is null and the patch empty, also where some other repository is around."""
    (tmp_path / "site" / "longsumbench").mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(
        longsumbench, "__file__", str(tmp_path / "site" / "longsumbench" / "__init__.py")
    )
    assert environment().commit is None
    assert patch() == b""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of one commit, with all of the code's folders, that is taken for the suite's own."""
    for name in ("longsumbench/__init__.py", "models/a.py", "conf/a.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("a = 1\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    monkeypatch.setattr(longsumbench, "__file__", str(tmp_path / "longsumbench" / "__init__.py"))
    return tmp_path


def test_a_patch_makes_the_code_that_ran(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Applied to a clone of the recorded commit, it gives what was changed, deleted and new, also other bytes."""
    assert len(str(environment().commit)) == 40
    assert not environment().patched
    (checkout / "conf" / "a.yaml").unlink()
    written = {
        "models/a.py": b"a = 2\r\n",
        "models/new é.py": b"b = 1\n",
        "conf/latin-1.yaml": b"# caf\xe9\r\nb: 1\n",
        "longsumbench/data.bin": bytes(range(256)),
    }
    for name, content in written.items():
        (checkout / name).write_bytes(content)
    assert environment().patched
    other = tmp_path_factory.mktemp("other")
    (other / "patch.diff").write_bytes(patch())
    subprocess.run(["git", "clone", "-q", str(checkout), str(other / "clone")], check=True)
    subprocess.run(["git", "-C", str(other / "clone"), "apply", "../patch.diff"], check=True)
    assert {name: (other / "clone" / name).read_bytes() for name in written} == written
    assert not (other / "clone" / "conf" / "a.yaml").exists()


def test_constraints_are_what_pip_lists() -> None:
    """Every installed distribution is named with its version, once, as pip names it; the suite itself is not."""
    lines = [line.removeprefix("# ").partition(" from ")[0] for line in constraints().splitlines()]
    pip = subprocess.run(
        [sys.executable, "-m", "pip", "list", "--format=json"], capture_output=True, check=True
    )
    listed = {f"{project_name(one['name'])}=={one['version']}" for one in json.loads(pip.stdout)}
    assert {line for line in listed if not line.startswith("longsumbench==")} == set(lines)
    assert len(lines) == len(set(lines))


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="Linux, which can reset a peak of memory"
)
def test_a_peak_is_that_of_the_run_alone() -> None:
    """Memory that was given back before a run does not count for it, memory taken during it does."""
    size = 300_000_000
    taken = bytearray(size)
    taken[::1024] = b"x" * len(taken[::1024])
    before = peak_memory_gb()
    del taken
    reset_peak_memory()
    assert peak_memory_gb() < before - 0.2
    taken = bytearray(size)
    taken[::1024] = b"x" * len(taken[::1024])
    assert peak_memory_gb() > before - 0.1
    del taken
