"""The table of systems × datasets, and its files. Begin with `update_matrix`."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import find_heading
from longsumbench.leaderboards.matrix import Matrix, MatrixColumn, read_matrices
from longsumbench.leaderboards.significance import METHOD
from longsumbench.runs.results import Results
from longsumbench.views import tables
from longsumbench.views.tables import Block, Stressed, Tied, csv_text, with_bounds

MATRIX_HEADING = "Systems × datasets"


def matrix_blocks(matrices: Sequence[Matrix], brief: bool = False) -> list[Block]:
    """Return the tables of matrices: of trained systems, and of checkpoints that were not trained here.

    Arguments as in `matrix_block`.
    """
    blocks: list[Block] = []
    for matrix in matrices:
        block = matrix_block(matrix, brief)
        if matrix.zero_shot:
            earlier = set().union(*(table.footnotes for table in blocks))
            block = replace(
                block,
                heading="systems that were not trained here",
                notes=(
                    "Checkpoints as they are, and the baselines. Their training texts may include these.",
                ),
                footnotes=tuple(line for line in block.footnotes if line not in earlier),
            )
        blocks.append(block)
    return blocks


def matrix_block(matrix: Matrix, brief: bool = False) -> Block:
    """Return the table: a row for each system, a column for each dataset.

    A brief table leaves out the systems that have one dataset, if others have more, and counts them. The best system of
    each dataset is always shown.
    """
    systems = matrix.systems
    if brief and any(matrix.count(system) > 1 for system in systems):
        # Cells and ranks are sorted: their first one is the best
        best = [next(iter(column.ranks or column.rows)) for column in matrix.columns]
        systems = [name for name in systems if matrix.count(name) > 1 or name in best]
    rows = []
    for system in systems:
        rank = matrix.mean_rank(system)
        mean_rank = f"{rank:.1f}" if math.isfinite(rank) else ""
        cells = [_matrix_cell(column, system) for column in matrix.columns]
        rows.append([system, *cells, mean_rank, str(matrix.count(system))])
    headings = {}
    for column in matrix.columns:
        name = column.dataset.replace("_", "_\n")
        headings[f"{name}\n{find_heading(column.measure)}"] = len(column.rows)
    notes = _matrix_notes(matrix)
    if len(systems) < len(matrix.systems):
        left_out = len(matrix.systems) - len(systems)
        notes.append(f"Other systems with one dataset, only in leaderboard/matrix.md: {left_out}.")
    return Block(
        "",
        (),
        ("system", *headings, "mean\nrank", "data-\nsets"),
        f"l{'r' * (len(headings) + 2)}",
        rows,
        optional=tuple(sorted(headings, key=lambda heading: headings[heading])),
        tied=f"not distinguishable from the best ({METHOD})",
        footnotes=tuple(notes),
    )


def _matrix_cell(column: MatrixColumn, system: str) -> str:
    row = column.rows.get(system)
    if row is None:
        return ""
    text = f"{row.means[column.measure]:.1f}"
    if system not in column.ranks:
        return f"({text})"
    is_best = column.ranks[system] == min(column.ranks.values()) and len(column.ranks) > 1
    # As in the dataset's own table, one seed is never called the best
    if is_best and not row.one_seed:
        return Stressed(text)
    return Tied(text) if (row.key, column.measure) in column.block.tied() else text


def _matrix_notes(matrix: Matrix) -> list[str]:
    texts = []
    for column in matrix.columns:
        run = column.block.rows[0].representative
        examples = run.evaluation.describe_examples()
        texts.append(f"{column.dataset}: {run.key.split} split, {examples}")
    notes = [
        f"Means over seeds (0–100) ± half their 95 % interval. Each dataset has the first block of its leaderboard "
        f"({'; '.join(texts)}).",
        "Mean rank: over the datasets that a system has; equal means share their average rank.",
    ]
    if any(len(column.ranks) < len(column.rows) for column in matrix.columns):
        notes.append("In parentheses: systems that are not ranked on the dataset.")
    num_cells = len(matrix.systems) * len(matrix.columns)
    if empty := num_cells - sum(map(matrix.count, matrix.systems)):
        cells = format_count(num_cells, "cell")
        notes.append(
            f"{empty:,} of {cells} are empty: the system has no comparable run on the dataset."
        )
    if matrix.without:
        notes.append(f"No run has the number on {', '.join(matrix.without)}.")
    return notes


def matrix_csv(matrices: Sequence[Matrix]) -> str:
    """Return a row for each system: of each dataset the number, its interval and rank; empty where it has no run.

    If there are checkpoints that were not trained here, the column `block` says in which of the two tables a row is.
    """
    rows = []
    for matrix in matrices:
        for row in _csv_rows(matrix):
            if any(entry.zero_shot for entry in matrices):
                row["block"] = "not trained here" if matrix.zero_shot else "trained here"
            rows.append(row)
    return csv_text(rows)


def _csv_rows(matrix: Matrix) -> list[dict[str, Any]]:
    rows = []
    for system in matrix.systems:
        rank = matrix.mean_rank(system)  # the CSV's cell is empty if it is infinite
        row: dict[str, Any] = {"system": system, "mean_rank": rank}
        row["datasets"] = matrix.count(system)
        for column in matrix.columns:
            entry = column.rows.get(system)
            mean = None if entry is None else entry.means[column.measure]
            row |= with_bounds(f"{column.dataset}_{column.measure}", mean)
            row[f"{column.dataset}_rank"] = column.ranks.get(system)
        rows.append(row)
    return rows


def update_matrix(results: Results, measure: str | None = None) -> list[Matrix]:
    """Write `leaderboard/matrix.csv`, `.md` and `.tex`; return the matrices. `measure` as in `read_matrices`.

    Raises:
        UsageError: there are no finished runs, or none has the measure.
    """
    with results.leaderboard_lock("matrix"):
        matrices = read_matrices(results, measure)
        blocks = matrix_blocks(matrices)
        results.write_leaderboard(
            {
                "matrix.csv": matrix_csv(matrices),
                "matrix.md": tables.markdown(MATRIX_HEADING, blocks),
                "matrix.tex": tables.latex(MATRIX_HEADING, blocks),
            }
        )
    return matrices
