"""Writes the similarity of sentences by their distance as CSV, PNG and SVG (PageSum, Figure 1)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.analysis.locality.locality import ALL, Locality
from longsumbench.analysis.pages import add_title_and_caption
from longsumbench.report.figures import plain_axes, render_picture, write_pictures
from longsumbench.report.palette import COLOURS, GREY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (7.4, 4.4)  # inches
_FEWEST = 5  # examples; points of fewer are not drawn, unless there are fewer in all
_TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000)


def write_locality(found: Locality, folder: Path) -> list[Path]:
    """Write `locality.csv`, `.png` and `.svg`; return their paths."""
    drawn = {f"locality.{kind}": image for kind, image in draw_locality(found).items()}
    return write_pictures(folder, {"locality.csv": found.csv(), **drawn})


def draw_locality(found: Locality) -> dict[str, bytes]:
    """Draw the curve and the mean over all pairs; return "png" and "svg" → bytes."""
    return render_picture(_SIZE, lambda figure: _draw(figure, found))


def _draw(figure: "Figure", found: Locality) -> None:
    table = found.table()
    (mean,) = table[table["pairs of"] == ALL].to_dict("records")
    curve = table[(table["pairs of"] == "a distance") & (table["examples"] >= min(_FEWEST, len(found.sums)))]
    places = (curve["from"] * curve["to"]) ** 0.5  # the middle, on an axis of ratios
    plot = figure.subplots()
    figure.subplots_adjust(left=0.1, right=0.975, top=0.875, bottom=0.225)
    plot.fill_between(places, curve["low"], curve["high"], color=COLOURS[0], alpha=0.2, linewidth=0)
    plot.plot(places, curve["similarity"], color=COLOURS[0], linewidth=1.8, marker="o", markersize=3)
    plot.axhline(mean["similarity"], color=GREY, linestyle="--", linewidth=1.2)
    last = float(places.iloc[-1]) if len(places) else 1.0
    plot.set_xscale("log")
    plot.set_xlim(0.9, max(2.0, last * 1.12))
    right, height = plot.get_xlim()[1] / 1.01, mean["similarity"]
    placed: dict[str, Any] = {"xytext": (0, 4), "textcoords": "offset points", "ha": "right"}
    plot.annotate(f"all pairs: {height:.3f}", (right, height), color=GREY, fontsize=9, **placed)
    plot.set_xticks([tick for tick in _TICKS if tick <= max(2.0, last)])
    plot.set_xticks([], minor=True)
    plot.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    plot.set_xlabel("distance of the two sentences, in sentences (1: neighbours)", fontsize=9.5)
    plot.set_ylabel(f"mean cosine ({found.vectors})", fontsize=9.5)
    plain_axes(plot)
    heading = f"{found.dataset}: similarity of sentences by distance ({found.vectors})"
    about = f"{found.about}. Band: 95 % interval over examples. Distances of fewer than {_FEWEST} examples: CSV only."
    add_title_and_caption(figure, plot.get_position().x0, heading, about, 115)
