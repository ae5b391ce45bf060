"""Six systems on InfiniteBench's novels: what is committed, what follows from it, and the figures of rouge_score."""

import infinitebench_table as table
import probe_claims
import pytest

from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.runs.results import Results

pytestmark = pytest.mark.numbers

RESULTS = Results(probe_claims.RESULTS)


def test_the_findings_have_the_numbers_of_the_scores() -> None:
    """Table and sentences of docs/findings.md are what benchmarks/infinitebench_table.py computes."""
    block = table.block_of(RESULTS)
    scores = read_all_scores(RESULTS, block.records())
    sentences = [(probe_claims.FINDINGS, words) for words in table.sentences(block, scores)]
    assert probe_claims.differences([table.table_of(block)], sentences) == []
