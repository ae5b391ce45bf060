"""The row "another person": a reference is scored against the others, never against itself."""

from pathlib import Path
from typing import Any

import pytest
from rouge_score import rouge_scorer
from support.json_files import read_rows, write_rows

import longsumbench
from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.results import Results

PEOPLE = {
    "rain": ["It rained all day.", "It rained. She left.", "The rain stopped at night."],
    "snow": ["It snowed all day.", "All day it snowed on the hill.", "It snowed all day."],
}


def test_a_person_is_scored_against_the_others(tmp_path: Path) -> None:
    """Each score is rouge_score's best over the references with another text, also of metrics that are added later."""
    rows = [{"id": name, "document": "It rained.", "references": PEOPLE[name]} for name in PEOPLE]
    path = write_rows(tmp_path / "test.jsonl", rows)
    settings: dict[str, Any] = {
        "dataset": {"name": "jsonl", "path": str(path)},
        "results_dir": str(tmp_path / "results"),
        "baselines": False,
    }
    results = Results(tmp_path / "results")
    library = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    run = longsumbench.run(model="person", **settings)
    settings["score.metrics"] = ["length_ratio"]  # added by the second command
    longsumbench.run(model="person", **settings)
    folder = results.run_folder(run)
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
