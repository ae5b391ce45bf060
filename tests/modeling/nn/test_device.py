from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from longsumbench.errors import EnvironmentProblem
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.nn.positions import sinusoid


def test_a_missing_gpu_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for a GPU that is not there never runs on the CPU in silence."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentProblem, match="device=cuda"):
        choose_device("cuda")
    with pytest.raises(EnvironmentProblem, match="device=mps"):
        choose_device("mps")


def test_the_gpu_of_a_mac_is_used_if_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With device=mps a network runs there; auto stays on the CPU, because results there were never compared."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("mps").type == "mps"
    assert choose_device("auto").type == "cpu"


class _NoDoublesOnMps(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        assert not (
            isinstance(made, Tensor) and made.device.type == "mps" and made.dtype == torch.float64
        ), func
        return made


def test_positions_need_no_doubles_of_a_mac() -> None:
    """MPS has no float64: positions are computed on the CPU, and end where the model is."""
    with FakeTensorMode(), _NoDoublesOnMps():
        found = sinusoid(torch.arange(4, device="mps"), 8)
    assert (found.device.type, found.dtype, found.shape) == ("mps", torch.float32, (4, 8))
