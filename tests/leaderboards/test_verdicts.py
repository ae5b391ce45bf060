"""One test decides: a mark, an interval, a footnote and a sentence about two systems never contradict each other."""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.run_records import TRAINED, record

from longsumbench.leaderboards.matrix import build_matrices
from longsumbench.leaderboards.seed_groups import PairDifference
from longsumbench.leaderboards.significance import (
    LeaderboardBlock,
    Outcome,
    build_blocks,
    correct_differences,
)
from longsumbench.metrics.aggregate import ScoreTable, aggregate
from longsumbench.metrics.statistics import MeanOverSeeds
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.record import RunRecord
from longsumbench.views.column_list import choose_columns, collect_columns
from longsumbench.views.footnotes import footnotes
from longsumbench.views.leaderboard import row_cells
from longsumbench.views.matrix import matrix_block
from longsumbench.views.outcomes import describe_leader
from longsumbench.views.tables import Stressed, Tied

NUMBER = "rougeLsum"
MARKS = {Stressed: "best", Tied: "tied", str: ""}


def drawn_block(seed: int) -> LeaderboardBlock:
    """A table of Lead, Random and trained systems with one to four seeds, equal, close or far, on 4 to 60 examples."""
    draw = np.random.default_rng(seed)
    examples = int(draw.choice([4, 7, 12, 60]))
    hard = draw.uniform(0.2, 0.5, examples)
    systems: list[tuple[str, Sequence[int | None]]] = [("lead", [None]), ("random", [1])]
    systems += [(name, range(1, 1 + int(draw.integers(1, 5)))) for name in ("ca", "ea", "seal")]
    runs: list[RunRecord] = []
    scores = {}
    for name, seeds in systems:
        better = draw.choice([0.0, 0.01, 0.03, 0.1])
        for number in seeds:
            values = hard + better + draw.normal(0, 0.03, examples) + draw.normal(0, 0.01)
            columns = {
                f"{kind}_{statistic}": values.clip(0, 1)
                for kind in ROUGE_TYPES
                for statistic in "prf"
            }
            table = pd.DataFrame(columns, index=[f"e{index:02}" for index in range(examples)])
            changes: dict[str, Any] = {"fit": TRAINED} if name not in ("lead", "random") else {}
            facts = {"run_id": f"{name}{number}", "seed": number, "n": examples, **changes}
            runs.append(record(name, 0, scores=aggregate(table), **facts))
            arrays = {key: table[key].to_numpy() for key in columns}
            scores[f"{name}{number}"] = ScoreTable(list(table.index), arrays)
    return build_blocks(runs, scores)[0]


def marks_of(block: LeaderboardBlock) -> dict[str, str]:
    """Label of a row → its mark in the column that ranks."""
    columns = choose_columns(
        ["system", NUMBER], collect_columns([row.representative for row in block.rows])
    )
    lines = row_cells(block, columns)
    return {row.label: MARKS[type(line[2])] for row, line in zip(block.rows, lines, strict=True)}


@pytest.mark.parametrize("seed", range(40))
def test_marks_intervals_notes_and_sentences_agree(seed: int) -> None:
    """A row has ≈ if its interval contains 0, and no mark if not; what no test decides is named below, and never said."""
    block = drawn_block(seed)
    marks, notes, sentence = (
        marks_of(block),
        " ".join(footnotes(block, {NUMBER})),
        describe_leader(block),
    )
    best, *others = block.rows
    assert marks[best.label] == ("" if best.one_seed else "best")
    without_verdict = (re.findall(r"Without a verdict: (.*?\))\.", notes) or [""])[0]
    ahead = sentence.partition("; between")[0]
    for row in others:
        judged = block.differences[row.key, NUMBER]
        assert judged.mean <= 0
        assert (marks[row.label] == "tied") == (judged.outcome == Outcome.NOT_SHOWN)
        is_single = judged.outcome == Outcome.SINGLE_SEED
        assert (judged.p is None) == is_single == (best.one_seed or row.one_seed)
        if judged.p is not None:
            assert (judged.outcome != Outcome.AHEAD) == (judged.p >= 0.05)
            assert (judged.low <= 0 <= judged.high) == (judged.outcome == Outcome.NOT_SHOWN)
        is_short = judged.outcome == Outcome.FEW_EXAMPLES
        assert not is_short or math.isnan(judged.low)
        assert bool(re.search(rf"\b{row.label}\b", without_verdict)) == (row.one_seed or is_short)
        assert not (row.key in block.top_rows() and row.one_seed)
        if not sentence.startswith("Nothing"):
            is_below = bool(re.search(rf"\b{row.label}\b", ahead.partition(" above ")[2]))
            assert is_below == (judged.outcome == Outcome.AHEAD)
        assert not (sentence.startswith("Nothing") and judged.outcome == Outcome.AHEAD)
    if any(row.one_seed for row in block.rows):
        assert block.top_rows() == set()
        assert "Set of best systems" not in notes
    # A cell of systems × datasets has the mark of its dataset's own table
    table = matrix_block(build_matrices({"arxiv": [block]})[0])
    assert {line[0]: MARKS[type(line[1])] for line in table.rows} == marks


def test_an_interval_by_hand() -> None:
    """Of two tests, the clearer one has the level 2.5 % and, as it is significant, the other one 5 %: Holm's steps."""
    pairs = {
        name: PairDifference(MeanOverSeeds(mean, 1.0, 1e9), 99, 99)
        for name, mean in (("far", 3.0), ("near", 1.0))
    }
    judged = correct_differences(pairs)
    bounds = [bound for test in judged.values() for bound in (test.low, test.high)]
    assert bounds == pytest.approx([3 - 2.2414, 3 + 2.2414, 1 - 1.96, 1 + 1.96], abs=1e-3)
    assert [test.outcome for test in judged.values()] == [Outcome.AHEAD, Outcome.NOT_SHOWN]
