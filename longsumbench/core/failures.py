"""Examples without a summary: named in one line, which ends the run or warns (`decode.failed`)."""

import logging
from collections.abc import Sequence
from textwrap import shorten

from longsumbench.errors import SuiteError
from longsumbench.formatting import format_count

_log = logging.getLogger(__name__)

# Characters of the ids in a message.
_LONGEST_NAMES = 200


def report_failed(failed: Sequence[tuple[str, SuiteError]], choice: str) -> None:
    """Name examples without an answer in a warning or, if the choice is to stop, in an error.

    Args:
        failed: id of each such example, and why it has none.
        choice: `decode.failed`.

    Raises:
        SuiteError: of the class of the first problem, if the choice is "stop".
    """
    if not failed:
        return
    ids = ", ".join(repr(name) for name, _ in failed)
    names = shorten(ids, _LONGEST_NAMES, placeholder=" …")
    first = failed[0][1]
    lost = f"no answer about {format_count(len(failed), 'example')}, {names} (decode.failed={choice}): {first}"
    if choice == "stop":
        raise type(first)(
            f"{lost}; decode.failed=empty scores an empty summary, decode.failed=leave_out none"
        )
    _log.warning(lost)
