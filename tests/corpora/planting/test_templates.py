"""The templates of planted facts."""

import re
from itertools import chain
from math import prod
from string import Formatter

from longsumbench.corpora.planting.plant import SHARED_SLOTS, read_templates
from longsumbench.sentences import split_sentences

TEMPLATES = read_templates()
KINDS = list(chain.from_iterable(kinds.items() for kinds in TEMPLATES.registers.values()))


def slots_in(sentence: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(sentence) if name]


def test_numbers_of_values_are_right() -> None:
    """The number of a slot's values, from which chances are computed, is the product of the choices in its first form."""
    for name, slot in TEMPLATES.slots.items():
        if slot.forms:
            choices = [TEMPLATES.choices[choice] for choice in slots_in(slot.forms[0])]
            assert all(len(set(values)) == len(values) for values in choices)
            assert slot.number == prod(map(len, choices)), name


def test_splits_share_no_template() -> None:
    """No sentence of test, without its values, is one of train; each kind has several of both."""
    seen: dict[str, set[str]] = {"train": set(), "test": set()}
    for _, splits in KINDS:
        assert splits.keys() == seen.keys()
        for split, templates in splits.items():
            assert len(set(templates)) >= 3
            seen[split].update(chain.from_iterable(text.split(" | ") for text in templates))
    assert seen["train"].isdisjoint(seen["test"])


def test_templates_are_single_sentences_with_a_subject_and_an_answer() -> None:
    """Every sentence stays one when a text is split; a fact has a subject, the last sentence an answer."""
    for _, splits in KINDS:
        for template in chain.from_iterable(splits.values()):
            sentences = template.split(" | ")
            for sentence in sentences:
                text = re.sub(r"\{(?:not:)?", "X", sentence).replace("}", "")
                assert split_sentences(f"It rained. {text} It rained.")[1:2] == (text,)
            assert "name" in slots_in(sentences[0])
            assert set(slots_in(sentences[-1])) - set(SHARED_SLOTS)
