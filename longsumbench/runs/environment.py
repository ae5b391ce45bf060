"""Versions, hardware, commit, patch and peak memory of a run. The record stores them; the run id ignores them."""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path

import longsumbench
from longsumbench.files import write_atomically
from longsumbench.formatting import redact

_RECORDED_PACKAGES = (
    "torch",
    "transformers",
    "tokenizers",
    "datasets",
    "accelerate",
    "hydra-core",
    "numpy",
    "numba",
)
_CODE = ("longsumbench", "models", "conf")  # the folders of a checkout that affect results
_PLAIN_DIFF = (  # for `git apply`, independent of the user's settings
    *("-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false", "diff", "--binary"),
    *("--no-ext-diff", "--no-textconv", "--no-color"),
)


@dataclass(frozen=True)
class Environment:
    """Versions and hardware of a run.

    Attributes:
        commit: of the checkout; None for an installed package.
        patched: True if the code differed from the commit.
        processor: model name, and the instructions that PyTorch uses ("AVX512"), which decide how it rounds.
        threads: of PyTorch; None if it was not imported.
        gpu: model name; None on the CPU.
        piece_tokens: padded tokens that a system's encoder reads together on this device; None without such a system.
        packages: name → version.
        processes: number of processes that shared the run.
    """

    longsumbench: str
    commit: str | None = None
    patched: bool = False
    python: str = ""
    system: str = ""
    processor: str = ""
    cores: int | None = None
    threads: int | None = None
    gpu: str | None = None
    piece_tokens: int | None = None
    packages: Mapping[str, str] = field(default_factory=dict)
    processes: int = 1


def environment(devices: Iterable[str] = ("auto",)) -> Environment:
    """Return the versions, hardware and commit of this process; `devices` are the settings of what runs in it."""
    torch = sys.modules.get("torch")
    encoders = sys.modules.get("longsumbench.modeling.nn.unit_encoder")
    on_gpu = torch is not None and not set(devices) <= {"cpu", "mps"} and torch.cuda.is_available()
    recorded = Environment(
        longsumbench=longsumbench.__version__,
        commit=(_git("rev-parse", "HEAD") or b"").decode().strip() or None,
        patched=bool(_git("status", "--porcelain", "--", *_CODE)),
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        processor=_processor(),
        cores=os.cpu_count(),
        packages=_recorded_versions(),
    )
    if torch is None:
        return recorded
    device = torch.device("cuda" if on_gpu else "cpu")
    return replace(
        recorded,
        processor=f"{recorded.processor}, {torch.backends.cpu.get_cpu_capability()}",
        threads=torch.get_num_threads(),
        gpu=torch.cuda.get_device_name() if on_gpu else None,
        piece_tokens=encoders.piece_tokens(device) if encoders else None,
    )


def patch() -> bytes:
    """Return the changes since the commit, including untracked files, for `git apply`.

    It is empty outside a checkout. It is bytes because files may have any encoding and line ends.
    """
    changed = _git(*_PLAIN_DIFF, "HEAD", "--", *_CODE) or b""
    new = _git("ls-files", "--others", "--exclude-standard", "-z", "--", *_CODE) or b""
    for name in filter(None, new.split(b"\0")):
        added = _git(*_PLAIN_DIFF, "--no-index", "--", os.devnull, os.fsdecode(name), ends=1)
        changed += added or b""
    return changed


@cache  # installed packages do not change during a run
def constraints() -> str:
    """Return all installed distributions except the suite itself, one per line, for `pip install -c`.

    A distribution that was installed from a folder or a repository becomes a comment.
    """
    pins: dict[str, str] = {}
    for package in distributions():
        if (name := project_name(package.name)) != "longsumbench":
            origin = json.loads(package.read_text("direct_url.json") or "{}").get("url")
            pin = f"{name}=={package.version}"
            pins.setdefault(name, f"# {pin} from {redact(origin)}" if origin else pin)
    return "".join(f"{pins[name]}\n" for name in sorted(pins))


def write_environment(folder: Path) -> None:
    """Write `patch.diff` and `constraints.txt`, from which the code and the packages of a run can be restored."""
    write_atomically(folder / "patch.diff", patch())
    write_atomically(folder / "constraints.txt", constraints())


def project_name(name: str) -> str:
    """Return the normalized name of a distribution (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def reset_peak_memory() -> None:
    """Reset the peak memory, so that it counts one run only. Without permission this has no effect."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text(
            "5", encoding="ascii"
        )  # 5: the peak of the resident set
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def peak_memory_gb() -> float:
    """Return the peak memory since `reset_peak_memory`, in 1e9 bytes: resident memory plus GPU memory."""
    peak = _peak_resident_bytes()
    torch = sys.modules.get("torch")
    if torch and torch.cuda.is_initialized():
        peak += torch.cuda.max_memory_allocated()
    return round(peak / 1e9, 3)


def _peak_resident_bytes() -> int:
    """Return the resettable peak on Linux, the peak of the process elsewhere."""
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _git(*arguments: str, ends: int = 0) -> bytes | None:
    """Run git in the suite's checkout; None without a checkout, or if the exit code is not `ends`."""
    checkout = Path(longsumbench.__file__).parent.parent
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), *arguments]
    try:
        process = subprocess.run(command, capture_output=True, timeout=20)  # noqa: S603 # fixed arguments
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout if process.returncode == ends else None


def _recorded_versions() -> dict[str, str]:
    versions = {}
    for name in _RECORDED_PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
