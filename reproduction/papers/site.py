"""The pages of the papers on the site: all claims, and each table or figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from markdown_it import MarkdownIt
from markupsafe import Markup

from longsumbench.errors import DataError
from longsumbench.files import read_text
from longsumbench.site.build import Site
from longsumbench.site.pages import SitePage, SiteSection
from longsumbench_reproduction.papers.page_files import page_title, summarize_outcomes
from longsumbench_reproduction.papers.page_model import (
    OUTCOMES,
    PaperPageFile,
    files_folder,
    read_written,
)
from longsumbench_reproduction.papers.paper_tables import find_paper_table, read_paper_tables

_PATH = "papers.html"
_PLACE = "assets/papers"


@dataclass(frozen=True, kw_only=True)
class PapersPage(SitePage):
    """The papers' claims, and what holds in the runs."""

    template: ClassVar = "longsumbench_reproduction:papers.html"
    outcomes: ClassVar = OUTCOMES
    papers: Sequence[PaperPageFile]

    summarize_outcomes = staticmethod(summarize_outcomes)

    def heading(self, paper: PaperPageFile) -> str:
        """Return the title of a table or figure."""
        return page_title(find_paper_table(paper.name))


@dataclass(frozen=True, kw_only=True)
class PaperPage(SitePage):
    """A table or figure of a paper.

    Attributes:
        text: its Markdown.
        addresses: file that the text may link → its address on the site.
    """

    template: ClassVar = "longsumbench_reproduction:paper.html"
    text: str
    addresses: Mapping[str, str]

    @property
    def content(self) -> Markup:
        """The page as HTML. Links to files that the site lacks are left out."""
        parser = MarkdownIt("js-default")  # without raw HTML
        tokens = parser.parse(self.text)
        for token in tokens:
            for part in token.children or ():
                address = str(part.attrs.get("href", "https://"))
                name = address.rpartition("/")[2]
                if name in self.addresses:
                    part.attrs["href"] = self.addresses[name]
                elif "://" not in address:
                    del part.attrs["href"]
        return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the parser escapes texts


def papers_section(site: Site) -> SiteSection | None:
    """Return the pages of the paper tables that were made, if any."""
    papers = []
    for name in read_paper_tables():
        try:
            paper = read_written(site.results, name)
        except DataError as error:
            site.report(error)
            continue
        if paper:
            papers.append(paper)
    return SiteSection("Papers", _PATH, partial(_write_papers, papers)) if papers else None


def _write_papers(papers: Sequence[PaperPageFile], site: Site) -> None:
    addresses = {f"{paper.name}.md": f"{paper.name}.html" for paper in papers}
    addresses |= dict.fromkeys(("index.md", "papers.md"), f"../../{_PATH}")
    for paper in papers:
        path = files_folder(site.results) / f"{paper.name}.md"
        text = read_text(path) if path.is_file() else ""
        values = {"text": text, "addresses": addresses}
        site.write_page(PaperPage, f"{_PLACE}/{paper.name}.html", paper.name, **values)
        # The page's Markdown names its pictures by their file alone
        site.copy_files(f"papers/{paper.name}*.[ps][nv]g", _PLACE)
    site.write_page(PapersPage, _PATH, "The papers' claims", papers=papers)
