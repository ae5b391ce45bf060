"""The table of systems × datasets, and its files. Begin with `update_matrix`."""

import math
from dataclasses import replace
from typing import Any

from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import heading_of
from longsumbench.leaderboards.matrix import Matrix, MatrixColumn, read_matrix
from longsumbench.leaderboards.significance import METHOD
from longsumbench.runs.results import Results
from longsumbench.views import tables
from longsumbench.views.tables import Block, Stressed, Tied, csv_text, with_bounds

MATRIX_HEADING = "Systems × datasets"


def matrix_blocks(matrix: Matrix, brief: bool = False) -> list[Block]:
    """Return the tables of a matrix: of trained systems, and of checkpoints that were not trained here.

    Arguments as in `matrix_block`.
    """
    blocks = [matrix_block(matrix, brief)] if matrix.columns else []
    if matrix.untrained is not None:
        block = matrix_block(matrix.untrained, brief)
        earlier = set().union(*(table.footnotes for table in blocks))
        untrained = replace(
            block,
            heading="systems that were not trained here",
            notes=(
                "Checkpoints as they are, and the baselines. Their training texts may include these.",
            ),
            footnotes=tuple(line for line in block.footnotes if line not in earlier),
        )
        blocks.append(untrained)
    return blocks


def matrix_block(matrix: Matrix, brief: bool = False) -> Block:
    """Return the table: a row for each system, a column for each dataset.

    A brief table leaves out the systems that have one dataset, if others have more, and counts them. The best system of
    each dataset is always shown.
    """
    systems = matrix.systems
    if brief and any(matrix.count(system) > 1 for system in systems):
        best = [next(iter(column.ranks or column.cells)) for column in matrix.columns]
        systems = tuple(name for name in systems if matrix.count(name) > 1 or name in best)
    rows = []
    for system in systems:
        rank = matrix.mean_rank(system)
        mean_rank = f"{rank:.1f}" if math.isfinite(rank) else ""
        cells = [_matrix_cell(column, system) for column in matrix.columns]
        rows.append([system, *cells, mean_rank, str(matrix.count(system))])
    headings = {}
    for column in matrix.columns:
        name = column.dataset.replace("_", "_\n")
        headings[f"{name}\n{heading_of(column.number)}"] = len(column.cells)
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
    if system not in column.cells:
        return ""
    text = f"{column.cells[system]:.1f}"
    if system not in column.ranks:
        return f"({text})"
    is_best = column.ranks[system] == min(column.ranks.values()) and len(column.ranks) > 1
    if is_best and system not in column.one_seed:
        return Stressed(text)
    return Tied(text) if system in column.tied else text


def _matrix_notes(matrix: Matrix) -> list[str]:
    texts = []
    for column in matrix.columns:
        evaluation = column.first.evaluation
        examples = format_count(evaluation.n, "example")
        texts.append(f"{column.dataset}: {column.first.key.split} split, {examples}")
    notes = [
        f"Means over seeds (0–100) ± half their 95 % interval. Each dataset has the first block of its leaderboard "
        f"({'; '.join(texts)}).",
        "Mean rank: over the datasets that a system has; equal means share their average rank.",
    ]
    if any(len(column.ranks) < len(column.cells) for column in matrix.columns):
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


def matrix_csv(matrix: Matrix) -> str:
    """Return a row for each system: of each dataset the number, its interval and rank; empty where it has no run.

    If there are checkpoints that were not trained here, the column `block` says in which of the two tables a row is.
    """
    if matrix.untrained is None:
        return csv_text(_csv_rows(matrix))
    rows = [{**row, "block": "trained here"} for row in _csv_rows(matrix)]
    rows += [{**row, "block": "not trained here"} for row in _csv_rows(matrix.untrained)]
    return csv_text(rows)


def _csv_rows(matrix: Matrix) -> list[dict[str, Any]]:
    rows = []
    for system in matrix.systems:
        rank = matrix.mean_rank(system)  # the CSV's cell is empty if it is infinite
        row: dict[str, Any] = {"system": system, "mean_rank": rank}
        row["datasets"] = matrix.count(system)
        for column in matrix.columns:
            row |= with_bounds(f"{column.dataset}_{column.number}", column.cells.get(system))
            row[f"{column.dataset}_rank"] = column.ranks.get(system)
        rows.append(row)
    return rows


def update_matrix(results: Results, number: str | None = None) -> Matrix:
    """Write `leaderboard/matrix.csv`, `.md` and `.tex`; return the matrix. `number` as in `read_matrix`.

    Raises:
        UsageError: there are no finished runs, or none has the number.
    """
    with results.leaderboard_lock("matrix"):
        matrix = read_matrix(results, number)
        blocks = matrix_blocks(matrix)
        results.write_leaderboard(
            {
                "matrix.csv": matrix_csv(matrix),
                "matrix.md": tables.markdown(MATRIX_HEADING, blocks),
                "matrix.tex": tables.latex(MATRIX_HEADING, blocks),
            }
        )
    return matrix
