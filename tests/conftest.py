"""Options and fixtures of all tests: nothing is read from or written to the user's own cache."""

import atexit
import os
import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support.built_once import FOLDER_VARIABLE
from support.commands import run_command, typed
from support.logs import listening
from support.toys import write_jsonl

from longsumbench.cache.artifacts import CACHE_VARIABLE, ArtifactCache
from longsumbench.conf import CONFIG_VARIABLE

__all__ = ["run_command", "typed"]

# No test depends on the speed of the machine. A folder of `tmp_path` may serve all examples of a test.
UNCHECKED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]

# Marker of tests that are run only when asked for → what they are.
ASKED_FOR = {
    "slow": "takes minutes, or repeats a property on more inputs; all properties then try new ones each time",
    "slurm": "needs a SLURM, which tests/slurm/start.sh starts",
    "api_server": "needs `transformers serve` (pip install 'transformers[serving]'), `vllm`, or xllamacpp and --weights",
    "latex": "needs a LaTeX with siunitx (Debian: texlive-latex-extra, texlive-science)",
}
WEIGHTS = "needs weights of real models in FOLDER"
DEVICES = {"cuda": "a GPU", "virtual": "a virtual one, on any machine (support/virtual_gpu.py)"}

# Fixtures of a module do not find the user's own datasets either.
os.environ[CONFIG_VARIABLE] = os.devnull
# A shell lets what it starts in the background ignore Ctrl-C; the processes that tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
# submitit would close the handlers of all other loggers.
os.environ.setdefault("SUBMITIT_LOG_LEVEL", "NOCONFIG")
# pytest-xdist sets it; output to a pipe is as wide as it wants.
os.environ.pop("COLUMNS", None)
# The first process of the session makes this folder; those that pytest-xdist starts find it in their environment.
if FOLDER_VARIABLE not in os.environ:
    os.environ[FOLDER_VARIABLE] = tempfile.mkdtemp(prefix="longsumbench-tests-")
    atexit.register(shutil.rmtree, os.environ[FOLDER_VARIABLE], ignore_errors=True)
# Before torch counts the cores: test processes side by side share them.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def _option_of(marker: str) -> str:
    return f"--{marker.replace('_', '-')}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option for each of `ASKED_FOR`, --weights, --axe and --device."""
    for marker, about in ASKED_FOR.items():
        parser.addoption(_option_of(marker), action="store_true", help=f"also run what {about}")
    parser.addoption(
        "--weights", type=Path, metavar="FOLDER", help=f"also run what {WEIGHTS} or below it"
    )
    parser.addoption(
        "--axe",
        type=Path,
        metavar="FILE",
        help="axe.min.js of axe-core: also check the site's pages",
    )
    devices = ", ".join(f"{name}: {about}" for name, about in DEVICES.items())
    parser.addoption(
        "--device", choices=tuple(DEVICES), help=f"also run what needs a GPU ({devices})"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the markers; properties are tried on the same inputs everywhere, unless asked for more."""
    settings.register_profile(
        "any machine",
        deadline=None,
        suppress_health_check=UNCHECKED,
        derandomize=not config.getoption("slow"),
    )
    settings.load_profile("any machine")
    for marker, about in ASKED_FOR.items():
        config.addinivalue_line("markers", f"{marker}: {about}; run with {_option_of(marker)}")
    config.addinivalue_line("markers", f"weights: {WEIGHTS}; run with --weights FOLDER")
    config.addinivalue_line("markers", "cuda: needs a GPU; run with --device cuda or virtual")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are run only when asked for."""
    reasons = {
        marker: f"{_option_of(marker)}: {about}"
        for marker, about in ASKED_FOR.items()
        if not config.getoption(marker)
    }
    if not config.getoption("weights"):
        reasons["weights"] = f"--weights FOLDER: {WEIGHTS}"
    if not config.getoption("device"):
        reasons["cuda"] = "--device cuda, or --device virtual: needs a GPU"
    for item in items:
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the skipped tests by what they need."""
    reports = terminalreporter.stats.get("skipped", [])
    counts = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports)
    if counts:
        terminalreporter.section("skipped tests need")
        for reason, count in counts.most_common():
            terminalreporter.write_line(f"{count:5} {reason}")


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep stages in a folder of this process, shared between its tests as a user's runs share theirs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(tmp_path_factory.getbasetemp() / "cache"))
        yield


@pytest.fixture(autouse=True)
def own_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the user's own YAML files in a test, which is not there yet."""
    folder = tmp_path / "own config"
    monkeypatch.setenv(CONFIG_VARIABLE, str(folder))
    return folder


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Print no line because something took long: what a test compares must not depend on speed."""
    monkeypatch.setattr("longsumbench.progress.SECONDS_UNTIL_SHOWN", 1e6)
    monkeypatch.setattr("longsumbench.progress.SECONDS_BETWEEN_LINES", 1e6)


@pytest.fixture
def without_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures, but save them as empty files: where numbers are tested, pictures take most of the time."""
    monkeypatch.setattr("longsumbench.views.figures._save_figure", lambda *_, **__: b"<svg/>")


@pytest.fixture
def log_lines() -> Iterator[list[str]]:
    """The lines that the suite logs in a test."""
    lines: list[str] = []
    with listening(lines.append):
        yield lines


@pytest.fixture(scope="module")
def float64() -> Iterator[None]:
    """Compute in float64: there sums in another order, as another processor has it, agree to 1e-7."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def weights(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Return the path of a file of --weights by its name, which may be a pattern."""

    def find(name: str) -> Path:
        folder = request.config.getoption("weights")
        paths = sorted(folder.rglob(name))
        if not paths:
            pytest.skip(f"--weights FOLDER with {name}")
        return Path(paths[0])

    return find


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device of --device as PyTorch names it, by default "cpu"."""
    import torch

    kind = request.config.getoption("device")
    if kind == "cuda" and not torch.cuda.is_available():
        pytest.exit("--device cuda: PyTorch finds no GPU", returncode=pytest.ExitCode.USAGE_ERROR)
    if kind == "virtual":
        from support.virtual_gpu import VirtualGPU

        with VirtualGPU():
            yield "cuda"
    else:
        yield kind or "cpu"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a test, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """The folder of a small dataset of three splits."""
    return write_jsonl(tmp_path / "toy")


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache of this test alone, which is not there yet."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def cache(tmp_path: Path) -> ArtifactCache:
    """An empty artifact cache."""
    return ArtifactCache(tmp_path / "stages")
