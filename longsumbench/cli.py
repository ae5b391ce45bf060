"""The command line. Only argparse at import; what a command needs is imported inside it."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from longsumbench import __version__
from longsumbench.errors import INTERRUPTED, PointsFailed, UsageError, as_suite_error

DESCRIPTION = """\
Compare long-input summarizers on the same documents, with the same ROUGE, under the same budget.

  longsumbench run                              train a tiny system on built-in text, print the table (minutes)
  longsumbench run model=lead dataset=pubmed dataset.path=FOLDER
  longsumbench run -m model=lead,random,oracle,trunc model.input_length=64,256 seed=1,2
  longsumbench leaderboard pydoc                print a table again
  longsumbench list models                      what can be named
"""

RUN = """\
Run one point, or with -m every combination of the comma-separated values.

groups:    model=NAME  dataset=NAME  scale=tiny|small|paper  experiment=NAME      (longsumbench list models|datasets)
settings:  model.*  dataset.*  train.*  decode.*  score.*                         (longsumbench list settings [MODEL])
top level: seed=1  device=auto|cpu|cuda  results_dir=results  overwrite=false  baselines=true

  longsumbench run model=trunc model.input_length=512 train.max_minutes=8
  longsumbench run dataset=jsonl dataset.path=my_texts scale=tiny
  longsumbench run -m seed=1,2,3 --show         what would be run, without running it

Running the same command again continues it: what is finished is skipped, what was broken off is resumed.
Lead, Random and Oracle are scored beside the first run on a dataset (baselines=false: not).
"""

EXIT_CODES = """\
exit codes: 0 done, 1 some points failed, 2 wrong usage or configuration, 3 bad data,
4 environment (network, disk, memory), 130 interrupted
"""


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser("longsumbench", description=DESCRIPTION, epilog=EXIT_CODES, formatter_class=raw)
    top.add_argument("--version", action="version", version=f"longsumbench {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    run = commands.add_parser(
        "run", help="run a point or a sweep", description=RUN, epilog=EXIT_CODES, formatter_class=raw
    )
    run.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="what departs from the defaults")
    run.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values")
    run.add_argument("--config-dir", metavar="FOLDER", help="a folder with more YAML files (model/, dataset/, …)")
    run.add_argument("--show", action="store_true", help="print the resolved configuration and stop")
    run.set_defaults(command=run_command)

    table = commands.add_parser("leaderboard", help="rebuild and print tables from results/")
    table.add_argument("dataset", nargs="?", help="one dataset; all of them when left out")
    table.add_argument("--latex", action="store_true", help="print LaTeX (booktabs) instead")
    table.add_argument("--results-dir", default="results", metavar="FOLDER")
    table.set_defaults(command=leaderboard_command)

    known = commands.add_parser("list", help="list what can be named")
    known.add_argument("what", choices=("models", "datasets", "metrics", "rankers", "settings"))
    known.add_argument("model", nargs="?", help="with settings: those of this model too")
    known.set_defaults(command=list_command)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options, extra = parser().parse_known_args(words)
    try:
        if extra:
            take_overrides(options, extra)
        command: Callable[[argparse.Namespace, Sequence[str]], None] = options.command
        command(options, words)
    except KeyboardInterrupt:
        print("interrupted: what is finished is kept, the same command continues it", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        known = as_suite_error(error)
        if known is None:
            raise
        print(f"longsumbench: {known}", file=sys.stderr)
        return known.exit_code
    return 0


def take_overrides(options: argparse.Namespace, extra: Sequence[str]) -> None:
    """Give overrides that stand behind a flag to `run`; argparse takes only those before it.

    Raises:
        UsageError: a word that is neither a flag of the command nor an override.
    """
    unknown = [word for word in extra if word.startswith("-") or not hasattr(options, "overrides")]
    if unknown:
        raise UsageError(f"unknown argument '{unknown[0]}' (see longsumbench --help)")
    options.overrides = [*options.overrides, *extra]


def run_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench run`."""
    from longsumbench.launch import Launch

    launch = Launch(options.overrides, command=("longsumbench", *words), show=options.show)
    try:
        launch.start(options.multirun, options.config_dir)
    finally:
        if launch.finished:
            show_tables(launch.results_dirs, {record.dataset for record in launch.finished})
    if launch.failed:
        points = "\n".join(f"  {what}: {why}" for what, why in launch.failed.items())
        raise PointsFailed(f"{len(launch.failed)} points failed, the others are kept:\n{points}")


def show_tables(results_dirs: set[str], names: set[str]) -> None:
    """Rebuild the tables of these datasets and print them."""
    from longsumbench import leaderboard
    from longsumbench.records import Results

    for folder in sorted(results_dirs):
        results = Results(Path(folder))
        for name in sorted(names & set(results.datasets())):
            print(leaderboard.update(results, name).render())
            print(f"\n{Path(folder) / 'leaderboard' / name}.csv, .md, .tex")


def leaderboard_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench leaderboard`."""
    from longsumbench import leaderboard
    from longsumbench.errors import UnknownName
    from longsumbench.records import Results

    results = Results(Path(options.results_dir))
    found = results.datasets()
    if not found:
        raise UsageError(f"no finished run under {results.root}: start with `longsumbench run`, or name --results-dir")
    if options.dataset and options.dataset not in found:
        raise UnknownName("dataset with results", options.dataset, found)
    for name in [options.dataset] if options.dataset else found:
        table = leaderboard.update(results, name)
        print(table.latex() if options.latex else table.render(), end="\n\n")


def list_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench list`."""
    from longsumbench import catalogue

    print(catalogue.settings(options.model) if options.what == "settings" else catalogue.names(options.what))


if __name__ == "__main__":
    sys.exit(main())
