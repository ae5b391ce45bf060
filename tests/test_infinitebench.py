"""Six systems on InfiniteBench's novels: what is committed, what follows from it, and the figures of rouge_score."""

import infinitebench_table as table
import probe_claims
import pytest

from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.results import Results

pytestmark = pytest.mark.numbers

RESULTS = Results(probe_claims.RESULTS)


def test_the_findings_have_the_numbers_of_the_scores() -> None:
    """Table and sentences of docs/findings.md are what benchmarks/infinitebench_table.py computes."""
    block = table.block_of(RESULTS)
    scores = read_all_scores(RESULTS, block.records())
    sentences = [(probe_claims.FINDINGS, words) for words in table.sentences(block, scores)]
    assert probe_claims.differences([table.table_of(block)], sentences) == []


def test_the_scores_are_the_first_figures() -> None:
    """Words and scores of all systems are those of rouge_score to its digits, except for one R-Lsum, by 0.1 points."""
    far = []
    for row in table.block_of(RESULTS).rows:
        run = row.first
        words, *figures = table.FIRST_FIGURES[run.key.model]
        assert row.words == pytest.approx(words, abs=0.51)
        means = 100 * read_scores(RESULTS.run_folder(run) / "scores.csv").mean()
        names = ("rouge1_f", "rouge1_p", "rouge1_r", "rouge2_f", "rougeLsum_f")
        for name, figure in zip(names, figures, strict=True):
            assert means[name] == pytest.approx(figure, abs=0.11)
            if abs(means[name] - figure) > 0.051:
                far.append((run.key.model, name))
    assert far == [("Kimi", "rougeLsum_f")]
    assert not {"copied_bigrams", "entity_precision"} & set(means.index)
