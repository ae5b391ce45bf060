"""Every dataset that is read from files: a bad row or file is one clear line and no other exception, never a bad text.

One table holds the smallest valid row of each; a dataset that is not in it fails the first test.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.dataset_rows import ROWS, Row, own_row
from support.reading import read_texts

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Corpus, Example, registry
from longsumbench.corpora.jsonl import jsonl_example
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.loading.rows import thinned_examples
from longsumbench.corpora.loading.usual_keys import OWN_FIELDS, rename_keys
from longsumbench.errors import DataError

Kind = tuple[Corpus, Callable[[str], Row]]
Place = tuple[str | int, ...]  # the way to a value in a row

GONE = object()  # the field is left out
DEPTH = 200
VALUES: tuple[Any, ...] = (  # what is in a field's place
    *(GONE, None, True, 7, -1.5, float("nan"), 10**300),
    *("", " \n\t", "\0", "a\nb\r\n\u2028c", "\ud800", "7"),
    *([], [[], []], [[None]], [[["a"]], None], ["a", None], ["a", "b"], [5], [{"a": 1}]),
    *({}, {"a": [None]}, [[{"a": [None, [None]]}]]),
    json.loads("[" * DEPTH + "]" * DEPTH),
)
NO_TEXT = (False, -1.5, {"odd": [None]})  # in no field can these mean anything


CORPORA = [registry.corpora.load(name) for name in registry.corpora.shipped()]
KINDS = [(name, number) for name, rows in ROWS.items() for number in range(len(rows))]


def places_in(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the way to every value inside a row, lists and objects too."""
    items = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else items:
        yield (*path, key)
        yield from places_in(item, (*path, key))


def changed(row: Row, place: Place, value: Any) -> Row:
    row = copy.deepcopy(row)
    holder: Any = row
    for key in place[:-1]:
        holder = holder[key]
    if value is GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    return row


def value_at(row: Row, place: Place) -> Any:
    found: Any = row
    for key in place:
        found = found[key]
    return found


def bad_rows(row: Row) -> Iterator[Row]:
    """Yield the row with everything in VALUES in each of its places, and its lists with a null, shorter and doubled."""
    for place in places_in(row):
        values: list[Any] = list(VALUES)
        if isinstance(now := value_at(row, place), list):
            values += [[None, *now], [*now, None], now[1:], now * 2, [now]]
        yield from (changed(row, place, value) for value in values)


def check(example: Example) -> None:
    """Check that an example is what the whole suite relies on: text everywhere, in its places."""
    msgspec.convert(msgspec.to_builtins(example), Example)  # every value has its type
    assert example.id
    assert example.references
    names = [example.title, example.query]
    texts = list(example.references)
    for document in example.documents:
        for section in document.sections:
            names.append(section.name)
            texts += section.paragraphs
    assert "" not in names
    assert all(sentence.strip() for text in texts for sentence in text)


def outcome(corpus: Corpus, row: Row) -> list[Example] | None:
    """Return the examples of a row; None where it cannot be used and one clear line says so."""
    assert corpus.from_file_row is not None
    try:
        examples = [item.example for item in thinned_examples(corpus.from_file_row(row))]
    except BadRow as caught:
        examples, problem = None, caught
    if examples is None:
        message = str(problem)
        assert len(message.splitlines()) == 1
        assert message.startswith(problem.reason)
        assert 5 < len(message) < 400
        return None
    assert examples
    for example in examples:
        check(example)
    return examples


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(map(str, kind)))
def kind(request: pytest.FixtureRequest) -> Kind:
    """A dataset, and what makes its smallest valid row under a name."""
    name, number = request.param
    return registry.corpora.load(name), ROWS[name][number]


def lines_of(*rows: Row) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_every_dataset_is_in_the_table() -> None:
    """Every reader of rows has a smallest valid row here; some datasets share a reader."""
    readers = {registry.corpora.load(name).from_file_row for name in ROWS}
    assert readers >= {corpus.from_file_row for corpus in CORPORA} - {None}


def test_the_smallest_row_is_valid(kind: Kind, tmp_path: Path, cache: ArtifactCache) -> None:
    """Each row of the table becomes examples with text and a reference, in a file with a byte order mark too."""
    corpus, row = kind
    examples = outcome(corpus, row("a"))
    assert examples
    assert all(example.source_words() and all(example.references) for example in examples)
    path = tmp_path / "marked.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + lines_of(row("a"), row("b")))
    assert read_texts(corpus.name, path, cache).splits["test"][0] == examples[0]


def test_a_changed_row_is_an_example_or_one_line(kind: Kind) -> None:
    """Whatever is in whichever place of a row, it becomes valid examples or one clear line."""
    corpus, row = kind
    for bad in bad_rows(row("a")):
        outcome(corpus, bad)


def test_what_is_read_must_be_text(kind: Kind) -> None:
    """A fraction or an object in a place that is read is refused: nothing is taken for missing, or for its spelling."""
    corpus, row = kind
    good = row("a")
    expected = outcome(corpus, good)
    for place in places_in(good):
        is_read = outcome(corpus, changed(good, place, "Another.")) != expected
        if value_at(good, place) is not None and is_read:
            outcomes = [outcome(corpus, changed(good, place, value)) for value in NO_TEXT]
            assert outcomes == [None] * len(NO_TEXT), place


def test_null_is_an_empty_value(kind: Kind) -> None:
    """A field with null is read, or refused, as the field with an empty text or list is; its name may be another."""
    corpus, row = kind
    good = row("a")
    for place in places_in(good):
        value = value_at(good, place)
        if isinstance(place[-1], str) and isinstance(value, str | list):
            empty = outcome(corpus, changed(good, place, type(value)()))
            assert outcome(corpus, changed(good, place, None)) == empty, place
    renamed = rename_keys({"ID": "a", "text": "A.", "Abstract": None}, OWN_FIELDS)
    assert jsonl_example(renamed).references == ((),)


def test_bad_rows_of_a_file_are_counted_by_reasons(tmp_path: Path, cache: ArtifactCache) -> None:
    """Not strict, all that can be used of a file is read, and all else counted by a reason that names no row."""
    corpus, rows = registry.corpora.load("jsonl"), []
    for number in range(3):
        rows += list(bad_rows(own_row(f"a{number}")))[number::7]
    (tmp_path / "test.jsonl").write_bytes(lines_of(own_row("good"), *rows))
    texts = read_texts(corpus.name, tmp_path, cache, strict=False)
    assert texts.splits["test"][0] in (outcome(corpus, own_row("good")) or [])
    for example in texts.splits["test"]:
        check(example)
        assert example.source_words()
    counts = texts.metadata["skipped"]["test"]
    assert sum(counts.values()) > len(rows) / 4
    assert not any("a1" in reason for reason in counts)


def test_rows_without_a_reference(kind: Kind, tmp_path: Path, cache: ArtifactCache) -> None:
    """Training wants a reference; a test keeps the row, if its dataset lets it be without one, with an empty one."""
    corpus, row = kind
    empty = without_references(row("none"))
    (tmp_path / "train.jsonl").write_bytes(lines_of(row("a"), empty))
    with pytest.raises(DataError, match=r"train\.jsonl:2: .*(empty|there is no )"):
        read_texts(corpus.name, tmp_path, cache)
    (tmp_path / "train.jsonl").unlink()
    (tmp_path / "test.jsonl").write_bytes(lines_of(row("a"), empty))
    texts = read_texts(corpus.name, tmp_path, cache, strict=False)
    kept = len(texts.splits["test"]) - len(outcome(corpus, row("a")) or [])
    if kept:
        assert "skipped" not in texts.metadata or not texts.metadata["skipped"]
        assert texts.splits["test"][-1].references == ((),)
    else:
        assert sum(texts.metadata["skipped"]["test"].values()) == 1


def without_references(row: Row) -> Row:
    """Return a row whose references have no words."""
    names = re.compile(
        r"summ(ary|aries)?\d?|references|abstract_text|highlights?|meta_review|lead|answer|response_text"
    )
    if "results" in row:  # of search2wiki, whose reference is the article's sections too
        row = {**row, "sections": []}
    for place in places_in(row):
        if names.fullmatch(str(place[-1])) and (now := value_at(row, place)) is not None:
            row = changed(row, place, [] if isinstance(now, list) else " ")
    return row
