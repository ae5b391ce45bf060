"""A script for torchrun: tasks of a team that fail in one of two processes, and what the first one says of them."""

import sys
from collections.abc import Mapping
from typing import Any

from torch import distributed

from longsumbench.errors import UsageError
from longsumbench.runs.processes import Team, first_process, of_this_process

EARLY, LATE, ODD = UsageError("no pages"), UsageError("too many pages"), ValueError("odd")
ERRORS = {"early": EARLY, "late": LATE, "odd": ODD}


def meet(team: Team, arguments: Mapping[str, Any]) -> None:
    """Wait for the other process, which one of them never does; it may fail before it is connected."""
    fails_in, error = arguments["fails_in"], ERRORS[arguments["error"]]
    if error is EARLY and team.rank == fails_in:
        raise error
    with team.group("cpu"):
        if team.rank == fails_in:
            raise error
        distributed.barrier()


def tried(fails_in: int | None, error: str) -> str:
    """Do the task in both processes; return what came of it."""
    team, arguments = of_this_process(), {"fails_in": fails_in, "error": error}
    try:
        with team.helped("meet", arguments):
            meet(team, arguments)
    except Exception as found:
        return f"{type(found).__name__}: {found}"
    return "done"


def work() -> None:
    """Let the one fail or the other, and none after each."""
    for fails_in, error in ((1, "early"), (1, "late"), (0, "odd"), (1, "odd")):
        print(tried(fails_in, error))
        print(tried(None, error), flush=True)


if __name__ == "__main__":
    with first_process({"meet": meet}) as first:
        if first:
            work()
    sys.exit(0)
