"""The ledger of finished runs: what was not read, by which setting, not learned, not finished."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from support.run_records import TRAINED, record

from longsumbench.core import Cut, Truncation
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import update_table
from longsumbench.views.ledger import ledger_block

SOURCE = Truncation(200, 100, (Cut("snippet_length", 10, 5), Cut("input_length", 150, 70)))
TARGETS = Truncation(50, 40, (Cut("decode_length", 5, 4),))
CUT = record(
    "trunc",
    30,
    source=SOURCE,
    fit=replace(TRAINED, targets=TARGETS),
    seed=4,
    variant="input_length=9",
)
IN_WORDS = record("lead", 20, source=Truncation(0, 50, (Cut("length", 0, 40),)))
SILENT = record("random", 10)


def test_worked_ledger() -> None:
    """Worked: of 200 tokens 150 and 10 cut; 3 of 60 targets, 5 of their 50 tokens; 5 of 20 outputs at the limit."""
    cut, in_words, silent = ledger_block([CUT, IN_WORDS, SILENT], {}).rows
    assert cut[0] == "trunc, input_length 9, seed 4 (trunc000)"
    assert cut[2:] == [
        "20.0",
        "input_length 75.0, snippet_length 5.0",
        "3 (5.00 %), 10.0 % of tokens",
        "5 (25.00 %)",
    ]
    assert in_words[2:4] == ["20.0", "length 80.0"]
    assert silent[2:5] == ["–", "–", "–"]


def test_the_table_has_it(tmp_path: Path) -> None:
    """The CSV has a column a cause, the Markdown a table before the published numbers."""
    for run in (CUT, IN_WORDS):
        run.write(Results(tmp_path).run_folder(run))
    update_table(Results(tmp_path), "arxiv")
    table: Any = pd.read_csv(tmp_path / "leaderboard" / "arxiv.csv", index_col="model")
    causes = ["cut_input_length", "cut_length", "cut_snippet_length"]
    assert table.loc["trunc", causes].fillna(0).tolist() == [75, 0, 5]
    assert table.loc["lead", causes].fillna(0).tolist() == [0, 80, 0]
    text = (tmp_path / "leaderboard" / "arxiv.md").read_text()
    assert 0 < text.index("## What was not read") < text.index("## Published numbers")
