"""The Hierarchical Transformer's Table 1 as a paper table: printed recalls, ours, and the claimed ordering."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.reproduction.paper_jobs import analysis_job, write_texts

from longsumbench.core import DatasetSettings
from longsumbench.errors import UsageError
from longsumbench_reproduction.analysis.rank_recall import KEPT, RankRecall
from longsumbench_reproduction.papers.page_model import NOT_TESTED, ONE_SEED, REPRODUCED, Page
from longsumbench_reproduction.papers.paper_tables import PaperClaim
from longsumbench_reproduction.papers.rank_recall import rank_recall_page

CLAIM = PaperClaim(orders=("lstm > tfidf",), on="ROUGE-L recall")
WORDS = ["ash", "birch", "cedar", "elm", "fir", "oak", "pine", "yew"]
OPTIONS = {
    "rank": "tfidf,lstm",
    "unit": "paragraph",
    "seed": "1",
    "device": "cpu",
    "ranker.steps": 60,
    "ranker.dimension": 16,
    "ranker.vocabulary_size": 300,
}
PRINTED = {"tfidf": [24.86, 32.43, 40.87, 49.49], "lstm": [39.38, 46.74, 53.84, 60.42]}


def texts(folder: Path) -> DatasetSettings:
    """Write texts of seven paragraphs; the last two say the summary, and only the others name the title."""
    splits: dict[str, list[dict[str, object]]] = {"train": [], "validation": [], "test": []}
    for number in range(48):
        draw = random.Random(number)
        useful = [" ".join(draw.sample(WORDS, 5)) for _ in range(2)]
        others = [
            f"town{number} has {draw.choice(WORDS)} number {n} here town{number}" for n in range(5)
        ]
        paragraphs = [*others, *(f"notably {text}" for text in useful)]
        row = {
            "title": f"town{number}",
            "documents": [{"sections": [{"name": None, "paragraphs": paragraphs}]}],
        }
        name = "train" if number < 30 else "validation" if number < 36 else "test"
        splits[name].append({**row, "summary": " and ".join(useful)})
    return write_texts(folder, splits)


def page_of(folder: Path, **typed: Any) -> Page:
    datasets = {"WikiSum": texts(folder / "texts")}
    job = analysis_job("hierarchical-table1", datasets, OPTIONS, typed=typed, claims=[CLAIM])
    return rank_recall_page(job)


def test_printed_and_ours(tmp_path: Path) -> None:
    """Printed recalls are the paper's; a learned ranker that finds the useful paragraphs reproduces the claim.

    Where all paragraphs are chosen, nothing is tested.
    """
    page = page_of(tmp_path)
    for ranker, recalls in PRINTED.items():
        rows = page.numbers[page.numbers["row"] == ranker]
        assert rows[rows["kind"] == "printed"]["value"].tolist() == recalls
        assert len(rows[rows["kind"] == "ours"]) == len(recalls)
    # On other texts nothing is subtracted
    assert set(page.numbers["kind"]) == {"printed", "ours", "verdict"}
    assert {row[1] for row in page.blocks[0].rows} == {"printed on WikiSum", "ours on jsonl"}
    (verdict,) = page.verdicts
    assert verdict.outcome == ONE_SEED
    assert verdict.reason.endswith("; 1 of 4 numbers of paragraphs")


def test_a_ranker_is_trained_with_each_seed(tmp_path: Path) -> None:
    """With three seeds the claim is tested over examples and seeds, and our numbers are means over the seeds."""
    page = page_of(tmp_path, seed="1, 2,3")
    (verdict,) = page.verdicts
    assert (verdict.claim, verdict.outcome, verdict.seeds) == ("lstm > tfidf", REPRODUCED, 3)
    assert set(page.numbers[page.numbers["kind"] == "ours"]["seeds"]) == {3}
    assert any("means over 3 seeds" in sentence for sentence in page.conditions)
    with pytest.raises(UsageError, match="seed"):
        page_of(tmp_path, seed="1,x")


def test_only_examples_with_more_paragraphs_are_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twelve examples of three paragraphs, all kept, do not count; the eight with more differ by 20.

    Over all twenty the mean difference would be -22. One trained ranker decides nothing. One example with more than 10
    paragraphs is too few for a test.
    """
    gaps = np.array([-0.5] * 12 + [0.15, 0.25] * 4)
    recalls = {
        "tfidf": np.full((20, len(KEPT)), 0.5),
        "lstm": 0.5 + np.repeat(gaps[:, None], len(KEPT), axis=1),
    }
    found = RankRecall(
        "jsonl", "test", "paragraph", recalls, np.array([3] * 12 + [7] * 7 + [45]), 4.0
    )
    monkeypatch.setattr(
        "longsumbench_reproduction.papers.rank_recall.rank_recall", lambda *_: found
    )
    (verdict,) = page_of(tmp_path).verdicts
    assert (verdict.outcome, verdict.difference, verdict.n) == (ONE_SEED, pytest.approx(20), 8)
    assert verdict.reason == "8 examples; 1 of 4 numbers of paragraphs"


def test_a_ranker_is_not_named(tmp_path: Path) -> None:
    """Without the learned ranker the verdict says why nothing is tested; without any ranker, that is an error."""
    (verdict,) = page_of(tmp_path, rank="tfidf").verdicts
    assert (verdict.outcome, verdict.reason) == (NOT_TESTED, "rank= does not name lstm")
    with pytest.raises(UsageError, match="name rankers"):
        page_of(tmp_path, rank="")
