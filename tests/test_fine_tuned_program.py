"""Tables and sentences of benchmarks/fine_tuned.py, on results made up to break them."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fine_tuned as program
from support.run_records import record
from support.stored_runs import store

from longsumbench.core import FitReport
from longsumbench.leaderboards.seed_groups import LEARNED, NOT_SHOWN, Learned
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

SEEDS = (1, 2, 3)
FIT = FitReport(
    921_600,
    steps=50,
    examples=100,
    source_tokens=70_000,
    target_tokens=19_000,
    seconds=60.0,
    first_loss=3.2,
    last_loss=3.0,
    validation_losses=((25, 3.1), (50, 3.05)),
)


def trained(
    model: str, f: float, seeds: Iterable[int] = SEEDS, steps: int = 50, **settings: Any
) -> list[RunRecord]:
    """Return runs of a trained system, one for each seed."""
    runs = []
    for seed in seeds:
        config = {"model": settings, "train": {"max_steps": steps, "batch_size": 2}}
        changes: dict[str, Any] = {"run_id": f"{model}{seed}00000000"[:12], "seed": seed}
        runs.append(record(model, f, config=config, fit=FIT, **changes))
    return runs


def tuned(f: float, seeds: Iterable[int] = SEEDS, steps: int = 50) -> list[RunRecord]:
    """Return runs of a language model that was trained with the reading `beginning`."""
    return trained("prompt", f, seeds, steps, reading="beginning", tune_all=False)


def as_it_is(f: float) -> RunRecord:
    """Return the run of the same model without training."""
    config = {"model": {"reading": "beginning", "tune_all": False}}
    system = {"checkpoint": "a folder"}
    return record("prompt", f, run_id="as it is0000", config=config, system=system)


def table(folder: Path, *runs: RunRecord, word: str = LEARNED) -> tuple[LeaderboardBlock, Any]:
    """Return the rows of some runs, with a word for those that were trained, and the scores of 40 examples."""
    store(folder, *runs)
    found = read_table(Results(folder), "arxiv")
    rows = []
    for row in program.rows_of(found).rows:
        rows.append(replace(row, learned=Learned(word if row.representative.trained else "")))
    return LeaderboardBlock(tuple(rows)), found.scores


def sentence(folder: Path, *runs: RunRecord, word: str = LEARNED) -> str:
    """Return the sentence about some runs."""
    block, scores = table(folder, *runs, word=word)
    return program.sentence_of("arxiv", block, scores)


def test_the_sentence_follows_the_scores(tmp_path: Path) -> None:
    """Training raises, lowers or does not change the score; other rows are above, below or alike."""
    others = [*trained("pagesum", 20, init="random"), record("lead", 40)]
    text = sentence(tmp_path / "better", *tuned(30), as_it_is(25), *others)
    assert "arxiv, 40 examples, 50 steps of 2 examples: the validation loss fell in 6 of 6" in text
    assert "raises R-Lsum significantly for: `beginning`, LoRA. It lowers it for: none." in text
    assert "Against `beginning`, LoRA, R-Lsum 30.0: significantly below it: `beginning`, as" in text
    assert "`pagesum` from nothing. Above it: lead. Not distinguished: none." in text
    worse = sentence(tmp_path / "worse", *tuned(20), as_it_is(25))
    assert "for: none. It lowers it for: `beginning`, LoRA. Not distinguished: none." in worse
    alike = sentence(tmp_path / "alike", *tuned(25), as_it_is(25))
    assert "lowers it for: none. Not distinguished: `beginning`, LoRA. Not tested: none." in alike


def test_one_seed_or_a_system_that_did_not_learn_has_no_verdict(tmp_path: Path) -> None:
    """However large the difference is, nothing is concluded from one training, or from one that did not learn."""
    single = sentence(tmp_path / "single", *tuned(40, [1]), as_it_is(20), record("lead", 10))
    untested = "for: none. It lowers it for: none. Not distinguished: none. Not tested: `beginning`"
    assert untested in single
    assert "Above it: none. Not distinguished: none. Not tested: " in single
    runs = [*tuned(40), as_it_is(20), record("lead", 10)]
    not_shown = sentence(tmp_path / "not_shown", *runs, word=NOT_SHOWN)
    assert untested in not_shown
    assert not_shown.endswith("No trained language model is shown to have learned.")
