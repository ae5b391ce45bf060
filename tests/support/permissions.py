"""Rights: root, who may write anywhere, heeds what a file's mode forbids, as other users do."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

VERSION_3 = 0x20080522  # of capget and capset: two halves of 32 bits, the lower one first
OVERRIDES = 1 << 1 | 1 << 2  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, see capabilities(7)


class Header(ctypes.Structure):
    """Whose capabilities are meant: those of this thread."""

    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class Half(ctypes.Structure):
    """Thirty-two of the capabilities: which count, which may be made to, and which a program started may inherit."""

    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


@contextmanager
def heeded() -> Iterator[None]:
    """Let the modes of files and folders hold for this thread even where it is root's; others change nothing."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, halves = Header(VERSION_3, 0), (Half * 2)()
    if libc.capget(ctypes.byref(header), halves):
        raise OSError(ctypes.get_errno(), "the capabilities of this thread cannot be read")
    all_its_rights = halves[0].effective
    halves[0].effective = all_its_rights & ~OVERRIDES
    if libc.capset(ctypes.byref(header), halves):
        raise OSError(ctypes.get_errno(), "the capabilities of this thread cannot be given up")
    try:
        yield
    finally:
        halves[0].effective = all_its_rights
        libc.capset(ctypes.byref(header), halves)
