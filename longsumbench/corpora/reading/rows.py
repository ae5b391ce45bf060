"""Rows → stored examples, in order: in this process, or in several once the rows prove to be many.

    read_rows(entries, workers) → (Entry, Outcome) for each entry

Whatever the number of processes, the same comes out, in the same order, an error of the source last of all. Processes
are started afresh (`spawn`), for a copy of one that runs threads, as PyTorch's, may hang, and do not run the script
that was started, so that it needs no `if __name__ == "__main__"`, and may be typed in. They are handed rows a batch at
a time, a few batches ahead, so that memory stays what it is. They end with this one, however it ends.
"""

import io
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

from longsumbench.api.corpus import Entry, Read
from longsumbench.corpora.reading.source import as_examples, as_thinned, split_by_hash
from longsumbench.corpora.reading.store import StoredExample, store_example
from longsumbench.errors import EnvironmentProblem

_ALONE = 16_000_000  # bytes of text that are read before other processes are started, which takes about a second
_BATCH_BYTES = 1_000_000  # of rows handed over together, or of what they become
_AHEAD = 3  # batches a process that wait or are done: what is read ahead
_MOST_PROCESSES = 8  # beyond which this process cannot hand out rows and write examples as fast
_COSTLY = 4  # times its text: a row that takes more bytes to hand over is read faster here
_Job = tuple[str | None, bytes]  # a row's split, and what makes its examples


class MadeExample(NamedTuple):
    """One of a row's examples.

    Attributes:
        split: the split it belongs to.
        example: as it is stored.
        left_out: what was left out of it → how many.
    """

    split: str
    example: StoredExample
    left_out: Mapping[str, int]


RowOutcome = Sequence[MadeExample] | Exception  # what a row becomes, or why it becomes nothing


def num_cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def make_examples(split: str | None, read: Callable[[], Read]) -> RowOutcome:
    """Make a row's examples; those of one row stay together.

    Args:
        split: the split it belongs to; None deals it by the id of the first.
        read: makes them; may raise anything.
    """
    try:
        examples = [as_thinned(one) for one in as_examples(read())]
        split = split or split_by_hash(examples[0].example.id)
        return [MadeExample(split, store_example(one.example, split == "train"), one.left_out) for one in examples]
    except Exception as problem:  # whatever it is, it belongs in its place among the rows
        return problem


def read_rows(entries: Iterator[Entry], workers: int) -> Generator[tuple[Entry, RowOutcome], None, None]:
    """Yield every entry with what it becomes; close it, so that no process is left where not all is taken.

    Args:
        entries: the rows.
        workers: the most processes; 1: this one alone.
    """
    done = 0
    for number, entry in enumerate(entries, start=1):
        outcome = make_examples(entry.split, entry.read)
        yield entry, outcome
        if workers > 1 and not isinstance(outcome, Exception):
            done += _size(outcome)
            if done >= _ALONE and _is_worth_handing_over(entry, outcome):
                yield from _read_elsewhere(entries, min(workers, _MOST_PROCESSES), done // number)


def _is_worth_handing_over(entry: Entry, outcome: Sequence[MadeExample]) -> bool:
    """Tell whether another process can read such a row, and gets it faster than it would be read here."""
    try:
        _Pickler(sent := io.BytesIO()).dump(entry.read)
    except Exception:  # pickling raises what it likes; of another package's corpus, say, which has a lambda
        return False
    return sent.tell() < _COSTLY * (1_000 + _size(outcome))


class _Pickler(pickle.Pickler):
    """Pickles what another process can be given."""

    def reducer_override(self, value: Any) -> Any:
        """Refuse what is from the script that was started, which the other process does not run."""
        if getattr(value, "__module__", None) == "__main__":
            raise pickle.PicklingError(f"{value!r} is from the script itself")
        return NotImplemented


def _size(outcome: Sequence[MadeExample]) -> int:
    return sum(len(one.example.text) for one in outcome)


def _read_elsewhere(entries: Iterator[Entry], processes: int, mean_size: int) -> Iterator[tuple[Entry, RowOutcome]]:
    batches = _batches(entries, mean_size)
    if (batch := next(batches, None)) is None:
        return
    waiting: deque[tuple[list[Entry], Future[list[RowOutcome]]]] = deque()
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_end_with_the_parent)
    try:
        while batch or waiting:
            if batch:
                rows, jobs = batch
                with _script_left_out():  # a process is started when there is something for it to do
                    waiting.append((rows, pool.submit(_make_all, jobs)))
                batch = next(batches, None)
            if not batch or len(waiting) >= _AHEAD * processes:
                rows, future = waiting.popleft()
                yield from zip(rows, future.result(), strict=True)
    except BrokenProcessPool as error:
        problem = "a process that was reading texts has ended: was it killed, or is the memory full?"
        raise EnvironmentProblem(f"{problem} dataset.workers=1 reads them in a single one") from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _script_left_out() -> Iterator[None]:
    """Let processes be started that do not run this one's script, as they else would before all.

    A script that is typed in, or read from standard input, could not be found; one that reads a dataset outside
    `if __name__ == "__main__"` would wait for itself to be done.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _batches(entries: Iterator[Entry], mean_size: int) -> Iterator[tuple[list[Entry], list[_Job]]]:
    """Yield rows and how to make them; an error of the source comes as a row behind those before it.

    A row counts what it takes to hand it over, and `mean_size` at least, for it may only name the file to be read.
    """
    rows: list[Entry] = []
    jobs: list[_Job] = []
    size = 0
    for entry in _with_its_error(entries):
        rows.append(entry)
        jobs.append((entry.split, pickle.dumps(entry.read)))
        size += max(mean_size, len(jobs[-1][1]))
        if size >= _BATCH_BYTES:
            yield rows, jobs
            rows, jobs, size = [], [], 0
    if rows:
        yield rows, jobs


def _with_its_error(entries: Iterator[Entry]) -> Iterator[Entry]:
    try:
        yield from entries
    except Exception as error:  # the rows before it, some not read yet, may have one that comes first
        yield Entry(None, partial(_fail, error))


def _fail(error: Exception) -> tuple[()]:
    raise error


def _make_all(jobs: list[_Job]) -> list[RowOutcome]:
    return [make_examples(split, pickle.loads(read)) for split, read in jobs]  # noqa: S301 - pickled by the parent process


def _end_with_the_parent() -> None:
    """Leave Ctrl-C to the parent process, which ends this one; where it was killed, end nevertheless."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)
