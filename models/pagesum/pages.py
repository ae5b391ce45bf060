"""What PageSum reads: a text split into pages by locality (PageSum, §3).

Choice: a page belongs to the document in which it begins. A sentence without tokens is on no page and is not counted.
The ledger reports the words that a tokenizer drops in this way as cut by "tokenizer".

The span of a page has the sentences that begin in what is read of it. `PageReader.units` is the door; the functions
below it are one for each locality, and `_cut_pages` is common to all.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TypeAlias

from longsumbench.core import Cut, Example, FitContext, Split, Truncation
from longsumbench.errors import UsageError
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.modeling.units import (
    EncodedSentence,
    Units,
    first_tokens,
    ids_and_words,
    join_sentences,
    prepend_query,
    tokens_and_words,
)
from longsumbench.models.pagesum.config import SPECIAL_TOKENS, PageSumConfig

_SECTION_SAMPLE = 1_000  # training examples searched for sections
# A sentence with the index of its document.
_Placed: TypeAlias = tuple[int, EncodedSentence]


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
        if self.config.fidelity == "official":
            dot = list(self.encode(["."])[0].ids)
            pages += [dot] * (self.config.most_pages - len(pages))
        # Pages without text of the source.
        num_added = len(pages) - len(units.ids)
        last_document = units.documents[-1] if units.documents else 0
        start, end = self.tokenizer.bos_token_id, self.tokenizer.eos_token_id
        return replace(
            units,
            ids=tuple([start, *page, end] for page in pages),
            documents=(*units.documents, *[last_document] * num_added),
            words=(*units.words, *[0] * num_added),
            spans=(*units.spans, *[(0, 0)] * num_added),
        )

    def pages(self, example: Example) -> Units:
        """Return the text of the pages (PageSum §3), each after the query, if there is one."""
        query = self.query(example, self.config.text_length)
        return prepend_query(self._split_page_text(example, len(query)), query)

    def _split_page_text(self, example: Example, reserved: int) -> Units:
        config, text_length = self.config, self.config.text_length - reserved
        if config.locality == "discourse":
            sections = []
            for index, document in enumerate(example.documents):
                for section in document.sections:
                    name, *text = self.encode([section.name or "", *section.sentences()])
                    sections.append(PageText(index, text, name.ids))
            return discourse_pages(sections, config.max_pages, text_length)
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
class PageText:
    """A page before it is cut."""

    document: int  # the index of the document in which it begins
    text: Sequence[EncodedSentence]  # its sentences
    # Tokens read before the text; they are not the source's, and the ledger does not count them.
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
    pages = [_join_page(list(islice(remaining, count))) for count in counts if count]
    return _cut_pages(pages, chain.from_iterable(encoded), page_size, "num_pages")


def discourse_pages(sections: Sequence[PageText], max_pages: int, page_size: int) -> Units:
    """Make each section a page: its name, then its text (discourse locality: PageSum, §5.3).

    A section whose text has no tokens makes no page. Sections after the last page are left out (cause "max_pages"). A
    name takes tokens of its page, and is cut to `page_size`. Words and ledger count only the text, also for the tokens
    over `page_size` (cause "page_size").
    """
    pages = []
    for section in sections:
        sentences = [sentence for sentence in section.text if sentence.ids]
        if sentences:
            pages.append(PageText(section.document, sentences, section.name[:page_size]))
    texts = chain.from_iterable(section.text for section in sections)
    return _cut_pages(pages[:max_pages], texts, page_size, "max_pages")


def document_pages(
    encoded: Sequence[Sequence[EncodedSentence]], max_pages: int, page_size: int
) -> Units:
    """Make each document with tokens a page (document locality: PageSum, §5.4).

    Limits and causes are those of `discourse_pages`.
    """
    sections = [PageText(index, document) for index, document in enumerate(encoded)]
    return discourse_pages(sections, max_pages, page_size)


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
    most_pages = max(1, max_input_tokens // page_size)
    filled = islice(_fill_pages(_with_document(encoded), room), most_pages)
    pages = [_join_page(sentences) for sentences in filled]
    return _cut_pages(pages, chain.from_iterable(encoded), room, "max_input_tokens")


def _with_document(
    encoded: Sequence[Sequence[EncodedSentence]],
) -> list[_Placed]:
    """Return the sentences with tokens, in reading order, each with the index of its document."""
    sentences = []
    for index, document in enumerate(encoded):
        sentences += [(index, sentence) for sentence in document if sentence.ids]
    return sentences


def _fill_pages(sentences: Sequence[_Placed], room: int) -> Iterator[list[_Placed]]:
    """Yield the sentences of each page: `room` tokens, fewer on the last page."""
    page: list[_Placed] = []
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


def _join_page(sentences: Sequence[_Placed]) -> PageText:
    return PageText(sentences[0][0], [sentence for _, sentence in sentences])


def _cut_pages(
    pages: Sequence[PageText], texts: Iterable[EncodedSentence], page_size: int, beyond: str
) -> Units:
    """Cut every page at `page_size` tokens and make the ledger; text on no page is cut for the cause `beyond`."""
    # A text loses tokens in this order: those that no page has, then those that a page has no room for.
    every = list(texts)
    heads = [first_tokens(page.text, page_size - len(page.name)) for page in pages]
    num_tokens, num_words = tokens_and_words(every)
    encoded_words = sum(sentence.words for sentence in every if sentence.ids)
    paged = tokens_and_words(chain.from_iterable(page.text for page in pages))
    read = tokens_and_words(chain.from_iterable(heads))
    cuts = (
        Cut("page_size", paged[0] - read[0], paged[1] - read[1]),
        Cut(beyond, num_tokens - paged[0], encoded_words - paged[1]),
        Cut("tokenizer", 0, num_words - encoded_words),
    )
    ids, words = ids_and_words(join_sentences(head) for head in heads)
    return Units(
        ids=tuple([*page.name, *head] for page, head in zip(pages, ids, strict=True)),
        documents=tuple(page.document for page in pages),
        words=words,
        truncation=Truncation(
            num_tokens, num_words, tuple(cut for cut in cuts if cut.tokens or cut.words)
        ),
        spans=tuple(_spans(pages, ids, every)),
    )


def _spans(
    pages: Sequence[PageText], heads: Sequence[Sequence[int]], every: Sequence[EncodedSentence]
) -> Iterator[tuple[int, int]]:
    """Yield the sentences of each page, from the places of its tokens: pages follow each other in the source."""
    # Places of tokens, in the whole source.
    starts = [0]
    for sentence in every:
        starts.append(starts[-1] + len(sentence.ids))
    begin = 0
    for page, head in zip(pages, heads, strict=True):
        yield bisect_left(starts, begin), bisect_left(starts, begin + len(head))
        begin += tokens_and_words(page.text)[0]


def _has_sections(split: Split) -> bool:
    """Return True if one of the first examples has a document with several sections or a named one."""
    for example in islice(split, _SECTION_SAMPLE):
        for document in example.documents:
            if len(document.sections) > 1 or any(section.name for section in document.sections):
                return True
    return False
