"""The leaderboard of a dataset: a CSV with a row per run, and ranked blocks of comparable runs.

Runs are comparable if the texts, the split, the examples and the signature of the scores agree. Oracles and published
numbers have separate blocks. Planted facts, and the sentences that an oracle selects, also have pictures.

    Results --read_table--> Table --update_table--> CSV, Markdown, LaTeX, pictures; they are rebuilt after every run
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from longsumbench.errors import DataError, UnknownName, UsageError, suite_errors
from longsumbench.formatting import format_count, percent
from longsumbench.leaderboards import comparability, lengths
from longsumbench.leaderboards.columns import (
    PREFIX,
    Column,
    columns_of,
    cut_shares,
    ledger_block,
    ledger_columns,
    release_order,
    trained_here,
)
from longsumbench.leaderboards.notes import describe_untrained, footnotes
from longsumbench.leaderboards.published import published_blocks
from longsumbench.leaderboards.recall import FACTS, RECALL_PICTURES, RecallLine, RecallPicture
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import (
    METHOD,
    ComparableRows,
    best_rows,
    comparable_rows,
    read_all_scores,
)
from longsumbench.metrics.aggregate import ScoreTable, intervals_of
from longsumbench.metrics.evaluate import DEFAULT_RANKING_SCORE
from longsumbench.runs.record import (
    SHORT_ID,
    RecordedSystem,
    RunRecord,
    length_ratio,
    source_copied,
    source_seen,
)
from longsumbench.runs.results import Results, is_verified
from longsumbench.views import tables
from longsumbench.views.figures import draw_figure
from longsumbench.views.intervals import IntervalFigure, IntervalPanel, IntervalRow
from longsumbench.views.series import SeriesFigure, draw_series
from longsumbench.views.tables import Block, Stressed, Tied, csv_text, rounded_frame, with_bounds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_WHO, _COST = (
    ("system", "settings"),
    ("length", "source_seen", "source_copied", "seconds", "run", "verified"),
)
# Shown if facts about any system are known
_CHECKPOINT_COLUMNS = ("price", "parameters", "context", "released", "prompt", "length_ratio")
# Left out after scores that do not rank
_FIRST_LEFT_OUT = ("seconds", "source_copied", "source_seen", "seeds", "seed", "length")
_TRAINING_COLUMNS = ("steps", "examples", "source_tokens", "target_tokens", "seconds")
_CSV_COLUMNS = (
    *("model", "variant", "dataset", "split", "n"),
    *(f"{kind}{bound}" for kind in comparability.ROUGE_HEADINGS for bound in ("", "_lo", "_hi")),
    *("source_seen", "targets_cut", "outputs_cut", "parameters"),
    *(f"train_{name}" for name in _TRAINING_COLUMNS),
    *("tokens_per_second", "peak_memory_gb", "seed", "signature", "run_id"),
    *(f"{kind}_{part}" for kind in comparability.ROUGE_HEADINGS for part in "pr"),
    *("path", "fingerprint", "train_split"),
)
_SYSTEM_COLUMNS = (  # left out if no record has facts about its system
    *("trained", "checkpoint", "revision", "weights", "context", "engine"),
    *("prompt", "prompt_hash", "released", "release_order", "length_ratio"),
)
_OUTPUT_COLUMNS = {  # column → fact in the record; left out if no record has any
    "output_words": "words",
    "reference_words": "reference_words",
    "outputs_compared": "compared",
    "outputs_distinct": "distinct",
    "outputs_repetitive": "repetitive",
}


def leaderboard_block(
    comparable: ComparableRows,
    table: Sequence[ComparableRows],
    part: str = "f",
    column_names: Sequence[str] = (),
) -> Block:
    """Return the ranking of comparable systems, followed by their oracles.

    The heading describes how the block differs from the first of the table. `column_names` are the columns after system
    and settings; empty for the default ones.
    """
    rows = comparable.rows
    number = next(number for number, block in enumerate(table, 1) if block is comparable)
    heading = (f"block {number}: " if table[1:] else "") + describe_block(comparable, table)
    if unlike := comparability.describe_difference(rows[0].first, table[0].rows[0].first):
        heading += f"; not comparable with the first block: {unlike}"
    columns, optional = _columns(rows, part, column_names)
    names = {column.name for column in columns}
    block = table_block(columns, row_cells(comparable, columns))
    return replace(
        block,
        heading=heading,
        notes=(untrained,) if (untrained := describe_untrained(rows)) else (),
        optional=tuple(column.heading for column in optional),
        footnotes=footnotes(comparable, names, part),
    )


def describe_block(comparable: ComparableRows, table: Sequence[ComparableRows]) -> str:
    """Describe what comparable runs have in common: "test split, 183 examples, texts of my_texts".

    Own texts also have their fingerprint if other blocks of the table have other texts.
    """
    run, texts = comparable.rows[0].first, ""
    if path := run.config.dataset.path:
        several = any(block.rows[0].first.key.fingerprint != run.key.fingerprint for block in table)
        texts = f", texts of {PurePath(path).name or path}"
        texts += f" (fingerprint {run.key.fingerprint[:SHORT_ID]})" if several else ""
    untrained = ", systems that were not trained here" if comparable.zero_shot else ""
    return f"{run.key.split} split, {format_count(run.evaluation.n, 'example')}{texts}{untrained}"


def _columns(
    rows: Sequence[SeedGroup], part: str, column_names: Sequence[str]
) -> tuple[list[Column], list[Column]]:
    """Return the columns of a block, and those that a narrow terminal leaves out, the least important first."""
    all_columns = columns_of((run for row in rows for run in row.runs), part)
    if column_names:
        columns = [
            all_columns[name]
            for name in dict.fromkeys((*_WHO, *column_names))
            if name in all_columns
        ]
        return columns, columns[:1:-1]
    ranked_by, seeds = rows[0].first.evaluation.ranked_by, seeds_column(rows)
    numbers = list(comparability.numbers_shown([row.first for row in rows]))
    facts = (
        _CHECKPOINT_COLUMNS
        if any(_has_system_facts(run) for row in rows for run in row.runs)
        else ()
    )
    names = [*_WHO, seeds, *numbers, *facts, *_COST]
    optional = [
        *(name for name in reversed(numbers) if name != ranked_by),
        *_FIRST_LEFT_OUT,
        *_CHECKPOINT_COLUMNS,
    ]
    return [all_columns[name] for name in names], [
        all_columns[name] for name in optional if name in names
    ]


def seeds_column(rows: Sequence[SeedGroup]) -> str:
    """Return the name of the column of seeds: their number, or the seed itself if each row is a single run."""
    return "seeds" if any(len(row.runs) > 1 for row in rows) else "seed"


def row_cells(comparable: ComparableRows, columns: Sequence[Column]) -> list[list[str]]:
    """Return for each row its place and its cells; oracles and systems that did not learn have no place and marks.

    The best number of a column has no mark if it is of one seed.
    """
    ranked, tied = [row for row in comparable.rows if row.ranked], comparable.tests.tied()
    best = {}
    if len(ranked) > 1:
        names = comparability.numbers_shown([row.first for row in comparable.rows])
        best_of = best_rows(ranked, names)
        best = {name: row.numbers[name].mean for name, row in best_of.items() if not row.one_seed}
    lines, place = [], 0
    for row in comparable.rows:
        cells = [column.cell(row) for column in columns]
        if not row.ranked:
            lines.append(["", *cells])
            continue
        place += 1
        for number, column in enumerate(columns):
            if column.name in row.numbers and row.numbers[column.name].mean == best.get(
                column.name
            ):
                cells[number] = Stressed(cells[number])
            elif (row.key, column.name) in tied:
                cells[number] = Tied(cells[number])
        lines.append([str(place), *cells])
    return lines


def table_block(columns: Sequence[Column], cells: Sequence[Sequence[str]]) -> Block:
    """Return a block of the lines of `row_cells`, without empty columns."""
    return Block(
        "",
        (),
        ("", *(column.heading for column in columns)),
        "r" + "".join(column.align for column in columns),
        cells,
        groups=("", *(column.group for column in columns)),
        tied=f"not distinguishable from the best ({METHOD})",
    ).without_empty_columns()


def _csv_columns(records: Sequence[RunRecord]) -> list[str]:
    """Return the columns of the CSV: the common ones, other measures, truncation by cause, facts of some runs."""
    measured = dict.fromkeys(name for record in records for name in record.evaluation.measures)
    columns = [
        *_CSV_COLUMNS,
        *(f"{name}{bound}" for name in measured for bound in ("", "_lo", "_hi")),
    ]
    columns += (
        ["source_copied"] if any(source_copied(record) is not None for record in records) else []
    )
    columns += ledger_columns(records)
    columns += ["measured_by"] if any(record.evaluation.measured_by for record in records) else []
    columns += _OUTPUT_COLUMNS if any(record.evaluation.outputs for record in records) else []
    columns += ["checkpoints"] if any(record.evaluation.checkpoints for record in records) else []
    columns += ["imported_from"] if any(record.imported for record in records) else []
    columns += _SYSTEM_COLUMNS if any(map(_has_system_facts, records)) else []
    columns += dict.fromkeys(name for record in records for name in record.ledger.counts)
    columns += ["verified"] if any(record.verified for record in records) else []
    return [*columns, "block"]


def _has_system_facts(record: RunRecord) -> bool:
    return record.imported is not None or record.system != RecordedSystem()


def _csv_row(record: RunRecord) -> dict[str, Any]:
    """Return a run's row of the CSV: ROUGE F1, precision (`_p`) and recall (`_r`) are 0–100, shares in percent."""
    fit = record.fit
    values: dict[str, Any] = {
        "model": record.key.model,
        "variant": record.variant,
        "dataset": record.key.dataset,
        "split": record.key.split,
        "n": record.evaluation.n,
    }
    for kind in comparability.ROUGE_HEADINGS:
        score = record.evaluation.scores[kind]
        values |= with_bounds(kind, score.f1) | {f"{kind}_p": score.p, f"{kind}_r": score.r}
    values |= {
        "source_seen": source_seen(record),
        "source_copied": source_copied(record),
        "targets_cut": percent(fit.targets_cut, record.train_examples) if record.trained else None,
        "outputs_cut": percent(record.ledger.outputs_cut, record.num_outputs),
        "parameters": record.parameters,
        **{f"train_{name}": getattr(fit, name) for name in _TRAINING_COLUMNS},
        "tokens_per_second": record.costs.decode_tokens_per_second,
        "peak_memory_gb": record.costs.peak_memory_gb,
        "seed": record.key.seed,
        "signature": record.evaluation.signature,
        "run_id": record.run_id,
        "fingerprint": record.key.fingerprint,
        "path": (path := record.config.dataset.path) and PurePath(path).name,
        "train_split": record.train_examples,
    }
    for name, measure in record.evaluation.measures.items():
        values |= with_bounds(name, measure.estimate)
    values |= {f"{PREFIX}{cause}": share for cause, share in cut_shares(record).items()}
    values |= {
        name: getattr(record.evaluation.outputs, fact, None)
        for name, fact in _OUTPUT_COLUMNS.items()
    }
    values["measured_by"] = "; ".join(record.evaluation.measured_by.values())
    values["checkpoints"] = len(record.evaluation.checkpoints) or 1
    facts = {**asdict(record.system), "release_order": release_order(record)}
    facts |= {"trained": trained_here(record), "length_ratio": length_ratio(record)}
    values |= {name: facts[name] for name in _SYSTEM_COLUMNS}
    values |= {**record.ledger.counts, "verified": "yes" if record.verified else "no"}
    if record.imported:  # how it was trained and decoded is unknown
        values |= dict.fromkeys(
            ("outputs_cut", "parameters", *(f"train_{name}" for name in _TRAINING_COLUMNS))
        )
        values["imported_from"] = record.imported.origin or record.imported.file
    return values


@dataclass(frozen=True)
class Table:
    """The table of a dataset.

    Attributes:
        comparable: blocks of comparable rows, that of the whole test split first.
        part: the part of ROUGE that ranks the rows and is shown; the CSV is the same for all parts.
        scores: run id → per-example scores, 0–1, of the runs that have them.
        columns: names of the columns that are shown after system and settings; empty for the default ones.
        block: number of the only block that is shown, from 1; None for all blocks and the published numbers.
    """

    dataset: str
    comparable: tuple[ComparableRows, ...]
    part: str = "f"
    scores: Mapping[str, ScoreTable] = field(default_factory=dict, compare=False, repr=False)
    columns: tuple[str, ...] = ()
    block: int | None = None

    def records(self) -> list[RunRecord]:
        """Return all runs, each once: comparable ones together, the best first, oracles last."""
        return list(
            {run.run_id: run for block in self.comparable for run in block.records()}.values()
        )

    def _csv_rows(self) -> list[dict[str, Any]]:
        numbers: dict[str, int] = {}
        for number, block in enumerate(self.comparable, 1):
            for run in block.records():
                numbers.setdefault(run.run_id, number)
        return [{**_csv_row(run), "block": numbers[run.run_id]} for run in self.records()]

    def frame(self) -> "pd.DataFrame":
        """Return a row per run; the column `block` is the number of the first block that has it."""
        return rounded_frame(self._csv_rows(), _csv_columns(self.records()))

    def csv(self) -> str:
        """Return the rows of `frame` as CSV."""
        return csv_text(self._csv_rows(), _csv_columns(self.records()))

    def render(self) -> str:
        """Return the table for the terminal, with few published numbers; each footnote once."""
        seen: set[str] = set()
        blocks = []
        for block in self.blocks(brief=True):
            blocks.append(
                replace(
                    block, footnotes=tuple(line for line in block.footnotes if line not in seen)
                )
            )
            seen.update(block.footnotes)
        return tables.terminal(self.heading(), blocks)

    def markdown(self) -> str:
        """Return the table in Markdown, with the runs' ledgers and links to its pictures."""
        text = tables.markdown(self.heading(), self.blocks(ledger=True))
        titles = [self.title(picture) for picture in RECALL_PICTURES if self.lines(picture)]
        titles += [lengths.title_of(self.dataset, curves)] if (curves := self.at_lengths()) else []
        return text + "".join(
            f"\n![{title}]({file})\n" for title, file in zip(titles, self.pictures(), strict=True)
        )

    def ledger(self) -> Block:
        """Return the block of the truncation ledgers of the shown runs."""
        return ledger_block(
            self.records() if self.block is None else self.comparable[self.block - 1].records()
        )

    def latex(self) -> str:
        """Return the table in LaTeX, for booktabs and siunitx, with few published numbers."""
        return tables.latex(self.heading(), self.blocks(brief=True))

    def heading(self) -> str:
        """Return the table's heading."""
        return self.dataset + (
            f", ROUGE {comparability.ROUGE_PARTS[self.part]}" if self.part != "f" else ""
        )

    def lines(self, picture: RecallPicture = FACTS) -> list[RecallLine]:
        """Return the lines of a picture, of the first block that has any; empty if none has."""
        lines = map(picture.lines, [block.rows for block in self.comparable])
        return next(filter(None, lines), [])

    def at_lengths(self) -> tuple[lengths.LengthCurves, ...]:
        """Return the systems that were tested on texts of several lengths, across blocks."""
        return lengths.systems_at_lengths(self.records(), self.scores)

    def files(self, draw: bool = True) -> dict[str, str | bytes | None]:
        """Return the table's files, by name; None for a picture that the runs do not have. Drawing takes a second."""
        curves = self.at_lengths()
        contents: dict[str, str | bytes | None] = {
            f"{self.dataset}.csv": self.csv(),
            f"{self.dataset}.md": self.markdown(),
            f"{self.dataset}.tex": self.latex(),
            f"{self.dataset}-lengths.csv": lengths.lengths_csv(curves) if curves else None,
        }
        if draw:
            figures: dict[str, SeriesFigure | None] = {}
            for picture in RECALL_PICTURES:
                lines = self.lines(picture)
                figures[picture.name] = (
                    picture.figure(self.title(picture), lines) if lines else None
                )
            title = lengths.title_of(self.dataset, curves) if curves else ""
            figures["lengths"] = lengths.lengths_figure(title, curves) if curves else None
            for name, figure in figures.items():
                contents[f"{self.dataset}-{name}.png"] = (
                    draw_series(figure)["png"] if figure else None
                )
        return contents

    def pictures(self) -> list[str]:
        """Return the file names of the table's pictures."""
        names = [picture.name for picture in RECALL_PICTURES if self.lines(picture)]
        return [
            f"{self.dataset}-{name}.png"
            for name in [*names, *(["lengths"] if self.at_lengths() else [])]
        ]

    def title(self, picture: RecallPicture = FACTS) -> str:
        """Return the title of a picture."""
        first = next(block.rows[0].first for block in self.comparable if picture.lines(block.rows))
        of = f"{first.key.split} split, {format_count(first.evaluation.n, 'example')}"
        return f"{self.dataset}: {picture.topic} ({of})"

    def blocks(self, brief: bool = False, ledger: bool = False) -> list[Block]:
        """Return the blocks of our runs, then, if no columns and no block were chosen, that of published numbers.

        Args:
            brief: show only the best published row of each of the suite's systems.
            ledger: add the runs' truncation ledgers.
        """
        blocks = [
            leaderboard_block(rows, self.comparable, self.part, self.columns)
            for rows in self.comparable
        ]
        if self.block is not None:
            return [blocks[self.block - 1]]
        blocks += [self.ledger()] if ledger else []
        return (
            blocks
            if self.columns
            else blocks + published_blocks(self.dataset, self.records(), brief, self.part)
        )


def take_part_as_f(
    records: Iterable[RunRecord], part: str, scores: Mapping[str, ScoreTable]
) -> tuple[list[RunRecord], dict[str, ScoreTable]]:
    """Return records and scores with a part of ROUGE in the place of F1.

    Runs do not store the intervals of precision and recall: they come from the per-example scores, if these exist.
    """
    columns = {kind: f"{kind}_{part}" for kind in comparability.ROUGE_HEADINGS}
    part_scores = {}
    for run, table in scores.items():
        part_scores[run] = table.assign(
            **{f"{kind}_f": table[name] for kind, name in columns.items()}
        )
    return [
        _with_part_as_f(record, part, part_scores.get(record.run_id)) for record in records
    ], part_scores


def _with_part_as_f(record: RunRecord, part: str, scores: ScoreTable | None) -> RunRecord:
    bounds: Mapping[str, tuple[float, float]] = {}
    if scores is not None:
        scoring = record.config.score
        columns = scores.frame()[[f"{kind}_f" for kind in comparability.ROUGE_HEADINGS]]
        bounds = intervals_of(
            columns, scoring.resamples, perl_resampling=scoring.resampling == "perl"
        )
    means = {}
    for kind, score in record.evaluation.scores.items():
        low, high = bounds.get(f"{kind}_f", (math.nan, math.nan))
        means[kind] = replace(score, f=getattr(score, part), f_lo=low, f_hi=high)
    return replace(record, evaluation=replace(record.evaluation, scores=means))


@suite_errors()
def leaderboard(dataset: str | None = None, results_dir: str | Path = "results") -> "pd.DataFrame":
    """Rebuild the table of a dataset, or of all, from their finished runs, as `longsumbench leaderboard` does.

    Args:
        dataset: its name; None for all datasets.
        results_dir: where the runs are.

    Returns:
        A row for each run, with the columns of `leaderboard/<dataset>.csv`: comparable runs together, the best first.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read.
    """
    import pandas as pd

    results = Results(Path(results_dir).expanduser())
    frames = [update_table(results, name).frame() for name in find_datasets(results, dataset)]
    return pd.concat(frames, ignore_index=True).infer_objects()


@suite_errors()
def leaderboard_figure(dataset: str, results_dir: str | Path = "results") -> "Figure":
    """Draw the ranking score of each system on a dataset with its 95 % interval; nothing is written.

    Returns:
        A figure of the first block of the table, best first; 0–100, or in the measure's unit.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read.
    """
    results = Results(Path(results_dir).expanduser())
    find_datasets(results, dataset)
    figure = _first_block_figure(read_table(results, dataset))
    return draw_figure(figure.size, figure.draw)


def _first_block_figure(table: Table) -> IntervalFigure:
    """Return the ranking score of each row of the first block with its 95 % interval, best first."""
    block = table.comparable[0]
    number = block.rows[0].first.evaluation.ranked_by
    rows = [IntervalRow(row.label, row.numbers[number], row.first.key.model) for row in block.rows]
    title = f"{table.dataset}, {describe_block(block, table.comparable)}"
    axis = f"{comparability.heading_of(number)}, with 95 % intervals"
    return IntervalFigure(title, [IntervalPanel("", rows)], axis)


def find_datasets(results: Results, dataset: str | None = None) -> list[str]:
    """Return the datasets with finished runs; of these only `dataset`, if it is given.

    Raises:
        UsageError: there are no runs, or none on the dataset.
    """
    datasets = results.datasets()
    if not datasets:
        raise UsageError(
            f"no finished run under {results.root}: start with `longsumbench run`, or set --results-dir"
        )
    if dataset and dataset not in datasets:
        raise UnknownName("dataset with results", dataset, datasets)
    return [dataset] if dataset else datasets


def update_table(results: Results, dataset: str, redraw: bool = True) -> Table:
    """Rebuild `leaderboard/<dataset>.csv`, `.md`, `.tex` and the pictures from all finished runs on a dataset.

    A lock serializes simultaneous jobs, so the last table has all runs. Pictures are drawn if the CSV has changed, or
    one is missing. Without `redraw`, no file is written if the CSV is the same.

    Raises:
        UsageError: there is no finished run on the dataset.
        DataError: no record can be read; the files stay unchanged.
    """
    find_datasets(results, dataset)
    with results.leaderboard_lock(dataset):
        table = read_table(results, dataset)
        folder = results.root / "leaderboard"
        csv = folder / f"{dataset}.csv"
        is_current = csv.is_file() and csv.read_bytes() == table.csv().encode()
        if redraw or not is_current:
            has_pictures = is_current and all(
                (folder / name).is_file() for name in table.pictures()
            )
            results.write_leaderboard(table.files(draw=not has_pictures))
    return table


def read_table(
    results: Results,
    dataset: str,
    part: str = "f",
    by_run: bool = False,
    names: Sequence[str] | None = None,
) -> Table:
    """Return the table of all readable finished runs on a dataset.

    `part` is a key of `ROUGE_PARTS`. By default, a row has all seeds of a system, and the numbers that tables show (or
    `names`) are tested.
    """
    records = list(results.records(dataset))
    marks = [is_verified(results.run_folder(record)) for record in records]
    records = [
        replace(run, verified=mark if any(marks) else None)
        for run, mark in zip(records, marks, strict=True)
    ]
    scores = read_all_scores(results, records, f"f{part}")
    if part != "f":
        records, scores = take_part_as_f(records, part, scores)
        records = [
            replace(
                record,
                evaluation=replace(record.evaluation, measures={}, ranked_by=DEFAULT_RANKING_SCORE),
            )
            for record in records
        ]
    if not records:
        raise DataError("no run can be read", results.root / "runs" / dataset)
    return Table(dataset, comparable_rows(records, scores, by_run, names), part, scores)
