"""Peer reviews of NeurIPS papers, and the area chair's meta-review that sums them up.

JSON lines at `dataset.path=`, one paper per line. These fields are read:

    id, title?, reviews [{comments}], meta_review

Each review is a document. The fields of the review form in it ("SUMMARY:" on a separate line, …) are its sections. The
paper's abstract is not a document: the meta-review sums up the reviews, and most reviews begin with a summary of the
paper. Grades, confidences and the decision are ignored: they are not text, and they reveal the verdict.
"""

import re

from longsumbench.core import Corpus, Document, Example, Row, Section
from longsumbench.corpora.loading.fields import (
    BadRow,
    any_text_in,
    id_in,
    objects_in,
    text_in,
    text_section,
)
from longsumbench.sentences import split_sentences

# The form's fields, 2023 to 2025. Other capitalized words before a colon are the reviewer's and stay in the text.
FIELDS = (
    "SUMMARY",
    "STRENGTHS",
    "WEAKNESSES",
    "STRENGTHS AND WEAKNESSES",
    "QUESTIONS",
    "LIMITATIONS",
)
_FIELD_HEADING = re.compile(rf"^({'|'.join(FIELDS)}):[^\S\n]*$", re.MULTILINE)


def peer_reviews_example(row: Row) -> Example:
    """Turn one paper's reviews into an Example. Reviews without text are left out; the others keep their numbers."""
    documents = []
    for number, review in enumerate(objects_in(row, "reviews"), start=1):
        if sections := _review_sections(text_in(review, "comments")):
            documents.append(Document(f"review {number}", sections))
    if not documents:
        raise BadRow("the field 'reviews' has no review with text")
    title = any_text_in(row, "title") or None
    reference = split_sentences(text_in(row, "meta_review"))
    return Example(id_in(row, "id"), title, None, tuple(documents), (reference,))


def _review_sections(comments: str) -> tuple[Section, ...]:
    """Split a review at the form's fields, without the empty ones."""
    preamble, *fields = _FIELD_HEADING.split(comments)
    sections = [text_section(preamble)]
    for name, text in zip(fields[::2], fields[1::2], strict=True):
        sections.append(text_section(text, name))
    return tuple(section for section in sections if section.paragraphs)


CORPUS = Corpus(
    name="peer_reviews",
    title="NeurIPS peer reviews → the area chair's meta-review, one document per review: "
    "dataset.path=FOLDER with its JSON lines.",
    licence="none stated by its collectors; the reviews were published on OpenReview",
    homepage="https://github.com/djroytburg/10718peerread",
    multi_document=True,
    from_file_row=peer_reviews_example,
)
