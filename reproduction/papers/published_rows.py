"""The numbers that a paper prints in a table, those of our runs, and whether the paper's claims hold in ours.

    published.csv --read_printed_table--> printed numbers
    Job --read_row_means--> RowMeans: a group of seeds for each row and dataset, and whether it learned

Before a test, each row passes a gate: its system has learned to summarize, and has three seeds. Each claim is tested
once, with all its rows and datasets.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import NamedTuple

import pandas as pd

from longsumbench.leaderboards.comparability import (
    PLANTED,
    ROUGE_HEADINGS,
    ROUGE_STATISTICS,
    comparison_key,
    describe_unlike_conditions,
)
from longsumbench.leaderboards.learned import RANDOM, gate_rows
from longsumbench.leaderboards.published import COLUMNS, PROVENANCE, read_published_table
from longsumbench.leaderboards.seed_groups import (
    DEPENDS,
    LEARNED,
    NO_INTERVAL,
    NOT_LEARNED,
    NOT_RANKED,
    NOT_SHOWN,
    STILL_LEARNING,
    UNKNOWN,
    UNTRAINED,
    Learned,
    ResultRow,
    ScoresOfRuns,
    average_seeds,
    compare_groups,
    latest_per_seed,
)
from longsumbench.leaderboards.significance import read_all_scores
from longsumbench.leaderboards.table import take_statistic_as_f
from longsumbench.metrics.aggregate import PERCENT, Estimate, ScoreTable
from longsumbench.metrics.evaluate import score_column
from longsumbench.runs.record import RunRecord
from longsumbench.views.tables import Block
from longsumbench_reproduction.papers.claims import (
    OURS,
    Claim,
    Part,
    TableNumber,
    evaluate_claims,
    start_claim,
)
from longsumbench_reproduction.papers.page_model import (
    NOT_TESTED,
    ONE_SEED,
    TWO_SEEDS,
    UNDECIDED_LEARNING,
    ClaimOutcome,
    Job,
    RowRuns,
    describe_measures,
)
from longsumbench_reproduction.papers.paper_tables import (
    PaperClaim,
    PaperRow,
    PaperTable,
    at_scale,
    split_pair,
)

_ROW = ("system", "variant", "dataset", "split", "input_tokens", "provenance")
_DOUBTED = " †"
_DOUBTS = "† Another publication or table contradicts this row: see the note in published.csv."
_COHERENCE = "coherence_nsp"  # printed 0–1; our measure is 0–100
UNSTATED = COLUMNS["rougeL", "unstated"]  # no measure of ours is known to be of that kind
OUR_COLUMNS = {measure: column for (measure, _), column in COLUMNS.items() if column != UNSTATED}


class PublishedRow(NamedTuple):
    """A row of a paper's table on one dataset.

    Attributes:
        label: of the paper table's row, or system, variant and input tokens.
        dataset, system, variant, input_tokens: as in `published.csv`; the last two may be empty.
        origin: empty for the paper's own number; "quoted" or "re-run" for others.
        numbers: column ("R-1", "R-L sentence", or a measure's name) → number, as printed.
        doubted: True if another publication or table contradicts a number.
    """

    label: str
    dataset: str
    system: str
    variant: str
    input_tokens: str
    origin: str
    numbers: Mapping[str, str]
    doubted: bool

    @property
    def source(self) -> str:
        """How the paper got the numbers: "own", "quoted" or "re-run"; † if they are doubted."""
        return (self.origin or "own") + (_DOUBTED if self.doubted else "")


def read_printed_table(paper_table: PaperTable) -> pd.DataFrame:
    """Return the numbers of the paper table: of ROUGE those of its statistic, and all others."""
    table = read_published_table()
    # Only ROUGE has statistics; other numbers belong to any table
    here = (table["source_key"] == paper_table.source) & (
        table["source_table"] == paper_table.prints
    )
    of_statistic = (table["statistic"] == paper_table.part) | ~table["metric"].isin(
        list(ROUGE_HEADINGS)
    )
    return table[here & of_statistic]


def paper_column(measure: str) -> str:
    """Return the column of printed numbers that are of the same kind as a measure: "R-1", "R-L sentence"."""
    return OUR_COLUMNS.get(measure, measure)


def find_printed_row(paper_table: PaperTable, label: str, dataset: str) -> PublishedRow | None:
    """Return what a paper table prints for a row on one of the paper's datasets; None if it prints nothing."""
    lines = _selected(read_printed_table(paper_table), paper_table.rows[label], dataset)
    rows = _printed_rows(lines, dict.fromkeys(lines.index, label))
    return rows[0] if rows else None


def read_other_rows(paper_table: PaperTable, datasets: Collection[str]) -> list[PublishedRow]:
    """Return the other printed rows of a table: those of other systems, and the paper table's rows on other datasets.

    `datasets` are the paper's names of those on which the paper table's own rows are left out.
    """
    table = read_printed_table(paper_table)
    labels: dict[Hashable, str] = {}
    for label, row in paper_table.rows.items():
        for dataset in row.datasets or paper_table.datasets:
            lines = _selected(table, row, dataset)
            labels |= dict.fromkeys(lines.index, label)
            if dataset in datasets:
                table = table.drop(index=lines.index)
    return _printed_rows(table, labels)


def printed_block(paper_table: PaperTable, rows: Sequence[PublishedRow]) -> Block:
    """Return the block of printed rows for which there are no runs."""
    columns = dict.fromkeys(COLUMNS.values())
    for row in rows:
        columns |= dict.fromkeys(row.numbers)
    cells = []
    for row in rows:
        numbers = [row.numbers.get(column, "") for column in columns]
        names = [row.dataset, row.system, row.variant, row.input_tokens]
        cells.append([*names, *numbers, row.source])
    headings = [column.replace(" ", "\n") for column in columns]
    return Block(
        f"Other rows of {paper_table.prints}, as printed",
        (),
        ("dataset", "system", "variant", "input\ntokens", *headings, "source"),
        "lllr" + "r" * len(columns) + "l",
        cells,
        optional=("input\ntokens", "variant"),
        footnotes=(_DOUBTS,) if any(row.doubted for row in rows) else (),
    ).without_empty_columns()


def _selected(table: pd.DataFrame, row: PaperRow, dataset: str) -> pd.DataFrame:
    if not row.published:
        return table.iloc[:0]
    for column, value in {"dataset": dataset, **row.published}.items():
        table = table[table[column] == value]
    return table


def _printed_rows(table: pd.DataFrame, labels: Mapping[Hashable, str]) -> list[PublishedRow]:
    """Return the printed rows of a table; `labels` has those of lines of `published.csv` that have one."""
    rows = []
    for names, cells in table.groupby(list(_ROW), sort=False):
        system, variant, dataset, _, input_tokens, provenance = map(str, names)
        tokens = f"{input_tokens} tokens" if input_tokens else ""
        label = labels.get(cells.index[0]) or ", ".join(filter(None, [system, variant, tokens]))
        columns = cells["column"].where(cells["column"] != "", cells["metric"])
        numbers = dict(zip(columns, cells["value"], strict=True))
        if _COHERENCE in numbers:
            numbers["coherence"] = f"{PERCENT * float(numbers.pop(_COHERENCE)):.2f}"
        origin, doubted = PROVENANCE[provenance], bool(cells["doubted"].any())
        rows.append(
            PublishedRow(label, dataset, system, variant, input_tokens, origin, numbers, doubted)
        )
    return rows


FACTS_HEADING = "facts stated right, %"  # heading of planted facts
LEARNED_COLUMNS = ("learned", "floor", "lift, %")
LEARNED_NOTE = (
    "Floor: what the outputs score without their sources, by the measure that ranks systems on these texts. Lift: of "
    "planted facts, the gain over the floor in percent of what is possible with the source that was read; of other "
    "texts, the gain in R-2 in percent of Random's. Nothing is concluded from rows that did not learn."
)


# Ours: the runs of each row, averaged over their seeds
class RowMeans(NamedTuple):
    """The finished runs of a paper table's rows.

    Attributes:
        groups: (row, dataset) → its runs, one per seed, with their means, and whether its system learned. ROUGE is the
            paper table's statistic, but for the latter.
        scores: run id → per-example scores, 0–1, of the runs that have them; the paper table's statistic of ROUGE is in the
            columns of F1.
    """

    groups: Mapping[tuple[str, str], ResultRow]
    scores: ScoresOfRuns

    def number(self, row: str, dataset: str, measure: str) -> Estimate | None:
        """Return the mean of a measure over examples and seeds; None if the row has no run, or did not measure it."""
        group = self.groups.get((row, dataset))
        return group.means.get(measure) if group else None

    def table_number(
        self, kind: str, row: str, dataset: str, measure: str, number: Estimate
    ) -> TableNumber:
        """Return a number of a row for the CSV, or its difference from the printed one."""
        group = self.groups[row, dataset]
        evaluation = group.representative.evaluation
        n = evaluation.measures[measure].n if measure in evaluation.measures else evaluation.n
        runs = " ".join(run.run_id for run in group.runs)
        return TableNumber(kind, dataset, row, measure, *number, n, len(group.runs), runs=runs)

    def learned_cells(self, row: str, dataset: str) -> list[str]:
        """Return the cells of `LEARNED_COLUMNS` for a row."""
        learned = self.groups[row, dataset].learned if (row, dataset) in self.groups else Learned()
        floor = "" if learned.floor is None else f"{learned.floor:.1f}"
        return [learned.word, floor, "" if learned.lift is None else f"{learned.lift:.0f}"]

    def learned_numbers(self) -> Iterator[TableNumber]:
        """Yield floor and lift of each row for the CSV; the outcome is the word."""
        for (row, dataset), group in self.groups.items():
            for measure, value in (("floor", group.learned.floor), ("lift", group.learned.lift)):
                if value is not None:
                    estimate = Estimate(value, *NO_INTERVAL)
                    number = self.table_number(OURS, row, dataset, measure, estimate)
                    yield number._replace(outcome=group.learned.word)

    def describe_numbers(self, statistic: str) -> tuple[str, str]:
        """Return footnotes on ROUGE, of which a table has this statistic, on what ± is, and on the gate."""
        seeds = " and seeds" if any(len(group.runs) > 1 for group in self.groups.values()) else ""
        interval = f"±: half the 95 % interval over examples{seeds}."
        return f"ROUGE {ROUGE_STATISTICS[statistic]}, 0–100. {interval}", LEARNED_NOTE

    @property
    def has_planted_facts(self) -> bool:
        """True if any run measured planted facts."""
        return any(PLANTED in group.means for group in self.groups.values())


def read_row_means(job: Job) -> RowMeans:
    """Return the numbers of the finished runs of a job; damaged scores are reported and left out."""
    rows = [row for row in job.rows if row.finished]
    records: dict[str, RunRecord] = {}
    for row in rows:
        records |= {run.run_id: run for run in row.finished}
    random_runs = _random_runs(job, records.values())
    statistic = job.paper_table.part
    scores = read_all_scores(job.results, [*random_runs, *records.values()], f"f{statistic}")
    # Whether a system learned is judged by F1, whatever statistic of ROUGE the paper prints
    judged_groups = [ResultRow((run,)) for run in random_runs]
    judged_groups += [latest_per_seed(row.finished) for row in rows]
    learned = _judge_rows(judged_groups, scores)
    # From here on, the columns of F1 hold the statistic of ROUGE that the paper prints
    if statistic != "f":
        runs, scores = take_statistic_as_f(records.values(), statistic, scores)
        records = {run.run_id: run for run in runs}
    groups = {}
    for row in rows:
        latest = latest_per_seed([records[run.run_id] for run in row.finished])
        group = average_seeds(latest, scores)
        groups[row.label, row.dataset] = replace(group, learned=learned[group.key])
    return RowMeans(groups, _add_differences(job, scores))


def _add_differences(job: Job, scores: Mapping[str, ScoreTable]) -> dict[str, ScoreTable]:
    """Add the measures of claims that are the difference of two ("rouge1 - rouge2")."""
    tables = dict(scores)
    for claim in job.paper_table.claims_at(job.scale):
        for measure in claim.measures_at(job.scale):
            if " - " in measure:
                first, second = map(score_column, measure.split(" - "))
                for run, table in tables.items():
                    tables[run] = table.assign(**{measure: table[first] - table[second]})
    return tables


def _judge_rows(groups: Iterable[ResultRow], scores: ScoresOfRuns) -> dict[str, Learned]:
    """Return key of a group → whether its system learned, judged with the run of Random that is comparable with it."""
    members: dict[object, dict[str, ResultRow]] = {}
    for group in groups:
        members.setdefault(comparison_key(group.representative), {})[group.key] = group
    learned: dict[str, Learned] = {}
    for rows in members.values():
        learned |= gate_rows([*rows.values()], scores)
    return learned


def _random_runs(job: Job, runs: Iterable[RunRecord]) -> list[RunRecord]:
    """Return the runs of Random on the texts of some runs; none for planted facts, whose chance is known."""
    random_runs = []
    for dataset in {run.key.dataset for run in runs if PLANTED not in run.evaluation.measures}:
        random_runs += [run for run in job.results.records(dataset) if run.key.model == RANDOM]
    return random_runs


def count_runs(row: RowRuns) -> str:
    """Return the number of finished runs, "3"; if some are missing, "1 of 3"."""
    finished, total = len(row.finished), len(row.records)
    return str(finished) if finished == total else f"{finished} of {total}"


def measures_shown(job: Job, means: RowMeans) -> list[str]:
    """Return the paper table's measures; also planted facts, if the runs measured them."""
    planted = (PLANTED,) if means.has_planted_facts else ()
    return list(dict.fromkeys([*job.paper_table.measures, *planted]))


# The claims: each row passes the gate before its claim is tested
_FEWEST_SEEDS = 3  # of a test of systems with seeds
# Word → outcome of a claim about such a system, the worst first
_GATE = {
    UNTRAINED: NOT_TESTED,
    UNKNOWN: NOT_TESTED,
    NOT_SHOWN: NOT_TESTED,
    NOT_RANKED: NOT_TESTED,
    NOT_LEARNED: NOT_LEARNED,
    STILL_LEARNING: UNDECIDED_LEARNING,
    LEARNED: "",
    DEPENDS: "",
}


def decide_claims(job: Job, means: RowMeans) -> tuple[ClaimOutcome, ...]:
    """Return a verdict for each claim of the paper.

    A kind can add columns to `means.scores`, to test other measures.
    """
    return evaluate_claims(
        [_compare_rows(job, means, paper) for paper in job.paper_table.claims_at(job.scale)]
    )


def _compare_rows(job: Job, means: RowMeans, paper: PaperClaim) -> Claim:
    """Compare the rows of a claim on each of its datasets that is read at this scale."""
    claim = start_claim(job, paper)
    if claim.obstacle:
        return claim
    # Which rows on which datasets are compared, and whether they have runs
    pairs, keys = [], dict[tuple[str, str], None]()
    for dataset, pair in product(claim.datasets, paper.pairs):
        labels = split_pair(pair)
        if all(dataset in (job.paper_table.rows[label].datasets or [dataset]) for label in labels):
            pairs.append((pair, dataset))
            keys |= dict.fromkeys((label, dataset) for label in labels)
    if not keys:
        return claim.not_tested(f"no texts at scale={job.scale} have its rows")
    if missing := list(filter(None, [describe_missing(job, *key) for key in keys])):
        return claim.not_tested("; ".join(missing))
    groups = {key: means.groups[key] for key in keys}
    claim = claim._replace(
        datasets=tuple(dict.fromkeys(dataset for _, dataset in keys)),
        runs=[*chain.from_iterable(group.runs for group in groups.values())],
    )
    parts = []
    # A part is one pair of rows on one dataset and measure
    for (pair, dataset), measure in product(pairs, paper.measures_at(job.scale)):
        first, second = (groups[label, dataset] for label in split_pair(pair))
        if unlike := _incomparable([*first.runs, *second.runs]):
            return claim.not_tested(f"not comparable: {unlike}")
        comparison = compare_groups(first, second, measure, means.scores)
        if comparison is None:
            name = describe_measures(measure)
            return claim.not_tested(f"the runs have no {name} of each example")
        fact_difference = _compare_facts(first, second, measure)
        parts.append(Part(pair, dataset, measure, comparison, fact_difference))
    claim = claim._replace(parts=parts)
    if paper.alike:
        claim = _set_margin(claim)
    if claim.obstacle:
        return claim
    return pass_gate(claim, [(label, group) for (label, _), group in groups.items()])


def _set_margin(claim: Claim) -> Claim:
    """Return a claim of alike rows with its stated margin; it is not tested without one."""
    margin = at_scale(claim.paper.margin, claim.scale)
    if not margin:
        return claim.not_tested(
            "the paper names no difference of this table, which gives no margin"
        )
    return claim._replace(margin=margin, reason=f"the margin is {claim.paper.margin_source}")


def pass_gate(claim: Claim, groups: Sequence[tuple[str, ResultRow]]) -> Claim:
    """Return a claim; with an obstacle if a system did not learn, or too few seeds are compared.

    `groups` has the label of each row and its runs.
    """
    # The worst word of the rows counts: one that did not learn shows nothing about the others
    words = [group.learned.word for _, group in groups]
    claim = claim._replace(learned=next((word for word in _GATE if word in words), ""))
    if obstacle := _GATE.get(claim.learned, ""):
        reasons = []
        for label, group in groups:
            if group.learned.word == claim.learned:
                reasons.append(f"{label}: {group.learned.reason}")
        return claim._replace(obstacle=obstacle, reason="; ".join(reasons))
    return claim if all(run.key.seed is None for run in claim.runs) else require_seeds(claim)


def require_seeds(claim: Claim) -> Claim:
    """Return a claim about trained systems; with an obstacle if fewer than three seeds are compared."""
    seeds = min(part.comparison.seeds for part in claim.parts)
    outcome = {1: ONE_SEED, 2: TWO_SEEDS}.get(seeds, NOT_TESTED)
    return claim if seeds >= _FEWEST_SEEDS else claim._replace(obstacle=outcome)


def _compare_facts(first: ResultRow, second: ResultRow, measure: str) -> float | None:
    """Return the difference in planted facts; None if not both measured them, or if they are the measure."""
    if measure == PLANTED or not (PLANTED in first.means and PLANTED in second.means):
        return None
    return first.means[PLANTED].mean - second.means[PLANTED].mean


def describe_missing(job: Job, label: str, dataset: str) -> str:
    """Describe the missing runs of a row; empty if it has all."""
    if problem := job.unreachable.get((label, dataset)):
        return f"no runs of {label}: {problem}"
    for row in job.rows:
        if (row.label, row.dataset) == (label, dataset):
            missing = row.records.count(None)
            return f"runs of {label} missing: {missing} of {len(row.records)}" if missing else ""
    return f"{label} has no runs at scale={job.scale}"


def _incomparable(runs: Sequence[RunRecord]) -> str:
    for run in runs:
        if comparison_key(run) != comparison_key(runs[0]):
            return describe_unlike_conditions(runs[0], run)
    return ""
