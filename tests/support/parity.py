"""Comparing with vectors that tiny models of the authors' released code gave."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from support.paths import SHARED
from support.requirements import SHARED_FOLDER


def parity_marks(folder: Path) -> list[pytest.MarkDecorator]:
    """Return the marks of tests that need vectors, and compute in double precision."""
    missing = pytest.mark.skipif(not folder.is_dir(), reason=SHARED_FOLDER)
    return [missing, pytest.mark.usefixtures("float64")]


def parity_folder(name: str) -> Path:
    """Return the folder of the vectors of a system."""
    return SHARED / "parity" / name


@cache
def load_tensors(path: Path) -> dict[str, Tensor]:
    """Return tensors, numbers in float64: what differs is the rounding in the vectors alone."""
    tensors = {}
    for name, value in load_file(path).items():
        tensors[name] = value.double() if value.is_floating_point() else value
    return tensors


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Compare as closely as the vectors are good for."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-4)


def check_gradients(model: Any, expected: dict[str, float]) -> None:
    """Compare the norms of all gradients; where the release's is noise, so is ours."""
    norms = {name: float(one.grad.to_dense().norm()) for name, one in model.named_parameters()}
    assert set(norms) == set(expected)
    for name, norm in expected.items():
        is_noise = norm <= 1e-4
        wanted = pytest.approx(0, abs=1e-4) if is_noise else pytest.approx(norm, rel=1e-3)
        assert norms[name] == wanted, name
