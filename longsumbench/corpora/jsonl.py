"""The user's own texts: rows of JSON lines, tables or folders; `usual_keys` has the other names of these fields.

    id, title?, query?,
    document (text) | documents [{source?, sections [{name?, paragraphs [text] | text}]}],
    summary (text) | references [text | [sentence]],
    questions? [{question, answer | answers [text]}]

Blank lines separate the paragraphs of plain text. Other fields are ignored.
"""

from collections.abc import Iterator

from longsumbench.core import Corpus, Document, Example, Question, Row, Sentences
from longsumbench.corpora.loading import fields


def jsonl_example(row: Row, with_summary: bool = True) -> Example:
    """Turn one JSON object of the schema above into an Example; without summary its reference is empty."""
    title = fields.any_text_in(row, "title") or None
    query = fields.any_text_in(row, "query") or None
    references = _jsonl_references(row) if with_summary else ((),)
    return Example(
        fields.id_in(row, "id"),
        title,
        query,
        _jsonl_documents(row),
        references,
        questions=tuple(_jsonl_questions(row)),
    )


def _jsonl_documents(row: Row) -> tuple[Document, ...]:
    if fields.given_field(row, "document", "documents") == "document":
        return (fields.text_document(fields.text_in(row, "document")),)
    documents = []
    for item in fields.objects_in(row, "documents"):
        described = fields.objects_in(item, "sections")
        sections = [fields.section_in(section, "name") for section in described]
        with_text = tuple(section for section in sections if section.paragraphs)
        documents.append(Document(fields.optional_in(item, "source"), with_text))
    return tuple(document for document in documents if document.sections)


def _jsonl_references(row: Row) -> tuple[Sentences, ...]:
    if fields.given_field(row, "summary", "references") == "summary":
        return fields.references_in([fields.text_in(row, "summary")])
    references: list[Sentences] = []
    for value in fields.list_in(row, "references"):
        if isinstance(value, str):
            references += fields.references_in([value])
        else:
            references.append(fields.sentences_in(value, "references"))
    return tuple(filter(None, references)) or ((),)


def _jsonl_questions(row: Row) -> Iterator[Question]:
    """Yield questions that have answers; a field of another form is none of ours."""
    listed = row.get("questions")
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        answers = item.get("answers", item.get("answer"))
        if not isinstance(answers, list):
            answers = [answers]
        is_ours = all(isinstance(answer, str | int | float) for answer in answers)
        if is_ours and isinstance(item.get("question"), str):
            yield Question(item["question"], tuple(map(str, answers)))


CORPUS = Corpus(
    name="jsonl",
    title="Your own texts: dataset.path=FOLDER with train, validation and test .jsonl, .csv and the like, "
    "or one FILE (then test only).",
    licence="yours",
    own_keys=True,
    homepage="",
    from_file_row=jsonl_example,
    version=2,  # line breaks end the sentences of summaries, as they do for `score`
)
