"""How often does the matcher of planted facts (`fact_survival`) err on outputs that were read?

python benchmarks/fact_matching.py                          the error, by kind of fact and by system
python benchmarks/fact_matching.py --half held-out          of the half that the first corrections did not see
python benchmarks/fact_matching.py --errors                 also the errors themselves

`fact_matching.csv` has the labels, a row for a fact in an output: `source` and `system` of the output, `example`,
`fact`, the beginning of the output's hash, and the `label` by reading it: right, wrong or missing. A fact is JSON (a
`PlantedFact`), or its number in the output's row. Outputs with the source qmsum_outputs are in a folder of released
outputs (--outputs), which is not part of this repository; without the folder they are left out. They are a seeded draw
of seven systems for each of 25 questions, without two pairs that can be read in two ways. Others are in
`fact_matching_outputs.jsonl`, a row {"id", "system", "output", "planted"} for each.

A false positive is a fact that the matcher finds and the reader does not, a false negative the reverse. The error is
the share of both, with its 95 % interval (Wilson). Facts that both do not find, but only one calls wrong, are counted
apart.
"""

import argparse
import csv
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from tabulate import tabulate

from longsumbench.core import PlantedFact
from longsumbench.errors import DataError
from longsumbench.metrics.fact_matching import RIGHT, judge_facts

HERE = Path(__file__).parent
LABELS, OUTPUTS = HERE / "fact_matching.csv", HERE / "fact_matching_outputs.jsonl"
RELEASED = "qmsum_outputs"
HALVES = ("tuned", "held-out")
_NORMAL_QUANTILE = 1.96


class _OutputRow(msgspec.Struct):
    id: str
    system: str
    output: str
    planted: tuple[PlantedFact, ...] = ()


class Labelled(NamedTuple):
    """A fact in an output: its label by reading, and what the matcher says."""

    system: str
    example: str
    fact: PlantedFact
    label: str
    verdict: str
    output: str

    @property
    def false_positive(self) -> bool:
        """The matcher alone finds the fact."""
        return self.verdict == RIGHT != self.label

    @property
    def false_negative(self) -> bool:
        """The reader alone finds the fact."""
        return self.label == RIGHT != self.verdict


def half_of(example: str) -> str:
    """Return in which half of the examples an example is; its id alone decides."""
    return HALVES[hashlib.sha256(example.encode()).digest()[0] % 2]


def read_outputs(path: Path) -> dict[tuple[str, str], _OutputRow]:
    """Return (example, system) → output; empty without the file."""
    if not path.is_file():
        return {}
    rows = msgspec.json.Decoder(_OutputRow).decode_lines(path.read_bytes())
    return {(row.id, row.system): row for row in rows}


def read_labels(released: Path) -> Iterator[Labelled]:
    """Yield the labelled facts whose outputs are there, with the matcher's verdict.

    Raises:
        DataError: an output is not the one that was labelled, or is missing in a file that is there.
    """
    sources = {
        RELEASED: read_outputs(released / "outputs.jsonl"),
        OUTPUTS.stem: read_outputs(OUTPUTS),
    }
    with LABELS.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            outputs = sources[row["source"]]
            if not outputs:
                continue
            output = outputs.get((row["example"], row["system"]))
            digest = hashlib.sha256(output.output.encode()).hexdigest() if output else ""
            if output is None or not digest.startswith(row["output_sha256"]):
                raise DataError("no output, or another one, for this label", LABELS, line)
            number = json.loads(row["fact"])
            if isinstance(number, int):
                facts, place = output.planted, number
            else:
                facts, place = (msgspec.convert(number, PlantedFact),), 0
            verdict = judge_facts(facts, output.output)[place]
            yield Labelled(
                row["system"], row["example"], facts[place], row["label"], verdict, output.output
            )


def wilson(errors: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    share, z2 = errors / n, _NORMAL_QUANTILE**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _NORMAL_QUANTILE / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def describe_errors(name: str, pairs: Sequence[Labelled]) -> list[object]:
    """Return a row of the table."""
    positives = sum(pair.false_positive for pair in pairs)
    negatives = sum(pair.false_negative for pair in pairs)
    apart = sum(pair.label != pair.verdict for pair in pairs) - positives - negatives
    errors, n = positives + negatives, len(pairs)
    low, high = wilson(errors, n)
    stated = sum(pair.label == RIGHT for pair in pairs)
    interval = f"{100 * low:.1f}–{100 * high:.1f}"
    return [name, n, stated, positives, negatives, f"{100 * errors / n:.1f}", interval, apart]


def print_table(pairs: Sequence[Labelled], group: Callable[[Labelled], str], heading: str) -> None:
    """Print the errors of each group of labelled facts, and of all."""
    groups: dict[str, list[Labelled]] = {}
    for pair in pairs:
        groups.setdefault(group(pair), []).append(pair)
    rows = [describe_errors(name, members) for name, members in sorted(groups.items())]
    rows.append(describe_errors("all", pairs))
    headings = [heading, "n", "stated", "false +", "false −", "error %", "95 %", "wrong/missing"]
    print(tabulate(rows, headings), end="\n\n")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=Path, default=HERE.parents[1] / "shared/data" / RELEASED)
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--errors", action="store_true")
    options = parser.parse_args()
    pairs = list(read_labels(options.outputs))
    if options.half:
        pairs = [pair for pair in pairs if half_of(pair.example) == options.half]
    if not pairs:
        raise SystemExit("no labelled output is there: name their folder with --outputs")
    print_table(pairs, lambda pair: pair.fact.kind, "kind")
    print_table(pairs, lambda pair: pair.system, "system")
    for pair in pairs:
        if options.errors and pair.label != pair.verdict:
            answer = ", ".join(part.text for part in pair.fact.answer)
            fact = f"{pair.fact.subject.text}: {answer}"
            print(f"{pair.verdict}, not {pair.label}: {fact} ({pair.example}, {pair.system})")


if __name__ == "__main__":
    main()
