import pytest
import torch

from longsumbench.errors import EnvironmentProblem
from longsumbench.modeling.nn.device import choose_device


def test_device_names() -> None:
    """Cpu is the CPU; auto is a GPU exactly when there is one."""
    assert choose_device("cpu").type == "cpu"
    assert choose_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_missing_gpu_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for a GPU that is not there never runs on the CPU in silence."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(EnvironmentProblem, match="device=cuda"):
        choose_device("cuda")
