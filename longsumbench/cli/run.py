"""`longsumbench run`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.cli.parser import Command, Parser
from longsumbench.conf import CONF
from longsumbench.errors import PointsFailed
from longsumbench.formatting import escape_line, escape_lines, format_count, print_text

if TYPE_CHECKING:
    from longsumbench.sweeps.sweep import Launch


_HELP = """\
Run one point (a model, a dataset and settings), or with -m every combination of the comma-separated values.

  longsumbench run model=trunc model.input_length=512 train.max_minutes=8
  longsumbench run dataset=jsonl dataset.path=my_texts scale=tiny
  longsumbench run -m seed=1,2,3 --show         print the configurations without running them
  longsumbench run -m seed=1,2,3 hydra/launcher=joblib                   in parallel, on all cores
  longsumbench run -m seed=1,2,3 hydra/launcher=slurm_gpu hydra.launcher.partition=gpu       as a SLURM array job
  torchrun --nproc-per-node=4 -m longsumbench run model=seal         one point with four processes
  longsumbench run -m experiment=etads-table5 dataset=cnn_dailymail      the points that an experiment defines

groups:    model=NAME  dataset=NAME  scale={scales}       (longsumbench list models|datasets|scales)
           experiment=NAME, settings that belong together                                (longsumbench list experiments)
settings:  model.*  dataset.*  train.*  decode.*  score.*                         (longsumbench list settings [MODEL])
top level: seed=1  device=auto|cpu|cuda  results_dir=results  overwrite=false  baselines=true  timeout_minutes=null
sweeps:    hydra/launcher=joblib|slurm_cpu|slurm_gpu|slurm_preemptible  hydra/sweeper=optuna  and hydra.launcher.*,
           hydra.sweeper.*, the settings of these Hydra plug-ins                                (docs/how-to/sweep.md)

The same command continues an interrupted run: it skips finished steps and resumes the others.
A sweep checks all points before it runs the first one. If a point fails, hangs or is killed, the others still run.
Points whose differences do not affect their system run once. If one or two settings vary, the scores are plotted
against them. An experiment may define a sweep (`sweep:` in its file); it is combined with the values you type.
`longsumbench status` shows the progress, from any shell.
The first run on a dataset also scores Lead, Random and Oracle. baselines=false turns this off.
Quote a value with a comma, a bracket or a blank twice: "dataset.path='my texts'". Type lists as they are:
"model.focus_layers=[1,2]". To sweep over lists: "model.focus_layers=[],[1,2]".
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings that differ from the defaults")
    command.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values")
    command.add_argument("--config-dir", metavar="FOLDER", help="a folder with more YAML files (model/, dataset/, …)")
    command.add_argument("--show", action="store_true", help="print the resolved configuration and stop")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    """Run the command; with torchrun, the other processes help the first one."""
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.runs.processes import by_the_first
        from longsumbench.runs.rank_tasks import TASKS

    by_the_first(lambda: _run(options, words), TASKS)


def _run(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.runs.plan import plan, show_config, split_sweep_overrides, swept_settings
        from longsumbench.sweeps.launchers import HERE, Engine, is_hydras
        from longsumbench.sweeps.sweep import Launch

        of_points = [word for word in options.overrides if not is_hydras(word)]
        of_hydra = [word for word in options.overrides if is_hydras(word)]
        engine = Engine.of(of_hydra, options.multirun, options.config_dir)
        launch = Launch((), ("longsumbench", *words), options.multirun, engine)
        if engine.sweeper == HERE:
            launch.points = plan(of_points, options.multirun, options.config_dir, probe=not options.show)
    if options.show:  # for a search: the settings that all points share
        print_text(
            show_config(
                launch.points
                or plan(split_sweep_overrides(of_points, options.config_dir)[0], config_dir=options.config_dir)
            )
        )
        return
    try:
        if engine.sweeper == HERE:
            launch.start()
        else:
            launch.search(of_points, options.config_dir)
    except Exception:
        _show_tables(launch)  # of the runs that finished before
        raise
    with phase("making the tables"):
        _show_tables(launch, swept_settings(of_points, options.config_dir))
    if table := launch.table():
        print(escape_lines(f"\n{table}"), file=sys.stderr)
    if launch.failed or launch.failed_baselines:
        from tabulate import tabulate

        failed = {**launch.failed, **launch.failed_baselines}
        reasons = tabulate(
            [map(escape_line, pair) for pair in failed.items()], headers=["point", "reason"], tablefmt="plain"
        )
        baselines = f" and {format_count(len(launch.failed_baselines), 'baseline')}" if launch.failed_baselines else ""
        count = f"{len(launch.failed)} of {format_count(launch.planned(), 'point')}{baselines} failed"
        raise PointsFailed(f"{count}, the others are kept:\n{reasons}")


def _show_tables(launch: "Launch", swept: Sequence[str] = ()) -> None:
    """Rebuild and print the tables of a launch's datasets; plot the scores if one or two settings vary."""
    from longsumbench.leaderboards import table as leaderboard
    from longsumbench.leaderboards.figures import curves as sweep
    from longsumbench.runs.record import Results

    folders = {planned.config.results_dir for planned in launch.points}
    ran = {record.run_id for record in launch.finished}
    for folder in sorted(folders):
        results = Results(Path(folder).expanduser())
        for name in sorted({record.dataset for record in launch.finished} & set(results.datasets())):
            table = leaderboard.update_table(results, name)
            print_text(table.render())
            print_text(f"\n{results.root / 'leaderboard' / name}.csv, .md, .tex")
            for file in table.pictures():
                print_text(results.root / "leaderboard" / file)
            if len(swept) in (1, 2):
                for path in sweep.update_curves(results, name, swept, required=False, wanted=ran):
                    print_text(path)


run_command = Command(
    "run",
    "run a point or a sweep",
    _HELP.format(scales="|".join(sorted(path.stem for path in (CONF / "scale").glob("*.yaml")))),
    _add_arguments,
    _execute,
)
