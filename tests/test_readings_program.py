"""The sentences of benchmarks/readings.py, on results made up to break them."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import readings as program
from support.run_records import changed, record
from support.stored_runs import store

from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.aggregate import MeasureMean
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results


def reading_run(reading: str, f: float) -> RunRecord:
    """Return a run of a prompted model with a reading."""
    run = record("prompt", f)
    model: dict[str, Any] = {**run.config.model, "reading": reading, "input_length": 1_500}
    key = replace(run.key, system=reading)
    config = replace(run.config, model=model)
    return replace(run, run_id=f"{reading}0000000000"[:12], key=key, config=config)


def sentence(folder: Path, *runs: RunRecord) -> str:
    """Return the sentence about some runs with scores of 40 examples."""
    store(folder, *runs)
    table = read_table(Results(folder), "arxiv")
    return program.sentence_of("arxiv", table.comparable[0], table.scores)


def test_the_sentence_follows_the_scores(tmp_path: Path) -> None:
    """The best reading is named with what is tested to be below, above or neither; missing scores are not tested."""
    runs = [reading_run("select", 30), reading_run("pages", 30), reading_run("ends", 20)]
    text = sentence(tmp_path / "first", *runs, record("lead", 40))
    best, equal = ("select", "pages") if "readings, `select` has" in text else ("pages", "select")
    assert f"of the readings, `{best}` has the highest R-Lsum, 30.0" in text
    assert "Significantly below it: `ends`. Above it: lead." in text
    assert f"Not distinguished: `{equal}`. Not tested: none." in text
    swapped = sentence(tmp_path / "second", reading_run("ends", 30), reading_run("pages", 20))
    assert "`ends` has the highest R-Lsum" in swapped
    assert "Significantly below it: `pages`. Above it: none. Not distinguished: none." in swapped
    (scores,) = (tmp_path / "second").glob(f"runs/*/*/{runs[1].run_id}/scores.csv")
    scores.unlink()
    table = read_table(Results(tmp_path / "second"), "arxiv")
    untested = program.sentence_of("arxiv", table.comparable[0], table.scores)
    assert "Significantly below it: none. Above it: none. Not distinguished: none." in untested
    assert "Not tested: `pages`." in untested


def test_readings_that_keep_nothing_are_not_the_best(tmp_path: Path) -> None:
    """Of planted facts, the reading that keeps most is named, unless none keeps any."""
    texts = {}
    for kept in (0.0, 3.0):
        runs = []
        for reading, percent in (("select", kept), ("ends", 0.0)):
            measures = {"fact_survival": MeasureMean(percent, 0.0, 9.0, 40)}
            run = reading_run(reading, 20)
            planted = {"dataset": {"plant": 8}, "model": run.config.model}
            run = changed(run, measures=measures, ranked_by="fact_survival", config=planted)
            runs.append(run)
        texts[kept] = sentence(tmp_path / f"{kept}", *runs)
    assert texts[0.0] == "arxiv, 40 examples: none of the readings keeps a planted fact."
    assert "of the readings, `select` keeps most planted facts, 3.0 %." in texts[3.0]
    assert "Not tested: `ends`." in texts[3.0]


@pytest.mark.numbers
def test_the_page_has_the_tables_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables and sentences of docs/readings.md are those of the committed runs."""
    monkeypatch.setattr(sys, "argv", ["readings.py", "--check"])
    with pytest.raises(SystemExit) as end:
        program.main()
    assert end.value.code is None
