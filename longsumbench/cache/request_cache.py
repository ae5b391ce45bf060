"""The request cache: answers of language models in one SQLite file."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from longsumbench.errors import EnvironmentProblem

REQUESTS = "requests.sqlite"  # name of the file in the user's cache folder
_LONGEST_WAIT = 60.0  # seconds for another process that writes into it


class RequestCache:
    """Answers by the hash of everything that decides them, in one SQLite file in the user's cache folder.

    An answer is stored as soon as it arrives, so a killed run asks only for what is missing. Threads and processes may
    share the file. It has SQLite's rollback journal: WAL would not work for processes on several machines.

    Raises:
        EnvironmentProblem: the file cannot be used; so do all methods.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as database:
            database.execute(
                "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, model TEXT NOT NULL, answer TEXT NOT NULL)"
            )

    def get(self, key: str) -> str | None:
        """Return a stored answer, or None."""
        with self._open() as database:
            row = database.execute("SELECT answer FROM answers WHERE key = ?", [key]).fetchone()
        return row[0] if row else None

    def put(self, key: str, model: str, answer: str) -> None:
        """Store an answer; an earlier one with this key is replaced. The model's name helps to find answers."""
        with self._open() as database:
            database.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", [key, model, answer]
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection; opening one takes 0.1 ms, and no threads share it."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_LONGEST_WAIT)) as database, database:
                yield database
        except sqlite3.Error as error:
            advice = "delete the file, which is damaged"
            if isinstance(error, sqlite3.OperationalError):
                advice = "let its folder exist, have space and be writable, then run the same command again"
            raise EnvironmentProblem(
                f"{self.path}: answers cannot be stored ({error}): {advice}"
            ) from error
