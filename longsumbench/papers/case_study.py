"""Kind `case_study`: two distant source sentences that the reference fuses, and what outputs say about them.

Job --case_study_page--> Page: one such pair (PageSum, Table 8), and how often outputs state both sentences of a pair

A pair is far if its distance is half of the source or more. Of the far pairs the one is shown whose two sentences add
most to each other, whatever the outputs state of it.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from longsumbench.analysis.fusion import Fusion, FusionSettings, FusionsFound, analyze_fusion
from longsumbench.core import build_settings
from longsumbench.errors import DataError, UsageError
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.papers.claims import OURS, TableNumber, long_table
from longsumbench.papers.conditions import describe_conditions
from longsumbench.papers.output_examples import describe_problem, keep_first_runs
from longsumbench.papers.page import Job, Page, RowRuns
from longsumbench.papers.printed import read_row_means
from longsumbench.views.html import ShownText, render_part
from longsumbench.views.marked_words import mark_words, shared_by
from longsumbench.views.tables import Block

_FAR = 1  # of two bins of equal width: the distances from half of the source
_MOST_EXAMPLES = 3  # examples in a message
_GENERATED = "Generated reports repeat their wording, so the two sentences of a pair may be about different facts."
_CHOICE = (
    "Chosen from the pairs at a distance of half of the source or more, by how much the two sentences add to each "
    "other, whatever the outputs state."
)
_SHARE_COLUMNS = (
    "row",
    "distance",
    "pairs",
    "both, % (95 %)",
    "joined",
    "first only",
    "second only",
    "neither",
)
_SHARE_NAMES = ("both", "joined", "first", "second", "neither")
_SHARES_FOOTNOTE = (
    "Share of the pairs of which an output states both sentences, one or none: it states a sentence if it has half or "
    "more of the words that only this one gives to the fusion sentence. Joined: one output sentence states both."
)
_SAYS = {
    "both": "says both",
    "first": "says the first only",
    "second": "says the second only",
    "neither": "says neither",
}


class _Case(NamedTuple):
    """The pairs of a dataset, and the one that is shown."""

    dataset: str  # the paper's name
    labels: dict[str, str]  # run id → label of its row
    analysis: FusionsFound
    pair: Fusion | None


def case_study_page(job: Job) -> Page:
    """Make the page of a case study."""
    job = keep_first_runs(job)
    notes: list[str] = []
    cases = []
    for dataset in job.datasets:
        runs = _find_outputs(job, [row for row in job.rows if row.dataset == dataset], notes)
        cases += [_find_case(job, dataset, runs)] if runs else []
    pairs = [_show_pair(case.pair, case.analysis) for case in cases if case.pair]
    return Page(
        blocks=(
            *([Block("", tuple(notes), (), "", [])] if notes else []),
            *(block for case in cases for block in _case_blocks(case)),
        ),
        numbers=long_table(row for case in cases for row in _share_numbers(case)),
        conditions=describe_conditions(job, read_row_means(job)),
        details=render_part("case_study.html", pairs=pairs) if pairs else "",
    )


def _find_outputs(job: Job, rows: Sequence[RowRuns], notes: list[str]) -> dict[str, str]:
    """Return run id → label of the first run of each row with outputs; add a sentence to `notes` for other rows."""
    labels = {}
    for row in rows:
        name = f"{row.label}, {row.dataset}"
        if not row.finished:
            notes.append(f"{name}: no run is finished.")
            continue
        record = row.finished[0]
        try:
            record.check_written(job.results.run_folder(record), ["predictions.jsonl"])
        except DataError as error:
            notes.append(f"{name}: {describe_problem(error)}.")
            continue
        labels[record.run_id] = row.label
        if record.texts.generated and _GENERATED not in notes:
            notes.append(_GENERATED)
    return labels


def _find_case(job: Job, dataset: str, labels: dict[str, str]) -> _Case:
    example = job.options["example"]
    values = {"sample": job.options["sample"], "run": ",".join(labels), "bins": _FAR + 1}
    settings: FusionSettings = build_settings(FusionSettings, values, "")
    analysis = analyze_fusion(job.datasets[dataset], settings, job.results)
    pairs = [pair for pair in analysis.fusions if example is None or pair.id == str(example)]
    if example is not None and not pairs:
        ids = ", ".join(dict.fromkeys(pair.id for pair in analysis.of_bar(_FAR)[:_MOST_EXAMPLES]))
        raise UsageError(
            f"example={example}: no pair in this example of {dataset}; examples with a far one: {ids}"
        )
    return _Case(
        dataset, labels, analysis, max(pairs, key=lambda pair: (pair.bar, pair.rise), default=None)
    )


def _case_blocks(case: _Case) -> list[Block]:
    notes = tuple(f"{line}." for line in case.analysis.notes()[:1])
    table = case.analysis.by_run()
    rows = [
        [
            case.labels[str(row["run_id"])],
            _describe_distance(str(row["bar"])),
            f"{row['n']:,}",
            _both(row),
        ]
        + [f"{row[share]:.1f}" for share in _SHARE_NAMES[1:]]
        for _, row in table.iterrows()
    ]
    every = Block(
        f"{case.dataset}: all pairs",
        notes,
        _SHARE_COLUMNS,
        "llrrrrrr",
        rows,
        footnotes=(_SHARES_FOOTNOTE,),
    )
    return [_shown_block(case.pair, case), every] if case.pair else [every]


def _shown_block(pair: Fusion, case: _Case) -> Block:
    rows = [["fusion sentence", pair.summary]]
    rows += [[_name_source(pair, place), text] for place, text in enumerate(pair.sources)]
    for stated in pair.outputs:
        rows.append([f"{case.labels[stated.run_id]}, nearest sentence", stated.closest or "(none)"])
        rows.append([f"{case.labels[stated.run_id]}, whole output", _SAYS[stated.says]])
    note = (
        f"Reference sentence {pair.place} of example {pair.id}; distance {pair.distance:.2f} of the source. "
        f"ROUGE-1 recall of the fusion sentence, 0–100: both together {PERCENT * pair.score:.0f}, alone "
        f"{PERCENT * pair.alone[0]:.0f} and {PERCENT * pair.alone[1]:.0f}."
    )
    return Block(f"{case.dataset}: a pair", (note, _CHOICE), ("", "text"), "ll", rows)


def _describe_distance(bar: str) -> str:
    return {"0": "below 0.5", "1": "0.5 or more"}.get(bar, bar)


def _both(row: Any) -> str:
    interval = (
        f" ({row['both_low']:.1f}–{row['both_high']:.1f})" if math.isfinite(row["both_low"]) else ""
    )
    return f"{row['both']:.1f}{interval}"


def _share_numbers(case: _Case) -> Iterator[TableNumber]:
    for _, row in case.analysis.by_run().iterrows():
        for share in _SHARE_NAMES:
            measure = f"{share}, distance {_describe_distance(str(row['bar']))}"
            low, high = (row["both_low"], row["both_high"]) if share == "both" else (None, None)
            label, run = case.labels[row["run_id"]], row["run_id"]
            yield TableNumber(
                OURS, case.dataset, label, measure, row[share], low, high, row["n"], 1, runs=run
            )


class _ShownPair(NamedTuple):
    """A fusion sentence, its sources, and the closest sentences of outputs, with marked words."""

    label: str
    summary: str
    sources: list[ShownText]
    outputs: list[ShownText]


def _show_pair(pair: Fusion, result: FusionsFound) -> _ShownPair:
    """Return a fusion sentence with its marked words and those of its sources and outputs."""
    shared = shared_by(pair.summary, *pair.sources)
    scores = f"both {100 * pair.score:.0f}, alone {100 * pair.alone[0]:.0f} and {100 * pair.alone[1]:.0f}"
    recall = f"ROUGE-{result.settings.rouge} recall: {scores}; distance {pair.distance:.3f}"
    sources = [
        ShownText(_name_source(pair, place), mark_words(text, shared))
        for place, text in enumerate(pair.sources)
    ]
    outputs = [
        ShownText(
            f"{result.runs[stated.run_id]} {_SAYS[stated.says]} ({_percents(stated.parts)}), "
            f"recall {100 * stated.recall:.0f}; its closest sentence",
            mark_words(stated.closest, shared),
        )
        for stated in pair.outputs
    ]
    label = f"{pair.id}, reference sentence {pair.place}; {recall}"
    return _ShownPair(label, mark_words(pair.summary, shared), sources, outputs)


def _name_source(pair: Fusion, place: int) -> str:
    """Return "source sentence 14 of 410"; `place` is 0 or 1."""
    document = f", document {pair.documents[place]}" if len(set(pair.documents)) > 1 else ""
    return f"source sentence {pair.numbers[place]:,} of {pair.of:,}{document}"


def _percents(shares: Sequence[float]) -> str:
    return " and ".join(f"{100 * share:.0f}\N{NO-BREAK SPACE}%" for share in shares)
