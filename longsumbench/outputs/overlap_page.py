"""`inspect`, and the page of an example without evidence: what its output shares with the source and the references.

Inspection --overlap_page--> HTML: the facts; each output sentence with the nearest source sentence; the texts

Outputs of systems are escaped.
"""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from longsumbench.core import Example
from longsumbench.errors import suite_errors
from longsumbench.outputs.inspect_page import (
    INSPECTION_STYLE,
    NO_TEXTS,
    content_policy,
    inspection_facts,
    inspection_page,
    text_read,
)
from longsumbench.outputs.inspect_run import Inspection, inspect_example
from longsumbench.render.evidence.views import views
from longsumbench.render.html import PAGE_STYLE, headed_references, html_page, html_text, or_nothing
from longsumbench.render.marked_words import mark_words, marks_legend, shared_by
from longsumbench.rouge.all_pairs import number_words, rouge_n
from longsumbench.rouge.scorer import RougeScorer
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.sentences import split_summary

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


class NearestSentence(NamedTuple):
    """The source sentence that an output sentence resembles most: its place, and the mean of ROUGE-1 and -2 F1, 0–100.

    `place` is None if no source sentence shares a word.
    """

    place: int | None
    score: float


class InspectedExample(Inspection):
    """An example of a finished run; a notebook shows its page."""

    def page(self) -> str:
        """Return the HTML page: the evidence, or what the output shares with the source."""
        return inspection_page(self, views(self.evidence)) if self.evidence else overlap_page(self)

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 45rem; border: 0"
        return f'<iframe srcdoc="{escape(self.page())}" sandbox="allow-scripts" style="{style}"></iframe>'


@suite_errors()
def inspect(run: str | Path | RunRecord, example: str | int, results_dir: str | Path = "results") -> InspectedExample:
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
    return InspectedExample(**vars(inspect_example(run, str(example), Results(Path(results_dir).expanduser()))))


def overlap_page(inspection: Inspection) -> str:
    """Return the HTML page of an example without evidence."""
    output, example = inspection.summary.text, inspection.example
    parts = [
        f"<h1>{escape(inspection.title)}</h1>",
        inspection_facts(inspection),
        f'<p class="soft">{escape(inspection.no_evidence)}.</p>',
        text_read(inspection),
    ]
    if example is None:
        parts += [
            f'<p class="soft">{escape(NO_TEXTS)}</p>',
            f"<h2>The output</h2>\n<p>{or_nothing(escape(output))}</p>",
        ]
    else:
        parts.append(_shared_texts(output, example))
    style = PAGE_STYLE + INSPECTION_STYLE + _STYLE
    return html_page(f"longsumbench: {inspection.title}", parts, style, content_policy(""))


def nearest_sentences(output: Sequence[str], source: Sequence[str]) -> list[NearestSentence]:
    """Return for each output sentence the source sentence that it resembles most; the first of equal ones."""
    words = RougeScorer(tokenizer="unicode", kernels="python").words
    texts, outputs = number_words([words(sentence) for sentence in source], [words(sentence) for sentence in output])
    if not texts or not outputs:
        return [NearestSentence(None, 0.0)] * len(outputs)
    scores = 50 * (rouge_n(texts, outputs, 1)["f1"] + rouge_n(texts, outputs, 2)["f1"])
    best = scores.argmax(axis=1).tolist()
    pairs = [(index, float(row[index])) for index, row in zip(best, scores, strict=True)]
    return [NearestSentence(index if score else None, score) for index, score in pairs]


def _shared_texts(output: str, example: Example) -> str:
    """Return the output, then the source, with marks on what they share."""
    source, references = list(example.sentences()), headed_references(example.references)
    sentences = split_summary(output)
    nearest = nearest_sentences(sentences, source)
    shared = shared_by(output, " ".join(source), " ".join(references.values()))
    marked = [mark_words(text, shared) for text in source]
    numbered = list(enumerate(zip(sentences, nearest, strict=True), start=1))
    rows = "".join(
        _html_row(number, mark_words(sentence, shared), best, marked) for number, (sentence, best) in numbered
    )
    spans = (
        _html_sentence(place, text, [number for number, (_, best) in numbered if best.place == place])
        for place, text in enumerate(marked)
    )
    source_html = "\n".join(_html_source(example, spans))
    kinds = {"one": "the source", "other": "a reference", "both": "both"}
    texts = {"output": output, **references}
    columns = "".join(html_text(heading, mark_words(text, shared)) for heading, text in texts.items())
    return (
        f'<div class="columns"><main>\n<h2>What the output shares with the source</h2>\n'
        f"{marks_legend('the output', kinds)}\n{_TABLE_START}{rows}</tbody></table></div>\n"
        f'<h2>The output and its references</h2>\n<div class="texts">{columns}</div>\n</main>\n'
        f'<aside class="whole"><h3>The source</h3>\n{source_html}\n</aside></div>'
    )


def _html_row(number: int, sentence: str, nearest: NearestSentence, source: Sequence[str]) -> str:
    """Return a row of the table: an output sentence, the nearest source sentence, their ROUGE."""
    cell = '<em class="soft">no source sentence shares a word</em>'
    if nearest.place is not None:
        link = f'<a href="#s{nearest.place + 1}">source sentence {nearest.place + 1}</a>'
        cell = f'<span class="soft">{link}:</span> {source[nearest.place]}'
    cells = f"<td>{sentence}</td><td>{cell}</td>"
    return f'<tr id="o{number}"><td class="r">{number}</td>{cells}<td class="r">{nearest.score:.0f}</td></tr>'


def _html_sentence(place: int, marked: str, numbers: Sequence[int]) -> str:
    """Return a source sentence with links to the output sentences that it is nearest to."""
    links = " ".join(f'<a href="#o{number}">{number}</a>' for number in numbers)
    kind, note = (' class="found"', f"<sup>{links}</sup>") if links else ("", "")
    return f'<span id="s{place + 1}"{kind}>{marked}{note}</span>'


def _html_source(example: Example, spans: Iterator[str]) -> Iterator[str]:
    """Yield the headings and paragraphs of the source; `spans` are its sentences."""
    several = len(example.documents) > 1
    for place, document in enumerate(example.documents, start=1):
        if several or document.source:
            yield f"<h3>{escape(document.source or f'document {place}')}</h3>"
        for section in document.sections:
            if section.name:
                yield f"<h4>{escape(section.name)}</h4>"
            for paragraph in section.paragraphs:
                yield f"<p>{' '.join(islice(spans, len(paragraph)))}</p>"
