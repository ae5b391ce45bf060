"""What the written files of a table or figure show, as NAME.json: its runs and verdicts."""

from collections import Counter
from pathlib import Path

import msgspec

from longsumbench.errors import DataError
from longsumbench.files import BadFile, read_json
from longsumbench.papers.page import OUTCOMES, Verdict
from longsumbench.papers.paper_tables import read_paper_tables
from longsumbench.runs.results import Results

_FOLDER = "papers"  # in the results folder


class MadePage(msgspec.Struct, frozen=True):
    """The content of NAME.json: what the files of a paper table show.

    Attributes:
        scale: the scale of its runs.
        words: the other words of the command.
        runs: id of each finished run → seconds that it took.
        missing: names of the points without a finished run.
        claims: the verdicts.
    """

    name: str
    scale: str
    words: tuple[str, ...] = ()
    runs: dict[str, float] = {}
    missing: tuple[str, ...] = ()
    claims: tuple[Verdict, ...] = ()

    def describe_verdicts(self) -> str:
        """Return the number of claims with each outcome: "3 reproduced, 1 undecided"; empty without claims."""
        numbers = Counter(verdict.outcome for verdict in self.claims)
        return ", ".join(f"{numbers[outcome]} {outcome}" for outcome in OUTCOMES if outcome in numbers)


def files_folder(results: Results) -> Path:
    """Return the folder with the files of all paper tables."""
    return results.root / _FOLDER


def read_written(results: Results, name: str) -> MadePage | None:
    """Return what the files of a paper table show; None if there are none.

    Raises:
        DataError: the file is damaged.
    """
    path = files_folder(results) / f"{name}.json"
    try:
        return read_json(path, MadePage)
    except FileNotFoundError:
        return None
    except BadFile as error:
        raise DataError(f"{error}; the same `longsumbench paper {name}` writes it again", path) from error


def read_all_written(results: Results) -> list[MadePage]:
    """Return what the files of all paper tables show, in the order of the papers.

    Raises:
        DataError: a file is damaged.
    """
    return [page for name in read_paper_tables() if (page := read_written(results, name))]
