"""A query reaches every system that reads by units: before each of them, within its length, counted once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.networks import NEURAL
from support.toys import ToySplit, fit_tiny

LENGTHS = {  # system → the setting that a unit's length is kept to
    "trunc": "input_length",
    "ea": "snippet_length",
    "seal": "snippet_length",
    "pagesum": "page_size",
    "etads": "input_length",
    "hierarchical_transformer": "paragraph_length",
    "flat_transformer": "input_length",
    "tdmca": "input_length",
    "seq2seq": "input_length",
}
QUESTION = "word3 word5 word1"


def toys(name: str, size: int, start: int = 0, query: str | None = QUESTION) -> ToySplit:
    split = ToySplit.of(name, size, start)
    return ToySplit(
        name, [replace(one, query=query) for one in split.examples], queried=query is not None
    )


def fitted(name: str, folder: Path, query: str | None = QUESTION, **settings: Any) -> Any:
    return fit_tiny(name, folder, toys("train", 12, query=query), steps=1, **settings)


@pytest.fixture(scope="module", params=NEURAL)
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Every built-in system that reads by units."""
    return fitted(request.param, tmp_path_factory.getbasetemp() / "queries")


def text_of(system: Any, ids: list[int]) -> list[int]:
    """Return a unit's tokens without the special ones."""
    return [token for token in ids if token not in system.tokenizer.all_special_ids]


def test_every_unit_with_text_begins_with_the_query(system: Any) -> None:
    """The query's tokens come first in every unit, in training as in writing; a unit without text stays empty."""
    example = toys("test", 1, 44).examples[0]
    asked = system.reader.encode([QUESTION])[0].ids
    for units in (system.reader.units(example), system.reader.training_units(example)):
        kept = list(asked)[: units.query_length]
        texts = [text_of(system, ids) for ids in units.ids if ids]
        assert kept
        assert texts
        assert all(text[: len(kept)] == kept and len(text) > len(kept) for text in texts)


def test_units_stay_within_their_length(system: Any) -> None:
    """The query takes of a unit's room, at most half; next to a group of CA it takes half a snippet."""
    example = toys("test", 1, 44).examples[0]
    config = system.config
    if system.config.name == "ca":
        longest, most_asked = config.group_size * config.snippet_length, config.snippet_length // 2
        longest += most_asked
    else:
        longest = getattr(config, LENGTHS[config.name])
        most_asked = longest // 2
    for query in (QUESTION, " ".join(f"word{number % 7}" for number in range(300))):
        units = system.reader.units(replace(example, query=query))
        assert max(map(len, units.ids)) <= longest
        assert 0 < units.query_length <= most_asked


def test_the_ledger_counts_the_query_once(system: Any) -> None:
    """The source is longer by the query, however many units it is before; what is cut of it is reported."""
    example = toys("test", 1, 44).examples[0]
    alone = system.reader.units(replace(example, query=None)).truncation
    for query in (QUESTION, " ".join(f"word{number % 7}" for number in range(300))):
        whole = system.reader.encode([query])[0]
        units = system.reader.units(replace(example, query=query))
        assert units.truncation.tokens == alone.tokens + len(whole.ids)
        assert units.truncation.words == alone.words + len(query.split())
        cut = sum(one.tokens for one in units.truncation.cuts if one.cause == "query")
        assert cut == len(whole.ids) - units.query_length


def test_texts_with_and_without_queries_are_trained_apart(tmp_path: Path) -> None:
    """A checkpoint of texts with queries is not taken for one of the same texts without."""
    asked, plain = fitted("trunc", tmp_path), fitted("trunc", tmp_path, query=None)
    assert asked.checkpoint != plain.checkpoint
    assert plain.state.queried is None
