"""The verdict of a comparison."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.run_records import TRAINED, measured as measured_means, record

from longsumbench.leaderboards.significance import (
    DISTINGUISHED,
    FEW_EXAMPLES,
    SINGLE_SEED,
    UNDISTINGUISHED,
)
from longsumbench.metrics.aggregate import ScoreTable
from longsumbench.outputs.compare import (
    ComparedRun,
    Comparison,
    compare_measures,
    compare_pair,
    verdict,
)
from longsumbench.rouge.scorer import ROUGE_TYPES

ONE_SEED = {"fit": TRAINED, "seed": 1}


def made(
    model: str, scores: Mapping[str, float], texts: Mapping[str, str], **facts: object
) -> ComparedRun:
    """A run whose ROUGE F is all the same."""
    columns = {
        f"{kind}_{part}": np.array([*scores.values()]) for kind in ROUGE_TYPES for part in "prf"
    }
    return ComparedRun(
        Path(model), record(model, 30, **facts), ScoreTable([*scores], columns), dict(texts)
    )


def comparison(runs: tuple[ComparedRun, ...]) -> Comparison:
    """Runs against the first of them, on its examples."""
    ids = tuple(sorted(runs[0].scores.index))
    sides = [(runs[0], run) for run in runs[1:]]
    tables = compare_measures(sides, ids, ())
    pairs = tuple(compare_pair(*side, rows) for side, rows in zip(sides, tables, strict=True))
    return Comparison(runs, pairs, ids)


def two() -> Comparison:
    """Two runs on two examples, one of which moved each way."""
    before = made("lead", {"a": 0.2, "z": 0.5}, {"a": "plain text", "z": "the same"})
    after = made("trunc", {"a": 0.6, "z": 0.4}, {"a": "better", "z": ""})
    return comparison((before, after))


def test_the_verdict_by_hand() -> None:
    """A difference that holds is reported with its direction; one that does not, with what could have been seen."""
    lead = {f"{place}": 0.2 + 0.001 * (place % 3) for place in range(40)}
    texts = dict.fromkeys(lead, "text")
    worse = {
        name: score - 0.1 + 0.001 * (place % 5) for place, (name, score) in enumerate(lead.items())
    }
    mixed = {name: score + 0.1 * (-1) ** place for place, (name, score) in enumerate(lead.items())}
    runs = made("lead", lead, texts), made("trunc", worse, texts), made("random", mixed, texts)
    lower, level = comparison(runs).pairs
    assert verdict(lower).startswith(
        "trunc (trunc000) scores lower than lead (lead0000) by R-Lsum: -9.80 points (98.75 % interval -9.86 to -9.74)."
    )
    assert verdict(level).startswith(
        "random (random00) and lead (lead0000) are not distinguished by R-Lsum: +0.00 points (98.33 % interval -4.01"
    )
    assert "with 40 examples, a true difference below about" in verdict(level)


@pytest.mark.parametrize(
    ("difference", "outcome", "beginning"),
    [
        (3.0, DISTINGUISHED, "trunc (trunc000) scores higher than lead (lead0000)"),
        (3.0, UNDISTINGUISHED, "trunc (trunc000) and lead (lead0000) are not distinguished"),
        (3.0, FEW_EXAMPLES, "No verdict on trunc (trunc000) minus lead (lead0000)"),
        (3.0, SINGLE_SEED, "No verdict on trunc (trunc000) minus lead (lead0000)"),
    ],
)
def test_the_verdict_follows_the_corrected_test(
    difference: float, outcome: str, beginning: str
) -> None:
    """The same difference is stated, denied or left open by the outcome of the test alone, and has its direction."""
    (pair,) = two().pairs
    main = replace(pair.main, difference=difference, outcome=outcome)
    assert verdict(replace(pair, main=main)).startswith(beginning)


def test_the_verdict_has_the_unit_of_its_measure() -> None:
    """Of a measure in words the difference is in words, and not in points; of one seed no run is called better."""
    lead = {f"{place}": 0.2 + 0.01 * place for place in range(40)}
    texts, measured = dict.fromkeys(lead, "text"), {"density": 3.0}
    facts = {
        "measures": measured_means(measured),
        "units": {"density": "words"},
        "ranked_by": "density",
    }
    runs = [made("lead", lead, texts, **facts), made("ea", lead, texts, **facts, **ONE_SEED)]
    for place, more in enumerate((0.0, 2.0)):
        density = np.linspace(3 + more, 3.4 + more, 40)
        runs[place] = replace(runs[place], scores=runs[place].scores.assign(density=density))
    (pair,) = comparison(tuple(runs)).pairs
    assert "by density: +2.00 words (98.75 % interval" in verdict(pair)
    assert verdict(pair).endswith(": one seed: another may differ.")
    block = comparison(tuple(runs)).blocks()[1]
    assert any("A trained system has one seed here" in note for note in block.footnotes)
