"""The missing runs of some paper tables side by side on one GPU, within a time limit.

    python benchmarks/gpu_claims.py [--jobs 8] [--minutes 10] [--results-dir results] [seed=1,2,3,4,5,6 …]
    python benchmarks/gpu_claims.py --device cpu --jobs 1 --tables seal-figure4 train.max_steps=2

The points are those of `longsumbench paper NAME WORDS`, and finished runs are found again. A run is not started if the
longest one so far would not end in time. One run more, on one core of the CPU, is the comparison: the first point with
another seed, in the folder `cpu` of the results. Afterwards `longsumbench paper NAME WORDS --no-run` makes the pages.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from tabulate import tabulate

from longsumbench.runs.plan import PlannedRun
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.sweeps.launchers import choose_engine
from longsumbench.sweeps.state import DONE, FAILED, SKIPPED, PointState, Sweep
from longsumbench.sweeps.worker import PointTask
from longsumbench_reproduction.papers.paper_tables import find_paper_table
from longsumbench_reproduction.papers.run_planning import find_finished, plan_paper_table

TABLES = "seal-figure4,seal-table2,pagesum-table3,pagesum-table6"
CPU_SEED = 1_000_003  # no table has it, so the run shares no training
COLUMNS = ("paper table", "runs finished", "not started", "failed", "seconds a run", "training, s")


@dataclass
class TimedTask(PointTask):
    """A point that is not started when it would not end before `deadline` (seconds since 1970)."""

    deadline: float = 0.0

    def run(self, alone: bool = False) -> PointState:
        """Run the point, or skip it; a point that takes too long fails."""
        left = self.deadline - time.time()
        longest = max(
            (state.seconds for state in self.sweep.present_states() if state.state == DONE),
            default=0.0,
        )
        if left <= longest:
            return self._end(PointState(self.point.name, SKIPPED, reason="not enough time"))
        if self.point.config.device == "cpu":
            torch.set_num_threads(1)
        config = replace(self.point.config, timeout_minutes=max(left, 1.0) / 60)
        self.point = replace(self.point, config=config)
        return super().run(alone)


def plan_missing(
    tables: Sequence[str], words: Sequence[str], results: Results
) -> dict[str, tuple[str, PlannedRun]]:
    """Return identity → table and point of each run that some tables lack."""
    points: dict[str, tuple[str, PlannedRun]] = {}
    for name in tables:
        job = find_finished(plan_paper_table(find_paper_table(name), words, results))
        for point in job.missing:
            points.setdefault(point.settings_hash, (name, point))
    return points


def on_one_core(point: PlannedRun, results: Results) -> PlannedRun:
    """Return a point with another seed, which runs on one core of the CPU."""
    config, seed, device = point.config, CPU_SEED, "cpu"
    train = replace(config.train, seed=seed, device=device)
    decode = replace(config.decode, seed=seed, device=device)
    folder = str(results.root / device)
    config = replace(
        config, train=train, decode=decode, seed=seed, device=device, results_dir=folder
    )
    return replace(point, config=config, name="one core of the CPU", key=None)


def run_tasks(
    points: Sequence[PlannedRun], jobs: int, minutes: float, results: Results
) -> Iterator[tuple[int, PointState]]:
    """Run points in several processes, the one on a core next to the others; yield the place of each with its state."""
    deadline = time.time() + 60 * minutes
    launcher = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={jobs + 1}"] if jobs > 1 else []
    engine, sweep = choose_engine(launcher, sweep=True), Sweep.of(results.root, ["gpu_claims"])
    with sweep.locked():
        sweep.begin(["gpu_claims"], engine.launcher)
        baselines = {point.settings_hash for point in points}
        tasks = [
            TimedTask(sweep, place, point, baselines, deadline)
            for place, point in enumerate(points, start=1)
        ]
        for task, state in engine.run(tasks):
            yield task.number - 1, state


def main() -> None:
    """Plan, run, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "words", nargs="*", metavar="KEY=VALUE", help="settings of longsumbench paper"
    )
    parser.add_argument("--tables", default=TABLES, help="paper tables, separated by commas")
    parser.add_argument(
        "--device", default="cuda", choices=("cuda", "cpu"), help="where the runs are"
    )
    parser.add_argument("--jobs", type=int, default=8, help="runs at a time")
    parser.add_argument("--minutes", type=float, default=10.0, help="time for all of them")
    parser.add_argument(
        "--results-dir", default="results", help="where finished runs are and new ones go"
    )
    options = parser.parse_intermixed_args()
    results, started = Results.writable(options.results_dir, "--results-dir"), time.time()
    missing = plan_missing(
        options.tables.split(","), [*options.words, f"device={options.device}"], results
    )
    names, points = [name for name, _ in missing.values()], [point for _, point in missing.values()]
    if points:
        points.insert(0, on_one_core(points[0], results))
        names.insert(0, points[0].name)
    states: dict[int, PointState] = dict(run_tasks(points, options.jobs, options.minutes, results))
    seconds = time.time() - started
    records = {
        place: RunRecord.read(Path(state.runs[0])) for place, state in states.items() if state.runs
    }
    rows = []
    for name in dict.fromkeys(names):
        places = [place for place, row_name in enumerate(names) if row_name == name]
        runs = [records[place] for place in places if place in records]
        unfinished = [states[place].state for place in places if place not in records]
        counts = [unfinished.count(SKIPPED), unfinished.count(FAILED)]
        means = [sum(values) / len(runs) if runs else None for values in times_of(runs)]
        rows.append([name, f"{len(runs)} of {len(places)}", *counts, *means])
    print(tabulate(rows, COLUMNS, floatfmt=".1f"))
    finished = len(records) - (0 in records)
    print(
        f"{finished} runs on {options.device}, {options.jobs} at a time: {seconds:.0f} s of {60 * options.minutes:.0f}"
    )
    if 0 in records and 1 in records and (training := records[1].fit.seconds):
        print(
            f"training on {options.device}: {records[0].fit.seconds / training:.2f} times as fast as on one core"
        )
    for state in states.values():
        if state.state == FAILED:
            print(f"failed: {state.name}: {state.reason}")


def times_of(runs: Sequence[RunRecord]) -> tuple[list[float], list[float]]:
    """Return the seconds of runs: as a whole, and of their training."""
    return [run.costs.timings.total for run in runs], [run.fit.seconds for run in runs]


if __name__ == "__main__":
    main()
