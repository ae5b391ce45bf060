"""`longsumbench inspect`: shows one summary of a finished run with its evidence, or with its source.

    command line → the run's record and files → Inspection: the summary, its evidence, scores and texts
    Inspection --page--> HTML: facts about the run, and the picture of the evidence with the units and texts;
                         without evidence, each output sentence with the nearest source sentence, and the texts
               --write_inspection--> <n>.html and, if asked for, <n>.png

Outputs of systems are escaped. The page has no script.
"""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from longsumbench.arguments import public_function
from longsumbench.core import (
    Evidence,
    Example,
    SentenceScores,
    Summary,
    count_words,
    describe_reading,
)
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, find_heading
from longsumbench.leaderboards.seed_groups import unit_factor
from longsumbench.metrics.aggregate import PERCENT, read_score_table
from longsumbench.rouge.all_pairs import number_words, rouge_n
from longsumbench.runs.evidence import num_wanted, read_evidence, read_stored_inputs, stored_indices
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, output_files, output_problems, split_variant
from longsumbench.runs.results import Results, split_read_by
from longsumbench.runs.run_names import describe_run
from longsumbench.runs.verdicts import JudgedSentence, judged_lists, read_verdicts
from longsumbench.sentences import split_summary
from longsumbench.views.evidence.array_views import Selections, views
from longsumbench.views.evidence.picture import describe_view, draw_views
from longsumbench.views.figures import write_pictures
from longsumbench.views.html import (
    headed_references,
    mark_words,
    render_page,
    shared_by,
    word_stems,
)
from longsumbench.views.tables import Block, terminal

_SOURCE_WORDS = 60  # of the beginning of a source, on the terminal
NO_TEXTS = (
    "The title and the references are not shown: the texts of this run are not on this machine (its work/corpus "
    "leads to no folder of the cache)."
)


@dataclass(frozen=True)
class Inspection:
    """An example of a finished run.

    Attributes:
        number: index of the example among those that were summarized, from 0.
        evidence: what the system looked at; None if the run has no evidence of this example.
        scores: heading of a type of ROUGE → F1, 0–100; empty if the example was not scored.
        example: the texts; None if they are not on this machine.
        input_text: the input as the system read it; None if the run kept none of this example.
        pages: numbers of the examples whose pages are in the same folder, sorted.
        verdicts: what metrics found about each sentence of the run's summaries.
        ranking_score: heading of the measure that ranks → score, 0–100 or in its unit; empty if a type of ROUGE ranks.
    """

    record: RunRecord
    number: int
    summary: Summary
    evidence: Evidence | None
    scores: Mapping[str, float]
    example: Example | None
    no_evidence: str = ""
    input_text: str | None = None
    pages: Sequence[int] = ()
    verdicts: SentenceScores = field(default_factory=dict)
    ranking_score: Mapping[str, float] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Heading: dataset, example and run."""
        return f"{self.record.key.dataset}, example {self.summary.id}: {describe_run(self.record)}"

    @property
    def references(self) -> dict[str, str]:
        """Heading → text of the references; empty if the texts are not on this machine."""
        return headed_references(self.example.references) if self.example else {}

    @property
    def judged(self) -> list[tuple[str, list[JudgedSentence]]]:
        """Heading of a metric → what it found about the summary's sentences, or about planted facts."""
        return judged_lists(self.verdicts, self.summary.id, self.summary.text)

    def render(self) -> str:
        """Return the example for the terminal: the beginning of its source, other texts, scores, what was read."""
        facts = _describe_facts(self)
        query, source = None, NO_TEXTS
        if self.example:
            query = self.example.query
            words = " ".join(self.example.sentences()).split()
            length = format_count(self.example.source_words(), "word")
            more = f" … ({length})" if words[_SOURCE_WORDS:] else ""
            source = " ".join(words[:_SOURCE_WORDS]) + more
        texts = {
            "query": query,
            "source": source,
            f"summary, {facts['summary']}": self.summary.text or "(empty)",
            **self.references,
            "scores": facts["scores"],
            "what was read": facts["source"],
            "warning": facts["warning"],
        }
        lines = [f"{name}: {text}" for name, text in texts.items() if text]
        for heading, rows in self.judged:
            lines += [heading, *(f"{row.share} {row.text}" for row in rows)]
        return terminal(self.title, [Block("", (line,), (), "", []) for line in lines])

    def page(self) -> str:
        """Return the HTML page: the evidence, or what the output shares with the source."""
        links = [("previous", page) for page in self.pages if page < self.number][-1:]
        links += [("next", page) for page in self.pages if page > self.number][:1]
        values: dict[str, Any] = {
            "inspection": self,
            "no_texts": NO_TEXTS,
            "facts": _describe_facts(self),
            "links": links,
            "texts": {"output": self.summary.text, **self.references},
            **dict.fromkeys(("picture", "segments", "units", "documents", "nearest"), ()),
        }
        if self.evidence:
            values |= _show_evidence(self, self.evidence)
        elif self.example:
            values |= _show_overlap(self, self.example)
        return render_page("inspection.html", **values)

    def picture(self) -> bytes:
        """Return the views of the evidence as PNG; empty without evidence."""
        return draw_views(self.title, views(self.evidence)) if self.evidence else b""


def inspect_example(run: str | Path | RunRecord, example: str, results: Results) -> Inspection:
    """Read an example of a finished run.

    `example` is its id, or its index in the split.

    Raises:
        UsageError: the run is unknown or ambiguous, or the example is unknown.
        DataError: a file of the run is missing or damaged.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    record.check_written(folder, ["predictions.jsonl"])
    summaries = read_summaries(folder / "predictions.jsonl")
    number = _find_example(example, [summary.id for summary in summaries], record)
    summary, split = summaries[number], split_read_by(folder, record)
    _, scores_file = output_files(len(record.evaluation.checkpoints))[0]
    indices = stored_indices(folder / "evidence")
    row = _read_row(folder / scores_file, summary.id)
    scores = {
        heading: PERCENT * row[f"{kind}_f"] for kind, heading in ROUGE_HEADINGS.items() if row
    }
    ranking, ranked_by = {}, record.evaluation.ranked_by
    if ranked_by not in ROUGE_HEADINGS and math.isfinite(row.get(ranked_by, math.nan)):
        ranking[find_heading(ranked_by)] = unit_factor(record, ranked_by) * row[ranked_by]
    has_evidence = number in indices
    # The texts may be gone, or read again with other examples
    has_texts = split is not None and summary.id in split.ids
    return Inspection(
        record,
        number,
        summary,
        read_evidence(folder / "evidence", number)[1] if has_evidence else None,
        scores,
        example=split[split.ids.index(summary.id)] if split and has_texts else None,
        no_evidence="" if has_evidence else _explain_no_evidence(number, indices, record),
        input_text=read_stored_inputs(folder / "inputs.jsonl").get(summary.id),
        verdicts=read_verdicts(folder),
        ranking_score=ranking,
    )


def _find_example(name: str, ids: Sequence[str], record: RunRecord) -> int:
    if name in ids:
        return ids.index(name)
    if name.isdecimal() and int(name) < len(ids):
        return int(name)
    suggestion = "" if name.isdecimal() else did_you_mean(name, ids)
    extent = f"its examples have the indices 0 to {len(ids) - 1}" if ids else "it summarized none"
    raise UsageError(f"{describe_run(record)} summarized no example '{name}'{suggestion}; {extent}")


def _explain_no_evidence(number: int, indices: set[int], record: RunRecord) -> str:
    if record.imported:
        return f"{describe_run(record)} has no evidence: its outputs were written outside the suite"
    # The advice is the run's own command, which can be copied
    words = [word for word in record.command if not word.startswith("decode.evidence=")]
    more = f"decode.evidence=all keeps it for all examples: {shlex.join([*words, 'decode.evidence=all'])}"
    if indices:
        extent = f"{format_count(len(indices), 'example')}, {min(indices)} to {max(indices)}"
        return f"no evidence of example {number} was kept; {describe_run(record)} has that of {extent}; {more}"
    if not num_wanted(value := record.config.decode.evidence, examples=1):
        return f"{describe_run(record)} kept no evidence (decode.evidence={value}); if the system supports it, {more}"
    return f"{describe_run(record)} has no evidence: {record.key.model} keeps none, at least with these settings"


def _read_row(path: Path, name: str) -> dict[str, float]:
    """Return column → score of an example; empty if the file does not exist, or has no row of it."""
    scores = read_score_table(path) if path.is_file() else None
    if scores is None or name not in scores.index:
        return {}
    index = list(scores.index).index(name)
    return {column: float(values[index]) for column, values in scores.columns.items()}


def inspection_folder(results: Results, record: RunRecord) -> Path:
    """Return the default folder of an inspection."""
    return results.root / "inspections" / record.run_id


def write_inspection(inspection: Inspection, folder: Path, picture: bool = False) -> list[Path]:
    """Write the page of an example and, with `picture` and evidence, the views as PNG; return the paths."""
    contents: dict[str, str | bytes] = {f"{inspection.number}.html": inspection.page()}
    if picture and inspection.evidence:
        contents[f"{inspection.number}.png"] = inspection.picture()
    return write_pictures(folder, contents)


def _show_evidence(inspection: Inspection, evidence: Evidence) -> dict[str, Any]:
    """Return the values of the template: the picture, and the texts of its units and segments."""
    shown_views = views(evidence)
    selection = next((view for view in shown_views if isinstance(view, Selections)), None)
    units = [(text, list[int]()) for text in evidence.texts["unit"]]
    values: dict[str, Any] = {}
    if selection:
        values = {"row": selection.row, "segments": selection.texts}
        for row, unit in np.argwhere(selection.counts).tolist():
            units[unit][1].append(row + 1)
    return values | {
        "picture": inspection.picture(),
        "alt": "; ".join(map(describe_view, shown_views)),
        "units": units,
        "texts": {"summary": inspection.summary.text, **inspection.references},
    }


def _show_overlap(inspection: Inspection, example: Example) -> dict[str, Any]:
    """Return the values of the template: the source, and each output sentence with the nearest source sentence."""
    output, references = inspection.summary.text, inspection.references
    source, sentences = list(example.sentences()), split_summary(output)
    # Words are marked by who shares them with the output
    shared = shared_by(output, " ".join(source), " ".join(references.values()))
    nearest = []
    for text, best in zip(sentences, nearest_sentences(sentences, source), strict=True):
        nearest.append((mark_words(text, shared), *best))
    texts = {"output": output, **references}
    return {
        "documents": example.documents,
        "source": [mark_words(text, shared) for text in source],
        "nearest": nearest,
        "texts": {heading: mark_words(text, shared) for heading, text in texts.items()},
    }


def _describe_facts(inspection: Inspection) -> dict[str, str | None]:
    """Return heading → fact about the run and the example; None or empty where there is none."""
    record, summary, example = inspection.record, inspection.summary, inspection.example
    scores = {**inspection.scores, **inspection.ranking_score}
    words, tokens = count_words([summary.text]), summary.tokens
    length = format_count(words, "word") if tokens is None else format_count(tokens, "token")
    variant, origin = ", ".join(split_variant(record.variant)), None
    if imported := record.imported:
        variant = variant or "imported"
        origin = f"{imported.file}, from {imported.origin or 'an unknown place'}"
    return {
        "model": f"{record.key.model}, {variant or 'as its recipe'}",
        "imported": origin,
        "dataset": f"{record.key.dataset}, {record.key.split} split",
        "run": record.run_id,
        "example": f"{summary.id}, at place {inspection.number}, from 0",
        "title": example.title if example else None,
        "scores": " · ".join(f"{name} {score:.1f}" for name, score in scores.items())
        or "not scored",
        "source": None if imported else describe_reading(summary.truncation),
        "summary": length + ("" if summary.complete else "; it stops at its length limit"),
        "warning": "; ".join(output_problems(record, record.evaluation.outputs)),
    }


@public_function
def inspect(
    run: str | Path | RunRecord, example: str | int, results_dir: str | Path = "results"
) -> Inspection:
    """Read an example of a finished run with its evidence, as `longsumbench inspect` does; nothing is written.

    Args:
        run: the run's folder, its id, the beginning of its id, or its record.
        example: the example's id, or its index in the split, from 0.
        results_dir: where ids are looked for.

    Returns:
        The example: its summary, evidence, texts, and ROUGE F1, 0–100.

    Raises:
        UsageError: no run, or several, match, or the example is unknown.
        DataError: a file of the run is missing or damaged.
    """
    return inspect_example(run, str(example), Results.at(results_dir))


def nearest_sentences(
    output: Sequence[str], source: Sequence[str]
) -> list[tuple[int | None, float]]:
    """Return for each output sentence the source sentence that it resembles most: its place, and their likeness.

    The likeness is the mean of ROUGE-1 and ROUGE-2 F1, 0–100. Of equal sentences it is the first. The place is None if
    no source sentence shares a word.
    """
    texts, outputs = number_words(list(map(word_stems, source)), list(map(word_stems, output)))
    if not texts or not outputs:
        return [(None, 0.0)] * len(outputs)
    scores = 50 * (rouge_n(texts, outputs, 1)["f1"] + rouge_n(texts, outputs, 2)["f1"])
    pairs = zip(scores.argmax(axis=1).tolist(), scores.max(axis=1).tolist(), strict=True)
    return [(place if score else None, score) for place, score in pairs]
