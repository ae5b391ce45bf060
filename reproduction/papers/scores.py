"""Tables of scores: printed and ours for each measure, then the paper's other rows as printed. Begin with `scores_page`.

A difference of the two is shown only where ours are on the paper's texts. Of dimensions (SEAL,
Table 4) the planned settings are shown next to the printed ones; nothing is run.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from longsumbench.leaderboards.comparability import PLANTED
from longsumbench.leaderboards.published import COLUMNS
from longsumbench.metrics.aggregate import Estimate
from longsumbench.views.tables import Block, rounded_frame
from longsumbench_reproduction.papers import published_rows
from longsumbench_reproduction.papers.claims import (
    DIFFERENCE,
    OURS,
    PRINTED,
    TableNumber,
    format_change,
)
from longsumbench_reproduction.papers.conditions import build_row_page, compare_texts
from longsumbench_reproduction.papers.page_model import Job, Page
from longsumbench_reproduction.papers.paper_tables import PAPER, PaperTable
from longsumbench_reproduction.papers.run_planning import plan_paper_table

_UNIT = 10_000
_PRINTED_PARAMETERS = {  # name of a paper table → label of a row → thousands, as printed
    "etads-table4": {
        "Encoder, 2 layers": 3190,
        "Encoder, 4 layers": 3821,
        "Encoder, 6 layers": 4451,
        "Decoder, 2 layers": 3406,
        "Decoder, 4 layers": 4246,
        "Decoder, 6 layers": 5087,
    }
}
_UNITS = (
    "Ours: weights of the embeddings and of the named stack, of a decoder also the bias of its output, without "
    "positions, at the paper's sizes. The paper says that 1K is 1,000; its numbers are right in units of 10,000."
)


class RowParameters(NamedTuple):
    """Number of weights of a row, printed and of our network."""

    label: str
    dataset: str
    printed: int
    ours: int


def count_row_parameters(job: Job) -> list[RowParameters]:
    """Return the weights of each row, printed and of our network at the paper's sizes, if the paper prints them."""
    thousands = _PRINTED_PARAMETERS.get(job.paper_table.name)
    if thousands is None:
        return []
    from longsumbench.modeling.sizes import count_parameters  # it needs torch

    counts = []
    for row in plan_paper_table(job.paper_table, [f"scale={PAPER}"], job.results).rows:
        stack = row.label.partition(",")[0].lower()
        parts = ["model.shared.", f"model.{stack}.layers."]
        if stack == "decoder":
            parts.append("lm_head.bias")
        total = 0
        for name, size in count_parameters(row.points[0].config.model).items():
            if name.startswith(tuple(parts)):
                total += size
        counts.append(RowParameters(row.label, row.dataset, _UNIT * thousands[row.label], total))
    return counts


def _parameters_block(counts: Sequence[RowParameters]) -> Block:
    """Return the weights as a table: printed in the paper's unit, and ours."""
    columns = ("", "parameters\nprinted", "parameters\nours")
    rows = [[row.label, f"{row.printed // _UNIT}K", f"{row.ours:,}"] for row in counts]
    return Block("Parameters", (), columns, "lrr", rows, footnotes=(_UNITS,))


# Columns are named as in the papers, measures as in the runs
_MEASURE_OF = {column: measure for measure, column in published_rows.OUR_COLUMNS.items()}
_ROUGE_COLUMNS = tuple(COLUMNS.values())
_COLUMN_HEADINGS = {PLANTED: published_rows.FACTS_HEADING.replace(" right", "\nright")}
_RUNS_COLUMN = "runs"
# The first is the first that a narrow terminal leaves out
_LEAST_NEEDED = ("difference", "printed", "ours")


class _Line(NamedTuple):
    """A row of a table: what the paper prints, and our numbers; `same`: ours are on the paper's texts."""

    label: str
    dataset: str
    paper_row: published_rows.PublishedRow | None
    estimates: dict[str, Estimate]
    runs: str
    same: bool

    def number(self, column: str) -> str:
        """Return the printed number of a column; empty if there is none."""
        return self.paper_row.numbers.get(column, "") if self.paper_row else ""

    def difference(self, column: str) -> Estimate | None:
        """Return ours minus printed, with the interval of ours; None if one is missing, or texts differ."""
        if not (self.same and self.number(column) and column in self.estimates):
            return None
        # A constant shifts the interval and leaves its width
        constant = float(self.number(column))
        return Estimate(*(value - constant for value in self.estimates[column]))


def scores_page(job: Job) -> Page:
    """Return the page of a table of scores: a block for each dataset, others of parameters and of printed rows."""
    means = published_rows.read_row_means(job)
    blocks, numbers = list[Block](), list[TableNumber]()
    for dataset in job.datasets:
        lines = _table_lines(job, means, dataset)
        blocks.append(_scores_block(job, means, dataset, lines))
        for row in lines:
            numbers += _line_numbers(job, means, row)
    other_rows = published_rows.read_other_rows(job.paper_table, list(job.datasets))
    for printed_row in other_rows:
        numbers += _printed_row_numbers(job.paper_table, printed_row.label, printed_row)
    parameters = count_row_parameters(job)
    for count in parameters:
        labels = count.dataset, count.label, "parameters"
        numbers.append(TableNumber(PRINTED, *labels, count.printed))
        numbers.append(TableNumber(OURS, *labels, count.ours))
    if parameters:
        blocks.append(_parameters_block(parameters))
    if other_rows:
        blocks.append(published_rows.printed_block(job.paper_table, other_rows))
    verdicts = published_rows.decide_claims(job, means)
    return build_row_page(job, means, blocks, [*numbers, *means.learned_numbers()], verdicts)


def _table_lines(job: Job, means: published_rows.RowMeans, dataset: str) -> list[_Line]:
    # Every row has the numbers of all columns, also of those that only another row prints
    paper_rows: dict[str, published_rows.PublishedRow | None] = {}
    columns = list(map(published_rows.paper_column, published_rows.measures_shown(job, means)))
    for label, row in job.paper_table.rows.items():
        if not row.datasets or dataset in row.datasets:
            paper_row = published_rows.find_printed_row(job.paper_table, label, dataset)
            paper_rows[label] = paper_row
            columns += paper_row.numbers if paper_row else ()
    same = not compare_texts(job, dataset)
    runs = {row.label: published_rows.count_runs(row) for row in job.rows if row.dataset == dataset}
    lines = []
    for label, paper_row in paper_rows.items():
        estimates: dict[str, Estimate] = {}
        for column in columns:
            number = means.number(label, dataset, _MEASURE_OF.get(column, column))
            if number is not None and column != published_rows.UNSTATED:
                estimates[column] = number
        lines.append(_Line(label, dataset, paper_row, estimates, runs.get(label, ""), same))
    return lines


def _scores_block(
    job: Job, means: published_rows.RowMeans, dataset: str, lines: Sequence[_Line]
) -> Block:
    unlike = compare_texts(job, dataset)
    texts = {"printed": "", "ours": "", "difference": ""}  # kind of number → its texts
    if unlike:
        texts |= {"printed": f" on {dataset}", "ours": f" on {job.datasets[dataset].name}"}
    # The columns that any row fills, in the order of ROUGE, then of the paper
    numbered: dict[str, None] = {}
    for row in lines:
        numbered |= dict.fromkeys(row.paper_row.numbers if row.paper_row else ())
        numbered |= dict.fromkeys(row.estimates)
    cells = {"": [row.label for row in lines]}  # heading → cells of the column
    optional: list[str] = []
    for column in sorted(numbered, key=_column_place):
        heading = f"{_COLUMN_HEADINGS.get(column, column)}\n".replace("R-L ", "R-L\n")
        headings: dict[str, str] = {}
        for kind, kind_cells in _column_cells(lines, column).items():
            if any(kind_cells):
                headings[kind] = f"{heading}{kind}{texts[kind]}"
                cells[headings[kind]] = kind_cells
        if _column_place(column) and column != PLANTED:
            optional += [headings[kind] for kind in _LEAST_NEEDED if kind in headings]
    align = "l" + "r" * (len(cells) - 1) + "lrrr"
    learned = [means.learned_cells(row.label, dataset) for row in lines]
    for index, name in enumerate(published_rows.LEARNED_COLUMNS):
        cells[name] = [row_cells[index] for row_cells in learned]
    cells[_RUNS_COLUMN] = [row.runs for row in lines]
    return Block(
        dataset,
        (unlike,) if unlike and any(row.estimates for row in lines) else (),
        tuple(cells),
        align,
        list(zip(*cells.values(), strict=True)),
        optional=(*published_rows.LEARNED_COLUMNS[1:], *optional, _RUNS_COLUMN),
        footnotes=tuple(_footnotes(job.paper_table, means, lines)),
    ).without_empty_columns()


def _column_place(column: str) -> int:
    return [*_ROUGE_COLUMNS, column].index(column)


def _column_cells(lines: Sequence[_Line], column: str) -> dict[str, list[str]]:
    """Return the cells of a measure: "printed", "ours" and "difference", with as many decimals as the paper prints."""
    printed_cells = [row.number(column) for row in lines]
    # Ours have the precision of the printed numbers, at least one decimal
    decimals = max(1, *(len(cell.partition(".")[2]) for cell in printed_cells))
    estimates, differences = [], []
    for row in lines:
        estimates.append(f"{row.estimates[column]:.{decimals}f}" if column in row.estimates else "")
        differences.append(format_change(row.difference(column), decimals))
    return {"printed": printed_cells, "ours": estimates, "difference": differences}


def _footnotes(
    paper_table: PaperTable, means: published_rows.RowMeans, lines: Sequence[_Line]
) -> Iterator[str]:
    if any(row.estimates for row in lines):
        yield from means.describe_numbers(paper_table.part)
    if any(any(map(row.difference, row.estimates)) for row in lines):
        yield "Difference: ours minus printed; the printed number counts as a constant."
    if any(row.number(published_rows.UNSTATED) for row in lines):
        yield "The paper does not state the kind of its R-L, so it cannot be compared with ours."
    doubted = [row.label for row in lines if row.paper_row and row.paper_row.doubted]
    if doubted:
        labels = ", ".join(doubted)
        yield f"Another publication or table contradicts the printed row (see published.csv): {labels}."


def _line_numbers(job: Job, means: published_rows.RowMeans, row: _Line) -> Iterator[TableNumber]:
    if row.paper_row:
        yield from _printed_row_numbers(job.paper_table, row.label, row.paper_row)
    # In the CSV, ours come before the differences
    differences = {column: row.difference(column) for column in row.estimates}
    for kind, values in ((OURS, row.estimates), (DIFFERENCE, differences)):
        for column, value in values.items():
            if value is not None:
                measure = _MEASURE_OF.get(column, column)
                yield means.table_number(kind, row.label, row.dataset, measure, value)


def _printed_row_numbers(
    paper_table: PaperTable, label: str, row: published_rows.PublishedRow
) -> Iterator[TableNumber]:
    source = f"{paper_table.prints}, {row.source}"
    for column, value in row.numbers.items():
        measure = _MEASURE_OF.get(column, column)
        yield TableNumber(PRINTED, row.dataset, label, measure, float(value), source=source)


_DIMENSIONS = ("L_input", "L_snpt", "N_snpt", "L_ext", "L_dec", "L_seg", "N_seg")
PRINTED_DIMENSIONS: Mapping[
    str, tuple[str, ...]
] = {  # SEAL, Table 4, as printed; L_input is rounded there
    "arXiv": ("28k", "128", "224", "1024", "768", "96", "8"),
    "PubMed": ("12k", "128", "96", "1024", "512", "64", "8"),
    "Search2Wiki": ("100k", "128", "768", "1024", "512", "64", "8"),
}
_SYMBOLS = (
    "Lengths in tokens. L_input = L_snpt × N_snpt: longest input; L_snpt: longest snippet; N_snpt: most snippets; "
    "L_ext: longest extract; L_dec: longest summary = L_seg × N_seg; L_seg: segment; N_seg: most segments."
)


def dimensions_page(job: Job) -> Page:
    """Make the page of planned dimensions. The scale `paper` is compared with the printed ones."""
    at_paper_scale = job.scale == PAPER
    rows, numbers, sentences = list[Sequence[str]](), [], []
    if not at_paper_scale:
        sizes = f"The planned settings are those of scale={job.scale}"
        sentences.append(f"{sizes}; scale=paper has the printed ones.")
    for dataset in job.datasets:
        # The paper's row first, then those of the planned systems
        expected = PRINTED_DIMENSIONS.get(dataset, ("",) * len(_DIMENSIONS))
        if dataset in PRINTED_DIMENSIONS:
            rows.append(["printed", dataset, *expected])
        for row in [row for row in job.rows if row.dataset == dataset]:
            planned = planned_dimensions(row.points[0].config.model)
            rows.append([row.label, dataset, *planned])
            for name, value, printed_value in zip(_DIMENSIONS, planned, expected, strict=True):
                differs = value and printed_value and value != printed_value
                if at_paper_scale and differs and name != "L_input":
                    place = f"{row.label} on {dataset} has {name} = {value}"
                    sentences.append(f"{place}; the paper prints {printed_value}.")
    for label, dataset, *values in rows:
        for name, value in zip(_DIMENSIONS, values, strict=True):
            if value:
                number = {"dataset": dataset, "row": label, "setting": name, "value": value}
                numbers.append(number)
    columns = ("row", "dataset", *_DIMENSIONS)
    align = "ll" + "r" * len(_DIMENSIONS)
    block = Block("", (), columns, align, rows, footnotes=(_SYMBOLS,))
    return Page((block,), rounded_frame(numbers), conditions=tuple(sentences))


def planned_dimensions(model: Any) -> tuple[str, ...]:
    """Return the dimensions of the settings of `ca`, `ea` or `seal`, in the order of Table 4; empty where absent."""
    segment = vars(model).get("segment_length")
    numbers = (
        model.snippet_length * model.num_snippets,
        model.snippet_length,
        model.num_snippets,
        model.extractive_length,
        model.decode_length,
        segment,
        segment and -(-model.decode_length // segment),
    )
    return tuple("" if number is None else str(number) for number in numbers)
