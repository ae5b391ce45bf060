"""Does a reader's answer (`answers`) say of a planted fact what somebody who read the output said, and the matcher?

python benchmarks/fact_answers.py --reader NAME=FILE.gguf     asks a language model, and adds its answers' outcomes
python benchmarks/fact_answers.py                             the table of all readers

`benchmarks/fact_matching.py` describes the labelled facts and their sources; --outputs is the same folder. fact_answers.csv
has a row for a fact: its label, the matcher's verdict, and what each reader's answer was worth, from the output and as a
guess without it: right, wrong or missing. It has no texts. Readers are greedy, in bfloat16. Labels are older than the metric
`answers`, so none was chosen to suit it; the fifth batch of written sentences is newer, and is left out.
"""

import argparse
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml  # type: ignore[import-untyped] # not annotated
from fact_matching import HERE, Labelled, error_interval, read_labels, read_written
from tabulate import tabulate

from longsumbench.conf import CONF
from longsumbench.core import Example, Scoring, registry
from longsumbench.files import read_text, write_atomically
from longsumbench.metrics.fact_matching import MISSING, RIGHT, WRONG

OUTCOMES = HERE / "fact_answers.csv"
PAGE = "docs/how-to/answers.md"
LABELS = ["source", "kind", "label", "matcher"]
READER, GUESS = "reader: ", "guess: "
NEWER = "batch 5"


@cache
def questions() -> dict[str, str]:
    """Return kind → what is asked about a planted fact."""
    return dict(yaml.safe_load(read_text(CONF / "answers.yaml"))["planted"])


def has_question(pair: Labelled) -> bool:
    """Return whether the metric has a question about facts of this kind; meetings have others."""
    kinds = " ".join(dict.fromkeys(part.kind for part in pair.fact.answer))
    return kinds in questions()


def ask_reader(name: str, file: str, pairs: list[Labelled]) -> pd.DataFrame:
    """Return the labels with what a reader's answers are worth."""
    settings = {"dtype": "bfloat16"}
    scoring = Scoring(device="cpu", answer_model=file, judge_settings=settings)
    metric = registry.metrics.load("answers")(scoring)
    examples = []
    for number, pair in enumerate(pairs):
        examples.append(Example(str(number), None, None, (), (), planted=(pair.fact,)))
    metric.prepare((pair.text, example) for pair, example in zip(pairs, examples, strict=True))
    rows = []
    for pair, example in zip(pairs, examples, strict=True):
        scores = metric.score(pair.text, example)
        row = {"source": pair.source, "kind": pair.fact.kind}
        row |= {"label": pair.label, "matcher": pair.verdict}
        # Without an answer, shares are NaN: it says nothing.
        answer = WRONG if scores["answers_wrong"] > 0 else MISSING
        row[READER + name] = RIGHT if scores["answers"] > 0 else answer
        row[GUESS + name] = RIGHT if scores["answers_guessed"] > 0 else WRONG
        rows.append(row)
    return pd.DataFrame(rows)


class Errors(NamedTuple):
    """How often somebody errs about whether an output states a fact, and how often otherwise than the matcher does."""

    size: int
    stated: int
    found_wrongly: int
    missed: int
    unlike: int
    matcher_right: int

    @property
    def share(self) -> str:
        """The errors in percent."""
        return f"{100 * (self.found_wrongly + self.missed) / self.size:.1f}"

    @property
    def interval(self) -> str:
        """The 95 % interval of the errors (Wilson), in percent."""
        return error_interval(self.found_wrongly + self.missed, self.size)


def count_errors(rows: pd.DataFrame, column: str) -> Errors:
    """Compare a column of outcomes with the labels, and with the matcher where the two differ."""
    stated, found, by_matcher = (rows[name] == RIGHT for name in ("label", column, "matcher"))
    unlike = found != by_matcher
    return Errors(
        len(rows),
        int(stated.sum()),
        int((found & ~stated).sum()),
        int((~found & stated).sum()),
        int(unlike.sum()),
        int((by_matcher == stated)[unlike].sum()),
    )


def describe(table: pd.DataFrame) -> Iterator[list[object]]:
    """Yield a row for each source and whoever says which facts an output states."""
    judges = ["matcher", *(str(column) for column in table if column not in LABELS)]
    for source, rows in [*table.groupby("source"), ("all", table)]:
        for judge in judges:
            errors = count_errors(rows, judge)
            yield [source, judge, *errors[:4], errors.share, errors.interval, *errors[4:]]


def sentences_of(table: pd.DataFrame) -> Iterator[str]:
    """Say how often each reader errs, and who is right where the matcher differs."""
    matcher = count_errors(table, "matcher")
    for column in table:
        if str(column).startswith(READER):
            errors, name = count_errors(table, str(column)), str(column).removeprefix(READER)
            guesses = count_errors(table, GUESS + name)
            yield (
                f"Of {errors.size:,} labelled facts, {name} errs about {errors.share} % ({errors.interval}),"
                f" without any text about {guesses.share} %, and the matcher about {matcher.share} %. {name} and the"
                f" matcher differ about {errors.unlike}; there, the label is the matcher's in {errors.matcher_right}."
            )


def main() -> None:
    """Ask a reader, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--outputs", type=Path, default=HERE.parents[1] / "shared/data/qmsum_outputs"
    )
    parser.add_argument("--reader", metavar="NAME=FILE")
    parser.add_argument("--check", action="store_true", help=f"compare the sentences with {PAGE}")
    options = parser.parse_args()
    if options.reader:
        name, _, file = options.reader.partition("=")
        labelled = [*read_labels(options.outputs), *read_written()]
        older = [pair for pair in labelled if pair.system != NEWER]
        pairs = [pair for pair in older if has_question(pair)]
        print(f"{len(older) - len(pairs)} facts without a question of their kind are left out")
        table = ask_reader(name, file, pairs)
        if OUTCOMES.exists():
            earlier = pd.read_csv(OUTCOMES)
            if not earlier[LABELS].equals(table[LABELS]):
                sys.exit(f"{OUTCOMES.name} has other labels: remove it, and ask all readers again")
            table = table.join(earlier.drop(columns=[*table.columns], errors="ignore"))
        write_atomically(OUTCOMES, table.to_csv(index=False, lineterminator="\n"))
    outcomes = pd.read_csv(OUTCOMES)
    sentences = [*sentences_of(outcomes)]
    if options.check:
        page = " ".join((HERE.parent / PAGE).read_text(encoding="utf-8").split())
        sys.exit(
            "\n".join(f"{PAGE} lacks: {said}" for said in sentences if said not in page) or None
        )
    headings = ["source", "by", "n", "stated", "false +", "false −", "error %", "95 %"]
    headings += ["unlike the matcher", "matcher right"]
    print(tabulate([*describe(outcomes)], headings, disable_numparse=True), *sentences, sep="\n")


if __name__ == "__main__":
    main()
