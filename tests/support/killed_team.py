"""A script for torchrun that starts it again: of a team of two, one is killed in its first task, the first time."""

import os
import signal
from collections.abc import Mapping
from typing import Any

from torch import distributed

from longsumbench.errors import UsageError
from longsumbench.runs.processes import Team, first_process, of_this_process


def meet(team: Team, arguments: Mapping[str, Any]) -> None:
    """Meet the other process; the first time one is killed."""
    with team.group("cpu"):
        distributed.barrier()
        if team.rank and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
            os.kill(os.getpid(), signal.SIGKILL)
        distributed.barrier()


def work() -> None:
    """Let both meet."""
    team = of_this_process()
    try:
        with team.helped("meet", {}):
            meet(team, {})
    except Exception as error:
        raise UsageError("only one is here") from error
    print("both are here")


if __name__ == "__main__":
    with first_process({"meet": meet}) as first:
        if first:
            work()
