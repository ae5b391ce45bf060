"""Dimensions of systems: SEAL's Table 4. The planned settings of each row, next to the printed ones; nothing is run."""

from collections.abc import Mapping
from typing import Any

from longsumbench.papers.artifacts import PAPER
from longsumbench.papers.page import Job, Page
from longsumbench.report.tables import Block, rounded_frame

_NAMES = ("L_input", "L_snpt", "N_snpt", "L_ext", "L_dec", "L_seg", "N_seg")
PRINTED_DIMENSIONS: Mapping[str, tuple[str, ...]] = {  # SEAL, Table 4, as printed; L_input is rounded there
    "arXiv": ("28k", "128", "224", "1024", "768", "96", "8"),
    "PubMed": ("12k", "128", "96", "1024", "512", "64", "8"),
    "Search2Wiki": ("100k", "128", "768", "1024", "512", "64", "8"),
}
_LEGEND = (
    "Lengths in tokens. L_input = L_snpt × N_snpt: longest input; L_snpt: longest snippet; N_snpt: most snippets; "
    "L_ext: longest extract; L_dec: longest summary = L_seg × N_seg; L_seg: segment; N_seg: most segments."
)


def dimensions_page(job: Job) -> Page:
    """Make the page of planned dimensions. The scale `paper` is compared with the printed ones."""
    rows = [["printed", dataset, *printed] for dataset, printed in _printed(job).items()]
    rows += [[row.label, row.dataset, *planned_dimensions(row.points[0].config.model)] for row in job.rows]
    rows.sort(key=lambda row: list(job.datasets).index(row[1]))
    block = Block("", (), ("row", "dataset", *_NAMES), "ll" + "r" * len(_NAMES), rows, footnotes=(_LEGEND,))
    numbers = [
        {"dataset": dataset, "row": label, "setting": name, "value": value}
        for label, dataset, *values in rows
        for name, value in zip(_NAMES, values, strict=True)
        if value
    ]
    return Page((block,), rounded_frame(numbers), conditions=tuple(_differences(job)))


def planned_dimensions(model: Any) -> tuple[str, ...]:
    """Return the dimensions of a system of the SEAL family, in the order of Table 4; empty where it has none.

    Args:
        model: the settings of `ca`, `ea` or `seal`.
    """
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


def _printed(job: Job) -> dict[str, tuple[str, ...]]:
    return {name: PRINTED_DIMENSIONS[name] for name in job.datasets if name in PRINTED_DIMENSIONS}


def _differences(job: Job) -> list[str]:
    """Return a sentence for each planned setting that differs from the printed one, at the scale `paper`."""
    if job.scale != PAPER:
        return [f"The planned settings are those of scale={job.scale}; scale=paper has the printed ones."]
    printed, found = _printed(job), []
    for row in job.rows:
        planned = planned_dimensions(row.points[0].config.model)
        for name, ours, theirs in zip(_NAMES, planned, printed.get(row.dataset, ()), strict=False):
            if ours and name != "L_input" and ours != theirs:
                found.append(f"{row.label} on {row.dataset} has {name} = {ours}; the paper prints {theirs}.")
    return found
