"""Which key of a row, or column of a table, holds what: the usual names of texts, summaries and outputs.

    row --rename_keys--> the same values under the suite's names

Names are compared without case and surrounding blanks, in the singular or plural. Of two usual names in a row, an
earlier group of `_USUAL_NAMES` goes first; two of the same group are an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

from longsumbench.core import Row
from longsumbench.corpora.reading.fields import BadRow, describe_names

OWN_FIELDS = ("id", "title", "query", "document", "summary")
REFERENCE_FIELDS = ("id", "summary")
OUTPUT_FIELDS = ("id", "prediction")
_USUAL_NAMES: Mapping[str, Sequence[Sequence[str]]] = {
    "id": (
        ("id",),
        ("identifier", "uid", "guid", "doc_id", "document_id", "example_id", "article_id"),
        # the last three are pandas' index
        ("index", "__index_level_0__", "unnamed:_0", ""),
    ),
    "title": (("title",),),
    "query": (("query",), ("question",)),
    "document": (("document",), ("documents",), ("text", "article", "body"), ("source",)),
    "summary": (
        ("summary", "references", "reference"),
        ("summaries", "abstract", "highlights", "highlight"),
        ("target",),
    ),
    "prediction": (
        ("prediction",),
        ("output", "generated", "predicted", "generation", "hypothesis", "candidate"),
        ("generated_summary", "predicted_summary", "generated_text", "output_text", "response"),
    ),
    "output": (("output",), ("prediction",)),
    "system": (("system",), ("model",)),
    "annotator": (("annotator",),),
    "aspect": (("aspect",),),
    "score": (("score",), ("rating",)),
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
    keys = {field: _column_named(column, tuple(row)) for field, column in (columns or {}).items()}
    rivals = set[str]().union(*map(_rivals, keys))
    names = [name for name in row if name not in keys.values() and _plain(name) not in rivals]
    names_with_value = tuple(name for name in names if row[name] is not None)
    wanted = tuple(field for field in fields if field not in rivals)
    usual = keys_of(names_with_value, wanted)
    null_names = tuple(name for name in names if row[name] is None)
    usual = {**keys_of(null_names, tuple(field for field in wanted if field not in usual)), **usual}
    values = {name: row[name] for name in names if name not in usual.values()}
    values |= {
        _plain(key) if _plain(key) in _SEVERAL else field: row[key] for field, key in usual.items()
    }
    return values | {field: row[key] for field, key in keys.items()}


@cache
def keys_of(names: tuple[str, ...], fields: tuple[str, ...]) -> Mapping[str, str]:
    """Return field → its name among `names`.

    Raises:
        BadRow: two names could be the same field.
    """
    keys: dict[str, str] = {}
    for field in fields:
        for group in _USUAL_NAMES[field]:
            candidates = [name for name in names if _plain(name) in group]
            candidates = candidates or [
                name for name in names if _plain(name).removesuffix("s") in group
            ]
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
    return {
        field
        for field, groups in _USUAL_NAMES.items()
        if not words.isdisjoint(chain.from_iterable(groups))
    }


def describe_keys(row: Row, fields: Sequence[str]) -> str:
    """Return which names hold the fields of a row; empty if they are the suite's own."""
    keys = keys_of(tuple(name for name in row if row[name] is not None), tuple(fields))
    unusual = {
        field: key.strip()
        for field, key in keys.items()
        if key not in (*_USUAL_NAMES[field][0], *_SEVERAL)
    }
    return ", ".join(
        f"{field} from '{key}'" if key else f"{field} without name"
        for field, key in unusual.items()
    )


def _column_named(column: str, names: Sequence[str]) -> str:
    if column in names:
        return column
    same = [name for name in names if _plain(name) == _plain(column)]
    if len(same) != 1:
        raise BadRow(f"the column '{column}' is missing", f"the row has {describe_names(names)}")
    return same[0]


def _rivals(field: str) -> Sequence[str]:
    """Return all usual names for what a field holds."""
    names = [tuple(chain.from_iterable(groups)) for groups in _USUAL_NAMES.values()]
    return next((usual for usual in names if field in usual), (field,))


@cache
def _plain(name: str) -> str:
    return "_".join(name.lower().replace("-", " ").split())
