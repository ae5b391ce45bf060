"""PageSum's Figure 4 as an artifact: summaries that join neighbours, and summaries that join the ends of a text."""

from pathlib import Path

import pytest
from support.analysis_jobs import analysis_job, write_texts

from longsumbench.api import DatasetSettings
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, REVERSED
from longsumbench.papers.texts.fusions import fusions_page

OPTIONS = {"rouge": "1", "overlap": 20.0, "rise": 10.0, "bins": 10, "sample": None}


def texts(folder: Path, *seconds: int) -> DatasetSettings:
    """Write texts of ten sentences, whose summary joins the first sentence and the one at a place; 0: none."""
    rows = []
    for second in seconds:
        sentences = [f"a{n} b{n} c{n} d{n}" for n in range(10)]
        joined = f"{sentences[0]} {sentences[second]}." if second else "Nothing of it."
        rows.append({"document": " ".join(f"{one}." for one in sentences), "summary": joined})
    return write_texts(folder, {"test": rows})


@pytest.mark.parametrize(("second", "outcome"), [(1, REPRODUCED), (9, REVERSED), (0, NOT_TESTED)])
def test_distances_of_fused_sentences(second: int, outcome: str, tmp_path: Path) -> None:
    """Pairs of neighbours are near and pairs of the ends are far; without a pair nothing is tested.

    Of random pairs of ten sentences, 9 + 8 + 7 + 6 of 45 are less than half of the text apart: 66.7 %.
    """
    page = fusions_page(analysis_job("pagesum-figure4", {"arXiv": texts(tmp_path / "texts", *[second] * 12)}, OPTIONS))
    assert page.verdicts[0].outcome == outcome
    assert list(page.pictures) == ["pagesum-figure4-arxiv.png"]
    if outcome != NOT_TESTED:
        sign = 1 if outcome == REPRODUCED else -1
        assert page.verdicts[0].difference == sign * 100
        assert "of random pairs 66.7 %" in page.verdicts[1].reason
        shares = page.numbers[page.numbers["row"] == f"distance {second / 10:g}–{(second + 1) / 10:g}"]
        assert shares["value"].tolist() == [100.0, 12]


def test_fewer_near_pairs_than_by_chance(tmp_path: Path) -> None:
    """Of 400 pairs 58 % are neighbours: more than half, as claimed, but fewer than the 66.7 % of random pairs."""
    datasets = {"arXiv": texts(tmp_path / "texts", *[1] * 232, *[9] * 168)}
    claimed, by_chance = fusions_page(analysis_job("pagesum-figure4", datasets, OPTIONS)).verdicts
    assert (claimed.claim, claimed.outcome) == ("near > far", REPRODUCED)
    assert claimed.difference == pytest.approx(58 - 42)
    assert (by_chance.claim, by_chance.outcome) == ("near > near by chance", REVERSED)
    assert by_chance.difference == pytest.approx(58 - 200 / 3)
