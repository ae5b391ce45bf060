"""PageSum's Figure 4 as a paper table: summaries that join neighbours, and summaries that join the ends of a text."""

from pathlib import Path

import pytest
from support.reproduction.paper_jobs import analysis_job, write_texts

from longsumbench.core import DatasetSettings
from longsumbench_reproduction.papers.distances import fusions_page
from longsumbench_reproduction.papers.page_model import (
    NOT_TESTED,
    REPRODUCED,
    REVERSED,
    ClaimOutcome,
)
from longsumbench_reproduction.papers.paper_tables import PaperClaim

CLAIM = PaperClaim(orders=("near > random pairs",), on="% of the pairs")
BY_CHANCE = (
    9 + 8 + 7 + 6
) / 45  # share of the pairs of ten sentences that are at most four sentences apart
OPTIONS = {"rouge": "1", "overlap": 20.0, "rise": 10.0, "bins": 10, "sample": None}


def texts(folder: Path, *seconds: int) -> DatasetSettings:
    """Write texts of ten sentences, whose summary joins the first sentence and the one at a place; 0: none."""
    rows = []
    for second in seconds:
        sentences = [f"a{n} b{n} c{n} d{n}" for n in range(10)]
        joined = f"{sentences[0]} {sentences[second]}." if second else "Nothing of it."
        rows.append({"document": " ".join(f"{one}." for one in sentences), "summary": joined})
    return write_texts(folder, {"test": rows})


def judge(**datasets: DatasetSettings) -> ClaimOutcome:
    (verdict,) = fusions_page(
        analysis_job("pagesum-figure4", datasets, OPTIONS, claims=[CLAIM])
    ).verdicts
    return verdict


@pytest.mark.parametrize(("second", "outcome"), [(1, REPRODUCED), (9, REVERSED), (0, NOT_TESTED)])
def test_distances_of_fused_sentences(second: int, outcome: str, tmp_path: Path) -> None:
    """Of 30 pairs 29 are neighbours, or ends of a text, where two thirds of random pairs are near; or there is none."""
    other = 10 - second if second else 0
    datasets = {"arXiv": texts(tmp_path / "texts", *[second] * 29, other)}
    page = fusions_page(analysis_job("pagesum-figure4", datasets, OPTIONS, claims=[CLAIM]))
    assert page.verdicts[0].outcome == outcome
    assert list(page.pictures) == ["pagesum-figure4-arxiv.png"]
    if outcome != NOT_TESTED:
        near = 29 if outcome == REPRODUCED else 1
        assert page.verdicts[0].difference == pytest.approx(100 * (near / 30 - BY_CHANCE))
        shares = page.numbers[
            page.numbers["row"] == f"distance {second / 10:g}–{(second + 1) / 10:g}"
        ]
        assert shares["value"].tolist() == [pytest.approx(100 * 29 / 30, abs=1e-3), 29]


def test_near_pairs_are_compared_with_random_pairs(tmp_path: Path) -> None:
    """Of 400 pairs 58 % are near. That is more than half, but significantly less than of random pairs."""
    verdict = judge(arXiv=texts(tmp_path / "texts", *[1] * 232, *[9] * 168))
    assert (verdict.claim, verdict.outcome, verdict.n, verdict.seeds) == (
        "near > random pairs",
        REVERSED,
        400,
        None,
    )
    assert verdict.difference == pytest.approx(58 - 100 * BY_CHANCE)
    assert verdict.reason.endswith("58.0 % of the pairs, of random pairs 66.7 % on arXiv")
    assert verdict.high is not None
    error = 100 * (0.58 * 0.42 / 399) ** 0.5  # one pair in each text: a binomial share
    assert verdict.high == pytest.approx(58 - 100 * BY_CHANCE + 1.966 * error, abs=0.01)
