"""Draws and writes what `longsumbench agreement` found: a panel for each aspect, with metrics as points."""

from pathlib import Path

from longsumbench.metrics.aggregate import Estimate
from longsumbench.outputs.agreement import ANNOTATORS, Agreement, measure_heading
from longsumbench.outputs.judgements import CONTROLS
from longsumbench.views.figures import render_picture, write_pictures
from longsumbench.views.intervals import IntervalFigure, IntervalPanel, IntervalRow


def write_agreement(result: Agreement, folder: Path) -> list[Path]:
    """Write `agreement.csv`, `.png` and `.svg`; return their paths."""
    figure = agreement_figure(result)
    pictures = render_picture(figure.size, figure.draw)
    files = {f"agreement.{kind}": image for kind, image in pictures.items()}
    return write_pictures(folder, {"agreement.csv": result.csv(), **files})


def agreement_figure(result: Agreement) -> IntervalFigure:
    """Return τ within documents of each metric, with its 95 % interval, and levels of the annotators and the controls."""
    panels = []
    for aspect in result.aspects:
        rows, levels = [], {}
        for measure, number in result.select_rows(aspect).iterrows():
            heading = measure_heading(str(measure))
            if number["kind"] == "metric":
                estimate = Estimate(number["tau"], number["tau_lo"], number["tau_hi"])
                rows.append(IntervalRow(heading, estimate))
            elif measure in (ANNOTATORS, *CONTROLS) and number["tau"] == number["tau"]:
                levels[heading] = number["tau"]
        panels.append(IntervalPanel(aspect, rows, levels))
    return IntervalFigure(f"{result.name}: agreement with people, τ within documents", panels, "τ")
