"""Search2Wiki: the pages that a search for an article's title finds → the whole Wikipedia article (SEAL, §4).

Paper: https://arxiv.org/abs/2006.10213. Its data was not released. This module reads articles and search results that
you collect yourself, in two layouts at `dataset.path=`:

* JSON lines, one article per line:

      id, title?, lead? [paragraph], sections? [{title?, paragraphs [text] | text}],
      results [{url? | source?, title?, paragraphs [text] | text}], clones?

* folders of text and Markdown (`formats/search_results.py`).

Results are ordered, best first. The first 75 are used, each as a document whose source is its address. The reference is
the article: its lead and sections, without headings. Clones of a section are left out and counted. `clones` names the
rule. With "search2wiki", the default, a clone has more than 20 % of a section's 6-grams. With "wikisum", it has more
than 50 % of a section's words. Use "none" for results without clones.
"""

from typing import Any

from longsumbench.api import Corpus, Document, Row, Section, Thinned
from longsumbench.corpora.formats.search_results import NO_RULE, RULES, article_of, folders_source
from longsumbench.corpora.reading.fields import (
    BadRow,
    Paragraphs,
    id_in,
    list_in,
    object_in,
    optional_in,
    paragraphs_in,
    sentences_in,
    text_in,
)


def search2wiki_example(row: Row) -> Thinned:
    """Turn one article and its search results into an Example without clones.

    Raises:
        BadRow: a field is missing or has the wrong type, there is no article, or all results are clones.
    """
    lead = Section(None, _listed(row, "lead") if row.get("lead") is not None else ())
    listed = list_in(row["sections"], "sections") if row.get("sections") is not None else []
    results = [_result(item) for item in list_in(row.get("results"), "results")]
    sections = [lead, *(_section(item, "sections") for item in listed)]
    return article_of(id_in(row, "id"), optional_in(row, "title"), sections, results, _rule(row))


def _rule(row: Row) -> str:
    rule = optional_in(row, "clones") or RULES[0]
    if rule not in RULES:
        raise BadRow(f"the field 'clones' must be {', '.join(RULES[:-1])} or {NO_RULE}", f"not '{rule}'")
    return rule


def _result(item: Any) -> Document:
    fields = object_in(item, "results")
    address, source = optional_in(fields, "url"), optional_in(fields, "source")
    if address and source:
        raise BadRow("the fields 'url' and 'source' are both given; give one of them")
    return Document(address or source, (_section(fields, "results"),))


def _section(item: Any, field: str) -> Section:
    fields = object_in(item, field)
    given = [name for name in ("paragraphs", "text") if fields.get(name) is not None]
    if len(given) != 1:
        which = "both given" if given else "missing"
        raise BadRow(f"the fields 'paragraphs' and 'text' are {which}; give one of them", f"in '{field}'")
    text = _listed(fields, "paragraphs") if given == ["paragraphs"] else paragraphs_in(text_in(fields, "text") or "")
    return Section(optional_in(fields, "title"), text)


def _listed(row: Row, field: str) -> Paragraphs:
    paragraphs = (sentences_in(item, field) for item in list_in(row[field], field))
    return tuple(paragraph for paragraph in paragraphs if paragraph)


CORPUS = Corpus(
    name="search2wiki",
    title="Search2Wiki: your search results → whole Wikipedia articles: dataset.path=FOLDER of JSON lines, "
    "or with one folder per article.",
    licence="the articles: CC BY-SA, of Wikipedia; the pages: © their publishers",
    homepage="https://arxiv.org/abs/2006.10213",
    version=1,
    multi_document=True,
    from_file_row=search2wiki_example,
    release=folders_source,
)
