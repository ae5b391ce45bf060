"""The picture and the CSV file of fact recall against length; their numbers are those of `systems_at_lengths`."""

from collections.abc import Sequence
from dataclasses import replace
from math import log2
from typing import Any

from longsumbench.leaderboards.comparability import PLANTED
from longsumbench.leaderboards.lengths import WHOLE, LengthCurves
from longsumbench.views.recall import CHANCE, KINDS, RecallLine, RecallPanel, recall_figure
from longsumbench.views.series import SeriesFigure
from longsumbench.views.tables import csv_text, with_bounds

# Measure → heading of its panel
FACT_PANELS = {f"fact_recall_{kind}": heading for kind, heading in KINDS.items()}


def lengths_figure(title: str, systems: Sequence[LengthCurves]) -> SeriesFigure:
    """Return the figure of recall against length, a panel per kind of fact. `systems` has at least one."""
    lengths = sorted(set[int]().union(*(system.tested for system in systems)))
    ticks = {log2(length): in_thousands(length) for length in lengths}
    panels = []
    for kind, heading in FACT_PANELS.items():
        places = {_recall_at(kind, length): log2(length) for length in lengths}
        panels.append(RecallPanel(heading, "tokens of a text", places, ticks))
    models = [system.model for system in systems]
    lines = []
    for system in systems:
        # Settings distinguish the lines of a model
        label = system.label if models.count(system.model) > 1 else system.model
        lines.append(_recall_line(system, label))
    is_cut = any(line.hollow for line in lines)
    note = f"Hollow: less than {WHOLE:.0f} % of the text is seen." if is_cut else ""
    return recall_figure(title, lines, panels, note=note)


def describe_lengths_picture(dataset: str, systems: Sequence[LengthCurves]) -> str:
    """Return the title of the picture."""
    lengths = sorted({system.trained for system in systems})
    trained = f"trained on {', '.join(map(in_thousands, lengths))} tokens at most"
    return f"{dataset}: planted facts that the summaries state right, by length ({trained})"


def _recall_line(system: LengthCurves, label: str) -> RecallLine:
    """Return the line of a system; its row has the measures of all lengths, and the runs of the fewest seeds."""
    points, hollow = {}, set()
    for kind in FACT_PANELS:
        for length in system.tested:
            if point := system.point(kind, length):
                points[_recall_at(kind, length)] = point
            if system.is_cut(length):
                hollow.add(_recall_at(kind, length))
    if chance := system.point(CHANCE, min(system.tested)):
        points[CHANCE] = chance
    # A label that counts seeds must not promise more than the worst length has
    fewest = min(system.tested.values(), key=lambda group: len(group.runs))
    row = replace(fewest, numbers=points, learned=system.learned)
    return RecallLine(label, row, hollow)


def _recall_at(kind: str, length: int) -> str:
    return f"{kind} at {length}"


def in_thousands(length: int) -> str:
    """Format a length for display: "1k" (1,024 tokens), "1.5k", "300", "1M"."""
    thousand = 1_000 if length % 1_000 == 0 else 1_024
    if length < thousand:
        return str(length)
    return f"{length / thousand**2:.3g}M" if length >= thousand**2 else f"{length / thousand:.3g}k"


def lengths_csv(systems: Sequence[LengthCurves]) -> str:
    """Return a row for each system and length, with each measure and its interval."""
    rows = []
    for system in systems:
        for length, group in system.tested.items():
            row: dict[str, Any] = {
                "system": system.label,
                "train_length": system.trained,
                "document_length": length,
                "seeds": len(group.runs),
                "n": min(run.evaluation.n for run in group.runs),
                "source_seen": system.seen(length),
            }
            for measure in (PLANTED, *FACT_PANELS, CHANCE):
                row |= with_bounds(measure, system.point(measure, length))
            row["run_ids"] = " ".join(run.run_id for run in group.runs)
            rows.append(row)
    return csv_text(rows)
