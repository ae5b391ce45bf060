"""Choice of the device that a network runs on."""

import torch

from longsumbench.errors import EnvironmentProblem


def choose_device(device: str) -> torch.device:
    """Return the device for `auto` (cuda if there is one, else the CPU), `cpu`, `cuda`, or `mps` (the GPU of a Mac).

    Raises:
        EnvironmentProblem: the setting is `cuda` or `mps`, and PyTorch finds no such GPU.
    """
    if device == "mps" and not torch.backends.mps.is_available():
        raise EnvironmentProblem("device=mps, but PyTorch finds no GPU of a Mac: choose device=auto or device=cpu")
    if device == "cuda" and not torch.cuda.is_available():
        raise EnvironmentProblem("device=cuda, but PyTorch finds no GPU: choose device=auto or a CUDA build of PyTorch")
    best_device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(best_device if device == "auto" else device)
