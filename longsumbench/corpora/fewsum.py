"""FewSum: eight reviews of a product or a business → three people's summaries (Brazinskas et al. 2020).

Paper: https://aclanthology.org/2020.emnlp-main.337. JSON lines at `dataset.path=` with the columns of the released
tables of summaries, and the domain (amazon or yelp). These columns are read:

    domain, group_id, rev1 … rev8, summ1 … summ3

Each review is a document ("review 3") and each summary a reference. The domain is the first part of the id ("yelp/…"),
so the scores of the two domains can be separated. Grades are ignored: they are not text, and they reveal the verdict.
`train` has 58 examples: enough to adapt a system, not to train one.
"""

from longsumbench.core import Corpus, Example, Row
from longsumbench.corpora.loading.fields import (
    id_in,
    references_in,
    text_document,
    text_in,
    words_in,
)

_REVIEWS, _SUMMARIES = 8, 3


def fewsum_example(row: Row) -> Example:
    """Turn one group of reviews into an Example."""
    documents = []
    for number in range(1, _REVIEWS + 1):
        review = words_in(row, f"rev{number}")
        documents.append(text_document(review, f"review {number}"))
    summaries = [text_in(row, f"summ{number}") for number in range(1, _SUMMARIES + 1)]
    identity = f"{words_in(row, 'domain')}/{id_in(row, 'group_id')}"
    return Example(identity, None, None, tuple(documents), references_in(summaries))


CORPUS = Corpus(
    name="fewsum",
    title="FewSum: eight reviews, one document each → a summary with three references: "
    "dataset.path=FOLDER with its JSON lines.",
    licence="MIT, as its authors say; the reviews: © Amazon and Yelp, and their users",
    homepage="https://github.com/abrazinskas/FewSum",
    published="2020-04",
    multi_document=True,
    from_file_row=fewsum_example,
)
