"""Tables of scores: printed, ours and their difference, by kind of ROUGE-L; and the CSV with all of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.reproduction.paper_jobs import finished_run, judge, paper_job

from longsumbench.core import DatasetSettings
from longsumbench.leaderboards.seed_groups import NOT_LEARNED, Learned, ResultRow, ScoresOfRuns
from longsumbench.runs.results import Results
from longsumbench.views.tables import Block
from longsumbench_reproduction.papers.page_model import Page
from longsumbench_reproduction.papers.paper_tables import (
    PaperClaim,
    PaperRow,
    PaperTable,
    find_paper_table,
)
from longsumbench_reproduction.papers.scores import scores_page

SCORES = [0.30, 0.42, 0.48, 0.40]  # mean 0.40


def seal(**changes: Any) -> PaperTable:
    """Table 2 of SEAL with two of its rows."""
    rows = {name: PaperRow(published={"system": name}) for name in ("EA", "SEAL")}
    settings = {
        "datasets": {"arXiv": {}, "PubMed": {}},
        "prints": "Table 2",
        "source": "zhao2020seal",
        "rows": rows,
    }
    return PaperTable("scores", "", "probe", {}, **{**settings, **changes})


def row_of(block: Block, label: str) -> dict[str, str]:
    """The cells of a row, by column."""
    (cells,) = [row for row in block.rows if row[0] == label]
    return {name.replace("\n", " "): cell for name, cell in zip(block.columns, cells, strict=True)}


def page(folder: Path, paper_table: PaperTable, **changes: Any) -> Page:
    """The page of a table whose row SEAL has a run."""
    run = finished_run(Results(folder), "seal", SCORES, **changes)
    return scores_page(paper_job(paper_table, folder, {"EA": [None], "SEAL": [run]}))


def test_the_difference_is_ours_minus_printed(tmp_path: Path) -> None:
    """The printed number is a constant, so the difference has the interval of ours."""
    scores = page(tmp_path, seal())
    cells = row_of(scores.blocks[0], "SEAL")
    assert (cells["R-1 printed"], cells["R-1 difference"][:4]) == ("44.3", "-4.3")
    assert cells["R-1 ours"].startswith("40.0 ±")
    assert cells["R-1 ours"].partition("±")[2] == cells["R-1 difference"].partition("±")[2]
    numbers = scores.numbers.query("row == 'SEAL' and measure == 'rouge1' and dataset == 'arXiv'")
    rows = numbers.set_index("kind")[["value", "low", "high"]].astype(float).T
    assert rows["printed"]["value"] == 44.3
    assert list(rows["ours"] - rows["difference"]) == pytest.approx([44.3] * 3)


def test_kinds_of_rouge_l_never_share_a_column(tmp_path: Path) -> None:
    """SEAL prints R-L of both kinds; each has our number of the same kind."""
    found = page(tmp_path, seal())
    cells = row_of(found.blocks[0], "SEAL")
    assert (cells["R-L sentence printed"], cells["R-L summary printed"]) == ("26.3", "39.3")
    assert cells["R-L sentence difference"].startswith("+13.7")
    assert cells["R-L summary difference"].startswith("+0.7")
    assert row_of(found.blocks[0], "EA")["R-L summary printed"] == ""


def test_rouge_l_of_an_unstated_kind_has_no_difference(tmp_path: Path) -> None:
    """The Hierarchical Transformer's R-L is shown in its own column, without ours."""
    rows = {"SEAL": PaperRow(published={"system": "HT", "variant": "+ Similarity Graph"})}
    paper_table = seal(rows=rows, datasets={"WikiSum": {}}, source="liu2019hiersumm")
    run = finished_run(Results(tmp_path), "seal", SCORES)
    found = scores_page(
        paper_job(paper_table, tmp_path, {"SEAL": [run]}, "WikiSum", DatasetSettings("wikisum"))
    )
    cells = row_of(found.blocks[0], "SEAL")
    of_rouge_l = [name for name in cells if name.startswith("R-L")]
    assert of_rouge_l == ["R-L sentence ours", "R-L unstated printed"]
    assert cells["R-L unstated printed"] == "35.08"
    assert cells["R-1 difference"].startswith("-0.80 ±")
    assert "does not state the kind of its R-L" in " ".join(found.blocks[0].footnotes)


def test_a_table_of_precision_compares_precision(tmp_path: Path) -> None:
    """ETADS prints precision in Table 5, so ours is precision as well, in the verdicts too."""
    paper_table, results = find_paper_table("etads-table5"), Results(tmp_path)
    runs = {
        "[1-4]": [finished_run(results, "etads", SCORES)],
        "-": [finished_run(results, "ea", [0.2] * 4)],
    }
    settings = DatasetSettings("cnn_dailymail")
    scores = scores_page(paper_job(paper_table, tmp_path, runs, "CNN/DailyMail", settings))
    cells = row_of(scores.blocks[0], "[1-4]")
    assert (cells["R-1 printed"], cells["R-1 ours"][:6]) == ("43.06", "50.00 ")
    assert cells["R-1 difference"].startswith("+6.94")
    assert "ROUGE precision" in scores.blocks[0].footnotes[0]
    (verdict,) = (verdict for verdict in scores.verdicts if verdict.claim == "[1-4] > -")
    assert verdict.difference == pytest.approx(20)


def test_on_other_texts_nothing_is_subtracted(tmp_path: Path) -> None:
    """There are no differences in the table and in the CSV, and the columns name the texts of each number."""
    run = finished_run(Results(tmp_path), "seal", SCORES)
    job = paper_job(seal(), tmp_path, {"SEAL": [run]}, settings=DatasetSettings("probe"))
    scores = scores_page(job)
    cells = row_of(scores.blocks[0], "SEAL")
    assert cells["R-1 printed on arXiv"] == "44.3"
    assert cells["R-1 ours on probe"].startswith("40.0 ±")
    assert not any("difference" in name for name in cells)
    assert not any("Difference" in note for note in scores.blocks[0].footnotes)
    assert set(scores.numbers["kind"]) == {"printed", "ours"}


def test_rows_that_did_not_learn_are_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row has the word of the gate, the floor and the lift; a row without a run has none."""
    judge(monkeypatch, Learned(NOT_LEARNED, "2 %", 41.23, -1.7))
    (block, *_) = page(tmp_path, seal()).blocks
    names = ("learned", "floor", "lift, %")
    assert [row_of(block, "SEAL")[name] for name in names] == [NOT_LEARNED, "41.2", "-2"]
    assert [row_of(block, "EA")[name] for name in names] == ["", "", ""]


def test_the_gate_judges_f1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a table of precision the gate sees the scores of the run, not precision in the place of F1."""
    seen = []

    def judged(rows: Sequence[ResultRow], scores: ScoresOfRuns) -> dict[str, Learned]:
        (row,) = rows
        seen.append(
            (row.representative.evaluation.scores["rouge1"].f, scores[row.key]["rouge1_f"].mean())
        )
        return {row.key: Learned()}

    monkeypatch.setattr("longsumbench_reproduction.papers.published_rows.gate_rows", judged)
    page(tmp_path, seal(part="p"))
    assert seen == [(pytest.approx(40), pytest.approx(0.4))]


def test_the_parameters_of_a_table(tmp_path: Path) -> None:
    """ETADS prints weights of embeddings and one stack in units of 10,000; ours are those of our layers by hand.

    An encoder layer has four projections, two of the feed-forward network, and two norms. A decoder layer has four
    projections and a norm more, and the decoder a bias for each of 50,000 words.
    """
    paper_table = find_paper_table("etads-table4")
    numbers = scores_page(paper_job(paper_table, tmp_path, {}, "CNN/DailyMail")).numbers
    found = numbers[numbers["measure"] == "parameters"].set_index(["kind", "row"])["value"]
    width, inner, words = 512, 2048, 50_000
    attention, norm = 4 * (width * width + width), 2 * width
    feed_forward = width * inner + inner + inner * width + width
    encoder, decoder = attention + feed_forward + 2 * norm, 2 * attention + feed_forward + 3 * norm
    for layers in (2, 4, 6):
        expected = {
            f"Encoder, {layers} layers": words * width + layers * encoder,
            f"Decoder, {layers} layers": words * width + layers * decoder + words,
        }
        for row, count in expected.items():
            assert found["ours", row] == count
            assert abs(found["printed", row] - count) < 10_000


def test_the_csv_has_all_numbers(tmp_path: Path) -> None:
    """Each printed number of the table is in the CSV once, and so is each of ours."""
    numbers = page(tmp_path, seal(claims=(PaperClaim(orders=("SEAL > EA",)),))).numbers
    printed = numbers[numbers["kind"] == "printed"]
    assert len(printed) == 62  # of Table 2 in published.csv
    assert not printed.duplicated(["dataset", "row", "measure", "source"]).any()
    ours = numbers[numbers["kind"] == "ours"]
    assert list(ours["measure"]) == ["rouge1", "rouge2", "rougeL", "rougeLsum"]
    assert set(ours[["row", "n", "runs"]].itertuples(index=False)) == {("SEAL", 4, "seal00000001")}
    assert list(numbers["kind"])[-2:] == ["printed", "verdict"]
