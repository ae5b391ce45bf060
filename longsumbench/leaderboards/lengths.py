"""Fact recall against length: systems that were trained on short texts and tested on longer ones.

    records --systems_at_lengths--> LengthCurves of each model and variant: its runs by length of the test texts
        --draw_lengths--> PNG   --lengths_csv--> CSV

A curve has the runs of one system with the same settings and the same generated training texts. The same generator
makes the test texts, at several lengths.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import Any

from longsumbench.leaderboards.comparability import settings_of
from longsumbench.leaderboards.learned import judge_learning
from longsumbench.leaderboards.recall import (
    CHANCE,
    KINDS,
    RecallLine,
    RecallPanel,
    draw_recall,
    headline,
)
from longsumbench.leaderboards.seed_groups import Learned, ScoresOfRuns, SeedGroup, average_seeds
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import SHORT_ID, RunRecord, source_seen, split_variant
from longsumbench.views.tables import csv_text, with_bounds

_OVERALL = "fact_recall"
FACT_PANELS = {
    f"fact_recall_{kind}": heading for kind, heading in KINDS.items()
}  # measure → heading of its panel
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
        shares = [
            share
            for record in self.tested[length].runs
            if (share := source_seen(record)) is not None
        ]
        return min(shares, default=None)

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
    systems: dict[tuple[str, ...], dict[int, list[RunRecord]]] = {}
    for record in records:
        if (
            not record.oracle
            and record.trained
            and _OVERALL in record.evaluation.measures
            and _text_lengths(record, record.key.split)
        ):
            tested = systems.setdefault(_belongs_to(record), {})
            tested.setdefault(max(_text_lengths(record, record.key.split)), []).append(record)
    several = {key: tested for key, tested in systems.items() if len(tested) > 1}
    names = [key[0] for key in several]
    curves = [
        _system(name, names.count(name) > 1, tested, scores or {})
        for (name, *_), tested in several.items()
    ]
    return tuple(sorted(curves, key=_best_first))


def _text_lengths(record: RunRecord, split: str) -> tuple[int, ...]:
    texts = record.texts.generated.get(split)
    return texts.lengths if texts else ()


def _belongs_to(record: RunRecord) -> tuple[str, ...]:
    """Return a key that runs of one system share; the name comes first."""
    texts = record.texts
    options = (f"{option}={value}" for option, value in texts.options.items())
    name = " ".join([record.key.model, *split_variant(record.variant), *options])
    trained = (texts.generator, texts.options, texts.generated.get("train"), record.train_examples)
    return (
        name,
        repr((record.key.dataset, record.key.split, trained)),
        json.dumps(settings_of(record, "speed"), sort_keys=True),
    )


def _system(
    name: str, shared: bool, tested: dict[int, list[RunRecord]], scores: ScoresOfRuns
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
    label = f"{name} [{first.run_id[:SHORT_ID]}]" if shared else name
    learned = judge_learning([shortest], scores)[shortest.key]
    return LengthCurves(
        first.key.model, label, max(_text_lengths(first, "train"), default=0), groups, learned
    )


def _best_first(system: LengthCurves) -> tuple[float, str]:
    longest = system.point(_OVERALL, max(system.tested))
    return (-longest.mean if longest else 0.0), system.label


def draw_lengths(subject: str, systems: Sequence[LengthCurves]) -> bytes:
    """Draw recall against length, a panel per kind of fact; return a PNG. `systems` has at least one."""
    lengths = sorted({length for system in systems for length in system.tested})
    ticks = {log2(length): in_thousands(length) for length in lengths}
    panels = [
        RecallPanel(
            heading,
            "tokens of a text",
            {_recall_at(kind, length): log2(length) for length in lengths},
            ticks,
        )
        for kind, heading in FACT_PANELS.items()
    ]
    cut = any(system.is_cut(length) for system in systems for length in system.tested)
    note = f"Hollow: less than {WHOLE:.0f} % of the text is seen." if cut else ""
    lines = list(map(_recall_line, systems))
    topic = f"Trained on {_training_lengths(systems)} tokens, tested on {in_thousands(lengths[-1])}"
    title = headline(
        topic, lines, _recall_at(next(iter(FACT_PANELS)), lengths[-1]), "most single facts"
    )
    return draw_recall(subject, lines, panels, title, note)


def title_of(dataset: str, systems: Sequence[LengthCurves]) -> str:
    """Return the title of the picture."""
    trained = f"trained on {_training_lengths(systems)} tokens at most"
    return f"{dataset}: planted facts that the summaries state right, by length ({trained})"


def _training_lengths(systems: Sequence[LengthCurves]) -> str:
    return ", ".join(
        in_thousands(length) for length in sorted({system.trained for system in systems})
    )


def _recall_line(system: LengthCurves) -> RecallLine:
    places = {
        _recall_at(kind, length): system.point(kind, length)
        for kind in FACT_PANELS
        for length in system.tested
    }
    points = {name: point for name, point in places.items() if point is not None}
    groups, chance = system.tested.values(), system.point(CHANCE, min(system.tested))
    hollow = {
        _recall_at(kind, length)
        for kind in FACT_PANELS
        for length in system.tested
        if system.is_cut(length)
    }
    seeds = [len(group.runs) for group in groups]
    return RecallLine(
        system.model,
        system.label,
        points,
        chance.mean if chance else None,
        hollow,
        system.learned,
        one_seed=any(group.one_seed for group in groups),
        several_seeds=min(seeds) > 1,
    )


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
            }
            row |= {
                "seeds": len(group.runs),
                "n": min(run.evaluation.n for run in group.runs),
                "source_seen": system.seen(length),
            }
            for measure in (_OVERALL, *FACT_PANELS, CHANCE):
                row |= with_bounds(measure, system.point(measure, length))
            row["run_ids"] = " ".join(run.run_id for run in group.runs)
            rows.append(row)
    return csv_text(rows)
