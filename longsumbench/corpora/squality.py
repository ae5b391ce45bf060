"""SQuALITY: long stories, and questions about them that four people answered each (Wang et al. 2022).

Paper: https://aclanthology.org/2022.emnlp-main.75. JSON lines at `dataset.path=` (`data/v1-3/txt` of the release), one
story per line. These fields are read:

    metadata {passage_id}, document, questions [{question_text, question_number, responses [{response_text}]}]

Each question is an example and each response a reference, in the order of the file. Systems are trained on the first
reference. The first question asks for the plot of the whole story. The story is one document; blank lines separate its
paragraphs. The note by Project Gutenberg above it ("Produced by …") stays.
"""

from longsumbench.core import Corpus, Example, Row
from longsumbench.corpora.loading import fields


def squality_example(row: Row) -> tuple[Example, ...]:
    """Turn one story into Examples, one per question. An id joins the story's id and the question's number."""
    story = fields.id_in(fields.object_in(row, "metadata"), "passage_id")
    document = fields.text_document(fields.words_in(row, "document"), story)
    questions = fields.objects_in(row, "questions")
    if not questions:
        raise fields.BadRow("the story has no question", f"'{story}'")
    examples = []
    for question in questions:
        responses = fields.objects_in(question, "responses")
        texts = (fields.text_in(item, "response_text") for item in responses)
        identity = f"{story}-{fields.id_in(question, 'question_number')}"
        query = fields.words_in(question, "question_text")
        references = fields.references_in(texts)
        examples.append(Example(identity, None, query, (document,), references))
    return tuple(examples)


CORPUS = Corpus(
    name="squality",
    title="SQuALITY: stories and a question, which is the query → its answer, four references each: "
    "dataset.path=FOLDER with its JSON lines.",
    licence="CC BY 4.0; the stories: Project Gutenberg",
    homepage="https://github.com/nyu-mll/SQuALITY",
    published="2022-05",
    from_file_row=squality_example,
)
