"""Released outputs of real systems: what is committed, what follows from it, and the figures of the release."""

import json
from collections.abc import Iterator

import numpy as np
import probe_claims
import pytest
import real_systems
import real_systems_claims as claims
from rouge_score import rouge_scorer
from support.json_files import read_rows
from support.paths import SHARED
from support.requirements import SHARED_FOLDER

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import TableView

pytestmark = pytest.mark.numbers

RESULTS = Results(probe_claims.RESULTS)
OUTPUTS = SHARED / "data" / "qmsum_outputs"
WITHOUT_SENTENCES = ("rouge1", "rouge2", "rougeL")  # equal however sentences are split
EVERY = 20  # examples of a system of which one is scored by rouge_score
needs_outputs = pytest.mark.skipif(not OUTPUTS.is_dir(), reason=SHARED_FOLDER)


def imported(dataset: str) -> Iterator[tuple[str, RunRecord]]:
    """Yield the name of the file without its ending, and the record of its run."""
    for record in RESULTS.records(dataset):
        if record.imported:
            yield record.imported.file.removesuffix(".jsonl"), record


def test_the_findings_have_the_numbers_of_the_scores() -> None:
    """Tables and sentences of docs/findings.md and the front page are what the program computes."""
    rows = claims.Rows(RESULTS)
    sentences = [(probe_claims.FINDINGS, words) for words in claims.sentences(rows)]
    sentences += claims.front_sentences(rows)
    assert probe_claims.differences(claims.tables_of_qmsum(rows), sentences) == []


@pytest.mark.parametrize("dataset", real_systems.SETS)
def test_each_mean_is_that_of_the_scores(dataset: str) -> None:
    """F1, precision and recall in records and tables are the means of the committed scores of the examples."""
    table = read_table(RESULTS, dataset)
    frame = TableView(table).frame().set_index("run_id")
    scores = read_all_scores(RESULTS, table.records(), "fpr")
    for record in table.records():
        means = 100 * scores[record.run_id].frame().mean()
        for kind in ROUGE_HEADINGS:
            rouge = record.evaluation.scores[kind]
            parts = [rouge.p, rouge.r, rouge.f]
            assert parts == pytest.approx([means[f"{kind}_{part}"] for part in "prf"], abs=1e-9)
            assert frame.loc[record.run_id, kind] == pytest.approx(means[f"{kind}_f"], abs=1e-4)


@pytest.mark.parametrize(
    ("dataset", "examples"), [("qmsum", 281), ("qmsum_meetings", 35), ("squality_human", 100)]
)
def test_all_systems_and_baselines_have_the_same_examples(dataset: str, examples: int) -> None:
    """One block has every system of the set and every baseline; GPT-3.5, with nine outputs, is in another."""
    block = read_table(RESULTS, dataset).comparable[0]
    names = {system.partition(": ")[0] for system in real_systems.SETS[dataset][-1].values()}
    assert {row.first.key.model for row in block.rows} == (names | {*real_systems.BASELINES}) - {
        "GPT-3.5"
    }
    assert {row.first.evaluation.n for row in block.rows} == {examples}
    assert {file for file, _ in imported(dataset)} == {*real_systems.SETS[dataset][-1]}


def test_records_name_source_and_licence() -> None:
    """Each import has its source, its licence and the hash of its file."""
    for dataset in real_systems.SETS:
        for _, record in imported(dataset):
            assert record.imported is not None
            assert record.imported.origin.endswith(("Apache-2.0", "BSD-3-Clause", "CC BY 4.0"))
            assert len(record.imported.sha256) == 64


@needs_outputs
def test_the_scores_are_those_of_the_release() -> None:
    """R-1, R-2 and R-L of all 16 systems equal the repository's figures to 1e-12; R-Lsum as documented."""
    rows = read_rows(OUTPUTS / "systems.jsonl")
    published = {row["file"]: row["published"] for row in rows}
    runs = dict(imported("qmsum"))
    assert len(runs) == 16
    assert runs.keys() == published.keys()
    differences = {}
    for file, record in runs.items():
        means = read_scores(RESULTS.run_folder(record) / "scores.csv").mean()
        ours = [means[f"{kind}_f"] for kind in WITHOUT_SENTENCES]
        assert ours == pytest.approx(
            [published[file][kind] for kind in WITHOUT_SENTENCES], abs=1e-12
        )
        differences[file] = abs(100 * (means["rougeLsum_f"] - published[file]["rougeLsum"]))
    assert differences.pop("baseline-claude-haiku-4-5") == pytest.approx(1.35, abs=0.01)
    assert max(differences.values()) < 0.25


@needs_outputs
def test_the_scores_are_those_of_rouge_score() -> None:
    """One in twenty outputs of each system, scored by rouge_score, has the committed scores."""
    documents = (OUTPUTS / "documents.jsonl").read_text().splitlines()
    references = {row["id"]: row["references"] for row in map(json.loads, documents)}
    library = rouge_scorer.RougeScorer([*WITHOUT_SENTENCES], use_stemmer=True)
    for place, (file, record) in enumerate(imported("qmsum")):
        outputs = (OUTPUTS / "import" / f"{file}.jsonl").read_text().splitlines()
        scores = read_scores(RESULTS.run_folder(record) / "scores.csv")
        for row in map(json.loads, outputs[place::EVERY]):
            theirs = library.score_multi(references[row["id"]], row["prediction"])
            ours = scores.loc[row["id"], [f"{kind}_f" for kind in WITHOUT_SENTENCES]]
            assert np.allclose(
                ours, [theirs[kind].fmeasure for kind in WITHOUT_SENTENCES], rtol=0, atol=1e-12
            )
