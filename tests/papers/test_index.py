"""The index of all claims: a table and a picture, from the pages that are written."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from support.paper_tables import offer, toy_paper_table

from longsumbench.errors import DataError
from longsumbench.leaderboards.seed_groups import NOT_LEARNED
from longsumbench.papers import write
from longsumbench.papers.page import (
    ALIKE_ROWS,
    NOT_TESTED,
    OUTCOMES,
    REPRODUCED,
    UNDECIDED,
    MadePage,
    Verdict,
    describe_tested,
)
from longsumbench.papers.write import claims_table, summarize_outcomes, write_index
from longsumbench.runs.results import Results


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
        Verdict("a > b", "rouge1", outcome, ("Toys",), seeds=3, says=f"<{outcome}>")
        for outcome in outcomes
    )
    (folder / "papers").mkdir(exist_ok=True)
    (folder / "papers" / f"{name}.json").write_bytes(
        msgspec.json.encode(MadePage(name, "probe", claims=claims))
    )


def rows_of(text: str) -> Sequence[str]:
    """Return the rows of a Markdown table, without its head."""
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def test_every_claim_is_in_the_index(tmp_path: Path) -> None:
    """The HTML page, the Markdown page and docs/papers.md have the claims of all pages, linked to them."""
    write_json(tmp_path, "toy-table1", REPRODUCED, NOT_LEARNED)
    write_json(tmp_path, "best-table2", UNDECIDED)
    paths = write_index(Results(tmp_path))
    assert [path.name for path in paths] == ["index.html", "index.md", "claims.png"]
    html, text = (path.read_text(encoding="utf-8") for path in paths[:2])
    assert html.count("<tr><td") == len(rows_of(text)) == 3
    assert '<a href="best-table2.html">BEST, Table 2: Best</a>' in html
    assert '<td class="l reproduced">reproduced</td>' in html
    assert "&lt;not learned&gt;" in html
    assert rows_of(text)[2].endswith("| undecided | 3 |  | [best-table2](best-table2.md) |")
    assert rows_of(claims_table(Results(tmp_path), "x/"))[2].endswith(
        "[best-table2](x/best-table2.md) |"
    )


def test_titles_count_the_papers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The title of the page is that of its picture, and has the number of papers with claims."""
    titles = []
    monkeypatch.setattr(
        write, "add_title_and_notes", lambda figure, title, notes: titles.append(title)
    )
    for number, name in enumerate(("toy-table1", "best-table2"), start=1):
        write_json(tmp_path, name, REPRODUCED)
        text = write_index(Results(tmp_path))[1].read_text(encoding="utf-8")
        assert (
            titles[-1]
            == f"The claims of {number} paper{'s' if number > 1 else ''}, and what holds here"
        )
        assert text.startswith(f"# {titles[-1]}\n")


def test_the_column_has_the_texts_that_were_used() -> None:
    """A claim about arXiv that was tested on generated reports says so; what was not tested was tested on nothing."""
    table = toy_paper_table(
        datasets={
            "arXiv": {
                "paper": "dataset=arxiv",
                "probe": "dataset=probe dataset.document_length=128",
            }
        }
    )
    reproduced, untested = (
        Verdict("a > b", "rouge1", outcome, ("arXiv",)) for outcome in (REPRODUCED, NOT_TESTED)
    )
    assert describe_tested(table, "probe", reproduced) == "R-1, probe (for arXiv)"
    assert describe_tested(table, "paper", reproduced) == "R-1, arxiv"
    assert describe_tested(table, "probe", untested) == "nothing (for arXiv)"


def test_several_texts_and_measures_are_named() -> None:
    """A claim with several datasets and measures has all of them in the column; a difference of two is "minus"."""
    table = toy_paper_table(
        datasets={"arXiv": {"probe": "dataset=probe"}, "PubMed": {"probe": "dataset=pydoc"}}
    )
    both = Verdict("a > b", "rouge1, rouge1 - rouge2", REPRODUCED, ("arXiv", "PubMed"))
    assert (
        describe_tested(table, "probe", both)
        == "R-1, R-1 minus R-2, probe (for arXiv) and pydoc (for PubMed)"
    )


def test_decided_claims_are_counted(tmp_path: Path) -> None:
    """The index says how many claims are decided, by outcome; undecided and untested ones count among all."""
    write_json(tmp_path, "toy-table1", REPRODUCED, NOT_LEARNED, REPRODUCED)
    write_json(tmp_path, "best-table2", UNDECIDED, ALIKE_ROWS, NOT_TESTED)
    expected = "3 of 6 claims are decided: 2 reproduced, 1 alike."
    assert claims_table(Results(tmp_path)).startswith(expected)
    assert all(
        expected in path.read_text(encoding="utf-8") for path in write_index(Results(tmp_path))[:2]
    )
    assert summarize_outcomes([]) == "0 of 0 claims are decided: none."


def test_the_picture_shows_the_outcomes(tmp_path: Path) -> None:
    """Other outcomes give another picture, the same ones the same bytes; every outcome has its own colour."""
    pictures = []
    for outcomes in ((REPRODUCED, REPRODUCED), (REPRODUCED, UNDECIDED), (REPRODUCED, REPRODUCED)):
        write_json(tmp_path, "toy-table1", *outcomes)
        pictures.append(write_index(Results(tmp_path))[2].read_bytes())
    assert pictures[0] == pictures[2] != pictures[1]
    assert len(set(OUTCOMES.values())) == len(OUTCOMES)


def test_without_claims_there_is_no_index(tmp_path: Path) -> None:
    """Tables without a claim are not in the index; a damaged file is an error that names the command."""
    write_json(tmp_path, "toy-table1")
    assert write_index(Results(tmp_path)) == []
    assert rows_of(claims_table(Results(tmp_path))) == []
    (tmp_path / "papers" / "toy-table1.json").write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match="the same `longsumbench paper toy-table1` writes it again"):
        write_index(Results(tmp_path))
