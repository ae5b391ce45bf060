"""Where a run happened: versions, hardware, commit and patch, peak memory. Recorded, never hashed."""

import json
import os
import platform
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

import longsumbench

_PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "accelerate", "hydra-core", "numpy", "numba")
_CODE = ("longsumbench", "models", "conf")  # of a checkout: what decides numbers
_PLAIN_DIFF = (  # as `git apply` takes it, whatever the user's own settings are
    *("-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "diff", "--binary"),
    *("--no-ext-diff", "--no-textconv", "--no-color"),
)


def environment() -> dict[str, Any]:
    """Return versions, hardware and the commit of a checkout, as JSON values."""
    torch = sys.modules.get("torch")
    return {
        "longsumbench": longsumbench.__version__,
        "commit": (_git("rev-parse", "HEAD") or "").strip() or None,
        "patched": bool(_git("status", "--porcelain", "--", *_CODE)),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads() if torch else None,
        "gpu": torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None,
        "packages": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def patch() -> bytes:
    """Return how the code differs from its commit, files that git does not know yet included; empty outside a checkout.

    `git apply` takes it. Files need not be UTF-8, nor end their lines alike.
    """
    changed = _git_bytes(*_PLAIN_DIFF, "HEAD", "--", *_CODE) or b""
    new = (_git_bytes("ls-files", "--others", "--exclude-standard", "-z", "--", *_CODE) or b"").split(b"\0")
    names = [os.fsdecode(name) for name in new if name]
    added = (_git_bytes(*_PLAIN_DIFF, "--no-index", "--", os.devnull, name, ends=1) or b"" for name in names)
    return changed + b"".join(added)


@cache  # nothing is installed while a process runs
def constraints() -> str:
    """Return every installed distribution but the suite itself as `pip install -c` takes it, a line each.

    One that no index has, because it was installed from a folder or a repository, stands in a comment.
    """
    found: dict[str, str] = {}
    for one in distributions():
        if (name := project_name(one.name)) != "longsumbench":
            origin = json.loads(one.read_text("direct_url.json") or "{}").get("url")
            found.setdefault(name, f"# {name}=={one.version} from {origin}" if origin else f"{name}=={one.version}")
    return "".join(f"{found[name]}\n" for name in sorted(found))


def project_name(name: str) -> str:
    """Return the name of a distribution as pip compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def file_at(commit: str, name: str) -> str | None:
    """Return a file of the suite's checkout as it was at a commit; None where either is not known here."""
    return _git("show", f"{commit}:{name}")


def reset_peak_memory() -> None:
    """Forget the peak so far, so that a run is not charged for those before it; no effect where Linux forbids it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # 5: the peak of the resident set
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


def peak_memory_gb() -> float:
    """Return the most memory held since `reset_peak_memory`, in 1e9 bytes: this process, and its share of a GPU."""
    held = _peak_resident_bytes()
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_available():
        held += torch.cuda.max_memory_allocated()
    return round(held / 1e9, 3)


def _peak_resident_bytes() -> int:
    """Ask Linux for the peak that can be reset; elsewhere take the peak of the whole process."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _git(*arguments: str) -> str | None:
    """Ask git about the suite's own checkout, for an answer in words."""
    answer = _git_bytes(*arguments)
    return None if answer is None else answer.decode("utf-8", "replace")


def _git_bytes(*arguments: str, ends: int = 0) -> bytes | None:
    """Ask git about the suite's own checkout; None for an installed package, which has none.

    Args:
        arguments: of git.
        ends: the exit code of a question that is answered.
    """
    checkout = Path(longsumbench.__file__).parent.parent
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=20)  # noqa: S603 # fixed arguments
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == ends else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()
