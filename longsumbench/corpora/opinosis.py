"""Opinosis: sentences of many users' reviews on one topic → four or five people's summaries (Ganesan et al. 2010).

Paper: https://aclanthology.org/C10-1039. JSON lines at `dataset.path=`, one topic per line:

    topic, sentences [sentence], summaries [text]

The data does not say which review a sentence comes from, nor their order there. So all sentences form one document;
each is a paragraph, as given and in the order of the file. The title is the topic with blanks for underscores
("battery-life amazon kindle"). Line breaks end the sentences of a summary. References stay as released: a few topics
have one summary twice, and two topics have all of theirs twice. There is only a test split.
"""

from longsumbench.core import Corpus, Example, Row
from longsumbench.corpora.loading import fields


def opinosis_example(row: Row) -> Example:
    """Turn one topic into an Example. Its id is the topic."""
    topic = fields.id_in(row, "topic")
    sentences = fields.sentences_in(fields.list_in(row, "sentences"), "sentences")
    if not sentences:
        raise fields.BadRow("the field 'sentences' has no sentence with words")
    document = fields.plain_document(tuple((sentence,) for sentence in sentences))
    title = " ".join(topic.replace("_", " ").split()) or None
    references = fields.references_in(fields.texts_in(row, "summaries"))
    return Example(topic, title, None, (document,), references)


CORPUS = Corpus(
    name="opinosis",
    title="Opinosis: review sentences on a topic → a summary, several references each, test only: "
    "dataset.path=FOLDER with its JSON lines.",
    licence="Apache-2.0; the reviews: © Tripadvisor, Edmunds and Amazon, and their users",
    homepage="https://github.com/kavgan/opinosis-summarization",
    published="2010-08",
    from_file_row=opinosis_example,
)
