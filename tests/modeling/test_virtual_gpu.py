"""The virtual GPU raises what CUDA raises; SEAL and PageSum run on it."""

from pathlib import Path

import pytest
from support.paths import TESTS
from support.processes import run_python
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
    words = f"--device virtual --assert=plain -p no:cacheprovider {TESTS / 'modeling' / 'test_cuda.py'}".split()
    code = f"import sys, pytest; sys.exit(pytest.main({[*words, '-k', chosen]}))"
    assert run_python(code, cwd=TESTS.parent).split()[0] == "......"
