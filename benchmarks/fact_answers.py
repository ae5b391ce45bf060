"""Does a reader's answer (`answers`) say of a planted fact what somebody who read the output said, and the matcher?

python benchmarks/fact_answers.py --reader NAME=FILE.gguf     asks a language model, and adds its answers' outcomes
python benchmarks/fact_answers.py                             the tables of all readers, and of the runs with both metrics
python benchmarks/fact_answers.py --publish RESULTS           packs the runs that docs/how-to/answers.md names; --write

`benchmarks/fact_matching.py` describes the labelled facts and their sources; --outputs is the same folder. fact_answers.csv
has a row for a fact: its label, the matcher's verdict, and what each reader's answer was worth, from the output and as a
guess without it: right, wrong or missing. It has no texts. Readers are greedy, in bfloat16. Labels are older than the metric
`answers`, so none was chosen to suit it; the fifth batch of written sentences is newer, and is left out.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import yaml  # type: ignore[import-untyped] # not annotated
from fact_matching import HERE, Labelled, error_interval, read_labels, read_written
from probe_claims import Table
from readings import label_of, show_or_write, with_interval
from real_systems import KEPT, PUBLISHED, publish
from tabulate import tabulate

from longsumbench.conf import CONF
from longsumbench.core import Example, Scoring, registry
from longsumbench.files import read_text, write_atomically
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.fact_matching import MISSING, RIGHT, WRONG
from longsumbench.runs.results import Results
from longsumbench.runs.verdicts import read_verdicts

OUTCOMES = HERE / "fact_answers.csv"
PAGE = "docs/how-to/answers.md"
LABELS = ["source", "kind", "label", "matcher"]
READER, GUESS = "reader: ", "guess: "
NEWER = "batch 5"
RUNS, METRICS = "answers_aclsum", ("fact_survival", "answers")
Outcomes = Mapping[
    tuple[str, bool, bool], int
]  # (kind, stated by the matcher, answered right) → facts


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


def publish_runs(folder: Path) -> None:
    """Pack the runs of RUNS with what both metrics found about each fact."""
    verdicts = [f"verdicts-{metric}.jsonl" for metric in METRICS]
    runs = [path.parent for path in folder.glob(f"runs/{RUNS}/*/*/record.json")]
    publish(runs, [RUNS], Results(PUBLISHED), files=(*KEPT, *verdicts))


def table_of_runs(rows: list[ResultRow]) -> Table:
    """Return what both metrics say of each system."""
    reader = ("wrong", "missing", "source", "unrelated", "guessed")
    columns = [*METRICS, *(f"answers_{suffix}" for suffix in reader)]
    lines = []
    for row in rows:
        lines.append((label_of(row), *(with_interval(row, column) for column in columns)))
    headings = ("facts stated", "answers right", "wrong", "not said")
    without_summary = ("from the source", "from another text", "guessed")
    return Table(PAGE, ("ACLSum, 8 facts a paper", *headings, *without_summary), lines)


def count_facts(folders: list[Path]) -> Outcomes:
    """Count the facts of some runs by what the matcher and the reader say."""
    counts: Counter[tuple[str, bool, bool]] = Counter()
    for folder in folders:
        stated, answered = (read_verdicts(folder)[metric] for metric in METRICS)
        for example, facts in stated.items():
            for fact, answer in zip(facts, answered[example], strict=True):
                # "missing, date: The ferry …"
                kind = f"{fact[2]}".partition(":")[0].rpartition(", ")[2]
                counts[kind, fact[0] > 0, answer[0] > 0] += 1
    return counts


def sentence_of_runs(counts: Outcomes) -> str:
    """Say on how many facts reader and matcher agree, and of which kind those are that the reader alone has."""
    agreed = sum(number for (_, stated, right), number in counts.items() if stated == right)
    alone = {kind: counts[kind, False, True] for kind, stated, right in counts if right > stated}
    kinds = ", ".join(f"{alone[kind]} of the kind `{kind}`" for kind in sorted(alone))
    return (
        f"Of {sum(counts.values())} facts, reader and matcher agree about {agreed}. The reader alone is right about"
        f" {sum(alone.values())}: {kinds or 'none'}."
    )


def main() -> None:
    """Ask a reader, or print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--outputs", type=Path, default=HERE.parents[1] / "shared/data/qmsum_outputs"
    )
    parser.add_argument("--reader", metavar="NAME=FILE")
    parser.add_argument("--publish", type=Path, metavar="RESULTS")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE}")
    parser.add_argument("--check", action="store_true", help=f"compare {PAGE}")
    options = parser.parse_args()
    if options.publish:
        publish_runs(options.publish)
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
    results = Results(PUBLISHED)
    rows = [row for block in read_table(results, RUNS).comparable for row in block.rows]
    folders = [results.run_folder(row.representative) for row in rows]
    sentences.append(sentence_of_runs(count_facts(folders)))
    headings = ["source", "by", "n", "stated", "false +", "false −", "error %", "95 %"]
    headings += ["unlike the matcher", "matcher right"]
    if not options.check:
        print(tabulate([*describe(outcomes)], headings, disable_numparse=True))
    show_or_write(PAGE, [table_of_runs(rows)], sentences, options)


if __name__ == "__main__":
    main()
