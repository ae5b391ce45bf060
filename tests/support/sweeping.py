"""A tiny sweep in processes of its own, started, killed and compared.

Systems that train and that do not, and points that share checkpoints.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from longsumbench.sweeps.state import render_status
from support.json_files import read_json
from support.processes import ForkedProcess, start_command
from support.toys import TINY

RECIPE = (
    "train.max_steps=12",
    "train.eval_steps=3",
    "train.batch_size=8",
    "train.keep_best=2",
    "decode.batch_size=2",
)
SIZES = tuple(f"model.{key}={value}" for key, value in TINY.items() if key != "input_length")
POINTS = ("model=lead,random,trunc", "decode.limit=6,12", *RECIPE, *SIZES)
JOBLIB = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
OF_ITS_TIME = ("costs", "finished", "command", "environment", "config")


class Swept:
    """A sweep with a cache and results of its own.

    Args:
        texts: a jsonl dataset.
        folder: for cache and results.
        words: what is swept over, and by which launcher.
        path: a folder whose modules are found first.
    """

    def __init__(
        self, texts: Path, folder: Path, words: Sequence[str], path: Path | None = None
    ) -> None:
        self.results, self.cache = folder / "results", folder / "cache"
        data = ["dataset=jsonl", f"dataset.path={texts}", "scale=tiny", "score.resamples=100"]
        self.words = ["run", "-m", *data, *words, f"results_dir={self.results}"]
        self.environment = {
            **os.environ,
            "LONGSUMBENCH_CACHE": str(self.cache),
            "OMP_NUM_THREADS": "1",
        }
        if path is not None:
            self.environment["PYTHONPATH"] = str(path)

    def start(self) -> ForkedProcess:
        """Start it in the background."""
        return start_command(*self.words, env=self.environment)

    def finish(self, code: int = 0) -> str:
        """Run it to the end; return what it said."""
        process = self.start()
        _, said = process.communicate()
        assert process.returncode == code, said
        return said

    def left_behind(self) -> list[int]:
        """Return the processes that still live, its own and theirs."""
        mark = f"LONGSUMBENCH_CACHE={self.cache}".encode()
        return [
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/environ")
            if mark in bytes_of(path)
        ]

    def finished(self) -> list[Path]:
        """Return the records there are."""
        return list(self.results.glob("runs/*/*/*/record.json"))

    def records(self) -> dict[str, dict[str, Any]]:
        """Return run id → record without what was measured."""
        records = {}
        for path in self.finished():
            values = read_json(path)
            for name in OF_ITS_TIME:
                values.pop(name)
            values["fit"].pop("seconds")
            records[path.parent.name] = values
        return records

    def predictions(self) -> dict[str, bytes]:
        """Return run and file → predictions, those of all checkpoints that summarize."""
        found = self.results.rglob("predictions*.jsonl")
        return {f"{path.parent.name}/{path.name}": path.read_bytes() for path in found}

    def status(self) -> str:
        """Return what `longsumbench status` says of it."""
        return render_status(self.results)


def untrained(texts: Path, folder: Path) -> list[str]:
    """Return the words of points that take no training."""
    return [
        "dataset=jsonl",
        f"dataset.path={texts}",
        f"results_dir={folder / 'r'}",
        "score.resamples=100",
    ]


def bytes_of(path: Path) -> bytes:
    """Return a file of a process, nothing if that is gone or somebody else's."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
