"""Choice of the device that a network runs on."""

import psutil
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


def computes_bf16(device: torch.device) -> bool:
    """Return True if a device has products in bfloat16 that are faster than in float32."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def free_memory(device: torch.device) -> int:
    """Return the free bytes of a device, with those that PyTorch keeps there for later tensors."""
    if device.type != "cuda":
        return int(psutil.virtual_memory().available)
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + kept)
