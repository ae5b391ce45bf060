"""The kinds of tables and figures: what each receives and returns, and the function that makes its page.

    Job --make_page--> Page: blocks, numbers, verdicts, pictures

Each function is imported when it is first used: some need torch or matplotlib. The page is written as Markdown and CSV;
NAME.json says what they show.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec
import pandas as pd

from longsumbench.core import DatasetSettings
from longsumbench.errors import DataError, EnvironmentProblem
from longsumbench.files import BadFile, read_json
from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.comparability import find_heading
from longsumbench.leaderboards.published import PUBLISHED_AS
from longsumbench.leaderboards.seed_groups import NOT_LEARNED, STILL_LEARNING
from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.figures import COLOURS, GREY
from longsumbench.views.tables import Block
from longsumbench_reproduction.papers.paper_tables import (
    PaperRow,
    PaperTable,
    dataset_name,
    find_paper_table,
    read_paper_tables,
)

# Outcomes of claims; a claim about a system that did not learn has `NOT_LEARNED`
REPRODUCED, REVERSED, UNDECIDED, NOT_TESTED = "reproduced", "reversed", "undecided", "not tested"
ALIKE_ROWS, UNLIKE_ROWS = "alike", "not alike"
DEPENDS_ON_MEASURE = "depends on the measure"
ONE_SEED, TWO_SEEDS = f"{UNDECIDED} (one seed)", f"{UNDECIDED} (two seeds)"
DECIDED = (REPRODUCED, REVERSED, ALIKE_ROWS, UNLIKE_ROWS)
UNDECIDED_LEARNING = f"{UNDECIDED} ({STILL_LEARNING})"
# Outcome → colour, in the order of tables and pictures
OUTCOMES = {
    REPRODUCED: COLOURS[2],
    ALIKE_ROWS: COLOURS[4],
    REVERSED: "#D1300F",
    UNLIKE_ROWS: COLOURS[3],
    DEPENDS_ON_MEASURE: COLOURS[1],
    UNDECIDED: COLOURS[5],
    ONE_SEED: "#B08D4C",
    TWO_SEEDS: "#C9AF7F",
    UNDECIDED_LEARNING: "#E0D2B5",
    NOT_LEARNED: GREY,
    NOT_TESTED: "#C8C8C8",
}


# What a kind receives: a job, with its rows
class RowRuns(NamedTuple):
    """The runs of a row on one dataset.

    Attributes:
        label: label of the row.
        dataset: the paper's name of the dataset.
        points: as planned, one for each seed.
        records: of each point; None if its run is not finished.
    """

    label: str
    row: PaperRow
    dataset: str
    points: tuple[PlannedRun, ...]
    records: tuple[RunRecord | None, ...]

    @property
    def finished(self) -> tuple[RunRecord, ...]:
        """Records of the finished runs."""
        return tuple(record for record in self.records if record is not None)

    @property
    def missing(self) -> list[PlannedRun]:
        """Points without a finished run."""
        points = zip(self.points, self.records, strict=True)
        return [point for point, record in points if record is None]


@dataclass(frozen=True)
class Job:
    """All that a kind needs to make the page of a paper table.

    Attributes:
        paper_table: the table or figure.
        scale: "paper", "small", "probe", ….
        datasets: the paper's name of a dataset → settings of the dataset that is read at this scale.
        rows: one for each row and dataset, in the order of the paper table.
        options: settings of this kind, as typed or by default.
        changes: sentences about typed overrides that make the result incomparable with the paper's or with others.
        results: the results folder.
        unreachable: (row, dataset) → why its runs cannot be planned: its checkpoint is not on this machine.
        words: the typed words that change the page, without the scale.
    """

    paper_table: PaperTable
    scale: str
    datasets: Mapping[str, DatasetSettings]
    rows: tuple[RowRuns, ...]
    options: Mapping[str, str | int | float | None]
    changes: tuple[str, ...]
    results: Results
    unreachable: Mapping[tuple[str, str], EnvironmentProblem] = field(default_factory=dict)
    words: tuple[str, ...] = ()

    @property
    def missing(self) -> list[PlannedRun]:
        """Points without a finished run."""
        return [*chain.from_iterable(row.missing for row in self.rows)]


# What it returns: a page, with verdicts on the paper's claims
class PartVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The difference of two rows, a part of a claim.

    Attributes:
        claim: the rows, with dataset and measure if the parts of the claim have several.
        dataset, measure: the paper's name of the dataset, and the measure.
        difference: the first row minus the second, 0–100.
        low, high: its interval, at the level at which it was tested; None if it was not tested.
    """

    claim: str
    dataset: str
    measure: str
    difference: float
    low: float | None = None
    high: float | None = None


class ClaimOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether a claim of the paper holds in our runs.

    Attributes:
        claim: the rows; of several parts those that decide, and the number of parts.
        measure: the measures, separated by commas.
        outcome: one of `OUTCOMES`.
        datasets: the paper's names of the datasets on which it was tested.
        difference: of the part that decides, the first row minus the second, 0–100; None if unknown.
        low, high: its interval, at the level at which it was tested; None if it was not tested.
        p: p-value, corrected (Holm) for the claims of the table; None if not tested.
        p_alone: without this correction, but for the number of looks.
        stated: when the test was stated, in a few words.
        withdrawn: why its test no longer counts; empty if it counts.
        reason: what was tested ("400 examples, 3 seeds"), or why nothing was.
        n, seeds: number of examples and of common seeds, the smallest of the parts; None if unknown. Without runs, no
            seeds.
        says, source: what the paper says, and where.
        runs: ids of the runs that were compared, separated by blanks.
        facts: difference in planted facts, in points; None if not measured, or if they are the measure.
        learned: the worst word of the rows' gate, as in `Learned`; empty without one.
        parts: of a claim with several parts, the difference of each; empty if they were not measured.
    """

    claim: str
    measure: str
    outcome: str
    datasets: tuple[str, ...] = ()
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    reason: str = ""
    n: int | None = None
    seeds: int | None = None
    says: str = ""
    source: str = ""
    runs: str = ""
    facts: float | None = None
    learned: str = ""
    parts: tuple[PartVerdict, ...] = ()
    p_alone: float | None = None
    stated: str = ""
    withdrawn: str = ""


def describe_measures(measures: str) -> str:
    """Return the headings of measures: "R-1, R-2" of "rouge1, rouge2", "R-1 minus R-2" of "rouge1 - rouge2"."""
    names = []
    for measure in measures.split(", "):
        names.append(" minus ".join(map(find_heading, measure.split(" - "))))
    return ", ".join(names)


def describe_tested(paper_table: PaperTable, scale: str, claim: ClaimOutcome) -> str:
    """Return on what a claim was tested: "R-1, probe (for arXiv)"; "nothing (for arXiv)" if it was not."""
    if claim.outcome == NOT_TESTED:
        return f"nothing (for {', '.join(claim.datasets)})" if claim.datasets else "nothing"
    texts = []
    for dataset in claim.datasets:
        name = dataset_name(paper_table.datasets.get(dataset, {}).get(scale, "")) or dataset
        of_paper = PUBLISHED_AS.get(dataset, dataset) == name
        texts.append(name if of_paper else f"{name} (for {dataset})")
    return f"{describe_measures(claim.measure)}, {' and '.join(texts)}"


@dataclass(frozen=True)
class Page:
    """The content of a paper table's files.

    Attributes:
        blocks: tables; drawn on the terminal and in Markdown.
        numbers: all numbers, one per row, for the CSV file.
        verdicts: one for each claim.
        conditions: in which conditions ours differ from the paper's (data, size, steps, ROUGE kind), a sentence each.
        pictures: file name → PNG.
        text: Markdown below the tables: example texts.
    """

    blocks: tuple[Block, ...] = ()
    numbers: pd.DataFrame = field(default_factory=pd.DataFrame)
    verdicts: tuple[ClaimOutcome, ...] = ()
    conditions: tuple[str, ...] = ()
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    text: str = ""


# Kind → its module, which has the function KIND_page
PAPER_TABLE_KINDS = {
    "scores": "scores",
    "curves": "curves",
    "sizes": "sizes",
    "rank_recall": "rank_recall",
    "evidence": "evidence",
    "case_study": "case_study",
    "questions": "questions",
    "dimensions": "scores",
    "similarity": "distances",
    "fusions": "distances",
    "examples": "output_examples",
}
# Kinds that show the settings of points, which are not run
PLANNED_ONLY = frozenset({"dimensions"})
# Kinds that show outputs or evidence: a finished run can lack them
SHOWS_OUTPUTS = frozenset({"evidence", "examples", "case_study"})


def make_page(job: Job) -> Page:
    """Make the page of a table or figure from the runs that are finished.

    Raises:
        UsageError: an option is invalid, or names an example that no run summarized; or no dataset can be read.
        DataError: a file of the texts or of a run is damaged.
        EnvironmentProblem: no dataset can be read, or a model cannot be downloaded.
    """
    kind = job.paper_table.kind
    module = import_module(f"longsumbench_reproduction.papers.{PAPER_TABLE_KINDS[kind]}")
    page: Page = vars(module)[f"{kind}_page"](job)
    return page


def picture_name(paper_table: PaperTable, subject: str) -> str:
    """Return the file name of a picture, whose subject is a dataset or a row: "seal-figure5-seal.png"."""
    name = re.sub("[^a-z0-9]+", "-", subject.lower()).strip("-")
    return f"{paper_table.name}-{name}.png"


# What is read back from its files: by the index, the list of tables and the site
class PaperPageFile(msgspec.Struct, frozen=True):
    """The content of NAME.json: what the files of a paper table show.

    Attributes:
        scale: the scale of its runs.
        words: the other words of the command.
        runs: id of each finished run → seconds that it took.
        missing: names of the points without a finished run.
        claims: the verdicts, without their parts.
    """

    name: str
    scale: str
    words: tuple[str, ...] = ()
    runs: dict[str, float] = {}
    missing: tuple[str, ...] = ()
    claims: tuple[ClaimOutcome, ...] = ()

    @property
    def counted(self) -> tuple[ClaimOutcome, ...]:
        """The verdicts that count."""
        return tuple(claim for claim in self.claims if not claim.withdrawn)

    def tested_on(self, claim: ClaimOutcome) -> str:
        """Return the measure and the texts of a claim, with the paper's texts where ours are others."""
        return describe_tested(find_paper_table(self.name), self.scale, claim)

    def describe(self) -> str:
        """Describe scale, runs and outcomes: "probe, 2 of 3 runs, 2.5 min, 3 reproduced, 1 undecided"."""
        parts = [self.scale]
        if self.runs or self.missing:
            total = format_count(len(self.runs) + len(self.missing), "run")
            parts.append(f"{len(self.runs)} of {total}" if self.missing else total)
        if self.runs:
            parts.append(format_duration(sum(self.runs.values())))
        outcomes = [claim.outcome for claim in self.counted]
        for outcome in OUTCOMES:
            if outcome in outcomes:
                parts.append(f"{outcomes.count(outcome)} {outcome}")
        return ", ".join(parts)


def files_folder(results: Results) -> Path:
    """Return the folder with the files of all paper tables."""
    return results.root / "papers"


def read_written(results: Results, name: str) -> PaperPageFile | None:
    """Return what the files of a paper table show; None if there are none.

    Raises:
        DataError: the file is damaged.
    """
    path = files_folder(results) / f"{name}.json"
    try:
        return read_json(path, PaperPageFile)
    except FileNotFoundError:
        return None
    except BadFile as error:
        raise DataError(
            f"{error}; the same `longsumbench paper {name}` writes it again", path
        ) from error


def read_all_written(results: Results) -> list[PaperPageFile]:
    """Return what the files of all paper tables show, in the order of the papers.

    Raises:
        DataError: a file is damaged.
    """
    pages = [read_written(results, name) for name in read_paper_tables()]
    return [page for page in pages if page]
