"""The structure of an example: title, query, documents → sections → paragraphs → sentences, references.

All classes are frozen: every system and every metric gets the same text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from typing import Any

import msgspec

from longsumbench.formatting import format_count

# Scripts without blanks between words, as the inside of a set of characters.
BLANKLESS = (
    # Thai, Lao, Burmese, Khmer.
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han
    "\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_BLANKLESS_LETTER = re.compile(f"[{BLANKLESS}]")
# A name in another script, as "Sima Guang (司馬光)", changes nothing: such a text still counts words between blanks.
# Of such letters in a text whose letters are counted.
_LEAST_SHARE = 0.25

_BETWEEN_BLANKS = re.compile(r"\S+")
# With their marks; other words whole.
LETTERS = re.compile(rf"[{BLANKLESS}](?:(?!\w)[{BLANKLESS}])*|[^\W{BLANKLESS}]+")


def counts_letters(text: str) -> bool:
    """Return True for a text in a script without blanks between words."""
    return not text.isascii() and len(_BLANKLESS_LETTER.findall(text)) > _LEAST_SHARE * len(text)


def word_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern of the words that a length counts in a text, and in any part of it."""
    return LETTERS if counts_letters(text) else _BETWEEN_BLANKS


def count_words(sentences: Iterable[str]) -> int:
    """Count the words of sentences, which are one text."""
    text = " ".join(sentences)
    return len(word_pattern(text).findall(text))


# A paragraph, or a reference.
Sentences = tuple[str, ...]
# Characters: the first, and the last + 1.
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a document; text without headings is one section without a name.

    Attributes:
        text: its text as people wrote it, without blanks at its ends. It has the characters of the sentences in their
            order, and any white space between them. Empty: a blank between sentences, a blank line between paragraphs.
            Sections with the same sentences are equal.
    """

    name: str | None
    paragraphs: tuple[Sentences, ...]
    text: str = field(default="", compare=False)

    @classmethod
    def written(cls, name: str | None, paragraphs: tuple[Sentences, ...], text: str) -> "Section":
        """Return a section that keeps its text if the sentences do not give it."""
        section = cls(name, paragraphs)
        text = text.strip()
        return section if text == section.as_written() else cls(name, paragraphs, text)

    def as_written(self) -> str:
        """Return the text with its line breaks and blanks, without the section's name."""
        if self.text:
            return self.text
        paragraphs = []
        for paragraph in self.paragraphs:
            paragraphs.append(" ".join(filter(None, map(str.strip, paragraph))))
        return "\n\n".join(filter(None, paragraphs))

    def sentence_spans(self) -> list[Span]:
        """Return the characters of each sentence in `as_written`; none of an empty one."""
        letters = enumerate(self.as_written())
        visible = (index for index, letter in letters if not letter.isspace())
        spans = []
        end = 0
        for sentence in self.sentences():
            indices = list(islice(visible, sum(map(len, sentence.split()))))
            start = indices[0] if indices else end
            end = indices[-1] + 1 if indices else end
            spans.append((start, end))
        return spans

    def sentences(self) -> Iterator[str]:
        """Yield the sentences in reading order, without the section's name."""
        for paragraph in self.paragraphs:
            yield from paragraph


@dataclass(frozen=True, slots=True)
class Document:
    """One source document of an example; `source` says where it comes from, if known."""

    source: str | None
    sections: tuple[Section, ...]

    def texts(self, unit: str) -> Iterator[Sentences]:
        """Yield the non-empty units in reading order: "paragraph", "section" (without its name) or "sentence"."""
        if unit == "section":
            units: Iterator[Sentences] = (tuple(section.sentences()) for section in self.sections)
        elif unit == "sentence":
            units = ((sentence,) for sentence in self.sentences())
        else:
            units = chain.from_iterable(section.paragraphs for section in self.sections)
        return (sentences for sentences in units if any(map(str.strip, sentences)))

    def sentences(self) -> Iterator[str]:
        """Yield the sentences in reading order."""
        for section in self.sections:
            yield from section.sentences()


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact that was planted in a generated source and that the summary should state.

    Attributes:
        kind: how the source states it, as the dataset names it.
        subject: the word that is looked for in the summary ("bridge").
        value: the correct value ("adler").
        values: all possible values; a random guess is right with probability 1 / len(values).
        position: relative position of its first sentence in the source, from 0 to below 1.
        distance: number of sections between the sentences that state it; 0 for one place.
    """

    kind: str
    subject: str
    value: str
    values: tuple[str, ...]
    position: float
    distance: int


@dataclass(frozen=True, slots=True)
class FactPart:
    """A part of a planted fact, which a summary can state in another form.

    Attributes:
        kind: how it is compared: "name", "number", "amount", "date", "file", "words", or "not" (it is denied).
        text: as in the source ("3.4 million euros").
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class FactStatement:
    """A planted sentence that states a fact, or half of it.

    Attributes:
        sentence: as in the source.
        parts: what a summary that states the same has together in a sentence.
        position: relative position in the source's words, from 0 to below 1.
    """

    sentence: str
    parts: tuple[FactPart, ...]
    position: float


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """A fact that was planted in a natural text (`dataset.plant`).

    A summary states it if it has the subject and the answer in one place, or if it states all of `statements`.

    Attributes:
        kind: "decision", "number", "date", "name", "negation", "correction", "two_places", … (see `corpora/planting`).
        subject: what the fact is about ("the Lisbon office").
        answer: what is true of it ("3.4 million euros").
        statements: the sentences that state it together; one, unless subject and answer are in different places.
        revoked: an answer that an earlier sentence gave and a later one corrected.
        chance: probability that a guess of the answer is right.
        corrected: the earlier sentence with the revoked answer.
    """

    kind: str
    subject: FactPart
    answer: tuple[FactPart, ...]
    statements: tuple[FactStatement, ...]
    revoked: tuple[FactPart, ...] = ()
    chance: float = 0.0
    corrected: tuple[FactStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a text that its summary should answer; any of `answers` is right."""

    text: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """Source documents with their reference summaries.

    Attributes:
        id: unique within its split.
        title: the headline, if the dataset has one that a system may see.
        query: the question the summary must answer, for query-based datasets.
        documents: at least one, in the order of the data.
        references: the summaries people wrote, each a tuple of sentences, never cut.
        facts: planted facts of a generated text; systems do not use them.
        highlights: stretches of the source that people marked as important, in the order of the source.
        planted: facts that were planted in a natural text. Systems do not use them; a prompt may say that there are some.
        group: examples with the same one share a source and are no independent cases; None: those with the same text.
        questions: with answers, for the metric `answers`; systems do not see them.
    """

    id: str
    title: str | None
    query: str | None
    documents: tuple[Document, ...]
    references: tuple[Sentences, ...]
    facts: tuple[Fact, ...] = ()
    highlights: Sentences = ()
    planted: tuple[PlantedFact, ...] = ()
    group: str | None = None
    questions: tuple[Question, ...] = ()

    @property
    def topic(self) -> str | None:
        """The title, the query, or both; None if the example has neither."""
        return " ".join(filter(None, (self.title, self.query))) or None

    def texts(self, unit: str) -> Iterator[Sentences]:
        """Yield all non-empty paragraphs, sections or sentences in reading order, across documents."""
        for document in self.documents:
            yield from document.texts(unit)

    def sentences(self) -> Iterator[str]:
        """Yield all source sentences in reading order, across documents."""
        for document in self.documents:
            yield from document.sentences()

    def sections(self) -> Iterator[Section]:
        """Yield all sections in reading order, across documents."""
        for document in self.documents:
            yield from document.sections

    def source_text(self) -> str:
        """Return all source sentences on one line, without titles and section names."""
        paragraphs: list[str] = []
        for section in self.sections():
            paragraphs += [" ".join(paragraph) for paragraph in section.paragraphs]
        return " ".join(paragraphs)

    def source_group(self) -> str:
        """Return the group, or a hash of all documents without planted sentences; of documents without text, the id."""
        if self.group:
            return self.group
        planted: set[str] = set()
        for fact in self.planted:
            planted.update(each.sentence for each in (*fact.statements, *fact.corrected))
        text = "\n".join(sentence for sentence in self.sentences() if sentence not in planted)
        if not text.strip():
            return self.id
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def source_words(self) -> int:
        """Count the source's words, without titles and section names."""
        return count_words(self.sentences())

    def to_dict(self, has_layout: bool = True) -> dict[str, Any]:
        """Return plain lists and dicts for JSON, without empty fields from `facts` on, and without empty `text`.

        Without `has_layout`, sections have their sentences only.
        """
        plain: dict[str, Any] = msgspec.to_builtins(self)
        for name in ("facts", "highlights", "planted", "group", "questions"):
            if not plain[name]:
                del plain[name]
        for document in plain["documents"]:
            for section in document["sections"]:
                if not (has_layout and section["text"]):
                    del section["text"]
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Example":
        """Create an example from the output of `to_dict`."""
        return msgspec.convert(data, cls)


@dataclass(frozen=True, slots=True)
class Cut:
    """Text that was cut, for one cause.

    Attributes:
        cause: the setting that cut it (`input_length`, `snippet_length`, `decode_length`, …).
        tokens: tokens of the system that were cut.
        words: words that were cut; a word cut in two counts.
    """

    cause: str
    tokens: int
    words: int


@dataclass(frozen=True, slots=True)
class Truncation:
    """The ledger of one text: its length and what was cut from it.

    Attributes:
        tokens: of the whole text, in the system's tokens.
        words: of the whole text.
        cuts: one entry for each cause that cut something.
        documents_merged: documents beyond a system's `max_documents`. They share the last one's position and are
            not cut.
    """

    tokens: int
    words: int
    cuts: tuple[Cut, ...] = ()
    documents_merged: int = 0

    @property
    def tokens_seen(self) -> int:
        """Number of tokens that were not cut."""
        return self.tokens - sum(cut.tokens for cut in self.cuts)

    @property
    def words_seen(self) -> int:
        """Number of words that were not cut."""
        return self.words - sum(cut.words for cut in self.cuts)

    def unread(self) -> "Truncation":
        """Return the ledger of the same text if it has no answer: no model has read it."""
        return Truncation(self.tokens, self.words, (Cut("failed", self.tokens, self.words),))


def total_truncation(ledgers: Sequence[Truncation]) -> Truncation:
    """Add up ledgers; cuts are added up by cause."""
    tokens = words = merged = 0
    causes: dict[str, Cut] = {}
    for ledger in ledgers:
        tokens += ledger.tokens
        words += ledger.words
        merged += ledger.documents_merged
        for cut in ledger.cuts:
            so_far = causes.get(cut.cause, Cut(cut.cause, 0, 0))
            causes[cut.cause] = Cut(cut.cause, so_far.tokens + cut.tokens, so_far.words + cut.words)
    return Truncation(tokens, words, tuple(causes.values()), merged)


def describe_reading(ledger: Truncation | None) -> str:
    """Describe how much of a text was read and what cut the rest; None means that the system reads all of it."""
    if ledger is None:
        return "read all of the text"
    if not ledger.cuts:
        description = f"read all of the text, {format_count(ledger.words, 'word')}"
    else:
        cuts = ", ".join(
            f"{cut.cause} cut {format_count(cut.words, 'word')}" for cut in ledger.cuts
        )
        description = (
            f"read {100 * ledger.words_seen // max(1, ledger.words)} % of the text: {cuts}"
        )
    if merged := ledger.documents_merged:
        description += f"; {merged} documents beyond max_documents share the last one's place"
    return description
