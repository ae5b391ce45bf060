"""Pictures of planted facts that summaries state right, by their place in the text.

    rows of a table --recall_lines--> those with a line --recall_figure--> SeriesFigure

Facts in one place are placed by position, facts in two places by the distance between these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import SURVIVAL
from longsumbench.leaderboards.seed_groups import NEVER_RANKED, NOT_SHOWN, UNKNOWN, ResultRow
from longsumbench.metrics.fact_survival import FACT_KINDS
from longsumbench.views.footnotes import describe_intervals, describe_mark, join
from longsumbench.views.outcomes import describe_single_seeds
from longsumbench.views.series import Panel, PanelRow, Series, SeriesFigure

CHANCE = "fact_recall_chance"
_MOST_LINES = 8  # in a picture
_GUESS_OF_TWO = 50.0  # percent; of the two bids
_VAGUE = 60.0  # mean width of the intervals of a line, in percent, above which it has no band
_POINTS_APART = 0.1  # of the distance of two positions


@dataclass(frozen=True)
class RecallPanel:
    """One of the plots.

    Attributes:
        heading: two lines.
        axis: label of the horizontal axis.
        places: measure → position on that axis.
        ticks: position of a tick → its label.
        guesses: label → recall in percent of a system that guesses.
        joined: False if positions have no order, so that no line joins their points.
    """

    heading: str
    axis: str
    places: Mapping[str, float]
    ticks: Mapping[float, str]
    guesses: Mapping[str, float] = field(default_factory=dict)
    joined: bool = True


KINDS = {  # kind of fact → heading of its panel
    "single": "One place\na sentence has all",
    "relayed": "Two places\nlink said",
    "silent": "Two places\nlink unsaid",
}


def _by_position(heading: str, measure: str) -> RecallPanel:
    places = {f"{measure}_position_{tenth}": tenth + 1.0 for tenth in range(10)}
    ticks = {float(tenth): f"{tenth}" for tenth in (1, 4, 7, 10)}
    return RecallPanel(heading, "tenth of the source", places, ticks)


def _by_distance(kind: str, guesses: Mapping[str, float]) -> RecallPanel:
    places = {f"fact_recall_{kind}_distance_{sections}": float(sections) for sections in range(8)}
    ticks = {float(sections): f"{sections}" for sections in (0, 2, 4, 6)}
    return RecallPanel(KINDS[kind], "sections apart", places, ticks, guesses)


PANELS = (
    _by_position(KINDS["single"], "fact_recall_single"),
    _by_distance("relayed", {}),
    _by_distance("silent", {"guess of two": _GUESS_OF_TWO}),
)

_KIND_PLACES = {f"{SURVIVAL}_{kind}": float(place) for place, kind in enumerate(FACT_KINDS)}
# Neighbouring labels are at different heights
_KIND_TICKS = {
    float(place): "\n" * (place % 3) + kind.replace("_", " ")
    for place, kind in enumerate(FACT_KINDS)
}
SURVIVAL_PANELS = (
    _by_position("By place\nof facts in one place", SURVIVAL),
    RecallPanel("By kind\nof fact", "", _KIND_PLACES, _KIND_TICKS, joined=False),
)


def recall_lines(
    rows: Sequence[ResultRow], panels: Sequence[RecallPanel] = PANELS
) -> list[ResultRow]:
    """Return the comparable rows that have a line, in their order: no oracles, and no systems without any point."""
    measures = set().union(*(panel.places for panel in panels))
    return [row for row in rows if not row.representative.oracle and measures & row.means.keys()]


def choose_lines(lines: Sequence[ResultRow]) -> list[ResultRow]:
    """Return the lines that are drawn, in their order: of each model the first that learned, then others.

    If no line of a model learned, its first one counts.
    """
    by_model: dict[str, list[ResultRow]] = {}
    for line in lines:
        by_model.setdefault(line.representative.key.model, []).append(line)
    best = []
    for same_model in by_model.values():
        learned = [line for line in same_model if line.learned.comparable]
        best.append((learned or same_model)[0])
    others = [line for line in lines if line not in best]
    chosen = [*best, *others][:_MOST_LINES]
    return [line for line in lines if line in chosen]


def survival_figure(title: str, lines: Sequence[ResultRow]) -> SeriesFigure:
    """Return the figure of fact survival, with levels for the length of the first system; see `recall_figure`."""
    first = lines[0]
    levels = {}
    for level, bound in (("random sentences", "random"), ("ceiling", "ceiling")):
        levels[level] = first.means[f"{SURVIVAL}_{bound}"].mean
    panels = [replace(panel, guesses=levels) for panel in SURVIVAL_PANELS]
    note = "Whiskers are intervals, too. Levels: random sentences, and the shortest planted ones (ceiling), with as many "
    note += f"words as {first.label} writes."
    return recall_figure(title, lines, panels, "planted facts stated right (%)", note)


def recall_figure(
    title: str,
    lines: Sequence[ResultRow],
    panels: Sequence[RecallPanel] = PANELS,
    measured: str = "facts stated right (%)",
    note: str = "",
) -> SeriesFigure:
    """Return a figure with the panels side by side. `lines` has at least one.

    Panels without any points are left out. `measured` is the label of the vertical axis.
    """
    drawn = choose_lines(lines)
    measures = set().union(*(row.means for row in drawn))
    plots = [_panel(panel, drawn) for panel in panels if measures & panel.places.keys()]
    over = describe_intervals([len(row.runs) > 1 for row in drawn])
    # The note explains the marks that the picture has, and no others
    sentences = [f"Lines are means over {over}, bands their 95 % intervals."]
    if one_seed := [line.label for line in drawn if line.one_seed]:
        sentences.append(describe_single_seeds(one_seed))
    if not all(series.band for plot in plots for series in plot.series):
        examples = drawn[0].representative.evaluation.describe_examples()
        runs = format_count(min(len(row.runs) for row in drawn), "run")
        sentences.append(
            f"Dashed lines: intervals of more than {_VAGUE:.0f} points ({examples}, {runs} or more)."
        )
    words = {row.learned.word for row in drawn}
    doubtful = sorted(words & {NOT_SHOWN, UNKNOWN})
    sentences += [
        describe_mark("Grey", words & {*NEVER_RANKED}),
        describe_mark(" and ".join(doubtful).capitalize(), doubtful),
        note,
    ]
    if len(drawn) < len(lines):
        sentences.append(
            f"{len(drawn)} of {len(lines)} rows, the best of each model first; the table has all."
        )
    return SeriesFigure(title, [PanelRow(measured, plots, (-4, 104))], [join(*sentences)])


def _panel(panel: RecallPanel, lines: Sequence[ResultRow]) -> Panel:
    levels = dict(panel.guesses)
    for line in lines:
        if chance := line.means.get(CHANCE):
            levels[f"chance {chance.mean:.1f}"] = chance.mean
    series = [_series(panel, line, order) for order, line in enumerate(lines)]
    last = max(max(line.points, default=0.0) for line in series)
    ticks = {place: name for place, name in panel.ticks.items() if place <= last}
    return Panel(panel.heading, panel.axis, ticks, series, levels, panel.joined)


def _series(panel: RecallPanel, line: ResultRow, order: int) -> Series:
    means, learned = line.means, line.learned
    # Points without lines are next to those of other systems
    shift = 0.0 if panel.joined else _POINTS_APART * order
    points = {place + shift: means[name] for name, place in panel.places.items() if name in means}
    label = line.label if learned.comparable else f"{line.label} ({learned.word})"
    width = sum(point.high - point.low for point in points.values())
    return Series(
        label,
        line.representative.key.model,
        points,
        grey=learned.word in NEVER_RANKED,
        band=not panel.joined or not width > _VAGUE * len(points),
    )
