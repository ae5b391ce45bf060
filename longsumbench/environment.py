"""Where a run happened: versions, hardware, commit and patch, peak memory. Recorded, never hashed."""

import os
import platform
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import longsumbench

PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "accelerate", "hydra-core", "numpy", "numba")


def environment() -> dict[str, Any]:
    """Return versions, hardware and the commit of a checkout, as JSON values."""
    torch = sys.modules.get("torch")
    return {
        "longsumbench": longsumbench.__version__,
        "commit": (_git("rev-parse", "HEAD") or "").strip() or None,
        "patched": bool(_git("status", "--porcelain", "--", "longsumbench", "models", "conf")),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads() if torch else None,
        "gpu": torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None,
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def patch() -> str:
    """Return how the code differs from its commit; empty outside a checkout."""
    return _git("diff", "HEAD", "--", "longsumbench", "models", "conf") or ""


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
    """Ask git about the suite's own checkout; None for an installed package, which has none."""
    checkout = Path(longsumbench.__file__).parent.parent
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout  # noqa: S603 # fixed arguments
    except (OSError, subprocess.SubprocessError):
        return None


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
