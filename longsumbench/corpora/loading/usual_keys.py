"""Which key of a row, or column of a table, holds what: the usual names of texts, summaries and outputs.

    row --rename_keys--> the same values under the suite's names

Names are compared without case and surrounding blanks, in the singular or plural. Of two usual names in a row, an
earlier group of `_USUAL_NAMES` goes first; two of the same group are an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any

from longsumbench.core import Row
from longsumbench.corpora.loading.fields import BadRow, describe_names

OWN_FIELDS = ("id", "title", "query", "document", "summary")
REFERENCE_FIELDS = ("id", "summary")
OUTPUT_FIELDS = ("id", "prediction")


def _read_groups(text: str) -> list[list[str]]:
    return [group.split() for group in text.split("|")]


_USUAL_NAMES = {
    # the last three are pandas' index
    "id": [
        *_read_groups("id | identifier uid guid doc_id document_id example_id article_id"),
        ["index", "__index_level_0__", "unnamed:_0", ""],
    ],
    "title": _read_groups("title"),
    "query": _read_groups("query | question"),
    "document": _read_groups("document | documents | text article body | source"),
    "summary": _read_groups(
        "summary references reference | summaries abstract highlights highlight | target"
    ),
    "prediction": _read_groups(
        "prediction | output generated predicted generation hypothesis candidate"
        " | generated_summary predicted_summary generated_text output_text response"
    ),
    "output": _read_groups("output | prediction"),
    "system": _read_groups("system | model"),
    "annotator": _read_groups("annotator"),
    "aspect": _read_groups("aspect"),
    "score": _read_groups("score | rating"),
}
# names whose values have another form
_SEVERAL = ("documents", "references")


def rename_keys(
    row: Row, fields: Sequence[str], columns: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a row with the suite's names for `fields`; other values keep their names.

    Args:
        row: a row of a file.
        fields: names of the suite, keys of `_USUAL_NAMES`; those that the row lacks stay absent.
        columns: name of the suite → the name in the row, which is not looked for.

    Raises:
        BadRow: a name of `columns` is missing, or two usual names could be the same field.
    """
    keys = {field: _find_column(column, tuple(row)) for field, column in (columns or {}).items()}
    rivals = set[str]().union(*map(_rivals, keys))
    names = [name for name in row if name not in keys.values() and _plain(name) not in rivals]
    usual: dict[str, str] = {}
    for is_null in (False, True):
        candidates = tuple(
            name
            for name in names
            if (row[name] is None) == is_null and not _has_questions(row, name)
        )
        missing = tuple(field for field in fields if field not in {*rivals, *usual})
        usual |= find_keys(candidates, missing)
    values = {name: row[name] for name in names if name not in usual.values()}
    for field, key in usual.items():
        values[_own_name(field, _plain(key), row[key])] = row[key]
    for name in filter(partial(_has_questions, row), names):
        values[_plain(name)] = values.pop(name)
    return values | {field: row[key] for field, key in keys.items()}


@cache
def find_keys(names: tuple[str, ...], fields: tuple[str, ...]) -> Mapping[str, str]:
    """Return field → its name among `names`.

    Raises:
        BadRow: two names could be the same field.
    """
    keys: dict[str, str] = {}
    for field in fields:
        for group in _USUAL_NAMES[field]:
            singular = [name for name in names if _plain(name) in group]
            plural = [name for name in names if _plain(name).removesuffix("s") in group]
            candidates = singular or plural
            if len(candidates) > 1:
                advice = f"keep one, or for a dataset set dataset.columns.{field}"
                raise BadRow(
                    f"two fields could be the {field}", f"{describe_names(candidates)}: {advice}"
                )
            if candidates:
                keys[field] = candidates[0]
                break
    return keys


def usual_fields(names: Iterable[str]) -> set[str]:
    """Return the fields that some of the names could be."""
    words = {_plain(name) for name in names}
    words |= {word.removesuffix("s") for word in words}
    return {field for field in _USUAL_NAMES if not words.isdisjoint(_rivals(field))}


def describe_keys(row: Row, fields: Sequence[str]) -> str:
    """Return which names hold the fields of a row; empty if they are the suite's own."""
    names = [name for name in row if row[name] is not None and not _has_questions(row, name)]
    keys = find_keys(tuple(names), tuple(fields))
    notes = []
    for field, key in keys.items():
        if key not in (*_USUAL_NAMES[field][0], *_SEVERAL):
            notes.append(
                f"{field} from '{key.strip()}'" if key.strip() else f"{field} without name"
            )
    return ", ".join(notes)


def _has_questions(row: Row, name: str) -> bool:
    """Return True for a list of questions with answers, which is no query."""
    return _plain(name) == "questions" and isinstance(row[name], list)


def _own_name(field: str, name: str, value: Any) -> str:
    """Return the suite's name for a value; a list of summaries is several references, one text is one of them."""
    plural = field == "summary" and name.endswith("s") and name != "highlights"  # of CNN, sentences
    if plural and isinstance(value, list):
        return "references"
    if plural and isinstance(value, str):
        return "summary"
    return name if name in _SEVERAL else field


def _find_column(column: str, names: Sequence[str]) -> str:
    if column in names:
        return column
    same = [name for name in names if _plain(name) == _plain(column)]
    if len(same) != 1:
        raise BadRow(f"the column '{column}' is missing", f"the row has {describe_names(names)}")
    return same[0]


def _rivals(field: str) -> Sequence[str]:
    """Return all usual names for what a field holds."""
    for groups in _USUAL_NAMES.values():
        names = list(chain.from_iterable(groups))
        if field in names:
            return names
    return [field]


@cache
def _plain(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").split())
