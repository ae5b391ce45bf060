"""Fact recall: the share of an example's planted facts that its summary states correctly."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from longsumbench.core import Example, Fact, Metric

_REACH = 10  # the value must be among so many words after the subject
_DECILES = 10  # of a fact's position
_MAX_DISTANCE = 7  # sections; a fact of larger distance counts under `other` only
_IN_ONE_PLACE, _SPREAD = "single", ("relayed", "silent")
_FACT_KINDS = (_IN_ONE_PLACE, *_SPREAD)
_TRAITS = ("plain", "repeated", "overruled")  # further words of a kind

# Both read each run of punctuation once, from its start.
_EDGES = re.compile(r"^[\W_]+|(?<![\W_])[\W_]+$")  # punctuation around a word
_STOPS = re.compile(r"(?<![^\w\s])(?:(?![.!?…])[^\w\s])*+[.!?…][^\w\s]*+(?:\s+|$)|[\r\n]+")


class FactRecall(Metric):
    """The share of an example's planted facts that its summary states correctly.

    Words are separated by blanks; their case and the punctuation around them are ignored. A sentence ends at a line
    break, or at a full stop, question mark or exclamation mark before a blank. A fact is looked up in the first
    sentence with its subject. The summary's value is the first of `fact.values` among the 10 words after the subject.
    The fact is right if this is `fact.value`. It is wrong for another value, without a value, or without the subject.

    Each column is the share of right facts in a group, NaN for an empty group:

    * `fact_recall`: all facts; `fact_recall_<kind>`: facts of one kind;
    * `fact_recall_single_position_<0…9>`: by the tenth of the source that has the fact;
    * `fact_recall_<relayed|silent>_distance_<0…7>`: by the number of sections between the sentences that state it;
      `…_same` and `…_other`: facts from one section, facts from several;
    * `fact_recall_chance`: the expected share of random guesses;
    * if there are such facts, `fact_recall_<plain|repeated|overruled>`: by the further words of the kind. The source
      states a repeated fact twice ("single repeated"), an overruled fact corrects an earlier statement, and a plain
      fact is neither.
    """

    needs_source: ClassVar[bool] = False
    name: ClassVar[str] = "fact_recall"
    columns: ClassVar[tuple[str, ...]] = (
        name,
        *(f"fact_recall_{kind}" for kind in _FACT_KINDS),
        *(f"fact_recall_{kind}_{place}" for kind in _SPREAD for place in ("same", "other")),
        *(f"fact_recall_{_IN_ONE_PLACE}_position_{decile}" for decile in range(_DECILES)),
        *(
            f"fact_recall_{kind}_distance_{distance}"
            for kind in _SPREAD
            for distance in range(_MAX_DISTANCE + 1)
        ),
        "fact_recall_chance",
    )
    further: ClassVar[tuple[str, ...]] = tuple(f"fact_recall_{trait}" for trait in _TRAITS)

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `columns` → 0–1 or NaN, and those of `further` that apply."""
        shares: dict[str, list[float]] = {column: [] for column in self.columns}
        sentences = words_of(prediction)
        for fact in example.facts:
            right = float(stated_values(sentences, fact) == fact.value.casefold())
            for column in _columns_of(fact):
                shares.setdefault(column, []).append(right)
            shares["fact_recall_chance"].append(1 / len(fact.values))
        return {
            column: sum(values) / len(values) if values else np.nan
            for column, values in shares.items()
        }

    def signature(self, n: int) -> str:
        """Name the metric and its version."""
        return f"{self.name}:{self.version}"


def stated_values(sentences: Iterable[Sequence[str]], fact: Fact) -> str | None:
    """Return the value that a summary (from `words_of`) states for a fact, in lower case; None without one."""
    subject, values = fact.subject.casefold(), {value.casefold() for value in fact.values}
    for words in sentences:
        if subject in words:
            next_words = words[words.index(subject) + 1 :][:_REACH]
            return next((word for word in next_words if word in values), None)
    return None


def words_of(text: str) -> list[list[str]]:
    """Return the words of every sentence of a text in lower case, without punctuation around them."""
    sentences = [
        [_EDGES.sub("", word).casefold() for word in sentence.split()]
        for sentence in _STOPS.split(text)
    ]
    return [[word for word in words if word] for words in sentences]


def _columns_of(fact: Fact) -> Iterator[str]:
    kind, _, traits = fact.kind.partition(" ")
    yield "fact_recall"
    if kind in _FACT_KINDS:
        yield f"fact_recall_{kind}"
    if kind == _IN_ONE_PLACE:
        yield f"fact_recall_{kind}_position_{min(int(fact.position * _DECILES), _DECILES - 1)}"
    if kind in _SPREAD:
        yield f"fact_recall_{kind}_{'other' if fact.distance else 'same'}"
        if fact.distance <= _MAX_DISTANCE:
            yield f"fact_recall_{kind}_distance_{fact.distance}"
    yield from (f"fact_recall_{trait}" for trait in _TRAITS if trait in traits.split())
