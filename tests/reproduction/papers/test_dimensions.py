"""The dimensions of SEAL's Table 4: planned settings next to the printed ones."""

from pathlib import Path

import pytest
from support.paper_tables import toy_paper_table
from support.paths import SHARED
from support.requirements import SHARED_FOLDER

from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_model import Job
from longsumbench_reproduction.papers.paper_tables import PaperRow
from longsumbench_reproduction.papers.run_planning import plan_paper_table
from longsumbench_reproduction.papers.scores import PRINTED_DIMENSIONS, dimensions_page

TEXT = SHARED / "papers" / "seal.txt"
TABLE4 = toy_paper_table(
    kind="dimensions",
    default="paper",
    scales={"paper": "scale=paper", "probe": "scale=probe"},
    datasets={
        "arXiv": {"paper": "dataset=arxiv", "probe": "dataset=probe"},
        "PubMed": {"paper": "dataset=pubmed"},
        "Search2Wiki": {"paper": "dataset=search2wiki"},
    },
    rows={"CA": PaperRow("model=ca"), "EA": PaperRow("model=ea"), "SEAL": PaperRow("model=seal")},
)


def planned(folder: Path, *words: str, scale: str = "paper") -> Job:
    """Plan Table 4."""
    return plan_paper_table(TABLE4, [f"scale={scale}", *words], Results(folder))


def test_planned_dimensions_are_those_of_the_paper(tmp_path: Path) -> None:
    """At the paper's scale no setting of any row differs; L_input is the product that the paper rounds."""
    page = dimensions_page(planned(tmp_path))
    assert page.conditions == ()
    (block,) = page.blocks
    rows = [" ".join(row) for row in block.rows[:5]]
    assert rows[2].rstrip() == "EA arXiv 28672 128 224 1024 768"
    assert rows[3] == "SEAL arXiv 28672 128 224 1024 768 96 8"
    for row, start in zip(
        rows, ("printed arXiv", "CA arXiv", "EA", "SEAL", "printed PubMed"), strict=True
    ):
        assert row.startswith(start)
    assert len(page.numbers) == 3 * (7 + 5 + 5 + 7)


def test_another_setting_is_named(tmp_path: Path) -> None:
    """A sentence has the row, the dataset and both numbers; another scale is not compared."""
    found = dimensions_page(planned(tmp_path, "model.segment_length=48")).conditions
    assert found[:2] == (
        "SEAL on arXiv has L_seg = 48; the paper prints 96.",
        "SEAL on arXiv has N_seg = 16; the paper prints 8.",
    )
    (sentence,) = dimensions_page(planned(tmp_path, scale="probe")).conditions
    assert "scale=probe" in sentence


@pytest.mark.skipif(not TEXT.is_file(), reason=SHARED_FOLDER)
def test_printed_dimensions_are_those_of_the_text() -> None:
    """Each line of the paper's Table 4 is as printed."""
    lines = TEXT.read_text().splitlines()
    for dataset, printed in PRINTED_DIMENSIONS.items():
        assert " ".join([dataset, *printed]) in lines
