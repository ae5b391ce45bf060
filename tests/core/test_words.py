"""What a length in words counts."""

import pytest
from hypothesis import given, strategies as st

from longsumbench.core import count_words, word_pattern

MIXED = st.text(st.sampled_from("ab 会议开始。，ที่é-4"), max_size=40)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("Two words.", 2),
        ("don't stop-and-go", 2),  # between blanks
        ("Sima Guang (司馬光) wrote the chronicle.", 6),  # a name in another script is a word
        ("서울에서 만나요", 2),  # Korean has blanks
        ("会议于周一开始。", 7),  # letters, without marks
        ("使用GPT-4，很好。", 6),  # words of another script stay whole
        ("これはペンです。", 7),
        ("ที่นี่ดี", 3),  # letters with their marks
    ],
)
def test_worked_counts(text: str, words: int) -> None:
    """Words are between blanks; in a script without blanks between words each letter is one."""
    assert count_words([text]) == words


@given(st.lists(st.text(st.characters(max_codepoint=0x2FF)), max_size=5))
def test_other_texts_count_what_is_between_blanks(sentences: list[str]) -> None:
    """Latin text has as many words as `split` finds."""
    assert count_words(sentences) == sum(len(sentence.split()) for sentence in sentences)


@given(st.lists(MIXED, max_size=5))
def test_the_words_of_sentences_add_up(sentences: list[str]) -> None:
    """The pattern of a text finds in its sentences together what it finds in the text."""
    pattern = word_pattern(" ".join(sentences))
    assert count_words(sentences) == sum(len(pattern.findall(sentence)) for sentence in sentences)
