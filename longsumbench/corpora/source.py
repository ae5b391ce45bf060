"""What a source of examples is, whether files, the hub or a built-in generator."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.documents import Example


class Thinned(NamedTuple):
    """An example of whose text something was left out on purpose.

    Attributes:
        example: what is left.
        left_out: what was left out → how many of it; the record counts them.
    """

    example: Example
    left_out: Mapping[str, int]


Read = Example | Thinned | tuple[Example | Thinned, ...]  # what a row becomes


class Entry(NamedTuple):
    """One row, not yet an example.

    Attributes:
        split: the split it belongs to; None deals it by the example's id.
        read: makes the row's examples, nearly always one; raises BadRow.
        path, line: where it stands, for messages.
        done: bytes of the source's files up to its end, where their sizes are known.
    """

    split: str | None
    read: Callable[[], tuple[Example | Thinned, ...]]
    path: Path | str | None = None
    line: int | None = None
    done: int = 0


@dataclass(frozen=True)
class Source:
    """Where a dataset's rows come from.

    Attributes:
        inputs: what decides the rows, as JSON values: part of the stage key.
        facts: what the record says of it; no path of this machine.
        entries: yields the rows, leaving out splits that stand in the set it is given, which grows as they fill up.
        size: bytes of its files, packed as they are; None where entries do not say how many of them are done.
    """

    inputs: Mapping[str, Any]
    facts: Mapping[str, Any]
    entries: Callable[[set[str]], Iterator[Entry]]
    size: int | None = None


def several(read: Read) -> tuple[Example | Thinned, ...]:
    """Return the examples of a row, whether it is one or several."""
    return (read,) if isinstance(read, Example | Thinned) else read


def thinned(read: Example | Thinned) -> Thinned:
    """Return an example with what was left out of it, which is nothing where nothing is said."""
    return read if isinstance(read, Thinned) else Thinned(read, {})


def deal(identity: str) -> str:
    """Return the split of an example by a hash of its id: 80 % train, 10 % validation, 10 % test."""
    share = int.from_bytes(hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()[:8]) / 2**64
    return "train" if share < 0.8 else "validation" if share < 0.9 else "test"
