"""How the C library of Linux hands out memory to long documents."""

import ctypes
from contextlib import suppress

M_MMAP_THRESHOLD, M_ARENA_MAX = -3, -8  # mallopt's own numbers (malloc.h)
RETURNED_AT_ONCE = 16 * 2**20  # bytes of a block


def save_memory() -> None:
    """Let freed memory be used again by all threads, and large blocks be returned at once.

    The backward pass runs in a thread of its own; by default glibc keeps what the forward pass freed from it, and a
    step on a document of 100,000 tokens holds about a GB more. Does nothing on other systems.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_ARENA_MAX, 1)
        library.mallopt(M_MMAP_THRESHOLD, RETURNED_AT_ONCE)
