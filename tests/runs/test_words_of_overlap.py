"""`score.*` decides which words count as equal for everybody who compares texts: oracle, rankers, labels, analyses."""

import json
from pathlib import Path
from typing import Any

import pytest

from longsumbench import run
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    Decoding,
    Document,
    Example,
    FitContext,
    Scoring,
    Section,
    TrainConfig,
    registry,
)
from longsumbench.models.rankers.lstm import Labeller

GREEK = (
    "Η συνεδρίαση άρχισε το πρωί.",
    "Ο δήμαρχος μίλησε για τον προϋπολογισμό.",
    "Η νέα γέφυρα θα είναι έτοιμη του χρόνου.",
    "Οι κάτοικοι ζήτησαν καθαρό ποτάμι.",
    "Η επόμενη συνεδρίαση είναι τον Μάιο.",
)
UNICODE = Scoring(tokenizer="unicode")


def greek(name: str, *chosen: int) -> Example:
    """Return an example whose reference is some sentences of its source."""
    document = Document("", (Section("", (GREEK,)),))
    return Example(name, None, None, (document,), (tuple(GREEK[place] for place in chosen),))


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, Any]:
    """Settings of a dataset in Greek."""
    rows = [
        {
            "id": f"e{place}",
            "document": " ".join(GREEK),
            "summary": f"{GREEK[place]} {GREEK[place + 2]}",
        }
        for place in range(3)
    ]
    path = tmp_path / "greek.jsonl"
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return {"dataset": "jsonl", "dataset.name": "greek", "dataset.path": str(path)}


def test_the_oracle_copies_references_of_any_script(texts: dict[str, Any], tmp_path: Path) -> None:
    """References that are sentences of their sources score 100."""
    scoring: dict[str, Any] = {"score.tokenizer": "unicode"}
    record = run(**texts, **scoring, model="oracle", baselines=False, results_dir=str(tmp_path))
    assert record.evaluation.scores["rougeLsum"].f == pytest.approx(100)


def test_the_oracle_stems_as_the_scores_do() -> None:
    """With stems "dog" is as good as "dogs", and the first sentence is taken; without, the second."""
    sentences = ("A dog ran.", "The dogs ran.")
    one = Example("e", None, None, (Document("", (Section("", (sentences,)),)),), (("Dogs ran.",),))
    oracle = registry.systems.load("oracle")
    outputs = []
    for stem in (True, False):
        system = oracle(oracle.Config())
        system.prepare(
            FitContext(
                None, None, TrainConfig(), ArtifactCache(Path("no stages")), Scoring(stem=stem)
            )
        )
        outputs += [summary.text for summary in system.summarize([one], Decoding())]
    assert outputs == ["A dog ran.", "The dogs ran."]


def test_labels_of_the_lstm_ranker_count_words_of_any_script() -> None:
    """A sentence that the reference repeats has label 1, all others less."""
    label = Labeller(UNICODE)
    assert label(GREEK, [GREEK[2]])[2] == 1
    assert max(label(GREEK, [GREEK[2]])[:2]) < 1
