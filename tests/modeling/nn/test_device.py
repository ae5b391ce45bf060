import pytest
import torch
from support.toys import refuses

from longsumbench.errors import EnvironmentProblem
from longsumbench.modeling.nn.device import choose_device


def test_a_missing_gpu_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for a GPU that is not there never runs on the CPU in silence."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with refuses("device=cuda", EnvironmentProblem):
        choose_device("cuda")
    with refuses("device=mps", EnvironmentProblem):
        choose_device("mps")


def test_the_gpu_of_a_mac_is_used_if_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With device=mps a network runs there; auto stays on the CPU, because results there were never compared."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device("mps").type == "mps"
    assert choose_device("auto").type == "cpu"
