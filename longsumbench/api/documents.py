"""One structure for every text: title, query, documents → sections → paragraphs → sentences, references.

Frozen, so that a text read once is the same text for every system and every metric.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from longsumbench.formatting import format_count

Sentences = tuple[str, ...]  # a paragraph, or a reference


@dataclass(frozen=True, slots=True)
class Section:
    """A named stretch of a document; text without headings is one section without a name."""

    name: str | None
    paragraphs: tuple[Sentences, ...]

    def sentences(self) -> Iterator[str]:
        """Yield the sentences in reading order; the name is not one of them."""
        for paragraph in self.paragraphs:
            yield from paragraph


@dataclass(frozen=True, slots=True)
class Document:
    """One of the texts to be summarized together; `source` says where it came from, if known."""

    source: str | None
    sections: tuple[Section, ...]

    def texts(self, unit: str) -> Iterator[Sentences]:
        """Yield the paragraphs, the sections without their names, or the sentences, in reading order; none is empty.

        Args:
            unit: "paragraph", "section" or "sentence".
        """
        if unit == "section":
            every: Iterator[Sentences] = (tuple(section.sentences()) for section in self.sections)
        elif unit == "sentence":
            every = ((sentence,) for sentence in self.sentences())
        else:
            every = (paragraph for section in self.sections for paragraph in section.paragraphs)
        return (sentences for sentences in every if any(map(str.strip, sentences)))

    def sentences(self) -> Iterator[str]:
        """Yield the sentences in reading order."""
        for section in self.sections:
            yield from section.sentences()


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement that the source is known to make and the summary ought to, so that it can be checked word by word.

    Attributes:
        kind: how the source makes it ("single", "relayed", "silent repeated": see the dataset).
        subject: the word by which the summary is searched ("bridge").
        value: what must be said of it ("adler").
        values: everything that could be said of any subject; a guess is right once in so many times.
        position: where in the source its first sentence stands: 0 at the beginning, below 1.
        distance: how many sections lie between the places it is put together from; 0 for one place.
    """

    kind: str
    subject: str
    value: str
    values: tuple[str, ...]
    position: float
    distance: int


@dataclass(frozen=True, slots=True)
class Example:
    """What is to be summarized, and how people summarized it.

    Attributes:
        id: unique within its split.
        title: the headline, where the dataset has one that a system may see.
        query: the question the summary must answer, for query-based datasets.
        documents: at least one, in the order of the data.
        references: the summaries people wrote, each a tuple of sentences, never cut.
        facts: what is known to be said in the source; of generated texts only. No system looks at them.
    """

    id: str
    title: str | None
    query: str | None
    documents: tuple[Document, ...]
    references: tuple[Sentences, ...]
    facts: tuple[Fact, ...] = ()

    @property
    def topic(self) -> str | None:
        """What the summary shall be about, as far as that is said: the title, the query, or both."""
        return " ".join(filter(None, (self.title, self.query))) or None

    def texts(self, unit: str) -> Iterator[Sentences]:
        """Yield every paragraph, section or sentence in reading order, across documents; none is empty."""
        for document in self.documents:
            yield from document.texts(unit)

    def sentences(self) -> Iterator[str]:
        """Yield every source sentence in reading order, across sections and documents."""
        for document in self.documents:
            yield from document.sentences()

    def source_words(self) -> int:
        """Count the source's words: whitespace-separated, titles and section names left out."""
        return count_words(self.sentences())

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and dicts that JSON can hold."""
        documents = [  # by hand: dataclasses.asdict copies every sentence, and was a third of reading a corpus
            {
                "source": document.source,
                "sections": [
                    {"name": section.name, "paragraphs": list(section.paragraphs)} for section in document.sections
                ],
            }
            for document in self.documents
        ]
        plain = {
            "id": self.id,
            "title": self.title,
            "query": self.query,
            "documents": documents,
            "references": list(self.references),
        }
        return {**plain, "facts": [asdict(fact) for fact in self.facts]} if self.facts else plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Example":
        """Rebuild what `to_dict` wrote."""
        documents = tuple(
            Document(
                document["source"],
                tuple(
                    Section(section["name"], tuple(tuple(paragraph) for paragraph in section["paragraphs"]))
                    for section in document["sections"]
                ),
            )
            for document in data["documents"]
        )
        references = tuple(tuple(reference) for reference in data["references"])
        facts = tuple(Fact(**{**fact, "values": tuple(fact["values"])}) for fact in data.get("facts", ()))
        return cls(data["id"], data["title"], data["query"], documents, references, facts)


@dataclass(frozen=True, slots=True)
class Cut:
    """Text that was left out, for one cause.

    Attributes:
        cause: the setting that cut it (`input_length`, `snippet_length`, `decode_length`, …).
        tokens: how much, in the system's own tokens.
        words: how much, in whitespace-separated words (a word cut in two counts as left out).
    """

    cause: str
    tokens: int
    words: int


@dataclass(frozen=True, slots=True)
class Truncation:
    """The ledger of one text: how long it was, and what was cut from it.

    Attributes:
        tokens: the whole text, in the system's own tokens.
        words: the whole text, in words.
        cuts: one entry a cause, only for causes that cut something.
        documents_merged: documents beyond a system's `max_documents`, which share the last one's place; nothing of
            them is cut for it.
    """

    tokens: int
    words: int
    cuts: tuple[Cut, ...] = ()
    documents_merged: int = 0

    @property
    def tokens_seen(self) -> int:
        """Tokens that were not cut."""
        return self.tokens - sum(cut.tokens for cut in self.cuts)

    @property
    def words_seen(self) -> int:
        """Words that were not cut."""
        return self.words - sum(cut.words for cut in self.cuts)


def total_truncation(ledgers: Sequence[Truncation]) -> Truncation:
    """Add up ledgers, cause by cause."""
    causes: dict[str, Cut] = {}
    for cut in (cut for ledger in ledgers for cut in ledger.cuts):
        so_far = causes.get(cut.cause, Cut(cut.cause, 0, 0))
        causes[cut.cause] = Cut(cut.cause, so_far.tokens + cut.tokens, so_far.words + cut.words)
    tokens, words = sum(ledger.tokens for ledger in ledgers), sum(ledger.words for ledger in ledgers)
    return Truncation(tokens, words, tuple(causes.values()), sum(ledger.documents_merged for ledger in ledgers))


def describe_reading(ledger: Truncation | None) -> str:
    """Say in words how much of a text was read, and what cut the rest; None: of a system that reads all of it."""
    if ledger is None:
        return "read all of the text"
    if not ledger.cuts:
        read = f"read all of the text, {format_count(ledger.words, 'word')}"
    else:
        cuts = ", ".join(f"{cut.cause} cut {format_count(cut.words, 'word')}" for cut in ledger.cuts)
        read = f"read {100 * ledger.words_seen // max(1, ledger.words)} % of the text: {cuts}"
    if merged := ledger.documents_merged:
        read += f"; {merged} documents beyond max_documents share the last one's place"
    return read


def count_words(sentences: Sequence[str] | Iterator[str]) -> int:
    """Count whitespace-separated words."""
    return sum(len(sentence.split()) for sentence in sentences)
