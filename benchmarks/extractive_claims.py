"""The tables of the extractive track in docs/findings.md: is a trained scorer ahead of baselines?

    python benchmarks/extractive_claims.py [--results-dir DIR] [--check | --write]

From results/reference: for each dataset, the trained scorers' runs on all seeds (`scale=extractive`) are compared with
every baseline on the same examples: the difference with its 95 % interval and p-value over examples and seeds, and in
how many seeds it is above 0.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from probe_claims import FINDINGS, RESULTS, Table, differences, put_tables

from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.leaderboards.seed_groups import ResultRow, ScoresOfRuns, compare_groups
from longsumbench.leaderboards.significance import (
    Outcome,
    build_blocks,
    correct_differences,
    read_all_scores,
)
from longsumbench.runs.results import Results

SCALE, SEEDS = "extractive", 5
MEASURES = ("rouge1", "rougeLsum")
BASELINES = ("lead", "random", "lexrank", "ranker redundancy=0.3")
SCORERS = ("ea", "seal")
PRETRAINED = "pretrained_aclsum"


@dataclass(frozen=True)
class Comparison:
    """The rows of one dataset that are compared, and the per-example scores of their runs."""

    dataset: str
    rows: tuple[ResultRow, ...]
    scores: ScoresOfRuns

    def scorers(self) -> list[ResultRow]:
        """Return the scorers that were trained alone, with all seeds."""
        trained = [
            row
            for row in self.rows
            if row.representative.config.scale == SCALE
            and row.representative.config.train.only == "scorer"
        ]
        return [
            row
            for row in trained
            if row.representative.key.model in SCORERS and len(row.runs) == SEEDS
        ]

    def baselines(self) -> dict[str, ResultRow]:
        """Return name → row of the baselines that were run."""
        named = {
            f"{row.representative.key.model} {row.representative.variant}".strip(): row
            for row in self.rows
        }
        return {name: named[name] for name in BASELINES if name in named}


def main() -> None:
    """Print the tables, compare them with the findings, or put them there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results-dir", type=Path, default=RESULTS, help="where the runs are")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check", action="store_true", help="name the stated numbers that differ; exit code 1"
    )
    action.add_argument("--write", action="store_true", help="put the tables into docs/findings.md")
    options = parser.parse_args()
    compared = read_comparisons(Results(options.results_dir))
    tables = all_tables(compared)
    if not (options.check or options.write):
        print("\n\n".join("\n".join(one.lines()) for one in tables))
        return
    if options.write:
        put_tables(tables)
    sys.exit("\n".join(differences(tables, [])) or None)


def read_comparisons(results: Results) -> list[Comparison]:
    """Return the comparison of each dataset with scorers on all seeds, sorted by name."""
    compared = []
    for dataset in sorted(results.datasets()):
        if dataset == PRETRAINED:  # benchmarks/pretrained_scorer.py has its table
            continue
        records = list(results.records(dataset))
        for block in build_blocks(records):
            found = Comparison(dataset, block.rows, read_all_scores(results, block.records()))
            if found.scorers():
                compared.append(found)
    return compared


def all_tables(compared: Sequence[Comparison]) -> list[Table]:
    """Return all tables of the findings."""
    return [table(compared, measure) for measure in MEASURES]


def table(compared: Sequence[Comparison], measure: str) -> Table:
    """Return a measure of every scorer, and its differences from the baselines."""
    heading = ROUGE_HEADINGS[measure]
    rows = []
    for one in compared:
        for scorer in one.scorers():
            cells = {
                name: cell(scorer, row, measure, one.scores)
                for name, row in one.baselines().items()
            }
            seeds = [run.evaluation.scores[measure].f for run in scorer.runs]
            own = f"{sum(seeds) / len(seeds):.1f} ({min(seeds):.1f} to {max(seeds):.1f})"
            name = f"{one.dataset}, `{scorer.representative.key.model}`"
            rows.append(
                (
                    name,
                    f"{scorer.representative.evaluation.n}",
                    own,
                    *(cells.get(name, "–") for name in BASELINES),
                )
            )
    columns = (f"texts, scorer: {heading}", "n", "mean of five seeds (range)")
    return Table(FINDINGS, (*columns, *(f"ahead of `{name}` by" for name in BASELINES)), rows)


def cell(scorer: ResultRow, baseline: ResultRow, measure: str, scores: ScoresOfRuns) -> str:
    """Return "+3.4 (+2.9 to +3.9)", with "≈" where no difference is found; then the seeds ahead, if not all are."""
    pair = compare_groups(scorer, baseline, measure, scores)
    if pair is None:
        return "–"
    gap = correct_differences({"": pair})[""]
    ahead = sum(
        run.evaluation.scores[measure].f > baseline.means[measure].mean for run in scorer.runs
    )
    mark = " ≈" if gap.outcome == Outcome.NOT_SHOWN else ""
    seeds = "" if ahead == len(scorer.runs) else f", {ahead} of {len(scorer.runs)} seeds"
    return f"{gap.mean:+.1f}{mark} ({gap.low:+.1f} to {gap.high:+.1f}){seeds}"


if __name__ == "__main__":
    main()
