"""Wikipedia articles: the sections of an article → its lead, the paragraphs above the first heading.

JSON lines at `dataset.path=`, one article per line: id, title, lead [paragraph], sections [{title, paragraphs}].

Like WikiSum (Liu et al. 2018), the task is to write the beginning of an article. Here the input is the article's body,
not the pages that it cites. It is one document with named sections, because the article is one text. `source` is the
article's address, as the licence requires.
"""

from itertools import chain

from longsumbench.core import Corpus, Document, Example, Row
from longsumbench.corpora.loading.fields import (
    BadRow,
    id_in,
    listed_paragraphs,
    objects_in,
    section_in,
    text_in,
)

_ADDRESS = "https://en.wikipedia.org/?curid={}"


def wiki_sections_example(row: Row) -> Example:
    """Turn one article into an Example. All sentences of the lead form one reference."""
    identity = id_in(row, "id")
    lead = tuple(chain.from_iterable(listed_paragraphs(row, "lead")))
    if not lead:
        raise BadRow("the field 'lead' is empty")
    sections = (section_in(item, "title") for item in objects_in(row, "sections"))
    body = Document(
        _ADDRESS.format(identity), tuple(section for section in sections if section.paragraphs)
    )
    return Example(identity, text_in(row, "title") or None, None, (body,), (lead,))


CORPUS = Corpus(
    name="wiki_sections",
    title="Wikipedia articles → their leads, with section names: dataset.path=FOLDER with its JSON lines.",
    licence="CC BY-SA 3.0; each document names its article",
    homepage="https://github.com/Vibhas-hs-edu/WikiTasks",
    from_file_row=wiki_sections_example,
)
