"""Kind `case_study`: two distant source sentences that the reference fuses, and what outputs say about them.

Job --case_study_page--> Page: one such pair (PageSum, Table 8), and how often outputs state both sentences of a pair

A pair is far if its distance is half of the source or more. Of the far pairs the one is shown whose two sentences add
most to each other, whatever the outputs state of it.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from longsumbench.core import build_settings
from longsumbench.errors import DataError, UsageError
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.views.tables import Block
from longsumbench_reproduction.analysis.fusion import (
    Fusion,
    FusionResult,
    FusionSettings,
    analyze_fusion,
    format_share_interval,
)
from longsumbench_reproduction.papers.claims import OURS, TableNumber
from longsumbench_reproduction.papers.conditions import build_row_page
from longsumbench_reproduction.papers.output_examples import describe_problem, keep_first_runs
from longsumbench_reproduction.papers.page_model import Job, Page
from longsumbench_reproduction.papers.published_rows import read_row_means

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
_DISTANCES = {"0": "below 0.5", "1": "0.5 or more", "all": "all"}  # bar → distances
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
    labels: Mapping[str, str]  # run id → label of its row
    analysis: FusionResult
    pair: Fusion | None


def case_study_page(job: Job) -> Page:
    """Make the page of a case study."""
    job = keep_first_runs(job)
    notes, cases = list[str](), list[_Case]()
    for dataset in job.datasets:
        if labels := _find_outputs(job, dataset, notes):
            cases.append(_find_case(job, dataset, labels))
    blocks = [Block("", tuple(notes), (), "", [])] if notes else []
    numbers: list[TableNumber] = []
    for case in cases:
        if case.pair:
            blocks.append(_pair_block(case.pair, case))
        blocks.append(_shares_block(case))
        numbers += _share_numbers(case)
    return build_row_page(job, read_row_means(job), blocks, numbers)


def _find_outputs(job: Job, dataset: str, notes: list[str]) -> dict[str, str]:
    """Return run id → label of the first run of each row with outputs; add a sentence to `notes` for other rows."""
    labels = {}
    for row in job.rows:
        name = f"{row.label}, {row.dataset}"
        if row.dataset != dataset:
            continue
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


def _find_case(job: Job, dataset: str, labels: Mapping[str, str]) -> _Case:
    """Find the pairs of a dataset; show the farthest pair with the greatest rise, of all or of the named example."""
    values = {"sample": job.options["sample"], "run": ",".join(labels), "bins": _FAR + 1}
    settings: FusionSettings = build_settings(FusionSettings, values, "")
    # Two bars of equal width: pairs nearer than half of the source, and far ones
    analysis = analyze_fusion(job.datasets[dataset], settings, job.results)
    pairs, example = list(analysis.fusions), job.options["example"]
    if example is not None:
        pairs = [pair for pair in pairs if pair.id == str(example)]
        if not pairs:
            far_ids = [pair.id for pair in analysis.of_bar(_FAR)[:_MOST_EXAMPLES]]
            problem = f"example={example}: no pair in this example of {dataset}"
            raise UsageError(
                f"{problem}; examples with a far one: {', '.join(dict.fromkeys(far_ids))}"
            )
    pair = max(pairs, key=lambda pair: (pair.distance_bin, pair.rise), default=None)
    return _Case(dataset, labels, analysis, pair)


def _shares_block(case: _Case) -> Block:
    """Return the shares of all pairs that the outputs state, a line for each row and distance."""
    rows = []
    for _, row in case.analysis.by_run().iterrows():
        label, distance = case.labels[row["run_id"]], _DISTANCES[row["bar"]]
        shares = [f"{row[share]:.1f}" for share in _SHARE_NAMES[1:]]
        rows.append(
            [label, distance, f"{row['n']:,}", format_share_interval(row, "both", "both_"), *shares]
        )
    heading = f"{case.dataset}: all pairs"
    notes = tuple(f"{line}." for line in case.analysis.notes()[:1])
    footnotes = (_SHARES_FOOTNOTE,)
    return Block(heading, notes, _SHARE_COLUMNS, "llrrrrrr", rows, footnotes=footnotes)


def _pair_block(pair: Fusion, case: _Case) -> Block:
    """Return the texts of a pair, and what the outputs say about it."""
    rows = [["fusion sentence", pair.reference_sentence]]
    several = len(set(pair.documents)) > 1
    for number, document, text in zip(
        pair.source_indices, pair.documents, pair.sources, strict=True
    ):
        of_document = f", document {document}" if several else ""
        rows.append(
            [f"source sentence {number:,} of {pair.num_source_sentences:,}{of_document}", text]
        )
    # Of each output, the sentence that is nearest to the pair, and what all of it states
    for stated in pair.outputs:
        rows.append([f"{case.labels[stated.run_id]}, nearest sentence", stated.closest or "(none)"])
        rows.append([f"{case.labels[stated.run_id]}, whole output", _SAYS[stated.stated_sources]])
    note = (
        f"Reference sentence {pair.reference_index} of example {pair.id}; distance {pair.distance:.2f} of the source. "
        f"ROUGE-1 recall of the fusion sentence, 0–100: both together {PERCENT * pair.score:.0f}, alone "
        f"{PERCENT * pair.alone[0]:.0f} and {PERCENT * pair.alone[1]:.0f}."
    )
    return Block(f"{case.dataset}: a pair", (note, _CHOICE), ("", "text"), "ll", rows)


def _share_numbers(case: _Case) -> Iterator[TableNumber]:
    for _, row in case.analysis.by_run().iterrows():
        run, n = row["run_id"], row["n"]
        for share in _SHARE_NAMES:
            measure = f"{share}, distance {_DISTANCES[row['bar']]}"
            number = TableNumber(OURS, case.dataset, case.labels[run], measure, row[share])
            if share == "both":
                number = number._replace(low=row["both_low"], high=row["both_high"])
            yield number._replace(n=n, seeds=1, runs=run)
