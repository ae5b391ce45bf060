"""A table of coherence on one dataset: printed and ours, as a block and as numbers."""

from collections.abc import Iterator
from dataclasses import dataclass

from longsumbench.analysis.coherence.coherence import REFERENCE, SHUFFLED
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.metrics.aggregate import PERCENT, Estimate
from longsumbench.papers.artifacts import Artifact
from longsumbench.papers.long_table import OURS, PRINTED, TableNumber
from longsumbench.papers.numbers.ours import LEARNED_COLUMNS, LEARNED_NOTE, Ours
from longsumbench.papers.numbers.printed import find_printed_row
from longsumbench.papers.texts.coherent_texts import ScoredTexts
from longsumbench.papers.texts.reachable import ReadableDataset
from longsumbench.report.tables import Block

_MEASURE = "coherence"
_PRINTED_METRIC = "coherence_nsp"  # in published.csv, 0–1
_PRINTED_TEXTS = {"reference summary": REFERENCE, "random oracle": SHUFFLED}  # system in published.csv → our text


@dataclass(frozen=True)
class _ScoredRow:
    """A row on one dataset: what the paper prints, and ours.

    Attributes:
        label: of the artifact's row.
        printed: coherence, 0–100; None if the paper prints none.
        ours: coherence, 0–100; None without a score.
        group: the runs with outputs; None for references.
        num_texts: number of texts with a score, of one run.
    """

    label: str
    printed: float | None
    ours: Estimate | None
    group: SeedGroup | None
    num_texts: int


@dataclass(frozen=True)
class ScoredTable:
    """The rows of an artifact on one dataset."""

    artifact: Artifact
    dataset: ReadableDataset
    scored: ScoredTexts
    ours: Ours

    def _text(self, label: str) -> str:
        """Return the text that a row names: `REFERENCE`, `SHUFFLED`, or the label of a row with runs."""
        row = self.artifact.rows.get(label)
        return _PRINTED_TEXTS.get(row.published.get("system", ""), label) if row else label

    def _rows(self) -> Iterator[_ScoredRow]:
        for label in self.artifact.rows:
            text, found = self._text(label), find_printed_row(self.artifact, label, self.dataset.name)
            printed = found.numbers.get(_PRINTED_METRIC) if found else None
            yield _ScoredRow(
                label,
                None if printed is None else PERCENT * float(printed),
                self.scored.estimate(text),
                self.scored.groups.get(text),
                self.scored.num_texts(text),
            )

    def block(self) -> Block:
        """Return printed and ours, a line for each row."""
        name, cells = self.dataset.name, []
        for row in self._rows():
            printed = "" if row.printed is None else f"{row.printed:.2f}"
            ours = "" if row.ours is None else f"{row.ours:.2f}"
            seeds, learned = f"{len(row.group.runs)}" if row.group else "", self.ours.learned_cells(row.label, name)
            numbers = [printed, ours, f"{row.num_texts:,}", seeds]
            cells.append([row.label, *numbers, *learned])
        notes = (
            f"{self.scored.found.about}. Coherence, 0–100, is the mean probability that a sentence follows the one "
            "before it; means ± half the 95 % interval over texts of two sentences or more, and over seeds.",
        )
        kinds = (f"printed\non {name}", f"ours\non {self.dataset.settings.name}")
        columns, align = ("", *kinds, "texts", "seeds", *LEARNED_COLUMNS), "lrrrrlrr"
        block = Block(self.dataset.label, notes, columns, align, cells, footnotes=(LEARNED_NOTE,))
        return block.without_empty_columns()

    def numbers(self) -> Iterator[TableNumber]:
        """Yield printed and ours, of each row."""
        for row in self._rows():
            named = self.dataset.name, row.label, _MEASURE
            counted = row.num_texts, len(row.group.runs) if row.group else None
            runs = " ".join(run.run_id for run in row.group.runs) if row.group else ""
            if row.printed is not None:
                yield TableNumber(PRINTED, *named, row.printed, source=f"{self.artifact.source} {self.artifact.prints}")
            if row.ours is not None:
                yield TableNumber(OURS, *named, *row.ours, *counted, runs=runs)
