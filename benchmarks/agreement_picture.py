"""Draws docs/pictures/agreement.png: how far metrics agree with people, by kind of text.

python benchmarks/agreement_picture.py [--output PICTURE]

Reads results/reference/agreement/agreement.csv alone, which benchmarks/agreement.py writes. Seconds of one core.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from longsumbench.files import write_atomically
from longsumbench.views.figures import COLOURS, GREY, TEXT, plain_axes, render_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROOT = Path(__file__).parents[1]
AGREEMENT = ROOT / "results" / "reference" / "agreement" / "agreement.csv"
PICTURE = ROOT / "docs" / "pictures" / "agreement.png"
METRICS = {  # measure → its name on the vertical axis
    "rouge1_f": "ROUGE-1",
    "rouge2_f": "ROUGE-2",
    "rougeL_f": "ROUGE-L",
    "copied_bigrams": "copied bigrams",
    "entity_precision": "names in source",
    "number_precision": "numbers in source",
}
ERRORS = "number of errors (of 8)"
PEOPLE, WORDS, REPEATED = "annotators", "words", "repeated_bigrams"
LINES = {  # measure → label, colour, style
    PEOPLE: ("people with each other", "#000000", "-"),
    WORDS: ("length in words", COLOURS[2], "--"),
    REPEATED: ("repeated bigrams", COLOURS[3], ":"),
}
CLEAR, OPPOSITE = COLOURS[0], COLOURS[1]
NEEDED = 0.5  # share of the documents where a τ must be defined to be drawn
TITLE = (
    "ROUGE follows relevance in papers and reports, and copying follows facts in papers.\n"
    "In meetings copying goes with errors; in reviews people prefer what ROUGE scores low."
)


class Panel(NamedTuple):
    """A set and an aspect, what they are called, and what is found."""

    judged: str
    aspect: str
    heading: str
    result: str
    texts: str = "texts"


PANELS = (
    Panel(
        "koh2022/arXiv", "relevance", "Papers (arXiv): relevance", "ROUGE agrees, so does length"
    ),
    Panel("koh2022/GovReport", "relevance", "Reports: relevance", "ROUGE agrees beyond length"),
    Panel(
        "squality/3 systems",
        "coverage",
        "Stories: coverage (one is a person)",
        "ROUGE agrees, copying unclear",
        "questions",
    ),
    Panel("summeval_op", "relevance", "Reviews: relevance", "ROUGE and copying reversed"),
    Panel(
        "koh2022/arXiv", "factual_consistency", "Papers (arXiv): facts", "ROUGE-1 and -2 unclear"
    ),
    Panel("koh2022/GovReport", "factual_consistency", "Reports: facts", "ROUGE unclear"),
    Panel(
        "squality/3 systems",
        "correctness",
        "Stories: correctness (one is a person)",
        "ROUGE agrees, copying unclear",
        "questions",
    ),
    Panel("summeval_op", "faithfulness", "Reviews: faithfulness", "ROUGE and copying reversed"),
    Panel(
        "longsciverify/arxiv",
        "factuality",
        "Papers (arXiv, another set): facts",
        "Copying agrees, ROUGE unclear",
    ),
    Panel(
        "longsciverify/pubmed",
        "factuality",
        "Papers (PubMed): facts",
        "Copying agrees, ROUGE unclear",
    ),
    Panel(
        "kirstein_qmsum",
        ERRORS,
        "Meetings: fewer errors of 8 kinds",
        "ROUGE agrees, copying reversed",
    ),
)


def rows_of_panel(table: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """Return τ within documents and its interval by measure; of errors, minus τ: fewer are better."""
    rows = table[
        (table["set"] == panel.judged)
        & (table["aspect"] == panel.aspect)
        & (table["level"] == "within")
    ]
    rows = rows.set_index("measure")[["tau", "tau_lo", "tau_hi", "documents", "systems"]]
    if panel.aspect == ERRORS:
        ends = {"tau_lo": -rows["tau_hi"], "tau_hi": -rows["tau_lo"]}
        rows = rows.assign(tau=-rows["tau"], **ends)
    return rows


def draw(table: pd.DataFrame, figure: "Figure") -> None:
    """Draw a plot for each panel, and the legend in the place of the last one."""
    figure.subplots_adjust(
        left=0.115, right=0.985, bottom=0.075, top=0.85, wspace=0.12, hspace=0.58
    )
    *plots, last = figure.subplots(3, 4, sharex=True, sharey=True).flat
    for plot, panel in zip(plots, PANELS, strict=True):
        draw_panel(plot, rows_of_panel(table, panel), panel)
    for plot in plots:
        plot.tick_params(labelbottom=True)
    plots[0].set_xlim(-1, 1)
    plots[0].set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "−.5", "0", ".5", "1"])
    draw_legend(last)
    figure.supxlabel(
        "Kendall's τ within texts, with its 95 % interval over texts", fontsize=TEXT + 1
    )
    figure.suptitle(TITLE, x=0.012, y=0.985, ha="left", fontsize=15, fontweight="bold")


def draw_panel(plot: "Axes", rows: pd.DataFrame, panel: Panel) -> None:
    """Draw the metrics as points with intervals, people and controls as lines."""
    total = rows["documents"].max()
    for name, (_, colour, style) in LINES.items():
        if name in rows.index:
            tau, low, high = map(float, rows.loc[name, ["tau", "tau_lo", "tau_hi"]].to_numpy())
            plot.axvline(tau, color=colour, linestyle=style, linewidth=1.8)
            if name == PEOPLE:
                plot.axvspan(low, high, color=colour, alpha=0.1, linewidth=0)
    for place, name in enumerate(METRICS):
        defined = rows.loc[name, "documents"] if name in rows.index else 0
        if defined < NEEDED * total:
            sources = "copied_bigrams" in rows.index
            note = "too few texts" if defined else "undefined" if sources else "no source"
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            plot.text(-0.97, place, note, color=GREY, va="center", fontsize=TEXT - 2, bbox=box)
        else:
            draw_point(plot, place, *rows.loc[name, ["tau", "tau_lo", "tau_hi"]])
    plot.axvline(0, color=GREY, linewidth=1)
    plot.set_yticks(range(len(METRICS)), list(METRICS.values()))
    plot.set_ylim(len(METRICS) - 0.5, -0.5)
    plain_axes(plot, "x")
    size = f"{total:.0f} {panel.texts} × {rows['systems'].max():.0f} systems"
    plot.text(0, 1.25, panel.result, transform=plot.transAxes, fontsize=TEXT, fontweight="bold")
    plot.text(
        0, 1.04, f"{panel.heading}\n{size}", transform=plot.transAxes, fontsize=TEXT - 1, color=GREY
    )


def draw_point(plot: "Axes", place: float, tau: float, low: float, high: float) -> None:
    """Draw τ and its interval: filled if the interval excludes 0."""
    clear = low > 0 or high < 0
    colour = (CLEAR if low > 0 else OPPOSITE) if clear else GREY
    plot.plot(
        [low, high], [place, place], color=colour, linewidth=2.4, alpha=0.7, solid_capstyle="butt"
    )
    plot.plot(
        [tau],
        [place],
        "o",
        color=colour,
        markersize=7,
        markerfacecolor=colour if clear else "white",
        zorder=3,
    )


def draw_legend(plot: "Axes") -> None:
    """Explain points and lines."""
    plot.set_axis_off()
    points = [
        ("agrees", CLEAR, CLEAR),
        ("reversed: judged worse", OPPOSITE, OPPOSITE),
        ("unclear: the interval has 0", GREY, "white"),
    ]
    handles = [
        plot.plot(
            [],
            [],
            "o-",
            color=colour,
            markerfacecolor=face,
            markersize=7,
            linewidth=2.4,
            label=label,
        )[0]
        for label, colour, face in points
    ]
    handles += [
        plot.plot([], [], color=colour, linestyle=style, linewidth=1.8, label=label)[0]
        for label, colour, style in LINES.values()
    ]
    plot.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(-0.04, 0.55),
        frameon=False,
        fontsize=TEXT,
    )


def picture() -> bytes:
    """Return the picture as PNG."""
    table = pd.read_csv(AGREEMENT)
    return render_picture((13, 9.4), lambda figure: draw(table, figure), ("png",))["png"]


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=PICTURE)
    output = parser.parse_args().output
    write_atomically(output, picture())
    print(output)


if __name__ == "__main__":
    main()
