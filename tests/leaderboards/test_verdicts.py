"""One test decides: a mark, an interval, a footnote and a sentence about two systems never contradict each other."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.run_records import TRAINED, record

from longsumbench.leaderboards.matrix import matrix_of_tables
from longsumbench.leaderboards.seed_groups import PairDifference
from longsumbench.leaderboards.significance import (
    DISTINGUISHED,
    FEW_EXAMPLES,
    SINGLE_SEED,
    UNDISTINGUISHED,
    ComparableRows,
    comparable_rows,
    judge_differences,
)
from longsumbench.leaderboards.table import Table
from longsumbench.metrics.aggregate import ScoreTable, aggregate
from longsumbench.metrics.statistics import MeanOverSeeds
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.site.shown_tables import rows_at_the_top
from longsumbench.views.after_run import UpdatedTable, describe_runs
from longsumbench.views.columns import choose_columns, columns_of
from longsumbench.views.leaderboard import row_cells
from longsumbench.views.matrix import matrix_block
from longsumbench.views.notes import footnotes
from longsumbench.views.tables import Stressed, Tied

NUMBER = "rougeLsum"
Scores = dict[str, ScoreTable]


def drawn_table(seed: int) -> tuple[list[RunRecord], Scores]:
    """A table of Lead, Random and trained systems with one to four seeds, equal, close or far, on 4 to 60 examples."""
    draw = np.random.default_rng(seed)
    examples = int(draw.choice([4, 7, 12, 60]))
    hard = draw.uniform(0.2, 0.5, examples)
    systems: list[tuple[str, Sequence[int | None]]] = [("lead", [None]), ("random", [1])]
    systems += [(name, range(1, 1 + int(draw.integers(1, 5)))) for name in ("ca", "ea", "seal")]
    runs, scores = [], {}
    for name, seeds in systems:
        better = draw.choice([0.0, 0.01, 0.03, 0.1])
        for number in seeds:
            values = hard + better + draw.normal(0, 0.03, examples) + draw.normal(0, 0.01)
            columns = {
                f"{kind}_{part}": values.clip(0, 1) for kind in ROUGE_TYPES for part in "prf"
            }
            table = pd.DataFrame(columns, index=[f"e{place:02}" for place in range(examples)])
            changes: dict[str, Any] = {"fit": TRAINED} if name not in ("lead", "random") else {}
            run = record(
                name,
                0,
                run_id=f"{name}{number}",
                seed=number,
                n=examples,
                scores=aggregate(table),
                **changes,
            )
            runs.append(run)
            scores[run.run_id] = ScoreTable(
                list(table.index), {key: table[key].to_numpy() for key in columns}
            )
    return runs, scores


def marks_of(block: ComparableRows) -> dict[str, str]:
    """Label of a row → its mark in the column that ranks."""
    columns = choose_columns(["system", NUMBER], columns_of([row.first for row in block.rows]))
    lines = row_cells(block, columns)
    kinds = {Stressed: "best", Tied: "tied", str: ""}
    return {row.label: kinds[type(line[2])] for row, line in zip(block.rows, lines, strict=True)}


@pytest.mark.parametrize("seed", range(40))
def test_marks_intervals_notes_and_sentences_agree(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row has ≈ if its interval contains 0, and no mark if not; what no test decides is named below."""
    monkeypatch.setenv("COLUMNS", "1000")
    runs, scores = drawn_table(seed)
    (block,) = comparable_rows(runs, scores)
    marks, notes = marks_of(block), " ".join(footnotes(block, {NUMBER}))
    best, *others = block.rows
    assert marks[best.label] == ("" if best.one_seed else "best")
    top = rows_at_the_top(block)
    for row in others:
        judged = block.tests.differences[row.key, NUMBER]
        assert judged.mean <= 0
        holds_zero = judged.low <= 0 <= judged.high
        expected = {DISTINGUISHED: "", UNDISTINGUISHED: "tied", SINGLE_SEED: "", FEW_EXAMPLES: ""}
        assert marks[row.label] == expected[judged.outcome]
        assert (
            (judged.p is None) == (judged.outcome == SINGLE_SEED) == (best.one_seed or row.one_seed)
        )
        if judged.p is not None:
            assert (judged.outcome != DISTINGUISHED) == (judged.p >= 0.05)
            assert holds_zero == (judged.outcome == UNDISTINGUISHED)
        assert judged.outcome != FEW_EXAMPLES or math.isnan(judged.low)
        if judged.outcome == FEW_EXAMPLES:
            assert re.search(
                rf"Too few examples for a test against the best: [^.]*\b{row.label}\b", notes
            )
        assert row.one_seed == bool(
            re.search(rf"without a verdict \(another may differ\): [^.]*\b{row.label}\b", notes)
        )
        assert not (row.key in top and row.one_seed)
        table = Table("arxiv", (block,), scores=scores)
        text = describe_runs([UpdatedTable(table, Results(Path("results")))], [*row.runs[:1]])
        interval = f" ({judged.confidence:.4g} % interval {judged.low:+.1f} to {judged.high:+.1f})"
        interval = f"{judged.mean:+.1f}{'' if math.isnan(judged.low) else interval}"
        subject = f"{row.label}, difference in R-Lsum from the best, {best.label}"
        assert f"{subject}: {interval}, {judged.outcome}." in text
    if any(row.one_seed for row in block.rows):
        assert top == set()
        assert "Set of best systems" not in notes


@pytest.mark.parametrize("seed", range(20))
def test_the_matrix_has_the_marks_of_its_tables(seed: int) -> None:
    """A cell of systems × datasets is bold or ≈ where that of the dataset's own table is."""
    block = comparable_rows(*drawn_table(seed))[0]
    table = matrix_block(matrix_of_tables({"arxiv": [block]}))
    kinds = {Stressed: "best", Tied: "tied", str: ""}
    assert {line[0]: kinds[type(line[1])] for line in table.rows} == marks_of(block)


def test_an_interval_by_hand() -> None:
    """Of two tests, the clearer one has the level 2.5 % and, as it is significant, the other one 5 %: Holm's steps."""
    pairs = {
        name: PairDifference(MeanOverSeeds(mean, 1.0, 1e9), 99)
        for name, mean in (("far", 3.0), ("near", 1.0))
    }
    judged = judge_differences(pairs)
    assert (judged["far"].low, judged["far"].high) == pytest.approx(
        (3 - 2.2414, 3 + 2.2414), abs=1e-4
    )
    assert (judged["near"].low, judged["near"].high) == pytest.approx(
        (1 - 1.96, 1 + 1.96), abs=1e-3
    )
    assert [test.outcome for test in judged.values()] == [DISTINGUISHED, UNDISTINGUISHED]
