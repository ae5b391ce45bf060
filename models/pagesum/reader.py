"""What PageSum reads: the pages of an example."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from longsumbench.core import Example, FitContext, Split
from longsumbench.errors import UsageError
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.modeling.units import EncodedSentence, Units, prepend_query
from longsumbench.models.pagesum.config import PageSumConfig
from longsumbench.models.pagesum.pages import discourse_pages, document_pages, spatial_pages, token_pages

_SECTION_SAMPLE = 1_000  # training examples searched for sections


class PageReader(UnitReader):
    """Reads pages of one locality (PageSum §3)."""

    config: PageSumConfig

    def prepare(self, context: FitContext) -> None:
        """Check that the texts have the pages of the locality.

        Raises:
            UsageError: the texts have no sections, or a single document each.
        """
        locality, train = self.config.locality, context.train
        if train is not None and locality == "document" and not train.multi_document:
            raise UsageError("model.locality=document, but each text is a single document: choose spatial")
        if train is not None and locality == "discourse" and not _has_sections(train):
            raise UsageError("model.locality=discourse, but the texts have no sections: choose spatial")

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
        documents, words, spans = units.documents or (0,), units.words or (0,), units.spans or ((0, 0),)
        if self.config.fidelity == "official" and (missing := self.config.most_pages - len(pages)) > 0:
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
            return discourse_pages(named_texts, [index for index, _ in sections], config.max_pages, text_length)
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


def _has_sections(split: Split) -> bool:
    """Return True if one of the first examples has a document with several sections or a named one."""
    documents = (document for example in islice(split, _SECTION_SAMPLE) for document in example.documents)
    return any(len(doc.sections) > 1 or any(section.name for section in doc.sections) for doc in documents)
