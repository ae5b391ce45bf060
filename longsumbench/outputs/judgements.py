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
from longsumbench.corpora.loading.fields import BadRow, any_text_in, id_in, text_document, texts_in
from longsumbench.corpora.loading.row_files import (
    ROW_ENDINGS,
    TABLE,
    detect_format,
    file_rows,
    parse_rows,
)
from longsumbench.corpora.loading.text_files import undivided_name
from longsumbench.corpora.loading.usual_keys import rename_keys
from longsumbench.errors import DataError, UnknownName, UsageError
from longsumbench.files import as_type
from longsumbench.formatting import format_count
from longsumbench.metrics.evaluate import DEFAULT_METRICS
from longsumbench.outputs.files import first_ids
from longsumbench.progress import track
from longsumbench.sentences import split_summary

CONTROLS = ("words", "copied_bigrams", "repeated_bigrams")
_REPEATED = "repetition_2"
# metric → the control that it is computed for
_METRICS_OF_CONTROLS = {"copied": "copied_bigrams", "repetition": "repeated_bigrams"}
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


# Begin to read here: first the files are read, then the outputs are scored.
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
    texts = _read_typed(paths[1], _Output)
    judged = _read_typed(paths[2], _Judgement)
    _check_tables(documents, texts, judged, paths)
    systems = texts["system"].unique()
    for system in leave_out:
        if system not in systems:
            raise UnknownName("system", system, systems)
    examples, notes = _examples_where(documents, where, paths[0])

    # outputs of these documents and systems; an empty one has no score, and no judgement
    chosen = texts["id"].isin(examples.keys()) & ~texts["system"].isin(leave_out)
    outputs = texts[chosen].set_index(_PAIR)["output"]
    systems_of_outputs = list(outputs.index.unique("system"))
    empty = outputs.str.strip() == ""
    notes += _named(outputs.index[empty], "left out: {}", "empty output")
    outputs = outputs[~empty]
    judged = judged[_index_pairs(judged).isin(outputs.index)]
    if judged.empty:
        raise DataError("no judgement of these documents and systems", paths[2])
    aspects = list(judged["aspect"].unique())
    axes = [aspects, list(judged["annotator"].unique()), list(examples), systems_of_outputs]
    means = judged.groupby(["aspect", "annotator", *_PAIR])["score"].mean()
    values = means.reindex(pd.MultiIndex.from_product(axes)).to_numpy(np.float64)
    shape = [len(axis) for axis in axes]
    return JudgedOutputs(
        examples, outputs, systems_of_outputs, aspects, values.reshape(shape), notes
    )


def _check_tables(
    documents: pd.DataFrame, texts: pd.DataFrame, judged: pd.DataFrame, paths: Sequence[Path]
) -> None:
    """Raise DataError for the first row that occurs twice, or is of an unknown document or system."""
    unknown = "unknown document {id!r}; correct or remove the row"
    of_documents, of_outputs, of_judgements = paths
    has_output = _index_pairs(judged).isin(_index_pairs(texts))
    for path, table, wrong, message in (
        (
            of_documents,
            documents,
            documents["id"].duplicated(),
            "a second document {id!r}; keep one",
        ),
        (
            of_outputs,
            texts,
            texts.duplicated(_PAIR),
            "a second output of {system} for {id!r}; keep one",
        ),
        (of_outputs, texts, ~texts["id"].isin(documents["id"]), unknown),
        (of_judgements, judged, ~judged["id"].isin(documents["id"]), unknown),
        (
            of_judgements,
            judged,
            ~judged["system"].isin(texts["system"]),
            "unknown system {system!r}; correct the row",
        ),
        (
            of_judgements,
            judged,
            ~has_output,
            "{system} has no output for {id!r}; remove the judgement",
        ),
    ):
        for row in table[wrong].to_dict("records"):
            raise DataError(message.format_map(row), path, row["line"])


def _examples_where(
    documents: pd.DataFrame, where: Sequence[str], path: Path
) -> tuple[dict[str, Example], list[str]]:
    """Return the documents with the values of `where`, and a note on those left out without a reference."""
    examples: dict[str, Example] = {}
    for row in documents["row"]:
        conditions = [word.partition("=") for word in where]
        if all(str(row.get(field)) == value for field, _, value in conditions):
            examples[id_in(row, "id")] = _example_in(row, path)
    if not examples:
        raise UsageError(f"no document has {' and '.join(where)} (FIELD=VALUE of {path})")
    with_reference = {name: example for name, example in examples.items() if example.references}
    without = [name for name in examples if name not in with_reference]
    if not without or not with_reference:
        return examples, []
    left_out = format_count(len(without), "document")
    return with_reference, [f"left out: {left_out} without reference ({first_ids(without)})"]


def score_judged(judged: JudgedOutputs, scoring: Scoring) -> Measures:
    """Score each output with ROUGE, the default metrics, `score.metrics` and the controls.

    Of several references, the best one counts, by column.
    """
    requested = list(dict.fromkeys(["rouge", *DEFAULT_METRICS, *scoring.metrics]))
    names = dict.fromkeys([*requested, *_METRICS_OF_CONTROLS])
    metrics: dict[str, Metric] = {name: registry.metrics.load(name)(scoring) for name in names}
    for metric in metrics.values():
        metric.check()
    index = pd.MultiIndex.from_product([judged.examples, judged.systems])
    scored, without_source = _score_outputs(
        judged, metrics, index[index.isin(judged.outputs.index)]
    )
    table = pd.DataFrame.from_dict(scored, "index").reindex(index).dropna(axis="columns", how="all")

    # the columns of the requested metrics, then the controls
    tables: dict[str, pd.Series[float]] = {}
    shown, idle = list[str](), list[str]()
    for name in requested:
        metric = metrics[name]
        columns = [column for column in (*metric.columns, *metric.further) if column in table]
        tables |= {column: table[column] for column in columns}
        if name == "rouge":
            shown += [column for column in columns if column[-2:] == "_f" or column[:6] == "rouge1"]
        else:
            shown += [column for column in columns[:1] if column not in CONTROLS]
        if not columns and name not in (*without_source, *DEFAULT_METRICS):
            idle.append(f"{name} is left out: it applies to no output (are references missing?)")
    words = judged.outputs.map(lambda text: count_words([text])).reindex(index)
    repeated = table.reindex(columns=[_REPEATED])[_REPEATED]
    # a text of one word repeats nothing
    short = repeated.isna() & words.notna()
    tables |= {"words": words, "repeated_bigrams": repeated.mask(short, 0.0)}

    num_documents = format_count(len(judged.examples), "document")
    notes = []
    for name, ids in without_source.items():
        source = name if name in requested else _METRICS_OF_CONTROLS[name]
        notes.append(f"{source} is left out in {len(ids)} of {num_documents}: it reads sources")
    notes += [*idle, *_named(index[short], "{}", "output", " of fewer than two words")]
    for metric in metrics.values():
        for name, (value, low, high, _) in metric.pooled().items():
            notes.append(f"{name}: {value:.2f} ({low:.2f} to {high:.2f})")
    shape = len(judged.examples), len(judged.systems)
    scores: dict[str, NDArray[Any]] = {}
    for name, column in tables.items():
        scores[name] = column.round(_DECIMALS).to_numpy(np.float64).reshape(shape)
    return Measures(scores, [*shown, *(name for name in CONTROLS if name in scores)], notes)


def _score_outputs(
    judged: JudgedOutputs, metrics: Mapping[str, Metric], pairs: pd.MultiIndex
) -> tuple[dict[Any, dict[str, float]], dict[str, set[str]]]:
    """Return the scores of each pair of document and system, and metric → documents whose source it misses."""
    for metric in metrics.values():
        metric.prepare((judged.outputs[pair], judged.examples[pair[0]]) for pair in pairs)
    scored: dict[Any, dict[str, float]] = {}
    without_source: dict[str, set[str]] = {}
    for pair in track(pairs, "scoring", len(pairs), "outputs"):
        scored[pair] = {}
        for name, metric in metrics.items():
            example = judged.examples[pair[0]]
            if metric.needs_source and not example.documents:
                without_source.setdefault(name, set()).add(pair[0])
            else:
                scored[pair] |= _best_scores(metric, judged.outputs[pair], example)
    return scored, without_source


def _best_scores(metric: Metric, text: str, example: Example) -> dict[str, float]:
    """Return the scores of an output; empty if the metric cannot score it."""
    if not metric.can_score(example):
        return {}
    scoring = metric.scoring
    if metric.name != "rouge" or scoring.references == "jackknife" or scoring.mode == "perl":
        return metric.score(text, example)
    # each column has the reference that is best for it, as in studies of agreement
    best: dict[str, float] = {}
    for reference in example.references:
        scores = metric.score(text, replace(example, references=(reference,)))
        best = {column: max(value, best.get(column, value)) for column, value in scores.items()}
    return best


def _named(pairs: "pd.Index[Any]", message: str, noun: str, ending: str = "") -> list[str]:
    if not len(pairs):
        return []
    names = [f"{system} on {name}" for name, system in pairs]
    count = message.format(format_count(len(names), noun) + ending)
    return [f"{count} ({first_ids(names)})"]


def _file_in(folder: Path, name: str) -> Path:
    """Return the file with a name in a folder, whatever its format; the usual one if there is none."""
    names = [f"{name}{ending}" for ending in ROW_ENDINGS]
    files = sorted(
        file for file in folder.glob("*") if undivided_name(file).removesuffix(".gz") in names
    )
    if len({undivided_name(file) for file in files}) > 1:
        raise DataError(f"{files[0].name} and {files[1].name}: keep one of them", folder)
    return files[0] if files else folder / f"{name}.jsonl"


def _read_typed(path: Path, kind: type[_Output] | type[_Judgement]) -> pd.DataFrame:
    strict = detect_format(path) != TABLE  # whose values are text

    def parse(row: Row) -> dict[str, Any]:
        return vars(as_type({**row, "id": id_in(row, "id")}, kind, strict))

    return _read_table(path, [item.name for item in fields(kind)], parse)


def _read_table(
    path: Path, names: Sequence[str], parse: Callable[[Row], dict[str, Any]]
) -> pd.DataFrame:
    """Read a file of rows with the `line` of each; DataError if it is missing, empty or damaged."""

    def cells(row: Row) -> dict[str, Any]:
        return {"id": id_in(row, "id"), **parse(row)}

    rows = [{**values, "line": line} for line, values in parse_rows(path, names, cells)]
    return pd.DataFrame(rows)


def _index_pairs(table: pd.DataFrame) -> pd.MultiIndex:
    return pd.MultiIndex.from_frame(table[_PAIR])


def _example_in(row: Row, path: Path) -> Example:
    """Turn a row of the documents into an example. Another file may have its source, in a row with its ids."""
    try:
        references = _read_text_list(row, "references") or _read_text_list(row, "summary")
        place = any_text_in(row, "document_at")
        if row.get("document") is None and place and (path.parent / place).is_file():
            path = path.parent / place
            row = {**row, "document": _find_source(row, path)}
        texts = _read_text_list(row, "document")
    except BadRow as problem:
        raise DataError(f"{problem} (document {row['id']!r})", path) from problem
    targets = tuple(filter(None, map(split_summary, references)))
    documents = tuple(text_document(text) for text in texts if text.strip())
    group = None if row.get("group") is None else id_in(row, "group")
    return Example(id_in(row, "id"), None, None, documents, targets, group=group)


def _read_text_list(row: Row, field: str) -> list[str]:
    """Return the texts of a field: one text, or a list; none if it is absent."""
    value = row.get(field)
    if not value:
        return []
    return [value] if isinstance(value, str) else texts_in(row, field)


def _find_source(row: Row, path: Path) -> Any:
    """Return the document in the row of another file with the same ids; None if no row has them."""
    names = {key for key in row if key == "id" or key.endswith("_id")}
    for file_row in file_rows(path):
        source_row = file_row.load()
        keys = names & source_row.keys()
        if keys and all(source_row[key] == row[key] for key in keys):
            return rename_keys(source_row, ("document",)).get("document")
    return None
