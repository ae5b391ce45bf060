"""What metrics found about each sentence of a run's summaries: `verdicts-<metric>.jsonl`, and its HTML.

A line is {"id", "verdicts": [[score, source], …]}, with an entry for each sentence: a score, 0–1, and the index of the
source sentence that decided it. Entries of key points come first and have their text.
"""

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from longsumbench.core import Metric, SentenceVerdict
from longsumbench.errors import DataError
from longsumbench.files import BadFile, parse_json, read_text, write_atomically
from longsumbench.formatting import format_count
from longsumbench.sentences import split_summary

Verdicts: TypeAlias = Mapping[str, Mapping[str, Sequence[SentenceVerdict]]]  # metric → id → a verdict for each sentence
_PREFIX, _DECIMALS = "verdicts-", 6
_UNSUPPORTED = 0.5  # a sentence with a lower score is pointed out


class _VerdictLine(TypedDict):
    id: str
    verdicts: list[SentenceVerdict]


def write_verdicts(folder: Path, metrics: Sequence[Metric]) -> None:
    """Write the verdicts of the metrics that have some."""
    for metric in metrics:
        rows = [
            {"id": name, "verdicts": [_plain_verdict(*verdict) for verdict in verdicts]}
            for name, verdicts in metric.verdicts.items()
        ]
        if rows:
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            write_atomically(folder / f"{_PREFIX}{metric.name}.jsonl", lines)


def _plain_verdict(score: float, source: int, key_point: str | None) -> list[Any]:
    return [round(score, _DECIMALS), source, *([] if key_point is None else [key_point])]


def read_verdicts(folder: Path) -> Verdicts:
    """Read the verdicts of a run; empty if it has none.

    Raises:
        DataError: a file is damaged.
    """
    verdicts: dict[str, dict[str, list[SentenceVerdict]]] = {}
    for path in sorted(folder.glob(f"{_PREFIX}*.jsonl")):
        of_metric = verdicts.setdefault(path.stem.removeprefix(_PREFIX), {})
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            try:
                row = parse_json(line, _VerdictLine)
            except BadFile as problem:
                raise DataError(f"{problem}; delete the file, and score the run again", path, number) from problem
            of_metric[row["id"]] = row["verdicts"]
    return verdicts


def html_verdicts(verdicts: Verdicts, name: str, text: str, label: str = "") -> str:
    """Return the sentences of a summary with their scores, for each metric; empty without verdicts.

    Args:
        verdicts: those of its run.
        name: id of the example.
        text: the summary.
        label: the run in headings, if there are several.
    """
    sentences, heading, parts = split_summary(text), f"{label}: " if label else "", []
    for metric, of_metric in verdicts.items():
        scored = [verdict for verdict in of_metric.get(name, ()) if verdict.key_point is None]
        points = [verdict for verdict in of_metric.get(name, ()) if verdict.key_point is not None]
        if scored and len(scored) == len(sentences):  # else there is no verdict of this text
            if points:
                texts = [str(point.key_point) for point in points]
                parts.append(_html_verdict_list(heading + metric, "key point", texts, points))
            parts.append(_html_verdict_list(heading + metric, "sentence", sentences, scored))
    return "".join(parts)


def _html_verdict_list(heading: str, noun: str, texts: Sequence[str], verdicts: Sequence[SentenceVerdict]) -> str:
    low = sum(verdict.score < _UNSUPPORTED for verdict in verdicts)
    title = f"{heading}, {low} of {format_count(len(verdicts), noun)} below {_UNSUPPORTED:.0%}"
    rows = []
    for text, (score, source, _) in zip(texts, verdicts, strict=True):
        share = f"<b>{score:.0%}</b>" if score < _UNSUPPORTED else f"{score:.0%}"
        place = f' <span class="soft">(source sentence {source + 1})</span>' if source >= 0 else ""
        rows.append(f"<li>{share} {escape(text)}{place}</li>")
    return f"<details><summary>{escape(title)}</summary><ol>{''.join(rows)}</ol></details>"
