"""The leaderboard of a dataset: a CSV with a row per run, and ranked blocks of comparable runs.

Runs are comparable if the texts, the split, the examples and the signature of the scores agree. Oracles and published
numbers have separate blocks. Datasets with planted facts also have pictures.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from longsumbench.errors import DataError, UnknownName, UsageError, suite_errors
from longsumbench.formatting import format_count, percent
from longsumbench.leaderboards.blocks import run_blocks
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, ROUGE_PARTS, comparison_key, ranking_key
from longsumbench.leaderboards.figures.lengths import (
    LengthCurves,
    draw_lengths,
    lengths_csv,
    systems_at_lengths,
    title_of,
)
from longsumbench.leaderboards.figures.recall import RecallLine, draw_recall, recall_lines
from longsumbench.leaderboards.published import COLUMNS as PUBLISHED_SCORES, Published, read_published
from longsumbench.leaderboards.significance import AgainstBest, against_best, read_all_scores
from longsumbench.leaderboards.truncation import PREFIX, cut_shares, ledger_block, ledger_columns
from longsumbench.metrics.aggregate import intervals_of
from longsumbench.report import tables
from longsumbench.report.tables import Block, rounded_frame, with_bounds
from longsumbench.runs.record import Results, RunRecord, source_seen

_TRAINING_COLUMNS = ("steps", "examples", "source_tokens", "target_tokens", "seconds")
_COLUMNS = (
    *("model", "variant", "dataset", "split", "n"),
    *(f"{kind}{bound}" for kind in ROUGE_HEADINGS for bound in ("", "_lo", "_hi")),
    *("source_seen", "targets_cut", "outputs_cut", "parameters"),
    *(f"train_{name}" for name in _TRAINING_COLUMNS),
    *("tokens_per_second", "peak_memory_gb", "seed", "signature", "run_id"),
    *(f"{kind}_{part}" for kind in ROUGE_HEADINGS for part in "pr"),
    *("path", "fingerprint", "train_split"),
)
_OUTPUT_COLUMNS = {  # column → fact in the record; left out if no record has any
    "output_words": "words",
    "reference_words": "reference_words",
    "outputs_compared": "compared",
    "outputs_distinct": "distinct",
    "outputs_repetitive": "repetitive",
}
_SPLITS = ("test", "validation", "train")

# Name in published.csv → our name; the version in parentheses is shown with the split.
PUBLISHED_AS = {
    "arXiv": "arxiv",
    "PubMed": "pubmed",
    "CNN/DailyMail": "cnn_dailymail",
    "CNN/DailyMail (anonymized)": "cnn_dailymail",
    "WikiSum": "wikisum",
    "Multi-News": "multi_news",
    "Multi-News (LongBench 200)": "multi_news",
    "GovReport": "gov_report",
    "GovReport (SCROLLS)": "gov_report",
    "GovReport (ZeroSCROLLS)": "gov_report",
    "GovReport (LongBench 200)": "gov_report",
    "Search2Wiki": "search2wiki",
}
OUR_PAPERS = ("liu2019hiersumm", "liu2022pagesum", "you2019etads", "zhao2020seal")  # also shown on the terminal

_PUBLISHED_KINDS = tuple(PUBLISHED_SCORES.values())
_PUBLISHED_VIEW = (
    "system",
    "variant",
    "input\ntokens",
    *(kind.replace(" ", "\n") for kind in _PUBLISHED_KINDS),
    "split",
    "source",
)


@dataclass(frozen=True)
class Table:
    """The table of a dataset.

    Attributes:
        dataset: its name.
        runs: groups of comparable finished runs, best first.
        tests: for each group, its tests against the best; empty if nothing was tested.
        part: the part of ROUGE that ranks the runs and is shown; the CSV is the same for all parts.
    """

    dataset: str
    runs: tuple[tuple[RunRecord, ...], ...]
    tests: tuple[AgainstBest, ...] = ()
    part: str = "f"

    def frame(self) -> pd.DataFrame:
        """Return a row per run: `_COLUMNS`, then other measures, then truncation by cause."""
        records = [record for group in self.runs for record in group]
        measured = dict.fromkeys(name for record in records for name in record.measures)
        columns = [*_COLUMNS, *(f"{name}{bound}" for name in measured for bound in ("", "_lo", "_hi"))]
        columns += ledger_columns(records)
        columns += ["measured_by"] if any(record.measured_by for record in records) else []
        columns += _OUTPUT_COLUMNS if any(record.outputs for record in records) else []
        columns += ["checkpoints"] if any(record.checkpoints for record in records) else []
        return rounded_frame(map(_row, records), columns)

    def csv(self) -> str:
        """Return `frame` as CSV."""
        return self.frame().to_csv(index=False, lineterminator="\n")

    def render(self) -> str:
        """Return the table for the terminal, with the published numbers of the suite's own papers only."""
        return tables.terminal(self.heading(), self.blocks(brief=True))

    def markdown(self) -> str:
        """Return the table in Markdown, with the runs' ledgers and links to its pictures."""
        text = tables.markdown(self.heading(), self.blocks(ledger=True))
        if self.lines():
            text += f"\n![{self.title()}]({self.dataset}-recall.png)\n"
        if found := self.at_lengths():
            text += f"\n![{title_of(self.dataset, found)}]({self.dataset}-lengths.png)\n"
        return text

    def ledger(self) -> Block:
        """Return the block of the runs' truncation ledgers."""
        return ledger_block([record for group in self.runs for record in group])

    def latex(self) -> str:
        """Return the table in LaTeX, for booktabs."""
        return tables.latex(self.heading(), self.blocks())

    def heading(self) -> str:
        """Return the table's heading."""
        return f"longsumbench: {self.dataset}" + (f", ROUGE {ROUGE_PARTS[self.part]}" if self.part != "f" else "")

    def lines(self) -> tuple[RecallLine, ...]:
        """Return the fact recall lines of the first group that has any; empty if none has."""
        return next((lines for group in self.runs if (lines := recall_lines(group))), ())

    def at_lengths(self) -> tuple[LengthCurves, ...]:
        """Return the systems that were tested on texts of several lengths, across groups."""
        return systems_at_lengths(record for group in self.runs for record in group)

    def files(self) -> dict[str, str | bytes | None]:
        """Return the table's files, by name; None for a picture that the runs do not have."""
        lines, found = self.lines(), self.at_lengths()
        return {
            f"{self.dataset}.csv": self.csv(),
            f"{self.dataset}.md": self.markdown(),
            f"{self.dataset}.tex": self.latex(),
            f"{self.dataset}-recall.png": draw_recall(self.title(), lines) if lines else None,
            f"{self.dataset}-lengths.png": draw_lengths(title_of(self.dataset, found), found) if found else None,
            f"{self.dataset}-lengths.csv": lengths_csv(found) if found else None,
        }

    def pictures(self) -> list[str]:
        """Return the file names of the table's pictures."""
        drawn = {"recall": self.lines(), "lengths": self.at_lengths()}
        return [f"{self.dataset}-{name}.png" for name, content in drawn.items() if content]

    def title(self) -> str:
        """Return the title of the picture of fact recall."""
        first = next(group[0] for group in self.runs if recall_lines(group))
        of = f"{first.split} split, {format_count(first.n, 'example')}"
        return f"{self.dataset}: planted facts that the summaries state right ({of})"

    def blocks(self, brief: bool = False, ledger: bool = False) -> list[Block]:
        """Return the blocks of our runs, then the block of published numbers.

        Args:
            brief: show published numbers only for papers whose systems the suite has.
            ledger: add the runs' truncation ledgers.
        """
        ours = []
        for members, tests in zip(self.runs, self.tests or [AgainstBest()] * len(self.runs), strict=True):
            ours += run_blocks(members, self.runs[0][0], tests.tied(), tests.note, self.part)
        ours += [self.ledger()] if ledger else []
        return ours + published_blocks(self.dataset, [one for group in self.runs for one in group], brief, self.part)


@suite_errors()
def leaderboard(dataset: str, results_dir: str | Path = "results") -> pd.DataFrame:
    """Rebuild the table of a dataset from its finished runs, as `longsumbench leaderboard` does.

    Args:
        dataset: its name.
        results_dir: where the runs are.

    Returns:
        A row for each run, with the columns of `leaderboard/<dataset>.csv`: comparable runs together, the best first.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read.
    """
    return update_table(Results(Path(results_dir).expanduser()), dataset).frame().infer_objects()


def find_datasets(results: Results, dataset: str | None = None) -> list[str]:
    """Return the datasets with finished runs; of these only `dataset`, if it is given.

    Raises:
        UsageError: there are no runs, or none on the dataset.
    """
    found = results.datasets()
    if not found:
        raise UsageError(f"no finished run under {results.root}: start with `longsumbench run`, or set --results-dir")
    if dataset and dataset not in found:
        raise UnknownName("dataset with results", dataset, found)
    return [dataset] if dataset else found


def update_table(results: Results, dataset: str) -> Table:
    """Rebuild `leaderboard/<dataset>.csv`, `.md`, `.tex` and the pictures from all finished runs on a dataset.

    A lock serializes simultaneous jobs, so the last table has all runs.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read; the files stay unchanged.
    """
    find_datasets(results, dataset)
    with results.leaderboard_lock(dataset):
        table = read_table(results, dataset)
        if not table.runs:
            raise DataError("no run can be read", results.root / "runs" / dataset)
        results.write_leaderboard(table.files())
    return table


def read_table(results: Results, dataset: str, part: str = "f") -> Table:
    """Return the table of all readable finished runs on a dataset; `part` of ROUGE is a key of `ROUGE_PARTS`."""
    records = list(results.records(dataset))
    scores = read_all_scores(results, records)
    if part != "f":
        scores = {
            run: table.assign(**{f"{kind}_f": table[f"{kind}_{part}"] for kind in ROUGE_HEADINGS})
            for run, table in scores.items()
        }
        records = [_with_part_as_f(one, part, scores.get(one.run_id)) for one in records]
    runs = group_runs(records)
    return Table(dataset, runs, tuple(against_best(members, scores) for members in runs), part)


def _with_part_as_f(record: RunRecord, part: str, scores: pd.DataFrame | None) -> RunRecord:
    """Return a record with ROUGE's precision ("p") or recall ("r") in the place of F1, and without other measures.

    Runs do not store the intervals of precision and recall: they come from the per-example `scores`, if these exist.
    """
    bounds: Mapping[str, tuple[float, float]] = {}
    if scores is not None:
        scoring = record.settings.score
        columns = scores[[f"{kind}_f" for kind in ROUGE_HEADINGS]]
        bounds = intervals_of(columns, scoring.resamples, perl_resampling=scoring.resampling == "perl")
    means = {}
    for kind, score in record.scores.items():
        low, high = bounds.get(f"{kind}_f", (math.nan, math.nan))
        means[kind] = replace(score, f=getattr(score, part), f_lo=low, f_hi=high)
    return replace(record, scores=means, measures={}, ranked_by=None)


def group_runs(records: Iterable[RunRecord]) -> tuple[tuple[RunRecord, ...], ...]:
    """Group comparable runs: largest group first; within a group best first, oracles last."""
    groups: dict[tuple[str, ...], list[RunRecord]] = {}
    for record in records:
        groups.setdefault(comparison_key(record), []).append(record)
    ordered = sorted(
        groups.items(), key=lambda item: (-len(item[1]), _SPLITS.index(item[1][0].split), -item[1][0].n, item[0])
    )
    return tuple(tuple(sorted(members, key=ranking_key)) for _, members in ordered)


def _row(record: RunRecord) -> dict[str, Any]:
    """Return a run's row of the CSV: ROUGE F1, precision (`_p`) and recall (`_r`) are 0–100, shares in percent."""
    fit = record.fit
    values: dict[str, Any] = {name: getattr(record, name) for name in ("model", "variant", "dataset", "split", "n")}
    for kind in ROUGE_HEADINGS:
        score = record.scores[kind]
        values |= with_bounds(kind, score.f1) | {f"{kind}_p": score.p, f"{kind}_r": score.r}
    values |= {
        "source_seen": source_seen(record),
        "targets_cut": percent(fit.targets_cut, record.train_examples) if record.trained else None,
        "outputs_cut": percent(record.outputs_cut, record.num_outputs),
        "parameters": fit.parameters,
        **{f"train_{name}": getattr(fit, name) for name in _TRAINING_COLUMNS},
        "tokens_per_second": record.decode_tokens_per_second,
        **{name: getattr(record, name) for name in ("peak_memory_gb", "seed", "signature", "run_id", "fingerprint")},
        "path": record.settings.dataset.path,
        "train_split": record.train_examples,
    }
    for name, measure in record.measures.items():
        values |= with_bounds(name, measure.estimate)
    values |= {f"{PREFIX}{cause}": share for cause, share in cut_shares(record).items()}
    values |= {name: getattr(record.outputs, fact, None) for name, fact in _OUTPUT_COLUMNS.items()}
    values["measured_by"] = "; ".join(record.measured_by.values())
    values["checkpoints"] = len(record.checkpoints) or 1
    return values


def published_blocks(dataset: str, ours: Sequence[RunRecord], brief: bool = False, part: str = "f") -> list[Block]:
    """Return a block of the published numbers on a dataset; empty if there are none.

    Args:
        dataset: our name of the dataset.
        ours: our runs on it; a note warns if they may be on other texts than the official ones.
        brief: show only the suite's own papers, and count the rest.
        part: the part of ROUGE to show, a key of `ROUGE_PARTS`.
    """
    try:
        found = read_published([name for name, our_name in PUBLISHED_AS.items() if our_name == dataset], part)
    except DataError as error:
        return [Block("Published numbers", (f"Left out: {error}.",), _PUBLISHED_VIEW, "llrrrrrrll", [])]
    if not found:
        return []
    shown = [one for one in found if not brief or (one.own and one.key in OUR_PAPERS)]
    lines = _published_notes(shown, any(record.settings.dataset.path for record in ours), part)
    if len(shown) < len(found):
        where = f"leaderboard/{dataset}.md" if part == "f" else "published.csv"
        lines.append(f"{len(found) - len(shown)} more rows are in {where}.")
    widths = (("system", 17), ("variant", 28), ("split", 10), ("source", 24))
    rows = [_published_row(one) for one in shown]
    return [Block("Published numbers", tuple(lines), _PUBLISHED_VIEW, "llrrrrrrll", rows, widths)]


def _published_notes(shown: Sequence[Published], local: bool, part: str) -> list[str]:
    lines = [
        f"As printed, on the official data, scored as in each source: {ROUGE_PARTS[part]}, not ranked with our "
        "rows. Sentence-level and summary-level R-L of one output can differ by 10–20 points."
    ]
    if any(one.doubted for one in shown):
        lines.append("† Another publication or table contradicts this row: see the note in published.csv.")
    if local:
        lines.append("Our texts came from local files (dataset.path); nothing shows that they are the official ones.")
    return lines


def _published_row(one: Published) -> list[str]:
    scores = dict(one.scores)
    cells = [scores.get(column, "") for column in _PUBLISHED_KINDS]
    source = f"{one.source} †" if one.doubted else one.source
    return [one.system, one.variant, one.input_tokens, *cells, one.test_set, source]
