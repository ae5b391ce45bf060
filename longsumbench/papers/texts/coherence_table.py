"""A table of coherence on one dataset: printed and ours, as a block, as numbers and as claims."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import structs

from longsumbench.analysis.coherence.coherence import REFERENCE, SHUFFLED
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.metrics.aggregate import PERCENT, Estimate
from longsumbench.papers.artifacts import Artifact, ArtifactRow, Ordering
from longsumbench.papers.claims import Claim
from longsumbench.papers.long_table import DIFFERENCE, OURS, PRINTED, TableNumber, format_change
from longsumbench.papers.numbers.printed import find_printed_row
from longsumbench.papers.texts.coherent_texts import ScoredTexts
from longsumbench.papers.texts.reachable import ReadableDataset
from longsumbench.report.tables import Block

_MEASURE = "coherence"
_PRINTED_METRIC = "coherence_nsp"  # in published.csv, 0–1
_PRINTED_TEXTS = {"reference summary": REFERENCE, "random oracle": SHUFFLED}  # system in published.csv → our text
_COLUMNS = ("", "printed", "ours", "ours − printed", "texts", "seeds")
_REFERENCE_CLAIM = Ordering(f"{REFERENCE} > {SHUFFLED}", on=_MEASURE)


def add_references(artifact: Artifact) -> Artifact:
    """Return the artifact with rows of references and shuffled references; those that it lacks come first."""
    named = {row.published.get("system") for row in artifact.rows.values()}
    lacking = {text: ArtifactRow(published={"system": one}) for one, text in _PRINTED_TEXTS.items() if one not in named}
    return structs.replace(artifact, rows={**lacking, **artifact.rows})


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

    @property
    def change(self) -> Estimate | None:
        """Ours minus printed; None if one of the two is missing."""
        if self.ours is None or self.printed is None:
            return None
        return Estimate(*(number - self.printed for number in self.ours))


@dataclass(frozen=True)
class ScoredTable:
    """The rows of an artifact on one dataset."""

    artifact: Artifact
    dataset: ReadableDataset
    scored: ScoredTexts

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
        cells = []
        for row in self._rows():
            printed = "" if row.printed is None else f"{row.printed:.2f}"
            ours = "" if row.ours is None else f"{row.ours:.2f}"
            seeds = f"{len(row.group.runs)}" if row.group else ""
            cells.append([row.label, printed, ours, format_change(row.change), f"{row.num_texts:,}", seeds])
        notes = (
            f"{self.scored.found.about}. Coherence, 0–100, is the mean probability that a sentence follows the one "
            "before it; means ± half the 95 % interval over texts of two sentences or more, and over seeds.",
        )
        return Block(self.dataset.label, notes, _COLUMNS, "lrrrrr", cells)

    def numbers(self) -> Iterator[TableNumber]:
        """Yield printed, ours and their difference, of each row."""
        for row in self._rows():
            named = self.dataset.name, row.label, _MEASURE
            counted = row.num_texts, len(row.group.runs) if row.group else None
            runs = " ".join(run.run_id for run in row.group.runs) if row.group else ""
            if row.printed is not None:
                yield TableNumber(PRINTED, *named, row.printed, source=f"{self.artifact.source} {self.artifact.prints}")
            if row.ours is not None:
                yield TableNumber(OURS, *named, *row.ours, *counted, runs=runs)
            if row.change:
                yield TableNumber(DIFFERENCE, *named, *row.change, *counted, runs=runs)

    def claims(self) -> Iterator[Claim]:
        """Yield the artifact's orderings, and that of references and shuffled references, each once."""
        tested = set()
        for ordering in (*self.artifact.orderings, _REFERENCE_CLAIM):
            texts = self._text(ordering.higher), self._text(ordering.lower)
            if texts in tested or (ordering.datasets and self.dataset.name not in ordering.datasets):
                continue
            tested.add(texts)
            missing = {text: self.scored.missing[text].what for text in texts if text in self.scored.missing}
            reason = "; ".join(f"{text}: {what}" for text, what in missing.items() if what)
            difference = None if reason else self.scored.compare(*texts)
            if not (reason or difference):
                reason = "the two rows have no texts of the same examples"
            runs = [run for text in texts if text in self.scored.groups for run in self.scored.groups[text].runs]
            yield Claim(ordering.claim, _MEASURE, self.dataset.name, difference, reason, ordering.source, runs)
