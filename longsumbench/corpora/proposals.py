"""Technical proposals (of Python, Ethereum, Rust, Kubernetes, Swift …) and their abstracts.

Read from `dataset.path=`, in the layout of the PubMed release, with titles. `source` is the proposal's address (the
field `url`), because several licences require it. The texts have no abstracts, code or tables.
"""

from dataclasses import replace

from longsumbench.core import Corpus, Example, Row
from longsumbench.corpora.formats.scientific_papers import read_release_paper
from longsumbench.corpora.loading.fields import any_text_in


def _proposal_example(row: Row) -> Example:
    example, address = read_release_paper(row), any_text_in(row, "url") or None
    (document,) = example.documents
    return replace(example, documents=(replace(document, source=address),))


CORPUS = Corpus(
    name="proposals",
    title="Technical proposals → their abstracts, with section names: dataset.path=FOLDER with files in the layout "
    "of the PubMed release.",
    licence="CC0, Apache-2.0, MIT, BSD, CC BY and the like, as each row states",
    homepage="https://peps.python.org",
    from_file_row=_proposal_example,
)
