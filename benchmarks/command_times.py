"""Measures the CPU seconds of commands on finished runs, next to those of `import pandas`.

python benchmarks/command_times.py                         on runs that are made here in a minute
python benchmarks/command_times.py --results-dir FOLDER    on the runs of a folder

The commands take turns in fresh processes; the least seconds count, user and system together.
"""

import argparse
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tabulate import tabulate

import longsumbench
from longsumbench.progress import log_level
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

SUITE = ("-m", "longsumbench")


def cpu_seconds(words: tuple[str, ...]) -> float:
    """Return the user and system seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def make_runs(root: Path) -> list[RunRecord]:
    """Make finished runs: baselines on real texts, and a trained system that keeps evidence."""
    with log_level("WARNING"):
        runs = longsumbench.sweep(
            model=["lead", "lexrank", "random"], dataset="pydoc", results_dir=root
        )
        trained: dict[str, Any] = {"model": "seal", "dataset": "probe", "scale": "tiny"}
        trained |= {"train.max_steps": 5, "decode.limit": 20}
        return [*runs, *longsumbench.sweep(**trained, results_dir=root)]


def runs_in(results: Results) -> list[RunRecord]:
    """Return two comparable runs with summaries, and one with evidence if there is any."""
    records = [record for name in results.datasets() for record in results.records(name)]
    whole = [run for run in records if (results.run_folder(run) / "predictions.jsonl").is_file()]
    texts = Counter(run.key.fingerprint for run in whole).most_common(1)[0][0]
    with_evidence = [run for run in whole if (results.run_folder(run) / "evidence").is_dir()]
    return [*(run for run in whole if run.key.fingerprint == texts), *with_evidence]


def commands_on(runs: list[RunRecord]) -> dict[str, tuple[str, ...]]:
    """Return name → the words of each command."""
    first, second, last = runs[0], runs[1], runs[-1]
    return {
        "leaderboard DATASET": ("leaderboard", first.key.dataset),
        "compare RUN RUN": ("compare", first.run_id, second.run_id),
        "inspect RUN 0, without evidence": ("inspect", first.run_id, "0"),
        "inspect RUN 0, with evidence": ("inspect", last.run_id, "0"),
        "list runs": ("list", "runs"),
    }


def main() -> None:
    """Print a row for each command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results-dir", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        root = options.results_dir or Path(folder)
        runs = runs_in(Results(root)) if options.results_dir else make_runs(root)
        words: dict[str, tuple[str, ...]] = {"import pandas": ("-c", "import pandas")}
        words |= {
            name: (*SUITE, *command, "--results-dir", str(root))
            for name, command in commands_on(runs).items()
        }
        turns = [
            {name: cpu_seconds(each) for name, each in words.items()}
            for _ in range(options.repeats)
        ]
    least = {name: min(turn[name] for turn in turns) for name in words}
    rows = [[name, seconds, seconds / least["import pandas"]] for name, seconds in least.items()]
    print(tabulate(rows, ["command", "CPU s", "times import pandas"], floatfmt=("", ".2f", ".2f")))


if __name__ == "__main__":
    main()
