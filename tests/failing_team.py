"""A script for torchrun: tasks of a team that fail in one of two processes, and what the first one says of them."""

import sys
from functools import partial

from torch import distributed

from longsumbench.errors import UsageError
from longsumbench.team import Team, by_the_first, of_this_process


def meet(team: Team, fails_in: int | None, error: Exception, early: bool) -> None:
    """Wait for the other process, which one of them never does; it may fail before it is connected."""
    if early and team.rank == fails_in:
        raise error
    with team.group("cpu"):
        if team.rank == fails_in:
            raise error
        distributed.barrier()


def tried(fails_in: int | None, error: Exception, early: bool = False) -> str:
    """Do the task in both processes; return what came of it."""
    team = of_this_process()
    try:
        with team.helped(partial(meet, fails_in=fails_in, error=error, early=early)):
            meet(team, fails_in, error, early)
    except Exception as found:
        return f"{type(found).__name__}: {found}"
    return "done"


def work() -> None:
    """Let the one fail or the other, and none after each."""
    early, late = UsageError("no pages"), UsageError("too many pages")
    for fails_in, error in ((1, early), (1, late), (0, ValueError("odd")), (1, ValueError("odd"))):
        print(tried(fails_in, error, error is early))
        print(tried(None, error), flush=True)


if __name__ == "__main__":
    by_the_first(work)
    sys.exit(0)
