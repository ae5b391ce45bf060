"""Fact recall against length: systems that were trained on short texts and tested on longer ones.

    records --systems_at_lengths--> LengthCurves of each model and variant: its runs by length of the test texts
        --lengths_figure--> SeriesFigure   --lengths_csv--> CSV

A curve has the runs of one system with the same settings and the same generated training texts. The same generator
makes the test texts, at several lengths.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from typing import Any, NamedTuple

from longsumbench.leaderboards.comparability import settings_of
from longsumbench.leaderboards.learned import judge_learning
from longsumbench.leaderboards.recall import (
    CHANCE,
    KINDS,
    RecallLine,
    RecallPanel,
    facts_figure,
    headline,
)
from longsumbench.leaderboards.seed_groups import Learned, ScoresOfRuns, SeedGroup, average_seeds
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import SHORT_ID, RunRecord, source_seen, split_variant
from longsumbench.views.series import SeriesFigure
from longsumbench.views.tables import csv_text, with_bounds

_OVERALL = "fact_recall"
# Measure → heading of its panel
FACT_PANELS = {f"fact_recall_{kind}": heading for kind, heading in KINDS.items()}
WHOLE = 99.0  # percent of the source; markers of systems that see less are hollow


@dataclass(frozen=True)
class LengthCurves:
    """A model and variant that was trained on one length and tested at several.

    Attributes:
        trained: tokens of the longest training texts.
        tested: tokens of a test text → the runs, one per seed; from short to long.
        learned: whether it learned, by its runs on the shortest test texts.
    """

    model: str
    label: str
    trained: int
    tested: dict[int, SeedGroup]
    learned: Learned = field(default_factory=Learned)

    def seen(self, length: int) -> float | None:
        """Return the smallest share of the source that a run saw, in percent; None without a ledger."""
        shares = [source_seen(record) for record in self.tested[length].runs]
        return min((share for share in shares if share is not None), default=None)

    def is_cut(self, length: int) -> bool:
        """Return True if a run saw less than `WHOLE` percent of the source."""
        seen = self.seen(length)
        return seen is not None and seen < WHOLE

    def point(self, measure: str, length: int) -> Estimate | None:
        """Return the mean of a measure at a length, over seeds; None if it was not measured."""
        return self.tested[length].numbers.get(measure)


def systems_at_lengths(
    records: Iterable[RunRecord], scores: ScoresOfRuns | None = None
) -> tuple[LengthCurves, ...]:
    """Return the systems that were tested at two lengths or more, sorted by recall at the longest.

    Runs on texts without a generated length are skipped. Without scores, means over several seeds have no interval.
    """
    systems: dict[_System, dict[int, list[RunRecord]]] = {}
    for record in records:
        lengths = _text_lengths(record, record.key.split)
        has_recall = record.trained and not record.oracle and _OVERALL in record.evaluation.measures
        if lengths and has_recall:
            tested = systems.setdefault(_system_of(record), {})
            tested.setdefault(max(lengths), []).append(record)
    # A curve needs two lengths
    several = {system: tested for system, tested in systems.items() if len(tested) > 1}
    names = [system.name for system in several]
    curves = []
    for system, tested in several.items():
        is_shared = names.count(system.name) > 1
        curves.append(_length_curves(system.name, is_shared, tested, scores or {}))
    return tuple(sorted(curves, key=_best_first))


class _System(NamedTuple):
    """What the runs of one system share."""

    name: str
    data: str
    settings: str


def _text_lengths(record: RunRecord, split: str) -> tuple[int, ...]:
    texts = record.texts.generated.get(split)
    return texts.lengths if texts else ()


def _system_of(record: RunRecord) -> _System:
    texts = record.texts
    options = [f"{option}={value}" for option, value in texts.options.items()]
    name = " ".join([record.key.model, *split_variant(record.variant), *options])
    trained = (texts.generator, texts.options, texts.generated.get("train"), record.train_examples)
    return _System(
        name,
        repr((record.key.dataset, record.key.split, trained)),
        json.dumps(settings_of(record, "speed"), sort_keys=True),
    )


def _length_curves(
    name: str, is_shared: bool, tested: dict[int, list[RunRecord]], scores: ScoresOfRuns
) -> LengthCurves:
    """Make the curve of a system; of several runs with the same seed and length, the largest counts."""
    groups: dict[int, SeedGroup] = {}
    for length, runs in sorted(tested.items()):
        by_seed = {
            run.key.seed: run
            for run in sorted(runs, key=lambda run: (run.evaluation.n, run.run_id))
        }
        ordered = sorted(by_seed.values(), key=lambda run: (run.key.seed or 0, run.run_id))
        groups[length] = average_seeds(SeedGroup(tuple(ordered)), scores)
    shortest = groups[min(groups)]
    first = shortest.first
    label = f"{name} [{first.run_id[:SHORT_ID]}]" if is_shared else name
    learned = judge_learning([shortest], scores)[shortest.key]
    trained = max(_text_lengths(first, "train"), default=0)
    return LengthCurves(first.key.model, label, trained, groups, learned)


def _best_first(system: LengthCurves) -> tuple[float, str]:
    longest = system.point(_OVERALL, max(system.tested))
    return (-longest.mean if longest else 0.0), system.label


def lengths_figure(subject: str, systems: Sequence[LengthCurves]) -> SeriesFigure:
    """Return the figure of recall against length, a panel per kind of fact. `systems` has at least one."""
    lengths = sorted(set().union(*(system.tested for system in systems)))
    ticks = {log2(length): in_thousands(length) for length in lengths}
    panels = []
    for kind, heading in FACT_PANELS.items():
        places = {_recall_at(kind, length): log2(length) for length in lengths}
        panels.append(RecallPanel(heading, "tokens of a text", places, ticks))
    lines = [_recall_line(system) for system in systems]
    is_cut = any(line.hollow for line in lines)
    note = f"Hollow: less than {WHOLE:.0f} % of the text is seen." if is_cut else ""
    topic = f"Trained on {_training_lengths(systems)} tokens, tested on {in_thousands(lengths[-1])}"
    most_singles = _recall_at(next(iter(FACT_PANELS)), lengths[-1])
    title = headline(topic, lines, most_singles, "most single facts")
    return facts_figure(subject, lines, panels, title, note)


def title_of(dataset: str, systems: Sequence[LengthCurves]) -> str:
    """Return the title of the picture."""
    trained = f"trained on {_training_lengths(systems)} tokens at most"
    return f"{dataset}: planted facts that the summaries state right, by length ({trained})"


def _training_lengths(systems: Sequence[LengthCurves]) -> str:
    lengths = sorted({system.trained for system in systems})
    return ", ".join(in_thousands(length) for length in lengths)


def _recall_line(system: LengthCurves) -> RecallLine:
    """Return the line of a system; its row has the measures of all lengths, and the runs of the fewest seeds."""
    points, hollow = {}, set()
    for kind in FACT_PANELS:
        for length in system.tested:
            point = system.point(kind, length)
            if point:
                points[_recall_at(kind, length)] = point
            if system.is_cut(length):
                hollow.add(_recall_at(kind, length))
    chance = system.point(CHANCE, min(system.tested))
    if chance:
        points[CHANCE] = chance
    # Notes about seeds and intervals must hold at every length
    fewest = min(system.tested.values(), key=lambda group: len(group.runs))
    row = replace(fewest, numbers=points, learned=system.learned)
    return RecallLine(system.label, row, hollow)


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
            for measure in (_OVERALL, *FACT_PANELS, CHANCE):
                row |= with_bounds(measure, system.point(measure, length))
            row["run_ids"] = " ".join(run.run_id for run in group.runs)
            rows.append(row)
    return csv_text(rows)
