"""The index of all claims of the papers: a table and a picture, made from the pages that are written.

NAME.json of every page --write_index--> index.html, index.md, claims.png
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.files import writable_folder
from longsumbench.leaderboards.comparability import heading_of
from longsumbench.papers.page import OUTCOMES, Verdict
from longsumbench.papers.paper_tables import PaperTable, find_paper_table
from longsumbench.papers.stored_pages import MadePage, files_folder, read_all_written
from longsumbench.papers.write import PAPER_STYLE, embedded_picture, html_block, page_title
from longsumbench.render.figures import TEXT, WIDTH, plain_axes, render_picture, write_pictures
from longsumbench.render.html import html_page
from longsumbench.render.tables import Block, escape_markdown
from longsumbench.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = "claims.png"
_TITLE = "What the four papers claim, and what holds here"
_HEIGHT = 3.2  # inches
_CLAIM_COLUMNS = ("the paper's claim", "place", "rows", "tested on", "outcome", "seeds", "learned")
_CLAIMS_LEGEND = (
    "Each claim is tested once for each dataset, on the paper's measure. Seeds: those that both rows have. Learned: "
    "whether all compared systems learned to summarize; if one did not, nothing is concluded."
)


def write_index(results: Results) -> list[Path]:
    """Write index.html, index.md and the picture for all pages in a results folder; nothing without a claim.

    Raises:
        DataError: a file of a page is damaged.
        EnvironmentProblem: the results folder is not writable.
    """
    pages = [page for page in read_all_written(results) if page.claims]
    if not pages:
        return []
    picture = _draw_outcomes(_count_outcomes(pages))
    parts = [f"<h1>{_TITLE}</h1>", embedded_picture(_TITLE, PICTURE, picture), f"<p>{_CLAIMS_LEGEND}</p>"]
    for page in pages:
        paper_table = find_paper_table(page.name)
        parts.append(f'<h2><a href="{page.name}.html">{escape(page_title(paper_table))}</a></h2>')
        rows = [_claim_cells(paper_table, claim) for claim in page.claims]
        parts += html_block(Block("", (), _CLAIM_COLUMNS, "lllllrl", rows))
    text = f"# {_TITLE}\n\n![{_TITLE}]({PICTURE})\n\n{claims_table(results)}"
    folder = writable_folder(files_folder(results), "--results-dir")
    html = html_page(_TITLE, parts, PAPER_STYLE)
    return write_pictures(folder, {"index.html": html, "index.md": text, PICTURE: picture})


def claims_table(results: Results, folder: str = "") -> str:
    """Return all claims as a Markdown table, with the outcome of each and a link to its page in a folder.

    Raises:
        DataError: a file of a page is damaged.
    """
    lines = [f"| {' | '.join([*_CLAIM_COLUMNS, 'page'])} |", "|---" * (len(_CLAIM_COLUMNS) + 1) + "|"]
    for page in read_all_written(results):
        for claim in page.claims:
            cells = map(escape_markdown, _claim_cells(find_paper_table(page.name), claim))
            lines.append(f"| {' | '.join([*cells, f'[{page.name}]({folder}{page.name}.md)'])} |")
    return "\n".join([_CLAIMS_LEGEND, "", *lines, ""])


def _claim_cells(paper_table: PaperTable, claim: Verdict) -> list[str]:
    """Return the cells of a claim, as in `_COLUMNS`."""
    place = f"{_paper_name(paper_table)}, {claim.source or paper_table.prints}"
    tested = f"{heading_of(claim.measure)}, {claim.dataset}"
    seeds = "" if claim.seeds is None else str(claim.seeds)
    return [claim.says, place, claim.claim, tested, claim.outcome, seeds, claim.learned]


def _paper_name(paper_table: PaperTable) -> str:
    """Return the short name of a paper, or its authors and year, whichever is shorter."""
    return min(paper_table.citation.rpartition(", ")[::2], key=len)


def _count_outcomes(pages: Sequence[MadePage]) -> dict[str, Counter[str]]:
    """Return paper → outcome → number of claims."""
    numbers: dict[str, Counter[str]] = {}
    for page in pages:
        name = _paper_name(find_paper_table(page.name))
        numbers.setdefault(name, Counter()).update(claim.outcome for claim in page.claims)
    return numbers


def _draw_outcomes(numbers: Mapping[str, Mapping[str, int]]) -> bytes:
    """Draw a bar for each paper, with a part for each outcome; return a PNG."""

    def draw(figure: "Figure") -> None:
        figure.set_layout_engine("constrained")
        plot, names = figure.subplots(), list(numbers)
        starts = dict.fromkeys(names, 0)
        for outcome, colour in OUTCOMES.items():
            sizes = [numbers[name].get(outcome, 0) for name in names]
            if any(sizes):
                plot.barh(names, sizes, left=[*starts.values()], color=colour, label=f"{outcome} ({sum(sizes)})")
                starts = {name: starts[name] + size for name, size in zip(names, sizes, strict=True)}
        plain_axes(plot, "x")
        plot.invert_yaxis()
        plot.set_xlabel("claims", fontsize=TEXT)
        figure.legend(loc="outside right upper", frameon=False, fontsize=TEXT - 2)

    return render_picture((WIDTH, _HEIGHT), draw)["png"]
