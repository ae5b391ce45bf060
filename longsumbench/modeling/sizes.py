"""Sizes that are known before training: the tokens that a system reads of a text, and its network's parameters.

example text → the system's reader → a batch of token ids → number of tokens
"""

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from transformers.initialization import no_init_weights

from longsumbench.core import Document, Example, Section, SystemConfig, registry
from longsumbench.modeling.tokenizer import train_tokenizer

# words of a made text's parts: sections as in arXiv and Multi-News
_SENTENCE, _PARAGRAPH, _SECTION = 25, 100, 1_000
_MADE_WORD = "word"  # one token
_AS_SPECIAL = (0, 1, 2)  # ids of padding, start and end of the tokenizer that is made here


class TextTokens(NamedTuple):
    """Tokens of an example that a system trains on."""

    source: int  # of all units
    target: int


def count_tokens(
    settings: SystemConfig, source_words: int, target_words: int, multi_document: bool = False
) -> TextTokens:
    """Count the tokens that a neural system reads of one made text and its summary, within its limits.

    The text has paragraphs of 100 words and sections of 1,000; with several documents, every section is a document. One
    word is one token. The settings `rank` and `graph` have no effect: they can need other models.
    """
    system: Any = registry.systems.load(settings.name)(_without_other_models(settings))
    reader = system.reader
    reader.multi_document = multi_document
    example = _made_example(source_words, target_words, multi_document)
    reader.tokenizer = train_tokenizer([example], vocabulary_size=5, kind="words")
    batch = reader.collator()([reader.row(example)])
    return TextTokens(int(batch["unit_mask"].sum()), batch["labels"].shape[1])


def count_parameters(settings: SystemConfig) -> dict[str, int]:
    """Return name → size of each parameter of a neural system's network, which is built without its numbers."""
    builder = registry.systems.load(settings.name)(_without_other_models(settings)).builder
    with torch.device("meta"), no_init_weights():
        model = builder.blank_model(_AS_SPECIAL)
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
