"""The runs of a table: planned from its rows, datasets and typed words, and matched with finished runs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from support.paper_tables import TOYS, toy_paper_table
from support.run_records import changed
from support.toys import write_jsonl

from longsumbench.core import DatasetSettings
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import PlannedRun, plan_lines
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_files import describe_state, missing_names
from longsumbench_reproduction.papers.page_model import NOT_TESTED, Job
from longsumbench_reproduction.papers.paper_tables import PaperClaim, PaperRow, PaperTable
from longsumbench_reproduction.papers.published_rows import decide_claims, read_row_means
from longsumbench_reproduction.papers.run_planning import (
    find_finished,
    plan_paper_table,
    sort_words,
    texts_problem,
)

TWO = {**TOYS, "Generated": {"probe": "dataset=probe", "paper": "dataset=probe"}}


def planned(paper_table: PaperTable, folder: Path, *words: str, scale: str = "probe") -> Job:
    """Plan a paper table with the results folder `folder / "r"`."""
    return find_finished(
        plan_paper_table(paper_table, [f"scale={scale}", *words], Results(folder / "r"))
    )


def run_all(job: Job) -> list[RunRecord]:
    """Run the missing points of a job."""
    return [run_point(PlannedRun(point.config)) for point in job.missing]


ONE_RUN = toy_paper_table(rows={"Lead": PaperRow("model=lead")}, scales={"probe": "seed=1"})


def seeds_of(job: Job) -> list[tuple[str, str, list[int]]]:
    """Return label, dataset and seeds of the points."""
    return [
        (row.label, row.dataset, [point.config.seed for point in row.points]) for row in job.rows
    ]


def test_a_table_has_the_runs_of_its_rows_on_its_datasets(tmp_path: Path) -> None:
    """One entry for each dataset and row, in their order, with a point for each seed; results go to one folder."""
    job = planned(toy_paper_table(datasets=TWO), tmp_path)
    places = product(("Toys", "Generated"), ("Lead", "Random"))
    assert seeds_of(job) == [(label, dataset, [1, 2]) for dataset, label in places]
    points = job.missing
    assert {(point.config.results_dir, point.config.baselines) for point in points} == {
        (str(tmp_path / "r"), False)
    }
    names = [point.name for point in job.rows[1].points]
    assert names == ["Random on Toys seed=1", "Random on Toys seed=2"]
    datasets = {name: settings.name for name, settings in job.datasets.items()}
    assert datasets == {"Toys": "toys", "Generated": "probe"}


def test_rows_and_datasets_belong_to_scales(tmp_path: Path) -> None:
    """A row without the scale, or of another dataset, is absent; so is a dataset without the scale."""
    rows = {
        "Everywhere": PaperRow("model=lead"),
        "Paper": PaperRow("model=lead", at={"paper": "model.length=9"}),
        "Generated only": PaperRow("model=random", datasets=("Generated",)),
        "Printed only": PaperRow(),
    }
    datasets = {**TOYS, "Generated": {"paper": "dataset=probe"}}
    paper_table = toy_paper_table(rows=rows, datasets=datasets)
    assert [row.label for row in planned(paper_table, tmp_path).rows] == ["Everywhere"]
    job = planned(paper_table, tmp_path, scale="paper")
    assert [f"{row.label} on {row.dataset}" for row in job.rows] == [
        "Everywhere on Toys",
        "Paper on Toys",
        "Everywhere on Generated",
        "Paper on Generated",
        "Generated only on Generated",
    ]
    assert [row.points[0].config.model.length for row in job.rows[:2]] == ["train", "9"]


def test_typed_words_replace_those_of_the_table(tmp_path: Path) -> None:
    """A typed setting wins over the scale, the dataset and the row; folders go to the points on their dataset."""
    paper_table = toy_paper_table(
        datasets=TWO, rows={"Lead": PaperRow("model=lead model.length=5")}
    )
    job = planned(
        paper_table, tmp_path, "seed=7", "model.length=9", f"path.toys={tmp_path}/my texts"
    )
    assert seeds_of(job) == [("Lead", "Toys", [7]), ("Lead", "Generated", [7])]
    configs = [row.points[0].config for row in job.rows]
    assert [config.model.length for config in configs] == ["9", "9"]
    assert [config.dataset.path for config in configs] == [f"{tmp_path}/my texts", None]
    assert job.datasets["Toys"].path == f"{tmp_path}/my texts"


def test_a_row_has_one_run_for_each_seed(tmp_path: Path) -> None:
    """Several values of another setting would be several runs in one row, of which one would be shown."""
    problem = "would be one row of the table: type one value, or several seeds"
    with pytest.raises(UsageError, match=problem):
        planned(toy_paper_table(), tmp_path, "seed=1", "score.resamples=100,200")
    job = planned(toy_paper_table(), tmp_path, "seed=3,4,5")
    assert seeds_of(job)[1] == ("Random", "Toys", [3, 4, 5])


def test_options_have_the_type_of_their_default(tmp_path: Path) -> None:
    """Settings of the kind are no settings of the runs; null is None."""
    paper_table = toy_paper_table(
        options={"example": 0, "bert": None, "share": 0.5, "rank": "tfidf"}
    )
    assert planned(paper_table, tmp_path).options == paper_table.options
    job = planned(paper_table, tmp_path, "example=3", "bert=some/folder", "share=1", "rank=null")
    assert job.options == {"example": 3, "bert": "some/folder", "share": 1.0, "rank": None}
    assert job.changes == ()


WRONG = """
scale=small → toy-table1 has no scale=small: choose one of probe, paper
path.toy=x → does not read 'toy' (did you mean 'toys'?); it has: path.probe=, path.toys=
example=two → 'example=two' is not a whole number
dataset.path=x → 'dataset.path=x' is for several datasets: write one of path.probe=, path.toys=
model=lead → 'model=lead': toy-table1 has its own systems and datasets
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_a_wrong_word_is_one_line_that_says_what_to_write(line: str) -> None:
    """One line says what is wrong, and what to write."""
    word, problem = line.split(" → ")
    with pytest.raises(UsageError) as caught:
        sort_words(toy_paper_table(datasets=TWO, options={"example": 0}), [word])
    assert problem in str(caught.value)


CHANGES = """
→
device=cpu path.toys=x dataset.workers=2 decode.evidence=all hydra/launcher=joblib →
seed=1 → Typed: seed=1 (instead of seed=1,2). This page is not comparable
seed=1 dataset.limit=3 → seed=1 (instead of seed=1,2), dataset.limit=3.
"""


@pytest.mark.parametrize("line", CHANGES.strip().splitlines())
def test_changes_of_the_outcome_are_said(line: str, tmp_path: Path) -> None:
    """A typed setting that decides the outcome is named; one that does not, is not."""
    words, _, said = line.partition("→")
    changes = planned(toy_paper_table(), tmp_path, *words.split()).changes
    assert len(changes) == bool(said)
    assert said.strip() in "".join(changes)


def test_finished_runs_are_found(tmp_path: Path) -> None:
    """A point has the record of its run, also where the results moved; other settings or files are other runs."""
    texts, words = write_jsonl(tmp_path / "texts"), ["score.resamples=100"]
    job = planned(toy_paper_table(), tmp_path, f"path.toys={texts}", *words)
    new_runs = run_all(job)
    lead, random = find_finished(job).rows
    assert [record.run_id for record in lead.finished] == [new_runs[0].run_id] * 2  # no seed
    assert [record.key.seed for record in random.finished] == [1, 2]
    (tmp_path / "r").rename(tmp_path / "s")
    results = Results(tmp_path / "s")
    # No files are named, others are named, and a sweep found the same texts there
    assert find_finished(plan_paper_table(toy_paper_table(), words, results)).missing == []
    moved = plan_paper_table(toy_paper_table(), ["path.toys=elsewhere", *words], results)
    assert len(find_finished(moved).missing) == 4
    assert find_finished(moved, results.records("toys")).missing == []
    changed_words = plan_paper_table(toy_paper_table(), ["score.resamples=200"], results)
    assert len(find_finished(changed_words).missing) == 4


def test_the_run_that_finished_last_counts(tmp_path: Path) -> None:
    """Of several runs of a point, such as on texts that changed, the last one is its record."""
    results = Results(tmp_path / "r")
    (record,) = run_all(planned(ONE_RUN, tmp_path, f"path.toys={write_jsonl(tmp_path / 'texts')}"))
    for run_id, year, is_last in (("aaa", 2020, False), ("ccc", 2999, True)):
        other = replace(record, run_id=run_id, finished=f"{year}-01-01T00:00:00+00:00")
        other.write(results.run_folder(other))
        assert planned(ONE_RUN, tmp_path).rows[0].finished == (other if is_last else record,)


def test_a_page_uses_runs_of_the_current_versions_only(tmp_path: Path) -> None:
    """A run with other versions, or none, is no run of the table, nor an error."""
    (record,) = run_all(planned(ONE_RUN, tmp_path, f"path.toys={write_jsonl(tmp_path / 'texts')}"))
    for versions in ({}, {**record.key.versions, "scoring": 0}):
        changed(record, versions=versions).write(Results(tmp_path / "r").run_folder(record))
        assert planned(ONE_RUN, tmp_path).rows[0].finished == ()


def test_a_run_without_a_requested_metric_is_missing(tmp_path: Path) -> None:
    """A run with more metrics than the point asks for is its run; one with fewer is not."""
    texts = f"path.toys={write_jsonl(tmp_path / 'texts')}"
    run_all(planned(ONE_RUN, tmp_path, texts))
    asking = ("score.metrics=[novel_ngrams]", texts)
    assert len(run_all(planned(ONE_RUN, tmp_path, *asking))) == 1
    assert planned(ONE_RUN, tmp_path, *asking).missing == []
    assert planned(ONE_RUN, tmp_path).missing == []


def test_what_cannot_be_read_names_the_word_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts of files only, of a hub out of reach, or of a wrong folder; generated texts have no problem."""

    def unreachable(*_: object) -> None:
        raise EnvironmentProblem("no network")

    monkeypatch.setattr(
        "longsumbench_reproduction.papers.run_planning.check_copy_or_network", unreachable
    )
    assert texts_problem(DatasetSettings("probe")) is None
    assert texts_problem(DatasetSettings("sumpubmed", path=str(tmp_path))) is None
    problems = {
        "dataset 'sumpubmed' is read from files: add path.sumpubmed=FOLDER": ("sumpubmed", None, 2),
        "hub cannot be reached: add path.arxiv=FOLDER": ("arxiv", None, 4),
        "path.arxiv=gone: no such file or folder": ("arxiv", "gone", 2),
    }
    for words, (name, path, code) in problems.items():
        problem = texts_problem(DatasetSettings(name, path=path))
        assert problem is not None
        assert words in str(problem)
        assert problem.exit_code == code


def test_a_checkpoint_out_of_reach_leaves_out_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other rows are planned, with the settings that only some rows have; the row is missing, with the reason."""

    def plan_without_oracle(
        lines: Sequence[Sequence[str]], **others: Any
    ) -> list[list[PlannedRun]]:
        if any("model=oracle" in line for line in lines):
            raise EnvironmentProblem("no copy of the checkpoint")
        return plan_lines(lines, **others)

    monkeypatch.setattr(
        "longsumbench_reproduction.papers.run_planning.plan_lines", plan_without_oracle
    )
    models = {"Lead": "lead", "Random": "random", "Far": "oracle"}
    rows = {label: PaperRow(f"model={model}") for label, model in models.items()}
    paper_table = toy_paper_table(rows=rows, claims=(PaperClaim(orders=("Lead > Far",)),))
    job = planned(paper_table, tmp_path, "model.length=9")
    assert [row.label for row in job.rows] == ["Lead", "Random"]
    assert missing_names(job)[-1] == "Far on Toys"
    assert describe_state(job)[-1] == "Far on Toys cannot run here: no copy of the checkpoint."
    (verdict,) = decide_claims(job, read_row_means(job))
    reason = "runs of Lead missing: 2 of 2; no runs of Far: no copy of the checkpoint"
    assert (verdict.outcome, verdict.reason) == (NOT_TESTED, reason)
