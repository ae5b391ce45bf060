"""The virtual GPU raises what CUDA raises; SEAL and PageSum run on it; launches and waits of systems are bounded."""

import subprocess
import sys
from typing import Any

import pytest
from support import gpu_counts
from support.paths import ROOT


def test_seal_and_pagesum_run_on_it() -> None:
    """In a process of their own they train, write, are killed and go on as on the CPU (test_cuda.py)."""
    chosen = "(seal or pagesum) and (trains_as or (writes_as and search) or (goes_on and not checkpointing))"
    words = [
        "--device",
        "virtual",
        "-k",
        chosen,
        "-p",
        "no:cacheprovider",
        "tests/modeling/test_cuda.py",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["......"]), done.stdout


@pytest.mark.parametrize("name", gpu_counts.counted_systems())
def test_launches_and_waits_stay_within_their_bounds(name: str) -> None:
    """A training step and a token need no more kernels and waits than support/gpu_counts.json says."""
    counts: dict[str, Any] = dict(gpu_counts.count_system(**gpu_counts.counted_systems()[name]))
    bounds = gpu_counts.bounds()[name]
    assert {kind: min(count, bounds[kind]) for kind, count in counts.items()} == counts
