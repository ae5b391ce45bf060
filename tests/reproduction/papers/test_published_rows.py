"""What the papers print: numbers of a row, the other rows of a table, and kinds of ROUGE-L."""

from longsumbench_reproduction.papers.paper_tables import (
    PaperRow,
    PaperTable,
    find_paper_table,
)
from longsumbench_reproduction.papers.published_rows import read_other_rows


def pagesum(**rows: PaperRow) -> PaperTable:
    return PaperTable(
        "scores", "", "probe", {}, {"arXiv": {}}, rows, prints="Table 2", source="liu2022pagesum"
    )


def test_other_rows_name_who_got_the_numbers() -> None:
    """Quoted numbers, re-run ones and the paper's own are distinguished; those that are contradicted are marked."""
    rows = read_other_rows(pagesum(PageSum=PaperRow(published={"system": "PageSum"})), ["arXiv"])
    primera = [row for row in rows if (row.system, row.dataset) == ("PRIMERA", "arXiv")]
    assert [(row.source, row.numbers["R-1"]) for row in primera] == [
        ("quoted", "47.60"),
        ("re-run †", "47.65"),
    ]
    assert ("PageSum", "arXiv") not in [(row.system, row.dataset) for row in rows]


def test_rows_on_datasets_that_are_not_read_keep_their_label() -> None:
    """The paper table's rows on other datasets follow as printed, under their labels."""
    rows = read_other_rows(find_paper_table("seal-table2"), ["arXiv"])
    assert {row.dataset for row in rows if row.label == "SEAL"} == {"PubMed", "Search2Wiki"}
    assert "GLC (Xiao & Carenini 2019)" in {row.label for row in rows}
