"""Reads a folder of outputs that people judged, and scores the outputs; docs/how-to/agreement.md has the format.

documents.jsonl, outputs.jsonl, judgements.jsonl --read_judged--> JudgedOutputs --score_judged--> Measures
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.core import Example, Metric, Row, Scoring, count_words, registry
from longsumbench.corpora.reading.fields import BadRow, id_in, paragraphs_in, plain_document, text_in, texts_in
from longsumbench.corpora.reading.files import lines_of, row_in
from longsumbench.errors import DataError, UnknownName, UsageError
from longsumbench.files import BadFile, parse_json
from longsumbench.formatting import format_count
from longsumbench.metrics.evaluate import DEFAULT_METRICS
from longsumbench.outputs.files import first_ids
from longsumbench.progress import track
from longsumbench.sentences import split_summary

CONTROLS = ("words", "copied_bigrams", "repeated_bigrams")
_REPEATED = "repetition_2"
_METRICS_OF_CONTROLS = {"copied": "copied_bigrams", "repetition": "repeated_bigrams"}  # metric → what it is read for
_PAIR = ["id", "system"]
_DECIMALS = 12  # of scores, so that equal sums in another order are ties


class _SourceMissing(Exception):
    """A metric reads the source of a document that has none."""


class _WithoutSource(Example):  # without it, a metric would find no words, and score 0
    def sentences(self) -> NoReturn:
        raise _SourceMissing

    source_text = sentences


@dataclass
class _Output:
    id: str | int
    system: str
    output: str


@dataclass
class _Judgement:
    id: str | int
    system: str
    annotator: str | int
    aspect: str
    score: float


class JudgedOutputs(NamedTuple):
    """Outputs of several systems for the same documents, and what people judged.

    Attributes:
        examples: id → document with its references.
        outputs: output, indexed by id and system; none is empty.
        systems, aspects: their names, in the order of the files.
        judgements: [aspects, annotators, documents, systems]; NaN where nobody judged.
        notes: what was left out.
    """

    examples: Mapping[str, Example]
    outputs: "pd.Series[str]"
    systems: Sequence[str]
    aspects: Sequence[str]
    judgements: NDArray[np.float64]
    notes: Sequence[str]


class Measures(NamedTuple):
    """Scores, measure → [documents, systems], NaN where none applies; measures that tables show; what was left out."""

    scores: Mapping[str, NDArray[np.float64]]
    shown: Sequence[str]
    notes: Sequence[str]


def read_judged(folder: Path, where: Sequence[str] = (), leave_out: Sequence[str] = ()) -> JudgedOutputs:
    """Read documents, outputs and judgements. If some documents have a reference, the others are left out.

    Args:
        folder: contains the three files.
        where: "FIELD=VALUE" of documents.jsonl: only these documents are read.
        leave_out: names of systems.

    Raises:
        UsageError: no document has a value of `where`, or a system of `leave_out` is unknown.
        DataError: a file is missing or damaged, or an output or a judgement is of an unknown document or system.
    """
    paths = [folder / f"{name}.jsonl" for name in ("documents", "outputs", "judgements")]
    documents = _read_table(paths[0], lambda line: {"id": id_in(row := row_in(line), "id"), "row": row})
    texts = _read_table(paths[1], lambda line: vars(parse_json(line, _Output)))
    judged = _read_table(paths[2], lambda line: vars(parse_json(line, _Judgement)))
    _refuse(documents, documents["id"].duplicated(), "a second document {id!r}; keep one", paths[0])
    _refuse(texts, texts.duplicated(_PAIR), "a second output of {system} for {id!r}; keep one", paths[1])
    _refuse(texts, ~texts["id"].isin(documents["id"]), "unknown document {id!r}; correct or remove the row", paths[1])
    _refuse(judged, ~judged["id"].isin(documents["id"]), "unknown document {id!r}; correct or remove the row", paths[2])
    _refuse(judged, ~judged["system"].isin(texts["system"]), "unknown system {system!r}; correct the row", paths[2])
    _refuse(judged, ~_pairs_in(judged, texts), "{system} has no output for {id!r}; remove the judgement", paths[2])
    if unknown := sorted({*leave_out} - {*texts["system"]}):
        raise UnknownName("system", unknown[0], {*texts["system"]})
    conditions = [word.partition("=") for word in where]
    rows = [row for row in documents["row"] if all(str(row.get(field)) == value for field, _, value in conditions)]
    if not rows:
        raise UsageError(f"no document has {' and '.join(where)} (FIELD=VALUE of {paths[0]})")
    notes: list[str] = []
    examples = {id_in(row, "id"): _example_in(row, folder) for row in rows}
    without = [name for name, example in examples.items() if not example.references]
    if without and len(without) < len(examples):
        notes.append(f"left out: {format_count(len(without), 'document')} without reference ({first_ids(without)})")
        examples = {name: example for name, example in examples.items() if example.references}
    outputs = texts[texts["id"].isin(examples.keys()) & ~texts["system"].isin(leave_out)].set_index(_PAIR)["output"]
    systems, empty = list(outputs.index.unique("system")), outputs.str.strip() == ""
    notes += _named(outputs.index[empty], "left out: {}", "empty output")
    outputs = outputs[~empty]
    judged = judged[_pairs_in(judged, outputs.reset_index())]
    if judged.empty:
        raise DataError("no judgement of these documents and systems", paths[2])
    axes = [list(judged[name].unique()) for name in ("aspect", "annotator")]
    axes += [list(examples), systems]
    means = judged.groupby(["aspect", "annotator", *_PAIR])["score"].mean()
    values = means.reindex(pd.MultiIndex.from_product(axes)).to_numpy(np.float64).reshape([len(axis) for axis in axes])
    return JudgedOutputs(examples, outputs, systems, axes[0], values, notes)


def score_judged(judged: JudgedOutputs, scoring: Scoring) -> Measures:
    """Score each output with ROUGE, the default metrics, `score.metrics` and the controls.

    Of several references, the best one counts, by column.
    """
    requested = list(dict.fromkeys(["rouge", *DEFAULT_METRICS, *scoring.metrics]))
    sources = {name: name for name in requested}
    sources |= {metric: control for metric, control in _METRICS_OF_CONTROLS.items() if metric not in requested}
    metrics: dict[str, Metric] = {name: registry.metrics.load(name)(scoring) for name in sources}
    for metric in metrics.values():
        metric.check()
    shape = len(judged.examples), len(judged.systems)
    index = pd.MultiIndex.from_product([judged.examples, judged.systems])
    scored: dict[tuple[str, str], dict[str, float]] = {}
    without_source: dict[str, set[str]] = {}  # metric → documents
    pairs = index[index.isin(judged.outputs.index)]
    for metric in metrics.values():
        metric.prepare((judged.outputs[pair], judged.examples[pair[0]]) for pair in pairs)
    for pair in track(pairs, "scoring", len(judged.outputs), "outputs"):
        scored[pair] = {}
        for name, metric in metrics.items():
            try:
                scored[pair] |= _best_scores(metric, judged.outputs[pair], judged.examples[pair[0]])
            except _SourceMissing:
                without_source.setdefault(name, set()).add(pair[0])
    table = pd.DataFrame.from_dict(scored, "index").reindex(index).dropna(axis="columns", how="all")
    kept = {name: [c for c in (*metrics[name].columns, *metrics[name].further) if c in table] for name in requested}
    tables = {column: table[column] for columns in kept.values() for column in columns}
    words = judged.outputs.map(lambda text: count_words([text])).reindex(index)
    repeated = table.reindex(columns=[_REPEATED])[_REPEATED]
    short = repeated.isna() & words.notna()  # such a text repeats nothing
    tables |= {"words": words, "repeated_bigrams": repeated.mask(short, 0.0)}
    notes = [
        f"{sources[name]} is left out in {len(ids)} of {format_count(shape[0], 'document')}: it reads sources"
        for name, ids in without_source.items()
    ]
    idle = [name for name in requested if not kept[name] and name not in (*without_source, *DEFAULT_METRICS)]
    notes += [f"{name} is left out: it applies to no output (are references missing?)" for name in idle]
    notes += _named(index[short], "{}", "output", " of fewer than two words")
    for metric in metrics.values():
        notes += [
            f"{name}: {value:.2f} ({low:.2f} to {high:.2f})" for name, (value, low, high, _) in metric.pooled().items()
        ]
    shown = [column for column in kept["rouge"] if column.endswith("_f") or column.startswith("rouge1")]
    shown += [column for name in requested[1:] for column in kept[name][:1] if column not in CONTROLS]
    scores = {name: column.round(_DECIMALS).to_numpy(np.float64).reshape(shape) for name, column in tables.items()}
    return Measures(scores, [*shown, *(name for name in CONTROLS if name in scores)], notes)


def _best_scores(metric: Metric, text: str, example: Example) -> dict[str, float]:
    """Return the scores of an output; empty if the metric cannot score it."""
    if not metric.can_score(example):
        return {}
    if metric.name != "rouge" or metric.scoring.references == "jackknife" or metric.scoring.mode == "perl":
        return metric.score(text, example)
    each = [metric.score(text, replace(example, references=(reference,))) for reference in example.references]
    return {column: max(scores[column] for scores in each) for column in each[0]}


def _named(pairs: "pd.Index[Any]", message: str, noun: str, ending: str = "") -> list[str]:
    names = [f"{system} on {name}" for name, system in pairs]
    return [message.format(format_count(len(names), noun) + ending) + f" ({first_ids(names)})"] if names else []


def _read_table(path: Path, parse: Callable[[bytes], dict[str, Any]]) -> pd.DataFrame:
    """Read a file of JSON lines with the number of each `line`; DataError if it is missing, empty or damaged."""
    rows = []
    for number, line in enumerate(lines_of(path), start=1):
        try:
            rows.append({**(cells := parse(line)), "id": str(cells["id"]), "line": number})
        except (BadFile, BadRow) as problem:
            raise DataError(f"{problem}", path, number) from problem
    if not rows:
        raise DataError("the file is empty", path)
    return pd.DataFrame(rows)


def _pairs_in(table: pd.DataFrame, other_table: pd.DataFrame) -> NDArray[np.bool_]:
    return pd.MultiIndex.from_frame(table[_PAIR]).isin(pd.MultiIndex.from_frame(other_table[_PAIR]))


def _refuse(table: pd.DataFrame, wrong: Any, message: str, path: Path) -> None:
    for row in table[wrong].to_dict("records"):
        raise DataError(message.format(**{str(field): value for field, value in row.items()}), path, row["line"])


def _example_in(row: Row, folder: Path) -> Example:
    """Turn a row of documents.jsonl into an example. Another file may have its source, in a row with its ids."""
    path = folder / "documents.jsonl"
    try:
        references = texts_in(row, "references") if row.get("references") else []
        source, place = row.get("document"), text_in(row, "document_at", required=False)
        if source is None and place and (folder / place).is_file():
            path, names = folder / place, {key for key in row if key == "id" or key.endswith("_id")}
            others = ((other, names & other.keys()) for other in map(row_in, lines_of(path)))
            same = (other for other, keys in others if keys and all(other[key] == row[key] for key in keys))
            source = next(same, {}).get("document")
        source = [source] if isinstance(source, str) else source
        texts = texts_in({"document": source}, "document") if source else []
    except BadRow as problem:
        raise DataError(f"{problem} (document {row['id']!r})", path) from problem
    targets = tuple(filter(None, map(split_summary, references)))
    documents = tuple(plain_document(paragraphs_in(text)) for text in texts if text.strip())
    return (Example if documents else _WithoutSource)(id_in(row, "id"), None, None, documents, targets)
