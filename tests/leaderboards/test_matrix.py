"""Systems × datasets: which runs it has, ranks, and empty cells."""

import csv
import io
from pathlib import Path

import pytest
from support.run_records import TRAINED, measured, record

from longsumbench.errors import UsageError
from longsumbench.leaderboards.matrix import Matrix, MatrixColumn, read_matrices
from longsumbench.leaderboards.seed_groups import NOT_LEARNED, Learned, ResultRow
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.results import Results
from longsumbench.views.matrix import matrix_block, matrix_blocks, update_matrix


def column(dataset: str, unlearned: str = "", **means: float) -> MatrixColumn:
    """Rows with these means, each ±1; one of them did not learn."""
    rows = []
    for label, mean in means.items():
        learned = Learned(NOT_LEARNED if label == unlearned else "")
        row_means = {"rougeLsum": Estimate(mean, mean - 1, mean + 1)}
        rows.append(ResultRow((record(label, 9),), means=row_means, learned=learned))
    labels = {(row.representative.key.model, row.representative.variant): row.label for row in rows}
    return MatrixColumn(dataset, "rougeLsum", LeaderboardBlock(tuple(rows)), labels)


THREE = (
    column("a", lead=30, ea=40, seal=40),
    column("b", lead=20, ea=10, seal=30),
    column("c", lead=5, ea=9, seal=9.5),
)


def notes(matrix: Matrix) -> str:
    return " ".join(matrix_block(matrix).footnotes)


def test_ranks_by_hand() -> None:
    """The highest is first; equal means share their average rank; a system's mean is over its datasets."""
    matrix = Matrix((*THREE, column("d", lead=5, trunc=7)))
    assert THREE[0].ranks == {"lead": 3, "ea": 1.5, "seal": 1.5}
    assert [
        (system, matrix.mean_rank(system), matrix.count(system)) for system in matrix.systems
    ] == [
        ("lead", pytest.approx((3 + 2 + 3 + 2) / 4), 4),
        ("seal", pytest.approx((1.5 + 1 + 1) / 3), 3),
        ("ea", pytest.approx((1.5 + 3 + 2) / 3), 3),
        ("trunc", 1, 1),
    ]
    assert "5 of 16 cells are empty" in notes(matrix)


def write_runs(root: Path) -> None:
    """Three systems on two datasets, one of them on a third, whose runs of lead are on other examples."""
    for dataset, shift in (("arxiv", 0), ("pubmed", 3)):
        for name, score in (("lead", 30), ("ea", 25 + shift * 3), ("seal", 20)):
            facts = measured({"facts": score})
            one = record(
                name,
                score,
                dataset=dataset,
                run_id=f"{dataset[:3]}{name}",
                measures=facts,
                ranked_by="rougeLsum",
            )
            one.write(Results(root).run_folder(one))
    for number, examples in enumerate(("e1", "e1", "e2")):
        name = ("lead", "ea", "seal")[number]
        one = record(name, 9 + number, dataset="qmsum", run_id=f"qm{name}", examples=examples)
        one.write(Results(root).run_folder(one))


def test_only_comparable_runs_are_in_a_column(tmp_path: Path) -> None:
    """Of each dataset the first block; other runs leave an empty cell, which is counted."""
    write_runs(tmp_path)
    (matrix,) = read_matrices(Results(tmp_path))
    columns = {one.dataset: " ".join(one.rows) for one in matrix.columns}
    assert columns == {"arxiv": "lead ea seal", "pubmed": "ea lead seal", "qmsum": "ea lead"}
    assert "1 of 9 cells are empty" in notes(matrix)
    (of_facts,) = read_matrices(Results(tmp_path), "facts")
    assert (len(of_facts.columns), of_facts.without) == (2, ("qmsum",))
    assert "No run has the number on qmsum." in notes(of_facts)
    with pytest.raises(
        UsageError, match=r"no finished run has a number 'fact' \(did you mean 'facts'\?\)"
    ):
        read_matrices(Results(tmp_path), "fact")


def test_the_best_system_of_each_dataset_is_shown() -> None:
    """The terminal leaves out systems with one dataset, but never the best of a dataset that learned."""
    single = column("d", "grey", lexrank=40, lead=5, trunc=4, grey=99)
    block = matrix_block(Matrix((*THREE, single)), brief=True)
    assert [row[0] for row in block.rows] == ["lead", "seal", "ea", "lexrank"]
    assert "Other systems with one dataset, only in leaderboard/matrix.md: 2." in block.footnotes


def test_checkpoints_as_they_are_have_their_own_table(tmp_path: Path) -> None:
    """They have no rank among trained systems; the baselines are in both tables, and the CSV says which a row is of."""
    bart = {"checkpoint": "facebook/bart-large-cnn"}
    runs = [
        record("lead", 30),
        record("seal", 25, fit=TRAINED),
        record("seq2seq", 40, system=bart),
    ]
    for run in runs:
        run.write(Results(tmp_path).run_folder(run))
    matrices = update_matrix(Results(tmp_path))
    assert (tmp_path / "leaderboard" / "matrix.tex").exists()
    assert "| lead" in (tmp_path / "leaderboard" / "matrix.md").read_text()
    trained, untrained = matrix_blocks(matrices)
    assert [row[0] for row in trained.rows] == ["lead", "seal"]
    assert [row[0] for row in untrained.rows] == ["seq2seq", "lead"]
    assert untrained.heading == "systems that were not trained here"
    assert not set(trained.footnotes) & set(untrained.footnotes)
    rows = csv.DictReader(io.StringIO((tmp_path / "leaderboard" / "matrix.csv").read_text()))
    assert [f"{row['system']}, {row['block']}: {row['arxiv_rank']}" for row in rows] == [
        "lead, trained here: 1.0",
        "seal, trained here: 2.0",
        "seq2seq, not trained here: 1.0",
        "lead, not trained here: 2.0",
    ]


def test_systems_that_did_not_learn_have_no_rank() -> None:
    """Their numbers are in parentheses, and they change no rank; who learned nowhere has no mean rank."""
    matrix = Matrix((column("a", "ea", lead=30, ea=40, seal=40),))
    block = matrix_block(matrix)
    assert [row[:3] for row in block.rows] == [
        ["seal", "40.0 ±1.0", "1.0"],
        ["lead", "30.0 ±1.0", "2.0"],
        ["ea", "(40.0 ±1.0)", ""],
    ]
    assert "systems that are not ranked" in notes(matrix)
    assert "not ranked" not in notes(Matrix(THREE))
