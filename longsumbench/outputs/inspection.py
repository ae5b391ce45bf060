"""`longsumbench inspect`: shows one summary of a finished run with its evidence, or with its source.

    command line → the run's record and files → Inspection: the summary, its evidence, scores and texts
    Inspection --inspection_page--> HTML: facts about the run, a section for each view, the texts, the units
               --overlap_page--> HTML without evidence: each output sentence with the nearest source sentence; the texts
               --write_inspection--> <n>.html, <n>.png

Outputs of systems are escaped. The page allows the browser to run only the page's script.
"""

import base64
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import islice
from pathlib import Path

from longsumbench.core import Evidence, Example, Summary, describe_reading
from longsumbench.errors import UsageError, did_you_mean, suite_errors
from longsumbench.files import write_atomically
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import PERCENT, read_scores
from longsumbench.metrics.output_facts import output_warnings
from longsumbench.render import html
from longsumbench.render.evidence import html_views
from longsumbench.render.evidence.picture import about_plane, draw_plane, draw_views
from longsumbench.render.evidence.views import Plane, Relations, Selections, SourceText, View, Weights, views
from longsumbench.render.marked_words import mark_words, marks_legend, shared_by
from longsumbench.rouge.all_pairs import number_words, rouge_n
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.runs.evidence import kept_places, num_wanted, read_evidence, read_kept_inputs
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, output_files, run_label, split_variant
from longsumbench.runs.results import Results, split_read_by
from longsumbench.runs.verdicts import Verdicts, html_verdicts, read_verdicts
from longsumbench.sentences import split_summary

_FIRST_WORDS = 70  # characters of a closed unit
NO_TEXTS = (
    "The title and the references are not shown: the texts of this run are not on this machine (its work/corpus "
    "leads to no folder of the cache)."
)
INSPECTION_STYLE = html.static_text("inspection.css")
_STYLE = """
.nearest { border-collapse: collapse; width: 100%; } .nearest td { white-space: normal; text-align: left;
  vertical-align: top; } .nearest td.r { text-align: right; white-space: nowrap; color: var(--soft); }
.found { background: var(--card); box-shadow: 0 0 0 .2rem var(--card); }
.found:target, .found:focus { outline: 2px solid var(--cursor, #d55e00); }
.found sup a { font-weight: 600; text-decoration: none; }
.whole { border: 1px solid var(--line); border-radius: .5rem; padding: .4rem 1rem 1rem; }
.whole p { font-size: .95rem; overflow-wrap: anywhere; } .whole h4 { margin: 1rem 0 .2rem; color: var(--soft); }
@media (min-width: 78rem) { .columns { grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); }
  .whole { position: sticky; top: .5rem; max-height: calc(100vh - 1rem); overflow-y: auto; } }
"""
_TABLE_START = """\
<p class="soft">ROUGE: mean of ROUGE-1 and ROUGE-2 F1 of the two sentences, 0–100.</p>
<div class="scroll"><table class="nearest"><thead><tr><th></th><th class="l">output sentence</th>
<th class="l">nearest source sentence</th><th>ROUGE</th></tr></thead><tbody>"""


@dataclass(frozen=True)
class Inspection:
    """An example of a finished run; a notebook shows its page.

    Attributes:
        number: index of the example among those that were summarized, from 0.
        evidence: what the system looked at; None if the run has no evidence of this example.
        scores: heading of a type of ROUGE → F1, 0–100; empty if the example was not scored.
        example: the texts; None if they are not on this machine.
        input_text: the input as the system read it; None if the run kept none of this example.
        pages: numbers of the examples whose pages are in the same folder, sorted.
        verdicts: what metrics found about each sentence of the run's summaries.
    """

    record: RunRecord
    number: int
    summary: Summary
    evidence: Evidence | None
    scores: Mapping[str, float]
    example: Example | None
    no_evidence: str = ""
    input_text: str | None = None
    pages: Sequence[int] = ()
    verdicts: Verdicts = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Heading: dataset, example and run."""
        return f"{self.record.dataset}, example {self.summary.id}: {run_label(self.record)}"

    def page(self) -> str:
        """Return the HTML page: the evidence, or what the output shares with the source."""
        return inspection_page(self, views(self.evidence)) if self.evidence else overlap_page(self)

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 45rem; border: 0"
        return f'<iframe srcdoc="{escape(self.page())}" sandbox="allow-scripts" style="{style}"></iframe>'


def inspect_example(run: str | Path | RunRecord, example: str, results: Results) -> Inspection:
    """Read an example of a finished run.

    `example` is its id, or its index in the split.

    Raises:
        UsageError: the run is unknown or ambiguous, or the example is unknown.
        DataError: a file of the run is missing or damaged.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    record.check_written(folder, ["predictions.jsonl"])
    summaries = read_summaries(folder / "predictions.jsonl")
    number = _find_example(example, [summary.id for summary in summaries], record)
    summary, split = summaries[number], split_read_by(folder, record)
    _, scores_file = output_files(len(record.checkpoints))[0]
    places, scores = kept_places(folder / "evidence"), _scores_of(folder / scores_file, summary.id)
    evidence = read_evidence(folder / "evidence", number)[1] if number in places else None
    reason = "" if evidence else _why_none(number, places, record)
    ids = split.ids if split else []
    texts = split[ids.index(summary.id)] if split and summary.id in ids else None
    input_text = read_kept_inputs(folder / "inputs.jsonl").get(summary.id)
    verdicts = read_verdicts(folder)
    return Inspection(record, number, summary, evidence, scores, texts, reason, input_text, verdicts=verdicts)


def _find_example(name: str, ids: Sequence[str], record: RunRecord) -> int:
    if name in ids:
        return ids.index(name)
    if name.isdecimal() and int(name) < len(ids):
        return int(name)
    suggestion = "" if name.isdecimal() else did_you_mean(name, ids)
    places = f"its examples have the indices 0 to {len(ids) - 1}" if ids else "it summarized none"
    raise UsageError(f"{run_label(record)} summarized no example '{name}'{suggestion}; {places}")


def _why_none(number: int, places: set[int], record: RunRecord) -> str:
    if record.imported:
        return f"{run_label(record)} has no evidence: its outputs were written outside the suite"
    words = [word for word in record.command if not word.startswith("decode.evidence=")]
    more = f"decode.evidence=all keeps it for all examples: {shlex.join([*words, 'decode.evidence=all'])}"
    if places:
        extent = f"{format_count(len(places), 'example')}, {min(places)} to {max(places)}"
        return f"no evidence of example {number} was kept; {run_label(record)} has that of {extent}; {more}"
    if not num_wanted(value := record.settings.decode.evidence, examples=1):
        return f"{run_label(record)} kept no evidence (decode.evidence={value}); if the system supports it, {more}"
    return f"{run_label(record)} has no evidence: {record.model} keeps none, at least with these settings"


def _scores_of(path: Path, name: str) -> dict[str, float]:
    scores = read_scores(path) if path.is_file() else None
    if scores is None or name not in scores.index:
        return {}
    row = PERCENT * scores.loc[name, [f"{kind}_f" for kind in ROUGE_HEADINGS]].to_numpy()
    return dict(zip(ROUGE_HEADINGS.values(), row.tolist(), strict=True))


def inspection_folder(results: Results, record: RunRecord) -> Path:
    """Return the default folder of an inspection."""
    return results.root / "inspections" / record.run_id


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
    has_source = any(isinstance(view, SourceText) for view in pictures)
    script = html_views.HEAT_MAP_SCRIPT + (html_views.SOURCE_TEXT_SCRIPT if has_source else "")
    nothing = "" if pictures else "<p>There is no array in the evidence.</p>"
    main = "\n".join([*map(_view, pictures), nothing, _html_texts(inspection)])
    style = html_views.HEAT_MAP_STYLE + html_views.SOURCE_TEXT_STYLE + INSPECTION_STYLE
    parts = [
        f"<h1>{escape(inspection.title)}</h1>",
        _inspection_facts(inspection),
        _text_read(inspection),
        "" if inspection.example else f'<p class="soft">{escape(NO_TEXTS)}</p>',
        f'<div class="columns"><main>\n{main}\n</main>',
        _units(inspection.evidence.texts["unit"], pictures),
        "</div>",
        f"<script>{script}</script>",
    ]
    return html.html_page(f"longsumbench: {inspection.title}", parts, style, _content_policy(script))


def _content_policy(script: str) -> str:
    """Return the Content-Security-Policy: the browser may run only the page's script."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    allowed = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    return f'<meta http-equiv="Content-Security-Policy" content="{allowed}">\n'


def _inspection_facts(inspection: Inspection) -> str:
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
    verdicts = html_verdicts(inspection.verdicts, summary.id, summary.text)
    return f"<dl>\n{rows}</dl>" + (f"\n<nav>{' · '.join(links)}</nav>" if links else "") + verdicts


def _text_read(inspection: Inspection) -> str:
    """Return the input as the system read it, closed until it is clicked; empty if the run did not keep it."""
    if inspection.input_text is None:
        return ""
    words = format_count(len(inspection.input_text.split()), "word")
    head = f"<summary>The input as the system read it ({words})</summary>"
    return f'<details class="read">{head}<p class="text">{html.or_nothing(escape(inspection.input_text))}</p></details>'


def _view(view: View) -> str:
    match view:
        case Weights():
            return html_views.weights(view)
        case Selections():
            return html_views.selections(view)
        case Relations():
            return html_views.relations(view)
        case SourceText():
            return html_views.source_text(view)
        case Plane():
            return _html_plane(view)


def _html_plane(view: Plane) -> str:
    caption, heading = about_plane(view), escape(f"{view.name}: {' × '.join(view.axes) or 'one number'}")
    image = html.html_image(caption, draw_plane(view)) if view.values.size else ""
    figure = f'<figure class="plane">{image}</figure>'
    return f'<section class="view">\n<h2>{heading}</h2>\n<p>{escape(caption)}</p>\n{figure}\n</section>'


def _html_texts(inspection: Inspection) -> str:
    references = inspection.example.references if inspection.example else ()
    texts = {"summary": inspection.summary.text, **html.headed_references(references)}
    columns = "".join(html.html_text(heading, escape(text)) for heading, text in texts.items())
    title = "The summary and its references" if references else "The summary"
    return f'<h2>{title}</h2>\n<div class="texts">{columns}</div>'


def _units(texts: Sequence[str], pictures: Iterable[View]) -> str:
    selected = next((view for view in pictures if isinstance(view, Selections)), None)
    boxes = []
    for unit, text in enumerate(texts):
        segments = selected.segments_of(unit) if selected else []
        chips = "".join(f'<span class="chip {html_views.colour(segment)}">{segment + 1}</span>' for segment in segments)
        kind = html_views.colour(unit) if selected is None else html_views.colour(segments[0]) if segments else ""
        first = f'<span class="soft first">{escape(" ".join(text.split())[:_FIRST_WORDS])}</span>'
        body = f'<p class="text" id="unit-{unit + 1}">{html.or_nothing(escape(text))}</p>'
        head = f"<summary><b>unit {unit + 1}</b> {chips}{first}</summary>"
        boxes.append(f'<details class="{kind}"{" open" if segments else ""}>{head}{body}</details>')
    return "\n".join(['<aside class="units">', "<h2>Units of the source</h2>", *boxes, "</aside>"])


@suite_errors()
def inspect(run: str | Path | RunRecord, example: str | int, results_dir: str | Path = "results") -> Inspection:
    """Read an example of a finished run with its evidence, as `longsumbench inspect` does; nothing is written.

    Args:
        run: the run's folder, its id, the beginning of its id, or its record.
        example: the example's id, or its index in the split, from 0.
        results_dir: where ids are looked for.

    Returns:
        The example: its summary, evidence, texts, and ROUGE F1, 0–100. A notebook shows its page.

    Raises:
        UsageError: no run, or several, match, or the example is unknown.
        DataError: a file of the run is missing or damaged.
    """
    return inspect_example(run, str(example), Results(Path(results_dir).expanduser()))


def overlap_page(inspection: Inspection) -> str:
    """Return the HTML page of an example without evidence."""
    output, example = inspection.summary.text, inspection.example
    parts = [
        f"<h1>{escape(inspection.title)}</h1>",
        _inspection_facts(inspection),
        f'<p class="soft">{escape(inspection.no_evidence)}.</p>',
        _text_read(inspection),
    ]
    if example is None:
        parts += [
            f'<p class="soft">{escape(NO_TEXTS)}</p>',
            f"<h2>The output</h2>\n<p>{html.or_nothing(escape(output))}</p>",
        ]
    else:
        parts.append(_shared_texts(output, example))
    style = html.PAGE_STYLE + INSPECTION_STYLE + _STYLE
    return html.html_page(f"longsumbench: {inspection.title}", parts, style, _content_policy(""))


def nearest_sentences(output: Sequence[str], source: Sequence[str]) -> list[tuple[int | None, float]]:
    """Return for each output sentence the source sentence that it resembles most: its place, and their likeness.

    The likeness is the mean of ROUGE-1 and ROUGE-2 F1, 0–100. Of equal sentences it is the first. The place is None if
    no source sentence shares a word.
    """
    words = SuiteScorer(tokenizer="unicode", kernels="python").words
    texts, outputs = number_words([words(sentence) for sentence in source], [words(sentence) for sentence in output])
    if not texts or not outputs:
        return [(None, 0.0)] * len(outputs)
    scores = 50 * (rouge_n(texts, outputs, 1)["f1"] + rouge_n(texts, outputs, 2)["f1"])
    pairs = zip(scores.argmax(axis=1).tolist(), scores.max(axis=1).tolist(), strict=True)
    return [(place if score else None, score) for place, score in pairs]


def _shared_texts(output: str, example: Example) -> str:
    source, references = list(example.sentences()), html.headed_references(example.references)
    sentences = split_summary(output)
    nearest = nearest_sentences(sentences, source)
    shared = shared_by(output, " ".join(source), " ".join(references.values()))
    marked = [mark_words(text, shared) for text in source]
    numbered = list(enumerate(zip(sentences, nearest, strict=True), start=1))
    rows = "".join(_html_row(n, mark_words(sentence, shared), *best, marked) for n, (sentence, best) in numbered)
    spans = (
        _html_sentence(place, text, [number for number, (_, (nearest_place, _)) in numbered if nearest_place == place])
        for place, text in enumerate(marked)
    )
    source_html = "\n".join(_html_source(example, spans))
    kinds = {"one": "the source", "other": "a reference", "both": "both"}
    texts = {"output": output, **references}
    columns = "".join(html.html_text(heading, mark_words(text, shared)) for heading, text in texts.items())
    return (
        f'<div class="columns"><main>\n<h2>What the output shares with the source</h2>\n'
        f"{marks_legend('the output', kinds)}\n{_TABLE_START}{rows}</tbody></table></div>\n"
        f'<h2>The output and its references</h2>\n<div class="texts">{columns}</div>\n</main>\n'
        f'<aside class="whole"><h3>The source</h3>\n{source_html}\n</aside></div>'
    )


def _html_row(number: int, sentence: str, place: int | None, score: float, source: Sequence[str]) -> str:
    cell = '<em class="soft">no source sentence shares a word</em>'
    if place is not None:
        link = f'<a href="#s{place + 1}">source sentence {place + 1}</a>'
        cell = f'<span class="soft">{link}:</span> {source[place]}'
    cells = f"<td>{sentence}</td><td>{cell}</td>"
    return f'<tr id="o{number}"><td class="r">{number}</td>{cells}<td class="r">{score:.0f}</td></tr>'


def _html_sentence(place: int, marked: str, numbers: Sequence[int]) -> str:
    links = " ".join(f'<a href="#o{number}">{number}</a>' for number in numbers)
    kind, note = (' class="found"', f"<sup>{links}</sup>") if links else ("", "")
    return f'<span id="s{place + 1}"{kind}>{marked}{note}</span>'


def _html_source(example: Example, spans: Iterator[str]) -> Iterator[str]:
    several = len(example.documents) > 1
    for place, document in enumerate(example.documents, start=1):
        if several or document.source:
            yield f"<h3>{escape(document.source or f'document {place}')}</h3>"
        for section in document.sections:
            if section.name:
                yield f"<h4>{escape(section.name)}</h4>"
            for paragraph in section.paragraphs:
                yield f"<p>{' '.join(islice(spans, len(paragraph)))}</p>"
