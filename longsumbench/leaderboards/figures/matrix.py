"""Write the matrix of systems × datasets and draw its critical-difference diagram (Demšar 2006).

Results --update_matrix--> matrix.csv, matrix.md, matrix.tex, matrix.png
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from longsumbench.leaderboards.matrix import Matrix, RankTest, matrix_blocks, matrix_csv, read_matrix
from longsumbench.render import tables
from longsumbench.render.figures import render_picture, system_styles
from longsumbench.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MATRIX_HEADING = "Systems × datasets"
_WIDTH, _LINE = 9.0, 0.3  # inches; height of a label of one line
_LABEL_WIDTH, _MORE_LINES = 26, 0.6  # characters; lines that each further line of a label takes
_TOP, _FIRST_BAR, _BETWEEN_BARS = 1.0, 0.35, 0.28  # lines above the axis and below it


def update_matrix(results: Results, number: str | None = None) -> Matrix:
    """Write `leaderboard/matrix.csv`, `.md`, `.tex` and, if there is a rank test, `.png`; return the matrix.

    Args:
        results: the results folder.
        number: a type of ROUGE, or a measure; default: the ranking score of each dataset.

    Raises:
        UsageError: there are no finished runs, or none has the number.
    """
    with results.leaderboard_lock("matrix"):
        matrix = read_matrix(results, number)
        blocks = matrix_blocks(matrix)
        picture = "\n![Critical-difference diagram](matrix.png)\n" if matrix.tested else ""
        results.write_leaderboard(
            {
                "matrix.csv": matrix_csv(matrix),
                "matrix.md": tables.markdown(MATRIX_HEADING, blocks) + picture,
                "matrix.tex": tables.latex(MATRIX_HEADING, blocks),
                "matrix.png": draw_ranks(matrix.tested) if matrix.tested else None,
            }
        )
    return matrix


def draw_ranks(test: RankTest) -> bytes:
    """Draw mean ranks on an axis, and a bar over systems that are not distinguishable; return a PNG."""
    labels = {label: "\n".join(textwrap.wrap(label, _LABEL_WIDTH)) for label in test.mean_ranks}
    height = 1 + _MORE_LINES * max(text.count("\n") for text in labels.values())  # of a label, in lines
    top = _FIRST_BAR + _BETWEEN_BARS * len(test.cliques()) + 0.5  # of the first label, in lines below the axis
    depth = top + height * -(-len(labels) // 2)

    def draw(figure: "Figure") -> None:
        plot = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        systems = len(test.mean_ranks)
        margin = 0.75 * (systems - 1)  # room for the labels
        plot.set_xlim(1 - margin, systems + margin)
        plot.set_ylim(-depth, _TOP + 1.4)
        plot.axis("off")
        _draw_axis(plot, test)
        _draw_cliques(plot, test.cliques(), test)
        _draw_labels(plot, test, labels, top, height)

    return render_picture((_WIDTH, _LINE * (depth + _TOP + 1.4)), draw)["png"]


def _draw_axis(plot: "Axes", test: RankTest) -> None:
    """Draw the axis of ranks, and the length of the critical difference above it."""
    systems = len(test.mean_ranks)
    plot.plot([1, systems], [0, 0], color="black", linewidth=1.2)
    for rank in range(1, systems + 1):
        plot.plot([rank, rank], [0, 0.2], color="black", linewidth=1.2)
        plot.text(rank, 0.35, str(rank), ha="center", va="bottom", fontsize=9.5)
    end = 1 + min(test.critical, systems - 1)
    plot.annotate("", (1, _TOP + 0.55), (end, _TOP + 0.55), arrowprops={"arrowstyle": "|-|, widthA=0.3, widthB=0.3"})
    wider = " (longer than the axis)" if test.critical > systems - 1 else ""
    text = f"critical difference {test.critical:.2f}{wider}"
    plot.text((1 + end) / 2, _TOP + 0.75, text, ha="center", va="bottom", fontsize=9.5)
    place = plot.get_xlim()[0] + 0.02 * (systems - 1)
    plot.text(place, _TOP + 0.75, f"Mean ranks on {test.datasets} datasets", fontsize=11, fontweight="bold")


def _draw_cliques(plot: "Axes", cliques: Sequence[Sequence[str]], test: RankTest) -> None:
    """Draw a bar below the axis for each set of systems that are not distinguishable."""
    for place, clique in enumerate(cliques):
        ends = test.mean_ranks[clique[0]] - 0.03, test.mean_ranks[clique[-1]] + 0.03
        height = -_FIRST_BAR - _BETWEEN_BARS * place
        plot.plot(ends, [height, height], color="black", linewidth=4, solid_capstyle="butt")


def _draw_labels(plot: "Axes", test: RankTest, labels: Mapping[str, str], top: float, height: float) -> None:
    """Write the better half of the systems on the left and the others on the right, with lines to their ranks."""
    systems = len(test.mean_ranks)
    half = -(-systems // 2)
    styles = system_styles([label.partition(" ")[0] for label in test.mean_ranks])  # a label begins with its model
    for place, ((label, rank), style) in enumerate(zip(test.mean_ranks.items(), styles, strict=True)):
        is_left = place < half
        level = -top - height * (place if is_left else systems - 1 - place)
        end = 1 - 0.03 * (systems - 1) if is_left else systems + 0.03 * (systems - 1)
        plot.plot([rank, rank, end], [0, level, level], **style, markevery=[0], linewidth=1.2)
        side, shift = ("right", -1) if is_left else ("left", 1)
        beside = end + shift * 0.13 * (systems - 1)
        plot.text(end + shift * 0.02 * (systems - 1), level, f"{rank:.2f}", ha=side, va="center", fontsize=9.5)
        plot.text(beside, level, labels[label], ha=side, va="center", multialignment=side, fontsize=9.5)
