"""The result of `longsumbench stats`: its tables for the terminal, as CSV and in Markdown."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from longsumbench.analysis.dataset import tables
from longsumbench.analysis.dataset.stats import DatasetStats
from longsumbench.views.figures import write_pictures
from longsumbench.views.tables import markdown, terminal


@dataclass(frozen=True)
class DatasetReport:
    """The statistics of a dataset with their tables; `stats` has the numbers of each example."""

    stats: DatasetStats

    @property
    def title(self) -> str:
        """Heading of the tables."""
        return f"{self.stats.dataset}: dataset statistics"

    def render(self) -> str:
        """Return all tables for the terminal."""
        text = terminal(self.title, tables.stats_blocks(self.stats))
        return f"{text}\n\n{self.stats.oracle_signature}"

    def table(self) -> pd.DataFrame:
        """Return one row per number: split, what, name, statistic, value, and the number of examples `n`."""
        return tables.number_rows(self.stats)

    def csv(self) -> str:
        """Return `table` as CSV."""
        return self.table().to_csv(index=False, lineterminator="\n")

    def write(self, folder: Path) -> list[Path]:
        """Write the numbers and the tables in Markdown; return their paths."""
        text = markdown(self.title, tables.stats_blocks(self.stats))
        files: dict[str, Any] = {
            "stats.csv": self.csv(),
            "stats.md": f"{text}\n`{self.stats.oracle_signature}`\n",
        }
        return write_pictures(folder, files)
