"""The result of `longsumbench stats`: its tables for the terminal, as CSV and in Markdown."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from longsumbench.analysis.dataset import tables
from longsumbench.analysis.dataset.stats import DatasetStats
from longsumbench.files import write_atomically
from longsumbench.views.tables import terminal


@dataclass(frozen=True)
class DatasetReport:
    """The statistics of a dataset with their tables; `stats` has the numbers of each example."""

    stats: DatasetStats

    def render(self) -> str:
        """Return all tables for the terminal."""
        text = terminal(tables.stats_title(self.stats), tables.stats_blocks(self.stats))
        return f"{text}\n\n{self.stats.oracle_signature}"

    def table(self) -> pd.DataFrame:
        """Return one row per number: split, what, name, statistic, value, and the number of examples `n`."""
        return tables.number_rows(self.stats)

    def csv(self) -> str:
        """Return `table` as CSV."""
        return self.table().to_csv(index=False, lineterminator="\n")

    def write(self, folder: Path) -> list[Path]:
        """Write the numbers and the tables in Markdown; return their paths."""
        paths = [folder / "stats.csv", folder / "stats.md"]
        write_atomically(paths[0], self.csv())
        write_atomically(paths[1], tables.stats_markdown(self.stats))
        return paths
