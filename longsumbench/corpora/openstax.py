"""OpenStax: chapters of textbooks → the summaries of their modules, with several documents per chapter.

JSON lines at `dataset.path=`, one chapter per line. These fields are read:

    id, chapter, modules [{module_id, title, paragraphs [text], summary [paragraph]}]

Each module is a document; its source is the module's title. A paragraph that begins with "# " is a heading and names
the section below it. A heading without text is left out and counted. The reference joins the summaries of all modules.
`openstax_modules` reads the same files module by module.
"""

from itertools import chain

from longsumbench.core import Corpus, Document, Example, PartialExample, Row, Section, Sentences
from longsumbench.corpora.loading.fields import BadRow, id_in, objects_in, texts_in, words_in
from longsumbench.sentences import split_sentences, split_summary

MODULE_HEADING = "# "
BARE = "headings without text"  # its name in the record


def openstax_example(row: Row) -> PartialExample:
    """Turn one chapter into an Example."""
    modules = objects_in(row, "modules")
    pairs = [read_module(module, words_in(module, "title")) for module in modules]
    documents = tuple(document for document, _ in pairs if document.sections)
    if not documents:
        raise BadRow("the field 'modules' has no module with text")
    reference = tuple(chain.from_iterable(map(read_module_summary, modules)))
    example = Example(id_in(row, "id"), words_in(row, "chapter"), None, documents, (reference,))
    return PartialExample(example, {BARE: sum(bare for _, bare in pairs)})


def read_module(module: Row, source: str) -> tuple[Document, int]:
    """Return a module as a document, and the number of its headings without text.

    Raises:
        BadRow: the paragraphs are missing or not text.
    """
    headed: list[tuple[str | None, list[Sentences]]] = [(None, [])]
    for text in texts_in(module, "paragraphs"):
        if text.startswith(MODULE_HEADING):
            headed.append((" ".join(text.removeprefix(MODULE_HEADING).split()) or None, []))
        elif sentences := split_sentences(text):
            headed[-1][1].append(sentences)
    sections = tuple(Section(name, tuple(paragraphs)) for name, paragraphs in headed if paragraphs)
    return Document(source, sections), sum(not paragraphs for _, paragraphs in headed[1:])


def read_module_summary(module: Row) -> Sentences:
    """Return a module's summary: the sentences of all its paragraphs.

    Raises:
        BadRow: the summary is missing or not text.
    """
    return tuple(chain.from_iterable(map(split_summary, texts_in(module, "summary"))))


CORPUS = Corpus(
    name="openstax",
    title="OpenStax chapters → the summaries of their modules, one document per module: "
    "dataset.path=FOLDER with their JSON lines.",
    licence="CC BY-NC-SA 4.0, or CC BY 4.0, as each row states",
    homepage="https://openstax.org",
    multi_document=True,
    from_file_row=openstax_example,
)
