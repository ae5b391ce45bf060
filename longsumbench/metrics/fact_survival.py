"""Fact survival: the share of the facts planted in a natural text that the summary states."""

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from longsumbench.core import Example, Metric, SentenceScore, count_words
from longsumbench.metrics.fact_matching import RIGHT, WRONG, match_facts
from longsumbench.sentences import SPLITTER_NAME

FACT_KINDS = re.findall(
    r"\w+", "decision number date name negation correction two_places file attempt revocation"
)
_SUFFIXES = (  # of columns
    "",
    "_wrong",
    *(f"_{kind}" for kind in FACT_KINDS),
    *(f"_position_{tenth}" for tenth in range(10)),
    "_chance",
    "_random",
    "_ceiling",
)


class FactSurvival(Metric):
    """The share of an example's planted facts that its summary states (`match_facts`).

    Version 2 reads more denials and notations, rounded numbers, and answers that two facts have swapped. Version 3 reads
    denials in headings and later clauses, and what is stated although the source denies it.

    Each column is a mean over facts, NaN without any:

    * `fact_survival`: facts that are stated right; `fact_survival_<kind>`: those of one kind;
    * `fact_survival_wrong`: facts that are stated with another value or subject, denied, or in their revoked form;
    * `fact_survival_position_<0…9>`: by the tenth of the source that states the fact, for facts in one place. A
      correction is in the place of its later sentence;
    * `fact_survival_chance`: what guesses reach;
    * `fact_survival_random`: what random sentences with as many words as the summary reach: its share s of the source's
      words, or s² for a fact in two sentences;
    * `fact_survival_ceiling`: what the shortest planted sentences reach with at most as many words as the summary.
    """

    name = "fact_survival"
    version = 3
    columns = tuple(f"fact_survival{suffix}" for suffix in _SUFFIXES)

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `columns` → 0–1 or NaN."""
        return self.score_sentences(prediction, example)[0]

    def score_sentences(
        self, prediction: str, example: Example
    ) -> tuple[dict[str, float], Sequence[SentenceScore]]:
        """Score one prediction, and each fact, with the source sentence that states it last."""
        length = count_words([prediction])
        share_of_source = min(1.0, length / max(1, example.source_words()))
        indices = {sentence: index for index, sentence in enumerate(example.sentences())}
        shares: dict[str, list[float]] = defaultdict(list)
        scores, costs = [], []
        outcomes = match_facts(example.planted, prediction)
        for fact, outcome in zip(example.planted, outcomes, strict=True):
            is_right = float(outcome == RIGHT)
            sentences = [statement.sentence for statement in fact.statements]
            key_point = f"{outcome}, {fact.kind}: {' '.join(sentences)}"
            scores.append(SentenceScore(is_right, indices.get(sentences[-1], -1), key_point))
            costs.append(count_words(sentences))
            suffixes = ["", f"_{fact.kind}"]
            if len(sentences) == 1:
                suffixes.append(f"_position_{int(10 * fact.statements[0].position)}")
            for suffix in suffixes:
                shares[suffix].append(is_right)
            shares["_wrong"].append(float(outcome == WRONG))
            shares["_chance"].append(fact.chance)
            shares["_random"].append(share_of_source ** len(sentences))
        shares["_ceiling"] = [float(words <= length) for words in accumulate(sorted(costs))]
        means = {}
        for column, suffix in zip(self.columns, _SUFFIXES, strict=True):
            means[column] = float(np.mean(shares[suffix])) if shares[suffix] else np.nan
        return means, scores

    def signature(self, n: int) -> str:
        """Name the metric, its version and the sentence splitter."""
        return f"{self.name}:{self.version}|sentences:{SPLITTER_NAME}"
