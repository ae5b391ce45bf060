"""The runs in a results folder as a list: finished, running and interrupted ones."""

import shlex
import shutil
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
from longsumbench.formatting import break_command, escape_line
from longsumbench.runs.record import SHORT_ID, RunRecord, measured_mean
from longsumbench.runs.results import Results

_HEADERS = ("run", "dataset", "model", "settings", "seed", "split", "score", "when")
_SHRINK = (
    ("settings", 12),
    ("model", 10),
    ("dataset", 10),
    ("settings", 1),
)  # the order, and the least widths


@dataclass(frozen=True)
class ListedRun:
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
) -> list[ListedRun]:
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
    datasets, models = (
        {path.parents[1].name for path in folders},
        {path.parent.name for path in folders},
    )
    for kind, name, names in (("dataset", dataset, datasets), ("model", model, models)):
        if name is not None and name not in names:
            raise UnknownName(f"{kind} with runs", name, names)
    datasets = {dataset} if dataset else datasets
    finished = (
        _finished(results, record) for name in sorted(datasets) for record in results.records(name)
    )
    begun = (
        path
        for path in folders
        if path.parents[1].name in datasets and not (path / "record.json").exists()
    )
    unfinished = (run for folder in begun for run in _unfinished(results, folder))
    runs = [
        run
        for run in (*finished, *unfinished)
        if model in (None, run.model) and state in (None, run.state)
    ]
    return sorted(runs, key=lambda run: run.when, reverse=True)


def _finished(results: Results, record: RunRecord) -> ListedRun:
    folder, when = results.run_folder(record), datetime.fromisoformat(record.finished).astimezone()
    mean = measured_mean(record, score := record.evaluation.ranked_by)
    number = None if mean is None else mean.mean
    settings = ", ".join(filter(None, [record.config.name, record.variant])) or (
        "imported" if record.imported else ""
    )
    return ListedRun(
        folder, "finished", when, record.key.split, record.key.seed, settings, number, score
    )


def _unfinished(results: Results, folder: Path) -> Iterator[ListedRun]:
    """Yield the run in a folder without a record; nothing if it has no configuration yet."""
    path = folder / "config.yaml"
    try:
        config: Any = OmegaConf.to_container(OmegaConf.create(read_text(path)))
        split, seed, results_dir = config["dataset"]["split"], config["seed"], config["results_dir"]
        imported = "imported" in config["model"]
        when = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    except FileNotFoundError:
        return
    except (ValueError, YAMLError, OmegaConfBaseException, LookupError, TypeError) as error:
        results.leave_out(DataError(f"not the configuration of a run ({escape_line(error)})", path))
        return
    if lock_holder(folder / "work" / ".lock") is not None:
        yield ListedRun(folder, "running", when, split, seed)
        return
    words = ["longsumbench", "run", "--config", str(path)]
    words += [] if Path(results_dir) == results.root else [f"results_dir={results.root}"]
    command = "" if imported else shlex.join(words)  # imported outputs have no system to run
    yield ListedRun(folder, "interrupted", when, split, seed, command=command)


def render_runs(runs: Sequence[ListedRun]) -> str:
    """Return a table with a line for each run, as wide as the terminal, and how to continue interrupted runs."""
    if not runs:
        return "no such run"
    rows = [_HEADERS, *map(_run_row, runs)]
    widths = {name: max(map(len, cells)) for name, *cells in zip(_HEADERS, *rows, strict=True)}
    columns = max(80, shutil.get_terminal_size().columns)
    excess = sum(widths.values()) + 2 * (len(widths) - 1) - columns
    for name, least in _SHRINK:
        cut = min(max(0, excess), max(0, widths[name] - least))
        widths[name], excess = widths[name] - cut, excess - cut
    lines = ["  ".join(map(_fit, row, widths.values())).rstrip() for row in rows]
    scores: dict[str, set[str]] = {}
    for run in runs:
        if run.ranked_by:
            scores.setdefault(run.ranked_by, set()).add(run.dataset)
    lines += [
        "",
        *(
            f"{name}: the score on {', '.join(sorted(datasets))}"
            for name, datasets in scores.items()
        ),
    ]
    commands = [break_command(run.command, columns) for run in runs if run.command]
    if commands:
        lines += ["", "Interrupted runs continue with:", *commands]
    return "\n".join(lines).rstrip()


def _run_row(run: ListedRun) -> tuple[str, ...]:
    score = run.state if run.score is None else f"{run.score:5.1f}"
    when = (
        f"{run.when:%m-%d %H:%M}"
        if run.when.year == datetime.now().year
        else f"{run.when:%Y-%m-%d}"
    )
    seed = "" if run.seed is None else str(run.seed)
    cells = [
        run.folder.name[:SHORT_ID],
        run.dataset,
        run.model,
        run.settings,
        seed,
        run.split,
        score,
        when,
    ]
    return tuple(map(escape_line, cells))


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else f"{text[: width - 1]}…"
