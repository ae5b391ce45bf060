"""Which processor a network runs on."""

import torch

from longsumbench.errors import EnvironmentProblem


def choose_device(wanted: str) -> torch.device:
    """Return the device that `auto`, `cpu` or `cuda` means on this machine.

    Raises:
        EnvironmentProblem: a GPU is asked for, and PyTorch finds none.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise EnvironmentProblem("device=cuda, but PyTorch finds no GPU: choose device=auto or a CUDA build of PyTorch")
    found = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(found if wanted == "auto" else wanted)
