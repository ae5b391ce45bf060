"""Rows → stored examples, in order, in this process or, for many rows, in several.

    read_rows(entries, workers) → (Entry, RowOutcome) for each entry

The result and its order do not depend on the number of processes. Processes are
started with `spawn`, because a fork of a process with threads, as PyTorch's, may hang. They do not run the main script,
so it needs no `if __name__ == "__main__"` and can be typed in. They receive rows in batches, a few batches ahead, so
memory stays bounded. They always end with this process.
"""

import hashlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from longsumbench.core import Entry, Example, PartialExample, Read
from longsumbench.corpora.loading.store import StoredExample, store_example
from longsumbench.errors import EnvironmentProblem

# bytes of text to read before starting other processes
_SERIAL_BYTES = 4_000_000
# about so many bytes of text are sent together
_BYTES_SENT_TOGETHER = 1_000_000
# batches per process that it has to do
_BATCHES_AHEAD = 3
# batches per process that are done or to be done
_BATCHES_WAITING = 12
# this process cannot send rows and write examples for more
_MAX_PROCESSES = 8


class MadeExample(NamedTuple):
    """One of a row's examples; `left_out` counts what was left out of it."""

    split: str
    example: StoredExample
    left_out: Mapping[str, int]


_Batch = TypeVar("_Batch")
_Result = TypeVar("_Result")
RowOutcome = Sequence[MadeExample] | Exception  # a row's examples, or its error


def num_cores() -> int:
    """Return the number of processors that this process may use."""
    # only Linux has it
    with suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thinned_examples(examples: Read) -> tuple[PartialExample, ...]:
    """Return the one or several examples of a row; nothing is left out of an `Example`."""
    several = (examples,) if isinstance(examples, Example | PartialExample) else examples
    return tuple(
        item if isinstance(item, PartialExample) else PartialExample(item, {}) for item in several
    )


def split_by_hash(identity: str) -> str:
    """Return the split of an example by a hash of its id: 80 % train, 10 % validation, 10 % test."""
    content = hashlib.sha256(identity.encode("utf-8", "surrogatepass"))
    share = int.from_bytes(content.digest()[:8]) / 2**64
    if share < 0.8:
        return "train"
    return "validation" if share < 0.9 else "test"


def make_examples(split: str | None, load_row: Callable[[], Read]) -> RowOutcome:
    """Make a row's examples; all are in one split.

    Without a split, a hash of the first id decides it.
    """
    try:
        examples = thinned_examples(load_row())
        split = split or split_by_hash(examples[0].example.id)
        return [
            MadeExample(split, store_example(item.example, split == "train"), item.left_out)
            for item in examples
        ]
    except Exception as problem:  # reported in the order of the rows
        return problem


def read_rows(
    entries: Iterator[Entry], workers: int
) -> Generator[tuple[Entry, RowOutcome], None, None]:
    """Yield every entry with its outcome. Close the generator if you stop early, so its processes end.

    With one worker, this process reads all.
    """
    total_size = 0
    for number, entry in enumerate(entries, start=1):
        outcome = make_examples(entry.split, entry.load)
        yield entry, outcome
        if workers > 1 and not isinstance(outcome, Exception):
            total_size += sum(len(item.example.text) for item in outcome)
            if total_size >= _SERIAL_BYTES and can_be_sent(entry.load):
                yield from _read_in_processes(entries, workers, total_size // number)


def can_be_sent(value: object) -> bool:
    """Return False for what another process cannot load: a lambda, and what the main script defines."""
    try:
        return b"__main__" not in pickle.dumps(value)
    except Exception:  # pickling can raise any error
        return False


def _read_in_processes(
    entries: Iterator[Entry], processes: int, mean_size: int
) -> Iterator[tuple[Entry, RowOutcome]]:
    length = 1 + _BYTES_SENT_TOGETHER // max(1, mean_size)
    batches = iter(lambda: list(islice(entries, length)), [])
    for rows, batch in map_in_processes(
        _make_all, batches, processes, "dataset.workers=1 reads them in one process"
    ):
        yield from zip(rows, batch, strict=True)


def map_in_processes(
    function: Callable[[_Batch], _Result], batches: Iterable[_Batch], processes: int, advice: str
) -> Iterator[tuple[_Batch, _Result]]:
    """Yield every batch with `function(batch)`, in order; a few batches wait at a time, so memory stays bounded.

    There are at most 8 processes, which are sent the function and the batches. This process computes, too, while they
    start or have enough to do. `advice` is what to do if one was killed.

    Raises:
        EnvironmentProblem: a process has ended.
    """
    waiting: deque[tuple[_Batch, Future[_Result]]] = deque()
    processes = min(processes, _MAX_PROCESSES)
    pool = ProcessPoolExecutor(
        processes, multiprocessing.get_context("spawn"), initializer=_end_with_parent
    )
    try:
        for batch in batches:
            if sum(not outcome.done() for _, outcome in waiting) < _BATCHES_AHEAD * processes:
                # processes start on the first job
                with _without_main_script():
                    waiting.append((batch, pool.submit(function, batch)))
            else:
                waiting.append((batch, Future()))
                waiting[-1][1].set_result(function(batch))
            while waiting and (
                waiting[0][1].done() or len(waiting) >= _BATCHES_WAITING * processes
            ):
                first, outcome = waiting.popleft()
                yield first, outcome.result()
        for first, outcome in waiting:
            yield first, outcome.result()
    except BrokenProcessPool as error:
        problem = (
            "a process that was reading texts has ended: it was killed, or the memory is full;"
        )
        raise EnvironmentProblem(f"{problem} {advice}") from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _without_main_script() -> Iterator[None]:
    """Start processes without running this process's main script in them.

    A script from standard input could not be found. One that reads a dataset outside `if __name__ == "__main__"` would
    wait for itself.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _make_all(rows: list[Entry]) -> list[RowOutcome]:
    return [make_examples(entry.split, entry.load) for entry in rows]


def _end_with_parent() -> None:
    """Ignore Ctrl-C, which the parent process handles, but end if the parent is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
