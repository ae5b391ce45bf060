"""The sentence splitter against cases worked by hand, its promises, and sentences that others split."""

import gzip
import json
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given, settings, strategies as st
from support.paths import SHARED as SHARED_ROOT
from support.requirements import SHARED_FOLDER
from support.waiting import assert_linear

from longsumbench.sentences import split_sentences

SHARED = SHARED_ROOT / "data"

# A bar is where a sentence ends; blanks around it are one of the text.
BY_HAND = """
One. | Two! | Three? | Four
See Fig. 3 and Eq. (2). | It fits.
Smith et al. (2010) agree. | We do not.
As in Smith et al. | We extend it.
Fruit, e.g. Apples, i.e. Red ones.
Dr. J. R. Smith met Mrs. Jones.
The U.S. Senate met. | In the U.S. | The vote fell.
It is No. 5 of 7. | The answer is no. | Five remain.
Pi is 3.14159. | Version 2.0. | Done.
Wait... and see. | Well... | Now.
He said “Go.” | She went. | (It rained.) | Then sun.
"Really?" he asked. | "Yes!" she said.
It was so.[12] | The rest.
kept for 16 h. | Cells were then washed.
2. Methods are old. | 3. Results too.
We saw it. | mRNA rose. | p53 fell.
Of approx. three kinds. | Of temp. unknown kinds.
the cells grew. | we saw e. coli. | then they died.
Δ ln l is large. | so it was .
it is rare in fig. 2 . | what is it? | we ask.
你好。|我很好！|是吗？|是
“你好。”|他说。|走吧
...
"""


@pytest.mark.parametrize("line", BY_HAND.strip().splitlines())
def test_sentences_worked_by_hand(line: str) -> None:
    """Abbreviations, numbers, quotes, lower-cased prose and CJK marks end sentences where a reader would."""
    text = line.replace(" | ", " ").replace("|", "")
    assert list(split_sentences(text)) == [sentence.strip() for sentence in line.split("|")]


def test_lines_and_paragraphs() -> None:
    """A blank line and a list item end a sentence, a soft line break does not; no text has none."""
    text = "A first line\nthat goes on. And\r\n\r\nA paragraph\n- one\n- two\n3. three"
    expected = ["A first line that goes on.", "And", "A paragraph", "- one", "- two", "3. three"]
    assert list(split_sentences(text)) == expected
    assert split_sentences("") == ()


PIECES = """The cell e.g. Fig. 3 3. et al. U.S. we. it? no. (so.) "Go!" mRNA J. - 。 好。 ... [12] .[3] '' ) … a. the
    1) *x.* ‘ ’"""
WORDS = st.sampled_from([*PIECES.split(), "\n", "\n\n"])
TEXTS = st.one_of(
    st.text(), st.lists(WORDS).map(" ".join), st.text(alphabet="aA.!?。 \n\"'()[]1-…’")
)


@given(TEXTS)
@settings(max_examples=500)
def test_nothing_is_lost(text: str) -> None:
    """Joined again, the sentences hold every character that is not white space, in order."""
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@given(TEXTS)
@settings(max_examples=500)
def test_a_sentence_is_stable(text: str) -> None:
    """A sentence that begins with no period comes back whole if it is split again; all have single spaces."""
    for sentence in split_sentences(text):
        assert split_sentences(sentence) == (sentence,) or sentence.startswith(".")
        assert sentence == " ".join(sentence.split()) != ""


HARD = {
    "a long sentence": "x" * 200_000,
    "periods": "." * 200_000,
    "openers": ". " + "(" * 200_000,
    "numbers without a letter": "1. 1. " * 32_000 + "a. b",
    "abbreviations": "e.g. " * 40_000,
    "a text without an end": "Dr. e.g. U.S. "
    * 115_000,  # from a million characters on, one search a mark is felt
    "Chinese marks": "。" * 200_000,
    "dandas": "।" * 200_000,
    "citations": ".[1, " * 40_000,
    "usual text": "They were kept at 37 °C for 16 h. Then, as in Fig. 3 (Smith et al. 2010), we washed them. "
    * 2_100,
}


@pytest.mark.parametrize("name", HARD)
def test_time_is_bounded(name: str) -> None:
    """Many characters of the worst kind take time as their number says, where a quadratic rule takes minutes."""
    assert_linear(lambda characters: split_sentences(HARD[name][:characters]), len(HARD[name]))


def given_sentences(corpus: str) -> Iterator[list[str]]:
    path = SHARED / corpus / "test.jsonl.gz"
    if not path.exists():
        pytest.skip(SHARED_FOLDER)
    with gzip.open(path, "rt") as lines:
        for line in islice(lines, 60):
            for section in json.loads(line)["sections"]:
                yield [" ".join(sentence.split()) for sentence in section if sentence.strip()]


def boundaries(sentences: list[str]) -> set[int]:
    """Where the sentences end in their joined text, the end of the text left out."""
    ends, at = set(), 0
    for sentence in sentences[:-1]:
        at += len(sentence) + 1
        ends.add(at)
    return ends


@pytest.mark.parametrize(
    ("corpus", "precision", "recall"), [("sumpubmed", 0.99, 0.97), ("elife", 0.98, 0.97)]
)
def test_agreement_with_given_sentences(corpus: str, precision: float, recall: float) -> None:
    """Joined and split again, real papers get back the sentences they came with, where an end mark is between."""
    found = expected = both = 0
    for sentences in given_sentences(corpus):
        text = " ".join(sentences)
        ours = boundaries(list(split_sentences(text)))
        theirs = {
            end for end in boundaries(sentences) if text[: end - 1].rstrip("\"'”’)] ")[-1:] in ".!?"
        }
        found, expected, both = found + len(ours), expected + len(theirs), both + len(ours & theirs)
    assert both / found >= precision
    assert both / expected >= recall
