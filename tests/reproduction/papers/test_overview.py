"""The generated parts of docs/papers.md."""

from papers_page import papers_page
from support.paths import ROOT

from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.paper_tables import read_paper_tables

TEXT = (ROOT / "docs/papers.md").read_text()


def test_the_page_is_current() -> None:
    """docs/papers.md is what benchmarks/papers_page.py --write writes; to write it twice changes nothing."""
    assert papers_page(TEXT, Results(ROOT / "results/reference")) == TEXT
    assert f"their {len(read_paper_tables())} tables, figures and sections" in TEXT
