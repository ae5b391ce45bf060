"""The index of all claims: a table and a picture, from the pages that are written."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from support.paper_tables import offer, toy_paper_table

from longsumbench.leaderboards.seed_groups import NOT_LEARNED
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_files import (
    claims_table,
    summarize_outcomes,
    write_index,
)
from longsumbench_reproduction.papers.page_model import (
    ALIKE_ROWS,
    NOT_TESTED,
    OUTCOMES,
    REPRODUCED,
    UNDECIDED,
    ClaimOutcome,
    PaperPageFile,
    describe_tested,
)


@pytest.fixture(autouse=True)
def two_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables of two papers."""
    other = toy_paper_table(
        "best-table2", title="Best", citation="Somebody 2021, BEST", prints="Table 2"
    )
    offer(monkeypatch, toy_paper_table(), other)


def write_json(folder: Path, name: str, *outcomes: str) -> None:
    """Write NAME.json with a claim of each outcome."""
    claims = tuple(
        ClaimOutcome("a > b", "rouge1", outcome, ("Toys",), seeds=3, says=f"<{outcome}>")
        for outcome in outcomes
    )
    (folder / "papers").mkdir(exist_ok=True)
    (folder / "papers" / f"{name}.json").write_bytes(
        msgspec.json.encode(PaperPageFile(name, "probe", claims=claims))
    )


def decided(p: float, runs: str, outcome: str = REPRODUCED, withdrawn: str = "") -> ClaimOutcome:
    """Return a verdict with the p-value of its test alone."""
    return ClaimOutcome(
        "a > b", "rouge1", outcome, ("Toys",), runs=runs, p_alone=p, withdrawn=withdrawn
    )


def test_all_claims_are_one_family() -> None:
    """Three claims are decided by their pages; of five tests together, 0.03 does not count: Holm by hand."""
    pages = [
        PaperPageFile(
            "toy-table1", "probe", claims=(decided(0.001, "r1 r2"), decided(0.012, "r3 r4"))
        ),
        PaperPageFile(
            "best-table2", "probe", claims=(decided(0.2, "r5", UNDECIDED), decided(0.03, "r6"))
        ),
        PaperPageFile(
            "toy-table3",
            "probe",
            claims=(
                decided(0.5, "r7", UNDECIDED),
                decided(0.9, "r8", NOT_LEARNED, withdrawn="seen"),
            ),
        ),
    ]
    # 0.001 × 5, then 0.012 × 4 = 0.048, then 0.03 × 3 = 0.09
    assert summarize_outcomes(pages) == (
        "3 of 5 claims are decided: 3 reproduced. With the 5 tested claims of all papers corrected together (Holm), 2 of "
        "these 3 remain."
    )


def test_a_test_that_two_pages_share_counts_once() -> None:
    """The same runs by the same measure, in any order, are one test; another measure is another one."""
    first, again = decided(0.001, "r1 r2"), decided(0.001, "r2 r1")
    other = msgspec.structs.replace(first, measure="rouge2")
    pages = [
        PaperPageFile(name, "probe", claims=(claim,))
        for name, claim in (("toy-table1", first), ("best-table2", again))
    ]
    assert summarize_outcomes(pages).startswith("1 of 1 claim ")
    pages.append(PaperPageFile("toy-table3", "probe", claims=(other,)))
    assert summarize_outcomes(pages).startswith("2 of 2 claims ")


def rows_of(text: str) -> Sequence[str]:
    """Return the rows of a Markdown table, without its head."""
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def read_index(folder: Path) -> str:
    """Write the index; return its text."""
    write_index(Results(folder))
    return (folder / "papers" / "index.md").read_text()


def test_every_claim_is_in_the_index(tmp_path: Path) -> None:
    """The index has the claims of all pages, linked to them."""
    write_json(tmp_path, "toy-table1", REPRODUCED, NOT_LEARNED)
    write_json(tmp_path, "best-table2", UNDECIDED)
    rows = rows_of(read_index(tmp_path))
    assert len(rows) == 3
    assert rows[1].startswith("| &lt;not learned> |")
    assert rows[2].endswith("| undecided | 3 |  | [best-table2](best-table2.md) |")


@pytest.mark.parametrize(
    ("scale", "outcome", "text"),
    [
        ("probe", REPRODUCED, "R-1, R-1 minus R-2, probe (for arXiv) and aclsum (for PubMed)"),
        ("paper", REPRODUCED, "R-1, R-1 minus R-2, arxiv and pubmed"),
        ("probe", NOT_TESTED, "nothing (for arXiv, PubMed)"),
    ],
)
def test_the_column_has_the_texts_that_were_used(scale: str, outcome: str, text: str) -> None:
    """It names the measures and our texts, with the paper's where they are others; nothing without a test."""
    datasets = {
        "arXiv": {"paper": "dataset=arxiv", "probe": "dataset=probe dataset.document_length=128"},
        "PubMed": {"paper": "dataset=pubmed", "probe": "dataset=aclsum"},
    }
    claim = ClaimOutcome("a > b", "rouge1, rouge1 - rouge2", outcome, ("arXiv", "PubMed"))
    assert describe_tested(toy_paper_table(datasets=datasets), scale, claim) == text


def test_decided_claims_are_counted(tmp_path: Path) -> None:
    """The index says how many claims are decided, by outcome; undecided and untested ones count among all."""
    write_json(tmp_path, "toy-table1", REPRODUCED, NOT_LEARNED, REPRODUCED)
    write_json(tmp_path, "best-table2", UNDECIDED, ALIKE_ROWS, NOT_TESTED)
    expected = "3 of 6 claims are decided: 2 reproduced, 1 alike."
    assert claims_table(Results(tmp_path)).startswith(expected)
    assert summarize_outcomes([]) == "0 of 0 claims are decided: none."


def test_the_picture_shows_the_outcomes(tmp_path: Path) -> None:
    """Other outcomes give another picture; every outcome has its own colour."""
    pictures = set()
    for outcome in (REPRODUCED, UNDECIDED):
        write_json(tmp_path, "toy-table1", outcome)
        write_index(Results(tmp_path))
        pictures.add((tmp_path / "papers" / "claims.png").read_bytes())
    assert len(pictures) == 2
    assert len(set(OUTCOMES.values())) == len(OUTCOMES)


def test_without_claims_there_is_no_index(tmp_path: Path) -> None:
    """Tables without a claim are not in the index."""
    write_json(tmp_path, "toy-table1")
    write_index(Results(tmp_path))
    assert not (tmp_path / "papers" / "index.md").exists()
    assert rows_of(claims_table(Results(tmp_path))) == []
