"""Fact recall: the share of an example's planted facts that its summary states correctly."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from longsumbench.core import Example, Fact, Metric

_REACH = 10  # the value must be among so many words after the subject
_DECILES = range(10)  # of a fact's position
_DISTANCES = range(8)  # sections; a fact of larger distance counts under `other` only
_SPREAD = ("relayed", "silent")  # kinds of facts that several sentences state


# The order of the columns is that of the file of scores.
def _column_names() -> tuple[str, ...]:
    suffixes = ["", "_single"]
    suffixes += [f"_{kind}" for kind in _SPREAD]
    for kind in _SPREAD:
        suffixes += [f"_{kind}_same", f"_{kind}_other"]
    suffixes += [f"_single_position_{decile}" for decile in _DECILES]
    for kind in _SPREAD:
        suffixes += [f"_{kind}_distance_{distance}" for distance in _DISTANCES]
    return tuple(f"fact_recall{suffix}" for suffix in (*suffixes, "_chance"))


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
    * `fact_recall_chance`: the expected share of random guesses.
    """

    needs_source = False
    name = "fact_recall"
    columns = _column_names()

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `columns` → 0–1 or NaN."""
        shares: dict[str, list[float]] = {column: [] for column in self.columns}
        sentences = split_words(prediction)
        for fact in example.facts:
            right = float(stated_values(sentences, fact) == fact.value.casefold())
            for column in _list_fact_columns(fact):
                shares[column].append(right)
            shares["fact_recall_chance"].append(1 / len(fact.values))
        return {
            column: sum(rights) / len(rights) if rights else np.nan
            for column, rights in shares.items()
        }

    def signature(self, n: int) -> str:
        """Name the metric and its version."""
        return f"{self.name}:{self.version}"


def stated_values(sentences: Iterable[Sequence[str]], fact: Fact) -> str | None:
    """Return the value that a summary (from `split_words`) states for a fact, in lower case; None without one."""
    values = {value.casefold() for value in fact.values}
    for words in sentences:
        if fact.subject.casefold() in words:
            # later sentences about the subject do not count, nor words before it
            start = words.index(fact.subject.casefold()) + 1
            stated = [word for word in words[start : start + _REACH] if word in values]
            return stated[0] if stated else None
    return None


def split_words(text: str) -> list[list[str]]:
    """Return the words of every sentence of a text in lower case, without punctuation around them."""
    sentences = []
    for sentence in _STOPS.split(text):
        words = [_EDGES.sub("", word).casefold() for word in sentence.split()]
        sentences.append([word for word in words if word])
    return sentences


def _list_fact_columns(fact: Fact) -> Iterator[str]:
    kind, suffixes = fact.kind, [""]
    if kind == "single":
        suffixes += ["_single", f"_single_position_{min(int(fact.position * 10), 9)}"]
    if kind in _SPREAD:
        suffixes += [f"_{kind}", f"_{kind}_{'other' if fact.distance else 'same'}"]
        if fact.distance in _DISTANCES:
            suffixes.append(f"_{kind}_distance_{fact.distance}")
    for suffix in suffixes:
        yield f"fact_recall{suffix}"
