"""`run` and `sweep`, and what `longsumbench run` shares with them: planning a launch."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from longsumbench.arguments import public_function
from longsumbench.core.callables import register_function
from longsumbench.errors import UsageError
from longsumbench.formatting import escape_lines
from longsumbench.modeling.processes import started_processes
from longsumbench.progress import phase
from longsumbench.runs.overrides import add_config_file, format_overrides, swept_settings
from longsumbench.runs.plan import check_scale, plan, split_sweep_overrides
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.sweeps.launchers import HERE, choose_engine
from longsumbench.sweeps.sweep import Launch
from longsumbench.views.curves import update_curves
from longsumbench.views.leaderboard import update_table
from longsumbench.views.run_summary_screen import UpdatedTable


@public_function
def run(
    *, config: str | Path | None = None, config_dir: str | Path | None = None, **settings: Any
) -> RunRecord:
    """Run one system on one dataset, as `longsumbench run` does: read, train, summarize, score, write the record.

    A finished run is not repeated; an interrupted one continues. The tables in the results folder are rebuilt.

        run(model="lead", dataset="jsonl", **{"dataset.path": "my_texts"})
        run(model={"name": "seal", "segment_length": 64}, dataset="aclsum", scale="tiny", seed=2)
        run(model=my_summarizer, dataset="aclsum")

    A function, (text) → summary or (text, query=…) → summary, is called in this process. Another function is another
    run, by a hash of all that it reaches. Installed packages, what it imports itself and files are not covered: after a
    change there, add `overwrite=True`.

    Args:
        config: the `config.yaml` of a run; `settings` change it.
        config_dir: a folder with more YAML files.
        settings: settings of the command line. A dictionary holds the settings of a group; its `name` chooses the
            model, dataset or recipe.

    Returns:
        The record of the run. The records of its baselines are in the results folder.

    Raises:
        UsageError: a setting is unknown or invalid.
        DataError: the texts cannot be used.
        EnvironmentProblem: no network, a full disk, too little memory.
    """
    if callable(settings.get("model")):
        function = register_function(settings["model"])
        settings["model"] = {"name": "function", "function": function}
    return _run_settings(settings, False, config_dir, config)[0]


@public_function
def sweep(*, config_dir: str | Path | None = None, **settings: Any) -> list[RunRecord]:
    """Run every combination of the listed values, as `longsumbench run -m` does.

        sweep(model=["lead", "lexrank"], dataset="aclsum", seed=[1, 2, 3])

    All runs are checked before the first one starts. A run that fails leaves the others untouched.

    Args:
        config_dir: a folder with more YAML files.
        settings: as of `run`, but a list, tuple or range holds values to sweep over. A value that is itself a list goes
            into another one: `{"model.focus_layers": [[], [1, 2]]}`. `{"hydra/launcher": "joblib"}` uses all cores.

    Returns:
        The records of the runs, in the order of the combinations, the last setting varying fastest.

    Raises:
        PointsFailed: some runs failed; the others are finished and kept.
        UsageError: a setting is unknown or invalid.
    """
    return _run_settings(settings, True, config_dir)


def _run_settings(
    settings: dict[str, Any],
    sweep: bool,
    config_dir: str | Path | None,
    config: str | Path | None = None,
) -> list[RunRecord]:
    if started_processes() > 1:
        raise UsageError(
            "several processes were started: run() works in one; use torchrun -m longsumbench run"
        )
    words = add_config_file(config, format_overrides(settings, sweep))
    folder = None if config_dir is None else str(config_dir)
    flags = ["-m"] if sweep else []
    flags += [] if folder is None else ["--config-dir", folder]
    launch = plan_launch(words, sweep, folder, ("longsumbench", "run", *flags, *words))
    with updating_tables(launch):
        launch.start()
    return launch.records()


def plan_launch(
    words: Sequence[str],
    sweep: bool,
    config_dir: str | None,
    command: tuple[str, ...],
    check_access: bool = True,
) -> Launch:
    """Compose and check the points of a command line as `plan` does; of a search, the settings that its points share.

    Raises:
        UsageError: an override is invalid, or a point is too large for a CPU.
        EnvironmentProblem: something that the points need is missing.
    """
    hydras = [word for word in words if word.lstrip("+~").startswith(("hydra/", "hydra."))]
    engine = choose_engine(hydras, sweep, config_dir)
    settings = [word for word in words if word not in hydras]
    base, swept = split_sweep_overrides(settings, config_dir)
    if engine.sweeper == HERE:
        points = plan(settings, sweep, config_dir, check_access)
    else:
        points = plan(base, False, config_dir, check_access)
    if check_access and not engine.on_cluster:  # whose nodes may have GPUs
        check_scale(points)
    return Launch(points, command, sweep, engine, base, swept, config_dir)


_log = logging.getLogger(__name__)

# Is given tables, and the records of the points
_Show = Callable[[Sequence[UpdatedTable], Sequence[RunRecord]], None]


@contextmanager
def updating_tables(launch: Launch, show: _Show = lambda *_: None) -> Iterator[None]:
    """Rebuild and show the tables of a launch's datasets after its points have run.

    Raises:
        PointsFailed: some points of a sweep failed.
        SuiteError: the only point failed, or nothing could begin.
    """
    try:
        yield
    except Exception:
        _update_tables(launch, (), show)  # of what was finished before
        raise
    if launch.table and _log.isEnabledFor(logging.INFO):
        print(escape_lines(f"\n{launch.table}\n"), file=sys.stderr)
    with phase("making the tables"):
        _update_tables(launch, swept_settings(launch.swept), show)
    launch.check_failed()


def _update_tables(launch: Launch, swept: Sequence[str], show: _Show) -> None:
    """Rebuild the tables of a launch's datasets, with curves over one or two swept settings; show its runs in them."""
    updated = []
    names = {record.key.dataset for record in launch.finished}
    ran = {record.run_id for record in launch.finished}
    for root in sorted({point.config.results_dir for point in launch.points}):
        results = Results.at(root)
        for name in sorted(names & set(results.datasets())):
            table = update_table(results, name, redraw=False)
            curves = []
            if len(swept) in (1, 2):
                curves = update_curves(results, name, swept, required=False, run_ids=ran)
            updated.append(UpdatedTable(table, results, tuple(curves)))
    if updated:
        show(updated, launch.records() or launch.finished)
