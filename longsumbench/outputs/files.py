"""Reads outputs and references of any system from files, and pairs them.

    rows (`row_files`)      {"id", "prediction"}; {"id", "references" | "summary"}; or both in a row
    text (any other file)   line n of one belongs to line n of the other
    a finished run          its predictions, with the references of its examples
    folders                 outputs/ID.txt and references/ID.txt; or NAME.dec and NAME.ref, one sentence per line

Files may be compressed (.gz). A text is running text or a list of sentences; in .dec and .ref files it is a list.
"""

import logging
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, TypeVar

from longsumbench.arguments import as_texts
from longsumbench.core import Row
from longsumbench.corpora.loading.fields import BadRow, describe_names, id_in, json_type
from longsumbench.corpora.loading.row_files import (
    FOLDER,
    LINES,
    TEXT_ENDINGS,
    detect_format,
    parse_rows,
    texts_by_name,
    texts_in_folder,
    unpacked_path,
)
from longsumbench.corpora.loading.store import ReadSplit
from longsumbench.corpora.loading.text_files import (
    decoded_lines,
    list_shards,
    refuse_half_characters,
    with_names_of,
)
from longsumbench.corpora.loading.usual_keys import OUTPUT_FIELDS, REFERENCE_FIELDS
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count
from longsumbench.metrics.evaluate import RawText
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, split_read_by

_log = logging.getLogger(__name__)
Value = TypeVar("Value")
_IDS_IN_MESSAGE = 3  # most ids in a message


@dataclass(frozen=True)
class ScoredPair:
    """A prediction and its references."""

    id: str
    prediction: RawText
    references: tuple[RawText, ...]


@dataclass(frozen=True)
class PairedTexts:
    """Predictions paired with their references.

    Attributes:
        pairs: in the order of the predictions.
        only_predicted: ids without references, which were left out.
        only_referenced: ids without a prediction, which were left out.
        examples: for a run, the examples of the pairs with their sources.
    """

    pairs: tuple[ScoredPair, ...]
    only_predicted: tuple[str, ...] = ()
    only_referenced: tuple[str, ...] = ()
    examples: ReadSplit | None = None


def find_predictions(name: str, results: Results) -> Path:
    """Return the file or folder `name`, or the folder of the run with this id.

    Raises:
        DataError: there is no such file, folder or run.
    """
    path = Path(name).expanduser()
    if path.exists():
        return path
    try:
        return results.find(name)
    except UsageError as problem:
        raise DataError(f"no such file or folder, and {problem}", path) from problem


def read_pairs(
    predictions: Path, references: Path | None = None, intersect: bool = False
) -> PairedTexts:
    """Read predictions and references: both lines of text, or both rows or folders.

    Args:
        predictions: a file, a folder of texts, or a run's folder.
        references: a file or a folder of texts; None: the predictions' file or folder has them, or the run.
        intersect: leave out ids that only one side has.

    Raises:
        UsageError: the two sides are of different kinds, or lines of text have no references.
        DataError: a file cannot be read, or the two sides do not match.
    """
    # A run's folder needs no references
    if references is None and (predictions / "record.json").is_file():
        return _read_run_pairs(predictions)
    predictions = _find_predictions_file(predictions)
    kind = detect_format(predictions)
    reference_kind = kind if references is None else detect_format(references)
    if kind != reference_kind and LINES in (kind, reference_kind):
        raise UsageError(
            f"{predictions} is {kind}, {references} is {reference_kind}; both sides need ids, or neither"
        )
    if kind == LINES:
        if references is None:
            raise UsageError(
                f"{predictions} is lines of text: add a file of REFERENCES with the same lines"
            )
        return _paired_lines(predictions, references)
    gold = references or predictions
    if kind == reference_kind == FOLDER:
        predicted, referenced = _read_folders(predictions, gold)
    else:
        predicted = _read_texts(predictions, OUTPUT_FIELDS, _prediction_in)
        referenced = _read_texts(gold, REFERENCE_FIELDS, _references_in)
    texts, targets = _by_id(predicted, predictions), _by_id(referenced, gold)
    return _pair_by_id(
        texts,
        targets,
        f"{predictions} and {gold}",
        "score the {:,} others by --intersect",
        intersect,
    )


def _read_run_pairs(folder: Path) -> PairedTexts:
    """Return the summaries of a finished run with the references of their examples, in the run's order."""
    record = RunRecord.read(folder)
    record.check_written(folder, ["predictions.jsonl"])
    path = folder / "predictions.jsonl"
    texts = _by_id(_read_texts(path, OUTPUT_FIELDS, _prediction_in), folder)
    # Outputs that a server did not give are in no mean
    if record.left_out:
        for summary in read_summaries(path):
            if summary.counts.get("failed"):
                del texts[summary.id]
    split = split_read_by(folder, record)
    if split is None:
        advice = f"name REFERENCES, or read them by {shlex.join(record.command)}"
        raise DataError(f"the run's texts are not on this machine: {advice}", folder)
    examples = split.select(texts)
    references = {example.id: example.references for example in examples}
    pairs = [ScoredPair(name, text, references[name]) for name, text in texts.items()]
    return PairedTexts(tuple(pairs), examples=examples)


def read_outputs(path: Path, ids: Sequence[str]) -> dict[str, RawText]:
    """Read a system's outputs for a split, in one of the formats of this module.

    Args:
        path: a file, a folder of texts, or a run's folder. Lines of text belong to the examples in their order; so do
            the files of a folder in the order of their numbers, if none has an example's id as its name.
        ids: of the examples, in the split's order.

    Returns:
        Id → output. Ids of rows and of files may be unknown.

    Raises:
        DataError: the file cannot be read, an id occurs twice, the number of lines is not that of the examples, or the
            names of files are neither ids nor numbered.
    """
    path = _find_predictions_file(path)
    kind = detect_format(path)
    if kind not in (LINES, FOLDER):
        return with_names_of(ids, _by_id(_read_texts(path, OUTPUT_FIELDS, _prediction_in), path))
    texts: Sequence[RawText]
    if kind == LINES:
        texts = _read_text_lines(path)
    else:
        files = with_names_of(ids, dict(_read_texts(path, OUTPUT_FIELDS, _prediction_in)))
        if files.keys() & set(ids):
            return files
        names = _by_last_number(files, ids, path)
        texts = [files[name] for name in names]
    if len(texts) != len(ids):
        count = format_count(len(texts), "line" if kind == LINES else "output")
        advice = (
            "the n-th must belong to the n-th example, empty ones included, or give rows with ids"
        )
        raise DataError(f"{count} for {format_count(len(ids), 'example')}; {advice}", path)
    return dict(zip(ids, texts, strict=True))


def pair_texts(
    predictions: Iterable[str | Sequence[str]] | Mapping[str, str | Sequence[str]],
    references: Iterable[str | Sequence[str | Sequence[str]]]
    | Mapping[str, str | Sequence[str | Sequence[str]]],
) -> PairedTexts:
    """Pair the texts of two dictionaries by id, those of two lists or generators by place, counted from 1.

    An example's references are a text or a list of texts.

    Raises:
        UsageError: a side is a single text, or one side is a dictionary and the other is not.
        DataError: the sides differ in ids or length, or are empty; or an item is neither text nor a list of texts.
    """
    outputs = as_texts(predictions, "predictions")
    gold = as_texts(references, "references")
    if isinstance(outputs, Mapping) != isinstance(gold, Mapping):
        outputs, gold = _without_numbers(outputs), _without_numbers(gold)
    if isinstance(outputs, Mapping) != isinstance(gold, Mapping):
        raise UsageError(
            "of predictions and references one has ids (a dictionary, or a labelled Series): give ids to both, or two lists"
        )
    # Of dictionaries the ids are compared below, which says more
    differ = len(outputs) != len(gold) and not isinstance(outputs, Mapping)
    if differ or not outputs:
        counts = (
            f"{format_count(len(outputs), 'prediction')}, {format_count(len(gold), 'reference')}"
        )
        raise DataError(
            f"{counts}: give the references of each prediction, and at least one prediction"
        )
    texts = _by_id(_given_texts(outputs, lambda value: _read_text(value, "predictions")))
    targets = _by_id(_given_texts(gold, _read_given_references))
    return _pair_by_id(texts, targets, "predictions and references", "leave these out")


def _without_numbers(side: Any) -> Any:
    """Return the texts of a Series without labels, which are numbered from 0; other texts unchanged."""
    is_numbered = isinstance(side, Mapping) and list(side) == list(range(len(side)))
    return list(side.values()) if is_numbered else side


def given_outputs(outputs: Any) -> dict[str, RawText]:
    """Return outputs by id from Python.

    Raises:
        UsageError: they are neither a dictionary nor a Series.
        DataError: an item is neither text nor a list of sentences.
    """
    texts = as_texts(outputs, "outputs")
    if not isinstance(texts, Mapping):
        raise UsageError(
            "outputs have no ids: give id → output (a dictionary or a Series), or a file"
        )
    return _by_id(_given_texts(texts, lambda value: _read_text(value, "prediction")))


def _given_texts(side: Any, parse: Callable[[Any], Value]) -> Iterator[tuple[str, Value]]:
    """Yield (id, `parse(value)`) of a dictionary, or (number, `parse(value)`) of a list; an error names the example."""
    for name, value in side.items() if isinstance(side, Mapping) else enumerate(side, start=1):
        try:
            # Of pandas, a list in a cell is an array
            content = value.tolist() if hasattr(value, "tolist") else value
            entry = id_in({"id": name}, "id"), parse(content)
            refuse_half_characters(entry)
            yield entry
        except BadRow as problem:
            raise DataError(f"example {name!r}: {problem}") from problem


def _read_given_references(value: Any) -> tuple[RawText, ...]:
    texts = value if isinstance(value, list | tuple) else [value]
    return tuple(_read_text(text, "references") for text in texts)


def first_ids(ids: Sequence[str]) -> str:
    """Format the first three ids for a message."""
    more = ", …" if ids[_IDS_IN_MESSAGE:] else ""
    return ", ".join(map(repr, ids[:_IDS_IN_MESSAGE])) + more


def _find_predictions_file(path: Path) -> Path:
    """Return the file of predictions in a run's folder; return any other path unchanged."""
    inside = path / "predictions.jsonl"
    return inside if inside.is_file() and not any(path.glob("*.dec")) else path


def _pair_by_id(
    texts: Mapping[str, RawText],
    targets: Mapping[str, tuple[RawText, ...]],
    sides: str,
    advice: str,
    intersect: bool = False,
) -> PairedTexts:
    """Pair the two sides in the order of the predictions; raise DataError if ids differ, without `intersect`."""
    targets = with_names_of(texts, targets)
    pairs, only_predicted, problems = list[ScoredPair](), [], []
    for name, text in texts.items():
        if name in targets:
            pairs.append(ScoredPair(name, text, targets[name]))
        else:
            only_predicted.append(name)
    only_referenced = [name for name in targets if name not in texts]
    if only_predicted:
        count = format_count(len(only_predicted), "prediction")
        problems.append(f"{count} without references (ids {first_ids(only_predicted)})")
    if only_referenced:
        count = format_count(len(only_referenced), "reference")
        problems.append(f"{count} without a prediction (ids {first_ids(only_referenced)})")
    message = " and ".join(problems)
    if not pairs:
        raise DataError(f"{sides} have no id in common: {message}")
    if message and not intersect:
        raise DataError(f"{sides}: {message}; correct the ids, or {advice.format(len(pairs))}")
    return PairedTexts(tuple(pairs), tuple(only_predicted), tuple(only_referenced))


def _by_id(entries: Iterable[tuple[str, Value]], path: Path | None = None) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, value in entries:
        if name in values:
            raise DataError(f"the id {name!r} occurs twice; keep one of each", path)
        values[name] = value
    return values


def _read_texts(
    path: Path, fields: Sequence[str], parse: Callable[[Row], Value]
) -> list[tuple[str, Value]]:
    """Read ids and texts of rows, or of a folder's texts; say which of their names were recognized."""
    if detect_format(path) == FOLDER:
        files = _list_files(path, fields[1], alone=True)
        return [(name, parse({fields[1]: _text_in_file(file)})) for name, file in files.items()]
    return [
        text for _, text in parse_rows(path, fields, lambda row: (id_in(row, "id"), parse(row)))
    ]


def _prediction_in(row: Row) -> RawText:
    if "prediction" not in row:
        raise BadRow(
            "the field 'prediction' is missing", f"the row has {describe_names(row)}; rename one"
        )
    return _read_text(row["prediction"], "prediction")


def _references_in(row: Row) -> tuple[RawText, ...]:
    if "references" in row and isinstance(row["references"], list):
        return tuple(_read_text(item, "references") for item in row["references"])
    if "references" not in row and "summary" not in row:
        names = f"the row has {describe_names(row)}; rename one, or add a file of REFERENCES"
        raise BadRow("the field 'references' is missing", names)
    return (_read_text(row.get("summary", row.get("references")), "references"),)


def _read_text(value: Any, field: str) -> RawText:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(sentence, str) for sentence in value):
        return tuple(sentence for sentence in value if sentence.strip())
    kind = "NaN" if isinstance(value, float) and isnan(value) else json_type(value)
    raise BadRow(f"the field '{field}' must be text or a list of sentences, not {kind}")


def _paired_lines(predictions: Path, references: Path) -> PairedTexts:
    texts, targets = _read_text_lines(predictions), _read_text_lines(references)
    if len(texts) != len(targets):
        counts = f"{predictions} has {format_count(len(texts), 'line')}, {references} has {len(targets):,}"
        raise DataError(
            f"{counts}; line n of one must belong to line n of the other, empty lines included"
        )
    pairs = list[ScoredPair]()
    for text, target in zip(texts, targets, strict=True):
        pairs.append(ScoredPair(f"{len(pairs) + 1}", text, (target,)))
    return PairedTexts(tuple(pairs))


def _read_text_lines(path: Path) -> list[str]:
    lines: list[str] = []
    for part in list_shards(path):
        lines += (line.rstrip("\r\n") for line in decoded_lines(part))
    if not lines:
        raise DataError("the file is empty", path)
    return lines


def _read_folders(
    predictions: Path, references: Path
) -> tuple[list[tuple[str, RawText]], list[tuple[str, tuple[RawText, ...]]]]:
    """Read the texts of two folders, or of one; ids are the file names, or the numbers in them."""
    alone = predictions != references
    outputs = _list_files(predictions, "prediction", alone)
    gold = _list_files(references, "summary", alone)
    names = set(outputs)
    # Outputs are named 000000_decoded.txt, and references 000000_reference.txt, by some releases
    by_name = any(_owner(name, names) in names for name in gold)
    texts = []
    for name, file in outputs.items():
        texts.append((name if by_name else _last_number(name), _text_in_file(file)))
    targets: dict[str, tuple[RawText, ...]] = {}
    for name, file in gold.items():
        owner = _owner(name, names) if by_name else _last_number(name)
        targets[owner] = (*targets.get(owner, ()), _text_in_file(file))
    return texts, list(targets.items())


def _list_files(folder: Path, field: str, alone: bool) -> dict[str, Path]:
    """Return name → file of the outputs or references in a folder; `alone`: it has no texts of another field."""
    files = texts_in_folder(folder, field)
    if not files and alone:
        files = texts_by_name(folder)
    if not files:
        problem = ".ref files, nor references/ID.txt"
        if field == "prediction":
            run = "and no record.json: it contains neither outputs nor a finished run"
            problem = f".dec files, nor outputs/ID.txt, {run}"
        raise DataError(f"the folder has no {problem}", folder)
    return files


def _owner(stem: str, names: set[str]) -> str:
    """Return the name of the prediction for a reference: the same name, or the name without ".A"."""
    head = stem.rpartition(".")[0]
    return head if head in names and stem not in names else stem


def _last_number(stem: str) -> str:
    """Return the last number in a name without leading zeros, or the name if it has no number."""
    numbers = re.findall(r"\d+", stem)
    return (numbers[-1].lstrip("0") or "0") if numbers else stem


def _by_last_number(names: Collection[str], ids: Sequence[str], folder: Path) -> list[str]:
    """Return names in the order of their last numbers; `ids` are of examples, of which no file has the name."""
    numbers = {name: _last_number(name) for name in names}
    problem = f"no file has the id of an example as its name ({first_ids(ids)})"
    if len(set(numbers.values())) < len(names) or not all(map(str.isdecimal, numbers.values())):
        raise DataError(f"{problem}, nor each a number of its own; rename the files", folder)
    ordered = sorted(names, key=lambda name: (len(numbers[name]), numbers[name]))
    _log.info(f"{problem}: the n-th by its number, the first is {ordered[0]!r}, is of the n-th")
    return ordered


def _text_in_file(file: Path) -> RawText:
    """Return the running text of a .txt or .md file, or the sentences of a .dec or .ref file."""
    lines = [line.strip() for line in decoded_lines(file)]
    return (
        "\n".join(lines)
        if unpacked_path(file).suffix.lower() in TEXT_ENDINGS
        else tuple(filter(None, lines))
    )
