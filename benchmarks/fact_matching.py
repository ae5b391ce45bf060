"""How often does the matcher of planted facts (`fact_survival`) err on outputs that were read?

python benchmarks/fact_matching.py                          the error, by kind of fact and by system
python benchmarks/fact_matching.py --half held-out          of the half that the first corrections did not see
python benchmarks/fact_matching.py --errors                 also the errors themselves

`fact_matching.csv` has the labels, a row for a fact in an output: `source` and `system` of the output, `example`, `fact`
(a `PlantedFact` as JSON, or its number in the output's row), the beginning of the output's hash, and the `label`: right,
wrong or missing. Labels are by one reader, a language model.

* qmsum_outputs: a seeded draw of seven systems for each of 25 questions, without two pairs that can be read in two ways,
  in a folder of released outputs (--outputs), which is not part of this repository. The facts are of the meetings.
* fact_matching_outputs.jsonl: SmolLM2-135M-Instruct's summaries of 56 abstracts of `aclsum` since 2016 (CC BY 4.0), with
  two planted facts each: `model=prompt model.prompt=facts model.length=70 decode.no_repeat_ngram=6 dataset.plant=2`.
  They were labelled after the matcher was finished, and before it judged any of them.
* fact_matching_written.jsonl: sentences about 59 planted facts of all kinds, which the same reader wrote and labelled:
  denials, other forms of values, swapped answers. They are harder than summaries. Each of the five batches was labelled
  before the matcher judged any of it, and corrected the rules, the fourth by one word. Of the first and the fifth batch,
  the errors on the half "tuned" did, then two errors on the other half of the fifth. docs/reference/metrics.md has the
  errors at first sight.

A false positive is a fact that the matcher finds and the reader does not, a false negative the reverse. The error is
the share of both, with its 95 % interval (Wilson). Facts that both do not find, but only one calls wrong, are counted
apart.
"""

import argparse
import csv
import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from scipy.stats import binomtest
from tabulate import tabulate

from longsumbench.core import PlantedFact
from longsumbench.errors import DataError
from longsumbench.metrics.fact_matching import RIGHT, match_facts

HERE = Path(__file__).parent
LABELS, PLANTED = HERE / "fact_matching.csv", HERE / "fact_matching_outputs.jsonl"
WRITTEN = HERE / "fact_matching_written.jsonl"
HALVES = ("tuned", "held-out")


class _OutputRow(msgspec.Struct):
    id: str
    system: str
    output: str
    planted: tuple[PlantedFact, ...] = ()


class _WrittenRow(msgspec.Struct):
    """A fact, and the sentences about it in each batch, with their labels."""

    planted: PlantedFact
    batches: list[dict[str, str]]


class Labelled(NamedTuple):
    """A fact in an output, `text`: its label by reading, and what the matcher says."""

    source: str
    system: str
    example: str
    fact: PlantedFact
    label: str
    verdict: str
    text: str

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


def read_outputs(file: Path) -> dict[tuple[str, str], _OutputRow]:
    """Return the outputs of a file by example and system."""
    rows = msgspec.json.Decoder(_OutputRow).decode_lines(file.read_bytes())
    return {(row.id, row.system): row for row in rows}


def read_labels(released: Path) -> Iterator[Labelled]:
    """Yield the labelled facts with the matcher's verdict.

    Raises:
        DataError: an output is missing, or is not the one that was labelled.
    """
    outputs = {**read_outputs(released / "outputs.jsonl"), **read_outputs(PLANTED)}
    with LABELS.open(newline="", encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file), start=2):
            example, system = row["example"], row["system"]
            output = outputs.get((example, system), _OutputRow("", "", ""))
            digest = hashlib.sha256(output.output.encode()).hexdigest()
            if not digest.startswith(row["output_sha256"]):
                raise DataError("no output, or another one, for this label", LABELS, line)
            if output.planted:
                fact = output.planted[int(row["fact"])]
            else:
                fact = msgspec.json.decode(row["fact"], type=PlantedFact)
            [verdict] = match_facts([fact], output.output)
            yield Labelled(
                row["source"], system, example, fact, row["label"], verdict, output.output
            )


def read_written() -> Iterator[Labelled]:
    """Yield the written sentences with the matcher's verdict."""
    for row in msgspec.json.Decoder(_WrittenRow).decode_lines(WRITTEN.read_bytes()):
        for number, labels in enumerate(row.batches, start=1):
            for text, label in labels.items():
                [verdict] = match_facts([row.planted], text)
                batch = f"batch {number}"
                yield Labelled(WRITTEN.stem, batch, text, row.planted, label, verdict, text)


def describe_errors(name: str, pairs: Sequence[Labelled]) -> list[object]:
    """Return a row of the table."""
    positives = sum(pair.false_positive for pair in pairs)
    negatives = sum(pair.false_negative for pair in pairs)
    apart = sum(pair.label != pair.verdict for pair in pairs) - positives - negatives
    errors, n = positives + negatives, len(pairs)
    stated = sum(pair.label == RIGHT for pair in pairs)
    share = f"{100 * errors / n:.1f}"
    return [name, n, stated, positives, negatives, share, error_interval(errors, n), apart]


def error_interval(errors: int, number: int) -> str:
    """Return the 95 % interval of a share of errors (Wilson), in percent."""
    low, high = binomtest(errors, number).proportion_ci(method="wilson")
    return f"{100 * low:.1f}–{100 * high:.1f}"


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
    parser.add_argument(
        "--outputs", type=Path, default=HERE.parents[1] / "shared/data/qmsum_outputs"
    )
    parser.add_argument("--half", choices=HALVES)
    parser.add_argument("--errors", action="store_true")
    options = parser.parse_args()
    if not options.outputs.is_dir():
        raise SystemExit(f"no folder {options.outputs}: name that of the outputs with --outputs")
    pairs = [*read_labels(options.outputs), *read_written()]
    if options.half:
        pairs = [pair for pair in pairs if half_of(pair.example) == options.half]
    print_table(pairs, lambda pair: pair.source, "source")
    print_table(pairs, lambda pair: pair.fact.kind, "kind")
    print_table(pairs, lambda pair: pair.system, "system")
    for pair in pairs:
        if options.errors and pair.label != pair.verdict:
            answer = ", ".join(part.text for part in pair.fact.answer)
            fact = f"{pair.fact.subject.text}: {answer}"
            print(f"{pair.verdict}, not {pair.label}: {fact} ({pair.example}, {pair.system})")


if __name__ == "__main__":
    main()
