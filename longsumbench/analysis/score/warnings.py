"""What usually goes wrong with outputs before they are scored: found, counted, and what it does to a score."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from longsumbench.analysis.score.files import RawText
from longsumbench.api.documents import Sentences
from longsumbench.rouge.tokenizer import dropped_share
from longsumbench.sentences import split_summary

_SENTENCE_ENDS = ("<n>", "<q>", "[SEP]", "[X_SEP]")  # what systems write between sentences
_TAGS = ("<s>", "</s>", "<t>", "</t>", "[CLS]", "<pad>")  # what they write around them
_MANY, _FEW = 0.5, 0.1  # shares of a side's texts
_LONG_SENTENCE = 60  # words; beyond it, one sentence is rather several that were not split
_LEAST_CUT = 3  # references of one length that are no chance
_CUT_SHARE = 0.05  # of the references, that are cut at one length or end in an ellipsis
_LEAST_CUT_WORDS = 20  # shorter references meet at one length by chance
_DROPPED_SHARE = 0.02  # of the letters and digits; a name with an accent now and then stays below it

_WORD_IN = re.compile(r"[a-z]+", re.IGNORECASE)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_END_MARK = re.compile(r"[.!?…।。！？][\"'’”»)\]\s]*\Z")
_ELLIPSIS = re.compile(r"(?:\.\.\.|…|\. \. \.)\s*\Z")


@dataclass(frozen=True)
class TextTable:
    """All predictions, or all references; one row a text.

    Attributes:
        name: "predictions" or "references".
        ids: of the examples that the texts belong to.
        texts: as they were read.
        split: their sentences, as they are scored.
    """

    name: str
    ids: Sequence[str]
    texts: Sequence[RawText]
    split: Sequence[Sentences]

    def said(self, found: Sequence[int]) -> str:
        """Name some texts by their number and the first of them ("3 of 10 references (e.g. 'a')")."""
        return f"{len(found):,} of {len(self.ids):,} {self.name} (e.g. {self.ids[found[0]]!r})"


def find_warnings(predictions: TextTable, references: TextTable, drops: bool) -> list[str]:
    """Return a sentence about each thing that goes wrong.

    Args:
        predictions: all of them.
        references: all of them.
        drops: whether the tokenizer drops what is neither a–z nor 0–9.
    """
    both = ((predictions, references), (references, predictions))
    found = [told for side, _ in both for told in _literal_marks(side)]
    found += [told for side, other in both for told in _unsplit(side, other)]
    found += [told for side, other in both for told in _lower_cased(side, other)]
    found += _cut(references)
    if drops:
        found += [told for side, _ in both for told in _dropped(side)]
    return found


def _literal_marks(side: TextTable) -> Iterator[str]:
    """Tell of marks that stand in the texts as characters."""
    texts = [text if isinstance(text, str) else "\n".join(text) for text in side.texts]
    suspects = [row for row, text in enumerate(texts) if "<" in text or "[" in text]
    for mark in (*_SENTENCE_ENDS, *_TAGS):
        if found := [row for row in suspects if mark in texts[row]]:
            words = " ".join(_WORD_IN.findall(mark)).lower()
            if mark in _SENTENCE_ENDS:
                effect = "and ends no sentence, which costs R-Lsum most; put a line break in its place"
            else:
                effect = "which shifts every score; take it out"
            yield f"literal {mark} in {side.said(found)}: it is scored as '{words}', {effect}"


def _unsplit(side: TextTable, other: TextTable) -> Iterator[str]:
    """Tell of a side whose texts are one line each, where those of the other are split."""
    lines = [_lines(text) for text in side.texts]
    several = sum(_lines(text) > 1 for text in other.texts)
    if several < _MANY * len(other.texts) or sum(count > 1 for count in lines) > _FEW * len(lines):
        return
    found = [row for row, count in enumerate(lines) if count == 1 and _looks_unsplit(side.texts[row])]
    if len(found) < max(1, _MANY * len(lines)):
        return
    given = sum(isinstance(side.texts[row], tuple) for row in found)
    if given:
        effect = "one-item lists are scored as one sentence, which moves R-Lsum by 20 to 30 points; split both alike"
    else:
        effect = "the splitter finds their sentences, the other side names its own; R-Lsum wants both split alike"
    yield f"{side.said(found)} are one unsplit line, while the {other.name} are split into sentences: {effect}"


def _lines(text: RawText) -> int:
    return len(text) if isinstance(text, tuple) else sum(bool(line.strip()) for line in text.splitlines())


def _looks_unsplit(text: RawText) -> bool:
    """Tell whether a text of one line is rather several sentences."""
    line = text if isinstance(text, str) else text[0]
    return len(line.split()) > _LONG_SENTENCE or len(split_summary(line)) > 1


def _lower_cased(side: TextTable, other: TextTable) -> Iterator[str]:
    """Tell of a side without capitals, where the other has them."""
    found = [row for row, sentences in enumerate(side.split) if " ".join(sentences).islower()]
    without = sum(" ".join(sentences).islower() for sentences in other.split)
    if found and len(found) >= (1 - _FEW) * len(side.split) and without <= _FEW * len(other.split):
        effect = "words match all the same, but such text is often tokenized otherwise (ca n't, -lrb-); compare a few"
        yield f"{side.said(found)} are lower-cased, the {other.name} are not: {effect}"


def _cut(side: TextTable) -> Iterator[str]:
    """Tell of references that end where a limit was."""
    texts = [text if isinstance(text, str) else " ".join(text) for text in side.texts]
    effect = "scores against cut references are not comparable with others; use the whole ones"
    elided = [row for row, text in enumerate(texts) if _ELLIPSIS.search(text)]
    if len(elided) > _CUT_SHARE * len(texts):
        yield f"{side.said(elided)} end in an ellipsis, as if cut: {effect}"
    words = [len(text.split()) for text in texts]
    for unit, lengths in (("words", words), ("characters", list(map(len, texts)))):
        limit = max(lengths, default=0)
        longest = [row for row, length in enumerate(lengths) if length == limit]
        open_ended = [row for row in longest if not _END_MARK.search(texts[row])]
        many = len(longest) >= max(_LEAST_CUT, _CUT_SHARE * len(texts))
        if many and words[longest[0]] >= _LEAST_CUT_WORDS and len(open_ended) >= _MANY * len(longest):
            yield f"{side.said(longest)} are {limit:,} {unit} long, and none is longer, as if cut there: {effect}"
            return


def _dropped(side: TextTable) -> Iterator[str]:
    """Tell of texts that lose letters and digits to the default tokenizer."""
    rows = [row for row, text in enumerate(side.split) if any(map(_beyond_ascii, text))]
    share = dropped_share(" ".join(sentence for row in rows for sentence in side.split[row]))
    if share >= _DROPPED_SHARE:
        advice = "only a–z and 0–9 can match; --tokenizer unicode keeps the others"
        yield f"the tokenizer drops {100 * share:.0f} % of the letters and digits of {side.said(rows)}: {advice}"


def _beyond_ascii(sentence: str) -> bool:
    """Tell whether a sentence holds a letter or a digit that is not ASCII."""
    if sentence.isascii():
        return False
    return any(letter.isalnum() for stretch in _BEYOND_ASCII.findall(sentence) for letter in stretch)
