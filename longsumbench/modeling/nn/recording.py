"""Recording of module outputs, for the evidence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def recorded(model: nn.Module, kind: type[nn.Module]) -> Iterator[list[Any]]:
    """Record the outputs of all modules of a class within the context, in the order of the calls."""
    outputs: list[Any] = []
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, output: outputs.append(output))
        for module in model.modules()
        if isinstance(module, kind)
    ]
    try:
        yield outputs
    finally:
        for hook in hooks:
            hook.remove()
