"""The browser of examples of a dataset: the page `examples.html` and its data, which the browser loads on demand.

    examples/browser.{js,css}
    examples/texts/<part>.js          sources and references of some examples
    examples/runs/<run>-0.js          scores of a run, and which of its parts has which example
    examples/outputs/<run>-<part>.js  outputs of some examples, with the verdicts on their sentences

<run> is the place of the run on the page, from 0. A data file calls `receive`: a page that is opened as a file can load
scripts, but no JSON.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, islice
from pathlib import Path
from shutil import rmtree
from typing import Any

import msgspec

from longsumbench.core import Example, SentenceScores, Summary, count_words
from longsumbench.errors import DataError
from longsumbench.files import write_atomically
from longsumbench.formatting import unguard_cell
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, find_heading
from longsumbench.leaderboards.seed_groups import group_rows_by_seed, unit_factor
from longsumbench.metrics.evaluate import score_column
from longsumbench.outputs.inspection import inspection_folder
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, output_files
from longsumbench.runs.results import Results, split_read_by
from longsumbench.runs.run_names import describe_run
from longsumbench.runs.verdicts import judged_lists, read_verdicts
from longsumbench.site.pages import ExamplesPage, Links, page_name
from longsumbench.views.html import static_text

SHOWN_EXAMPLES = 200  # of a dataset: the first ones of the split
SHOWN_RUNS = 100  # of a dataset
_PART_BYTES = 250_000  # of a data file, unless a single example is larger
_SOURCE_BYTES = 400_000  # of the shown part of a source
_OUTPUT_LENGTH = 60_000  # characters of the shown part of an output
_ADVICE = "repeat its run with overwrite=true"


def write_examples(
    results: Results, dataset: str, records: Sequence[RunRecord], site: Path, links: Links
) -> dict[str, bool]:
    """Write the browser of examples of a dataset; return id of a shown run → True if its outputs are there.

    Without examples no page is written, and the result is empty.

    It shows the first examples of the split. Of the runs on these texts, it shows the latest one of each row, the best
    rows first. Only what is shown is read. Damaged files are reported, and the rest is shown.
    """
    page, data = site / dataset / "examples.html", site / dataset / "examples"
    page.unlink(missing_ok=True)
    rmtree(data, ignore_errors=True)
    # Runs on other texts or splits are left out: their examples are others
    texts = Counter((run.key.split, run.key.fingerprint) for run in records).most_common(1)[0][0]
    same_texts = [run for run in records if (run.key.split, run.key.fingerprint) == texts]
    rows = group_rows_by_seed(same_texts, {})[:SHOWN_RUNS]
    # One run for each row; further seeds read the same texts
    runs = [max(row.runs, key=lambda run: run.finished) for row in rows]
    splits = (split_read_by(results.run_folder(run), run) for run in runs)
    split = next(filter(None, splits), None)
    ids = split.ids[:SHOWN_EXAMPLES] if split else _written_ids(results, runs)
    if not ids:
        return {}
    examples: list[Example] = []
    with _leaving_out(results, data):
        examples = split[: len(ids)] if split else []
    index: dict[str, Any] = {"ids": ids, "measure": score_column(runs[0].evaluation.ranked_by)}
    index["texts"] = _write_parts(data, "texts/", map(_shown_texts, examples))
    index["runs"] = []
    for place, (run, row) in enumerate(zip(runs, rows, strict=True)):
        facts = _write_run(results, run, data, f"{place}", ids)
        label = describe_run(run, row.name)
        index["runs"].append({**facts, "label": label, "page": page_name(run)})
    for kind in ("css", "js"):
        write_atomically(data / f"browser.{kind}", static_text(f"examples.{kind}"))
    ExamplesPage(
        path=f"{dataset}/examples.html",
        title=f"Examples of {dataset}",
        links=links,
        dataset=dataset,
        split=runs[0].key.split,
        num_runs=len(records),
        total=len(split) if split else max(run.num_outputs for run in runs),
        index=index,
    ).write(site)
    return {run["id"]: run["outputs"] for run in index["runs"]}


def _written_ids(results: Results, runs: Sequence[RunRecord]) -> list[str]:
    """Return the ids of the first examples that a run has outputs or scores of; empty without any."""
    for run in runs:
        ids = list(_read_outputs(results, run) or _read_scores(results, run))
        if ids:
            return ids
    return []


@contextmanager
def _leaving_out(results: Results, path: Path) -> Iterator[None]:
    """Report a damaged file; a missing one is no damage."""
    try:
        yield
    except FileNotFoundError:
        pass
    except DataError as error:
        results.leave_out(error)
    except (OSError, ValueError, TypeError, KeyError, csv.Error) as error:
        results.leave_out(DataError(f"cannot be read ({error}); {_ADVICE}", path))


def _read_outputs(results: Results, run: RunRecord) -> dict[str, Summary]:
    outputs: dict[str, Summary] = {}
    path = results.run_folder(run) / "predictions.jsonl"
    with _leaving_out(results, path):
        outputs = {summary.id: summary for summary in read_summaries(path, SHOWN_EXAMPLES)}
        missing = min(run.num_outputs, SHOWN_EXAMPLES) - len(outputs)
        if path.exists() and missing > 0:
            raise DataError(f"{missing} of the first outputs cannot be read; {_ADVICE}", path)
    return outputs


def _score_columns(run: RunRecord) -> dict[str, str]:
    """Return column of the per-example scores → name of the number."""
    return {score_column(name): name for name in (*run.evaluation.measures, *ROUGE_HEADINGS)}


def _read_scores(results: Results, run: RunRecord) -> dict[str, dict[str, float]]:
    """Return id → column → score, 0–100 or in its unit; of several checkpoints, those of the best."""
    path = results.run_folder(run) / output_files(len(run.evaluation.checkpoints))[0][1]
    columns = _score_columns(run)
    scores: dict[str, dict[str, float]] = {}
    with _leaving_out(results, path), path.open(encoding="utf-8-sig", newline="") as file:
        for row in islice(csv.DictReader(file), SHOWN_EXAMPLES):
            numbers = scores.setdefault(unguard_cell(row["id"]), {})
            for column in row.keys() & columns:
                factor = unit_factor(run, columns[column])
                numbers[column] = factor * float(row[column])
    return scores


def _write_run(
    results: Results, run: RunRecord, data: Path, name: str, ids: Sequence[str]
) -> dict[str, Any]:
    """Write the scores and outputs of a run; return what the page says about it."""
    outputs, scores = _read_outputs(results, run), _read_scores(results, run)
    folder = results.run_folder(run)
    verdicts: SentenceScores = {}
    with _leaving_out(results, folder):
        verdicts = read_verdicts(folder, SHOWN_EXAMPLES)
    shown_outputs = {}
    for example, output in outputs.items():
        text = output.text[:_OUTPUT_LENGTH]
        judged = judged_lists(verdicts, example, text)
        facts = len(output.text), output.complete, judged, count_words([output.text])
        shown_outputs[example] = text, *facts
    columns = _score_columns(run)
    measures = []
    for column, number in columns.items():
        measures.append((column, find_heading(number), run.evaluation.units.get(number, "")))
    rows = []
    for example in ids:
        numbers = scores.get(example, {})
        rows.append([numbers.get(column) for column in columns])
    pages = inspection_folder(results, run)
    content = {
        "measures": measures,
        "scores": rows,
        "parts": _write_parts(
            data, f"outputs/{name}-", map(shown_outputs.get, ids if outputs else ())
        ),
        "pages": [index for index in range(len(ids)) if (pages / f"{index}.html").is_file()],
    }
    _write_parts(data, f"runs/{name}-", [content])
    return {"id": run.run_id, "oracle": run.oracle, "outputs": bool(outputs)}


def _shown_texts(example: Example) -> dict[str, Any]:
    """Return the texts of an example. Of a source, the first `_SOURCE_BYTES` are shown.

    A row of it is (kind, text): "d" and "s" name a document and a section; "p" begins a paragraph, and "" is its next
    sentence.
    """
    rows, size = [], 0
    sentences = []
    for kind, text in _source_rows(example):
        size += len(_encode((kind, text)))
        # The browser says how many words are shown, of how many
        if size > _SOURCE_BYTES:
            break
        rows.append((kind, text))
        if kind in ("p", ""):
            sentences.append(text)
    return {
        "title": example.title,
        "query": example.query,
        "references": example.references,
        "reference_words": list(map(count_words, example.references)),
        "source": rows,
        "words": count_words(sentences),
        "all_words": example.source_words(),
    }


def _source_rows(example: Example) -> Iterator[tuple[str, str]]:
    for place, document in enumerate(example.documents, start=1):
        if document.source or example.documents[1:]:
            yield "d", document.source or f"Document {place}"
        for section in document.sections:
            if section.name:
                yield "s", section.name
            for paragraph in section.paragraphs:
                for number, sentence in enumerate(paragraph):
                    yield "" if number else "p", sentence


def _write_parts(data: Path, name: str, values: Iterable[Any]) -> list[int]:
    """Write values to data files of about `_PART_BYTES`; return the place of the first value of each."""
    parts: list[list[bytes]] = []
    for value in map(_encode, values):
        if not parts or len(value) + sum(map(len, parts[-1])) > _PART_BYTES:
            parts.append([])
        parts[-1].append(value)
    for index, part in enumerate(parts):
        call = b'receive("%b%d", [%b]);\n' % (name.encode(), index, b",\n".join(part))
        write_atomically(data / f"{name}{index}.js", call)
    return [0, *accumulate(map(len, parts))][:-1]


def _encode(value: Any) -> bytes:
    """Return JSON without `<`, so that no text can be taken for an element."""
    return msgspec.json.encode(value).replace(b"<", b"\\u003c")
