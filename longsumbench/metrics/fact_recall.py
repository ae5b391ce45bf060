"""Fact recall: how many of an example's planted facts its summary states right; by kind, place and distance."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

import numpy as np

from longsumbench.api.documents import Example, Fact
from longsumbench.api.metric import Metric

_REACH = 10  # words behind the subject among which its value must stand
_DECILES = 10  # of a fact's position
_FARTHEST = 7  # sections; a fact that is put together from farther counts under `other` only
_IN_ONE_PLACE, _SPREAD = "single", ("relayed", "silent")
_KINDS = (_IN_ONE_PLACE, *_SPREAD)
_TRAITS = ("plain", "repeated", "overruled")  # what a kind may say behind its first word

_EDGES = re.compile(r"^[\W_]+|[\W_]+$")  # punctuation around a word
_ENDS = re.compile(r"[.!?…][^\w\s]*(?:\s+|$)|[\r\n]+")


class FactRecall(Metric):
    """The share of an example's planted facts that its summary states right.

    Words are separated by blanks; their case and punctuation around them do not matter. A sentence ends at a line
    break, or at a full stop, a question mark or an exclamation mark that a blank follows. A fact is looked up in the
    first sentence that has its subject as a word. Of the at most `_REACH` words after the first subject, the first one
    in `fact.values` is what the summary says. The fact is right if that is `fact.value`. It is wrong if it is another
    value, if there is none, or if no sentence names the subject.

    Columns, each the share of right ones among the example's facts of some sort, NaN where it has none of it:

    * `fact_recall`: all of them; `fact_recall_<kind>`: those of one kind;
    * `fact_recall_single_position_<0…9>`: by the tenth of the source in which the fact stands;
    * `fact_recall_<relayed|silent>_distance_<0…7>`: by the sections between the places it is put together from;
      `…_same` and `…_other`: those of one section, those of several;
    * `fact_recall_chance`: not of the summary, but what naming any of the values blindly would reach;
    * where there are such facts, `fact_recall_<plain|repeated|overruled>`: those of any kind that the source states
      twice ("single repeated"), those that overrule what it stated before, and those of which it is said that they do
      neither.
    """

    name: ClassVar[str] = "fact_recall"
    columns: ClassVar[tuple[str, ...]] = (
        name,
        *(f"fact_recall_{kind}" for kind in _KINDS),
        *(f"fact_recall_{kind}_{place}" for kind in _SPREAD for place in ("same", "other")),
        *(f"fact_recall_{_IN_ONE_PLACE}_position_{decile}" for decile in range(_DECILES)),
        *(f"fact_recall_{kind}_distance_{distance}" for kind in _SPREAD for distance in range(_FARTHEST + 1)),
        "fact_recall_chance",
    )
    further: ClassVar[tuple[str, ...]] = tuple(f"fact_recall_{trait}" for trait in _TRAITS)

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `fact_recall` … `fact_recall_chance` → 0–1 or NaN, and of `further` what applies."""
        shares: dict[str, list[float]] = {column: [] for column in self.columns}
        sentences = words_of(prediction)
        for fact in example.facts:
            right = float(stated_values(sentences, fact) == fact.value.casefold())
            for column in _columns_of(fact):
                shares.setdefault(column, []).append(right)
            shares["fact_recall_chance"].append(1 / len(fact.values))
        return {column: sum(found) / len(found) if found else np.nan for column, found in shares.items()}

    def signature(self, n: int) -> str:
        """Name the metric and its version; the mean is over the examples to which a column applies."""
        return f"{self.name}:{self.version}"


def stated_values(sentences: Iterable[Sequence[str]], fact: Fact) -> str | None:
    """Return which of a fact's values a summary says of its subject, in lower case; None when it says none.

    Args:
        sentences: the summary's, as `words_of` returns them.
        fact: of which subject and values are used.
    """
    subject, values = fact.subject.casefold(), {value.casefold() for value in fact.values}
    for words in sentences:
        if subject in words:
            behind = words[words.index(subject) + 1 :][:_REACH]
            return next((word for word in behind if word in values), None)
    return None


def words_of(text: str) -> list[list[str]]:
    """Return the words of every sentence of a text, bare and in lower case; punctuation alone is no word."""
    bare = [[_EDGES.sub("", word).casefold() for word in sentence.split()] for sentence in _ENDS.split(text)]
    return [[word for word in words if word] for words in bare]


def _columns_of(fact: Fact) -> Iterator[str]:
    """Yield the columns in which a fact counts; one of an unknown kind counts in the first only."""
    kind, _, traits = fact.kind.partition(" ")
    yield "fact_recall"
    if kind in _KINDS:
        yield f"fact_recall_{kind}"
    if kind == _IN_ONE_PLACE:
        yield f"fact_recall_{kind}_position_{min(int(fact.position * _DECILES), _DECILES - 1)}"
    if kind in _SPREAD:
        yield f"fact_recall_{kind}_{'other' if fact.distance else 'same'}"
        if fact.distance <= _FARTHEST:
            yield f"fact_recall_{kind}_distance_{fact.distance}"
    yield from (f"fact_recall_{trait}" for trait in _TRAITS if trait in traits.split())
