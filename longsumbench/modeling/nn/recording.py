"""What parts of a network return while it runs, for the evidence."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn


@contextmanager
def recorded(model: nn.Module, kind: type[nn.Module]) -> Iterator[list[Any]]:
    """Record what every module of a kind returns meanwhile, in their order."""
    found: list[Any] = []
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, output: found.append(output))
        for module in model.modules()
        if isinstance(module, kind)
    ]
    try:
        yield found
    finally:
        for hook in hooks:
            hook.remove()
