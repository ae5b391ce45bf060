"""The virtual GPU raises what CUDA raises; SEAL and PageSum run on it."""

import subprocess
import sys
from pathlib import Path

import pytest
from support.paths import ROOT
from support.toys import fit_tiny, tiny_recipe
from support.virtual_gpu import VirtualGPU

from longsumbench.modeling.training.trainer import _Training


def test_a_batch_that_is_not_moved_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the suite raises."""
    monkeypatch.setattr(_Training, "_moved", lambda self, batch: batch)
    monkeypatch.setattr(
        "support.toys.tiny_recipe", lambda **changes: tiny_recipe(**{**changes, "device": "cuda"})
    )
    with VirtualGPU(), pytest.raises(RuntimeError, match="same device"):
        fit_tiny("ea", tmp_path)


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
