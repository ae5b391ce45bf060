"""Does a reader's answer (`answers`) say of a planted fact what somebody who read the output said, and the matcher?

python benchmarks/fact_answers.py --reader NAME=FILE.gguf     asks a language model, and adds its answers' outcomes
python benchmarks/fact_answers.py                             the table of all readers

`benchmarks/fact_matching.py` describes the labelled facts and their sources; --outputs is the same folder. fact_answers.csv
has a row for a fact: its label, the matcher's verdict, and for each reader whether its answer from the output was right
(RIGHT), from nothing (GUESSED) and what is between (MISSING: "not said"). It has no texts. Greedy, in bfloat16. Labels are
older than the metric `answers`, so nothing was chosen to suit it.
"""

import argparse
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd
import yaml  # type: ignore[import-untyped] # not annotated
from fact_matching import HERE, Labelled, read_labels, read_written
from scipy.stats import binomtest
from tabulate import tabulate

from longsumbench.conf import CONF
from longsumbench.core import Example, Scoring, registry
from longsumbench.files import read_text, write_atomically
from longsumbench.metrics.fact_matching import MISSING, RIGHT, WRONG

OUTCOMES = HERE / "fact_answers.csv"
LABELS = ["source", "kind", "label", "matcher"]
READER, GUESS = "reader: ", "guess: "


@cache
def questions() -> dict[str, str]:
    """Return kind → what is asked about a planted fact."""
    return dict(yaml.safe_load(read_text(CONF / "answers.yaml"))["planted"])


def has_question(pair: Labelled) -> bool:
    """Return whether the metric has a question about facts of this kind; meetings have others."""
    kinds = " ".join(dict.fromkeys(part.kind for part in pair.fact.answer))
    return kinds in questions()


def ask_reader(name: str, file: str, pairs: list[Labelled], texts: list[str]) -> pd.DataFrame:
    """Return the labels with what a reader's answers are worth."""
    settings = {"dtype": "bfloat16"}
    scoring = Scoring(device="cpu", answer_model=file, judge_settings=settings)
    metric = registry.metrics.load("answers")(scoring)
    examples = []
    for number, pair in enumerate(pairs):
        examples.append(Example(str(number), None, None, (), (), planted=(pair.fact,)))
    metric.prepare(zip(texts, examples, strict=True))
    rows = []
    for text, example, pair in zip(texts, examples, pairs, strict=True):
        scores = metric.score(text, example)
        answer = MISSING if scores["answers_missing"] else WRONG
        row = {"source": pair.source, "kind": pair.fact.kind}
        row |= {"label": pair.label, "matcher": pair.verdict}
        row[READER + name] = RIGHT if scores["answers"] else answer
        row[GUESS + name] = RIGHT if scores["answers_guessed"] else WRONG
        rows.append(row)
    return pd.DataFrame(rows)


def describe(table: pd.DataFrame) -> Iterator[list[object]]:
    """Yield a row for each source and whoever says which facts an output states."""
    stated = table["label"] == RIGHT
    judges = ["matcher", *(column for column in table if column not in LABELS)]
    for source, rows in [*table.groupby("source"), ("all", table)]:
        for judge in judges:
            found = rows[judge] == RIGHT
            own = stated[rows.index]
            errors, size = int((found != own).sum()), len(rows)
            low, high = binomtest(errors, size).proportion_ci(method="wilson")
            apart = rows[(rows[judge] == RIGHT) != (rows["matcher"] == RIGHT)]
            matcher_right = (apart["matcher"] == RIGHT) == (apart["label"] == RIGHT)
            yield [
                source,
                judge,
                size,
                int(own.sum()),
                int((found & ~own).sum()),
                int((~found & own).sum()),
                f"{100 * errors / size:.1f}",
                f"{100 * low:.1f}–{100 * high:.1f}",
                len(apart),
                int(matcher_right.sum()),
            ]


def main() -> None:
    """Ask a reader, or print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--outputs", type=Path, default=HERE.parents[1] / "shared/data/qmsum_outputs"
    )
    parser.add_argument("--reader", metavar="NAME=FILE")
    options = parser.parse_args()
    if options.reader:
        name, _, file = options.reader.partition("=")
        labelled = [*read_labels(options.outputs), *read_written()]
        pairs = [pair for pair in labelled if has_question(pair)]
        print(f"{len(labelled) - len(pairs)} facts without a question of their kind are left out")
        table = ask_reader(name, file, pairs, [pair.text for pair in pairs])
        if OUTCOMES.exists():
            known = pd.read_csv(OUTCOMES).drop(columns=[*LABELS, *table.columns], errors="ignore")
            table = table.join(known)
        write_atomically(OUTCOMES, table.to_csv(index=False, lineterminator="\n"))
    headings = ["source", "by", "n", "stated", "false +", "false −", "error %", "95 %"]
    headings += ["unlike the matcher", "matcher right"]
    print(tabulate([*describe(pd.read_csv(OUTCOMES))], headings, disable_numparse=True))


if __name__ == "__main__":
    main()
