"""Sentences of benchmarks/strategies.py, on results made up so that other ones would be false."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import strategies as program
from support.run_records import record
from support.stored_runs import store

from longsumbench.leaderboards.significance import correct_differences
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.record import ImportedOutputs
from longsumbench.runs.results import Results

PART = program.PARTS["one"]
TOKENS = {"beginning": 1_500, "ends": 1_500, "select": 1_400, "beginning of 7900": 5_900}


def stored(folder: Path, scores: Mapping[tuple[str, str], float]) -> tuple[str, list[str]]:
    """Write runs of models and strategies with these R-Lsum; return the sentences and the first cells of the rows."""
    for (model, strategy), score in scores.items():
        run_id = f"{model}-{strategy.replace(' ', '')}"
        outputs = OutputStats(40, 40, 40, 0, words=80.0, reference_words=120.0)
        counts = {"requests": 40, "prompt_tokens": 40 * TOKENS[strategy]}
        settings = {**program.COMMON, **program.STRATEGIES[strategy], "checkpoint": model}
        shared: dict[str, Any] = {"dataset": PART.dataset, "n": 40}
        own = record(
            "prompt",
            score + 1,
            run_id=run_id,
            variant=run_id,
            config={"model": settings},
            outputs=outputs,
            counts=counts,
            signature="rouge:own|n:40|v:1",
            **shared,
        )
        cut = record(
            model,
            score,
            run_id=f"cut-{run_id}",
            variant=strategy,
            imported=ImportedOutputs(run_id, "0" * 64),
            signature="rouge:cut|n:40|v:1",
            **shared,
        )
        store(folder, own, cut)
    rows, extracts, values = program.read_rows(Results(folder), PART)
    gains = correct_differences(program.gains_of(rows, PART, values))
    table = program.table_of(PART, rows, extracts, gains)
    cells = [" ".join(row[:2]) for row in table.rows]
    return " ".join(program.sentences_of(PART, rows, values)), cells


def scores(first: Mapping[str, float], second: Mapping[str, float]) -> dict[tuple[str, str], float]:
    """Return (model, strategy) → R-Lsum of two models whose beginnings have 30 and 20."""
    by_row = {}
    for model, base, gains in (("A", 30.0, first), ("B", 20.0, second)):
        for strategy in ("beginning", *PART.strategies):
            by_row[model, strategy] = base + gains.get(strategy, 0.0)
    return by_row


def test_a_gain_of_one_model_alone(tmp_path: Path) -> None:
    """Only A gains by `ends`, both gain by more tokens: one of three gains differs between the models."""
    more = {"beginning of 7900": 11.0}
    text, cells = stored(tmp_path, scores({"ends": 10.0, **more}, more))
    assert "A: `beginning`, in points of R-Lsum: below `ends` (-" in text
    assert "B: `beginning`, in points of R-Lsum: not shown to differ: `ends` (" in text
    assert "the gain of `ends` with A is above the gain of `ends` with B by " in text
    assert "Nothing is shown: the gain of `select` with" in text
    assert "With A, of 3 strategies 2 are shown to be above `beginning` and 0 below it" in text
    assert "With B, of 3 strategies 1 are shown to be above `beginning` and 0 below it" in text
    assert "For 1 the gain is shown to differ between the models" in text
    assert "A: from 1,500 to 5,900 tokens, a thousand more change R-Lsum by +2." in text
    assert cells == [f"{model} `{name}`" for model in "AB" for name in TOKENS]


def test_the_other_model_gains(tmp_path: Path) -> None:
    """The sentences turn around with the numbers; a strategy without runs has neither a row nor a sentence."""
    given = scores({"select": -8.0}, {"select": 8.0})
    del given["A", "ends"], given["B", "ends"]
    text, cells = stored(tmp_path, given)
    assert "the gain of `select` with B is above the gain of `select` with A by 1" in text
    assert "A: `beginning`, in points of R-Lsum: above `select` (+" in text
    assert "With A, of 2 strategies 0 are shown to be above `beginning` and 1 below it" in text
    assert "For 1 the gain is shown to differ" in text
    assert "ends" not in text + " ".join(cells)


def test_a_part_is_tested_when_all_its_rows_are_there(tmp_path: Path) -> None:
    """Its tests are corrected together, so a part of them would say more than all."""
    given = scores({}, {})
    stored(tmp_path, given)
    rows, _, _ = program.read_rows(Results(tmp_path), PART)
    assert program.missing_rows(rows, PART) == []
    others = {key: row for key, row in rows.items() if key != ("B", "ends")}
    assert program.missing_rows(others, PART) == ["B, ends"]
    assert (
        program.missing_rows({("A", "beginning"): rows["A", "beginning"]}, PART)[0]
        == "a second model"
    )


def test_the_front_table_has_the_models_side_by_side(tmp_path: Path) -> None:
    """A strategy is a row; each model has its score, its gain over the beginning, its words and its tokens."""
    stored(tmp_path, scores({"ends": 10.0}, {"select": -8.0}))
    rows, _, values = program.read_rows(Results(tmp_path), PART)
    gains = correct_differences(program.gains_of(rows, PART, values))
    readme, index = program.front_tables(rows, gains)
    assert readme.rows == index.rows
    first, *gained = ("A, 120 words", "minus `beginning`", "words", "tokens sent")
    assert readme.columns == ("what it does", first, *gained, "B, 120 words", *gained)
    beginning, ends, select, _ = readme.rows
    assert beginning[1:] == ("30.0", "", "80", "1,500", "20.0", "", "80", "1,500")
    assert ends[:2] == ("reads the beginning and the end", "40.0")
    assert ends[2].startswith("+")
    assert select[6].startswith("-")
    assert select[4] == "1,400"


@pytest.mark.parametrize("name", program.PARTS)
def test_settings_of_strategies_differ(name: str) -> None:
    """Each strategy of a part is found by its settings alone."""
    part = program.PARTS[name]
    settings = [{**program.COMMON, **program.STRATEGIES[each]} for each in part.strategies]
    assert program.COMMON not in settings
    assert all(settings.count(each) == 1 for each in settings)
