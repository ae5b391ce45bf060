"""Search2Wiki: the pages that a search for an article's title finds → the whole Wikipedia article (SEAL, §4).

Paper: https://arxiv.org/abs/2006.10213. Its data was not released. This module reads articles and search results that
you collect yourself. JSON lines at `dataset.path=`, one article per line:

    id, title?, lead? [paragraph], sections? [{title?, paragraphs [text] | text}],
    results [{url? | source?, title?, paragraphs [text] | text}], clones?

Results are ordered, best first. The first 75 are used, each as a document whose source is its address. The reference is
the article: its lead and sections, without headings. Clones of a section are left out and counted. `clones` names the
rule. With "search2wiki", the default, a clone has more than 20 % of a section's 6-grams. With "wikisum", it has more
than 50 % of a section's words. Use "none" for results without clones.
"""

from itertools import chain

from longsumbench.core import Corpus, Document, Example, PartialExample, Row, Section
from longsumbench.corpora.loading import fields
from longsumbench_reproduction.corpora.clones import PAGE_RULES

# the best results, which are used (SEAL, §4)
MOST_RESULTS = 75
NO_RULE = "none"
RULES = (*PAGE_RULES, NO_RULE)  # the first is the default
# names in the record of what is left out
_BEYOND, _CLONES, _EMPTY = (
    f"search results beyond the first {MOST_RESULTS}",
    "clone search results",
    "empty search results",
)


def search2wiki_example(row: Row) -> PartialExample:
    """Turn one article and its search results into an Example without clones. The title is the search query."""
    lead = Section(None, fields.listed_paragraphs(row, "lead", required=False))
    sections = [
        fields.section_in(item, "title")
        for item in fields.objects_in(row, "sections", required=False)
    ]
    article = [tuple(section.sentences()) for section in (lead, *sections)]
    results = [_result(item) for item in fields.objects_in(row, "results")]
    if not any(article):
        raise fields.BadRow("the article is empty", fields.LEAVE_OUT)
    top, rule = results[:MOST_RESULTS], _rule(row)
    pages = [page for page in top if any(page.sentences())]
    if not pages:
        raise fields.BadRow("no search result has text", fields.LEAVE_OUT)
    clones = [False] * len(pages)
    if rule != NO_RULE:
        clones = PAGE_RULES[rule].clones(article, (tuple(page.sentences()) for page in pages))
    documents = tuple(page for page, clone in zip(pages, clones, strict=True) if not clone)
    if not documents:
        raise fields.BadRow(
            "all search results are clones of the article",
            f"by the rule '{rule}'; {fields.LEAVE_OUT}",
        )
    left_out = {
        _BEYOND: len(results) - len(top),
        _EMPTY: len(top) - len(pages),
        _CLONES: sum(clones),
    }
    reference = tuple(chain.from_iterable(article))
    identity, title = fields.id_in(row, "id"), fields.optional_in(row, "title")
    return PartialExample(Example(identity, title, None, documents, (reference,)), left_out)


def _rule(row: Row) -> str:
    rule = fields.optional_in(row, "clones") or RULES[0]
    if rule not in RULES:
        raise fields.BadRow(
            f"the field 'clones' must be {', '.join(RULES[:-1])} or {NO_RULE}", f"not '{rule}'"
        )
    return rule


def _result(item: Row) -> Document:
    address, source = fields.optional_in(item, "url"), fields.optional_in(item, "source")
    if address and source:
        raise fields.BadRow("the fields 'url' and 'source' are both given; give one of them")
    return Document(address or source, (fields.section_in(item, "title"),))


CORPUS = Corpus(
    name="search2wiki",
    title="Search2Wiki: your search results → whole Wikipedia articles: dataset.path=FOLDER of JSON lines.",
    licence="the articles: CC BY-SA, of Wikipedia; the pages: © their publishers",
    homepage="https://arxiv.org/abs/2006.10213",
    multi_document=True,
    from_file_row=search2wiki_example,
)
