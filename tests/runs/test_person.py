"""The row "another person": a reference is scored against the others, never against itself."""

from pathlib import Path
from typing import Any

import pytest
from rouge_score import rouge_scorer
from support.json_files import read_rows, write_json, write_rows

import longsumbench
from longsumbench.errors import UsageError
from longsumbench.exchange.verify import verify_runs
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import TableView

PEOPLE = {
    "rain": ["It rained all day.", "It rained. She left.", "The rain stopped at night."],
    "snow": ["It snowed all day.", "All day it snowed on the hill.", "It snowed all day."],
}


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Return a folder of results next to two texts with three references each, of which two may be alike."""
    rows = [
        {"id": name, "document": "It rained. She left the hill.", "references": texts}
        for name, texts in PEOPLE.items()
    ]
    (tmp_path / "texts").mkdir()
    write_rows(tmp_path / "texts" / "test.jsonl", rows)
    return Results(tmp_path / "results")


def run_person(results: Results, **settings: Any) -> RunRecord:
    dataset = {"name": "jsonl", "path": str(results.root.parent / "texts")}
    return longsumbench.run(
        model="person",
        dataset=dataset,
        results_dir=str(results.root),
        baselines=False,
        **settings,
    )


def test_a_person_is_scored_against_the_others(results: Results) -> None:
    """Each score is rouge_score's best over the references with another text, also of metrics that are added later."""
    library = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    for seed in (1, 2, 3):
        folder = results.run_folder(run_person(results, seed=seed))
        run = run_person(results, seed=seed, **{"score.metrics": ["length_ratio"]})
        scores = read_scores(folder / "scores.csv")
        for row in read_rows(folder / "predictions.jsonl"):
            text = row["prediction"].replace("\n", " ")
            others = [item for item in PEOPLE[row["id"]] if item != text]
            assert len(others) < 3
            expected = library.score_multi(others, text)
            for kind, score in expected.items():
                assert scores.loc[row["id"], f"{kind}_f"] == pytest.approx(score.fmeasure)
            words = [len(item.split()) for item in others]
            ratio = len(text.split()) / (sum(words) / len(words))
            assert scores.loc[row["id"], "length_ratio"] == pytest.approx(ratio)
        assert run.oracle
        assert not [problem for _, problems in verify_runs([folder]) for problem in problems]
    text = TableView(read_table(results, "jsonl")).render()
    assert "another person" in text
    assert "it has one reference fewer than other rows" in " ".join(text.split())


def test_other_rows_have_all_references(results: Results) -> None:
    """An output that is one of the references is perfect, as before."""
    outputs = {name: texts[0] for name, texts in PEOPLE.items()}
    dataset = {"name": "jsonl", "path": str(results.root.parent / "texts")}
    run = longsumbench.import_outputs(
        outputs, model="theirs", dataset=dataset, results_dir=str(results.root), baselines=False
    )
    assert run.evaluation.scores["rougeLsum"].f == pytest.approx(100)


def test_one_reference_is_refused(results: Results) -> None:
    """A text with a single reference ends the run before it starts."""
    write_json(
        results.root.parent / "texts" / "test.jsonl",
        {"id": "a", "document": "It rained.", "references": ["Rain."]},
    )
    with pytest.raises(UsageError, match="example 'a' has no two different ones"):
        run_person(results)
    assert not list(results.root.glob("runs/*/*/*/record.json"))
