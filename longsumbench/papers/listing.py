"""The list of all tables and figures: their scales, the numbers that the papers print, and what was run here."""

import re

from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.published import read_published_table
from longsumbench.papers.artifacts import Artifact, read_artifacts
from longsumbench.papers.kinds import PLANNED_ONLY
from longsumbench.papers.page import NOT_TESTED, REPRODUCED, REVERSED, UNDECIDED
from longsumbench.papers.write import MadePage, read_written
from longsumbench.report.tables import Block, terminal
from longsumbench.runs.record import Results

_OUTCOMES = (REPRODUCED, REVERSED, UNDECIDED, NOT_TESTED)
_COLUMNS = ("name", "what it shows", "printed\nnumbers", "scales", "made here")


def render_artifacts(results: Results) -> str:
    """Render the list for the terminal.

    Raises:
        DataError: a file of `conf/paper`, or of the results, is damaged.
    """
    rows = [
        [
            name,
            artifact.title,
            str(count_printed(artifact) or ""),
            _scales(artifact),
            describe_status(results, artifact),
        ]
        for name, artifact in read_artifacts().items()
    ]
    return terminal("", [Block("", (), _COLUMNS, "llrll", rows, optional=("printed\nnumbers",))]).strip()


def count_printed(artifact: Artifact) -> int:
    """Return how many numbers of `published.csv` are from this table or figure."""
    table = read_published_table()
    place = table["source_table"].str.contains(rf"\b{re.escape(artifact.prints)}\b")
    return int((place & (table["source_key"] == artifact.source)).sum())


def describe_status(results: Results, artifact: Artifact) -> str:
    """Describe the files of an artifact in a results folder: scale, runs, verdicts; empty without files."""
    written = read_written(results, artifact.name)
    if written is None:
        return ""
    return "; ".join(filter(None, [written.scale, _runs(artifact, written), describe_verdicts(written)]))


def describe_verdicts(written: MadePage) -> str:
    """Return the number of claims with each outcome: "3 reproduced, 1 undecided"; empty without claims."""
    return ", ".join(f"{written.verdicts[one]} {one}" for one in _OUTCOMES if one in written.verdicts)


def _runs(artifact: Artifact, written: MadePage) -> str:
    finished, every = len(written.runs), len(written.runs) + len(written.missing)
    if artifact.kind in PLANNED_ONLY or not every:
        return ""
    counted = format_count(every, "run") if finished == every else f"{finished} of {format_count(every, 'run')}"
    return f"{counted}, {format_duration(written.seconds)}" if finished else counted


def _scales(artifact: Artifact) -> str:
    others = [scale for scale in artifact.scales if scale != artifact.default]
    return ", ".join([artifact.default, *others])
