"""Recall by place: of planted facts, and of the sentences that the oracle selects.

    rows of a table --recall_lines--> RecallLine of each system --facts_figure--> SeriesFigure
    rows of a table --oracle_lines--> RecallLine of each system --oracle_figure--> SeriesFigure

Single facts and sentences are placed by position, other facts by the distance between their two places.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain

from longsumbench.formatting import format_count
from longsumbench.leaderboards.notes import describe_intervals, describe_mark, join
from longsumbench.leaderboards.seed_groups import LEARNED, SeedGroup
from longsumbench.views.series import Panel, PanelRow, Series, SeriesFigure

# A table draws `RECALL_PICTURES`, at the end of this file; all of them are a `recall_figure`
CHANCE = "fact_recall_chance"
MOST_SYSTEMS = 6  # in a picture
_FOUND = 50.0  # percent; also what a guess between the two bids of a silent fact gives
_MOST_NAMED = 3  # systems in a title
_VAGUE = 60.0  # mean width of the intervals of a line, in percent, above which it has no band
_ORACLE = "oracle"
_PERCENT_LIMITS = (-4, 104)


@dataclass(frozen=True)
class RecallPanel:
    """One of the plots.

    Attributes:
        heading: two lines.
        axis: label of the horizontal axis.
        places: measure → position on that axis.
        ticks: position of a tick → its label.
        guesses: label → recall in percent of a system that guesses.
    """

    heading: str
    axis: str
    places: Mapping[str, float]
    ticks: Mapping[float, str]
    guesses: Mapping[str, float] = field(default_factory=dict)


KINDS = {  # kind of fact → heading of its panel
    "single": "Single facts\none place",
    "relayed": "Relayed facts\nlink stated",
    "silent": "Silent facts\nlink unstated",
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
    _by_distance("silent", {"guess of two": _FOUND}),
)
ORACLE_PANELS = (
    _by_position("Recall\nof the oracle's sentences there", "oracle_recall"),
    _by_position("Where it looks\ncopied sentences from there", "extracted"),
)


@dataclass(frozen=True)
class RecallLine:
    """The line of a system.

    Attributes:
        label: its name in the legend.
        row: its runs; `numbers` has the measures of the panels, in percent.
        hollow: measures that are drawn with hollow markers.
    """

    label: str
    row: SeedGroup
    hollow: Set[str] = frozenset()


def recall_lines(
    rows: Sequence[SeedGroup], panels: Sequence[RecallPanel] = PANELS
) -> list[RecallLine]:
    """Return the lines of comparable rows in their order; oracles, and systems without any point, are left out."""
    measures = set().union(*(panel.places for panel in panels))
    lines = []
    for row in rows:
        if not row.first.oracle and measures & row.numbers.keys():
            lines.append(RecallLine(row.label, row))
    return lines


def oracle_lines(rows: Sequence[SeedGroup]) -> list[RecallLine]:
    """Return the lines of comparable rows in their order; the first one shows where the oracle looks.

    Systems without oracle recall are left out.
    """
    lines = recall_lines(rows, ORACLE_PANELS)
    oracle = next((row for row in rows if row.first.key.model == _ORACLE), None)
    if oracle and lines:
        looks = ORACLE_PANELS[-1].places.keys() & oracle.numbers.keys()
        points = {measure: oracle.numbers[measure] for measure in looks}
        if points:
            lines.insert(0, RecallLine(_ORACLE, replace(oracle, numbers=points)))
    return lines


def best_of_models(lines: Sequence[RecallLine]) -> list[RecallLine]:
    """Return the first line of each model that learned, or its first line if none did, in the order of `lines`.

    A label has the settings only if the model has other lines.
    """
    by_model: dict[str, list[RecallLine]] = {}
    for line in lines:
        by_model.setdefault(line.row.first.key.model, []).append(line)
    best = []
    for line in lines:
        model = line.row.first.key.model
        learned = [other for other in by_model[model] if other.row.learned.comparable]
        if line is (learned or by_model[model])[0]:
            alone = len(by_model[model]) == 1
            best.append(replace(line, label=model) if alone else line)
    return best


def headline(topic: str, lines: Sequence[RecallLine], measure: str, facts: str = "them") -> str:
    """Return a title that names the systems that find facts; empty if an interval is unknown, or of one seed.

    A system finds facts if the 95 % interval of their recall is above `_FOUND` percent, and does not if it ends below.
    If an interval has `_FOUND` inside, nothing is known of its system: the title only names those that find facts. The
    best line of each model counts. If any of these did not learn, the title is about those that did.
    """
    best = best_of_models(lines)
    all_comparable = all(line.row.learned.comparable for line in best)
    judged = [line for line in best if all_comparable or line.row.learned.word == LEARNED]
    numbers = {line.label: line.row.numbers.get(measure) for line in judged}
    known = {label: number for label, number in numbers.items() if number}
    if not judged or len(known) < len(judged) or any(line.row.one_seed for line in judged):
        return ""
    if any(math.isnan(number.low) for number in known.values()):
        return ""
    finders = [label for label, number in known.items() if number.low > _FOUND]
    undecided = any(number.low <= _FOUND < number.high for number in known.values())
    can_be_named = 0 < len(finders) <= _MOST_NAMED
    if undecided and not can_be_named:
        return ""

    # What can be said: of none, of all, of a number, or of named systems
    learned = "" if all_comparable else " that learned"
    if not finders:
        subject = f"no system{learned} finds"
    elif len(finders) == len(known):
        subject = f"all systems{learned} find"
    elif not can_be_named:
        subject = f"{len(finders)} of {len(known)} systems{learned} find"
    else:
        subject = f"{_name_all(finders)} {'find' if finders[1:] else 'finds'}"
        if not undecided:
            among = "" if all_comparable else "of the systems that learned, "
            subject = f"{among}only {subject}"
    return f"{topic}: {subject} {facts}"


def _name_all(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def facts_figure(
    topic: str,
    lines: Sequence[RecallLine],
    panels: Sequence[RecallPanel] = PANELS,
    title: str = "",
    note: str = "",
) -> SeriesFigure:
    """Return the figure of fact recall; see `recall_figure`.

    The title is what was found; default: the systems that find silent facts at the largest distance, if that is known.
    """
    silent = PANELS[-1]
    measures = _measured_places(silent, lines)
    if measures and not title:
        sections = format_count(round(silent.places[measures[-1]]), "section")
        title = headline(f"Silent facts, {sections} apart", lines, measures[-1])
    rule = f"The title: a system finds facts if its interval at the right end is above {_FOUND:.0f}\N{NO-BREAK SPACE}%."
    notes = [rule, note] if title else [note]
    return recall_figure(topic, lines, panels, "facts stated right (%)", title, notes)


def oracle_figure(topic: str, lines: Sequence[RecallLine]) -> SeriesFigure:
    """Return the figure of oracle recall; see `recall_figure`."""
    return recall_figure(topic, lines, ORACLE_PANELS, "sentences (%)")


def recall_figure(
    topic: str,
    lines: Sequence[RecallLine],
    panels: Sequence[RecallPanel],
    measured: str,
    title: str = "",
    notes: Sequence[str] = (),
) -> SeriesFigure:
    """Return a figure with the panels side by side. `lines` has at least one.

    The best line of each model is drawn, of `MOST_SYSTEMS` models at most. Panels without any points are left out.
    Without a title, the topic is the title. `measured` is the label of the vertical axis.
    """
    best = best_of_models(lines)
    drawn = best[:MOST_SYSTEMS]
    rows = [line.row for line in drawn]
    one_seed = [line.label for line in drawn if line.row.one_seed]
    words = [row.learned.word for row in rows if not row.learned.comparable]
    over = describe_intervals([len(row.runs) > 1 for row in rows])
    left_out = ""
    if len(drawn) < len(lines):
        left_out = f"{len(drawn)} of {len(best)} models, each with its best settings; the table has all {len(lines)} rows."
    measured_panels = [panel for panel in panels if _measured_places(panel, drawn)]
    plots = [_panel(panel, drawn) for panel in measured_panels]
    bands = [series.band for series in chain.from_iterable(plot.series for plot in plots)]
    vague = f"Dashed lines: intervals of more than {_VAGUE:.0f} points, because seeds differ much."
    note = join(
        f"{topic}." if title else "",
        f"Lines are means over {over}, bands their 95 % intervals.",
        f"One seed, another may differ: {', '.join(one_seed)}." if one_seed else "",
        "" if all(bands) else vague,
        describe_mark("Grey", words),
        *notes,
        left_out,
    )
    return SeriesFigure(title or topic, [PanelRow(measured, plots, _PERCENT_LIMITS)], [note])


def _measured_places(panel: RecallPanel, lines: Sequence[RecallLine]) -> list[str]:
    """Return the measures of a panel that a system has."""
    measures: set[str] = set()
    for line in lines:
        measures |= line.row.numbers.keys()
    return [measure for measure in panel.places if measure in measures]


def _panel(panel: RecallPanel, lines: Sequence[RecallLine]) -> Panel:
    last = panel.places[_measured_places(panel, lines)[-1]]
    ticks = {place: name for place, name in panel.ticks.items() if place <= last}
    levels = dict(panel.guesses)
    for line in lines:
        if CHANCE in line.row.numbers:
            chance = line.row.numbers[CHANCE].mean
            levels[f"chance {chance:.1f}"] = chance
    return Panel(panel.heading, panel.axis, ticks, [_series(panel, line) for line in lines], levels)


def _series(panel: RecallPanel, line: RecallLine) -> Series:
    numbers, learned = line.row.numbers, line.row.learned
    points = {place: numbers[name] for name, place in panel.places.items() if name in numbers}
    hollow = {place for name, place in panel.places.items() if name in line.hollow}
    label = line.label if learned.comparable else f"{line.label} ({learned.word})"
    width = sum(point.high - point.low for point in points.values())
    return Series(
        label,
        line.row.first.key.model,
        points,
        hollow=hollow & points.keys(),
        grey=not learned.comparable,
        band=not width > _VAGUE * len(points),
    )


@dataclass(frozen=True)
class RecallPicture:
    """A picture of a table.

    Attributes:
        name: end of its file's name, after the dataset.
        lines: returns the lines of comparable rows; empty if there is nothing to draw.
        figure: returns the figure of a topic and lines.
    """

    name: str
    topic: str
    lines: Callable[[Sequence[SeedGroup]], list[RecallLine]]
    figure: Callable[[str, Sequence[RecallLine]], SeriesFigure]


FACTS = RecallPicture(
    "recall", "planted facts that the summaries state right", recall_lines, facts_figure
)
RECALL_PICTURES = (
    FACTS,
    RecallPicture(
        "oracle-recall", "sentences that the summaries copy", oracle_lines, oracle_figure
    ),
)
