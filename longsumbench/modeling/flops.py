"""Counts the FLOPs of a system's network on one example, at any size, without computing its numbers.

example text → the system's reader → a batch of token ids → the system's network → FLOPs of its matrix products

Which tokens a network reads depends on integers (ids, lengths, masks), and the cost of a pass on shapes alone. So only
integers are computed here. Every tensor of floats is one zero that is expanded to the right shape; views share it.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode  # in the tutorials of PyTorch, but not exported elsewhere
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.flop_counter import FlopCounterMode
from transformers.initialization import no_init_weights

from longsumbench.core import Document, Example, Section, registry
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.modeling.unit_reader import UnitReader, collate_units

_SENTENCE, _PARAGRAPH, _SECTION = 25, 100, 1_000  # words of a made text's parts: sections as in arXiv and Multi-News
_MADE_WORD = "word"  # one token
_AS_SPECIAL = (0, 1, 2)  # ids of padding, start and end of the tokenizer that is made here


class ForwardCount(NamedTuple):
    """One pass of encoder and decoder over an example."""

    parameters: int  # of the network
    flops: int  # two for every multiply-add of a matrix product
    source_tokens: int  # tokens of all units
    target_tokens: int
    saved_bytes: int  # kept in training for the backward pass, in float32
    decoder_layers: int  # number of layers that write a token one after the other


def count_forward(
    settings: NeuralConfig, source_words: int, target_words: int, multi_document: bool = False
) -> ForwardCount:
    """Count the FLOPs of a neural system's network on one made text.

    The text has paragraphs of 100 words and sections of 1,000; with several documents, every section is a document. One
    word is one token. The settings `rank` and `graph` have no effect: they cost little, and can need other models.
    Weights are random, also if `init` names a checkpoint. The system cuts the text at its limits.
    """
    system: Any = registry.systems.load(settings.name)(_without_other_models(settings))
    reader = system.reader
    reader.multi_document = multi_document
    example = _made_example(source_words, target_words, multi_document)
    batch = _batch_of(reader, example)
    labels = reader.row(example)["labels"]
    fed = torch.full((1, len(labels)), reader.tokenizer.bos_token_id)
    with counting(cost := PassCost()):
        with no_init_weights():  # Pegasus's takes seconds
            model = system.builder.blank_model(_AS_SPECIAL, multi_document).eval()
        model.tie_weights()  # the initialization does it, too
        model(**batch, decoder_input_ids=fed)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    tokens, sizes = sum(map(len, reader.units(example).ids)), model.config.to_dict()
    layers = next(sizes[name] for name in ("decoder_layers", "num_decoder_layers", "num_layers") if name in sizes)
    return ForwardCount(parameters, cost.flops, tokens, len(labels), cost.saved_bytes, layers)


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


def _batch_of(reader: UnitReader, example: Example) -> dict[str, Tensor]:
    """Read an example with a tokenizer of its words."""
    reader.tokenizer = train_tokenizer([example], vocabulary_size=5, kind="words")
    return collate_units(reader, [reader.units(example)])


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


@dataclass
class PassCost:
    """The cost of what runs inside `counting`."""

    flops: int = 0  # two for every multiply-add of a matrix product
    saved_bytes: int = 0  # of the tensors that are kept for the backward pass, weights included


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
        viewed = args[0] if any(returned.alias_info is not None for returned in func._schema.returns) else None
        return tree_map(lambda value: _as_zeros(value, viewed), shaped)


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
