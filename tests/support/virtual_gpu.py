"""A virtual GPU: code finds a CUDA device, but every number is kept and computed on the CPU.

    with VirtualGPU() as gpu:  # torch.cuda.is_available() is True
        main(["run", "model=seal", ...])
    print(gpu.launches, gpu.peak, gpu.waits.most_common(9))

A tensor is on "cuda:0" if its storage is in a table. A dispatch mode sees every operator of its thread, also of the
backward pass: it raises CUDA's errors where devices meet, places the results, and counts. Tensors, functions that make
them and `torch.cuda` are patched inside the context. Autocast for "cuda" is that of the CPU with CUDA's operators in
float32. The device has its own random numbers. Not found: another rounding, races, speed, cuDNN, other threads.
"""

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, nullcontext
from functools import cache, partial
from itertools import islice
from traceback import walk_stack
from types import SimpleNamespace
from typing import Any, Self

import pytest
import torch
import torch._dynamo  # dispatch modes import it, and it must see functions that are not patched
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)
_HALF = (torch.bfloat16, torch.float16)
_STREAM = SimpleNamespace(is_capturing=lambda: False)
_BLOCK = 512  # bytes; CUDA's allocator rounds up to it
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
# The host needs their results, or the sizes of those.
_WAITING = "nonzero masked_select unique_dim _unique2 unique_consecutive equal bincount _local_scalar_dense".split()
_WITHOUT_KERNEL = """empty empty_like empty_strided new_empty new_empty_strided _unsafe_view lift_fresh alias resize_
    _reshape_alias detach _local_scalar_dense set_ _has_compatible_shallow_copy_type""".split()  # nor has a view
_PRODUCTS = "mm bmm addmm baddbmm mv addmv dot".split()  # CUDA has none of integers
_AUTOCAST_FLOAT32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan softplus cumsum
    layer_norm native_layer_norm group_norm norm.Scalar norm.ScalarOpt_dim linalg_vector_norm renorm dist cdist cumprod
    sum sum.dim_IntList softmax.int log_softmax.int logsumexp pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar kl_div
    cosine_similarity nll_loss nll_loss_nd l1_loss smooth_l1_loss mse_loss binary_cross_entropy_with_logits""".split()


class VirtualGPU:
    """The device, with what it counts; lines of code in `folders` are shown."""

    def __init__(self, *folders: str) -> None:
        self.folders, self.launches = folders or ("longsumbench", "models"), 0
        self.waits: Counter[tuple[str, str]] = (
            Counter()
        )  # kind and place → how often the host waited
        self.allocated, self.peak = 0, 0  # bytes
        self.factory_device: str | None = None  # of the running function that makes a tensor
        self._table: dict[
            int, tuple[weakref.ref[Any], int]
        ] = {}  # address of a storage → itself, and its bytes
        self._stack = ExitStack()
        self.seed(0)

    def __enter__(self) -> Self:
        torch.utils._device._device_constructors()  # it caches the real functions
        patches = self._stack.enter_context(pytest.MonkeyPatch.context())
        for owner, values in self._patches():
            for name, value in values.items():
                patches.setattr(owner, name, value, raising=False)
        self._stack.callback(_cuda_autocast()._destroy)
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
                size, forget = (
                    -(-storage.nbytes() // _BLOCK) * _BLOCK,
                    partial(self._forget, storage._cdata),
                )
                self._table[storage._cdata] = (weakref.ref(storage, forget), size)
                self.allocated += size
                self.peak, torch.cuda._initialized = max(self.peak, self.allocated), True
        return tensor

    def _forget(self, address: int, _: object = None) -> None:
        self.allocated -= self._table.pop(address, (None, 0))[1]

    def seed(self, number: int) -> None:
        """Seed the random numbers of the device."""
        self.random_state = torch.Generator().manual_seed(number).get_state()

    def wait(self, kind: str) -> None:
        """Count that the host waits for the device."""
        self.waits[kind, self.source_line()] += 1

    def refuse(self, kind: type[Exception], problem: str) -> None:
        """Raise an error of CUDA, with the line that caused it."""
        raise kind(f"{problem} ({self.source_line()})")

    def source_line(self) -> str:
        """Return the line outside PyTorch that runs now, and the line in `folders` that led there."""
        lines = [(frame.f_code.co_filename, line) for frame, line in walk_stack(sys._getframe(1))]
        lines = [
            (path, line)
            for path, line in lines
            if path != __file__ and path[0] != "<" and "/torch/" not in path
        ]
        own = (
            line
            for line in lines
            if "site-packages" not in line[0] and {*self.folders} & {*line[0].split("/")}
        )
        shown = dict.fromkeys((*lines[:1], *islice(own, 1)))
        return " < ".join(f"{'/'.join(path.split('/')[-3:])}:{line}" for path, line in shown)

    def copied(self, tensor: Tensor, to_gpu: bool, waits: bool = True) -> Tensor:
        """Copy a tensor to the other device; its gradient is copied back."""
        if waits:
            self.wait("copy to device" if to_gpu else "copy to host")
        if tensor.requires_grad and torch.is_grad_enabled():
            tensor = tensor.view_as(tensor)
            tensor.register_hook(partial(self.copied, to_gpu=not to_gpu))
        self.launches += to_gpu  # a copy to the host is an operator on the device
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
        yield torch.accelerator, _constants(current_device_index=0, set_device_index=None)
        yield torch.backends.cudnn, _constants(is_acceptable=False)
        yield torch._VF, {"dropout": partial(self._dropout, torch._C._VariableFunctions.dropout)}
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
                if from_data:
                    self.wait("copy to device")
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
        if (like := other if other is not None or not args else args[0]) is not None and isinstance(
            like, Tensor
        ):
            args, kwargs = (), {"device": like.device, "dtype": like.dtype}
        device, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **kwargs)
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
        waits = not (to_gpu and non_blocking and hasattr(tensor, "is_pinned_copy"))
        return _real_to(self.copied(tensor, to_gpu, waits), **options)

    def _tensor_methods(self) -> dict[str, Any]:
        def on_gpu(act: Callable[[], object], method: Callable[..., Any]) -> Callable[..., Any]:
            return lambda tensor, *args, **kw: (
                self.holds(tensor) and act(),
                method(tensor, *args, **kw),
            )[1]

        def pinned(tensor: Tensor, *_: Any) -> Tensor:
            vars(copy := tensor.clone())["is_pinned_copy"] = True
            return copy

        no_numpy = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy it to host memory first"
        deepcopy, device_of = (
            Tensor.__deepcopy__,
            lambda tensor: GPU if self.holds(tensor) else _real_device(tensor),
        )
        return {
            "device": property(device_of),
            "is_cuda": property(self.holds),
            "is_cpu": property(lambda tensor: device_of(tensor) == CPU),
            "to": lambda tensor, *args, **kwargs: self._to(tensor, *args, **kwargs),
            "cpu": lambda tensor, **_: self._to(tensor, CPU),
            "cuda": lambda tensor, *_, **__: self._to(tensor, GPU),
            "numpy": on_gpu(partial(self.refuse, TypeError, no_numpy), _real_numpy),
            "tolist": on_gpu(partial(self.wait, "tolist"), Tensor.tolist),
            "pin_memory": on_gpu(
                partial(self.refuse, RuntimeError, "cannot pin 'torch.cuda.FloatTensor'"), pinned
            ),
            "__deepcopy__": lambda tensor, memo: self.place(
                deepcopy(tensor, memo), self.holds(tensor)
            ),
        }

    def _cuda_functions(self) -> dict[str, Any]:
        facts = SimpleNamespace(name="Virtual GPU", major=9, minor=0, total_memory=80 << 30)
        in_context: dict[str, Callable[..., Any]] = {  # on a real GPU, too, these open a context
            **_constants(
                init=None,
                _lazy_init=None,
                current_device=0,
                current_stream=_STREAM,
                is_bf16_supported=True,
            ),
            **_constants(
                get_device_name=facts.name,
                get_device_properties=facts,
                get_device_capability=(9, 0),
            ),
            "get_rng_state": lambda: self.random_state.clone(),
            "get_rng_state_all": lambda: [self.random_state.clone()],
            "mem_get_info": lambda: (facts.total_memory - self.allocated, facts.total_memory),
            "reset_peak_memory_stats": lambda: setattr(self, "peak", self.allocated),
            "synchronize": lambda: self.wait("synchronize"),
        }

        def opening(function: Callable[..., Any], *_: Any, **__: Any) -> Any:
            torch.cuda._initialized = True
            return function()

        return {
            **_constants(
                is_available=True,
                device_count=1,
                set_device=None,
                empty_cache=None,
                device=nullcontext(),
            ),
            **_constants(_is_in_bad_fork=False, is_current_stream_capturing=False),
            **{name: partial(opening, function) for name, function in in_context.items()},
            "_initialized": False,
            **dict.fromkeys(("manual_seed", "manual_seed_all"), self.seed),
            "set_rng_state": lambda new, *_: setattr(
                self, "random_state", torch.from_numpy(_real_numpy(new).copy())
            ),
            **dict.fromkeys(("memory_allocated", "memory_reserved"), lambda *_: self.allocated),
            "max_memory_allocated": lambda *_: self.peak,
        }

    def _dropout(
        self, real: Callable[..., Tensor], states: Tensor, p: float, training: bool
    ) -> Tensor:
        """Run dropout as one kernel on the device; the CPU's has three."""
        fused = training and 0 < p < 1 and self.holds(states)
        return torch.native_dropout(states, p, True)[0] if fused else real(states, p, training)

    def _grouped(self, real: Callable[..., Any], lists: Any, *args: Any) -> Any:
        """Group the tensors of an optimizer, which are all on one device."""
        on_gpu = any(
            self.holds(tensor) for group in lists for tensor in group if tensor is not None
        )
        return {
            (GPU if on_gpu else key[0], key[1]): groups
            for key, groups in real(lists, *args).items()
        }


class _Operators(TorchDispatchMode):
    """Runs every operator of its thread: checks devices, places results, counts."""

    def __init__(self, gpu: VirtualGPU) -> None:
        super().__init__()
        self.gpu, self.last_on_gpu = gpu, False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        gpu, kwargs, name = self.gpu, kwargs or {}, func._schema.name.removeprefix("aten::")
        with (
            torch._C.DisableTorchFunction()
        ):  # no function mode, as of torch.set_default_device, sees what is called
            tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
            if tensors:
                self.last_on_gpu = any(map(gpu.holds, tensors))
            elif gpu.factory_device:  # else C++ makes a tensor: where the operator before it ran
                self.last_on_gpu = gpu.factory_device == "cuda"
            if not self.last_on_gpu:
                return func(*args, **kwargs)
            if (
                torch.is_inference_mode_enabled() and func._can_decompose()
            ):  # without it, autograd has decomposed it
                with self:
                    return func.decompose(*args, **kwargs)
            self.check(func, name, args, tensors)
            draws = torch.Tag.nondeterministic_seeded in func.tags
            with torch.random.fork_rng([], enabled=draws):
                if draws:
                    torch.set_rng_state(gpu.random_state)
                result = func(*args, **kwargs)
                gpu.random_state = torch.get_rng_state() if draws else gpu.random_state
            given = {id(_storage_of(tensor)) for tensor in tensors if not gpu.holds(tensor)}
            for made in tree_leaves(result):
                if isinstance(made, Tensor) and id(_storage_of(made)) not in given:
                    gpu.place(made)
            gpu.launches += name not in _WITHOUT_KERNEL and not func.is_view
            return result

    def check(self, func: Any, name: str, args: Any, tensors: Sequence[Tensor]) -> None:
        """Raise what CUDA raises for an operator; count where the host waits."""
        gpu = self.gpu
        if name in _PRODUCTS and not (tensors[0].is_floating_point() or tensors[0].is_complex()):
            gpu.refuse(RuntimeError, f'"addmm_cuda" not implemented for {tensors[0].dtype}')
        if name in _INDEXING:
            indices = [index for index in args[1] if index is not None]
            on_gpu = [gpu.holds(index) for index in indices]
            if any(on_gpu) and not gpu.holds(args[0]):
                gpu.refuse(
                    RuntimeError,
                    "indices should be either on cpu or on the same device as the indexed tensor",
                )
            if not all(on_gpu) or any(index.dtype == torch.bool for index in indices):
                gpu.wait("boolean index" if all(on_gpu) else "index from host")
            tensors = [args[0], *(value for value in args[2:3] if isinstance(value, Tensor))]
        places = [gpu.holds(tensor) for tensor in tensors]
        if name in _WAITING or (name == "repeat_interleave" and "Tensor" in str(func)):
            gpu.wait(name)
        if (
            name == "copy_"
            and places[0] != places[1]
            and not (places[0] and hasattr(tensors[1], "is_pinned_copy"))
        ):
            gpu.wait("copy to device" if places[0] else "copy to host")
        takes_scalars = (
            name in _INDEXING
            or name.startswith("_foreach_")
            or _takes_cpu_scalars(name.rstrip("_"))
        )
        scalars = all(
            tensor.dim() == 0 for tensor, there in zip(tensors, places, strict=True) if not there
        )
        fits = takes_scalars and scalars and (places[0] or not func._schema.is_mutable)
        if not (all(places) or fits or name in _ACROSS_DEVICES):
            shown = zip(tensors, places, strict=True)
            shapes = ", ".join(
                f"{tuple(tensor.shape)} on {GPU if there else CPU}" for tensor, there in shown
            )
            problem = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
            gpu.refuse(RuntimeError, f"{problem} ({func} of {shapes})")


def _constants(**values: Any) -> dict[str, Any]:
    return {name: lambda *_, value=value, **__: value for name, value in values.items()}


def _on_cpu(kind: str) -> str:
    return "cpu" if kind == "cuda" else kind


def _cuda_autocast() -> Any:
    """Add CUDA's operators in float32 to the autocast of the CPU; `_destroy` of what is returned removes them."""
    library = torch.library.Library("aten", "IMPL", "AutocastCPU")
    for packet, _, overload in (name.partition(".") for name in _AUTOCAST_FLOAT32):
        operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
        if not torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), "AutocastCPU"):
            library.impl(operator, partial(_in_float32, operator))
    return library


def _in_float32(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operator outside autocast, in float32, unless its arguments name a dtype."""
    half = (
        () if any(isinstance(leaf, torch.dtype) for leaf in tree_leaves((args, kwargs))) else _HALF
    )
    args, kwargs = tree_map(
        lambda x: x.float() if isinstance(x, Tensor) and x.dtype in half else x, (args, kwargs)
    )
    with torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)
    ):
        return operator(*args, **kwargs)


def _storage_of(tensor: Tensor) -> Any:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):  # it is sparse
        return None


@cache
def _takes_cpu_scalars(name: str) -> bool:
    packet = getattr(torch.ops.aten, name, None)
    pointwise = packet and any(
        torch.Tag.pointwise in getattr(packet, one).tags for one in packet.overloads()
    )
    return bool(pointwise) or name in _WITH_CPU_SCALARS
