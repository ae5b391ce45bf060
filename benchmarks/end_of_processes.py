"""How often a process of two is aborted at its end, next to busy processes.

    python benchmarks/end_of_processes.py [--times 50] [--busy 4]

Two processes meet, exchange tensors as a run does, and end. Each pair is forked from this process, which has loaded
torch. Prints the exit codes of pairs that did not end well, and exits with 1 if there are any. Four minutes on two
cores.
"""

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from torch import distributed

from longsumbench.modeling import processes

BUSY = [sys.executable, "-c", "while True: pass"]


def exchange(folder: Path) -> None:
    """Do what processes of a run do together."""
    processes.wait_for_everyone()
    for _ in range(3):
        distributed.all_reduce(torch.ones(100_000))
    processes.from_first_process(str(folder))


def live(rank: int, port: int) -> None:
    """Be one of two processes, from the meeting to the end."""
    names = {
        "RANK": rank,
        "WORLD_SIZE": 2,
        "LOCAL_RANK": rank,
        "LOCAL_WORLD_SIZE": 2,
        "MASTER_PORT": port,
    }
    os.environ.update({name: f"{value}" for name, value in names.items()}, MASTER_ADDR="localhost")
    with processes.first_process(exchange) as is_first:
        if is_first:
            with processes.share_run(Path("run"), "cpu"):
                exchange(Path("run"))
    sys.exit()


def end_codes() -> list[int]:
    """Fork two processes; return their exit codes."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(2):
        child = os.fork()
        if child == 0:
            live(rank, port)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def main() -> None:
    """Print how many pairs did not end well."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=50, help="pairs of processes")
    parser.add_argument(
        "--busy", type=int, default=4, help="busy processes running at the same time"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    parent, failed = os.getpid(), 0
    busy = [subprocess.Popen(BUSY) for _ in range(options.busy)]
    try:
        for number in range(1, options.times + 1):
            if any(codes := end_codes()):
                print(f"pair {number}: exit codes {codes}")
                failed += 1
    finally:
        if os.getpid() == parent:
            for process in busy:
                process.kill()
    print(f"{failed} of {options.times} pairs did not end well")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
