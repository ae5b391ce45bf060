"""Fact recall against length: systems that were trained on short texts and tested on longer ones.

    records --systems_at_lengths--> LengthCurves of each model and variant: its runs by length of the test texts

A curve has the runs of one system with the same settings and the same generated training texts. The same generator
makes the test texts, at several lengths.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from longsumbench.leaderboards.comparability import PLANTED, settings_of
from longsumbench.leaderboards.learned import judge_learning
from longsumbench.leaderboards.seed_groups import Learned, ScoresOfRuns, SeedGroup, average_seeds
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import SHORT_ID, RunRecord, source_seen, split_variant

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
        has_recall = record.trained and not record.oracle and PLANTED in record.evaluation.measures
        if lengths and has_recall:
            tested = systems.setdefault(_system_of(record), {})
            tested.setdefault(max(lengths), []).append(record)
    several = {system: tested for system, tested in systems.items() if len(tested) > 1}
    # Systems with one name get the id of a run
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
        # Of several runs of a seed, the one with the most examples counts
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
    longest = system.point(PLANTED, max(system.tested))
    return (-longest.mean if longest else 0.0), system.label
