"""Which columns planted facts count in, and between which bounds an extract's survival is."""

import math
from dataclasses import replace

import pytest
from support.planted_facts import CORRECTION, DECISION, NAME, NEUTRAL, NUMBER, REVOKED, TWO_PLACES

from longsumbench.core import Document, Example, PlantedFact, Scoring, Section
from longsumbench.metrics.fact_survival import FactSurvival

METRIC = FactSurvival(Scoring())


def example_of(*facts: PlantedFact) -> Example:
    """A source of the facts' sentences between others."""
    sentences = [statement.sentence for fact in facts for statement in fact.statements]
    document = Document(None, (Section(None, ((NEUTRAL[0], *sentences, *NEUTRAL[1:]),)),))
    return Example("e", None, None, (document,), (("x",),), planted=facts)


def score(prediction: str, *facts: PlantedFact) -> dict[str, float]:
    """Return the columns that apply, without their common beginning."""
    row = METRIC.score(prediction, example_of(*facts))
    assert tuple(row) == METRIC.columns
    return {
        name[len("fact_survival") :]: value for name, value in row.items() if not math.isnan(value)
    }


def test_columns_by_hand() -> None:
    """Each column is a mean over its facts; a fact in two places has no position, a correction that of its last one."""
    summary = f"{NUMBER.statements[0].sentence} {REVOKED}"  # 12 words
    row = score(summary, NUMBER, CORRECTION, TWO_PLACES)
    assert example_of(NUMBER, CORRECTION, TWO_PLACES).source_words() == 62
    assert row == pytest.approx(
        {
            "": 1 / 3,
            "_wrong": 1 / 3,
            "_number": 1.0,
            "_correction": 0.0,
            "_two_places": 0.0,
            "_position_5": 1 / 2,
            "_chance": (0.001 + 0.001 + 0) / 3,
            "_random": (2 * 12 / 62 + (12 / 62) ** 2) / 3,
            # 6 words for the number, 12 for the correction
            "_ceiling": 1 / 3,
        }
    )


def test_nothing_to_state_or_nothing_stated() -> None:
    """Without facts no column applies; of an empty summary all are 0, except for chance."""
    assert score("A summary.") == {}
    assert set(score("", TWO_PLACES).values()) == {0.0}


def test_verdicts_name_the_source_sentence() -> None:
    """Each fact has a verdict with its sentences and the place of the last one in the source."""
    example = replace(example_of(DECISION, NAME), id="other")
    scores, verdicts = METRIC.score_sentences(DECISION.statements[0].sentence, example)
    assert scores["fact_survival"] == 0.5
    assert [(verdict.score, verdict.source) for verdict in verdicts] == [(1.0, 1), (0.0, 2)]
    assert verdicts[1].key_point == f"missing, name: {NAME.statements[0].sentence}"
