"""The command line. Only argparse at import; what a command needs is imported inside it."""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from longsumbench.arguments import VERBOSE, read
from longsumbench.errors import INTERRUPTED, DataError, PointsFailed, UsageError
from longsumbench.formatting import counted, lines, one_line, print_text
from longsumbench.interrupts import ended_by_sigterm

if TYPE_CHECKING:
    from longsumbench.runs.record import Results
    from longsumbench.sweeps.sweep import Launch


@ended_by_sigterm()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    words = [word for word in typed if word not in VERBOSE]  # what is shown of an error is no part of a run's command
    try:
        options = read(words)
        COMMANDS[options.command](options, words)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        kept = f"{interrupt}" or "what is finished is kept, the same command continues it"
        print(one_line(f"longsumbench: interrupted; {kept}"), file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough: `longsumbench list settings | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        return show_problem(error, verbose=words != typed)
    return 0


def show_problem(error: Exception, verbose: bool) -> int:
    """Print an error as one line, with `verbose` its traceback before it; return the exit code."""
    from longsumbench.runs.bug_report import explained

    problem = explained(error)
    if verbose:
        print(lines("".join(traceback.format_exception(error))), file=sys.stderr)
    escaped = lines if isinstance(problem, PointsFailed) else one_line  # which has a table, escaped when it was drawn
    print(escaped(f"longsumbench: {problem}"), file=sys.stderr)
    return problem.exit_code


def run_by_the_first(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench run`; of several processes that torchrun started, the others help the first one."""
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.runs.helpers import TASKS
        from longsumbench.runs.processes import by_the_first

    by_the_first(lambda: run_command(options, words), TASKS)


def run_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench run`."""
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.runs.plan import apart, plan, show, swept_settings
        from longsumbench.sweeps.launchers import HERE, Engine, is_hydras
        from longsumbench.sweeps.sweep import Launch

        of_points = [word for word in options.overrides if not is_hydras(word)]
        of_hydra = [word for word in options.overrides if is_hydras(word)]
        engine = Engine.of(of_hydra, options.multirun, options.config_dir)
        launch = Launch((), ("longsumbench", *words), options.multirun, engine)
        if engine.sweeper == HERE:
            launch.points = plan(of_points, options.multirun, options.config_dir, probe=not options.show)
    if options.show:  # of a search, what all of its points share
        print_text(show(launch.points or plan(apart(of_points, options.config_dir)[0], config_dir=options.config_dir)))
        return
    try:
        if engine.sweeper == HERE:
            launch.start()
        else:
            launch.search(of_points, options.config_dir)
    except Exception:
        show_tables(launch)  # of what was finished before
        raise
    with phase("making the tables"):
        show_tables(launch, swept_settings(of_points, options.config_dir))
    if table := launch.table():
        print(lines(f"\n{table}"), file=sys.stderr)
    if launch.failed or launch.failed_baselines:
        from tabulate import tabulate

        failed = {**launch.failed, **launch.failed_baselines}
        reasons = tabulate(
            [map(one_line, pair) for pair in failed.items()], headers=["point", "reason"], tablefmt="plain"
        )
        beside = f" and {counted(len(launch.failed_baselines), 'baseline')}" if launch.failed_baselines else ""
        told = f"{len(launch.failed)} of {counted(launch.planned(), 'point')}{beside} failed"
        raise PointsFailed(f"{told}, the others are kept:\n{reasons}")


def show_tables(launch: "Launch", swept: Sequence[str] = ()) -> None:
    """Rebuild the tables of the datasets that a launch has finished runs on, and print them.

    Where one or two settings were swept over, what came of it is drawn.
    """
    from longsumbench.leaderboards import table as leaderboard
    from longsumbench.leaderboards.figures import curves as sweep
    from longsumbench.runs.record import Results

    folders = {planned.config.results_dir for planned in launch.points}
    ran = {record.run_id for record in launch.finished}
    for folder in sorted(folders):
        results = Results(Path(folder).expanduser())
        for name in sorted({record.dataset for record in launch.finished} & set(results.datasets())):
            table = leaderboard.update(results, name)
            print_text(table.render())
            print_text(f"\n{results.root / 'leaderboard' / name}.csv, .md, .tex")
            for file in table.pictures():
                print_text(results.root / "leaderboard" / file)
            if len(swept) in (1, 2):
                for path in sweep.update(results, name, swept, required=False, wanted=ran):
                    print_text(path)


def status_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench status`."""
    from longsumbench.sweeps.status import render, watch

    results = Path(options.results_dir).expanduser()
    if options.watch is not None:
        try:
            watch(results, options.sweep, options.watch)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("a sweep that is running goes on") from None
    print_text(render(results, options.sweep))


def leaderboard_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench leaderboard`."""
    from longsumbench.api.config import allowed
    from longsumbench.errors import UnknownName
    from longsumbench.leaderboards import table as leaderboard
    from longsumbench.leaderboards.comparability import PARTS
    from longsumbench.report import tables
    from longsumbench.runs.record import Results

    parts = {name.lower(): part for part, name in PARTS.items()}
    allowed("--measure", options.measure, tuple(parts))
    part = parts[options.measure]
    results = Results(Path(options.results_dir).expanduser())
    found = results.datasets()
    if not found:
        raise UsageError(f"no finished run under {results.root}: start with `longsumbench run`, or name --results-dir")
    if options.dataset and options.dataset not in found:
        raise UnknownName("dataset with results", options.dataset, found)
    names = [options.dataset] if options.dataset else found
    drawn = draw_against(options, results, names)
    for name in names:
        try:
            table = leaderboard.update(results, name)
        except DataError as error:  # no record of this dataset can be read; others may be
            if len(names) == 1:
                raise
            results.leave_out(error)
            continue
        shown = table if part == table.part else leaderboard.read_table(results, name, part)
        if options.ledger:
            print_text(tables.terminal(f"longsumbench: {name}", [shown.ledger()]), "")
            continue
        print_text(shown.latex() if options.latex else shown.render(), "")
        for file in table.pictures() if shown is table and not options.latex else ():
            print_text(results.root / "leaderboard" / file, "")
    if drawn:
        print_text(*drawn)


def draw_against(options: argparse.Namespace, results: "Results", names: Sequence[str]) -> list[Path]:
    """Write what `--against` asks for, and return the files."""
    if options.kind is not None and not options.against:
        raise UsageError("--kind goes with --against SETTING: it says what is drawn")
    if options.against and len(names) > 1:
        raise UsageError(f"--against draws the runs on one dataset: name one of {', '.join(names)}")
    if options.against and options.measure != "f1":
        raise UsageError("--measure is of the printed table: --against draws F1, or what --kind names")
    if not options.against:
        return []
    from longsumbench.leaderboards.figures import curves as sweep

    return sweep.update(results, names[0], options.against, options.kind)


def summarize_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench summarize`."""
    from longsumbench.runs.record import Results
    from longsumbench.runs.summarize import summarize_files

    results = Results(Path(options.results_dir).expanduser())
    try:
        summarize_files(options.checkpoint, options.inputs, results, options.together, options.json, options.query)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the summaries that are printed are whole") from None


def score_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench score`."""
    if not 1 <= len(options.texts) <= 2:
        raise UsageError("name PREDICTIONS, and REFERENCES where they stand apart (see longsumbench score --help)")
    from longsumbench.analysis.score.files import find_predictions
    from longsumbench.analysis.score.score import score_files
    from longsumbench.api.bounds import bounds_of, check_value
    from longsumbench.api.config import Scoring
    from longsumbench.rouge.scorer import RougeScorer
    from longsumbench.runs.record import Results

    for name in ("resamples", "resampling", "empty_references"):
        check_value(f"--{name.replace('_', '-')}", getattr(options, name), bounds_of(Scoring)[name])
    perl_resampling = options.resampling == "perl"
    if perl_resampling and options.mode != "perl":
        raise UsageError("--resampling perl goes with --mode perl: they are ROUGE-1.5.5's own intervals")
    table = output_file(options.per_example, "--per-example")
    results = Results(Path(options.results_dir).expanduser())
    references = Path(options.texts[1]).expanduser() if options.texts[1:] else None
    try:
        scorer = RougeScorer(options.mode, options.stem, options.tokenizer, options.wordnet)
        report = score_files(
            find_predictions(options.texts[0], results),
            references,
            scorer,
            options.resamples,
            options.intersect,
            perl_resampling,
            options.empty_references == "zero",
        )
        if table is not None:
            report.write_per_example(table)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was written") from None
    print_text(report.to_json() if options.json else report.render())


def compare_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench compare`."""
    from longsumbench.analysis.runs.compare import compare, default_folder
    from longsumbench.analysis.runs.compare_page import write
    from longsumbench.api.bounds import Between, check_value
    from longsumbench.files import writable
    from longsumbench.runs.record import Results

    check_value("--examples", options.examples, Between(0, 10**6))
    results = Results(Path(options.results_dir).expanduser())
    try:
        comparison = compare(options.runs, results, options.examples, options.intersect, options.all_pairs)
        folder = Path(options.output).expanduser() if options.output else default_folder(results, comparison.runs)
        written = write(comparison, writable(folder, "--output"))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the runs are as they were; the same command compares them anew") from None
    print_text(comparison.render(), "", *written)


def inspect_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench inspect`."""
    from longsumbench.analysis.runs.inspect_page import write
    from longsumbench.analysis.runs.inspect_run import default_folder, inspect
    from longsumbench.files import writable
    from longsumbench.runs.record import Results

    results = Results(Path(options.results_dir).expanduser())
    try:
        inspection = inspect(options.run, options.example, results)
        folder = Path(options.output).expanduser() if options.output else default_folder(results, inspection.record)
        print_text(*write(inspection, writable(folder, "--output")))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the run is as it was; the same command shows the example anew") from None


def stats_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench stats`."""
    from longsumbench.analysis.plan import asks_for_ranking

    if asks_for_ranking(options.overrides):
        print_text(ranked_paragraphs(options))
    else:
        print_text(description(options))


def ranked_paragraphs(options: argparse.Namespace) -> str:
    """Return the table of how much of the references the best paragraphs say."""
    from longsumbench.analysis.dataset.rank_recall import rank_recall
    from longsumbench.analysis.plan import plan_stats

    if options.output:
        raise UsageError("--output goes with the description of a dataset; the numbers of rank= are written by --csv")
    asked = plan_stats(options.overrides)
    table = output_file(options.csv, "--csv")
    found = rank_recall(*asked)
    if table is not None:
        found.write_csv(table)
    return found.render()


def description(options: argparse.Namespace) -> str:
    """Return the tables of what a dataset is like, and which files were written."""
    from longsumbench.analysis.dataset.page import write
    from longsumbench.analysis.dataset.stats import describe
    from longsumbench.analysis.dataset.tables import render, to_csv
    from longsumbench.analysis.plan import plan_description
    from longsumbench.files import writable, write_atomically

    asked = plan_description(options.overrides)
    table = output_file(options.csv, "--csv")
    folder = writable(Path(options.output).expanduser(), "--output") if options.output else None
    try:
        stats = describe(*asked)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was written; the same command counts anew") from None
    if table is not None:
        write_atomically(table, to_csv(stats))
    written = write(stats, folder) if folder is not None else []
    return "\n".join([render(stats), *([""] if written else []), *map(str, written)])


def output_file(name: str | None, flag: str) -> Path | None:
    """Return the file that a flag names, if a file can be written there; None if the flag was not given.

    Raises:
        UsageError: there is a folder, a pipe, a device or a loop of links, which a file must not replace.
        EnvironmentProblem: nothing can be written there.
    """
    from longsumbench.files import writable

    if name is None:
        return None
    table = Path(os.path.realpath(Path(name).expanduser()))
    if os.path.lexists(table) and not table.is_file():
        what = "a folder" if table.is_dir() else "no file (a pipe, a device or a loop of links)"
        raise UsageError(f"{flag} {name or '.'} is {what}: name a file")
    writable(table.parent, flag)
    return table


def analyze_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench analyze`."""
    from longsumbench.analysis.names import ANALYSES
    from longsumbench.analysis.plan import plan_analyze
    from longsumbench.files import writable
    from longsumbench.runs.record import Results

    dataset, asked = plan_analyze(options.what, options.overrides)
    results = Results(Path(options.results_dir).expanduser())
    folder = Path(options.output).expanduser() if options.output else results.root / "analysis" / dataset.name
    analysis = ANALYSES[options.what]
    writable(folder, "--output")
    try:
        found = analysis.find(dataset, asked, results)
        written = analysis.write(found, folder)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was written; the same command analyzes anew") from None
    print_text(found.render(), "", *written)


def cache_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench cache`."""
    from longsumbench.cache import prune as cache
    from longsumbench.cache.artifacts import cache_folder, check_layout

    root = cache_folder()
    of_prune = {"--unused-for": options.unused_for, "--left-over": options.left_over, "--dry-run": options.dry_run}
    given = [flag for flag, value in of_prune.items() if value]
    if options.keys[:1] == ["prune"]:
        prune_command(options, root, options.keys[1:])
        return
    if given:
        raise UsageError(f"{given[0]} goes with `longsumbench cache prune`")
    if root.is_dir():
        check_layout(root)
    there = cache.stages_in(root)
    if options.keys[:1] == ["verify"]:
        print(cache.verify(cache.chosen(there, options.kind, options.keys[1:])))
        return
    wanted = cache.chosen(there, options.kind, options.keys)
    one_by_one = options.all or options.keys
    print_text(cache.listing(root, wanted, there) if one_by_one else cache.overview(root, wanted))


def prune_command(options: argparse.Namespace, root: Path, keys: Sequence[str]) -> None:
    """`longsumbench cache prune`."""
    from longsumbench.cache import prune as cache

    asked = {"KEY": keys, "--all": options.all, "--left-over": options.left_over, "--unused-for": options.unused_for}
    if len(together := [name for name, value in asked.items() if value]) > 1:
        raise UsageError(f"{' and '.join(together)} do not go together: each says what to delete")
    unused_for = cache.UNUSED_FOR if options.unused_for is None else cache.seconds_of(options.unused_for)
    pruning = cache.Pruning(options.dry_run)
    try:
        cache.prune(root, pruning, options.kind, keys, unused_for, options.left_over, options.all)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"{pruning.told()}; the same command deletes the rest") from None
    print_text(pruning.told())


def repro_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench repro`."""
    from longsumbench.analysis.runs.reproduce import page, reproduce, write
    from longsumbench.files import writable
    from longsumbench.runs.record import Results

    found = reproduce(options.run, Results(Path(options.results_dir).expanduser()))
    folder = writable(Path(options.output).expanduser(), "--output") if options.output else None
    print_text(page(found))
    if folder is not None:
        print_text("", *write(found, folder))
    if options.check:
        from longsumbench.analysis.runs.repeat import check

        try:
            print_text("", check(found))
        except KeyboardInterrupt:
            raise KeyboardInterrupt("the run is as it was; the same command repeats it anew") from None


def list_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench list`."""
    from longsumbench import catalogue

    if options.model and options.what != "settings":
        raise UsageError(f"'{options.model}' is one word too many: longsumbench list {options.what}")
    print_text(catalogue.settings(options.model) if options.what == "settings" else catalogue.names(options.what))


COMMANDS: dict[str, Callable[[argparse.Namespace, Sequence[str]], None]] = {
    "run": run_by_the_first,
    "leaderboard": leaderboard_command,
    "status": status_command,
    "summarize": summarize_command,
    "score": score_command,
    "compare": compare_command,
    "inspect": inspect_command,
    "stats": stats_command,
    "analyze": analyze_command,
    "cache": cache_command,
    "repro": repro_command,
    "list": list_command,
}


if __name__ == "__main__":
    sys.exit(main())
