"""A dataset's tables, and its numbers as CSV."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.toys import ToySplit

from longsumbench.analysis.dataset.report import DatasetReport
from longsumbench.analysis.dataset.stats import (
    DatasetStats,
    Reading as WhatIsRead,
    StatsSettings,
    read_splits,
)
from longsumbench.analysis.dataset.tables import stats_blocks
from longsumbench.core import Cut, Document, Example, Section, Truncation

LEDGER = Truncation(100, 50, (Cut("a", 10, 5), Cut("b", 60, 31)))
TEXT = Document(None, (Section(None, (("one two three four five six seven eight",),)),))
SECOND = Example("b", None, None, (TEXT,), (("one two",),))


def described(*splits: ToySplit, **changes: Any) -> DatasetStats:
    """What is known of splits in memory, systems and files left out."""
    found = read_splits({split.name: split for split in splits}, StatsSettings())
    stats = DatasetStats("toys", "f" * 64, {}, 1, found, (), "test", (), "rouge")
    return replace(stats, **changes)


def full(name: str = "a") -> DatasetStats:
    """All that can be known, with names as they are given."""
    reading = WhatIsRead(name, f"input_length={name}", f"note of {name}", has_tokens=True)
    reading.see_source(LEDGER)
    reading.see_target(LEDGER)
    silent = WhatIsRead("silent")
    silent.see_source(None)
    return described(
        ToySplit("train", [SECOND, *ToySplit.of("train", 10).examples]),
        ToySplit("test", [SECOND]),
        dataset=name,
        facts={"source": name, "skipped": {"train": {name: 3}}},
        readings=(reading, silent),
    )


def test_the_files_have_all_tables(tmp_path: Path) -> None:
    """Terminal and Markdown have the heading of every table, also for one example without a reference."""
    for stats in (full(), described(ToySplit("test", [replace(SECOND, references=())]))):
        paths = DatasetReport(stats).write(tmp_path)
        assert [path.name for path in paths] == ["stats.csv", "stats.md"]
        for text in (DatasetReport(stats).render(), paths[1].read_text(encoding="utf-8")):
            assert all(block.heading in text for block in stats_blocks(stats))
