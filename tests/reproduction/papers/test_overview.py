"""The generated parts of docs/papers.md."""

from pathlib import Path

import msgspec
from msgspec import structs
from papers_page import papers_page
from support.paths import ROOT

from longsumbench.leaderboards.seed_groups import NOT_LEARNED
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_files import claims_table
from longsumbench_reproduction.papers.page_model import REPRODUCED, ClaimOutcome, PaperPageFile
from longsumbench_reproduction.papers.paper_tables import read_paper_tables

TEXT = (ROOT / "docs/papers.md").read_text()


def test_the_page_is_current() -> None:
    """docs/papers.md is what benchmarks/papers_page.py --write writes; to write it twice changes nothing."""
    assert papers_page(TEXT, Results(ROOT / "results/reference")) == TEXT
    assert f"their {len(read_paper_tables())} tables and figures" in TEXT


def test_claims_and_what_was_run_here(tmp_path: Path) -> None:
    """Each claim is counted, with its place, outcome and seeds; each table has its runs and time."""
    results = Results(tmp_path)
    claim = ClaimOutcome("a > b", "rouge1", REPRODUCED, ("arXiv",), seeds=5, says="A is _better_")
    claims = (claim, structs.replace(claim, outcome=NOT_LEARNED, source="§5", learned=NOT_LEARNED))
    made = PaperPageFile("seal-table2", "probe", (), {"one": 60, "two": 540}, (), claims)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/seal-table2.json").write_bytes(msgspec.json.encode(made))
    page = papers_page(TEXT, results)
    link = "[seal-table2](../results/reference/papers/seal-table2.md)"
    assert "1 of 2 claims are decided: 1 reproduced. [All claims" in page
    says, rows = "| A is \\_better\\_ | SEAL,", "a > b | R-1, probe (for arXiv)"
    index, to_page = claims_table(results), "[seal-table2](seal-table2.md)"
    assert f"{says} Table 2 | {rows} | reproduced | 5 |  | {to_page} |" in index
    assert f"{says} §5 | {rows} | not learned | 5 | not learned | {to_page} |" in index
    status = "probe, 2 runs, 10.0 min, 1 reproduced, 1 not learned"
    title = "Table 2: Trunc, CA, EA and SEAL on three datasets"
    assert f"| {link} | {title} | probe, paper | 62 | {status} |" in page
