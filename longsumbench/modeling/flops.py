"""Counts the FLOPs of a system's network on one example, at any size, without computing its numbers.

example text → the system's reader → a batch of token ids → the system's network → FLOPs of its matrix products

How a pass is counted without its numbers: `pass_cost`.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from transformers.initialization import no_init_weights

from longsumbench.core import Document, Example, Section, registry
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.pass_cost import PassCost, counting
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.modeling.unit_reader import UnitReader, collate_units

_SENTENCE, _PARAGRAPH, _SECTION = 25, 100, 1_000  # words of a made text's parts: sections as in arXiv and Multi-News
_MADE_WORD = "word"  # one token
_AS_SPECIAL = (0, 1, 2)  # ids of padding, start and end of the tokenizer that is made here


class ForwardCount(NamedTuple):
    """One pass of encoder and decoder over an example.

    Attributes:
        parameters: of the network.
        flops: two for every multiply-add of a matrix product.
        source_tokens: tokens of all units.
        target_tokens: tokens of the target.
        saved_bytes: kept in training for the backward pass, in float32.
        decoder_layers: number of layers that write a token one after the other.
    """

    parameters: int
    flops: int
    source_tokens: int
    target_tokens: int
    saved_bytes: int
    decoder_layers: int


def count_forward(
    settings: NeuralConfig, source_words: int, target_words: int, multi_document: bool = False
) -> ForwardCount:
    """Count the FLOPs of a neural system's network on one made text.

    The text has paragraphs of 100 words and sections of 1,000; with several documents, every section is a document. One
    word is one token. The settings `rank` and `graph` have no effect: they cost little, and can need other models.

    Args:
        settings: the system's (`config.model`). Weights are random, also if `init` names a checkpoint.
        source_words: of the text; the system cuts it at its limits.
        target_words: of the summary.
        multi_document: True if the dataset has several documents per example.
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
