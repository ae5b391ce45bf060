"""Writes an inspection as one self-contained HTML page, and its views as a figure.

    Inspection --inspection_page--> HTML: facts about the run, a section for each view, the texts, the units
               --write_inspection--> <n>.html, <n>.png

Outputs of systems are escaped. The page allows the browser to run only the page's script.
"""

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from longsumbench.core import describe_reading
from longsumbench.files import write_atomically
from longsumbench.formatting import format_count
from longsumbench.metrics.output_facts import output_warnings
from longsumbench.outputs.inspect_run import Inspection
from longsumbench.render.evidence.html_views import (
    HEAT_MAP_SCRIPT,
    HEAT_MAP_STYLE as HEAT_MAP_STYLE,
    SOURCE_TEXT_SCRIPT as SOURCE_TEXT_SCRIPT,
    SOURCE_TEXT_STYLE as SOURCE_TEXT_STYLE,
    colour,
    relations,
    selections,
    source_text,
    weights,
)
from longsumbench.render.evidence.picture import about_plane, draw_plane, draw_views
from longsumbench.render.evidence.views import Plane, Relations, Selections, SourceText, View, Weights, views
from longsumbench.render.html import headed_references, html_image, html_page, html_text, or_nothing, static_text
from longsumbench.runs.record import split_variant

_FIRST_WORDS = 70  # characters of a closed unit
NO_TEXTS = (
    "The title and the references are not shown: the texts of this run are not on this machine (its work/corpus "
    "leads to no folder of the cache)."
)
INSPECTION_STYLE = static_text("inspection.css")


def write_inspection(inspection: Inspection, folder: Path) -> list[Path]:
    """Write the page and the figure of an example with evidence; return their paths."""
    assert inspection.evidence is not None
    paths = [folder / f"{inspection.number}.{ending}" for ending in ("html", "png")]
    pictures = views(inspection.evidence)
    write_atomically(paths[0], inspection_page(inspection, pictures))
    write_atomically(paths[1], draw_views(inspection.title, pictures))
    return paths


def inspection_page(inspection: Inspection, pictures: Sequence[View]) -> str:
    """Return the HTML page of an inspection with views of its evidence."""
    assert inspection.evidence is not None
    nothing = "" if pictures else "<p>There is no array in the evidence.</p>"
    main = "\n".join([*map(_view, pictures), nothing, _html_texts(inspection)])
    script = _script_of(pictures)
    style = HEAT_MAP_STYLE + SOURCE_TEXT_STYLE + INSPECTION_STYLE
    parts = [
        f"<h1>{escape(inspection.title)}</h1>",
        inspection_facts(inspection),
        text_read(inspection),
        "" if inspection.example else f'<p class="soft">{escape(NO_TEXTS)}</p>',
        f'<div class="columns"><main>\n{main}\n</main>',
        _units(inspection.evidence.texts["unit"], pictures),
        "</div>",
        f"<script>{script}</script>",
    ]
    return html_page(f"longsumbench: {inspection.title}", parts, style, content_policy(script))


def _script_of(pictures: Iterable[View]) -> str:
    """Return the script that the views need."""
    return HEAT_MAP_SCRIPT + (SOURCE_TEXT_SCRIPT if any(isinstance(view, SourceText) for view in pictures) else "")


def content_policy(script: str) -> str:
    """Return the Content-Security-Policy: the browser may run only the page's script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    allowed = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return f'<meta http-equiv="Content-Security-Policy" content="{allowed}">\n'


def inspection_facts(inspection: Inspection) -> str:
    """Return facts about the run, the example and the summary."""
    record, summary, example = inspection.record, inspection.summary, inspection.example
    scores = " · ".join(f"{heading} {score:.1f}" for heading, score in inspection.scores.items())
    words, tokens = len(summary.text.split()), summary.tokens
    length = format_count(words, "word") if tokens is None else format_count(tokens, "token")
    variant, imported = ", ".join(split_variant(record.variant)), record.imported
    facts = {
        "model": f"{record.model}, {variant or ('imported' if imported else 'as its recipe')}",
        "imported": f"{imported.file}, from {imported.origin or 'an unknown place'}" if imported else None,
        "dataset": f"{record.dataset}, {record.split} split",
        "run": record.run_id,
        "example": f"{summary.id}, at place {inspection.number}, from 0",
        "title": example.title if example else None,
        "ROUGE F1": scores or "not scored",
        "source": None if imported else describe_reading(summary.truncation),
        "summary": length + ("" if summary.complete else "; it stops at its length limit"),
        "warning": "; ".join(output_warnings(record.outputs, record.outputs_cut)),
    }
    rows = "".join(f"<dt>{name}</dt><dd>{escape(fact)}</dd>\n" for name, fact in facts.items() if fact)
    previous_pages = [page for page in inspection.pages if page < inspection.number][-1:]
    next_pages = [page for page in inspection.pages if page > inspection.number][:1]
    links = [f'<a href="{page}.html">previous: {page}</a>' for page in previous_pages]
    links += [f'<a href="{page}.html">next: {page}</a>' for page in next_pages]
    return f"<dl>\n{rows}</dl>" + (f"\n<nav>{' · '.join(links)}</nav>" if links else "")


def text_read(inspection: Inspection) -> str:
    """Return the input as the system read it, closed until it is clicked; empty if the run did not keep it."""
    if inspection.input_text is None:
        return ""
    words = format_count(len(inspection.input_text.split()), "word")
    head = f"<summary>The input as the system read it ({words})</summary>"
    return f'<details class="read">{head}<p class="text">{or_nothing(escape(inspection.input_text))}</p></details>'


def _view(view: View) -> str:
    match view:
        case Weights():
            return weights(view)
        case Selections():
            return selections(view)
        case Relations():
            return relations(view)
        case SourceText():
            return source_text(view)
        case Plane():
            return _html_plane(view)


def _html_plane(view: Plane) -> str:
    """Return the figure of a view that has no HTML form."""
    caption, heading = about_plane(view), escape(f"{view.name}: {' × '.join(view.axes) or 'one number'}")
    image = html_image(caption, draw_plane(view)) if view.values.size else ""
    figure = f'<figure class="plane">{image}</figure>'
    return f'<section class="view">\n<h2>{heading}</h2>\n<p>{escape(caption)}</p>\n{figure}\n</section>'


def _html_texts(inspection: Inspection) -> str:
    """Return the summary and its references in columns."""
    references = inspection.example.references if inspection.example else ()
    texts = {"summary": inspection.summary.text, **headed_references(references)}
    columns = "".join(html_text(heading, escape(text)) for heading, text in texts.items())
    title = "The summary and its references" if references else "The summary"
    return f'<h2>{title}</h2>\n<div class="texts">{columns}</div>'


def _units(texts: Sequence[str], pictures: Iterable[View]) -> str:
    """Return the units' texts; selected units are open."""
    selected = next((view for view in pictures if isinstance(view, Selections)), None)
    boxes = []
    for unit, text in enumerate(texts):
        segments = selected.segments_of(unit) if selected else []
        chips = "".join(f'<span class="chip {colour(segment)}">{segment + 1}</span>' for segment in segments)
        kind = colour(unit) if selected is None else colour(segments[0]) if segments else ""
        first = f'<span class="soft first">{escape(" ".join(text.split())[:_FIRST_WORDS])}</span>'
        body = f'<p class="text" id="unit-{unit + 1}">{or_nothing(escape(text))}</p>'
        head = f"<summary><b>unit {unit + 1}</b> {chips}{first}</summary>"
        boxes.append(f'<details class="{kind}"{" open" if segments else ""}>{head}{body}</details>')
    return "\n".join(['<aside class="units">', "<h2>Units of the source</h2>", *boxes, "</aside>"])
