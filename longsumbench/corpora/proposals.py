"""Technical proposals (of Python, Ethereum, Rust, Kubernetes, Swift …) and their own abstracts.

Read at `dataset.path=`, in the layout of the PubMed release, with titles. `source` is a proposal's address (the field
`url`), as several of the licences ask for. Abstracts, code and tables are not in the texts.
"""

from dataclasses import replace

from longsumbench.corpora.corpus import Corpus, Row, text_in
from longsumbench.corpora.release import from_release_row
from longsumbench.documents import Example


def from_row(row: Row) -> Example:
    """Turn one proposal into an Example.

    Raises:
        BadRow: a field is missing or has the wrong type.
    """
    example, address = from_release_row(row), text_in(row, "url", required=False) or None
    return replace(example, documents=tuple(replace(document, source=address) for document in example.documents))


CORPUS = Corpus(
    name="proposals",
    title="Technical proposals → their abstracts, with section names: dataset.path=FOLDER with files in the layout "
    "of the PubMed release.",
    licence="CC0, Apache-2.0, MIT, BSD, CC BY and the like, as each row states",
    homepage="https://peps.python.org",
    version=1,
    from_file_row=from_row,
)
