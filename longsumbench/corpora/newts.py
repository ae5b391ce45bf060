"""NEWTS: CNN/DailyMail stories, each with two summaries, on one topic each (Bahrainian et al. 2022).

Paper: https://aclanthology.org/2022.findings-acl.42. JSON lines at `dataset.path=` with columns of the released CSV.
These are read:

    AssignmentId, docId, article, tid1, tid2, words1, words2, summary1, summary2

Each summary covers its own topic only, so it is a separate example: 1,200 from the 600 rows of the test file. The query
is the topic's words, one of the paper's prompts; `phrases` and `sentences` state the same topic in other words. A few
stories appear two or three times, each time with another writer's summary.
"""

from longsumbench.core import Corpus, Example, Row
from longsumbench.corpora.loading.fields import id_in, text_document, words_in
from longsumbench.sentences import split_summary


def newts_example(row: Row) -> tuple[Example, ...]:
    """Turn one story into two Examples, one per topic. An id joins the ids of assignment and topic."""
    assignment, story = id_in(row, "AssignmentId"), id_in(row, "docId")
    documents = (text_document(words_in(row, "article"), story),)
    examples = []
    for number in (1, 2):
        query = words_in(row, f"words{number}").rstrip(" ,")
        reference = split_summary(words_in(row, f"summary{number}"))
        identity = f"{assignment}-{id_in(row, f'tid{number}')}"
        examples.append(Example(identity, None, query, documents, (reference,)))
    return tuple(examples)


CORPUS = Corpus(
    name="newts",
    title="NEWTS: CNN/DailyMail stories and a topic, which is the query → a summary on it: "
    "dataset.path=FOLDER with its JSON lines.",
    licence="CC BY-NC-SA 4.0",
    homepage="https://github.com/ali-bahrainian/NEWTS",
    published="2022-05",
    from_file_row=newts_example,
)
