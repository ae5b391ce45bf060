"""Tables of scores: printed and ours for each measure, then the paper's other rows as printed.

A difference of the two is shown only where ours are on the paper's texts. Of dimensions (SEAL,
Table 4) the planned settings are shown next to the printed ones; nothing is run.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from longsumbench.leaderboards.comparability import PLANTED, ROUGE_PARTS
from longsumbench.leaderboards.published import COLUMNS
from longsumbench.metrics.aggregate import Estimate
from longsumbench.papers import printed
from longsumbench.papers.claims import (
    DIFFERENCE,
    OURS,
    PRINTED,
    TableNumber,
    format_change,
    long_table,
)
from longsumbench.papers.conditions import compare_texts, describe_conditions
from longsumbench.papers.page import Job, Page
from longsumbench.papers.paper_tables import PAPER, PaperTable
from longsumbench.papers.points import plan_paper_table
from longsumbench.views.tables import Block, rounded_frame

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


def count_parameters_of_rows(job: Job) -> Iterator[TableNumber]:
    """Yield the weights of each row, printed and of our network at the paper's sizes, if the paper prints them."""
    if not (thousands := _PRINTED_PARAMETERS.get(job.paper_table.name, {})):
        return
    from longsumbench.modeling.flops import count_parameters  # it needs torch

    for row in plan_paper_table(job.paper_table, [f"scale={PAPER}"], job.results).rows:
        stack = row.label.partition(",")[0].lower()
        parts = (
            "model.shared.",
            f"model.{stack}.layers.",
            *(["lm_head.bias"] if stack == "decoder" else []),
        )
        sizes = count_parameters(row.points[0].config.model).items()
        total = sum(size for name, size in sizes if name.startswith(parts))
        yield TableNumber(
            PRINTED, row.dataset, row.label, "parameters", thousands[row.label] * _UNIT
        )
        yield TableNumber(OURS, row.dataset, row.label, "parameters", total)


def parameters_block(numbers: Sequence[TableNumber]) -> Block:
    """Return the weights as a table: printed in the paper's unit, and ours."""
    rows = [
        [paper_number.row, f"{paper_number.value / _UNIT:.0f}K", f"{our_number.value:,}"]
        for paper_number, our_number in zip(numbers[::2], numbers[1::2], strict=True)
        if paper_number.value and our_number.value
    ]
    return Block(
        "Parameters",
        (),
        ("", "parameters\nprinted", "parameters\nours"),
        "lrr",
        rows,
        footnotes=(_UNITS,),
    )


_MEASURE_OF = {column: measure for measure, column in printed.OUR_COLUMNS.items()}
_ROUGE_COLUMNS = tuple(COLUMNS.values())
_COLUMN_HEADINGS = {PLANTED: printed.FACTS_HEADING.replace(" right", "\nright")}
_RUNS_COLUMN = "runs"
_LEAST_NEEDED = (
    "difference",
    "printed",
    "ours",
)  # the first is the first that a narrow terminal leaves out


class _Line(NamedTuple):
    """A row of a table: what the paper prints, and our numbers; `same`: ours are on the paper's texts."""

    label: str
    dataset: str
    paper_row: printed.PrintedRow | None
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
        constant = float(self.number(column))
        return Estimate(*(value - constant for value in self.estimates[column]))


def scores_page(job: Job) -> Page:
    """Return the page of a table of scores: a block for each dataset, others of parameters and of printed rows."""
    means = printed.read_row_means(job)
    tables = {dataset: _table_lines(job, means, dataset) for dataset in job.datasets}
    other_rows = printed.read_other_rows(job.paper_table, list(job.datasets))
    blocks = [_scores_block(job, means, dataset, lines) for dataset, lines in tables.items()]
    parameters, verdicts = [*count_parameters_of_rows(job)], printed.decide_claims(job, means)
    blocks += [parameters_block(parameters)] if parameters else []
    numbers = [
        number
        for lines in tables.values()
        for row in lines
        for number in _line_numbers(job, means, row)
    ]
    numbers += [
        number
        for row in other_rows
        for number in _printed_row_numbers(job.paper_table, row.label, row)
    ]
    return Page(
        blocks=(*blocks, *filter(None, [printed.printed_block(job.paper_table, other_rows)])),
        numbers=long_table([*numbers, *parameters, *means.learned_numbers()], verdicts),
        verdicts=verdicts,
        conditions=describe_conditions(job, means),
    )


def _table_lines(job: Job, means: printed.RowMeans, dataset: str) -> list[_Line]:
    rows = [
        label
        for label, row in job.paper_table.rows.items()
        if not row.datasets or dataset in row.datasets
    ]
    paper_rows = {
        label: printed.find_printed_row(job.paper_table, label, dataset) for label in rows
    }
    columns = [printed.column_of(measure) for measure in printed.measures_shown(job, means)]
    columns += [
        column
        for row in paper_rows.values()
        if row
        for column in row.numbers
        if column != printed.UNSTATED
    ]
    planned = {row.label: row for row in job.rows if row.dataset == dataset}
    lines = []
    for label in rows:
        numbers = {
            column: means.number(label, dataset, _MEASURE_OF.get(column, column))
            for column in columns
        }
        estimates = {column: number for column, number in numbers.items() if number is not None}
        runs = printed.count_runs(planned[label]) if label in planned else ""
        lines.append(
            _Line(
                label, dataset, paper_rows[label], estimates, runs, not compare_texts(job, dataset)
            )
        )
    return lines


def _scores_block(job: Job, means: printed.RowMeans, dataset: str, lines: Sequence[_Line]) -> Block:
    unlike = compare_texts(job, dataset)
    texts = (
        {"printed": f" on {dataset}", "ours": f" on {job.datasets[dataset].name}"} if unlike else {}
    )
    numbered = [
        column
        for row in lines
        for column in [*(row.paper_row.numbers if row.paper_row else ()), *row.estimates]
    ]
    names, cells, optional = (
        [""],
        [[row.label for row in lines]],
        [*printed.LEARNED_COLUMNS[1:], _RUNS_COLUMN],
    )
    for column in sorted(dict.fromkeys(numbered), key=_column_place):
        kind_cells = {
            kind: cells for kind, cells in _column_cells(lines, column).items() if any(cells)
        }
        heading = f"{_COLUMN_HEADINGS.get(column, column)}\n".replace("R-L ", "R-L\n")
        headings = {kind: f"{heading}{kind}{texts.get(kind, '')}" for kind in kind_cells}
        names += headings.values()
        cells += kind_cells.values()
        if _column_place(column) and column != PLANTED:
            optional[-1:-1] = [headings[kind] for kind in _LEAST_NEEDED if kind in headings]
    learned = [means.learned_cells(row.label, dataset) for row in lines]
    cells += [[*column] for column in zip(*learned, strict=True)]
    cells.append([row.runs for row in lines])
    return Block(
        dataset,
        (unlike,) if unlike and any(row.estimates for row in lines) else (),
        (*names, *printed.LEARNED_COLUMNS, _RUNS_COLUMN),
        "l" + "r" * (len(names) - 1) + "lrrr",
        list(zip(*cells, strict=True)),
        optional=tuple(optional),
        footnotes=tuple(_footnotes(job.paper_table, means, lines)),
    ).without_empty_columns()


def _column_place(column: str) -> int:
    return [*_ROUGE_COLUMNS, column].index(column)


def _column_cells(lines: Sequence[_Line], column: str) -> dict[str, list[str]]:
    """Return the cells of a measure: "printed", "ours" and "difference", with as many decimals as the paper prints."""
    decimals = max([1, *(len(row.number(column).partition(".")[2]) for row in lines)])
    estimates, differences = [], []
    for row in lines:
        estimates.append(f"{row.estimates[column]:.{decimals}f}" if column in row.estimates else "")
        differences.append(format_change(row.difference(column), decimals))
    return {
        "printed": [row.number(column) for row in lines],
        "ours": estimates,
        "difference": differences,
    }


def _footnotes(
    paper_table: PaperTable, means: printed.RowMeans, lines: Sequence[_Line]
) -> Iterator[str]:
    if any(row.estimates for row in lines):
        yield f"ROUGE {ROUGE_PARTS[paper_table.part]}, 0–100. {means.describe_interval()}"
        yield printed.LEARNED_NOTE
    if any(row.difference(column) for row in lines for column in row.estimates):
        yield "Difference: ours minus printed; the printed number counts as a constant."
    if any(row.number(printed.UNSTATED) for row in lines):
        yield "The paper does not state the kind of its R-L, so it cannot be compared with ours."
    if any(row.paper_row and row.paper_row.doubted for row in lines):
        labels = ", ".join(row.label for row in lines if row.paper_row and row.paper_row.doubted)
        yield f"Another publication or table contradicts the printed row (see published.csv): {labels}."


def _line_numbers(job: Job, means: printed.RowMeans, row: _Line) -> Iterator[TableNumber]:
    if row.paper_row:
        yield from _printed_row_numbers(job.paper_table, row.label, row.paper_row)
    for kind in (OURS, DIFFERENCE):
        for column, number in row.estimates.items():
            value = number if kind == OURS else row.difference(column)
            if value is not None:
                yield means.table_number(
                    kind, row.label, row.dataset, _MEASURE_OF.get(column, column), value
                )


def _printed_row_numbers(
    paper_table: PaperTable, label: str, row: printed.PrintedRow
) -> Iterator[TableNumber]:
    source = f"{paper_table.prints}, {row.source}"
    for column, value in row.numbers.items():
        yield TableNumber(
            PRINTED,
            row.dataset,
            label,
            _MEASURE_OF.get(column, column),
            float(value),
            source=source,
        )


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
    rows = [["printed", dataset, *values] for dataset, values in _printed_dimensions(job).items()]
    rows += [
        [row.label, row.dataset, *planned_dimensions(row.points[0].config.model)]
        for row in job.rows
    ]
    rows.sort(key=lambda row: list(job.datasets).index(row[1]))
    block = Block(
        "",
        (),
        ("row", "dataset", *_DIMENSIONS),
        "ll" + "r" * len(_DIMENSIONS),
        rows,
        footnotes=(_SYMBOLS,),
    )
    numbers = [
        {"dataset": dataset, "row": label, "setting": name, "value": value}
        for label, dataset, *values in rows
        for name, value in zip(_DIMENSIONS, values, strict=True)
        if value
    ]
    return Page((block,), rounded_frame(numbers), conditions=tuple(_differences(job)))


def planned_dimensions(model: Any) -> tuple[str, ...]:
    """Return the dimensions of the settings of `ca`, `ea` or `seal`, in the order of Table 4; empty where absent."""
    segment = getattr(model, "segment_length", None)
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


def _printed_dimensions(job: Job) -> dict[str, tuple[str, ...]]:
    return {name: PRINTED_DIMENSIONS[name] for name in job.datasets if name in PRINTED_DIMENSIONS}


def _differences(job: Job) -> list[str]:
    if job.scale != PAPER:
        return [
            f"The planned settings are those of scale={job.scale}; scale=paper has the printed ones."
        ]
    expected_of, sentences = _printed_dimensions(job), []
    for row in job.rows:
        planned = planned_dimensions(row.points[0].config.model)
        for name, value, expected in zip(
            _DIMENSIONS, planned, expected_of.get(row.dataset, ()), strict=False
        ):
            if value and name != "L_input" and value != expected:
                sentences.append(
                    f"{row.label} on {row.dataset} has {name} = {value}; the paper prints {expected}."
                )
    return sentences
