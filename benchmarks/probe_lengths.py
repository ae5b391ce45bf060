"""Recall of `probe`'s facts against length, of the systems that were trained short and tested at several lengths.

    longsumbench run -m dataset=probe dataset.train_length=1024 dataset.document_length=1024,4096,16384,65536 model=…
    python benchmarks/probe_lengths.py [--results-dir results/reference] [--picture docs/pictures/lengths.png]

A Markdown table: recall in percent of facts in one place, and of those in two places with the link said and unsaid. It
also says how much of the text was seen, if not all. `--picture` draws the same.

A curve has the runs of one system with the same settings and the same generated training texts. The same generator
makes the test texts, at several lengths.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from pathlib import Path
from typing import NamedTuple

from tabulate import tabulate

from longsumbench.leaderboards.comparability import PLANTED
from longsumbench.leaderboards.learned import gate_rows
from longsumbench.leaderboards.seed_groups import Learned, ResultRow, ScoresOfRuns, average_seeds
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import SHORT_ID, RunRecord, source_seen, split_variant
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import collect_settings
from longsumbench.views.recall import CHANCE, KINDS, RecallPanel, recall_figure
from longsumbench.views.series import SeriesFigure, draw_series

WHOLE = 99.0  # percent of the source; markers of systems that see less are hollow
# Measure → heading of its panel
FACT_PANELS = {f"fact_recall_{kind}": heading for kind, heading in KINDS.items()}


def main() -> None:
    """Print the table; draw the picture if asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results-dir", default="results/reference", help="where the runs are")
    parser.add_argument("--picture", type=Path, help="PNG file that is written")
    options = parser.parse_args()
    results = Results(Path(options.results_dir))
    records = list(results.records("probe"))
    systems = systems_at_lengths(records, read_all_scores(results, records))
    if not systems:
        sys.exit("no system was tested at two lengths or more: run one first")
    print(lengths_table(systems))
    if options.picture:
        options.picture.write_bytes(draw_series(lengths_figure(systems))["png"])


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
    tested: dict[int, ResultRow]
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
        return self.tested[length].means.get(measure)


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
        json.dumps(collect_settings(record, "speed"), sort_keys=True),
    )


def _length_curves(
    name: str, is_shared: bool, tested: dict[int, list[RunRecord]], scores: ScoresOfRuns
) -> LengthCurves:
    """Make the curve of a system; of several runs with the same seed and length, the largest counts."""
    groups: dict[int, ResultRow] = {}
    for length, runs in sorted(tested.items()):
        # Of several runs of a seed, the one with the most examples counts
        by_seed = {
            run.key.seed: run
            for run in sorted(runs, key=lambda run: (run.evaluation.n, run.run_id))
        }
        ordered = sorted(by_seed.values(), key=lambda run: (run.key.seed or 0, run.run_id))
        groups[length] = average_seeds(ResultRow(tuple(ordered)), scores)
    shortest = groups[min(groups)]
    representative = shortest.representative
    label = f"{name} [{representative.run_id[:SHORT_ID]}]" if is_shared else name
    learned = gate_rows([shortest], scores)[shortest.key]
    trained = max(_text_lengths(representative, "train"), default=0)
    return LengthCurves(representative.key.model, label, trained, groups, learned)


def _best_first(system: LengthCurves) -> tuple[float, str]:
    longest = system.point(PLANTED, max(system.tested))
    return (-longest.mean if longest else 0.0), system.label


def lengths_table(systems: Sequence[LengthCurves]) -> str:
    """Return a Markdown table with a row per system and a column per length.

    A cell has the recall of the three kinds of facts in percent, "–" if there are none. It also has the share
    of the source that was seen, if that is not all.
    """
    lengths = sorted({length for system in systems for length in system.tested})
    header = ["system", "seeds", *(f"{length:,}" for length in lengths)]
    rows = [
        [
            system.label,
            "/".join(dict.fromkeys(str(len(group.runs)) for group in system.tested.values())),
            *(
                _recall_cell(system, length) if length in system.tested else ""
                for length in lengths
            ),
        ]
        for system in systems
    ]
    return tabulate(rows, header, tablefmt="pipe", disable_numparse=True)


def _recall_cell(system: LengthCurves, length: int) -> str:
    points = [system.point(kind, length) for kind in FACT_PANELS]
    text = " / ".join(f"{point.mean:.0f}" if point else "–" for point in points)
    return f"{text} (sees {system.seen(length):.0f} %)" if system.is_cut(length) else text


def lengths_figure(systems: Sequence[LengthCurves]) -> SeriesFigure:
    """Return the figure of recall against length, a panel per kind of fact. `systems` has at least one."""
    lengths = sorted(set[int]().union(*(system.tested for system in systems)))
    ticks = {log2(length): in_thousands(length) for length in lengths}
    panels = []
    for kind, heading in FACT_PANELS.items():
        places = {_recall_at(kind, length): log2(length) for length in lengths}
        panels.append(RecallPanel(heading, "tokens of a text", places, ticks))
    cut = {system.model: _lengths_cut(system) for system in systems}
    if len(cut) < len(systems):
        sys.exit("some systems have several settings: the picture is of one for each system")
    lines = [_recall_line(system) for system in systems]
    trained = ", ".join(map(in_thousands, sorted({system.trained for system in systems})))
    title = "probe: planted facts that the summaries state right, by length "
    title += f"(trained on {trained} tokens at most)"
    note = f"Hollow: less than {WHOLE:.0f} % of the text is seen." if any(cut.values()) else ""
    figure = recall_figure(title, lines, panels, note=note)
    (row,) = figure.rows
    plots = []
    for plot in row.panels:
        series = [
            replace(each, hollow=cut[each.model] & each.points.keys()) for each in plot.series
        ]
        plots.append(replace(plot, series=series))
    return replace(figure, rows=[replace(row, panels=plots)])


def _lengths_cut(system: LengthCurves) -> set[float]:
    return {log2(length) for length in system.tested if system.is_cut(length)}


def _recall_line(system: LengthCurves) -> ResultRow:
    """Return the line of a system; its row has the measures of all lengths, and the runs of the fewest seeds."""
    points = {}
    for kind in FACT_PANELS:
        for length in system.tested:
            if point := system.point(kind, length):
                points[_recall_at(kind, length)] = point
    if chance := system.point(CHANCE, min(system.tested)):
        points[CHANCE] = chance
    # A label that counts seeds must not promise more than the worst length has
    fewest = min(system.tested.values(), key=lambda group: len(group.runs))
    return replace(fewest, means=points, learned=system.learned)


def _recall_at(kind: str, length: int) -> str:
    return f"{kind} at {length}"


def in_thousands(length: int) -> str:
    """Format a length for display: "1k" (1,024 tokens), "1.5k", "300", "1M"."""
    thousand = 1_000 if length % 1_000 == 0 else 1_024
    if length < thousand:
        return str(length)
    return f"{length / thousand**2:.3g}M" if length >= thousand**2 else f"{length / thousand:.3g}k"


if __name__ == "__main__":
    main()
