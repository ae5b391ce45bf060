"""Draw recall by place: of planted facts, and of the sentences that the oracle selects.

    rows of a table --recall_lines--> RecallLine of each system, the mean over seeds --draw_recall--> PNG
    rows of a table --oracle_lines--> RecallLine of each system, the mean over seeds --draw_oracle_recall--> PNG

Single facts and sentences are drawn by position, other facts by the distance between their two places.

The same records give the same bytes, with the same release of matplotlib.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from longsumbench.formatting import format_count
from longsumbench.leaderboards.notes import describe_intervals, describe_mark, join
from longsumbench.leaderboards.seed_groups import LEARNED, Learned, SeedGroup
from longsumbench.metrics.aggregate import Estimate
from longsumbench.views.figures import (
    GREY,
    Level,
    Panel,
    PanelLine,
    PanelRow,
    Series,
    draw_panels,
    system_styles,
)

CHANCE = "fact_recall_chance"
MOST_SYSTEMS = 6  # in a picture
_FOUND = 50.0  # percent; also what a guess between the two bids of a silent fact gives
_VAGUE = 60.0  # mean width of the intervals of a line, in percent, above which it has no band


@dataclass(frozen=True)
class RecallPanel:
    """One of the plots.

    Attributes:
        heading: two lines.
        places: measure → position on that axis; evenly spaced.
        ticks: position of a tick → its label.
        guesses: recall in percent of a system that guesses → its label.
    """

    heading: str
    unit: str
    places: Mapping[str, float]
    ticks: Mapping[float, str]
    guesses: Mapping[float, str] = field(default_factory=dict)


KINDS = {  # kind of fact → heading of its panel
    "single": "Single facts\none place",
    "relayed": "Relayed facts\ntwo places, link stated",
    "silent": "Silent facts\ntwo places, link unstated",
}
_GUESSES: dict[str, dict[float, str]] = {"silent": {_FOUND: "guess of two"}}


def _by_place(heading: str, measure: str) -> RecallPanel:
    places = {f"{measure}_position_{tenth}": 10.0 * tenth + 5 for tenth in range(10)}
    return RecallPanel(heading, "place in the source (%)", places, {0: "0", 50: "50", 100: "100"})


PANELS = (
    _by_place(KINDS["single"], "fact_recall_single"),
    *(
        RecallPanel(
            KINDS[kind],
            "sections apart",
            {f"fact_recall_{kind}_distance_{distance}": float(distance) for distance in range(8)},
            {distance: f"{distance}" for distance in (0, 2, 4, 6)},
            _GUESSES.get(kind, {}),
        )
        for kind in ("relayed", "silent")
    ),
)
ORACLE_PANELS = (
    _by_place("Recall\nof the oracle's sentences there", "oracle_recall"),
    _by_place("Where it looks\ncopied sentences from there", "extracted"),
)
_ORACLE = "oracle"


@dataclass(frozen=True)
class RecallLine:
    """The line of a system.

    Attributes:
        points: measure → its mean and 95 % interval, in percent.
        chance: expected recall of a random guess, in percent; None if unknown.
        hollow: measures that are drawn with hollow markers.
        learned: whether the system learned; if not, the line is grey, and no title names it.
        one_seed: True if the system was trained with one seed; then the picture has no title about the systems.
        several_seeds: True if all numbers are means over several seeds.
    """

    model: str
    label: str
    points: Mapping[str, Estimate]
    chance: float | None
    hollow: Set[str] = frozenset()
    learned: Learned = field(default_factory=Learned)
    one_seed: bool = False
    several_seeds: bool = False


def recall_lines(
    rows: Sequence[SeedGroup], panels: Sequence[RecallPanel] = PANELS
) -> tuple[RecallLine, ...]:
    """Return the lines of comparable rows in their order; oracles, and systems without any point, are left out."""
    measures = {name for panel in panels for name in panel.places}
    return tuple(
        RecallLine(
            row.first.key.model,
            row.label,
            {measure: number for measure, number in row.numbers.items() if measure in measures},
            row.numbers[CHANCE].mean if CHANCE in row.numbers else None,
            learned=row.learned,
            one_seed=row.one_seed,
            several_seeds=len(row.runs) > 1,
        )
        for row in rows
        if not row.first.oracle and measures & set(row.numbers)
    )


def oracle_lines(rows: Sequence[SeedGroup]) -> tuple[RecallLine, ...]:
    """Return the lines of comparable rows in their order; the first one shows where the oracle looks.

    Systems without oracle recall are left out.
    """
    lines = recall_lines(rows, ORACLE_PANELS)
    looks = ORACLE_PANELS[-1].places
    oracle = next((row.numbers for row in rows if row.first.key.model == _ORACLE), {})
    points = {measure: number for measure, number in oracle.items() if measure in looks}
    return (RecallLine(_ORACLE, _ORACLE, points, None), *lines) if lines and points else lines


def best_of_models(lines: Sequence[RecallLine]) -> list[RecallLine]:
    """Return the first line of each model that learned, or its first line if none did, in the order of `lines`.

    A label has the settings only if the model has other lines.
    """
    models = [line.model for line in lines]
    best: dict[str, RecallLine] = {}
    for line in sorted(lines, key=lambda line: not line.learned.comparable):
        best.setdefault(line.model, line)
    best_lines = [line for line in lines if best[line.model] is line]
    return [
        line if models.count(line.model) > 1 else replace(line, label=line.model)
        for line in best_lines
    ]


def headline(topic: str, lines: Sequence[RecallLine], measure: str, facts: str = "them") -> str:
    """Return a title that names the systems that find facts; empty if an interval is unknown, or of one seed.

    A system finds facts if the 95 % interval of their recall is above `_FOUND` percent, and does not if it ends below.
    If an interval has `_FOUND` inside, nothing is known of its system: the title only names those that find facts. The
    best line of each model counts. If any of these did not learn, the title is about those that did.
    """
    best = best_of_models(lines)
    all_comparable = all(line.learned.comparable for line in best)
    judged = [line for line in best if all_comparable or line.learned.word == LEARNED]
    learned = "" if all_comparable else " that learned"
    lows = {line.label: line.points[measure].low for line in judged if measure in line.points}
    if any(line.one_seed for line in judged):
        return ""
    if not judged or len(lows) < len(judged) or any(map(math.isnan, lows.values())):
        return ""
    finders = [label for label, low in lows.items() if low > _FOUND]
    undecided = any(
        line.points[measure].low <= _FOUND < line.points[measure].high for line in judged
    )
    if undecided and not 0 < len(finders) <= MOST_SYSTEMS // 2:
        return ""
    if len(finders) in (0, len(lows)):
        return f"{topic}: {f'all systems{learned} find' if finders else f'no system{learned} finds'} {facts}"
    if len(finders) > MOST_SYSTEMS // 2:
        return f"{topic}: {len(finders)} of {len(lows)} systems{learned} find {facts}"
    *labels, last = finders
    names = f"{', '.join(labels)} and {last} find" if labels else f"{last} finds"
    only = "" if undecided else "only " if all_comparable else "of the systems that learned, only "
    return f"{topic}: {only}{names} {facts}"


def draw_recall(
    topic: str,
    lines: Sequence[RecallLine],
    panels: Sequence[RecallPanel] = PANELS,
    title: str = "",
    note: str = "",
) -> bytes:
    """Draw fact recall by `draw_lines`; return a PNG.

    The title is what was found; default: the systems that find silent facts at the largest distance, if that is known.
    """
    if not title and (measures := _reached(PANELS[-1], lines)):
        sections = format_count(round(PANELS[-1].places[measures[-1]]), "section")
        title = headline(f"Silent facts, {sections} apart", lines, measures[-1])
    rule = f"The title: a system finds facts if its interval at the right end is above {_FOUND:.0f}\N{NO-BREAK SPACE}%."
    return draw_lines(
        topic, lines, panels, "facts stated right (%)", title, [rule, note] if title else [note]
    )


def draw_oracle_recall(topic: str, lines: Sequence[RecallLine]) -> bytes:
    """Draw oracle recall by `draw_lines`; return a PNG. `lines` has at least one."""
    return draw_lines(topic, lines, ORACLE_PANELS, "sentences (%)", "", [])


def draw_lines(
    topic: str,
    lines: Sequence[RecallLine],
    panels: Sequence[RecallPanel],
    unit: str,
    title: str,
    notes: Sequence[str],
) -> bytes:
    """Draw the panels side by side, with labels of the lines on the right; return a PNG.

    The best line of each model is drawn, of `MOST_SYSTEMS` models at most. Panels without any points are left out.
    Without a title, the topic is the title. `unit` is the label of the vertical axis.
    """
    best = best_of_models(lines)
    top_lines = best[:MOST_SYSTEMS]
    panels = [panel for panel in panels if _reached(panel, top_lines)]
    drawn = _panel_lines(panels, top_lines)
    one_seed = [line.label for line in top_lines if line.one_seed]
    over = describe_intervals([line.several_seeds for line in top_lines])
    below = [
        f"{topic}." if title else "",
        f"Lines are means over {over}, bands their 95 % intervals.",
    ]
    if one_seed:
        below.append(f"One seed, another may differ: {', '.join(one_seed)}.")
    if not all(series.band for line in drawn for series in line.series):
        below.append(
            f"Dashed lines: intervals of more than {_VAGUE:.0f} points, because seeds differ much."
        )
    words = [line.learned.word for line in top_lines if not line.learned.comparable]
    below += [describe_mark("Grey", words), *notes]
    if len(top_lines) < len(lines):
        of = f"{len(top_lines)} of {len(best)} models, each with its best settings"
        below.append(f"{of}; the table has all {len(lines)} rows.")
    plots = [_panel(panel, top_lines) for panel in panels]
    return draw_panels(
        title or topic, [join(*below)], [PanelRow(unit, plots, drawn, (-4, 104), (0, 50, 100))]
    )["png"]


def _reached(panel: RecallPanel, lines: Sequence[RecallLine]) -> list[str]:
    return [measure for measure in panel.places if any(measure in line.points for line in lines)]


def _panel(panel: RecallPanel, lines: Sequence[RecallLine]) -> Panel:
    first, second, *_ = panel.places.values()
    room, last = 0.5 * (second - first), panel.places[_reached(panel, lines)[-1]]
    ticks = {place: name for place, name in panel.ticks.items() if place <= last + room}
    chances = sorted({line.chance for line in lines if line.chance is not None})
    levels = {**panel.guesses, **{chance: f"chance {chance:.1f}" for chance in chances}}
    return Panel(
        panel.heading,
        panel.unit,
        (first - room, last + room),
        ticks,
        [Level(name, height) for height, name in levels.items()],
    )


def _panel_lines(panels: Sequence[RecallPanel], lines: Sequence[RecallLine]) -> list[PanelLine]:
    panel_lines = []
    for line, style in zip(lines, system_styles([line.model for line in lines]), strict=True):
        series = []
        for panel in panels:
            points = {
                place: line.points[name]
                for name, place in panel.places.items()
                if name in line.points
            }
            hollow = {place for name, place in panel.places.items() if name in line.hollow}
            series.append(Series(points, hollow=hollow, band=not _is_vague([*points.values()])))
        known = line.learned.comparable
        label = line.label if known else f"{line.label} ({line.learned.word})"
        panel_lines.append(PanelLine(label, style if known else {**style, "color": GREY}, series))
    return panel_lines


def _is_vague(points: Sequence[Estimate]) -> bool:
    """Return True if the intervals of a line are so wide that their band would cover the others."""
    return bool(points) and sum(point.high - point.low for point in points) > _VAGUE * len(points)


@dataclass(frozen=True)
class RecallPicture:
    """A picture of a table.

    Attributes:
        name: end of its file's name, after the dataset.
        lines: returns the lines of comparable rows; empty if there is nothing to draw.
        draw: draws lines; returns a PNG.
    """

    name: str
    topic: str
    lines: Callable[[Sequence[SeedGroup]], tuple[RecallLine, ...]]
    draw: Callable[[str, Sequence[RecallLine]], bytes]


FACTS = RecallPicture(
    "recall", "planted facts that the summaries state right", recall_lines, draw_recall
)
RECALL_PICTURES = (
    FACTS,
    RecallPicture(
        "oracle-recall", "sentences that the summaries copy", oracle_lines, draw_oracle_recall
    ),
)
