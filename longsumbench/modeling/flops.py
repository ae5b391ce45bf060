"""Counts the FLOPs of a system's network on one example, at any size, without computing its numbers.

example text → the system's reader → a batch of token ids → the system's network → FLOPs of its matrix products

Which tokens a network reads depends on integers (ids, lengths, masks), and the cost of a pass on shapes alone. So only
integers are computed here. Every tensor of floats is one zero that is expanded to the right shape; views share it.
"""

import dataclasses
import mmap
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode  # in the tutorials of PyTorch, but not exported elsewhere
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.flop_counter import FlopCounterMode
from transformers import PreTrainedModel
from transformers.initialization import no_init_weights

from longsumbench.core import Document, Example, Recipe, Section, registry
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.modeling.training.optimization import build_optimizer, recompute_activations

_SENTENCE, _PARAGRAPH, _SECTION = 25, 100, 1_000  # words of a made text's parts: sections as in arXiv and Multi-News
_MADE_WORD = "word"  # one token
_ROUNDED = 512  # bytes: the sizes of a GPU's allocator
_FLOAT32 = {  # functions of networks for text that compute in float32 under CUDA's autocast
    *("layer_norm", "softmax", "log_softmax", "cross_entropy", "nll_loss", "sum", "pow", "__pow__", "exp", "log"),
    *("rsqrt", "softplus", "mse_loss", "norm", "cumsum"),
}
_CPU = torch.device("cpu")
_DEVICE_OF = Tensor.device.__get__
_AS_SPECIAL = (0, 1, 2)  # ids of padding, start and end of the tokenizer that is made here

Inputs = Mapping[str, Any]  # arguments of a network


class ForwardCount(NamedTuple):
    """One pass of encoder and decoder over an example."""

    parameters: int  # of the network
    flops: int  # two for every multiply-add of a matrix product
    source_tokens: int  # tokens of all units
    target_tokens: int
    decoder_layers: int  # number of layers that write a token one after the other


def count_forward(
    settings: NeuralConfig, source_words: int, target_words: int, multi_document: bool = False
) -> ForwardCount:
    """Count the FLOPs of a neural system's network on one made text.

    The text has paragraphs of 100 words and sections of 1,000; with several documents, every section is a document. One
    word is one token. The settings `rank` and `graph` have no effect: they cost little, and can need other models.
    Weights are random, also if `init` names a checkpoint. The system cuts the text at its limits.
    """
    system, batch = made_batch(settings, 1, source_words, target_words, multi_document)
    with FlopCounterMode(display=False) as counter, counting():
        model = _without_numbers(system).eval()
        model(**batch)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    tokens, sizes = int(batch["unit_mask"].sum()), model.config.to_dict()
    layers = next(sizes[name] for name in ("decoder_layers", "num_decoder_layers", "num_layers") if name in sizes)
    return ForwardCount(parameters, counter.get_total_flops(), tokens, batch["labels"].shape[1], layers)


def count_training(system: Any, batch: Inputs, recipe: Recipe, device: str, bf16: bool) -> int:
    """Return the bytes at the peak of a training step of what `made_batch` returns; see `count_step`."""
    with counting():
        system.model = _without_numbers(system)
    objective = system.objective(recipe)
    if objective is None:
        return count_step(system.model, system.model, batch, recipe, device, bf16)
    return count_step(system.model, objective.output, objective.draw(batch), recipe, device, bf16)


def made_batch(
    settings: NeuralConfig, texts: int, source_words: int, target_words: int, multi_document: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Return a system without a model, and a training batch of equal made texts; the counts of a whole step are 1."""
    system: Any = registry.systems.load(settings.name)(_without_other_models(settings))
    reader = system.reader
    reader.multi_document = multi_document
    example = _made_example(source_words, target_words, multi_document)
    reader.tokenizer = train_tokenizer([example], vocabulary_size=5, kind="words")
    batch = reader.collator()([reader.row(example)] * texts)
    return system, {**batch, **{name: 1 for name in ("num_items_in_batch", *batch) if name.startswith("num_")}}


def _without_numbers(system: Any) -> PreTrainedModel:
    with no_init_weights():  # Pegasus's takes seconds
        model: PreTrainedModel = system.builder.blank_model(_AS_SPECIAL, system.reader.multi_document)
    model.tie_weights()  # the initialization does it, too
    return model


def count_parameters(settings: NeuralConfig, multi_document: bool = False) -> dict[str, int]:
    """Return name → size of each parameter of a neural system's network, which is built without its numbers."""
    builder = registry.systems.load(settings.name)(_without_other_models(settings)).builder
    with torch.device("meta"), no_init_weights():
        model = builder.blank_model(_AS_SPECIAL, multi_document)
    model.tie_weights()
    return {name: parameter.numel() for name, parameter in model.named_parameters()}


def _without_other_models(settings: NeuralConfig) -> NeuralConfig:
    """Return settings of the same network without a ranker and without a graph of the entities in the text."""
    names = {item.name for item in dataclasses.fields(settings)} & {"rank", "graph"}
    return dataclasses.replace(settings, **dict.fromkeys(names, "none"))


def _made_example(source_words: int, target_words: int, multi_document: bool) -> Example:
    sections = [
        Section(_MADE_WORD, tuple(tuple(_made_texts(words, _SENTENCE)) for words in _part_sizes(size, _PARAGRAPH)))
        for size in _part_sizes(source_words, _SECTION)
    ]
    groups = [(section,) for section in sections] if multi_document else [tuple(sections)]
    documents = tuple(Document(None, group) for group in groups)
    return Example("made", _MADE_WORD, None, documents, (tuple(_made_texts(target_words, _SENTENCE)),))


def _made_texts(words: int, longest: int) -> Iterator[str]:
    return (" ".join([_MADE_WORD] * size) for size in _part_sizes(words, longest))


def _part_sizes(total: int, longest: int) -> Iterator[int]:
    return (min(longest, total - start) for start in range(0, total, longest))


aten = torch.ops.aten


class Costs(TorchDispatchMode):
    """Computes integers as usual, and of floats only shapes. Counts the bytes of all tensors until they are freed.

    A tensor of floats is memory that is never written, so the system provides none. All its numbers are zero.
    """

    peak = 0  # most bytes at a time

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # PyTorch does not annotate it
        self._bytes = 0
        self._sizes: dict[int, tuple[object, int]] = {}  # address → weak reference to a storage, its bytes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():  # `_OnDevice` is for the network alone
            return self._dispatch(func, args, kwargs or {})

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        aten, name = torch.ops.aten, func.overloadpacket
        tensors = [leaf for leaf in tree_iter((args, kwargs)) if isinstance(leaf, Tensor)]
        makes = not tensors and any(argument.name == "device" for argument in func._schema.arguments)
        if func.is_view or torch.Tag.inplace_view in func.tags or name is aten._unsafe_view:
            return func(*args, **kwargs)
        if not (makes or any(tensor.is_floating_point() for tensor in tensors)):
            return tree_map(self._count, func(*args, **kwargs))
        if func._schema.is_mutable:
            return args[0] if func._schema.returns else None
        if name is aten._local_scalar_dense:  # Tensor.item
            return 0.0
        if name is aten.masked_select:
            return self._reserve(torch.empty(int(args[1].sum()), dtype=args[0].dtype, device="meta"))
        if name in (aten.index, aten.index_put, aten._unsafe_index):  # the result's shape depends on the masks
            args = (args[0], list(_without_masks(args[1])), *args[2:])
        on_meta = {name: _on_meta(value) for name, value in kwargs.items()}
        shaped = func(*map(_on_meta, args), **({"device": torch.device("meta"), **on_meta} if makes else on_meta))
        if makes and not shaped.is_floating_point():
            return self._count(func(*args, **kwargs))
        return tree_map(self._reserve, shaped)

    def _reserve(self, shaped: Any) -> Any:
        """Return zeros of the shape and layout of a tensor, in memory that is not used before it is written."""
        if not isinstance(shaped, Tensor):
            return shaped
        size = max(1, shaped.untyped_storage().nbytes() // shaped.itemsize) * shaped.itemsize
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        return self._count(torch.frombuffer(pages, dtype=shaped.dtype).as_strided(shaped.shape, shaped.stride()))

    def _count(self, value: Any) -> Any:
        if isinstance(value, Tensor) and (key := (storage := value.untyped_storage())._cdata) not in self._sizes:
            size = -(-storage.nbytes() // _ROUNDED) * _ROUNDED
            self._sizes[key] = weakref.ref(storage, lambda _: self._free(key)), size
            self._bytes += size
            self.peak = max(self.peak, self._bytes)
        return value

    def _free(self, key: int) -> None:
        self._bytes -= self._sizes.pop(key)[1]


class _OnDevice(TorchFunctionMode):
    """Runs a network as on a device: its branches, attention, dropout, and dtypes under autocast."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device, self._on_gpu = torch.device(device), device != "cpu"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        caller = sys._getframe(1).f_globals["__name__"]
        if func == _DEVICE_OF and caller != "torch.utils.checkpoint":  # which compares devices of saved tensors
            return self._device
        in_memory = {"device": _CPU, "sparse": False}  # where shapes are; a sparse gradient has none
        kwargs = {name: in_memory.get(name, value) for name, value in (kwargs or {}).items()}
        if func is Tensor.to:
            args = [_CPU if isinstance(value, torch.device) else value for value in args]
        if func is F.scaled_dot_product_attention:
            return self._attend(*args, **kwargs)
        if self._on_gpu and func is F.dropout and kwargs["training"] and kwargs["p"]:
            return torch.native_dropout(args[0], kwargs["p"], True)[0]
        if self._on_gpu and torch.is_autocast_enabled("cpu") and func.__name__ in _FLOAT32:
            args = [value.float() if getattr(value, "dtype", None) is torch.bfloat16 else value for value in args]
        return func(*args, **kwargs)

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0,
        is_causal: bool = False, **others: Any
    ) -> Any:  # fmt: skip
        """Attend with a fused kernel, which keeps no weight for every pair of tokens, where there is one."""
        bias = attn_mask if attn_mask is not None and attn_mask.is_floating_point() else None
        if not self._on_gpu and (dropout_p or (bias is not None and bias.requires_grad)):
            return F.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, **others)
        if torch.is_autocast_enabled("cpu"):
            query, key, value = query.bfloat16(), key.bfloat16(), value.bfloat16()
        if attn_mask is not None:  # it is added to the scores
            shape, dtype = attn_mask.shape, query.dtype
            attn_mask = torch.empty(shape, dtype=dtype) if bias is None else bias.to(dtype)
        attend = torch.ops.aten._scaled_dot_product_efficient_attention
        return attend(query, key, value, attn_mask, True, dropout_p, is_causal, scale=others.get("scale"))[0]


@contextmanager
def counting(device: str = "cpu") -> Iterator[Costs]:
    """Count what runs, without numbers, as it would run on `device`. No random numbers are used up."""
    costs, autocast = Costs(), torch.autocast.__init__
    on_cpu = lambda self, device_type, *rest, **options: autocast(self, "cpu", *rest, **options)  # noqa: E731
    with torch.random.fork_rng(devices=[]), patch.object(torch.autocast, "__init__", on_cpu), costs, _OnDevice(device):
        yield costs


def count_step(
    model: PreTrainedModel, output: Callable[..., Any], batch: Inputs, recipe: Recipe, device: str, bf16: bool
) -> int:
    """Return the bytes at the peak of a training step after the first one: weights, gradients, optimizer, activations.

    Args:
        model: stays as it is.
        output: the model or a function of it, which returns `loss`.
        batch: what `output` takes.
        recipe: names the optimizer, and whether activations are recomputed.
        device: "cpu" or "cuda", which need not exist.
        bf16: True if matrix products are computed in bfloat16.
    """
    with counting(device) as costs:
        model, output = deepcopy((model, output))
        model.to(_CPU).train()
        if recipe.gradient_checkpointing:
            recompute_activations(model)
        optimizer = build_optimizer(model, recipe)
        for weight in model.parameters():
            weight.grad = torch.empty_like(weight) if weight.requires_grad else None
        optimizer.step()
        if recipe.accumulation == 1:  # else the next pass adds to the gradients
            model.zero_grad()
        with torch.autocast(device, torch.bfloat16, enabled=bf16):
            loss = output(**batch).loss
        run = torch.autograd.Variable._execution_engine.run_backward  # Tensor.backward would leave `_OnDevice`
        run((loss,), (torch.ones_like(loss),), False, False, (), allow_unreachable=True, accumulate_grad=True)
    return costs.peak


def _without_masks(indices: Any) -> Iterator[Tensor | None]:
    for index in indices:
        if index is not None and index.dtype == torch.bool:
            yield from index.nonzero(as_tuple=True)
        else:
            yield index


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    if isinstance(value, list | tuple):
        return [_on_meta(item) for item in value]
    return torch.device("meta") if isinstance(value, torch.device) else value
