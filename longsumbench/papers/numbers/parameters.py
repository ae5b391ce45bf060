"""ETADS, Table 4: weights of the encoder or the decoder, printed and counted at the paper's sizes. Nothing is run."""

from collections.abc import Iterator, Sequence

from longsumbench.papers.claims import OURS, PRINTED, TableNumber
from longsumbench.papers.page import Job
from longsumbench.papers.paper_tables import PAPER
from longsumbench.papers.points import plan_paper_table
from longsumbench.render.tables import Block

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
    if not (printed := _PRINTED_PARAMETERS.get(job.paper_table.name, {})):
        return
    from longsumbench.modeling.flops import count_parameters  # it needs torch

    for row in plan_paper_table(job.paper_table, PAPER, (), job.results).rows:
        stack = row.label.partition(",")[0].lower()
        parts = ("model.shared.", f"model.{stack}.layers.", *(["lm_head.bias"] if stack == "decoder" else []))
        sizes = count_parameters(row.points[0].config.model).items()
        total = sum(size for name, size in sizes if name.startswith(parts))
        yield TableNumber(PRINTED, row.dataset, row.label, "parameters", printed[row.label] * _UNIT)
        yield TableNumber(OURS, row.dataset, row.label, "parameters", total)


def parameters_block(numbers: Sequence[TableNumber]) -> Block:
    """Return the weights as a table: printed in the paper's unit, and ours."""
    rows = [
        [printed.row, f"{printed.value / _UNIT:.0f}K", f"{our_number.value:,}"]
        for printed, our_number in zip(numbers[::2], numbers[1::2], strict=True)
        if printed.value and our_number.value
    ]
    return Block("Parameters", (), ("", "parameters\nprinted", "parameters\nours"), "lrr", rows, footnotes=(_UNITS,))
