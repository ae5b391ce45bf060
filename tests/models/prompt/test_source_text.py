"""What is kept of long texts, against brute force."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.language_models import chat_tokenizer
from support.toys import WORDS

from longsumbench.core import Document, Example, Section, Truncation
from longsumbench.models.prompt.truncation import GAP_MARK, LongText, Passage

TOKENIZERS = ("trained", "words")
SENTENCES = st.lists(
    st.sampled_from([*WORDS, "naïve", "🦜", "a{b}", "—", "3.5"]), min_size=1, max_size=8
).map(lambda words: " ".join(words) + ".")
PARAGRAPHS = st.lists(st.lists(SENTENCES, min_size=1, max_size=4), min_size=1, max_size=5)
BEFORE, AFTER = "Read this:\n", "\nSummarize it."


def prompt_counter(tokenizer: Any) -> Callable[[str], int]:
    return lambda text: len(
        tokenizer(f"{BEFORE}{text}{AFTER}", add_special_tokens=False)["input_ids"]
    )


def long_text(paragraphs: list[list[str]], kind: str, room: int) -> LongText:
    count = prompt_counter(chat_tokenizer(kind))
    return LongText(Passage.of(paragraphs), chat_tokenizer(kind), count, count("") + room)


def spans_of_tokens(text: str, kind: str) -> list[tuple[int, int]]:
    """Return the characters of each token."""
    encoded = chat_tokenizer(kind)(text, add_special_tokens=False, return_offsets_mapping=True)
    return list(encoded["offset_mapping"])


def test_structure_becomes_plain_text() -> None:
    """Sections' names are lines, blank lines divide paragraphs, several documents have numbers; empty text is out."""
    first = Section("Introduction", (("One two.", "Three."), (" ", ""), ("Four.",)))
    document = Document(None, (first, Section("Empty", ((),)), Section(None, (("Five.",),))))
    other = Document(None, (Section(None, (("Six.",),)),))
    one = Example("one", "a title", None, (document,), (("r",),))
    several = Example("several", None, None, (document, Document(None, ()), other), (("r",),))
    text = "Introduction\n\nOne two. Three.\n\nFour.\n\nFive."
    assert Passage.of_example(one, "Document {number}:").text == text
    assert (
        Passage.of_example(several, "Text {number}:").text
        == f"Text 1:\n\n{text}\n\nText 3:\n\nSix."
    )


def brute_force(text: LongText, kind: str, policy: str) -> str:
    """Return the most that a policy can keep within the budget: every number of tokens is tried, from all of them."""
    whole, spans = text.passage.text, spans_of_tokens(text.passage.text, kind)
    for number in range(len(spans), 0, -1):
        head = {"end": number, "start": 0, "middle": -(-number // 2)}[policy]
        first = whole[: spans[head - 1][1]].strip() if head else ""
        last = whole[spans[len(spans) - (number - head)][0] :].strip() if number > head else ""
        kept = GAP_MARK.join(part for part in (first, last) if part)
        if text.count(kept) <= text.budget:
            return kept
    return ""


@pytest.mark.parametrize("policy", ["end", "start", "middle"])
@given(paragraphs=PARAGRAPHS, room=st.integers(1, 120))
def test_the_most_is_kept(policy: str, paragraphs: list[list[str]], room: int) -> None:
    """Of words, what is kept is what trying every number of tokens finds, and never over the budget."""
    text = long_text(paragraphs, "words", room)
    if text.excess > 0:
        kept, _ = text.shortened(policy)
        assert kept == brute_force(text, "words", policy)


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(paragraphs=PARAGRAPHS, room=st.integers(6, 120))
def test_parts_are_the_whole_text(kind: str, paragraphs: list[list[str]], room: int) -> None:
    """Parts fit, and together they are the text; no part ends within a sentence that would fit into one."""
    text = long_text(paragraphs, kind, room)
    parts = text.parts()
    assert "".join("".join(parts).split()) == "".join(text.passage.text.split())
    assert all(text.count(part) <= text.budget for part in parts)
    sentences = {sentence for paragraph in paragraphs for sentence in paragraph}
    longest = max(len(spans_of_tokens(sentence, kind)) for sentence in sentences)
    if longest + 4 <= room:  # tokens that merge, or do not, at a border
        assert all(any(part.endswith(sentence) for sentence in sentences) for part in parts)


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
    assert long_text(paragraphs, "words", 11).parts() == parts


def test_no_room_keeps_nothing() -> None:
    """Where not even one token of the text fits, nothing is kept and there are no parts."""
    for room in (0, -3):
        text = long_text([["kadan kadan."]], "words", room)
        assert text.shortened("end") == ("", Truncation(3, 2, text.ledger([]).cuts))
        assert text.parts() == []


def test_summaries_are_joined_line_by_line() -> None:
    """The summaries of parts become a text with a paragraph for each of their lines."""
    passage = Passage.of_summaries(["- One.\n- Two. Three.", "", "Four.\n"])
    assert passage.text == "- One.\n\n- Two. Three.\n\nFour."
    assert len(passage.paragraphs) == 3
    assert re.findall(r"\S", passage.text[passage.sentences[-1] :])[0] == "F"
