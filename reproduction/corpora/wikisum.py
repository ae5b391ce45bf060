"""WikiSum: paragraphs of the web pages cited by a Wikipedia article, or found for it → its lead (Liu et al. 2018).

Paper: https://openreview.net/forum?id=Hyg0vbWC-. The pages are those that the article cites, and those that a search
for its title finds. The Hierarchical Transformer's version (Liu and Lapata 2019, https://aclanthology.org/P19-1500) has
525 paragraphs per article. Two layouts, both at `dataset.path=`:

* JSON lines, one article of raw texts per line:

      id, title?, paragraphs [{text, source?} | text], summary (text) | lead [paragraph]

* the files of Liu and Lapata's release, which hold piece ids (`wikisum_ranked.py`).

A document is an unbroken stretch of one page, so neighbouring paragraphs of a document are neighbours in the page. It
ends where the source changes or a clone is left out. A paragraph without a source is a separate document, because its
neighbours are unknown. Clones of the summary (`clones.py`) are left out and counted. Repeated paragraphs stay,
because two pages can share one.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from longsumbench.core import Corpus, Document, Example, PartialExample, Row, Sentences
from longsumbench.corpora.loading import fields
from longsumbench.sentences import split_sentences
from longsumbench_reproduction.corpora.clones import find_clones
from longsumbench_reproduction.corpora.wikisum_ranked import ranked_source

_CLONES = "clone paragraphs"  # their name in the record

_Paragraph = tuple[str | None, Sentences]  # source, text


def wikisum_example(row: Row) -> PartialExample:
    """Turn one article into an Example without clones of its summary."""
    summary = _lead_summary(row)
    paragraphs = [paragraph for paragraph in _tagged_paragraphs(row) if paragraph[1]]
    if not paragraphs:
        raise fields.BadRow("the field 'paragraphs' has no paragraph with text")
    clones = find_clones(summary, [text for _, text in paragraphs])
    documents = _source_documents(paragraphs, clones)
    if not documents:
        raise fields.BadRow(
            "all paragraphs are clones of the summary", "each holds more than 80 % of its bigrams"
        )
    identity, title = fields.id_in(row, "id"), fields.optional_in(row, "title")
    example = Example(identity, title, None, documents, (summary,))
    return PartialExample(example, {_CLONES: sum(clones)})


def _lead_summary(row: Row) -> Sentences:
    field = fields.given_field(row, "summary", "lead")
    texts = fields.texts_in(row, field) if field == "lead" else [fields.text_in(row, field)]
    sentences = tuple(chain.from_iterable(map(split_sentences, texts)))
    if not sentences:
        raise fields.BadRow(f"the field '{field}' is empty")
    return sentences


def _tagged_paragraphs(row: Row) -> Iterator[_Paragraph]:
    listed = fields.list_in(row, "paragraphs")
    described = [{"text": item} if isinstance(item, str) else item for item in listed]
    for item in fields.objects_in({"paragraphs": described}, "paragraphs"):
        source = fields.optional_in(item, "source")
        yield source, split_sentences(fields.text_in(item, "text"))


def _source_documents(
    paragraphs: Sequence[_Paragraph], clones: Sequence[bool]
) -> tuple[Document, ...]:
    """Return the unbroken stretches of each source, without the clones."""
    stretches: list[tuple[str | None, list[Sentences]]] = []
    previous_source: str | None = None
    for (source, text), clone in zip(paragraphs, clones, strict=True):
        if not clone and source is not None and source == previous_source:
            stretches[-1][1].append(text)
        elif not clone:
            stretches.append((source, [text]))
        previous_source = None if clone else source
    return tuple(fields.plain_document(tuple(texts), source) for source, texts in stretches)


CORPUS = Corpus(
    name="wikisum",
    title="WikiSum: paragraphs of web pages → an article's lead: dataset.path=FOLDER of JSON lines, "
    "or of ranked .pt files with dataset.tokenizer=FILE.",
    licence="the leads: CC BY-SA, of Wikipedia; the pages: © their publishers; none stated by the release's authors",
    homepage="https://github.com/nlpyang/hiersumm",
    published="2018-01",
    multi_document=True,
    from_file_row=wikisum_example,
    tokenized=ranked_source,
)
