"""The generated page docs/papers.md."""

import re
from pathlib import Path

import msgspec
from support.paths import ROOT

from longsumbench.papers.artifacts import find_artifact, read_artifacts
from longsumbench.papers.cost import ArtifactCost, write_costs
from longsumbench.papers.listing import describe_status
from longsumbench.papers.overview import papers_page
from longsumbench.papers.write import MadePage
from longsumbench.runs.results import Results


def test_the_page_is_current() -> None:
    """docs/papers.md is what benchmarks/papers_page.py --write writes."""
    page = (ROOT / "docs/papers.md").read_text(encoding="utf-8")
    assert papers_page(Results(ROOT / "results/reference")) == page


def test_every_table_has_a_row_and_a_section_with_its_commands(tmp_path: Path) -> None:
    """Each is in the overview, with a link to its section, which has the command of the miniature."""
    page = papers_page(Results(tmp_path))
    names = list(read_artifacts())
    assert re.findall(r"^\| \[([\w-]+)\]\(#\1\)", page, re.MULTILINE) == names
    assert re.findall(r"^### ([\w-]+)$", page, re.MULTILINE) == names
    assert all(f"\n    longsumbench paper {name}\n" in page for name in names)


def test_what_was_run_here_is_shown_with_its_outcome(tmp_path: Path) -> None:
    """The scale, the runs, their time (also of all) and the verdicts of the page; the hours of the estimate."""
    results = Results(tmp_path)
    write_costs({"seal-table2": ArtifactCost(12, 0, 990.0)}, results)
    found = MadePage("seal-table2", "probe", (), {"one": 60, "two": 540}, (), {"reproduced": 3, "undecided": 1})
    (tmp_path / "papers/seal-table2.json").write_bytes(msgspec.json.encode(found))
    shared = MadePage("seal-table3", "probe", (), {"one": 60})
    (tmp_path / "papers/seal-table3.json").write_bytes(msgspec.json.encode(shared))
    page = papers_page(results)
    status = describe_status(results, find_artifact("seal-table2"))
    assert "10.0 min" in status
    assert f"[{status}](../results/reference/papers/seal-table2.md) | 990 |" in page
    assert "took 10.0 min in total" in page
    assert (
        f"* At paper scale: 12 runs, about 990 h (41 days) on one A100.\n* Run here: {status}: see the [page](" in page
    )


def test_texts_that_cannot_be_downloaded_are_asked_for(tmp_path: Path) -> None:
    """Search2Wiki is not on the hub, so the command at paper scale names its folder."""
    assert "longsumbench paper seal-table2 scale=paper path.search2wiki=FOLDER" in papers_page(Results(tmp_path))
