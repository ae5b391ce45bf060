"""Fact survival: the share of the facts planted in a natural text that the summary states."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import ClassVar

import numpy as np

from longsumbench.core import Example, Metric, PlantedFact, SentenceVerdict, count_words
from longsumbench.metrics.fact_matching import RIGHT, WRONG, judge_facts
from longsumbench.sentences import SPLITTER_NAME

FACT_KINDS = (
    "decision",
    "number",
    "date",
    "name",
    "negation",
    "correction",
    "two_places",
    "file",
    "attempt",
    "revocation",
)


class FactSurvival(Metric):
    """The share of an example's planted facts that its summary states (`judge_facts`).

    Each column is a mean over facts, NaN without any:

    * `fact_survival`: facts that are stated right; `fact_survival_<kind>`: those of one kind;
    * `fact_survival_wrong`: facts that are stated with another value, denied, or in their revoked form;
    * `fact_survival_position_<0…9>`: by the tenth of the source that states the fact, for facts in one place. A
      correction is in the place of its later sentence;
    * `fact_survival_chance`: what guesses reach;
    * `fact_survival_random`: what random sentences with as many words as the summary reach: its share s of the source's
      words, or s² for a fact in two sentences;
    * `fact_survival_ceiling`: what the shortest planted sentences reach with at most as many words as the summary.
    """

    name: ClassVar[str] = "fact_survival"
    columns: ClassVar[tuple[str, ...]] = (
        name,
        f"{name}_wrong",
        *(f"fact_survival_{kind}" for kind in FACT_KINDS),
        *(f"fact_survival_position_{tenth}" for tenth in range(10)),
        f"{name}_chance",
        f"{name}_random",
        f"{name}_ceiling",
    )

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `columns` → 0–1 or NaN."""
        return self.judge_sentences(prediction, example)[0]

    def judge_sentences(
        self, prediction: str, example: Example
    ) -> tuple[dict[str, float], Sequence[SentenceVerdict]]:
        """Score one prediction, and give a verdict on each fact."""
        facts, length = example.planted, count_words([prediction])
        judged = judge_facts(facts, prediction)
        shares: dict[str, list[float]] = {column: [] for column in self.columns}
        share_of_source = min(1.0, length / max(1, example.source_words()))
        for fact, verdict in zip(facts, judged, strict=True):
            for column in self._columns_of(fact):
                shares[column].append(float(verdict == RIGHT))
            shares[f"{self.name}_wrong"].append(float(verdict == WRONG))
            shares[f"{self.name}_chance"].append(fact.chance)
            shares[f"{self.name}_random"].append(share_of_source ** len(fact.statements))
        costs = [count_words(_sentences_of(fact)) for fact in facts]
        affordable = [float(words <= length) for words in accumulate(sorted(costs))]
        shares[f"{self.name}_ceiling"] = affordable
        means = {
            column: float(np.mean(values)) if values else np.nan
            for column, values in shares.items()
        }
        return means, _verdicts(judged, example)

    def _columns_of(self, fact: PlantedFact) -> Iterator[str]:
        yield self.name
        if fact.kind in FACT_KINDS:
            yield f"{self.name}_{fact.kind}"
        if len(fact.statements) == 1 or fact.revoked:
            yield f"{self.name}_position_{min(9, int(10 * fact.statements[-1].position))}"

    def signature(self, n: int) -> str:
        """Name the metric, its version and the sentence splitter."""
        return f"{self.name}:{self.version}|sentences:{SPLITTER_NAME}"


def _sentences_of(fact: PlantedFact) -> list[str]:
    return [statement.sentence for statement in fact.statements]


def _verdicts(judged: Sequence[str], example: Example) -> list[SentenceVerdict]:
    """Return the verdict on each fact, with the source sentence that states it last."""
    places = {sentence: place for place, sentence in enumerate(example.sentences())}
    verdicts = []
    for fact, verdict in zip(example.planted, judged, strict=True):
        sentences = _sentences_of(fact)
        shown = f"{verdict}, {fact.kind}: {' '.join(sentences)}"
        place = places.get(sentences[-1], -1)
        verdicts.append(SentenceVerdict(float(verdict == RIGHT), place, shown))
    return verdicts
