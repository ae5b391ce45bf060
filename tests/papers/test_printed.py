"""What the papers print: numbers of a row, the other rows of a table, and kinds of ROUGE-L."""

from longsumbench.papers.paper_tables import PaperRow, PaperTable
from longsumbench.papers.printed import find_printed_row, printed_block, read_other_rows

SEAL = PaperTable(
    kind="scores",
    title="",
    default="probe",
    scales={"probe": ""},
    datasets={"arXiv": {}, "PubMed": {}, "Search2Wiki": {}},
    rows={name: PaperRow(published={"system": name}) for name in ("Trunc", "CA", "EA", "SEAL")},
    prints="Table 2",
    source="zhao2020seal",
)


def pagesum(**rows: PaperRow) -> PaperTable:
    return PaperTable("scores", "", "probe", {}, {"arXiv": {}}, rows, prints="Table 2", source="liu2022pagesum")


def test_numbers_of_a_row_are_those_of_the_paper() -> None:
    """SEAL prints both kinds of ROUGE-L of its system on arXiv, and they have two columns."""
    found = find_printed_row(SEAL, "SEAL", "arXiv")
    assert found
    assert found.numbers == {"R-1": "44.3", "R-2": "18.0", "R-L sentence": "26.3", "R-L summary": "39.3"}
    assert (found.label, found.source) == ("SEAL", "own")
    on_search = find_printed_row(SEAL, "SEAL", "Search2Wiki")
    assert on_search
    assert on_search.numbers == {"R-1": "37.1", "R-2": "20.3", "R-L sentence": "29.1"}


def test_other_rows_name_who_got_the_numbers() -> None:
    """Quoted numbers, re-run ones and the paper's own are distinguished; those that are contradicted are marked."""
    rows = read_other_rows(pagesum(PageSum=PaperRow(published={"system": "PageSum"})), ["arXiv"])
    primera = [row for row in rows if (row.system, row.dataset) == ("PRIMERA", "arXiv")]
    assert [(row.source, row.numbers["R-1"]) for row in primera] == [("quoted", "47.60"), ("re-run †", "47.65")]
    assert ("PageSum", "arXiv") not in [(row.system, row.dataset) for row in rows]


def test_rows_on_datasets_that_are_not_read_keep_their_label() -> None:
    """The paper table's rows on other datasets follow as printed, under their labels."""
    rows = read_other_rows(SEAL, ["arXiv"])
    assert {row.dataset for row in rows if row.label == "SEAL"} == {"PubMed", "Search2Wiki"}
    assert "GLC (Xiao & Carenini 2019)" in {row.label for row in rows}


def test_a_selector_can_name_who_got_the_numbers() -> None:
    """LED with 16,384 tokens is printed twice, quoted and re-run; a row selects one of them."""
    chosen = {"system": "LED", "input_tokens": "16384", "provenance": "reproduced-by"}
    found = find_printed_row(pagesum(LED=PaperRow(published=chosen)), "LED", "arXiv")
    assert found
    assert found.numbers == {"R-1": "48.10", "R-2": "19.78", "R-L summary": "43.08"}


def test_a_table_of_precision_has_only_precision() -> None:
    """ETADS prints precision in Table 5 and recall in Table 6; ROUGE-L of an unstated kind has its own column."""
    row = PaperRow(published={"variant": "saliency-selection on layers 1-4"})
    options = {"prints": "Table 5", "source": "you2019etads", "part": "p"}
    table5 = PaperTable("scores", "", "probe", {}, {"CNN/DailyMail": {}}, {"1–4": row}, **options)  # type: ignore[arg-type]
    found = find_printed_row(table5, "1–4", "CNN/DailyMail")
    assert found
    assert found.numbers == {"R-1": "43.06", "R-2": "20.85", "R-L unstated": "40.12"}
    assert len(read_other_rows(table5, ["CNN/DailyMail"])) == 3


def test_the_block_of_printed_rows_separates_the_kinds_of_rouge_l() -> None:
    """A number is in the column of its kind only, and columns without numbers are left out."""
    block = printed_block(SEAL, read_other_rows(SEAL, list(SEAL.datasets)))
    assert block
    assert block.columns == ("dataset", "system", "R-1", "R-2", "R-L\nsentence", "R-L\nsummary", "source")
    rows = {(row[0], row[1]): row for row in block.rows}
    assert rows["arXiv", "PEGASUS"][2:] == ["44.7", "17.3", "25.8", "", "quoted"]
    assert rows["arXiv", "DA (Cohan et al. 2018)"][2:] == ["35.8", "11.1", "", "31.8", "quoted"]
    assert printed_block(SEAL, []) is None
