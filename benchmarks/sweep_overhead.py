"""What a sweep costs beside its distinct work: nine points that share texts, tokenizer and checkpoint.

OMP_NUM_THREADS=1 python benchmarks/sweep_overhead.py [--repeats 1] [--jobs 2] [OVERRIDES …]

The points are 3 numbers of beams × 3 length penalties. Their distinct work is measured twice: by a straight line of
calls in one process (read, fit once, then nine times decode and score; no results, no evidence, no record), and as the
sum of the steps in the sweep's own records, what is shared counted once. Every command starts afresh, with empty
folders; commands take turns, and medians are printed. Where other work shares the machine, the seconds of the wall tell
little; those of the cores, in all processes that a command starts, tell what it costs.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tabulate import tabulate

from longsumbench.cache.artifacts import CACHE_VARIABLE

ASKED = 1.3  # times the distinct work
POINT = [
    "model=trunc",
    "dataset=probe",
    "dataset.limit=2000",
    "train.max_steps=300",
    "decode.limit=200",
]
POINT += ["baselines=false", "device=cpu"]
SWEPT = ["decode.num_beams=2,3,4", "decode.length_penalty=1.0,1.5,2.0"]
SUITE = [sys.executable, "-m", "longsumbench", "run", "-m"]


@dataclass(frozen=True)
class Cost:
    """Seconds of a command: of the wall, and of all cores together."""

    wall: float
    cores: float


def main() -> None:
    """Print what the sweep and its distinct work took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "overrides", nargs="*", help="of the points, laid over those of this benchmark"
    )
    parser.add_argument("--repeats", type=int, default=1, help="turns of all commands (default: 1)")
    parser.add_argument(
        "--jobs", type=int, default=2, help="processes of the sweep under joblib (default: 2)"
    )
    parser.add_argument(
        "--straight", action="store_true", help="the distinct work alone, in this process"
    )
    options = parser.parse_args()
    if options.straight:
        print(json.dumps(straight_line(options.overrides)))
        return
    turns = [turn(options.overrides, options.jobs) for _ in range(options.repeats)]
    print(render(turns, options.jobs))


def turn(overrides: Sequence[str], jobs: int) -> dict[str, Any]:
    """Run every command once; return name → `Cost`, and the steps of the sweep's records."""
    words = [*POINT, *overrides, *SWEPT]
    joblib = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={jobs}"]
    with tempfile.TemporaryDirectory() as name:
        folders = {what: Path(name) / what for what in ("sweep", "straight", "joblib")}
        found: dict[str, Any] = {
            "sweep": cost([*SUITE, *words], folders["sweep"]),
            "straight": cost(
                [sys.executable, __file__, "--straight", *POINT, *overrides], folders["straight"]
            ),
            "again": cost([*SUITE, *words], folders["sweep"]),
            "joblib": cost([*SUITE, *words, *joblib], folders["joblib"]),
        }
        found["steps"] = steps(folders["sweep"])
        found["lines"] = json.loads(
            (folders["straight"] / "log").read_text(encoding="utf-8").splitlines()[-1]
        )
    return found


def cost(command: Sequence[str], folder: Path) -> Cost:
    """Run a command in a folder, with results and a cache of its own there; return what it cost."""
    folder.mkdir(exist_ok=True)
    environment = {**os.environ, CACHE_VARIABLE: str(folder / "cache")}
    before, started = of_children(), time.monotonic()
    with (folder / "log").open("a", encoding="utf-8") as log:
        done = subprocess.run(
            [*command], cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
        )
    if done.returncode:
        sys.exit((folder / "log").read_text(encoding="utf-8"))
    return Cost(time.monotonic() - started, of_children() - before)


def of_children() -> float:
    """Return the seconds of cores of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def steps(folder: Path) -> dict[str, float]:
    """Return step → seconds in the records of a sweep; what the points share is counted once, where it was done."""
    paths = folder.glob("results/runs/*/*/*/record.json")
    timings = [json.loads(path.read_text(encoding="utf-8"))["timings"] for path in paths]
    shared = {step: max(one[step] for one in timings) for step in ("read", "fit")}
    return {
        **shared,
        **{step: sum(one[step] for one in timings) for step in ("summarize", "score")},
    }


def straight_line(overrides: Sequence[str]) -> dict[str, float]:
    """Do the distinct work of the sweep with nothing around it; return step → seconds."""
    from longsumbench.cache.artifacts import ArtifactCache
    from longsumbench.core import registry
    from longsumbench.core.system import FitContext
    from longsumbench.corpora.reading.load import load_texts
    from longsumbench.metrics.evaluate import evaluate
    from longsumbench.runs.plan import plan
    from longsumbench.runs.predictions import length_buckets

    seconds = dict.fromkeys(("read", "fit", "summarize", "score"), 0.0)
    clock = time.monotonic()

    def lap(step: str) -> None:
        nonlocal clock
        seconds[step] += time.monotonic() - clock
        clock = time.monotonic()

    config = plan(overrides)[0].config
    decodings = [point.config.decode for point in plan([*overrides, *SWEPT], sweep=True)]
    system = registry.systems.load(config.model.name)(config.model)
    clock = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        stages = ArtifactCache(Path(name))
        texts = load_texts(config.dataset, stages)
        lap("read")
        system.fit(FitContext.of(texts.splits, config, stages))
        lap("fit")
        metrics = [registry.metrics.load(name)(config.score) for name in ("rouge", *texts.metrics)]
        split = texts.splits[config.dataset.split]
        lengths = split.source_words[: config.decode.limit]
        for decoding in decodings:
            bare = replace(decoding, evidence="none")
            buckets = length_buckets(lengths, decoding.batch_size)
            written = [
                one
                for bucket in buckets
                for one in system.summarize([split[place] for place in bucket], bare)
            ]
            lap("summarize")
            places = [place for bucket in buckets for place in bucket]
            evaluate(
                [[one.text for one in written]],
                [split[place] for place in places],
                metrics,
                config.score,
            )
            lap("score")
    return seconds


def render(turns: Sequence[dict[str, Any]], jobs: int) -> str:
    """Return the tables: commands beside the straight line, and steps beside each other."""

    def median(name: str, part: str) -> float:
        return float(statistics.median(getattr(one[name], part) for one in turns))

    def ratio(name: str, part: str) -> float:
        return float(
            statistics.median(
                getattr(one[name], part) / getattr(one["straight"], part) for one in turns
            )
        )

    names = {
        "straight": "the distinct work, in a straight line",
        "sweep": f"the sweep of nine points, in one process (asked: {ASKED})",
        "joblib": f"the sweep under joblib, {jobs} processes",
        "again": "the finished sweep again",
    }
    commands = [
        [
            told,
            *(
                shown
                for part in ("wall", "cores")
                for shown in (f"{median(name, part):.1f} s", f"{ratio(name, part):.2f}")
            ),
        ]
        for name, told in names.items()
    ]
    walls = [one["sweep"].wall / sum(one["steps"].values()) for one in turns]
    of_steps = [
        [
            step,
            *(
                f"{statistics.median(one[kind][step] for one in turns):.1f} s"
                for kind in ("lines", "steps")
            ),
        ]
        for step in ("read", "fit", "summarize", "score")
    ]
    sums = [
        f"{statistics.median(sum(one[kind].values()) for one in turns):.1f} s"
        for kind in ("lines", "steps")
    ]
    return "\n\n".join(
        [
            tabulate(commands, headers=["what", "wall", "ratio", "cores", "ratio"]),
            tabulate(
                [*of_steps, ["all", *sums]],
                headers=["step", "straight line", "records, shared once"],
            ),
            f"the sweep's wall beside the steps of its records: {statistics.median(walls):.2f}\n"
            f"to find a point finished: {median('again', 'wall') / 9:.2f} s, what the command needs to start included",
        ]
    )


if __name__ == "__main__":
    main()
