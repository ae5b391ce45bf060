"""Texts as they are read: their structure, and which spans have room, against brute force."""

import random
import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st
from support.language_models import DOCUMENTS, PARAGRAPHS, chat_tokenizer, text_example

from longsumbench.core import Document, Example, Message, Section, Span
from longsumbench.modeling.units import EncodedSentence, pack_sentences
from longsumbench.models.prompt.source_text import GAP_MARK, LongText, Passage, PromptRoom

TOKENIZERS = ("trained", "words")
BEFORE, AFTER = "Read this:\n", "\nSummarize it."
FEW = settings(max_examples=40)


def long_text(kind: str, *documents: Sequence[Sequence[str]]) -> LongText:
    """Return documents of paragraphs of sentences with the tokens of a tokenizer."""
    passage = Passage.of_example(text_example(*documents), "Text {number}:")
    return LongText(passage, chat_tokenizer(kind))


def room_of(kind: str, tokens: int) -> PromptRoom:
    """Return a prompt with room for some tokens of text."""
    tokenizer = chat_tokenizer(kind)

    def messages(text: str) -> list[Message]:
        return [{"role": "user", "content": f"{BEFORE}{text}{AFTER}"}]

    def count(prompt: Sequence[Message]) -> int:
        return len(tokenizer(prompt[0]["content"], add_special_tokens=False)["input_ids"])

    return PromptRoom(messages, count, count(messages("")) + tokens)


def length_of(text: LongText, span: Span) -> int:
    """Return the number of tokens of what is sent of a span."""
    start, end = span
    return text.length((start, start + len(text.passage.text[start:end].rstrip())))


def texts_of(text: LongText, spans: Sequence[Span]) -> list[str]:
    return [text.passage.text[start:end].strip() for start, end in spans]


def test_structure_becomes_plain_text() -> None:
    """Sections' names are lines, blank lines divide paragraphs, several documents have numbers; empty text is out.

    A heading belongs to the sentence after it. All borders are where a paragraph or its headings begin.
    """
    first = Section("Introduction", (("One two.", "Three."), (" ", ""), ("Four.",)))
    document = Document(None, (first, Section("Empty", ((),)), Section(None, (("Five.",),))))
    last = Document(None, (Section("End", (("Six.",),)),))
    single = Example("one", "a title", None, (document,), (("r",),))
    text = "Introduction\n\nOne two. Three.\n\nFour.\n\nFive."
    assert Passage.of_example(single, "Document {number}:").text == text
    documents = (document, Document(None, ()), last)
    several = Example("several", None, None, documents, (("r",),))
    passage = Passage.of_example(several, "Text {number}:")
    whole = f"Text 1:\n\n{text}\n\nText 3:\n\nEnd\n\nSix."
    assert passage.text == whole
    four, five, end = (whole.index(beginning) for beginning in ("Four.", "Five.", "Text 3:"))
    assert passage.documents == (0, end)
    assert passage.sections == (0, five, end)
    assert passage.paragraphs == (0, four, five, end)
    sentences = [whole[start:end] for start, end in passage.sentences]
    first_sentence = "Text 1:\n\nIntroduction\n\nOne two."
    others = ["Three.", "", "", "Four.", "Five.", "Text 3:\n\nEnd\n\nSix."]
    assert sentences == [first_sentence, *others]


def brute_force(text: LongText, room: PromptRoom, kept: str) -> str:
    """Return the most that can be kept within the budget: every number of tokens is tried, from all of them."""
    whole, spans = text.passage.text, text.offsets
    for number in range(len(spans), 0, -1):
        head = {"beginning": number, "ending": 0, "ends": -(-number // 2)}[kept]
        first = whole[: spans[head - 1][1]].strip() if head else ""
        last = whole[spans[len(spans) - (number - head)][0] :].strip() if number > head else ""
        is_whole = number == len(spans)
        joined = whole if is_whole else GAP_MARK.join(filter(None, (first, last)))
        if room.excess(joined) <= 0:
            return joined
    return ""


@pytest.mark.parametrize("kept", ["beginning", "ending", "ends"])
@FEW
@given(paragraphs=PARAGRAPHS, tokens=st.integers(1, 120))
def test_the_most_is_kept(kept: str, paragraphs: list[list[str]], tokens: int) -> None:
    """Of words, what is kept is what trying every number of tokens finds, and never over the budget."""
    text, room = long_text("words", paragraphs), room_of("words", tokens)
    spans = text.shortened(kept, room)
    assert text.joined(spans) == brute_force(text, room, kept)


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize("has_borders", [False, True])
@FEW
@given(documents=DOCUMENTS, tokens=st.integers(8, 120), longest=st.none() | st.integers(5, 60))
def test_parts_are_the_whole_text(
    has_borders: bool, kind: str, documents: list[list[list[str]]], tokens: int, longest: int | None
) -> None:
    """Parts fit, follow each other from the first to the last character, cross no border, and end with sentences.

    A sentence is divided only if it is longer than a part. A text that fits is one part.
    """
    text, room = long_text(kind, *documents), room_of(kind, tokens)
    borders = text.passage.documents if has_borders else ()
    parts = text.parts(room, borders, longest)
    assert [start for start, _ in parts] == [0, *(end for _, end in parts[:-1])]
    assert parts[-1][1] == len(text.passage.text)
    for start, end in parts:
        assert room.excess(text.joined([(start, end)])) <= 0
        assert not any(start < border < end for border in borders)
        assert longest is None or length_of(text, (start, end)) <= longest
    if not has_borders and longest is None and room.excess(text.passage.text) <= 0:
        assert len(parts) == 1
    most = max(map(text.length, text.passage.sentences))
    if most + 4 <= min(tokens, longest or tokens):  # tokens that merge, or do not, at a border
        assert all(part.endswith(".") for part in texts_of(text, parts))


SHORT, SENTENCE = ["kadan kadan."], "lohit lohit lohit lohit."


@pytest.mark.parametrize(
    ("paragraphs", "parts"),
    [
        (
            [SHORT, SHORT, SHORT, [SENTENCE] * 3],
            ["\n\n".join(SHORT * 3), f"{SENTENCE} {SENTENCE}", SENTENCE],
        ),
        (
            [["kadan"], [SENTENCE] * 4],
            [f"kadan\n\n{SENTENCE} {SENTENCE}", f"{SENTENCE} {SENTENCE}"],
        ),
        ([["lohit " * 13 + "end."]], [" ".join(["lohit"] * 11), "lohit lohit end."]),
    ],
)
def test_where_parts_end(paragraphs: list[list[str]], parts: list[str]) -> None:
    """At the last paragraph that fits, else at a sentence, else between tokens; a heading stays with its text."""
    text = long_text("words", paragraphs)
    assert texts_of(text, text.parts(room_of("words", 11))) == parts


@FEW
@given(documents=DOCUMENTS, length=st.integers(10, 30))
def test_snippets_are_packed_sentences(documents: list[list[list[str]]], length: int) -> None:
    """Where no sentence is longer than a snippet, snippets are those that SEAL packs, document by document."""
    text = long_text("words", *documents)
    whole = text.passage.text
    expected = []
    borders = [*text.passage.documents, len(whole)]
    for begin, end in pairwise(borders):
        spans = [span for span in text.passage.sentences if begin <= span[0] < end]
        encoded = [EncodedSentence([0] * text.length(span), 0) for span in spans]
        if max(len(sentence.ids) for sentence in encoded) > length:
            return
        for packed in pack_sentences(encoded, length):
            sentences = spans[packed]
            expected.append(whole[sentences[0][0] : sentences[-1][1]])
    assert texts_of(text, text.snippets(length)) == expected


@pytest.mark.parametrize("kind", TOKENIZERS)
@FEW
@given(documents=DOCUMENTS, tokens=st.integers(1, 120), chance=st.randoms())
def test_the_best_that_fit_are_chosen(
    kind: str, documents: list[list[list[str]]], tokens: int, chance: random.Random
) -> None:
    """A beginning of an order that fits is chosen, and all others that fit with those before.

    Asking about each one finds which. Where a span fills a gap, a longer beginning can fit and a shorter one not.
    """
    text, room = long_text(kind, *documents), room_of(kind, tokens)
    snippets = text.snippets(12)
    order = list(range(len(snippets)))
    chance.shuffle(order)
    chosen = text.best(snippets, order, room)

    def fits(indices: Sequence[int]) -> bool:
        return room.excess(text.joined(snippets[index] for index in indices)) <= 0

    expected = []
    for number in range(len(order) + 1):
        if not fits(order[:number]) or (number < len(order) and fits(order[: number + 1])):
            continue
        picks = order[:number]
        for index in order[number:]:
            if fits([*picks, index]):
                picks.append(index)
        expected.append(picks)
    assert chosen in expected


@FEW
@given(documents=DOCUMENTS, picks=st.sets(st.integers(0, 40)))
def test_gaps_are_marked_where_text_is_left_out(
    documents: list[list[list[str]]], picks: set[int]
) -> None:
    """Neighbours are joined as in the text, in any order; a mark is only between others."""
    text = long_text("trained", *documents)
    snippets = text.snippets(12)
    chosen = sorted(index for index in picks if index < len(snippets))
    expected = ""
    for place, index in enumerate(chosen):
        start, end = snippets[index]
        if place:
            before = snippets[chosen[place - 1]][1]
            expected = expected.rstrip() + GAP_MARK if before < start else expected
        expected += text.passage.text[start:end]
    assert text.joined(snippets[index] for index in reversed(chosen)) == expected.rstrip()


@FEW
@given(paragraphs=PARAGRAPHS, bounds=st.lists(st.tuples(st.integers(0, 80), st.integers(0, 80))))
def test_overlapping_spans_are_counted_once(
    paragraphs: list[list[str]], bounds: list[tuple[int, int]]
) -> None:
    """A token or word is read if all its characters are in some span, however many spans have them."""
    text = long_text("words", paragraphs)
    end = len(text.passage.text)
    spans = [(min(start, end), min(start + length, end)) for start, length in bounds]
    places: set[int] = set()
    for span in spans:
        places.update(range(*span))
    words = [word.span() for word in re.finditer(r"\S+", text.passage.text)]
    ledger = text.ledger(spans)
    for units, seen in ((text.offsets, ledger.tokens_seen), (words, ledger.words_seen)):
        assert seen == sum(places.issuperset(range(*unit)) for unit in units)
