"""Splits outputs and references into sentences, and finds common errors in them, with their effect on scores."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from longsumbench.core import Sentences
from longsumbench.outputs.files import RawText, ScoredPair
from longsumbench.rouge.tokenizer import dropped_share
from longsumbench.sentences import SPLITTER_NAME, split_summary

_SENTENCE_ENDS = ("<n>", "<q>", "[SEP]", "[X_SEP]")  # what systems write between sentences
_TAGS = ("<s>", "</s>", "<t>", "</t>", "[CLS]", "<pad>")  # what systems write around sentences
_GIVEN = "given"  # in a signature: the texts are lists of sentences
_MANY, _FEW = 0.5, 0.1  # shares of a side's texts
_LONG_SENTENCE = 60  # words; a longer sentence is probably unsplit text
_LEAST_CUT = 3  # references of the same length; fewer may be chance
_CUT_SHARE = 0.05  # share of references cut at one length or ending in an ellipsis
_LEAST_CUT_WORDS = 20  # shorter references have the same length by chance
_DROPPED_SHARE = 0.02  # of the letters and digits; a few accents stay below it

_WORD_IN = re.compile(r"[a-z]+", re.IGNORECASE)
_ALNUM_BEYOND_ASCII = re.compile(r"(?![\x00-\x7f])[^\W_]")
_END_MARK = re.compile(r"[.!?…।。！？][\"'’”»)\]\s]*\Z")
_ELLIPSIS = re.compile(r"(?:\.\.\.|…|\. \. \.)\s*\Z")


@dataclass(frozen=True)
class TextTable:
    """All predictions or all references, one row per text.

    Attributes:
        name: "predictions" or "references".
        ids: ids of the texts' examples.
        texts: the texts as read.
        split: the sentences to be scored.
    """

    name: str
    ids: Sequence[str]
    texts: Sequence[RawText]
    split: Sequence[Sentences]

    def describe(self, rows: Sequence[int]) -> str:
        """Describe `rows` by their number and the first id: "3 of 10 references (e.g. 'a')"."""
        return f"{len(rows):,} of {len(self.ids):,} {self.name} (e.g. {self.ids[rows[0]]!r})"


def split_sides(pairs: Sequence[ScoredPair]) -> tuple[TextTable, TextTable]:
    """Split running text on both sides into sentences; keep lists of sentences."""
    ids = [pair.id for pair in pairs]
    predictions = [pair.prediction for pair in pairs]
    owners = [pair.id for pair in pairs for _ in pair.references]
    references = list(chain.from_iterable(pair.references for pair in pairs))
    return _split_side("predictions", ids, predictions), _split_side("references", owners, references)


def _split_side(name: str, ids: Sequence[str], texts: Sequence[RawText]) -> TextTable:
    return TextTable(name, ids, texts, [split_summary(text) if isinstance(text, str) else text for text in texts])


def splitting_of(predictions: TextTable, references: TextTable) -> str:
    """Return the part of the signature that names the sentence splitter of each side."""
    ways = [
        "+".join(sorted({_GIVEN if isinstance(text, tuple) else SPLITTER_NAME for text in side.texts}))
        for side in (predictions, references)
    ]
    return ways[0] if ways[0] == ways[1] else f"predictions={ways[0]},references={ways[1]}"


def find_warnings(predictions: TextTable, references: TextTable, drops: bool) -> list[str]:
    """Return a sentence about each probable error; `drops` means that the tokenizer keeps only a–z and 0–9."""
    sides = ((predictions, references), (references, predictions))
    messages = [line for side, _ in sides for line in _literal_marks(side)]
    messages += [
        line for find in (_unsplit, _lower_cased) for side, other_side in sides for line in find(side, other_side)
    ]
    dropped = [line for side, _ in sides for line in _dropped(side)] if drops else []
    return [*messages, *_find_cut_texts(references), *dropped]


def _literal_marks(side: TextTable) -> Iterator[str]:
    """Find sentence marks and tags in the texts."""
    texts = [text if isinstance(text, str) else "\n".join(text) for text in side.texts]
    suspects = [row for row, text in enumerate(texts) if "<" in text or "[" in text]
    for mark in (*_SENTENCE_ENDS, *_TAGS):
        if rows := [row for row in suspects if mark in texts[row]]:
            words = " ".join(_WORD_IN.findall(mark)).lower()
            if mark in _SENTENCE_ENDS:
                effect = "and ends no sentence, which lowers R-Lsum most; replace it by a line break"
            else:
                effect = "which changes every score; remove it"
            yield f"literal {mark} in {side.describe(rows)}: it is scored as '{words}', {effect}"


def _unsplit(side: TextTable, other_side: TextTable) -> Iterator[str]:
    """Find texts of one line if the other side's texts are split."""
    lines = [_count_lines(text) for text in side.texts]
    several = sum(_count_lines(text) > 1 for text in other_side.texts)
    if several < _MANY * len(other_side.texts) or sum(count > 1 for count in lines) > _FEW * len(lines):
        return
    rows = [row for row, count in enumerate(lines) if count == 1 and _looks_unsplit(side.texts[row])]
    if len(rows) < max(1, _MANY * len(lines)):
        return
    effect = "the splitter splits this side only; R-Lsum needs both sides split in the same way"
    if any(isinstance(side.texts[row], tuple) for row in rows):
        effect = "one-item lists are scored as one sentence, which changes R-Lsum by 20 to 30 points; split both alike"
    yield f"{side.describe(rows)} are one unsplit line, while the {other_side.name} are split into sentences: {effect}"


def _count_lines(text: RawText) -> int:
    return len(text) if isinstance(text, tuple) else sum(bool(line.strip()) for line in text.splitlines())


def _looks_unsplit(text: RawText) -> bool:
    """Return whether a text of one line probably has several sentences."""
    line = text if isinstance(text, str) else text[0]
    return len(line.split()) > _LONG_SENTENCE or len(split_summary(line)) > 1


def _lower_cased(side: TextTable, other_side: TextTable) -> Iterator[str]:
    """Find lower-cased texts if the other side has capitals."""
    rows = [row for row, sentences in enumerate(side.split) if " ".join(sentences).islower()]
    without = sum(" ".join(sentences).islower() for sentences in other_side.split)
    if rows and len(rows) >= (1 - _FEW) * len(side.split) and without <= _FEW * len(other_side.split):
        effect = "words still match, but such text is often tokenized differently (ca n't, -lrb-); compare a few"
        yield f"{side.describe(rows)} are lower-cased, the {other_side.name} are not: {effect}"


def _find_cut_texts(side: TextTable) -> Iterator[str]:
    """Find references that were cut at a length limit."""
    texts = [text if isinstance(text, str) else " ".join(text) for text in side.texts]
    effect = "scores against cut references are not comparable with others; use complete references"
    elided = [row for row, text in enumerate(texts) if _ELLIPSIS.search(text)]
    if len(elided) > _CUT_SHARE * len(texts):
        yield f"{side.describe(elided)} end in an ellipsis, as if cut: {effect}"
    words = [len(text.split()) for text in texts]
    for unit, lengths in (("words", words), ("characters", list(map(len, texts)))):
        limit = max(lengths, default=0)
        longest = [row for row, length in enumerate(lengths) if length == limit]
        open_ended = [row for row in longest if not _END_MARK.search(texts[row])]
        many = len(longest) >= max(_LEAST_CUT, _CUT_SHARE * len(texts))
        if many and words[longest[0]] >= _LEAST_CUT_WORDS and len(open_ended) >= _MANY * len(longest):
            yield f"{side.describe(longest)} are {limit:,} {unit} long, and none is longer, as if cut there: {effect}"
            return


def _dropped(side: TextTable) -> Iterator[str]:
    """Find texts whose letters and digits the default tokenizer drops."""
    rows = [row for row, text in enumerate(side.split) if _ALNUM_BEYOND_ASCII.search(" ".join(text))]
    share = dropped_share(" ".join(sentence for row in rows for sentence in side.split[row]))
    if share >= _DROPPED_SHARE:
        advice = "only a–z and 0–9 can match; --tokenizer unicode keeps the others"
        yield f"the tokenizer drops {100 * share:.0f} % of the letters and digits of {side.describe(rows)}: {advice}"
