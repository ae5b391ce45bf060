"""The conditions that differ from the paper's, in sentences."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs
from support.paper_jobs import finished_run, paper_job
from support.run_records import TRAINED

from longsumbench.api import DatasetSettings, Truncation
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.papers.artifacts import PAPER, Artifact, ArtifactRow, Ordering
from longsumbench.papers.numbers.conditions import describe_conditions, describe_unread
from longsumbench.papers.numbers.ours import read_ours
from longsumbench.papers.page import Job
from longsumbench.papers.points import plan_artifact
from longsumbench.runs.results import Results

SEAL = Artifact(
    kind="scores",
    title="",
    default="probe",
    scales={PAPER: "scale=paper", "probe": "scale=probe"},
    datasets={"arXiv": {PAPER: "dataset=arxiv", "probe": "dataset=probe"}},
    rows={
        "Trunc": ArtifactRow(run="model=trunc"),
        "EA": ArtifactRow(
            run="model=ea model.extractive_length=128", at={PAPER: "model.extractive_length=1024", "probe": ""}
        ),
        "Lead": ArtifactRow(run="model=lead"),
    },
    name="seal-table2",
    source="zhao2020seal",
)


def planned_job(folder: Path, artifact: Artifact = SEAL, scale: str = "probe", words: Sequence[str] = ()) -> Job:
    """The points of an artifact as they are planned, each with a finished run."""
    results = Results(folder)
    job = plan_artifact(artifact, scale, words, results)
    rows = []
    for number, row in enumerate(job.rows):
        model = row.points[0].config.model.name
        fit = {} if model == "lead" else {"fit": TRAINED}
        rows.append(row._replace(records=(finished_run(results, model, [0.3, 0.4], run_id=f"run{number}", **fit),)))
    return Job(artifact, job.scale, job.datasets, tuple(rows), {}, (), results)


def test_settings_are_compared_with_those_at_the_scale_of_the_paper(tmp_path: Path) -> None:
    """What differs in all rows is said once, what differs in one row under its label; equal settings are left out."""
    job = planned_job(tmp_path)
    sentences = {text.partition(",")[0]: text for text in describe_conditions(job, read_ours(job))}
    systems = sentences["Systems"]
    assert systems.startswith("Systems, the paper's in parentheses: ")
    assert "EA: extractive_length 128 (1024)" in systems
    assert "d_model 64 (512)" in systems  # the paper's width has the name of a size
    assert "; Trunc: input_length 256 (1024)" in systems
    assert "norm" not in systems
    assert (
        "1,500 steps × batches of 2,048 source words, 4 to 64 examples (200,000 steps × 256 examples)"
        in (sentences["Training"])
    )
    assert "optimizer adam (adafactor)" in sentences["Training"]
    assert "Decoding" not in sentences  # greedy search in both


def test_at_the_scale_of_the_paper_only_typed_settings_differ(tmp_path: Path) -> None:
    """There, all settings are the paper's but for those that were typed."""
    job = planned_job(tmp_path, scale=PAPER, words=["train.max_steps=9"])
    found = [text for text in describe_conditions(job, read_ours(job)) if "parentheses" in text]
    assert found == ["Training, the paper's in parentheses: 9 steps × 256 examples (200,000 steps × 256 examples)."]


def test_settings_with_many_values_are_only_named(tmp_path: Path) -> None:
    """A setting that has another value in each of four rows is not listed row by row."""
    key, lengths = "model.input_length", (32, 64, 128, 256)
    at = [{PAPER: f"{key}={4 * length}", "probe": f"{key}={length}"} for length in lengths]
    rows = {str(number): ArtifactRow(run="model=trunc", at=words) for number, words in enumerate(at)}
    job = planned_job(tmp_path, structs.replace(SEAL, rows=rows))
    (systems,) = [text for text in describe_conditions(job, read_ours(job)) if text.startswith("Systems")]
    assert systems.endswith("; input_length by row.")


def test_the_texts_are_described(tmp_path: Path) -> None:
    """The number of examples, their lengths, where they come from, and the size of the training split."""
    facts, ledger = OutputFacts(2, 2, 2, 0, 30.0, 38.4), Truncation(2600, 2400)
    changes = {"outputs": facts, "source": ledger, "fit": TRAINED, "split": "validation"}
    run = finished_run(Results(tmp_path), "seal", [0.3, 0.4], **changes)
    settings = DatasetSettings("my_texts", path="texts")
    job = paper_job(structs.replace(SEAL, scales={}), tmp_path, {"EA": [run]}, settings=settings)
    assert describe_conditions(job, read_ours(job))[0] == (
        "arXiv: ours are 2 examples of the validation split of my_texts (local files), with 1,200 words on average and "
        "references of 38 words; 60 examples to train on."
    )


def test_datasets_without_texts_are_named(tmp_path: Path) -> None:
    """A sentence names the paper's datasets for which nothing is read at this scale."""
    job = paper_job(structs.replace(SEAL, datasets={"arXiv": {}, "PubMed": {}, "Search2Wiki": {}}), tmp_path, {})
    assert describe_unread(job) == "Not read at scale=probe, and so not tested: PubMed, Search2Wiki."
    assert describe_unread(paper_job(SEAL, tmp_path, {})) == ""


def test_rouge_is_compared_with_the_program_of_the_paper(tmp_path: Path) -> None:
    """PageSum's program is the Perl script: equal in mode perl; SEAL does not name its program."""
    google = "ROUGE: ours is computed as rouge_score 0.1.2"
    expected = {
        ("liu2022pagesum", "google"): [f"{google}, the paper's by the Perl script (fn. 11)."],
        ("liu2022pagesum", "perl"): [],
        ("zhao2020seal", "google"): [f"{google}; the paper does not name its program."],
    }
    for number, ((source, mode), sentences) in enumerate(expected.items()):
        run = finished_run(Results(tmp_path), "seal", [0.3, 0.4], run_id=f"r{number}", config={"score": {"mode": mode}})
        job = paper_job(structs.replace(SEAL, scales={}, source=source), tmp_path, {"EA": [run]})
        assert [text for text in describe_conditions(job, read_ours(job)) if text.startswith("ROUGE")] == sentences


def test_the_number_of_seeds_is_said(tmp_path: Path) -> None:
    """Rows may have different numbers of seeds; a single one is said as such, and no seed not at all."""
    results, artifact = Results(tmp_path), structs.replace(SEAL, scales={})
    runs = [finished_run(results, "ea", [0.3, 0.4], seed) for seed in (1, 2, 3)]
    lead = finished_run(results, "lead", [0.3, 0.4], None)
    limit = " One seed does not show how much trainings differ, so its verdicts are about these runs only."
    expected = {
        f"Our numbers are means over 1 to 3 seeds.{limit}": {"EA": runs, "Trunc": runs[:1]},
        "Our numbers are means over 3 seeds.": {"EA": runs, "Lead": [lead]},
        f"Our numbers are of one seed.{limit}": {"EA": runs[:1]},
    }
    for sentence, rows in expected.items():
        claims = (Ordering("EA > Lead"),)
        job = paper_job(structs.replace(artifact, orderings=claims), tmp_path, rows)
        assert describe_conditions(job, read_ours(job))[-1] == sentence
    job = paper_job(artifact, tmp_path, {"EA": runs[:1]})  # a table that claims no ordering
    assert describe_conditions(job, read_ours(job))[-1] == "Our numbers are of one seed."
    job = paper_job(artifact, tmp_path, {"Lead": [lead]})
    assert "seed" not in describe_conditions(job, read_ours(job))[-1]


def test_without_finished_runs_there_are_no_conditions(tmp_path: Path) -> None:
    """Nothing is compared before a run is finished."""
    job = paper_job(SEAL, tmp_path, {"EA": [None]})
    assert describe_conditions(job, read_ours(job)) == ()
