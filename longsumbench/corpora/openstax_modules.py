"""OpenStax, module by module: one document with headings → its summary. The files are those of `openstax`.

Each module of a chapter becomes an example. All modules of a chapter are in one split. Books share module ids, so an
example's id joins the ids of chapter and module. This is a separate dataset because its texts and summaries are a fifth
as long as those of `openstax`.
"""

from longsumbench.core import Corpus, Example, PartialExample, Row
from longsumbench.corpora.loading.fields import BadRow, id_in, objects_in, words_in
from longsumbench.corpora.openstax import BARE, read_module, read_module_summary


def openstax_modules_example(row: Row) -> tuple[PartialExample, ...]:
    """Turn one chapter into Examples, one per module."""
    modules = objects_in(row, "modules")
    if not modules:
        raise BadRow("the field 'modules' is empty")
    chapter, name = id_in(row, "id"), words_in(row, "chapter")
    examples = []
    for module in modules:
        document, bare = read_module(module, name)
        identity, title = f"{chapter}/{id_in(module, 'module_id')}", words_in(module, "title")
        example = Example(identity, title, None, (document,), (read_module_summary(module),))
        examples.append(PartialExample(example, {BARE: bare}))
    return tuple(examples)


CORPUS = Corpus(
    name="openstax_modules",
    title="OpenStax modules → their summaries, with section names: dataset.path=FOLDER with the JSON lines of "
    "openstax.",
    licence="CC BY-NC-SA 4.0, or CC BY 4.0, as each row states",
    homepage="https://openstax.org",
    from_file_row=openstax_modules_example,
)
