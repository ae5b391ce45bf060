"""The list of runs: finished, running and interrupted ones, the newest first."""

from pathlib import Path

import pytest
from support.commands import Command
from support.run_records import measured, record
from support.toys import toy_words

from longsumbench.cache.locks import exclusive_lock
from longsumbench.cli.main import main, parse_words
from longsumbench.runs.plan import plan
from longsumbench.runs.results import Results, write_run_config
from longsumbench.runs.run_list import list_runs, render_runs


@pytest.fixture
def results(here: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    """Three finished runs, and one that began and has no record."""
    monkeypatch.setenv("COLUMNS", "80")
    found = Results(Path("results"))
    long = {
        "variant": "input_length=1024,num_snippets=40,segment_length=64",
        "finished": "2026-01-03T00:00:00+00:00",
    }
    of_facts = {"measures": measured({"fact_recall": 55.5}), "ranked_by": "fact_recall"}
    for run in (
        record("lead", 30),
        record("hierarchical_transformer", 31, seed=12345, split="validation", **long),
        record("seal", 20, dataset="probe", **of_facts),
    ):
        run.write(found.run_folder(run))
    (point,) = plan(["model=random", *toy_words(here), "results_dir=results", "dataset.name=mine"])
    begun = found.root / "runs" / "mine" / "random" / "0123456789ab"
    (begun / "work").mkdir(parents=True)
    write_run_config(point.config, begun)
    return found


def test_every_run_is_listed_the_newest_first(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States, scores and settings are those of the runs; no line is wider than the terminal."""
    runs = list_runs(results)
    assert [(run.model, run.state) for run in runs[:2]] == [
        ("random", "interrupted"),
        ("hierarchical_transformer", "finished"),
    ]
    scores = {run.dataset: (run.ranked_by, run.score) for run in runs[2:]}
    assert scores == {"arxiv": ("rougeLsum", 30), "probe": ("fact_recall", 55.5)}
    table, _, notes = render_runs(runs).partition("\n\n")
    assert max(map(len, table.splitlines())) <= 80
    assert "fact_recall: the score on probe" in notes
    monkeypatch.setenv("COLUMNS", "200")
    wide = render_runs(runs)
    long = "hierarchical_transformer input_length=1024,num_snippets=40,segment_length=64 12345"
    assert long in " ".join(wide.split())


@pytest.mark.parametrize(
    ("words", "models"),
    [
        ("dataset=arxiv", {"lead", "hierarchical_transformer"}),
        ("state=finished model=seal", {"seal"}),
        ("state=running", set()),
    ],
)
def test_runs_are_filtered_by_dataset_model_and_state(
    words: str, models: set[str], results: Results, run_command: Command
) -> None:
    """Runs are chosen by dataset, model and state; nothing that fits is no error."""
    assert {
        run.model for run in list_runs(results, **dict(word.split("=") for word in words.split()))
    } == models
    assert ("no such run" in run_command(0, "list", "runs", *words.split()).out) == (not models)


def test_an_interrupted_run_is_continued_by_its_command(
    results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command of the list makes the same run; while a process works on it, it is running."""
    (run,) = list_runs(results, state="interrupted")
    words = run.command.split()[1:]
    assert parse_words(words).config == str(run.folder / "config.yaml")
    assert run.command in render_runs([run])
    with exclusive_lock(run.folder / "work" / ".lock"):
        assert [run.state for run in list_runs(results, dataset="mine")] == ["running"]
    assert main([*words, "score.resamples=100"]) == 0
    assert {run.state for run in list_runs(results, dataset="mine", model="random")} >= {"finished"}
