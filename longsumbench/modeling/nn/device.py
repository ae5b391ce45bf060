"""Choice of the device that a network runs on."""

import torch

from longsumbench.errors import EnvironmentProblem


def choose_device(wanted: str) -> torch.device:
    """Return the device for `auto`, `cpu` or `cuda`.

    Raises:
        EnvironmentProblem: the setting is `cuda`, and PyTorch finds no GPU.
    """
    if wanted == "cuda" and not torch.cuda.is_available():
        raise EnvironmentProblem("device=cuda, but PyTorch finds no GPU: choose device=auto or a CUDA build of PyTorch")
    found = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(found if wanted == "auto" else wanted)
