"""Reads a folder of outputs that people judged, and scores the outputs; docs/how-to/agreement.md has the format.

documents.jsonl, outputs.jsonl, judgements.jsonl --read_judged--> JudgedOutputs --score_judged--> Measures
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from longsumbench.core import Example, Metric, Row, Scoring, count_words, registry
from longsumbench.corpora.reading.fields import (
    BadRow,
    id_in,
    paragraphs_in,
    plain_document,
    text_in,
    texts_in,
)
from longsumbench.corpora.reading.row_files import (
    ROW_ENDINGS,
    TABLE,
    file_rows,
    format_of,
    parse_rows,
)
from longsumbench.corpora.reading.text_files import undivided_name
from longsumbench.corpora.reading.usual_keys import rename_keys
from longsumbench.errors import DataError, UnknownName, UsageError
from longsumbench.files import as_type
from longsumbench.formatting import format_count
from longsumbench.metrics.evaluate import DEFAULT_METRICS
from longsumbench.outputs.files import first_ids
from longsumbench.progress import track
from longsumbench.sentences import split_summary

CONTROLS = ("words", "copied_bigrams", "repeated_bigrams")
_REPEATED = "repetition_2"
_METRICS_OF_CONTROLS = {
    "copied": "copied_bigrams",
    "repetition": "repeated_bigrams",
}  # metric → what it is read for
_PAIR = ["id", "system"]
_DOCUMENT_FIELDS = ("id", "document", "summary")
_DECIMALS = 12  # of scores, so that equal sums in another order are ties


@dataclass
class _Output:
    id: str
    system: str
    output: str


@dataclass
class _Judgement:
    id: str
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


def read_judged(
    folder: Path, where: Sequence[str] = (), leave_out: Sequence[str] = ()
) -> JudgedOutputs:
    """Read documents, outputs and judgements. If some documents have a reference, the others are left out.

    Args:
        folder: contains the three files, each in a format of `row_files`.
        where: "FIELD=VALUE" of documents.jsonl: only these documents are read.
        leave_out: names of systems.

    Raises:
        UsageError: no document has a value of `where`, or a system of `leave_out` is unknown.
        DataError: a file is missing or damaged, or an output or a judgement is of an unknown document or system.
    """
    paths = [_file_in(folder, name) for name in ("documents", "outputs", "judgements")]
    documents = _read_table(paths[0], _DOCUMENT_FIELDS, lambda row: {"row": row})
    texts = _read_table(
        paths[1], [item.name for item in fields(_Output)], _reader_of(_Output, paths[1])
    )
    judged = _read_table(
        paths[2], [item.name for item in fields(_Judgement)], _reader_of(_Judgement, paths[2])
    )
    _refuse(documents, documents["id"].duplicated(), "a second document {id!r}; keep one", paths[0])
    _refuse(
        texts, texts.duplicated(_PAIR), "a second output of {system} for {id!r}; keep one", paths[1]
    )
    _refuse(
        texts,
        ~texts["id"].isin(documents["id"]),
        "unknown document {id!r}; correct or remove the row",
        paths[1],
    )
    _refuse(
        judged,
        ~judged["id"].isin(documents["id"]),
        "unknown document {id!r}; correct or remove the row",
        paths[2],
    )
    _refuse(
        judged,
        ~judged["system"].isin(texts["system"]),
        "unknown system {system!r}; correct the row",
        paths[2],
    )
    _refuse(
        judged,
        ~_pairs_in(judged, texts),
        "{system} has no output for {id!r}; remove the judgement",
        paths[2],
    )
    if unknown := sorted({*leave_out} - {*texts["system"]}):
        raise UnknownName("system", unknown[0], {*texts["system"]})
    conditions = [word.partition("=") for word in where]
    rows = [
        row
        for row in documents["row"]
        if all(str(row.get(field)) == value for field, _, value in conditions)
    ]
    if not rows:
        raise UsageError(f"no document has {' and '.join(where)} (FIELD=VALUE of {paths[0]})")
    notes: list[str] = []
    examples = {id_in(row, "id"): _example_in(row, paths[0]) for row in rows}
    without = [name for name, example in examples.items() if not example.references]
    if without and len(without) < len(examples):
        notes.append(
            f"left out: {format_count(len(without), 'document')} without reference ({first_ids(without)})"
        )
        examples = {name: example for name, example in examples.items() if example.references}
    outputs = texts[texts["id"].isin(examples.keys()) & ~texts["system"].isin(leave_out)].set_index(
        _PAIR
    )["output"]
    systems, empty = list(outputs.index.unique("system")), outputs.str.strip() == ""
    notes += _named(outputs.index[empty], "left out: {}", "empty output")
    outputs = outputs[~empty]
    judged = judged[_pairs_in(judged, outputs.reset_index())]
    if judged.empty:
        raise DataError("no judgement of these documents and systems", paths[2])
    axes = [list(judged[name].unique()) for name in ("aspect", "annotator")]
    axes += [list(examples), systems]
    means = judged.groupby(["aspect", "annotator", *_PAIR])["score"].mean()
    values = (
        means.reindex(pd.MultiIndex.from_product(axes))
        .to_numpy(np.float64)
        .reshape([len(axis) for axis in axes])
    )
    return JudgedOutputs(examples, outputs, systems, axes[0], values, notes)


def score_judged(judged: JudgedOutputs, scoring: Scoring) -> Measures:
    """Score each output with ROUGE, the default metrics, `score.metrics` and the controls.

    Of several references, the best one counts, by column.
    """
    requested = list(dict.fromkeys(["rouge", *DEFAULT_METRICS, *scoring.metrics]))
    sources = {name: name for name in requested}
    sources |= {
        metric: control
        for metric, control in _METRICS_OF_CONTROLS.items()
        if metric not in requested
    }
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
            example = judged.examples[pair[0]]
            if metric.needs_source and not example.documents:
                without_source.setdefault(name, set()).add(pair[0])
            else:
                scored[pair] |= _best_scores(metric, judged.outputs[pair], example)
    table = pd.DataFrame.from_dict(scored, "index").reindex(index).dropna(axis="columns", how="all")
    kept = {
        name: [c for c in (*metrics[name].columns, *metrics[name].further) if c in table]
        for name in requested
    }
    tables = {column: table[column] for columns in kept.values() for column in columns}
    words = judged.outputs.map(lambda text: count_words([text])).reindex(index)
    repeated = table.reindex(columns=[_REPEATED])[_REPEATED]
    short = repeated.isna() & words.notna()  # such a text repeats nothing
    tables |= {"words": words, "repeated_bigrams": repeated.mask(short, 0.0)}
    notes = [
        f"{sources[name]} is left out in {len(ids)} of {format_count(shape[0], 'document')}: it reads sources"
        for name, ids in without_source.items()
    ]
    idle = [
        name
        for name in requested
        if not kept[name] and name not in (*without_source, *DEFAULT_METRICS)
    ]
    notes += [
        f"{name} is left out: it applies to no output (are references missing?)" for name in idle
    ]
    notes += _named(index[short], "{}", "output", " of fewer than two words")
    for metric in metrics.values():
        notes += [
            f"{name}: {value:.2f} ({low:.2f} to {high:.2f})"
            for name, (value, low, high, _) in metric.pooled().items()
        ]
    shown = [
        column for column in kept["rouge"] if column.endswith("_f") or column.startswith("rouge1")
    ]
    shown += [
        column for name in requested[1:] for column in kept[name][:1] if column not in CONTROLS
    ]
    scores = {
        name: column.round(_DECIMALS).to_numpy(np.float64).reshape(shape)
        for name, column in tables.items()
    }
    return Measures(scores, [*shown, *(name for name in CONTROLS if name in scores)], notes)


def _best_scores(metric: Metric, text: str, example: Example) -> dict[str, float]:
    """Return the scores of an output; empty if the metric cannot score it."""
    if not metric.can_score(example):
        return {}
    if (
        metric.name != "rouge"
        or metric.scoring.references == "jackknife"
        or metric.scoring.mode == "perl"
    ):
        return metric.score(text, example)
    each = [
        metric.score(text, replace(example, references=(reference,)))
        for reference in example.references
    ]
    return {column: max(scores[column] for scores in each) for column in each[0]}


def _named(pairs: "pd.Index[Any]", message: str, noun: str, ending: str = "") -> list[str]:
    names = [f"{system} on {name}" for name, system in pairs]
    return (
        [message.format(format_count(len(names), noun) + ending) + f" ({first_ids(names)})"]
        if names
        else []
    )


def _file_in(folder: Path, name: str) -> Path:
    """Return the file with a name in a folder, whatever its format; the usual one if there is none."""
    names = [f"{name}{ending}" for ending in ROW_ENDINGS]
    files = sorted(
        file for file in folder.glob("*") if undivided_name(file).removesuffix(".gz") in names
    )
    if len({undivided_name(file) for file in files}) > 1:
        raise DataError(f"{files[0].name} and {files[1].name}: keep one of them", folder)
    return files[0] if files else folder / f"{name}.jsonl"


def _reader_of(
    kind: type[_Output] | type[_Judgement], path: Path
) -> Callable[[Row], dict[str, Any]]:
    strict = format_of(path) != TABLE  # whose values are text
    return lambda row: vars(as_type({**row, "id": id_in(row, "id")}, kind, strict))


def _read_table(
    path: Path, names: Sequence[str], parse: Callable[[Row], dict[str, Any]]
) -> pd.DataFrame:
    """Read a file of rows with the `line` of each; DataError if it is missing, empty or damaged."""

    def cells(row: Row) -> dict[str, Any]:
        return {"id": id_in(row, "id"), **parse(row)}

    return pd.DataFrame(
        [{**values, "line": line} for line, values in parse_rows(path, names, cells)]
    )


def _pairs_in(table: pd.DataFrame, other_table: pd.DataFrame) -> NDArray[np.bool_]:
    return pd.MultiIndex.from_frame(table[_PAIR]).isin(pd.MultiIndex.from_frame(other_table[_PAIR]))


def _refuse(table: pd.DataFrame, wrong: Any, message: str, path: Path) -> None:
    for row in table[wrong].to_dict("records"):
        raise DataError(
            message.format(**{str(field): value for field, value in row.items()}), path, row["line"]
        )


def _example_in(row: Row, path: Path) -> Example:
    """Turn a row of the documents into an example. Another file may have its source, in a row with its ids."""
    try:
        references = _list_of(row, "references") or _list_of(row, "summary")
        place = text_in(row, "document_at", required=False)
        if row.get("document") is None and place and (path.parent / place).is_file():
            path = path.parent / place
            row = {**row, "document": _source_of(row, path)}
        texts = _list_of(row, "document")
    except BadRow as problem:
        raise DataError(f"{problem} (document {row['id']!r})", path) from problem
    targets = tuple(filter(None, map(split_summary, references)))
    documents = tuple(plain_document(paragraphs_in(text)) for text in texts if text.strip())
    return Example(id_in(row, "id"), None, None, documents, targets)


def _list_of(row: Row, field: str) -> list[str]:
    """Return the texts of a field: one text, or a list; none if it is absent."""
    value = row.get(field)
    if not value:
        return []
    return [value] if isinstance(value, str) else texts_in(row, field)


def _source_of(row: Row, path: Path) -> Any:
    """Return the document in the row of another file with the same ids; None if no row has them."""
    names = {key for key in row if key == "id" or key.endswith("_id")}
    for file_row in file_rows(path):
        source_row = file_row.load()
        keys = names & source_row.keys()
        if keys and all(source_row[key] == row[key] for key in keys):
            return rename_keys(source_row, ("document",)).get("document")
    return None
