"""Facts that are planted in natural texts."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.json_files import write_rows
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    DatasetSettings,
    Document,
    Example,
    FactPart,
    FactStatement,
    PlantedFact,
    Section,
    count_words,
    registry,
)
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.planting.plant import plant_facts, read_templates
from longsumbench.metrics.fact_matching import MISSING, RIGHT, WRONG, match_facts

PLANTED_KINDS = set(read_templates().registers["prose"])


def natural_text(*documents: Sequence[Sequence[str]], identity: str = "x") -> Example:
    """Return an example of documents, each given by its paragraphs, in one section."""
    read = []
    for paragraphs in documents:
        read.append(Document(None, (Section(None, tuple(map(tuple, paragraphs))),)))
    return Example(identity, None, None, tuple(read), (("A summary.",),))


def rain(number: int, first: int = 1) -> list[str]:
    """Return sentences of eight words."""
    return [f"On day {day} it rained in the valley." for day in range(first, first + number)]


def sentences_of(facts: Sequence[PlantedFact]) -> list[str]:
    statements = chain.from_iterable((*fact.corrected, *fact.statements) for fact in facts)
    return [statement.sentence for statement in statements]


WORDS = ("rain", "the", "Halvorsen", "14", "March", "4,217", "Mr.", "10.1", "million", "euros")
SENTENCES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
PARAGRAPHS = st.lists(st.lists(SENTENCES, max_size=6), min_size=1, max_size=5)
PREFIXES = st.sampled_from(("", "Grad C: "))


@given(st.lists(PARAGRAPHS, min_size=1, max_size=3), PREFIXES, st.integers(1, 9), st.text("ab"))
def test_planted_sentences_stand_once_where_their_facts_say(
    documents: list[list[list[str]]], prefix: str, number: int, identity: str
) -> None:
    """In any text: without the planted sentences it is as before; each stands once, at its position; parts are new."""
    for paragraph in chain.from_iterable(documents):
        paragraph[:1] = [prefix + sentence for sentence in paragraph[:1]]
    example = natural_text(*documents, identity=identity)
    if len(list(example.sentences())) < 3 * number:
        with pytest.raises(BadRow, match="too short"):
            plant_facts(example, number)
        return
    planted = plant_facts(example, number)
    assert len(planted.planted) == number
    sentences = list(planted.sentences())
    added = sentences_of(planted.planted)
    assert [text for text in sentences if text not in added] == list(example.sentences())
    for fact in planted.planted:
        for statement in (*fact.corrected, *fact.statements):
            assert sentences.count(statement.sentence) == 1
            before = sentences[: sentences.index(statement.sentence)]
            assert statement.position == count_words(before) / count_words(sentences)
            assert all(part.text in statement.sentence for part in statement.parts)
        assert 0 < fact.chance <= 0.5
    subjects = [fact.subject.text for fact in planted.planted]
    assert len(set(subjects)) == number
    assert not any(subject in example.source_text() for subject in subjects)


@given(st.floats(0, 1), st.integers(0, 99))
def test_facts_stand_at_the_places_that_are_asked_for(place: float, identity: int) -> None:
    """What counts of a fact stands at its place, to half a sentence; what it corrects stands before."""
    example = natural_text([rain(20), rain(20, 21)], [rain(40, 41)], identity=str(identity))
    planted = plant_facts(example, 7, [place])
    others = sentences_of(planted.planted)
    sentences = list(planted.sentences())
    for fact in planted.planted:
        first = fact.statements[0]
        earlier = sentences[: sentences.index(first.sentence)]
        share = sum(sentence not in others for sentence in earlier) / 80
        assert share == pytest.approx(max(place, 1 / 80), abs=0.5 / 80 + 1e-9)
        assert all(item.position < first.position for item in fact.corrected)
    assert {fact.kind for fact in planted.planted} == PLANTED_KINDS


def test_a_case_by_hand() -> None:
    """One fact of ten words in the middle of four sentences of eight: 16 of 42 words are before it."""
    planted = plant_facts(natural_text([rain(4)], identity="a17"), 1, [0.5])
    sentence = "Members voted to release 56,400,000 euros for the Ravfeld archive."
    subject, amount = FactPart("name", "Ravfeld"), FactPart("amount", "56,400,000 euros")
    statement = FactStatement(sentence, (amount, subject), 16 / 42)
    # 90 numbers of millions, 9 of tenths, 4 currencies
    chance = 1 / (90 * 9 * 4)
    assert list(planted.sentences()) == [*rain(2), sentence, *rain(2, 3)]
    expected = PlantedFact("decision", subject, (amount,), (statement,), chance=chance)
    assert planted.planted == (expected,)
    assert planted.references == (("A summary.",),)


def test_the_same_facts_are_planted_elsewhere() -> None:
    """Places and the number of facts change no fact; the id and the split do."""
    example = natural_text([rain(60)])
    first = [fact.subject for fact in plant_facts(example, 8).planted]
    assert [fact.subject for fact in plant_facts(example, 8, [0.9]).planted] == first
    assert [fact.subject for fact in plant_facts(example, 4).planted] == first[:4]
    other = plant_facts(replace(example, id="y"), 8).planted
    assert [fact.subject for fact in other] != first
    trained = plant_facts(example, 8, split="train").planted
    assert trained == plant_facts(example, 8, split="validation").planted != other


def test_transcripts_get_turns_of_their_speakers() -> None:
    """In a transcript a fact is a turn of its own, of someone who speaks in it, in the words of a meeting."""
    turns = [[f"{who}: Well.", "Yes."] for who in ("Grad C", "Project Manager") * 10]
    planted = plant_facts(natural_text(turns), 8)
    [section] = planted.documents[0].sections
    for sentence in sentences_of(planted.planted):
        assert (sentence,) in section.paragraphs
        assert sentence.startswith(("Grad C: ", "Project Manager: "))


def session(identity: str) -> Example:
    """Return a session of an agent: sections are turns."""
    roles = ("system", *("user", "assistant", "tool: shell") * 10)
    sections = [Section(role, (("Do it.", "Now."), ("Ready: yes.",))) for role in roles]
    return Example(identity, None, None, (Document(None, tuple(sections)),), ((),))


@pytest.mark.parametrize("example", [session("a"), natural_text([rain(60)])])
@pytest.mark.parametrize("split", ["train", "test"])
def test_copies_survive(example: Example, split: str) -> None:
    """Facts are right where all of their sentences are copied, in any case; wrong where only the revoked one is."""
    facts = plant_facts(example, 20, split=split).planted
    copied = " ".join(statement.sentence for fact in facts for statement in fact.statements)
    for text in (copied, copied.lower(), copied.upper()):
        assert set(match_facts(facts, text)) == {RIGHT}
    revoked = " ".join(statement.sentence for fact in facts for statement in fact.corrected)
    for fact, verdict in zip(facts, match_facts(facts, revoked), strict=True):
        assert verdict == (WRONG if fact.corrected else MISSING)


def test_sessions_get_paragraphs_of_users_and_assistants() -> None:
    """Tools and systems state no facts; only users revoke instructions; further kinds occur."""
    kinds = set()
    for number in range(3):
        planted = plant_facts(session(str(number)), 10)
        roles: dict[str, str | None] = {}
        for section in planted.documents[0].sections:
            roles |= dict.fromkeys(chain.from_iterable(section.paragraphs), section.name)
        for fact in planted.planted:
            kinds.add(fact.kind)
            allowed = {"user"} if fact.kind == "revocation" else {"user", "assistant"}
            assert {roles[sentence] for sentence in sentences_of([fact])} <= allowed
    assert kinds == PLANTED_KINDS | {"file", "attempt", "revocation"}


def test_a_missing_reference_becomes_what_counts() -> None:
    """Without a reference, the planted sentences are it, in the order of the text, but no revoked one."""
    example = replace(natural_text([rain(60)]), references=((),))
    planted = plant_facts(example, 14)
    statements = chain.from_iterable(fact.statements for fact in planted.planted)
    stated = {statement.sentence for statement in statements}
    expected = tuple(sentence for sentence in planted.sentences() if sentence in stated)
    assert planted.references == (expected,)
    assert len(expected) == 14 + sum(fact.kind == "two_places" for fact in planted.planted)


def test_a_text_with_all_names_is_refused() -> None:
    """A value that the text has is never drawn, even if no other is left."""
    choices = read_templates().choices
    names = [stem + ending for stem in choices["stem"] for ending in choices["ending"]]
    with pytest.raises(BadRow, match="the text has too many of the "):
        plant_facts(natural_text([[f"{name} was there." for name in names]]), 1)


def test_own_texts_need_no_summaries(tmp_path: Path, cache: ArtifactCache) -> None:
    """Rows without a summary are read with planted facts; the record counts them."""
    rows: list[dict[str, Any]] = [
        {"id": "a", "document": " ".join(rain(30)), "query": "Why?"},
        {"id": "b", "document": " ".join(rain(30)), "summary": None},
    ]
    path = write_rows(tmp_path / "x.jsonl", rows)
    texts = read_texts("jsonl", path, cache, plant=4)
    first, second = texts.splits["test"]
    assert (len(first.planted), len(second.planted), first.query) == (4, 4, "Why?")
    assert list(texts.metadata["left_out"]["test"].values()) == [2]
    assert texts.metadata["planted"] == {"facts": 4, "at": None, "version": 1}
    assert "'summary' and 'references' are missing" in reading_problem("jsonl", path, cache)


def test_planted_texts_are_scored_by_what_survives() -> None:
    """The metric of planted facts follows a dataset's own metrics; other runs, and their ids, do not have it."""
    probe = registry.corpora.load("probe")
    assert probe.metrics_for(DatasetSettings("probe", plant=3)) == ("fact_recall", "fact_survival")
    assert probe.metrics_for(DatasetSettings("probe")) == ("fact_recall",)
