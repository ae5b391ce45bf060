"""Counts FLOPs and memory of a network's pass without computing its numbers.

Which tokens a network reads depends on integers (ids, lengths, masks), and the cost of a pass on shapes alone. So only
integers are computed here. Every tensor of floats is one zero that is expanded to the right shape; views share it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode  # in the tutorials of PyTorch, but not exported elsewhere
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.flop_counter import FlopCounterMode


@dataclass
class PassCost:
    """The cost of what runs inside `counting`.

    Attributes:
        flops: two for every multiply-add of a matrix product.
        saved_bytes: of the tensors that are kept for the backward pass, weights included.
    """

    flops: int = 0
    saved_bytes: int = 0


@contextmanager
def counting(cost: PassCost, network: nn.Module | None = None) -> Iterator[None]:
    """Count a pass that has no numbers, and add its cost. It changes neither random numbers nor a `network` in use."""
    parts = () if network is None else network.modules()
    states = [(part, dict(vars(part)), dict(part._buffers)) for part in parts]  # some keep tables for the next pass
    saved: dict[int, tuple[Tensor, int]] = {}  # where its one number is → a tensor, and the most bytes of its views

    def save(tensor: Tensor) -> Tensor:
        key, size = tensor.untyped_storage().data_ptr(), tensor.numel() * tensor.element_size()
        saved[key] = (tensor, max(size, saved[key][1] if key in saved else 0))
        return tensor

    counter = FlopCounterMode(display=False)
    try:
        with (
            torch.random.fork_rng(devices=[]),
            sdpa_kernel(SDPBackend.MATH),  # FlopCounterMode knows no fused attention of CPUs
            saved_tensors_hooks(save, lambda tensor: tensor),
            counter,
            _ShapesOfFloats(),  # type: ignore[no-untyped-call] # PyTorch does not annotate it
            _FusedAttention(save),
        ):
            yield
    finally:
        for part, attributes, buffers in states:
            vars(part).update(attributes)
            part._buffers.update(buffers)
    cost.flops += counter.get_total_flops()
    cost.saved_bytes += sum(size for _, size in saved.values())


class _FusedAttention(TorchFunctionMode):
    """Counts what fused attention keeps: its inputs and its output, but no weight for every pair of tokens."""

    def __init__(self, save: Callable[[Tensor], object]) -> None:
        super().__init__()
        self._save = save

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is not F.scaled_dot_product_attention or kwargs.get("dropout_p"):  # with dropout CPUs do not fuse it
            return func(*args, **kwargs)
        with saved_tensors_hooks(lambda _: None, lambda tensor: tensor):
            output = func(*args, **kwargs)
        for tensor in (*args[:3], output):
            self._save(tensor)
        return output


class _ShapesOfFloats(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes integers as usual. Of floats it computes shapes alone, on the meta device: all of them are zero."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_iter((args, kwargs)) if isinstance(leaf, Tensor)]
        makes = not tensors and any(argument.name == "device" for argument in func._schema.arguments)
        reshapes = torch.Tag.inplace_view in func.tags  # unsqueeze_ and the like
        if reshapes or (not makes and not any(tensor.is_floating_point() for tensor in tensors)):
            return func(*args, **kwargs)
        if func._schema.is_mutable:  # the result has the shape of its first argument
            return args[0]
        if func is torch.ops.aten._local_scalar_dense.default:  # Tensor.item
            return 0.0
        if func is torch.ops.aten.index.Tensor:  # the shape of its result depends on its masks
            args = (args[0], list(_without_masks(args[1])))
        if makes:
            shaped = func(*args, **{**kwargs, "device": torch.device("meta")})
        else:
            shaped = func(*tree_map(_on_meta, args), **tree_map(_on_meta, kwargs))
        if makes and not shaped.is_floating_point():
            return func(*args, **kwargs)
        viewed = args[0] if _is_view(func) else None
        return tree_map(lambda value: _as_zeros(value, viewed), shaped)


def _is_view(func: Any) -> bool:
    return any(returned.alias_info is not None for returned in func._schema.returns)


def _without_masks(indices: Any) -> Iterator[Tensor | None]:
    for index in indices:
        if index is not None and index.dtype == torch.bool:
            yield from index.nonzero(as_tuple=True)
        else:
            yield index


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty(value.shape, dtype=value.dtype, device="meta")
    return torch.device("meta") if isinstance(value, torch.device) else value


def _as_zeros(value: Any, viewed: Tensor | None) -> Any:
    """Return a tensor of zeros with the shape of `value`, on the number of the tensor that it is a view of."""
    if not isinstance(value, Tensor):
        return value
    if viewed is not None and viewed.numel() and viewed.dtype == value.dtype:
        return viewed.as_strided((), ()).expand(value.shape)
    return torch.zeros((), dtype=value.dtype).expand(value.shape)
