"""Released outputs of real systems: what is committed, what follows from it, and the figures of the release."""

import json
from collections.abc import Iterator

import numpy as np
import probe_claims
import pytest
import real_systems
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
