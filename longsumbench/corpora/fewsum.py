"""FewSum: eight reviews of a product or a business → three people's summaries (Brazinskas et al. 2020).

Paper: https://aclanthology.org/2020.emnlp-main.337. JSON lines at `dataset.path=` with the columns of the released
tables of summaries, and the domain (amazon, yelp), of which these are read:

    domain, group_id, rev1 … rev8, summ1 … summ3

A review is a document ("review 3"), a summary a reference; the domain stands in front of the id ("yelp/…"), so that the
scores of the two can be told apart. The grades are not read: they are no text, and tell the verdict. The files hold the
texts that people summarized, 58 of them in `train`: enough to adapt a system, not to train one.
"""

from longsumbench.api.corpus import Corpus, Row
from longsumbench.api.documents import Example
from longsumbench.corpora.reading.fields import id_in, paragraphs_in, plain_document, references_in, text_in, words_in

_REVIEWS, _SUMMARIES = 8, 3


def fewsum_example(row: Row) -> Example:
    """Turn one group of reviews into an Example.

    Raises:
        BadRow: a field is missing or has the wrong type, or a review is empty.
    """
    documents = tuple(
        plain_document(paragraphs_in(words_in(row, f"rev{number}")), f"review {number}")
        for number in range(1, _REVIEWS + 1)
    )
    references = references_in(text_in(row, f"summ{number}") or "" for number in range(1, _SUMMARIES + 1))
    return Example(f"{words_in(row, 'domain')}/{id_in(row, 'group_id')}", None, None, documents, references)


CORPUS = Corpus(
    name="fewsum",
    title="FewSum: eight reviews, a document each → a summary, three references each: "
    "dataset.path=FOLDER with its JSON lines.",
    licence="MIT, as its authors say; the reviews: © Amazon and Yelp, and their users",
    homepage="https://github.com/abrazinskas/FewSum",
    version=1,
    multi_document=True,
    from_file_row=fewsum_example,
)
