"""Six systems on InfiniteBench's novels: what is committed, what follows from it, and the figures of rouge_score."""

import infinitebench_table as table
import probe_claims
import pytest
import real_systems
from rouge_score import rouge_scorer
from support.paths import SHARED
from support.requirements import SHARED_FOLDER

from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.results import Results

pytestmark = pytest.mark.numbers

RESULTS = Results(probe_claims.RESULTS)
OUTPUTS = SHARED / "data" / table.NAME
EVERY = 20  # novels of which one is scored by rouge_score


def test_the_findings_have_the_numbers_of_the_scores() -> None:
    """Table and sentences of docs/findings.md are what benchmarks/infinitebench_table.py computes."""
    block = table.block_of(RESULTS)
    sentences = [(probe_claims.FINDINGS, words) for words in table.sentences(block)]
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


@pytest.mark.skipif(not OUTPUTS.is_dir(), reason=SHARED_FOLDER)
def test_the_scores_are_those_of_rouge_score() -> None:
    """One in twenty outputs of each system, scored by rouge_score, has the committed scores."""
    references = {
        row["id"]: row["references"]
        for row in real_systems.read_rows(OUTPUTS / "references.jsonl.gz")
    }
    library = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    files = {name: file for file, (name, _, _) in table.SYSTEMS.items()}
    for record in RESULTS.records(table.NAME):
        scores = read_scores(RESULTS.run_folder(record) / "scores.csv")
        rows = list(real_systems.read_rows(OUTPUTS / f"{files[record.key.model]}.jsonl.gz"))
        for row in rows[::EVERY]:
            expected = library.score_multi(references[row["id"]], row["summary"])
            for kind, score in expected.items():
                assert scores.loc[row["id"], f"{kind}_f"] == pytest.approx(
                    score.fmeasure, abs=1e-12
                )
