"""Helpers for all sources of examples: files, the hub and built-in generators."""

import hashlib

from longsumbench.api import Example, Read, Thinned


def as_examples(read: Read) -> tuple[Example | Thinned, ...]:
    """Return the one or several examples of a row as a tuple."""
    return (read,) if isinstance(read, Example | Thinned) else read


def as_thinned(read: Example | Thinned) -> Thinned:
    """Return an example as `Thinned`; nothing is left out by default."""
    return read if isinstance(read, Thinned) else Thinned(read, {})


def split_by_hash(identity: str) -> str:
    """Return the split of an example by a hash of its id: 80 % train, 10 % validation, 10 % test."""
    share = int.from_bytes(hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()[:8]) / 2**64
    return "train" if share < 0.8 else "validation" if share < 0.9 else "test"
