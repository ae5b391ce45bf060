"""What a source of examples is, whether files, the hub or a built-in generator."""

import hashlib

from longsumbench.api.corpus import Read, Thinned
from longsumbench.api.documents import Example


def as_examples(read: Read) -> tuple[Example | Thinned, ...]:
    """Return the examples of a row, whether it is one or several."""
    return (read,) if isinstance(read, Example | Thinned) else read


def as_thinned(read: Example | Thinned) -> Thinned:
    """Return an example with what was left out of it, which is nothing where nothing is said."""
    return read if isinstance(read, Thinned) else Thinned(read, {})


def split_by_hash(identity: str) -> str:
    """Return the split of an example by a hash of its id: 80 % train, 10 % validation, 10 % test."""
    share = int.from_bytes(hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()[:8]) / 2**64
    return "train" if share < 0.8 else "validation" if share < 0.9 else "test"
