"""The table of benchmarks/pretrained_scorer.py, on results made up for it."""

import sys
from dataclasses import replace
from pathlib import Path

import pretrained_scorer as program
import pytest
from support.run_records import record
from support.stored_runs import store

from longsumbench.core import FitReport
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results


def scorer(init: str, f: float, seed: int) -> RunRecord:
    """Return a run of EA's scorer with a start and a seed."""
    run = record("ea", f, seed=seed, config={"model": {"init": init}})
    fit = FitReport(parameters=1_000, steps=120)
    return replace(run, run_id=f"{init}{seed}0000000"[:12], fit=fit)


def test_the_table_has_the_differences_from_the_pretrained_scorer(tmp_path: Path) -> None:
    """Every other row but the oracle has the difference; ≈ marks those that no test tells from 0."""
    runs = [scorer("random", 20, seed) for seed in (1, 2, 3)]
    runs += [scorer("folder", 30, seed) for seed in (1, 2, 3)]
    store(tmp_path, *runs, record("lead", 30))
    rows = read_table(Results(tmp_path), "arxiv")
    table = program.table_of(rows.comparable[0], rows.scores)
    differences = {row[0]: row[-1] for row in table.rows}
    pretrained, scratch, lead = (
        next(difference for label, difference in differences.items() if part in label)
        for part in ("a pretrained encoder", "from nothing", "lead")
    )
    assert pretrained == ""
    assert scratch.startswith("+10.0 (")
    assert lead.startswith(("+0.0 ≈", "-0.0 ≈"))
    sentence = program.sentence_of(rows.comparable[0], rows.scores)
    assert ", in R-Lsum: EA's scorer from nothing" in sentence
    assert "Above it: none. Not distinguished: lead. Not tested: none." in sentence


def test_a_single_seed_is_not_tested(tmp_path: Path) -> None:
    """However far ahead a scorer of one seed is, the sentence puts nothing below it."""
    store(tmp_path, scorer("folder", 90, 1), record("lead", 30))
    rows = read_table(Results(tmp_path), "arxiv")
    sentence = program.sentence_of(rows.comparable[0], rows.scores)
    assert (
        ", in R-Lsum: none. Above it: none. Not distinguished: none. Not tested: lead." in sentence
    )


@pytest.mark.numbers
def test_the_card_has_the_table_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Table and sentence of models/seal/README.md are those of the committed runs."""
    monkeypatch.setattr(sys, "argv", ["pretrained_scorer.py", "--check"])
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code is None
