"""What PageSum reads: a text split into pages by locality (PageSum, §3).

Choice: a page belongs to the document in which it begins. A sentence without tokens is on no page and is not counted.
The ledger reports the words that a tokenizer drops in this way as cut by "tokenizer".

The span of a page has the sentences that begin in what is read of it.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice

from longsumbench.core import Cut, Example, FitContext, Split, Truncation
from longsumbench.errors import UsageError
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.modeling.units import (
    EncodedSentence,
    Units,
    first_tokens,
    prepend_query,
    tokens_and_words,
)
from longsumbench.models.pagesum.config import SPECIAL_TOKENS, PageSumConfig

_SECTION_SAMPLE = 1_000  # training examples searched for sections


class PageReader(UnitReader):
    """Reads pages of one locality (PageSum §3)."""

    config: PageSumConfig

    def prepare(self, context: FitContext) -> None:
        """Check that the texts have the pages of the locality."""
        locality, train = self.config.locality, context.train
        if train is not None and locality == "document" and not train.multi_document:
            raise UsageError(
                "model.locality=document, but each text is a single document: choose spatial"
            )
        if train is not None and locality == "discourse" and not _has_sections(train):
            raise UsageError(
                "model.locality=discourse, but the texts have no sections: choose spatial"
            )

    def encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        """Tokenize consecutive sentences; special tokens in them ("<mask>", "</s>") are tokenized as text.

        Choice: the network of facebook/bart-large-cnn has no embedding for the `<mask>` of its tokenizer.
        """
        self.tokenizer.backend_tokenizer.encode_special_tokens = True
        return super().encode(sentences)

    def units(self, example: Example) -> Units:
        """Return the pages, each between its two special tokens; a text without pages is one empty page."""
        units = self.pages(example)
        pages = [*units.ids] or [[]]
        documents, words, spans = (
            units.documents or (0,),
            units.words or (0,),
            units.spans or ((0, 0),),
        )
        if (
            self.config.fidelity == "official"
            and (missing := self.config.most_pages - len(pages)) > 0
        ):
            pages += [list(self.encode(["."])[0].ids)] * missing
            documents, words = (*documents, *[documents[-1]] * missing), (*words, *[0] * missing)
            spans = (*spans, *[(0, 0)] * missing)
        start, end = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
        ids = tuple([start, *page, end] for page in pages)
        return replace(units, ids=ids, documents=documents, words=words, spans=spans)

    def pages(self, example: Example) -> Units:
        """Return the text of the pages (PageSum §3), each after the query, if there is one."""
        query = self.query(example, self.config.text_length)
        return prepend_query(self._text_of_pages(example, len(query)), query)

    def _text_of_pages(self, example: Example, reserved: int) -> Units:
        config, text_length = self.config, self.config.text_length - reserved
        if config.locality == "discourse":
            sections = [
                (index, self.encode([section.name or "", *section.sentences()]))
                for index, document in enumerate(example.documents)
                for section in document.sections
            ]
            named_texts = [(encoded[:1], encoded[1:]) for _, encoded in sections]
            return discourse_pages(
                named_texts, [index for index, _ in sections], config.max_pages, text_length
            )
        encoded = [self.encode(list(document.sentences())) for document in example.documents]
        if config.locality == "document":
            return document_pages(encoded, config.max_pages, text_length)
        assert config.page_size is not None
        if config.split == "tokens":
            assert config.max_input_tokens is not None
            return token_pages(encoded, config.page_size, config.max_input_tokens, reserved)
        return spatial_pages(encoded, config.most_pages, text_length, config.fidelity == "official")

    def target(self, ids: Sequence[int]) -> list[int]:
        """Return a target: `<s> … </s>`, as in generation; with fidelity=official `… </s>`, as the released code."""
        start = [] if self.config.fidelity == "official" else [self.tokenizer.bos_token_id]
        return [*start, *ids, self.tokenizer.eos_token_id]


@dataclass(frozen=True, slots=True)
class _Page:
    """A page before truncation."""

    document: int  # the index of the document in which it begins
    text: Sequence[EncodedSentence]  # its sentences, each with tokens
    # tokens read before the text; they are not the source's, and the ledger does not count them
    name: Sequence[int] = ()


def spatial_pages(
    encoded: Sequence[Sequence[EncodedSentence]],
    num_pages: int,
    page_size: int,
    official: bool = False,
) -> Units:
    """Split the sentences of all documents, in order, into consecutive pages (spatial locality: PageSum, §5.2).

    The sentence counts of pages differ by at most one; the first pages take the extra sentences. With fewer sentences
    than pages, each sentence has a page, and the other pages are absent. A page is cut at `page_size` tokens (cause
    "page_size"). `official`: as the released code, ⌊sentences / num_pages⌋ sentences per page, the whole remainder in
    the last. With fewer sentences than pages, the last page has all of them, and the others are empty.
    """
    sentences = _with_document(encoded)
    share, extra = divmod(len(sentences), num_pages)
    counts = [share + 1] * extra + [share] * (num_pages - extra)
    if official:
        counts = [share] * (num_pages - 1) + [share + extra]
    remaining = iter(sentences)
    pages = [_page(list(islice(remaining, count))) for count in counts if count]
    return _cut_tokens(pages, chain.from_iterable(encoded), page_size, "num_pages")


def discourse_pages(
    sections: Sequence[tuple[Sequence[EncodedSentence], Sequence[EncodedSentence]]],
    documents: Sequence[int],
    max_pages: int,
    page_size: int,
) -> Units:
    """Make each section a page: its name, then its text (discourse locality: PageSum, §5.3).

    A section whose text has no tokens makes no page. Sections after the last page are left out (cause "max_pages"). A
    name takes tokens of its page, and is cut to `page_size`. Words and ledger count only the text, also for the tokens
    over `page_size` (cause "page_size"). `sections` has the name and the text of each section; a name may be empty.
    """
    every = (
        _Page(document, seen, list(islice(_ids(name), page_size)))
        for document, (name, text) in zip(documents, sections, strict=True)
        if (seen := [sentence for sentence in text if sentence.ids])
    )
    texts = chain.from_iterable(text for _, text in sections)
    return _cut_tokens(list(islice(every, max_pages)), texts, page_size, "max_pages")


def document_pages(
    encoded: Sequence[Sequence[EncodedSentence]], max_pages: int, page_size: int
) -> Units:
    """Make each document with tokens a page (document locality: PageSum, §5.4).

    Limits and causes are those of `discourse_pages`.
    """
    return discourse_pages(
        [((), document) for document in encoded], range(len(encoded)), max_pages, page_size
    )


def token_pages(
    encoded: Sequence[Sequence[EncodedSentence]],
    page_size: int,
    max_input_tokens: int,
    reserved: int = 0,
) -> Units:
    """Fill pages with consecutive tokens, across sentences and documents (PageSum, §5.5, Table 6).

    There are at most max(1, ⌊max_input_tokens / page_size⌋) pages, each with at most `page_size` − 2 tokens of text.
    The text after the last page is left out (cause "max_input_tokens"). A word split between pages is counted on the
    page where it ends. `page_size` counts the two special tokens; `reserved` tokens of every page are for something
    else.
    """
    room = page_size - SPECIAL_TOKENS - reserved
    filled = islice(
        _fill_pages(_with_document(encoded), room), max(1, max_input_tokens // page_size)
    )
    return _cut_tokens(
        list(map(_page, filled)), chain.from_iterable(encoded), room, "max_input_tokens"
    )


def _with_document(
    encoded: Sequence[Sequence[EncodedSentence]],
) -> list[tuple[int, EncodedSentence]]:
    """Return the sentences with tokens, in reading order, each with the index of its document."""
    return [
        (index, sentence)
        for index, document in enumerate(encoded)
        for sentence in document
        if sentence.ids
    ]


def _fill_pages(
    sentences: Sequence[tuple[int, EncodedSentence]], room: int
) -> Iterator[list[tuple[int, EncodedSentence]]]:
    """Yield the sentences of each page: `room` tokens, fewer on the last page."""
    page: list[tuple[int, EncodedSentence]] = []
    space = room
    for document, sentence in sentences:
        start = 0
        while start < len(sentence.ids):
            end = min(len(sentence.ids), start + space)
            page.append((document, sentence.between(start, end)))
            space -= end - start
            start = end
            if not space:
                yield page
                page, space = [], room
    if page:
        yield page


def _page(sentences: Sequence[tuple[int, EncodedSentence]]) -> _Page:
    return _Page(sentences[0][0], [sentence for _, sentence in sentences])


def _cut_tokens(
    pages: Sequence[_Page], texts: Iterable[EncodedSentence], page_size: int, beyond: str
) -> Units:
    """Cut every page at `page_size` tokens and make the ledger; text on no page is cut for the cause `beyond`."""
    every = list(texts)
    heads = [first_tokens(page.text, page_size - len(page.name)) for page in pages]
    counts = tokens_and_words(every)
    encoded = tokens_and_words(sentence for sentence in every if sentence.ids)
    paged = tokens_and_words(sentence for page in pages for sentence in page.text)
    read_counts = tokens_and_words(sentence for head in heads for sentence in head)
    cuts = (
        Cut("page_size", paged[0] - read_counts[0], paged[1] - read_counts[1]),
        Cut(beyond, encoded[0] - paged[0], encoded[1] - paged[1]),
        Cut("tokenizer", 0, counts[1] - encoded[1]),
    )
    return Units(
        ids=tuple([*page.name, *_ids(head)] for page, head in zip(pages, heads, strict=True)),
        documents=tuple(page.document for page in pages),
        words=tuple(tokens_and_words(head)[1] for head in heads),
        truncation=Truncation(*counts, tuple(cut for cut in cuts if cut.tokens or cut.words)),
        spans=tuple(_spans(pages, heads, every)),
    )


def _spans(
    pages: Sequence[_Page],
    heads: Sequence[Sequence[EncodedSentence]],
    every: Sequence[EncodedSentence],
) -> Iterator[tuple[int, int]]:
    """Yield the sentences of each page, from the places of its tokens: pages follow each other in the source."""
    starts = list(accumulate((len(sentence.ids) for sentence in every), initial=0))
    begin = 0
    for page, head in zip(pages, heads, strict=True):
        end = begin + tokens_and_words(head)[0]
        yield bisect_left(starts, begin), bisect_left(starts, end)
        begin += tokens_and_words(page.text)[0]


def _ids(sentences: Iterable[EncodedSentence]) -> Iterator[int]:
    return chain.from_iterable(sentence.ids for sentence in sentences)


def _has_sections(split: Split) -> bool:
    """Return True if one of the first examples has a document with several sections or a named one."""
    documents = (
        document for example in islice(split, _SECTION_SAMPLE) for document in example.documents
    )
    return any(
        len(doc.sections) > 1 or any(section.name for section in doc.sections) for doc in documents
    )
