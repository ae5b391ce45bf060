"""The runs in a results folder as a list: finished, running and interrupted ones."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError  # type: ignore[import-untyped] # not annotated

from longsumbench.cache.locks import lock_holder
from longsumbench.errors import DataError, UnknownName, UsageError
from longsumbench.files import read_text
from longsumbench.formatting import break_command, escape_line, plain_table, terminal_width
from longsumbench.runs.record import SHORT_ID, RunRecord, measured_mean
from longsumbench.runs.results import Results

_HEADERS = ("run", "dataset", "model", "settings", "seed", "split", "score", "when")


@dataclass(frozen=True)
class RunEntry:
    """A run in a list.

    Attributes:
        folder: the run's folder.
        state: finished, running or interrupted.
        when: when it finished; of other runs, when it was started.
        seed: None if the outcome does not depend on it.
        settings: name and variant of a finished run, or "imported"; empty for other runs.
        score: the mean that ranks it; None if it is not finished.
        ranked_by: the name of this score.
        command: continues an interrupted run; empty for other runs and for imported outputs.
    """

    folder: Path
    state: str
    when: datetime
    split: str
    seed: int | None
    settings: str = ""
    score: float | None = None
    ranked_by: str = ""
    command: str = ""

    @property
    def dataset(self) -> str:
        """The name of the run's dataset."""
        return self.folder.parents[1].name

    @property
    def model(self) -> str:
        """The name of the run's system."""
        return self.folder.parent.name


def list_runs(
    results: Results, dataset: str | None = None, model: str | None = None, state: str | None = None
) -> list[RunEntry]:
    """Return the runs in a results folder, the newest first; damaged ones are left out with a line.

    `dataset`, `model` and `state` (finished, running or interrupted) select some of them.

    Raises:
        UsageError: there are no runs, or none on the dataset or of the model.
    """
    folders = results.run_folders()
    if not folders:
        raise UsageError(
            f"no run under {results.root}: start with `longsumbench run`, or set --results-dir"
        )
    datasets = {path.parents[1].name for path in folders}
    models = {path.parent.name for path in folders}
    if dataset is not None and dataset not in datasets:
        raise UnknownName("dataset with runs", dataset, datasets)
    if model is not None and model not in models:
        raise UnknownName("model with runs", model, models)
    runs = []
    for name in [dataset] if dataset else sorted(datasets):
        runs += [_finished(results, record) for record in results.records(name)]
    for folder in folders:
        of_dataset = dataset in (None, folder.parents[1].name)
        if of_dataset and not (folder / "record.json").exists():
            runs += _unfinished(results, folder)
    chosen = [run for run in runs if model in (None, run.model) and state in (None, run.state)]
    return sorted(chosen, key=lambda run: run.when, reverse=True)


def _finished(results: Results, record: RunRecord) -> RunEntry:
    settings = ", ".join(filter(None, [record.config.name, record.variant]))
    ranked_by = record.evaluation.ranked_by
    mean = measured_mean(record, ranked_by)
    return RunEntry(
        results.run_folder(record),
        "finished",
        datetime.fromisoformat(record.finished).astimezone(),
        record.key.split,
        record.key.seed,
        settings or ("imported" if record.imported else ""),
        mean and mean.mean,
        ranked_by,
    )


def _unfinished(results: Results, folder: Path) -> Iterator[RunEntry]:
    """Yield the run in a folder without a record; nothing if it has no configuration yet."""
    path = folder / "config.yaml"
    try:
        config: Any = OmegaConf.to_container(OmegaConf.create(read_text(path)))
        split, seed = config["dataset"]["split"], config["seed"]
        is_elsewhere = Path(config["results_dir"]) != results.root
        imported = "imported" in config["model"]
        when = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    except FileNotFoundError:
        return
    except (ValueError, YAMLError, OmegaConfBaseException, LookupError, TypeError) as error:
        results.leave_out(DataError(f"not the configuration of a run ({escape_line(error)})", path))
        return
    if lock_holder(folder / "work" / ".lock") is not None:
        yield RunEntry(folder, "running", when, split, seed)
        return
    words = ["longsumbench", "run", "--config", str(path)]
    if is_elsewhere:
        words.append(f"results_dir={results.root}")
    command = "" if imported else shlex.join(words)  # imported outputs have no system to run
    yield RunEntry(folder, "interrupted", when, split, seed, command=command)


def render_runs(runs: Sequence[RunEntry]) -> str:
    """Return a table with a line for each run, as wide as the terminal, and how to continue interrupted runs."""
    if not runs:
        return "no such run"
    lines = [plain_table(list(map(_run_row, runs)), _HEADERS, right=("score",)), ""]
    datasets: dict[str, set[str]] = {}
    for run in runs:
        if run.ranked_by:
            datasets.setdefault(run.ranked_by, set()).add(run.dataset)
    for name, names in datasets.items():
        lines.append(f"{name}: the score on {', '.join(sorted(names))}")
    commands = [run.command for run in runs if run.command]
    if commands:
        lines += ["", "Interrupted runs continue with:"]
        lines += [break_command(command, terminal_width()) for command in commands]
    return "\n".join(lines).rstrip()


def _run_row(run: RunEntry) -> tuple[str, ...]:
    is_of_this_year = run.when.year == datetime.now().year
    when = f"{run.when:%m-%d %H:%M}" if is_of_this_year else f"{run.when:%Y-%m-%d}"
    cells = [
        run.folder.name[:SHORT_ID],
        run.dataset,
        run.model,
        run.settings,
        "" if run.seed is None else str(run.seed),
        run.split,
        run.state if run.score is None else f"{run.score:.1f}",
        when,
    ]
    return tuple(map(escape_line, cells))
