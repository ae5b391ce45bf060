"""Texts on disk in the normal form: one Arrow file per split, mapped into memory, so large datasets fit."""

import hashlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from typing import Any, NamedTuple, overload

import msgspec

from longsumbench.cache.artifacts import check_content, reading_artifact
from longsumbench.core import Example, count_words
from longsumbench.corpora.loading.fields import BadRow, check_id
from longsumbench.corpora.loading.text_damage import CutTexts, TextEnd, describe_end, marks_in

# references with as many words do not agree by chance
_DISTINCTIVE_WORDS = 5
_BATCH_BYTES = 4_000_000  # bytes of text per record batch


class StoredExample(NamedTuple):
    """An example as it is stored, made without knowing the others."""

    id: str
    source_words: int
    reference_words: int  # of its first reference
    # the example as JSON, in UTF-8; empty if there is a problem
    text: bytes
    # the same without the layout of its texts: what the fingerprint is made of
    sentences: bytes
    hashes: Mapping[
        str, int
    ]  # of "text" (its source), "id" and "reference", to find overlaps; 0: none
    # True if it has several documents
    multi_document: bool
    queried: bool  # True if it has a query
    reference_ends: tuple[TextEnd, ...] = ()
    marks: Sequence[str] = ()  # kinds of marks in its texts
    problem: BadRow | None = None  # why it cannot be used


def hash_text(text: str) -> int:
    """Return a 64-bit hash of a text.

    Two of ten million examples have the same hash in one of 400,000 such datasets.
    """
    content = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8)
    return int.from_bytes(content.digest(), "little")


def store_example(example: Example, reference_needed: bool) -> StoredExample:
    """Return an example as it is stored; with `reference_needed`, a missing summary is a problem."""
    source = "\n".join(example.sentences())
    source_words, reference_words = count_words([source]), count_words(example.references[0])
    text = sentences = b""
    problem = None
    if not source_words:
        problem = BadRow("the document is empty", f"example '{example.id}'")
    elif reference_needed and not any(example.references):
        problem = BadRow("the summary is empty", f"example '{example.id}'; training needs one")
    else:
        try:
            check_id(example.id)
            text = sentences = msgspec.json.encode(example.to_dict())
            if any(section.text for section in example.sections()):
                sentences = msgspec.json.encode(example.to_dict(has_layout=False))
        except UnicodeEncodeError:
            problem = BadRow(
                "half a character (a lone surrogate) in the text", f"example '{example.id}'"
            )
        except BadRow as bad_id:
            problem = bad_id
    references = [" ".join(reference) for reference in example.references]
    return StoredExample(
        id=example.id,
        source_words=source_words,
        reference_words=reference_words,
        text=text,
        sentences=sentences,
        hashes={
            "text": hash_text(source),
            "id": hash_text(example.id),
            "reference": _annotation_hash(example, references),
        },
        multi_document=len(example.documents) > 1,
        queried=bool(example.query),
        reference_ends=tuple(map(describe_end, filter(None, references))),
        marks=marks_in("\n".join([source, *references])),
        problem=problem,
    )


def _annotation_hash(example: Example, references: Sequence[str]) -> int:
    """Return a hash of what people wrote: the references, with the query if they are short.

    Short references without a query give 0, because they may agree by chance.
    """
    texts = references
    if sum(map(count_words, example.references)) < _DISTINCTIVE_WORDS:
        texts = [example.query, *references] if example.query and any(references) else []
    return hash_text("\n".join(texts)) if texts else 0


class SplitWriter:
    """Writes the examples of one split to a new Arrow file. Needs about 120 bytes of memory per example."""

    def __init__(self, path: Path) -> None:
        pa = _arrow()
        words, text = pa.int32(), pa.string()
        columns = {"id": text, "source_words": words, "reference_words": words, "example": text}
        self._schema = pa.schema(columns)
        self._writer = pa.ipc.new_file(str(path), self._schema)
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._hash, self._layout_hash = hashlib.sha256(), hashlib.sha256()
        self._ids: set[int] = set()  # hashes
        # of every example
        self.hashes = {name: array("Q") for name in ("text", "id", "reference")}
        self.cut_references = CutTexts()
        # ids of examples with marks, and their kinds
        self.marked: list[tuple[str, Sequence[str]]] = []
        # True if any example has several documents
        self.multi_document = False
        self.queried = False  # True if any example has a query

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def fingerprint(self) -> str:
        """The hash of all examples so far, without the layout of their texts."""
        return self._hash.hexdigest()

    @property
    def layout(self) -> str:
        """The hash of all examples so far, with the layout of their texts."""
        return self._layout_hash.hexdigest()

    def add(self, example: StoredExample) -> None:
        """Append an example.

        Raises:
            BadRow: the id is taken, or the example cannot be used.
        """
        if example.hashes["id"] in self._ids:
            raise BadRow("the id is used twice in this split", f"'{example.id}'")
        if example.problem is not None:
            raise example.problem
        self._hash.update(example.sentences + b"\n")
        self._layout_hash.update(example.text + b"\n")
        self._ids.add(example.hashes["id"])
        for name, hashes in self.hashes.items():
            hashes.append(example.hashes[name])
        self.cut_references.add(example.id, example.reference_ends)
        if example.marks:
            self.marked.append((example.id, example.marks))
        self.multi_document |= example.multi_document
        self.queried |= example.queried
        # the first fields are the columns
        self._rows.append(example[: len(self._schema)])
        self._bytes += len(example.text)
        if self._bytes >= _BATCH_BYTES:
            self._flush()

    def close(self) -> None:
        """Write the rest and finish the file."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            columns = dict(zip(self._schema.names, zip(*self._rows, strict=True), strict=True))
            self._writer.write_batch(_arrow().record_batch(columns, schema=self._schema))
        self._rows, self._bytes = [], 0


@dataclass(eq=False, repr=False)
class ReadSplit:
    """A split in the normal form: a sequence of examples that are read from disk on access. It can be pickled.

    The first access hashes the file: texts that changed since they were read would change scores.

    Raises:
        DataError: on access, if the file is damaged.
    """

    name: str  # `train`, `validation` or `test`
    # the Arrow file of a `SplitWriter`
    path: Path
    fingerprint: str  # hash of its examples
    # True if the dataset's examples can have several documents
    multi_document: bool = False
    # True if any example of the dataset has a query
    queried: bool = False
    # the same with the layout of their texts
    layout: str = ""
    # indices of the examples to keep; None keeps all
    places: Sequence[int] | None = None

    def __post_init__(self) -> None:
        self._opened: Any = None
        self._is_checked = False
        # a file that cannot be opened is reported here
        self._table()

    @cached_property
    def source_words(self) -> Sequence[int]:
        """Words of each example's source."""
        return _numbers_in(self._column("source_words"))

    @cached_property
    def reference_words(self) -> Sequence[int]:
        """Words of each example's first reference."""
        return _numbers_in(self._column("reference_words"))

    @property
    def ids(self) -> list[str]:
        """The ids of the examples."""
        ids: list[str] = self._column("id").to_pylist()
        return ids

    def select(self, ids: Collection[str]) -> "ReadSplit":
        """Return a split of only the examples with these ids, in the order of this one."""
        places = range(len(self)) if self.places is None else self.places
        is_selected = map(ids.__contains__, self.ids)
        return replace(self, places=list(compress(places, is_selected)))

    def __len__(self) -> int:
        return len(self._table())

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.name} has {len(self)} examples, not an example {index}")
        return self._example(self._column("example")[index % len(self)])

    def __iter__(self) -> Iterator[Example]:
        return map(self._example, self._column("example"))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def _example(self, text: Any) -> Example:
        with reading_artifact(self.path.parent):
            return msgspec.json.decode(text.as_py(), type=Example)

    def _table(self) -> Any:
        if self._opened is None:
            pa = _arrow()
            table = pa.ipc.open_file(pa.memory_map(str(self.path))).read_all()
            self._opened = table if self.places is None else table.take(self.places)
        return self._opened

    def _column(self, name: str) -> Any:
        if not self._is_checked:
            check_content(self.path)
            self._is_checked = True
        return self._table().column(name)


def _numbers_in(column: Any) -> Sequence[int]:
    return array("i", column.to_pylist())  # to_numpy would import pandas


def _arrow() -> Any:
    import pyarrow  # type: ignore[import-untyped] # has no annotations; slow, so imported late

    return pyarrow
