"""Counts the FLOPs of a system's network on one example, at any size, without computing its numbers.

example text → the system's reader → a batch of token ids → the system's network → FLOPs of its matrix products

Which tokens a network reads depends on integers (ids, lengths, masks), and the cost of a pass on shapes alone. So only
integers are computed here. Floats are computed on PyTorch's "meta" device, which knows shapes alone.
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor

# in the tutorials of PyTorch, but not exported elsewhere
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter, tree_map
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count
from transformers.initialization import no_init_weights

from longsumbench.core import Document, Example, Section, SystemConfig, registry
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.tokenizer import train_tokenizer

# words of a made text's parts: sections as in arXiv and Multi-News
_SENTENCE, _PARAGRAPH, _SECTION = 25, 100, 1_000
_MADE_WORD = "word"  # one token
_AS_SPECIAL = (0, 1, 2)  # ids of padding, start and end of the tokenizer that is made here
_META = torch.device("meta")
# FlopCounterMode does not know it
_CPU_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


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
    system, batch = made_batch(settings, source_words, target_words, multi_document)
    with counting_flops() as counter:
        with no_init_weights():  # Pegasus's takes seconds
            model = system.builder.blank_model(_AS_SPECIAL, multi_document)
        model.tie_weights()  # the initialization does it, too
        model.eval()(**batch)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    sizes = model.config.to_dict()
    of_t5 = sizes.get("num_decoder_layers") or sizes.get("num_layers")
    # where each stack has its own configuration, as in T5Gemma
    of_stack = sizes.get("decoder", {}).get("num_hidden_layers")
    return ForwardCount(
        parameters=parameters,
        flops=counter.get_total_flops(),
        source_tokens=int(batch["unit_mask"].sum()),
        target_tokens=batch["labels"].shape[1],
        decoder_layers=sizes.get("decoder_layers") or of_t5 or of_stack,
    )


def made_batch(
    settings: NeuralConfig, source_words: int, target_words: int, multi_document: bool = False
) -> tuple[Any, dict[str, Any]]:
    """Return a system without a model, and a training batch of one made text; the counts of a whole step are 1."""
    system: Any = registry.systems.load(settings.name)(_without_other_models(settings))
    reader = system.reader
    reader.multi_document = multi_document
    example = _made_example(source_words, target_words, multi_document)
    reader.tokenizer = train_tokenizer([example], vocabulary_size=5, kind="words")
    batch = reader.collator()([reader.row(example)])
    counts = [name for name in batch if name.startswith("num_")]
    return system, batch | dict.fromkeys([*counts, "num_items_in_batch"], 1)


def count_parameters(settings: SystemConfig, multi_document: bool = False) -> dict[str, int]:
    """Return name → size of each parameter of a neural system's network, which is built without its numbers."""
    builder = registry.systems.load(settings.name)(_without_other_models(settings)).builder
    with torch.device("meta"), no_init_weights():
        model = builder.blank_model(_AS_SPECIAL, multi_document)
    model.tie_weights()
    return {name: parameter.numel() for name, parameter in model.named_parameters()}


def _without_other_models(settings: SystemConfig) -> SystemConfig:
    """Return settings of the same network without a ranker and without a graph of the entities in the text."""
    names = {item.name for item in dataclasses.fields(settings)} & {"rank", "graph"}
    return dataclasses.replace(settings, **dict.fromkeys(names, "none"))


def _made_example(source_words: int, target_words: int, multi_document: bool) -> Example:
    sections = []
    for size in _part_sizes(source_words, _SECTION):
        paragraphs = tuple(map(_made_sentences, _part_sizes(size, _PARAGRAPH)))
        sections.append(Section(_MADE_WORD, paragraphs))
    groups = [(section,) for section in sections] if multi_document else [tuple(sections)]
    documents = tuple(Document(None, group) for group in groups)
    return Example("made", _MADE_WORD, None, documents, (_made_sentences(target_words),))


def _made_sentences(words: int) -> tuple[str, ...]:
    return tuple(" ".join([_MADE_WORD] * size) for size in _part_sizes(words, _SENTENCE))


def _part_sizes(total: int, longest: int) -> Iterator[int]:
    return (min(longest, total - start) for start in range(0, total, longest))


@contextmanager
def counting_flops() -> Iterator[FlopCounterMode]:
    """Count the FLOPs of networks that are built and run inside the context, without numbers."""
    counter = FlopCounterMode(display=False, custom_mapping={_CPU_ATTENTION: _count_attention})
    with counter, _FloatsWithoutNumbers():  # type: ignore[no-untyped-call] # PyTorch does not annotate it
        yield counter


def _count_attention(
    query: torch.Size, key: torch.Size, value: torch.Size, *_: Any, **__: Any
) -> int:
    return int(sdpa_flop_count(query, key, value))  # type: ignore[no-untyped-call]


class _FloatsWithoutNumbers(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes integers as usual, and of floats only shapes.

    A tensor of floats is memory on the CPU that is never written, so the system provides none.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        has_floats = any(
            isinstance(leaf, Tensor) and leaf.is_floating_point()
            for leaf in tree_iter((args, kwargs))
        )
        is_view = func.is_view or torch.Tag.inplace_view in func.tags
        if is_view or not has_floats:
            return func(*args, **kwargs)
        if func._schema.is_mutable:
            return args[0]
        if func.overloadpacket is torch.ops.aten.index:  # the result's shape depends on the masks
            args = (args[0], list(_without_masks(args[1])), *args[2:])
        on_meta, options = tree_map(_on_meta, (args, kwargs))
        return tree_map(_reserve, func(*on_meta, **options))


def _without_masks(indices: Any) -> Iterator[Tensor | None]:
    for index in indices:
        if index is not None and index.dtype == torch.bool:
            yield from index.nonzero(as_tuple=True)
        else:
            yield index


def _on_meta(value: Any) -> Any:
    if isinstance(value, Tensor):
        return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=_META)
    return _META if isinstance(value, torch.device) else value


def _reserve(result: Any) -> Any:
    """Return a tensor of the shape and layout of one on the meta device; integers are zero."""
    if not isinstance(result, Tensor):
        return result
    reserved = torch.empty_strided(result.shape, result.stride(), dtype=result.dtype)
    return reserved if result.is_floating_point() else reserved.zero_()
