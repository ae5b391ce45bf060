"""`longsumbench run`."""

from argparse import Namespace
from itertools import chain

from longsumbench.cli.parser import OVERRIDES, Argument, Command
from longsumbench.conf import CONF
from longsumbench.formatting import print_text

_HELP = """\
Make one run (a model, a dataset and settings), or with -m every combination of the comma-separated values.
Without arguments, compare summaries of real papers, and what four systems find in made-up reports: about three minutes
on two cores. model.checkpoint=FILE alone, or LONGSUMBENCH_MODEL=FILE, adds a language model.

  longsumbench run model=trunc model.input_length=512 train.max_minutes=8
  longsumbench run dataset=jsonl dataset.name=mine dataset.path=my_texts scale=tiny
  longsumbench run --config results/runs/pubmed/seal/85f3139c4a2b/config.yaml seed=2        the settings of a run
  longsumbench run -m seed=1,2,3 --show         print the configurations without running them
  longsumbench run model=seal dataset=arxiv --estimate                   print tokens and price without running
  longsumbench run -m seed=1,2,3 hydra/launcher=joblib                   in parallel, on all cores
  longsumbench run -m seed=1,2,3 hydra/launcher=slurm_gpu hydra.launcher.partition=gpu       as a SLURM array job
  torchrun --nproc-per-node=4 -m longsumbench run model=seal         one run with four processes
  longsumbench run -m experiment=first-probe                             the runs that an experiment defines

groups:    model=NAME  dataset=NAME  scale={scales}  (longsumbench list models|datasets|scales)
           experiment=NAME, settings that belong together                                (longsumbench list experiments)
settings:  model.*  dataset.*  train.*  decode.*  score.*                         (longsumbench list settings [MODEL])
general:   seed=1  device=auto|cpu|cuda|mps  results_dir=results  overwrite=false  baselines=true  timeout_minutes=null
           name=null: of the run in tables; no part of its id
sweeps:    hydra/launcher=joblib|slurm_cpu|slurm_gpu|slurm_preemptible  hydra/sweeper=optuna  and hydra.launcher.*,
           hydra.sweeper.*, their settings: conf/hydra/                                         (docs/how-to/sweep.md)

A run is one system, with its settings, on one dataset; a sweep has several.
The same command continues an interrupted run: it skips finished steps and resumes the others.

A sweep checks all runs before it starts the first one. If one fails, the others still run. With a launcher, the
same holds if its process hangs or is killed.
Runs whose differences do not affect their system are made once. If one or two settings vary, the scores are plotted
against them. An experiment may define a sweep (`sweep:` in its file); it is combined with the values you type.
`longsumbench status` shows the progress, from any shell.

The first run on a dataset also scores Lead, Random, Oracle and, where examples have queries, Ranker by BM25, as long
as the run is asked to write. baselines=false turns this off.

Quote text with a comma, a bracket or a blank twice: "dataset.path='my texts'". Type lists as they are:
"model.focus_layers=[1,2]". To sweep over lists: "model.focus_layers=[],[1,2]".
"""


_ARGUMENTS = (
    OVERRIDES,
    Argument("-m --multirun", "sweep over comma-separated values"),
    Argument("--config", "start from the config.yaml of a run; KEY=VALUE changes it", "FILE"),
    Argument("--config-dir", "a folder with more YAML files (model/, dataset/, …)", "FOLDER"),
    Argument("--show", "print the resolved configuration and stop"),
    Argument("--estimate", "print tokens and price, and stop"),
)


def _execute(options: Namespace) -> None:
    """Run the points in the first process; the other processes that torchrun started take part in them."""
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.modeling.processes import first_process
        from longsumbench.runs.overrides import add_config_file
        from longsumbench.runs.pipeline import take_part
        from longsumbench.runs.plan import show_config
        from longsumbench.sweeps.run import plan_launch

    # The other processes wait in `take_part` until the first one has a run to share.
    with first_process(take_part) as first:
        if not first:
            return
        compares, check_access = _compares(options), not (options.show or options.estimate)
        with phase("loading the libraries"):
            if compares:
                from longsumbench.analysis.quickstart import plan_comparison, run_comparison

                launches = plan_comparison(options.overrides, options.command_line, check_access)
            else:
                overrides = add_config_file(options.config, options.overrides)
                launch = plan_launch(
                    overrides,
                    options.multirun,
                    options.config_dir,
                    options.command_line,
                    check_access,
                )
                launches = [launch]
        points = list(chain.from_iterable(launch.points for launch in launches))
        if options.estimate:
            from longsumbench.runs.estimate import describe_costs

            print_text(describe_costs(points))
            return
        if options.show:  # for a search: the settings that all points share
            print_text(show_config(points))
            return
        if compares:
            run_comparison(launches, print_text)
            return
        # What makes tables is imported last: --show and --estimate do without.
        from longsumbench.sweeps.run import updating_tables
        from longsumbench.views.run_summary_screen import describe_runs

        with updating_tables(
            launch, lambda updated, runs: print_text(describe_runs(updated, runs))
        ):
            launch.start()


# The words that a comparison with a language model may have
_OF_MODELS = ("model.", "device=", "decode.batch_size=")


def _compares(options: Namespace) -> bool:
    """Return True if the words name nothing but a language model."""
    words = options.overrides
    names_model = any(word.startswith("model.checkpoint=") for word in words)
    only_model = names_model and all(word.startswith(_OF_MODELS) for word in words)
    is_plain = not (options.config or options.config_dir or options.multirun)
    return is_plain and (not words or only_model)


run_command = Command(
    "run",
    "make a run or a sweep",
    _HELP.format(
        scales="|".join(sorted(path.stem for path in (CONF / "scale").glob("*.yaml"))),
    ),
    _ARGUMENTS,
    _execute,
)
