"""Counts the FLOPs of a system's network on one example, at any size, without computing its numbers.

example text → the system's reader → a batch of token ids → the system's network → FLOPs of its matrix products

Which tokens a network reads depends on integers (ids, lengths, masks), and the cost of a pass on shapes alone. So only
integers are computed here. Every tensor of floats is one zero that is expanded to the right shape.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode  # in the tutorials of PyTorch, but not exported elsewhere
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.flop_counter import FlopCounterMode
from transformers.initialization import no_init_weights

from longsumbench.api import Document, Example, Section, registry
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.modeling.unit_reader import UnitReader

_SENTENCE, _PARAGRAPH, _SECTION = 25, 100, 1_000  # words of a made text's parts: sections as in arXiv and Multi-News
_WORD = "word"  # one token
_AS_SPECIAL = (0, 1, 2)  # ids of padding, start and end of the tokenizer that is made here


class ForwardCount(NamedTuple):
    """One pass of encoder and decoder over an example.

    Attributes:
        parameters: of the network.
        flops: two for every multiply-add of a matrix product.
        source_tokens: tokens of all units.
        target_tokens: tokens of the target.
    """

    parameters: int
    flops: int
    source_tokens: int
    target_tokens: int


def count_forward(settings: Any, source_words: int, target_words: int, multi_document: bool = False) -> ForwardCount:
    """Count the FLOPs of a neural system's network on one made text.

    The text has paragraphs of 100 words and sections of 1,000; with several documents, every section is a document. One
    word is one token. The settings `rank` and `graph` have no effect: they cost little, and can need other models.

    Args:
        settings: the system's (`config.model`). Weights are random, also if `init` names a checkpoint.
        source_words: of the text; the system cuts it at its limits.
        target_words: of the summary.
        multi_document: True if the dataset has several documents per example.
    """
    system = registry.systems.load(settings.name)(_without_other_models(settings))
    assert isinstance(system, NeuralSystem)
    reader, network = system.reader, system.network
    reader.state = {"multi_document": multi_document}
    example = _made_example(source_words, target_words, multi_document)
    batch = _batch_of(reader, example)
    labels = reader.row(example)["labels"]
    fed = torch.full((1, len(labels)), reader.tokenizer.bos_token_id)
    products = sdpa_kernel(SDPBackend.MATH)  # FlopCounterMode knows no fused attention of CPUs
    with torch.no_grad(), products, FlopCounterMode(display=False) as counter, _ShapesOfFloats():  # type: ignore[no-untyped-call] # PyTorch does not annotate it
        with no_init_weights():  # Pegasus's takes seconds
            model = network.Model(network.model_config(settings.vocabulary_size, _AS_SPECIAL, multi_document)).eval()
        model.tie_weights()  # the initialization does it, too
        model(**batch, decoder_input_ids=fed)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return ForwardCount(parameters, counter.get_total_flops(), int(batch["unit_mask"].sum()), len(labels))


def count_parameters(settings: Any, multi_document: bool = False) -> dict[str, int]:
    """Return name → size of each parameter of a neural system's network, which is built without its numbers."""
    network = registry.systems.load(settings.name)(_without_other_models(settings)).network
    with torch.device("meta"), no_init_weights():
        model = network.Model(network.model_config(settings.vocabulary_size, _AS_SPECIAL, multi_document))
    model.tie_weights()
    return {name: parameter.numel() for name, parameter in model.named_parameters()}


def _without_other_models(settings: Any) -> Any:
    """Return settings of the same network without a ranker and without a graph of the entities in the text."""
    names = {item.name for item in dataclasses.fields(settings)} & {"rank", "graph"}
    return dataclasses.replace(settings, **dict.fromkeys(names, "none"))


def _batch_of(reader: UnitReader, example: Example) -> dict[str, Tensor]:
    """Read an example with a tokenizer of its words."""
    reader.tokenizer = train_tokenizer([example], vocabulary_size=5, kind="words")
    return reader.collate([reader.units(example)])


class _ShapesOfFloats(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes integers as usual. Of floats it computes shapes alone, on the meta device: all of them are zero."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_iter((args, kwargs)) if isinstance(leaf, Tensor)]
        makes = not tensors and any(argument.name == "device" for argument in func._schema.arguments)
        if not makes and not any(tensor.is_floating_point() for tensor in tensors):
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
        return tree_map(_as_zeros, shaped)


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


def _as_zeros(value: Any) -> Any:
    return torch.zeros((), dtype=value.dtype).expand(value.shape) if isinstance(value, Tensor) else value


def _made_example(source_words: int, target_words: int, multi_document: bool) -> Example:
    sections = [
        Section(_WORD, tuple(tuple(_texts(words, _SENTENCE)) for words in _sizes(size, _PARAGRAPH)))
        for size in _sizes(source_words, _SECTION)
    ]
    groups = [(section,) for section in sections] if multi_document else [tuple(sections)]
    documents = tuple(Document(None, group) for group in groups)
    return Example("made", _WORD, None, documents, (tuple(_texts(target_words, _SENTENCE)),))


def _texts(words: int, longest: int) -> Iterator[str]:
    return (" ".join([_WORD] * size) for size in _sizes(words, longest))


def _sizes(total: int, longest: int) -> Iterator[int]:
    return (min(longest, total - start) for start in range(0, total, longest))
