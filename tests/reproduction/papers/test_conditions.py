"""The conditions that differ from the paper's, in sentences."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support.reproduction.paper_jobs import finished_run, paper_job
from support.run_records import TRAINED

from longsumbench.core import DatasetSettings, FitReport, Truncation
from longsumbench.metrics.output_stats import OutputStats
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.conditions import describe_conditions, describe_unread
from longsumbench_reproduction.papers.page_model import Job
from longsumbench_reproduction.papers.paper_tables import PAPER, PaperRow, PaperTable
from longsumbench_reproduction.papers.published_rows import read_row_means
from longsumbench_reproduction.papers.run_planning import plan_paper_table

SEAL = PaperTable(
    kind="scores",
    title="",
    default="probe",
    scales={PAPER: "scale=paper", "probe": "scale=probe"},
    datasets={"arXiv": {PAPER: "dataset=arxiv", "probe": "dataset=probe"}},
    rows={
        "Trunc": PaperRow(run="model=trunc"),
        "EA": PaperRow(
            run="model=ea model.extractive_length=128",
            at={PAPER: "model.extractive_length=1024", "probe": ""},
        ),
        "Lead": PaperRow(run="model=lead"),
    },
    name="seal-table2",
    source="zhao2020seal",
)


def planned_job(folder: Path, scale: str = "probe", words: Sequence[str] = ()) -> Job:
    """The points of a paper table as they are planned, each with a finished run."""
    job = plan_paper_table(SEAL, [f"scale={scale}", *words], Results(folder))
    rows = []
    for number, row in enumerate(job.rows):
        model = row.points[0].config.model.name
        fit = FitReport() if model == "lead" else TRAINED
        run = finished_run(job.results, model, [0.3, 0.4], run_id=f"run{number}", fit=fit)
        rows.append(row._replace(records=(run,)))
    return replace(job, rows=tuple(rows))


def conditions_of(job: Job) -> tuple[str, ...]:
    return describe_conditions(job, read_row_means(job))


def test_weights_and_steps_are_compared_with_those_at_the_scale_of_the_paper(
    tmp_path: Path,
) -> None:
    """The weights and steps of trained systems are said, and those of the paper's scale."""
    weights, steps = conditions_of(planned_job(tmp_path))[-4:-2]
    assert steps == (
        "They train for 1,500 steps of batches of 2,048 source words, 4 to 64 examples "
        "(scale=paper: 200,000 steps of 256 examples)."
    )
    assert weights == "Our systems have 5 weights (scale=paper: 35,717,120 to 37,559,297)."


@pytest.mark.parametrize(
    ("words", "steps"),
    [
        ([], "200,000 steps of 256 examples."),
        (
            ["train.max_steps=9"],
            "9 steps of 256 examples (scale=paper: 200,000 steps of 256 examples).",
        ),
    ],
)
def test_at_the_scale_of_the_paper_equal_numbers_are_said_once(
    words: list[str], steps: str, tmp_path: Path
) -> None:
    """There, only typed steps differ from the paper's."""
    job = planned_job(tmp_path, PAPER, words)
    assert f"They train for {steps}" in conditions_of(job)


def test_the_texts_are_described(tmp_path: Path) -> None:
    """The number of examples, their lengths, where they come from, and the size of the training split."""
    stats, ledger = OutputStats(2, 2, 2, 0, 30.0, 38.4), Truncation(2600, 2400)
    changes: dict[str, Any] = {
        "outputs": stats,
        "source": ledger,
        "fit": TRAINED,
        "split": "validation",
    }
    run = finished_run(Results(tmp_path), "seal", [0.3, 0.4], **changes)
    settings = DatasetSettings("my_texts", path="texts")
    job = paper_job(structs.replace(SEAL, scales={}), tmp_path, {"EA": [run]}, settings=settings)
    assert conditions_of(job)[0] == (
        "arXiv: ours are 2 examples of the validation split of my_texts (local files), with 1,200 words on average and "
        "references of 38 words; 60 examples to train on."
    )


def test_datasets_without_texts_are_named(tmp_path: Path) -> None:
    """A sentence names the paper's datasets for which nothing is read at this scale."""
    table = structs.replace(SEAL, datasets={"arXiv": {}, "PubMed": {}, "Search2Wiki": {}})
    job = paper_job(table, tmp_path, {})
    unread = "Not read at scale=probe, and so not tested: PubMed, Search2Wiki."
    assert describe_unread(job) == unread
    assert describe_unread(paper_job(SEAL, tmp_path, {})) == ""


@pytest.mark.parametrize(
    ("source", "mode", "program"),
    [
        ("liu2022pagesum", "google", [", the paper's by the Perl script (fn. 11)."]),
        ("liu2022pagesum", "perl", []),
        ("zhao2020seal", "google", ["; the paper does not name its program."]),
    ],
)
def test_rouge_is_compared_with_the_program_of_the_paper(
    source: str, mode: str, program: list[str], tmp_path: Path
) -> None:
    """PageSum's program is the Perl script: equal in mode perl; SEAL does not name its program."""
    config = {"score": {"mode": mode}}
    run = finished_run(Results(tmp_path), "seal", [0.3, 0.4], config=config)
    job = paper_job(structs.replace(SEAL, scales={}, source=source), tmp_path, {"EA": [run]})
    google = "ROUGE: ours is computed as rouge_score 0.1.2"
    sentences = [text for text in conditions_of(job) if text.startswith("ROUGE")]
    assert sentences == [google + text for text in program]


def test_the_number_of_seeds_is_said(tmp_path: Path) -> None:
    """Rows may have different numbers of seeds; a single one is said as such, and no seed not at all."""
    results, paper_table = Results(tmp_path), structs.replace(SEAL, scales={})
    runs = [finished_run(results, "ea", [0.3, 0.4], seed) for seed in (1, 2, 3)]
    lead = finished_run(results, "lead", [0.3, 0.4], None)
    expected = {
        "Our numbers are means over 1 to 3 seeds.": {"EA": runs, "Trunc": runs[:1]},
        "Our numbers are means over 3 seeds.": {"EA": runs, "Lead": [lead]},
        "Our numbers are of one seed.": {"EA": runs[:1]},
    }
    for sentence, rows in expected.items():
        assert conditions_of(paper_job(paper_table, tmp_path, rows))[-1] == sentence
    job = paper_job(paper_table, tmp_path, {"Lead": [lead]})
    assert "seed" not in conditions_of(job)[-1]
