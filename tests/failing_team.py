"""A script for torchrun: tasks of a team that fail in one of two processes, and what the first one says of them."""

import sys
from functools import partial

from torch import distributed

from longsumbench.errors import UsageError
from longsumbench.team import Team, by_the_first, of_this_process


def meet(team: Team, fails_in: int | None, error: Exception) -> None:
    """Wait for the other process, which one of them never does."""
    with team.group("cpu"):
        if team.rank == fails_in:
            raise error
        distributed.barrier()


def tried(fails_in: int | None, error: Exception) -> str:
    """Do the task in both processes; return what came of it."""
    team = of_this_process()
    try:
        with team.helped(partial(meet, fails_in=fails_in, error=error)):
            meet(team, fails_in, error)
    except Exception as found:
        return f"{type(found).__name__}: {found}"
    return "done"


def work() -> None:
    """Let the one fail, then the other, then none."""
    for fails_in, error in ((1, UsageError("too many pages")), (0, ValueError("odd")), (1, ValueError("odd"))):
        print(tried(fails_in, error))
        print(tried(None, error), flush=True)


if __name__ == "__main__":
    by_the_first(work)
    sys.exit(0)
