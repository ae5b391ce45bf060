"""PageSum, Table 4: the coherence of references, shuffled references and summaries."""

from collections.abc import Iterator, Sequence

from longsumbench.analysis.coherence.coherence import REFERENCE, SHUFFLED
from longsumbench.analysis.coherence.plot import draw_coherence
from longsumbench.leaderboards.published import read_published_table
from longsumbench.metrics.aggregate import PERCENT, Estimate
from longsumbench.papers.artifacts import Artifact, Ordering
from longsumbench.papers.claims import Claim, judge_claims
from longsumbench.papers.long_table import DIFFERENCE, OURS, PRINTED, TableNumber, format_change, long_table
from longsumbench.papers.page import Job, Page
from longsumbench.papers.texts.coherent_texts import ScoredTexts, load_next_sentence_model, score_rows
from longsumbench.papers.texts.reachable import ReadableDataset, read_datasets
from longsumbench.report.tables import Block

_MEASURE = "coherence"
_PRINTED_METRIC = "coherence_nsp"  # in published.csv, 0–1
_PAPERS_BERT = "bert-large-uncased"
_PRINTED_TEXTS = {"reference summary": REFERENCE, "random oracle": SHUFFLED}  # system in published.csv → our text
_COLUMNS = ("", "printed", "ours", "ours − printed", "texts", "seeds")
_REFERENCE_CLAIM = Ordering(f"{REFERENCE} > {SHUFFLED}", on=_MEASURE)


def check_coherence(job: Job) -> None:
    """Check that the option `bert` names a next-sentence model.

    Raises:
        UsageError: it does not.
        EnvironmentProblem: the model is not on this machine, and the hub cannot be reached.
    """
    load_next_sentence_model(job)


def coherence_page(job: Job) -> Page:
    """Return the coherence of references, shuffled references and each row's outputs, 0–100.

    Options: `bert` is the folder or hub name of a BERT for next-sentence prediction; `sample` is the number of
    examples, null for all that the runs summarized; `device` is auto, cpu or cuda.

    A row of the artifact without runs is a text: its `published` system is "reference summary" or "random oracle".
    Besides the artifact's orderings, references are compared with shuffled references.

    Raises:
        UsageError: the option `bert` is missing or not a next-sentence model, or no dataset can be read.
        EnvironmentProblem: no dataset can be read, or the model cannot be downloaded.
        DataError: no example has a reference, or a file is damaged.
    """
    metric = load_next_sentence_model(job)
    reached = read_datasets(job)
    blocks, numbers, claims, pictures, conditions = [], list[TableNumber](), list[Claim](), {}, list(reached.conditions)
    for dataset in reached.datasets:
        scored = score_rows(job, dataset, metric)
        rows = _texts_of(job.artifact)
        blocks.append(_block(job, dataset, scored, rows))
        numbers += _numbers(job.artifact, dataset, scored, rows)
        claims += _claims(job.artifact, dataset, scored, rows)
        conditions += [
            f"{label} on {dataset.name}: {lacking.what}; {lacking.advice}."
            for label, lacking in scored.missing.items()
            if lacking.what
        ]
        pictures[dataset.picture_name(job)] = draw_coherence(scored.found)["png"]
    verdicts = judge_claims(claims)
    if job.options["bert"] != _PAPERS_BERT:
        conditions.append(f"The paper's model is {_PAPERS_BERT}; ours: {metric.signature(0).split('|')[1]}.")
    return Page(
        blocks=tuple(blocks),
        numbers=long_table(numbers, verdicts),
        verdicts=verdicts,
        conditions=tuple(conditions),
        pictures=pictures,
    )


def _texts_of(artifact: Artifact) -> dict[str, str]:
    """Return label → the text that it names: `REFERENCE`, `SHUFFLED`, or the label of a row with runs."""
    found = {label: _PRINTED_TEXTS.get(row.published.get("system", ""), label) for label, row in artifact.rows.items()}
    lacking = [text for text in _PRINTED_TEXTS.values() if text not in found.values()]
    return {**{text: text for text in lacking}, **found}


def _printed(artifact: Artifact, label: str) -> float | None:
    """Return the printed coherence of a row, 0–100; None if the paper prints none."""
    systems = {text: system for system, text in _PRINTED_TEXTS.items()}
    published = artifact.rows[label].published if label in artifact.rows else {"system": systems[label]}
    table = read_published_table()
    table = table[(table["source_key"] == artifact.source) & (table["metric"] == _PRINTED_METRIC)]
    for column, value in published.items():
        table = table[table[column] == value]
    return PERCENT * float(table["value"].iloc[0]) if published and len(table) else None


def _block(job: Job, dataset: ReadableDataset, scored: ScoredTexts, rows: dict[str, str]) -> Block:
    cells = []
    for label, text in rows.items():
        printed, ours = _printed(job.artifact, label), scored.estimate(text)
        group = scored.groups.get(text)
        cells.append(
            [
                label,
                "" if printed is None else f"{printed:.2f}",
                "" if ours is None else f"{ours:.2f}",
                format_change(_change(ours, printed)),
                f"{scored.num_texts(text):,}",
                f"{len(group.runs)}" if group else "",
            ]
        )
    notes = (
        f"{scored.found.about}. Coherence, 0–100, is the mean probability that a sentence follows the one before it; "
        "means ± half the 95 % interval over texts of two sentences or more, and over seeds.",
    )
    return Block(dataset.label, notes, _COLUMNS, "lrrrrr", cells)


def _change(ours: Estimate | None, printed: float | None) -> Estimate | None:
    return None if ours is None or printed is None else Estimate(*(number - printed for number in ours))


def _numbers(
    artifact: Artifact, dataset: ReadableDataset, scored: ScoredTexts, rows: dict[str, str]
) -> Iterator[TableNumber]:
    for label, text in rows.items():
        printed, ours = _printed(artifact, label), scored.estimate(text)
        named = dataset.name, label, _MEASURE
        group = scored.groups.get(text)
        counted = scored.num_texts(text), len(group.runs) if group else None
        runs = " ".join(run.run_id for run in group.runs) if group else ""
        if printed is not None:
            yield TableNumber(PRINTED, *named, printed, source=f"{artifact.source} {artifact.prints}")
        if ours is not None:
            yield TableNumber(OURS, *named, *ours, *counted, runs=runs)
        if change := _change(ours, printed):
            yield TableNumber(DIFFERENCE, *named, *change, *counted, runs=runs)


def _claims(artifact: Artifact, dataset: ReadableDataset, scored: ScoredTexts, rows: dict[str, str]) -> Sequence[Claim]:
    found, tested = [], set()
    for ordering in (*artifact.orderings, _REFERENCE_CLAIM):
        texts = rows.get(ordering.higher, ordering.higher), rows.get(ordering.lower, ordering.lower)
        if texts in tested or (ordering.datasets and dataset.name not in ordering.datasets):
            continue
        tested.add(texts)
        missing = {text: scored.missing[text].what for text in texts if text in scored.missing}
        why = [f"{text}: {what}" for text, what in missing.items() if what]
        difference = scored.compare(*texts)
        reason = "" if difference else "; ".join(why) or "the two rows have no texts of the same examples"
        runs = [run for text in texts if text in scored.groups for run in scored.groups[text].runs]
        found.append(Claim(ordering.claim, _MEASURE, dataset.name, difference, reason, ordering.source, runs))
    return found
