"""Reads outputs and references of any system from files, and pairs them.

    JSON lines (.jsonl, .json)   {"id", "prediction"}; {"id", "references" | "reference" | "summary"}; or both in a row
    text (any other file)        line n of one belongs to line n of the other
    a finished run               its predictions, with the references of its examples
    folders                      NAME.dec and NAME.ref, one sentence per line; NAME.A.ref, NAME.B.ref: two references

Files may be compressed (.gz). A text is running text or a list of sentences; in folders it is always a list.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from longsumbench.core import Row, Sentences
from longsumbench.corpora.reading.fields import BadRow, id_in, json_type
from longsumbench.corpora.reading.files import decoded, lines_of, row_in
from longsumbench.corpora.reading.store import ReadSplit
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count
from longsumbench.metrics.evaluate import RawText
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results, split_read_by

Value = TypeVar("Value")
_REFERENCE_FIELDS = ("references", "reference", "summary")
_IDS_IN_MESSAGE = 3  # in a message
_ROWS = re.compile(r".*\.jsonl?(\.gz)?", re.IGNORECASE)
_JSON_LINES, _LINES, _FOLDER = "JSON lines", "lines of text", "a folder"


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


def read_pairs(predictions: Path, references: Path | None = None, intersect: bool = False) -> PairedTexts:
    """Read predictions and references of the same kind.

    Args:
        predictions: a file, a folder of .dec files, or a run's folder.
        references: a file, or a folder of .ref files; None: the predictions' file or folder has them, or the run.
        intersect: leave out ids that only one side has.

    Raises:
        UsageError: the two sides are of different kinds, or lines of text have no references.
        DataError: a file cannot be read, or the two sides do not match.
    """
    if references is None and (predictions / "record.json").is_file():
        return _pairs_of_run(predictions)
    predictions = _file_of_run(predictions)
    kind = _format_of(predictions)
    reference_kind = kind if references is None else _format_of(references)
    if kind != reference_kind:
        raise UsageError(f"{predictions} is {kind}, {references} is {reference_kind}; both sides must be of one kind")
    if kind == _LINES:
        if references is None:
            raise UsageError(f"{predictions} is lines of text: add a file of REFERENCES with the same lines")
        return _paired_lines(predictions, references)
    gold = references or predictions
    if kind == _FOLDER:
        predicted, referenced = _read_folders(predictions, gold)
    else:
        predicted, referenced = _read_rows(predictions, _prediction_in), _read_rows(gold, _references_in)
    texts, targets = _by_id(predicted, predictions), _by_id(referenced, gold)
    return _pair_by_id(texts, targets, f"{predictions} and {gold}", "score the {:,} others by --intersect", intersect)


def _pairs_of_run(folder: Path) -> PairedTexts:
    """Return the summaries of a finished run with the references of their examples, in the run's order."""
    record = RunRecord.read(folder)
    record.check_written(folder, ["predictions.jsonl"])
    texts = _by_id(_read_rows(path := folder / "predictions.jsonl", _prediction_in), folder)
    if record.left_out:
        texts = {summary.id: summary.text for summary in read_summaries(path) if not summary.counts.get("failed")}
    split = split_read_by(folder, record)
    if split is None:
        command = shlex.join(record.command)
        raise DataError(f"the run's texts are not on this machine: name REFERENCES, or read them by {command}", folder)
    places = {name: place for place, name in enumerate(split.ids)}
    pairs = tuple(ScoredPair(name, text, split[places[name]].references) for name, text in texts.items())
    return PairedTexts(pairs, examples=split.select(texts))


def read_outputs(path: Path, ids: Sequence[str]) -> dict[str, RawText]:
    """Read a system's outputs for a split, in one of the formats of this module.

    Args:
        path: a file, a folder of .dec files, or a run's folder. Lines of text belong to the examples in their order; so
            do .dec files in the order of their numbers, if none has an example's id as its name.
        ids: of the examples, in the split's order.

    Returns:
        Id → output. Ids of rows and of .dec files may be unknown.

    Raises:
        DataError: the file cannot be read, an id occurs twice, or the number of lines is not that of the examples.
    """
    path = _file_of_run(path)
    kind = _format_of(path)
    if kind == _JSON_LINES:
        return _by_id(_read_rows(path, _prediction_in), path)
    texts: Sequence[RawText]
    if kind == _LINES:
        texts = _read_text_lines(path)
    else:
        files = {file.stem: _sentences(file) for file in _list_files(path, ".dec")}
        if files.keys() & set(ids):
            return dict(files)
        texts = [files[name] for name in sorted(files, key=lambda name: (len(_last_number(name)), _last_number(name)))]
    if len(texts) != len(ids):
        count = format_count(len(texts), "line" if kind == _LINES else "output")
        advice = "the n-th must belong to the n-th example, empty ones included, or give JSON lines with ids"
        raise DataError(f"{count} for {format_count(len(ids), 'example')}; {advice}", path)
    return dict(zip(ids, texts, strict=True))


def pair_texts(
    predictions: Sequence[str | Sequence[str]] | Mapping[str, str | Sequence[str]],
    references: Sequence[str | Sequence[str | Sequence[str]]] | Mapping[str, str | Sequence[str | Sequence[str]]],
) -> PairedTexts:
    """Pair the texts of two dictionaries by id, those of two lists by place, counted from 1.

    An example's references are a text or a list of texts.

    Raises:
        UsageError: a side is a single text, or one side is a dictionary and the other is not.
        DataError: the sides differ in ids or length, or are empty; or an item is neither text nor a list of texts.
    """
    if isinstance(predictions, str) or isinstance(references, str):
        raise UsageError("predictions and references are lists: put a single text into a list")
    if isinstance(predictions, Mapping) != isinstance(references, Mapping):
        raise UsageError("of predictions and references one is a dictionary: give two dictionaries, or two lists")
    differ = len(predictions) != len(references) and not isinstance(predictions, Mapping)
    if differ or not len(predictions):
        counts = f"{format_count(len(predictions), 'prediction')}, {format_count(len(references), 'reference')}"
        raise DataError(f"{counts}: give the references of each prediction, and at least one prediction")
    texts = _by_id(_given_texts(predictions, lambda value: _read_text(value, "predictions")))
    targets = _by_id(_given_texts(references, _references_of))
    return _pair_by_id(texts, targets, "predictions and references", "leave these out")


def _given_texts(side: Any, parse: Callable[[Any], Value]) -> Iterator[tuple[str, Value]]:
    """Yield (id, `parse(value)`) of a dictionary, or (number, `parse(value)`) of a list; an error names the example."""
    for name, value in side.items() if isinstance(side, Mapping) else enumerate(side, start=1):
        try:
            yield id_in({"id": name}, "id"), parse(value)
        except BadRow as problem:
            raise DataError(f"example {name!r}: {problem}") from problem


def _references_of(value: Any) -> tuple[RawText, ...]:
    return tuple(_read_text(text, "references") for text in (value if isinstance(value, list | tuple) else [value]))


def first_ids(ids: Sequence[str]) -> str:
    """Format the first three ids for a message."""
    return ", ".join(map(repr, ids[:_IDS_IN_MESSAGE])) + (", …" if len(ids) > _IDS_IN_MESSAGE else "")


def _file_of_run(path: Path) -> Path:
    """Return the file of predictions in a run's folder; return any other path unchanged."""
    inside = path / "predictions.jsonl"
    return inside if inside.is_file() and not any(path.glob("*.dec")) else path


def _format_of(path: Path) -> str:
    if path.is_dir():
        return _FOLDER
    if not path.exists():
        raise DataError("no such file or folder", path)
    return _JSON_LINES if _ROWS.fullmatch(path.name) else _LINES


def _pair_by_id(
    texts: Mapping[str, RawText],
    targets: Mapping[str, tuple[RawText, ...]],
    sides: str,
    advice: str,
    intersect: bool = False,
) -> PairedTexts:
    """Pair the two sides in the order of the predictions; raise DataError if ids differ, without `intersect`."""
    paired = PairedTexts(
        tuple(ScoredPair(name, text, targets[name]) for name, text in texts.items() if name in targets),
        tuple(name for name in texts if name not in targets),
        tuple(name for name in targets if name not in texts),
    )
    unpaired = {
        f"{format_count(len(paired.only_predicted), 'prediction')} without references": paired.only_predicted,
        f"{format_count(len(paired.only_referenced), 'reference')} without a prediction": paired.only_referenced,
    }
    message = " and ".join(f"{label} (ids {first_ids(ids)})" for label, ids in unpaired.items() if ids)
    if not paired.pairs:
        raise DataError(f"{sides} have no id in common: {message}")
    if message and not intersect:
        raise DataError(f"{sides}: {message}; correct the ids, or {advice.format(len(paired.pairs))}")
    return paired


def _by_id(entries: Iterable[tuple[str, Value]], path: Path | None = None) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, value in entries:
        if name in values:
            raise DataError(f"the id {name!r} occurs twice; keep one of each", path)
        values[name] = value
    return values


def _read_rows(path: Path, parse: Callable[[Row], Value]) -> list[tuple[str, Value]]:

    def entry(line: bytes) -> tuple[str, Value] | None:
        return (id_in(row := row_in(line), "id"), parse(row)) if line.strip() else None

    rows = [row for row in _read_lines(path, entry) if row is not None]
    if not rows:
        raise DataError("the file is empty", path)
    return rows


def _read_lines(path: Path, parse: Callable[[bytes], Value]) -> Iterator[Value]:
    for number, line in enumerate(lines_of(path), start=1):
        try:
            yield parse(line)
        except BadRow as problem:
            raise DataError(f"{problem}", path, number) from problem


def _prediction_in(row: Row) -> RawText:
    if "prediction" not in row:
        raise BadRow("the field 'prediction' is missing")
    return _read_text(row["prediction"], "prediction")


def _references_in(row: Row) -> tuple[RawText, ...]:
    names = [field for field in _REFERENCE_FIELDS if field in row]
    if len(names) != 1:
        fields = f"several of the fields {', '.join(names)}" if names else f"none of {', '.join(_REFERENCE_FIELDS)}"
        raise BadRow(f"the row has {fields}: give one, or add a file of REFERENCES")
    value = row[names[0]]
    if names[0] == "references" and isinstance(value, list):
        return tuple(_read_text(item, "references") for item in value)
    return (_read_text(value, names[0]),)


def _read_text(value: Any, field: str) -> RawText:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(sentence, str) for sentence in value):
        return tuple(sentence for sentence in value if sentence.strip())
    kind = "NaN" if value != value else json_type(value)  # only NaN differs from itself
    raise BadRow(f"the field '{field}' must be text or a list of sentences, not {kind}")


def _paired_lines(predictions: Path, references: Path) -> PairedTexts:
    texts, targets = _read_text_lines(predictions), _read_text_lines(references)
    if len(texts) != len(targets):
        counts = f"{predictions} has {format_count(len(texts), 'line')}, {references} has {len(targets):,}"
        raise DataError(f"{counts}; line n of one must belong to line n of the other, empty lines included")
    pairs = enumerate(zip(texts, targets, strict=True), start=1)
    return PairedTexts(tuple(ScoredPair(f"{number}", text, (target,)) for number, (text, target) in pairs))


def _read_text_lines(path: Path) -> list[str]:
    lines = [line.rstrip("\r\n") for line in _read_lines(path, decoded)]
    if not lines:
        raise DataError("the file is empty", path)
    return lines


def _read_folders(
    predictions: Path, references: Path
) -> tuple[list[tuple[str, RawText]], list[tuple[str, tuple[RawText, ...]]]]:
    """Read a folder of .dec files and one of .ref files; ids are the file names, or the numbers in them."""
    decoded_files, gold = _list_files(predictions, ".dec"), _list_files(references, ".ref")
    names = {file.stem for file in decoded_files}
    by_name = bool(names & {_owner(file.stem, names) for file in gold})
    texts: list[tuple[str, RawText]] = [
        (file.stem if by_name else _last_number(file.stem), _sentences(file)) for file in decoded_files
    ]
    several: dict[str, list[RawText]] = {}
    for file in gold:
        owner = _owner(file.stem, names) if by_name else _last_number(file.stem)
        several.setdefault(owner, []).append(_sentences(file))
    return texts, [(name, tuple(targets)) for name, targets in several.items()]


def _list_files(folder: Path, ending: str) -> list[Path]:
    files = sorted(file for file in folder.glob(f"*{ending}") if file.is_file())
    if not files:
        run = "" if ending != ".dec" else " and no record.json: it contains neither outputs nor a finished run"
        raise DataError(f"the folder has no {ending} files{run}", folder)
    return files


def _owner(stem: str, names: set[str]) -> str:
    """Return the name of the prediction for a reference: the same name, or the name without ".A"."""
    head = stem.rpartition(".")[0]
    return head if head in names and stem not in names else stem


def _last_number(stem: str) -> str:
    """Return the last number in a name without leading zeros, or the name if it has no number."""
    numbers = re.findall(r"\d+", stem)
    return (numbers[-1].lstrip("0") or "0") if numbers else stem


def _sentences(file: Path) -> Sentences:
    return tuple(text for line in _read_lines(file, decoded) if (text := line.strip()))
