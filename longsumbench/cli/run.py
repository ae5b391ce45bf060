"""`longsumbench run`."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.cli.parser import Command, Parser
from longsumbench.conf import CONF
from longsumbench.formatting import print_text

if TYPE_CHECKING:
    from longsumbench.leaderboards.table import Table


_HELP = """\
Run one point, or with -m every combination of the comma-separated values.

groups:    model=NAME  dataset=NAME  scale={scales}       (longsumbench list models|datasets|scales)
           experiment=NAME, settings that go together                                    (longsumbench list experiments)
settings:  model.*  dataset.*  train.*  decode.*  score.*                         (longsumbench list settings [MODEL])
top level: seed=1  device=auto|cpu|cuda  results_dir=results  overwrite=false  baselines=true  timeout_minutes=null
sweeps:    hydra/launcher=joblib|slurm_cpu|slurm_gpu|slurm_preemptible  hydra/sweeper=optuna  and hydra.launcher.*,
           hydra.sweeper.*, the settings of these plug-ins of Hydra                             (docs/how-to/sweep.md)

  longsumbench run model=trunc model.input_length=512 train.max_minutes=8
  longsumbench run dataset=jsonl dataset.path=my_texts scale=tiny
  longsumbench run -m seed=1,2,3 --show         what would be run, without running it
  longsumbench run -m seed=1,2,3 hydra/launcher=joblib                   side by side, on all cores
  longsumbench run -m seed=1,2,3 hydra/launcher=slurm_gpu hydra.launcher.partition=gpu       as an array job of SLURM
  torchrun --nproc-per-node=4 -m longsumbench run model=seal         one point by four processes
  longsumbench run -m experiment=etads-table5 dataset=cnn_dailymail      points that an experiment names itself

Running the same command again continues it: what is finished is skipped, what was broken off is resumed.
In a sweep, all points are checked before the first one runs; one that fails, hangs or is killed later leaves the
others untouched, and points that differ in nothing their system depends on are done once. Where one or two settings
were swept over, the score is drawn against them. An experiment may name a sweep of its own (`sweep:` in its file),
which is combined with the values typed. `longsumbench status`, from any shell, shows how far it is.
Lead, Random and Oracle are scored beside the first run on a dataset (baselines=false: not).
A value with a comma, a bracket or a blank in it is quoted twice: "dataset.path='my texts'". Lists are typed as they
are: "model.focus_layers=[1,2]", and to sweep over "model.focus_layers=[],[1,2]".
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="what departs from the defaults")
    command.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values")
    command.add_argument("--config-dir", metavar="FOLDER", help="a folder with more YAML files (model/, dataset/, …)")
    command.add_argument("--show", action="store_true", help="print the resolved configuration and stop")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench run`; of several processes that torchrun started, the others help the first one."""
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.runs.processes import by_the_first
        from longsumbench.runs.rank_tasks import TASKS

    by_the_first(lambda: _run(options, words), TASKS)


def _run(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench run`."""
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.runs.plan import plan, show_config, split_sweep_overrides
        from longsumbench.sweeps.run import carry_out, plan_launch

        command, folder = ("longsumbench", *words), options.config_dir
        launch = plan_launch(options.overrides, options.multirun, folder, command, probe=not options.show)
    if options.show:  # of a search, what all of its points share
        print_text(
            show_config(launch.points or plan(split_sweep_overrides(launch.words, folder)[0], config_dir=folder))
        )
    else:
        carry_out(launch, _print_table)


def _print_table(table: "Table", folder: Path, pictures: Sequence[Path]) -> None:
    print_text(table.render(), f"\n{folder / table.dataset}.csv, .md, .tex", *pictures)


run_command = Command(
    "run",
    "run a point or a sweep",
    _HELP.format(scales="|".join(sorted(path.stem for path in (CONF / "scale").glob("*.yaml")))),
    _add_arguments,
    _execute,
)
