"""The sentences of benchmarks/readings.py, on results made up to break them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import readings as program
from support.run_records import record
from support.stored_runs import store

from longsumbench.leaderboards.table import read_table
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
