"""What metrics found about each sentence of a run's summaries: `verdicts-<metric>.jsonl`, and their lists on pages.

A line is {"id", "verdicts": [[score, source], …]}, with an entry for each sentence: a score, 0–1, and the index of the
source sentence that decided it. Entries of key points come first and have their text; some metrics have no others.
"""

import json
from pathlib import Path
from typing import NamedTuple, TypedDict

from longsumbench.core import SentenceScore, SentenceScores
from longsumbench.errors import DataError
from longsumbench.files import BadFile, parse_json, read_text, write_atomically
from longsumbench.formatting import format_count
from longsumbench.sentences import split_summary

_PREFIX, _DECIMALS = "verdicts-", 6
_UNSUPPORTED = 0.5  # a sentence with a lower score is pointed out


class _VerdictLine(TypedDict):
    id: str
    verdicts: list[SentenceScore]


def write_verdicts(folder: Path, verdicts: SentenceScores) -> None:
    """Write the verdicts of each metric."""
    for metric, of_metric in verdicts.items():
        lines = ""
        for name, sentences in of_metric.items():
            row = []
            for score, source, key_point in sentences:
                row.append([round(score, _DECIMALS), source, *filter(None, [key_point])])
            lines += json.dumps({"id": name, "verdicts": row}) + "\n"
        write_atomically(folder / f"{_PREFIX}{metric}.jsonl", lines)


def read_verdicts(folder: Path, limit: int | None = None) -> SentenceScores:
    """Read the verdicts of a run, or the first ones of each metric; empty if it has none.

    Raises:
        DataError: a file is damaged.
    """
    verdicts: dict[str, dict[str, list[SentenceScore]]] = {}
    for path in sorted(folder.glob(f"{_PREFIX}*.jsonl")):
        of_metric = verdicts.setdefault(path.stem.removeprefix(_PREFIX), {})
        for number, line in enumerate(read_text(path).splitlines()[:limit], start=1):
            try:
                row = parse_json(line, _VerdictLine)
            except BadFile as problem:
                raise DataError(
                    f"{problem}; delete the file, and score the run again", path, number
                ) from problem
            of_metric[row["id"]] = row["verdicts"]
    return verdicts


class JudgedSentence(NamedTuple):
    """A sentence or a key point of a summary with its verdict."""

    text: str
    share: str
    low: bool
    place: int  # of the source sentence that decided it, from 1; 0 without one


def judged_lists(
    verdicts: SentenceScores, name: str, text: str
) -> list[tuple[str, list[JudgedSentence]]]:
    """Return a heading and the sentences of a summary with their scores, for each metric; empty without verdicts.

    Args:
        verdicts: those of its run.
        name: id of the example.
        text: the summary.
    """
    sentences, lists = split_summary(text) if verdicts else [], []
    for metric, of_metric in verdicts.items():
        found = of_metric.get(name, ())
        scored = [verdict for verdict in found if not verdict.key_point]
        points = [(verdict.key_point, verdict) for verdict in found if verdict.key_point]
        if len(scored) != len(sentences) and (scored or not points):  # no verdict of this text
            continue
        for noun, pairs in (
            ("key point", points),
            ("sentence", list(zip(sentences, scored, strict=False))),
        ):
            judged = [
                JudgedSentence(sentence, f"{score:.0%}", score < _UNSUPPORTED, source + 1)
                for sentence, (score, source, _) in pairs
            ]
            low = f"{sum(row.low for row in judged)} of {format_count(len(judged), noun)} below {_UNSUPPORTED:.0%}"
            if judged:
                lists.append((f"{metric}, {low}", judged))
    return lists
