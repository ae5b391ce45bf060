"""A virtual GPU: code finds a CUDA device, but every number is kept and computed on the CPU.

    with VirtualGPU():  # torch.cuda.is_available() is True
        system.fit(...)

A tensor is on "cuda:0" if its storage is in a table. A dispatch mode sees every operator of its thread, also of the
backward pass: it raises CUDA's errors where devices meet, and places the results. Tensors, functions that make them and
`torch.cuda` are patched inside the context. Autocast and random numbers are those of the CPU. Not found: another
rounding, races, speed, cuDNN, other threads.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, Self

import pytest
import torch
import torch._dynamo  # dispatch modes import it, and it must see functions that are not patched
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
_STREAM = SimpleNamespace(is_capturing=lambda: False)
_real_device: Callable[[Tensor], torch.device] = torch._C.TensorBase.device.__get__
_real_to, _real_numpy = Tensor.to, Tensor.numpy
_FACTORIES = """zeros ones empty full arange tensor rand randn randint randperm eye linspace logspace as_tensor asarray
    zeros_like ones_like empty_like full_like rand_like randn_like randint_like empty_strided scalar_tensor""".split()
_NEW = "new_zeros new_ones new_empty new_full new_tensor".split()
_FROM_DATA = "tensor as_tensor asarray new_tensor".split()
_ACROSS_DEVICES = "copy_ _to_copy _foreach_copy_ set_ _local_scalar_dense _has_compatible_shallow_copy_type".split()
_WITH_CPU_SCALARS = (
    "masked_fill where fill index_fill clamp lerp".split()
)  # and those tagged as pointwise
_INDEXING = "index index_put index_put_ _index_put_impl_ _unsafe_index _unsafe_index_put".split()


class VirtualGPU:
    """The device."""

    def __init__(self) -> None:
        self.factory_device: str | None = None  # of the running function that makes a tensor
        # Address of a storage → itself
        self._table: dict[int, weakref.ref[Any]] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        torch.utils._device._device_constructors()  # it caches the real functions
        patches = self._stack.enter_context(pytest.MonkeyPatch.context())
        for owner, values in self._patches():
            for name, value in values.items():
                patches.setattr(owner, name, value, raising=False)
        self._stack.enter_context(_Operators(self))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()

    def holds(self, tensor: Tensor) -> bool:
        """Return True if a tensor is on the device."""
        return (storage := _storage_of(tensor)) is not None and storage._cdata in self._table

    def place(self, tensor: Tensor, on_gpu: bool = True) -> Tensor:
        """Note where the storage of a tensor is."""
        storage = _storage_of(tensor)
        if storage is not None and _real_device(tensor) == CPU and self.holds(tensor) != on_gpu:
            self._forget(storage._cdata)
            if on_gpu:
                forget = partial(self._forget, storage._cdata)
                self._table[storage._cdata] = weakref.ref(storage, forget)
        return tensor

    def _forget(self, address: int, _: object = None) -> None:
        self._table.pop(address, None)

    def copied(self, tensor: Tensor, to_gpu: bool) -> Tensor:
        """Copy a tensor to the other device; its gradient is copied back."""
        if tensor.requires_grad and torch.is_grad_enabled():
            tensor = tensor.view_as(tensor)
            tensor.register_hook(partial(self.copied, to_gpu=not to_gpu))
        return self.place(tensor.clone(), to_gpu)

    def _patches(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Yield what is patched, each with its new attributes."""
        yield torch, {name: self._factory(getattr(torch, name)) for name in _FACTORIES}
        yield Tensor, {name: self._factory(getattr(Tensor, name), of_tensor=True) for name in _NEW}
        yield Tensor, self._tensor_methods()
        yield torch.cuda, self._cuda_functions()
        yield (
            torch.accelerator,
            _constants(is_available=True, current_accelerator=GPU, current_stream=_STREAM),
        )
        yield torch.backends.cudnn, _constants(is_acceptable=False)
        grouped = partial(self._grouped, torch._C._group_tensors_by_device_and_dtype)
        yield torch._C, {"_group_tensors_by_device_and_dtype": grouped}
        mode: Any = torch.amp.autocast_mode.autocast
        begin = mode.__init__
        yield (
            mode,
            {
                "__init__": lambda self, device_type, *args, **kw: begin(
                    self, _on_cpu(device_type), *args, **kw
                )
            },
        )
        for name in (
            "is_autocast_enabled get_autocast_dtype set_autocast_enabled set_autocast_dtype".split()
        ):
            real = getattr(torch, name)
            yield torch, {name: lambda kind="cuda", *args, real=real: real(_on_cpu(kind), *args)}

    def _factory(
        self, real: Callable[..., Tensor], of_tensor: bool = False
    ) -> Callable[..., Tensor]:
        """Wrap a function that makes a tensor; a tensor's method makes it on the tensor's device."""

        def make(*args: Any, **kwargs: Any) -> Tensor:
            device = kwargs.get("device") or (args[0].device if of_tensor else None)
            kind, from_data = (
                "cpu" if device is None else torch.device(device).type,
                real.__name__ in _FROM_DATA,
            )
            if kind == "cuda" and from_data and isinstance(args[-1], Tensor):
                return args[-1].to(GPU, dtype=kwargs.get("dtype"))
            if kind == "cuda":
                kwargs["device"] = CPU
            before, self.factory_device = self.factory_device, kind
            try:
                made = real(*args, **kwargs)
            finally:
                self.factory_device = before
            return self.place(made, kind == "cuda") if device is not None else made

        return make

    def _to(
        self,
        tensor: Tensor,
        *args: Any,
        copy: bool = False,
        other: Tensor | None = None,
        **kwargs: Any,
    ) -> Tensor:
        like = other if other is not None or not args else args[0]
        if isinstance(like, Tensor):
            args, kwargs = (), {"device": like.device, "dtype": like.dtype}
        device, dtype, _, layout = torch._C._nn._parse_to(*args, **kwargs)
        options: dict[str, Any] = {
            "dtype": dtype or tensor.dtype,
            **({"memory_format": layout} if layout else {}),
        }
        if device is None or device.type not in ("cpu", "cuda") or _real_device(tensor) != CPU:
            return _real_to(
                tensor, copy=copy, **{**options, **({"device": device} if device else {})}
            )
        if (to_gpu := device.type == "cuda") == self.holds(tensor):
            return _real_to(tensor, copy=copy, **options)
        return _real_to(self.copied(tensor, to_gpu), **options)

    def _tensor_methods(self) -> dict[str, Any]:
        def on_host(method: Callable[..., Any]) -> Callable[..., Any]:
            def call(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
                if self.holds(tensor):
                    raise TypeError(
                        "can't convert or pin a tensor of cuda:0: copy it to the host first"
                    )
                return method(tensor, *args, **kwargs)

            return call

        def device_of(tensor: Tensor) -> torch.device:
            return GPU if self.holds(tensor) else _real_device(tensor)

        return {
            "device": property(device_of),
            "is_cuda": property(self.holds),
            "is_cpu": property(lambda tensor: device_of(tensor) == CPU),
            "to": lambda tensor, *args, **kwargs: self._to(tensor, *args, **kwargs),
            "cpu": lambda tensor, **_: self._to(tensor, CPU),
            "numpy": on_host(_real_numpy),
            "pin_memory": on_host(Tensor.clone),
        }

    def _cuda_functions(self) -> dict[str, Any]:
        return {
            **_constants(is_available=True, device_count=1, set_device=None, manual_seed_all=None),
            **_constants(_is_in_bad_fork=False, is_current_stream_capturing=False),
            **_constants(is_bf16_supported=True, get_device_name="Virtual GPU"),
            "get_rng_state": lambda *_: torch.get_rng_state(),
            "set_rng_state": lambda new, *_: torch.set_rng_state(new),
        }

    def _grouped(self, real: Callable[..., Any], lists: Any, *args: Any) -> Any:
        """Group the tensors of an optimizer, which are all on one device."""
        on_gpu = any(self.holds(leaf) for leaf in tree_leaves(lists) if isinstance(leaf, Tensor))
        grouped = {}
        for (device, dtype), groups in real(lists, *args).items():
            grouped[GPU if on_gpu else device, dtype] = groups
        return grouped


class _Operators(TorchDispatchMode):
    """Runs every operator of its thread: checks devices, places results."""

    def __init__(self, gpu: VirtualGPU) -> None:
        super().__init__()
        self.gpu, self.last_on_gpu = gpu, False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        gpu, kwargs, name = self.gpu, kwargs or {}, func._schema.name.removeprefix("aten::")
        # No function mode, as of torch.set_default_device, sees what is called.
        with torch._C.DisableTorchFunction():
            tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
            if tensors:
                self.last_on_gpu = any(map(gpu.holds, tensors))
            elif gpu.factory_device:  # else C++ makes a tensor: where the operator before it ran
                self.last_on_gpu = gpu.factory_device == "cuda"
            if not self.last_on_gpu:
                return func(*args, **kwargs)
            # Without inference mode, autograd has decomposed it.
            if torch.is_inference_mode_enabled() and func._can_decompose():
                with self:
                    return func.decompose(*args, **kwargs)
            self.check(func, name, args, tensors)
            result = func(*args, **kwargs)
            given = {id(_storage_of(tensor)) for tensor in tensors if not gpu.holds(tensor)}
            for made in tree_leaves(result):
                if isinstance(made, Tensor) and id(_storage_of(made)) not in given:
                    gpu.place(made)
            return result

    def check(self, func: Any, name: str, args: Any, tensors: Sequence[Tensor]) -> None:
        """Raise what CUDA raises for an operator."""
        gpu = self.gpu
        if name in _INDEXING:
            indices = [index for index in args[1] if index is not None]
            on_gpu = [gpu.holds(index) for index in indices]
            if any(on_gpu) and not gpu.holds(args[0]):
                raise RuntimeError("indices should be on cpu or on the same device")
            tensors = [args[0], *(value for value in args[2:3] if isinstance(value, Tensor))]
        places = [gpu.holds(tensor) for tensor in tensors]
        takes_scalars = (
            name in _INDEXING
            or name.startswith("_foreach_")
            or _takes_cpu_scalars(name.rstrip("_"))
        )
        on_host = [tensor for tensor in tensors if not gpu.holds(tensor)]
        scalars = all(tensor.dim() == 0 for tensor in on_host)
        fits = takes_scalars and scalars and (places[0] or not func._schema.is_mutable)
        if not (all(places) or fits or name in _ACROSS_DEVICES):
            shapes = [tuple(tensor.shape) for tensor in tensors]
            raise RuntimeError(
                f"Expected all tensors to be on the same device ({func} of {shapes}: {places})"
            )


def _constants(**values: Any) -> dict[str, Any]:
    return {name: lambda *_, value=value, **__: value for name, value in values.items()}


def _on_cpu(kind: str) -> str:
    return "cpu" if kind == "cuda" else kind


def _storage_of(tensor: Tensor) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # it is sparse
        return None


@cache
def _takes_cpu_scalars(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    overloads = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
    pointwise = any(torch.Tag.pointwise in overload.tags for overload in overloads)
    return pointwise or name in _WITH_CPU_SCALARS
