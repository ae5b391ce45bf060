"""Choice of the device that a network runs on, its memory, and copies to it for which nothing waits."""

from collections.abc import Callable
from typing import Any

import psutil
import torch
from torch import Tensor

from longsumbench.errors import EnvironmentProblem, as_suite_error
from longsumbench.modeling.processes import gpu_index, started_processes


def choose_device(device: str) -> torch.device:
    """Return the device for `auto` (cuda if there is one, else the CPU), `cpu`, `cuda`, or `mps` (the GPU of a Mac).

    Raises:
        EnvironmentProblem: the setting is `cuda` or `mps`, and PyTorch finds no such GPU.
    """
    if device == "mps" and not torch.backends.mps.is_available():
        raise EnvironmentProblem(
            "device=mps, but PyTorch finds no GPU of a Mac: choose device=auto or device=cpu"
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise EnvironmentProblem(
            "device=cuda, but PyTorch finds no GPU: choose device=auto or a CUDA build of PyTorch"
        )
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = torch.device(device)
    if chosen.type == "cuda" and started_processes() > 1:
        torch.cuda.set_device(gpu_index(torch.cuda.device_count()))
    return chosen


def to_device(tensor: Tensor, device: torch.device) -> Tensor:
    """Copy a tensor of the CPU to a device without a wait; `on_host` then returns the original."""
    if device.type == "cpu" or tensor.device.type != "cpu":
        return tensor.to(device)
    copied = (tensor.pin_memory() if device.type == "cuda" else tensor).to(
        device, non_blocking=True
    )
    copied.original = tensor  # type: ignore[attr-defined]
    return copied


def on_host(tensor: Tensor) -> Tensor:
    """Return a tensor on the CPU. This waits for the GPU, unless `to_device` made the tensor."""
    return getattr(tensor, "original", tensor).cpu()


def computes_bf16(device: torch.device) -> bool:
    """Return True if a device has products in bfloat16 that are faster than in float32."""
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def check_memory(build: Callable[[], Any], shown_as: str) -> None:
    """Check that a network fits into the free memory; `build` runs on PyTorch's "meta" device, without weights.

    Raises:
        EnvironmentProblem: it does not fit.
    """
    try:
        with torch.device("meta"):
            network = build()
    except Exception as error:
        if as_suite_error(error):  # the number of bytes exceeds 64 bits
            raise EnvironmentProblem(
                f"the weights of {shown_as} fit into no memory: choose smaller ones"
            ) from error
        return  # the same error is raised again when the network is built with its weights
    size = sum(tensor.nbytes for tensor in (*network.parameters(), *network.buffers()))
    free = psutil.virtual_memory().available
    if size > free:
        raise EnvironmentProblem(
            f"the weights of {shown_as} need {size / 1e9:,.1f} GB of memory, {free / 1e9:,.1f} GB"
            " are free: choose smaller ones, or free some memory"
        )
