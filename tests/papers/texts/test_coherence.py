"""PageSum's Table 4 as an artifact: references, shuffled references and runs, scored by a tiny BERT."""

import importlib.util
import math
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.analysis_jobs import analysis_job, write_texts
from support.paths import ROOT
from support.tiny_bert import write_bert

from longsumbench.analysis.coherence.coherence import NextSentences
from longsumbench.api import DatasetSettings, Scoring
from longsumbench.cli.main import main
from longsumbench.errors import UsageError
from longsumbench.papers.artifacts import ArtifactRow, Ordering
from longsumbench.papers.page import NOT_TESTED, TWO_SEEDS, Job, RowRuns
from longsumbench.papers.texts.coherence import coherence_page
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

ROWS = {
    "reference": ArtifactRow(published={"system": "reference summary"}),
    "random": ArtifactRow(published={"system": "random oracle"}),
    "spatial": ArtifactRow(run="model=random", published={"system": "PageSum-Spatial"}),
    "discourse": ArtifactRow(run="model=lead", published={"system": "PageSum-Discourse"}),
}
ORDERINGS = (Ordering("discourse > spatial", on="coherence"),)
PRINTED = {"reference": 98.00, "random": 95.43, "spatial": 97.34, "discourse": 97.98}  # PageSum, Table 4
TEXTS = ["The cat sat.", "It slept.", "The dog ran.", "A dog slept.", "It ran.", "The cat slept."]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with a tiny next-sentence model."""
    return str(write_bert(tmp_path_factory.mktemp("model") / "bert"))


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> DatasetSettings:
    """Six texts with references of three sentences."""
    rows = []
    for number in range(6):
        mixed = random.Random(number).sample(TEXTS, 6)
        rows.append({"document": " ".join(mixed), "summary": " ".join(mixed[:3])})
    split = {"train": rows, "validation": [{"document": " ".join(TEXTS), "summary": " ".join(TEXTS)}], "test": rows}
    return write_texts(tmp_path_factory.mktemp("texts"), split)


def job_of(texts: DatasetSettings, results: Results, bert: str | None) -> Job:
    """Return the job with the finished runs of Lead (one) and Random (two seeds) in a results folder."""
    found = sorted(results.records("jsonl"), key=lambda record: record.seed or 0)
    runs = []
    for label, model, seeds in (("spatial", "random", 2), ("discourse", "lead", 1)):
        records: list[RunRecord | None] = [record for record in found if record.model == model]
        records += [None] * (seeds - len(records))
        runs.append(RowRuns(label, ROWS[label], "arXiv", (), tuple(records)))
    options = {"bert": bert, "sample": None, "device": "cpu"}
    return analysis_job("pagesum-table4", {"arXiv": texts}, options, results.root, ROWS, ORDERINGS, runs)


@pytest.fixture(scope="module")
def finished(texts: DatasetSettings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with finished runs of Lead and of Random with two seeds."""
    root = tmp_path_factory.mktemp("runs") / "results"
    words = ["run", "dataset=jsonl", f"dataset.path={texts.path}", f"results_dir={root}", "baselines=false"]
    for run in (["model=lead"], ["model=random"], ["model=random", "seed=2"]):
        assert main([*words, *run]) == 0
    return root


@pytest.fixture
def results(finished: Path, tmp_path: Path) -> Results:
    """A copy of the finished runs."""
    return Results(Path(shutil.copytree(finished, tmp_path / "results")))


def test_printed_and_ours(texts: DatasetSettings, results: Results, bert: str) -> None:
    """Printed numbers are the paper's; ours are the mean over outputs and seeds of the metric with this model."""
    page = coherence_page(job_of(texts, results, bert))
    numbers = page.numbers[page.numbers["measure"] == "coherence"].set_index(["kind", "row"])["value"]
    assert numbers["printed"].to_dict() == PRINTED
    metric = NextSentences(Scoring(coherence_model=bert, device="cpu"))
    for label, model in (("spatial", "random"), ("discourse", "lead")):
        folders = [results.run_folder(run) for run in results.records("jsonl") if run.model == model]
        outputs = [one.text for folder in folders for one in read_summaries(folder / "predictions.jsonl")]
        scores = [metric.score(text, None)["coherence"] for text in outputs]  # type: ignore[arg-type] # not used
        expected = 100 * float(np.mean([score for score in scores if not math.isnan(score)]))
        assert numbers["ours", label] == pytest.approx(expected, abs=1e-3)
    assert set(page.numbers["kind"]) == {"printed", "ours", "verdict"}
    (verdict,) = page.verdicts
    assert (verdict.claim, verdict.outcome, verdict.n) == ("discourse > spatial", TWO_SEEDS, 6)
    assert verdict.difference == pytest.approx(numbers["ours", "discourse"] - numbers["ours", "spatial"], abs=1e-3)
    assert page.blocks[0].columns[1:3] == ("printed\non arXiv", "ours\non jsonl")
    assert list(page.pictures) == ["pagesum-table4-arxiv.png"]
    assert any("bert-large-uncased; ours: model:bert@" in sentence for sentence in page.conditions)


def test_missing_outputs(texts: DatasetSettings, results: Results, bert: str) -> None:
    """Without the outputs of a row its claim is not tested, and the page says how to make them."""
    for run in results.records("jsonl"):
        if run.model == "lead":
            (results.run_folder(run) / "predictions.jsonl").unlink()
    page = coherence_page(job_of(texts, results, bert))
    assert page.verdicts[0].outcome == NOT_TESTED
    assert page.verdicts[0].reason == "the runs have no coherence of each example"
    assert any(text.startswith("discourse on arXiv") and "overwrite=true" in text for text in page.conditions)


def test_unfinished_runs(texts: DatasetSettings, tmp_path: Path, bert: str) -> None:
    """Without any run the references are scored all the same, and the page says what is missing."""
    page = coherence_page(job_of(texts, Results(tmp_path / "none"), bert))
    assert page.verdicts[0].reason == "runs of discourse missing: 1 of 1; runs of spatial missing: 2 of 2"
    kinds = page.numbers[page.numbers["row"] == "spatial"]["kind"].tolist()
    assert kinds == ["printed"]


def test_a_seed_is_missing(texts: DatasetSettings, results: Results, bert: str) -> None:
    """With one of two seeds the number is shown, and the claim is not tested; the conditions name the texts."""
    (second,) = [run for run in results.records("jsonl") if run.seed == 2]
    shutil.rmtree(results.run_folder(second))
    page = coherence_page(job_of(texts, results, bert))
    assert (page.verdicts[0].outcome, page.verdicts[0].reason) == (NOT_TESTED, "runs of spatial missing: 1 of 2")
    assert "ours" in page.numbers[page.numbers["row"] == "spatial"]["kind"].tolist()
    assert any(text.startswith("arXiv: ours are 6 examples of the test split of jsonl") for text in page.conditions)
    assert any(text.startswith("Our numbers are of one seed.") for text in page.conditions)
    assert len(set(page.conditions)) == len(page.conditions)


def test_printed_numbers_are_of_their_dataset(texts: DatasetSettings, tmp_path: Path, bert: str) -> None:
    """The paper prints numbers on arXiv only."""
    rows = {name: ROWS[name] for name in ("reference", "random")}
    for dataset, printed in (("arXiv", [98.00, 95.43]), ("PubMed", [])):
        options = {"bert": bert, "sample": None, "device": "cpu"}
        numbers = coherence_page(analysis_job("pagesum-table4", {dataset: texts}, options, tmp_path, rows)).numbers
        assert numbers[numbers["kind"] == "printed"]["value"].tolist() == printed


def test_a_bert_is_needed(texts: DatasetSettings, tmp_path: Path) -> None:
    """Without the option, or with a folder that has no model, the message names the option."""
    with pytest.raises(UsageError, match="add bert=FOLDER or a hub name"):
        coherence_page(job_of(texts, Results(tmp_path), None))
    with pytest.raises(UsageError, match=r"^bert=.*no config\.json"):
        coherence_page(job_of(texts, Results(tmp_path), str(tmp_path)))


def test_the_tiny_model_can_be_trained(
    texts: DatasetSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benchmark writes a folder that the option `bert` reads."""
    spec = importlib.util.spec_from_file_location("next_sentence", ROOT / "benchmarks" / "next_sentence_model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    words = ["dataset=jsonl", f"dataset.path={texts.path}", "--output", str(tmp_path / "bert"), "--steps", "2"]
    monkeypatch.setattr("sys.argv", ["next_sentence_model.py", *words])
    module.main()
    assert "training pairs; right on" in capsys.readouterr().out
    NextSentences(Scoring(coherence_model=str(tmp_path / "bert"), device="cpu")).check()
