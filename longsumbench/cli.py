"""The command line. Only argparse at import; what a command needs is imported inside it."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from longsumbench import __version__
from longsumbench.errors import INTERRUPTED, PointsFailed, UsageError, as_suite_error, did_you_mean

if TYPE_CHECKING:
    from longsumbench.launch import Launch

Command = Callable[[argparse.Namespace, Sequence[str]], None]

DESCRIPTION = """\
Compare long-input summarizers on the same documents, with the same ROUGE, under the same budget.

  longsumbench run                              train a tiny system on built-in text, print the table (minutes)
  longsumbench run model=lead dataset=pubmed dataset.path=FOLDER
  longsumbench run -m model=lead,random,oracle,trunc model.input_length=64,256 seed=1,2
  longsumbench leaderboard pydoc                print a table again
  longsumbench summarize RUN paper.md           summarize a file of your own
  longsumbench score out.jsonl test.jsonl       the ROUGE of any system's outputs
  longsumbench compare RUN RUN                  whether two runs differ, and on which examples
  longsumbench inspect RUN 0                    what a system looked at while it wrote a summary
  longsumbench stats dataset=pydoc rank=tfidf   how much of the summaries the best paragraphs say
  longsumbench list models                      what can be named
"""

RUN = """\
Run one point, or with -m every combination of the comma-separated values.

groups:    model=NAME  dataset=NAME  scale={scales}       (longsumbench list models|datasets|scales)
           experiment=NAME, settings that go together                                    (longsumbench list experiments)
settings:  model.*  dataset.*  train.*  decode.*  score.*                         (longsumbench list settings [MODEL])
top level: seed=1  device=auto|cpu|cuda  results_dir=results  overwrite=false  baselines=true

  longsumbench run model=trunc model.input_length=512 train.max_minutes=8
  longsumbench run dataset=jsonl dataset.path=my_texts scale=tiny
  longsumbench run -m seed=1,2,3 --show         what would be run, without running it
  longsumbench run -m experiment=etads-table5 dataset=cnn_dailymail      points that an experiment names itself

Running the same command again continues it: what is finished is skipped, what was broken off is resumed.
In a sweep, all points are checked before the first one runs; one that fails later leaves the others untouched,
and points that differ in nothing their system depends on are done once. An experiment may name a sweep of its own
(`sweep:` in its file), which is combined with the values typed.
Lead, Random and Oracle are scored beside the first run on a dataset (baselines=false: not).
A value with a comma, a bracket or a blank in it is quoted twice: "dataset.path='my texts'". Lists are typed as they
are: "model.focus_layers=[1,2]", and to sweep over "model.focus_layers=[],[1,2]".
"""

LEADERBOARD = """\
Rebuild the tables of finished runs, and print them.

  longsumbench leaderboard                      every dataset with results
  longsumbench leaderboard pydoc --latex        one of them, for a paper
  longsumbench leaderboard pydoc --measure recall          by ROUGE's recall, or precision, instead of F1

results/leaderboard/ holds each table as .csv (all columns), .md and .tex, by F1 whatever is printed, and where planted
facts were looked for, a picture of what the systems found.
"""

SUMMARIZE = """\
Summarize files of your own with a system that was fitted before.

  longsumbench summarize 85f3139c paper.md                   by a run's id, or its beginning
  longsumbench summarize my_checkpoint one.txt two.txt       by a checkpoint's folder, or a run's
  longsumbench summarize 85f3139c a.txt b.txt --together     one summary of several documents
  longsumbench summarize 85f3139c texts.jsonl --json decode.num_beams=4 device=cpu > summaries.jsonl
  pdftotext paper.pdf - | longsumbench summarize 85f3139c -

files:     .txt or no ending (blank lines separate paragraphs), .md (headings name sections), .jsonl[.gz] (see
           docs/jsonl.md; summaries are not needed), - for text from standard input
settings:  decode.*  device=auto|cpu|cuda  seed=1                                 (longsumbench list settings)

A run's own decode settings are used, where it is named by run. What was not read is told on stderr.
--json prints an object a line: id, summary, complete, tokens, truncation, evidence (what the system looked at:
arrays with the names of their axes, and the texts of its units; null for a system that keeps none).
"""

SCORE = """\
Compute the ROUGE of any system's outputs.

  longsumbench score out.jsonl test.jsonl       {"id", "prediction"} and {"id", "references": [...]}, matched by id
  longsumbench score both.jsonl                 prediction and references in the same row
  longsumbench score out.txt references.txt     one a line: line n of one belongs to line n of the other
  longsumbench score decoded gold               folders: NAME.dec and NAME.ref (or NAME.A.ref, …), a sentence a line
  longsumbench score out.jsonl test.jsonl --mode perl --no-stem --per-example scores.csv

A text is running text or a list of sentences. Lists are scored as they are; running text is split at its line breaks
and by the suite's splitter, on both sides alike; the signature says which. All formats, and what the warnings mean:
docs/score.md. Files may be packed (.gz).
"""

COMPARE = """\
Compare finished runs, example by example; the first one is the baseline.

  longsumbench compare 85f3139c 36e2dc94                  runs by their ids, or the beginnings of these
  longsumbench compare 85f3139c 36e2 c6f0 --all-pairs     each with each, corrected together
  longsumbench compare 85f3139c results/runs/pydoc/lead/c6f0ec26c16b --output lead_or_not --examples 30

Of every measure: both means, their difference with its 95 % interval, p by approximate randomization, p corrected for
the whole table (Holm), and the smallest difference that could have been seen. Runs must have been scored in the same
way on the same texts; where they have different examples, --intersect compares those in common.
The table is printed, and written as .csv, .md and .html; the two latter show the examples that moved most, with both
outputs. The page needs nothing beside itself.
"""

INSPECT = """\
Show what a system looked at while it wrote one summary of a finished run.

  longsumbench inspect 85f3139c 0                         the first example of the run's split
  longsumbench inspect 85f3139c journal.pone.0163477      an example by its id
  longsumbench inspect results/runs/pydoc/seal/9ebc3b974286 3 --output figures

Written are <place>.html, a page that needs nothing beside itself, and <place>.png, the same for a paper. What they show
follows from the evidence that the run has kept: how much each unit of the source weighed at each step of the summary,
which units were selected for each of its segments, and any other array as a heat map; the units' texts stand beside.
A run keeps evidence of its first 20 examples; the same `run` command with decode.evidence=all adds that of the others.
What the views mean: docs/inspect.md.
"""

STATS = """\
Print what a dataset is like: how much of its references the best paragraphs say, ranked one way or another.

  longsumbench stats rank=tfidf                                   on the built-in text
  longsumbench stats dataset=wiki_sections dataset.path=FOLDER rank=tfidf,lexrank,lstm
  longsumbench stats dataset=multi_news dataset.split=validation rank=lstm ranker.steps=2000 --csv recall.csv
  longsumbench stats dataset=probe unit=section rank=lexrank      sections instead of paragraphs

The best 5, 10, 20 and 40 paragraphs of every example are joined in the ranker's order and scored against its first
reference by ROUGE-L recall (0-100); "in order" are the first ones of the text (Hierarchical Transformer, Table 1).
A ranker that learns (lstm) is trained on the training split, once for the same texts and settings; what is finished is
kept in the cache, and a training that was broken off continues.

settings:  dataset=NAME  dataset.*  rank=NAME[,NAME...]  unit=paragraph|section  seed=1  device=auto|cpu|cuda
           ranker.{dimension,steps,batch_size,vocabulary_size}       (longsumbench list rankers|datasets; docs/stats.md)

Nothing is written but with --csv.
"""

LIST = """\
Print what can be named on the command line, with a line about each.

  longsumbench list models                      also those that other installed packages add
  longsumbench list settings trunc              every setting, its default and what it means
"""

EXIT_CODES = """\
exit codes: 0 done, 1 some points failed, 2 wrong usage or configuration, 3 bad data,
4 environment (network, disk, memory), 130 interrupted
"""

FLAGS = (
    "--multirun",
    "--config-dir",
    "--show",
    "--latex",
    "--measure",
    "--results-dir",
    "--together",
    "--json",
    "--mode",
    "--stem",
    "--no-stem",
    "--wordnet",
    "--tokenizer",
    "--per-example",
    "--intersect",
    "--resamples",
    "--resampling",
    "--all-pairs",
    "--examples",
    "--output",
    "--csv",
    "--help",
    "--version",
)
FREE_WORDS = ("overrides", "inputs", "texts", "runs")  # of the commands that take any number of words


class Parser(argparse.ArgumentParser):
    """As ArgumentParser, except: wrong usage is an error like any other, in one line."""

    def error(self, message: str) -> NoReturn:
        """Raise what argparse would print behind its usage.

        Raises:
            UsageError: always.
        """
        if choice := re.search(r"argument (\w+): invalid choice: '(.*)' \(choose from (.*)\)", message):
            what, word, choices = choice.groups()
            known = re.findall(r"[\w-]+", choices)
            message = f"unknown {what.lower()} '{word}'{did_you_mean(word, known)}; known: {', '.join(known)}"
        raise UsageError(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    top = Parser("longsumbench", description=DESCRIPTION, epilog=EXIT_CODES, formatter_class=raw, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"longsumbench {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, about: str, description: str, function: Command) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name, help=about, description=description, epilog=EXIT_CODES, formatter_class=raw, allow_abbrev=False
        )
        command.set_defaults(command=function)
        return command

    scales = "|".join(sorted(path.stem for path in (Path(__file__).parent / "conf" / "scale").glob("*.yaml")))
    run = add("run", "run a point or a sweep", RUN.format(scales=scales), run_command)
    run.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="what departs from the defaults")
    run.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values")
    run.add_argument("--config-dir", metavar="FOLDER", help="a folder with more YAML files (model/, dataset/, …)")
    run.add_argument("--show", action="store_true", help="print the resolved configuration and stop")

    table = add("leaderboard", "rebuild and print tables from results/", LEADERBOARD, leaderboard_command)
    table.add_argument("dataset", nargs="?", help="one dataset; all of them when left out")
    table.add_argument("--latex", action="store_true", help="print LaTeX (booktabs) instead")
    table.add_argument("--measure", default="f1", help="of ROUGE, that is printed: f1 (default), precision or recall")
    table.add_argument(
        "--results-dir", default="results", metavar="FOLDER", help="where the runs are (default: results)"
    )

    summarize = add("summarize", "summarize files of your own", SUMMARIZE, summarize_command)
    summarize.add_argument("checkpoint", metavar="CHECKPOINT", help="a checkpoint's folder, a run's, or a run's id")
    summarize.add_argument("inputs", nargs="*", metavar="FILE", help="files, and settings as KEY=VALUE")
    summarize.add_argument("--together", action="store_true", help="take all files as one text of several documents")
    summarize.add_argument("--json", action="store_true", help="print an object a line, with evidence")
    summarize.add_argument(
        "--results-dir", default="results", metavar="FOLDER", help="where the runs are (default: results)"
    )

    score = add("score", "score outputs of any system", SCORE, score_command)
    score.add_argument("texts", nargs="*", metavar="FILE", help="PREDICTIONS, then REFERENCES where they stand apart")
    score.add_argument("--mode", default="google", help="google (as rouge_score; default) or perl (as ROUGE-1.5.5)")
    score.add_argument("--stem", action=argparse.BooleanOptionalAction, default=True, help="reduce words to stems")
    score.add_argument("--wordnet", metavar="FOLDER", help="perl mode: WordNet's exception lists; none: without them")
    score.add_argument("--tokenizer", default="default", help="default (a-z, 0-9) or unicode (letters of every script)")
    score.add_argument("--per-example", metavar="FILE.csv", help="write a row an example: id, rouge1_p, ... 0-1")
    score.add_argument("--json", action="store_true", help="print one object instead of the table")
    score.add_argument("--intersect", action="store_true", help="leave out the ids that only one side has")
    score.add_argument("--resamples", type=int, default=1_000, metavar="N", help="of the bootstrap (default: 1000)")
    score.add_argument("--resampling", default="percentile", help="percentile (default), or perl: ROUGE-1.5.5's own")

    compare = add("compare", "compare finished runs", COMPARE, compare_command)
    compare.add_argument("runs", nargs="*", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    compare.add_argument("--all-pairs", action="store_true", help="each run with each, not only with the first")
    compare.add_argument("--intersect", action="store_true", help="compare the examples that all runs have")
    compare.add_argument(
        "--examples", type=int, default=10, metavar="N", help="show the N that gained most and the N that lost most"
    )
    compare.add_argument("--output", metavar="FOLDER", help="where to write (default: comparisons/IDS in the results)")
    compare.add_argument(
        "--results-dir", default="results", metavar="FOLDER", help="where the runs are (default: results)"
    )

    inspection = add("inspect", "show what a system looked at", INSPECT, inspect_command)
    inspection.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    inspection.add_argument("example", metavar="EXAMPLE", help="an example's id, or its place in its split, from 0")
    inspection.add_argument("--output", metavar="FOLDER", help="where to write (default: inspections/ID in results)")
    inspection.add_argument(
        "--results-dir", default="results", metavar="FOLDER", help="where the runs are (default: results)"
    )

    stats = add("stats", "print what a dataset is like", STATS, stats_command)
    stats.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="the dataset, and what is asked of it")
    stats.add_argument("--csv", metavar="FILE", help="also write the table, a row a ranker and number of paragraphs")

    known = add("list", "list what can be named", LIST, list_command)
    kinds = ("models", "datasets", "scales", "experiments", "metrics", "rankers", "settings")
    known.add_argument("what", metavar="KIND", choices=kinds, help=", ".join(kinds))
    known.add_argument("model", nargs="?", help="with settings: those of this model too")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = read(words)
        options.command(options, words)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        kept = f"{interrupt}" or "what is finished is kept, the same command continues it"
        print(f"longsumbench: interrupted; {kept}", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough: `longsumbench list settings | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        known = as_suite_error(error)
        if known is None:
            raise
        print(f"longsumbench: {known}", file=sys.stderr)
        return known.exit_code
    return 0


def read(words: Sequence[str]) -> argparse.Namespace:
    """Parse the words of a command line; overrides may stand on either side of a flag.

    Raises:
        UsageError: no command, or a word that is neither a flag of the command nor an override.
    """
    options, extra = parser().parse_known_args(words or ["--help"])
    for word in extra:
        if word.startswith("-") and word != "-":
            flag = word.partition("=")[0]
            raise UsageError(f"unknown flag '{flag}'{did_you_mean(flag, FLAGS)} (see longsumbench --help)")
        if not any(hasattr(options, name) for name in FREE_WORDS):
            raise UsageError(f"unknown argument '{word}' (see longsumbench --help)")
    for name in FREE_WORDS:
        if hasattr(options, name):
            setattr(options, name, [*getattr(options, name), *extra])  # argparse takes those before the first flag only
    return options


def run_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench run`."""
    from longsumbench.launch import Launch, plan, show

    points = plan(options.overrides, options.multirun, options.config_dir, probe=not options.show)
    if options.show:
        print(show(points))
        return
    launch = Launch(points, ("longsumbench", *words), options.multirun)
    try:
        launch.start()
    except Exception:
        show_tables(launch)  # of what was finished before
        raise
    show_tables(launch)
    if launch.failed or launch.failed_baselines:
        from tabulate import tabulate

        failed = {**launch.failed, **launch.failed_baselines}
        reasons = tabulate(failed.items(), headers=["point", "reason"], tablefmt="plain")
        beside = f" and {len(launch.failed_baselines)} baselines" if launch.failed_baselines else ""
        told = f"{len(launch.failed)} of {len(points)} points{beside} failed"
        raise PointsFailed(f"{told}, the others are kept:\n{reasons}")


def show_tables(launch: "Launch") -> None:
    """Rebuild the tables of the datasets that a launch has finished runs on, and print them."""
    from longsumbench import leaderboard
    from longsumbench.records import Results

    folders = {planned.config.results_dir for planned in launch.points}
    for folder in sorted(folders):
        results = Results(Path(folder).expanduser())
        for name in sorted({record.dataset for record in launch.finished} & set(results.datasets())):
            table = leaderboard.update(results, name)
            print(table.render())
            print(f"\n{results.root / 'leaderboard' / name}.csv, .md, .tex")
            if table.lines():
                print(results.root / "leaderboard" / leaderboard.picture(name))


def leaderboard_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench leaderboard`."""
    from longsumbench import leaderboard
    from longsumbench.configuration import allowed
    from longsumbench.errors import UnknownName
    from longsumbench.records import Results
    from longsumbench.standings import PARTS

    parts = {name.lower(): part for part, name in PARTS.items()}
    allowed("--measure", options.measure, tuple(parts))
    part = parts[options.measure]
    results = Results(Path(options.results_dir).expanduser())
    found = results.datasets()
    if not found:
        raise UsageError(f"no finished run under {results.root}: start with `longsumbench run`, or name --results-dir")
    if options.dataset and options.dataset not in found:
        raise UnknownName("dataset with results", options.dataset, found)
    for name in [options.dataset] if options.dataset else found:
        table = leaderboard.update(results, name)
        shown = table if part == table.part else leaderboard.read_table(results, name, part)
        print(shown.latex() if options.latex else shown.render(), end="\n\n")
        if table.lines() and shown is table and not options.latex:
            print(results.root / "leaderboard" / leaderboard.picture(name), end="\n\n")


def summarize_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench summarize`."""
    from longsumbench.records import Results
    from longsumbench.summarizing import summarize_files

    results = Results(Path(options.results_dir).expanduser())
    try:
        summarize_files(options.checkpoint, options.inputs, results, options.together, options.json)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the summaries that are printed are whole") from None


def score_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench score`."""
    if not 1 <= len(options.texts) <= 2:
        raise UsageError("name PREDICTIONS, and REFERENCES where they stand apart (see longsumbench score --help)")
    from longsumbench.configuration import allowed, at_least
    from longsumbench.records import writable
    from longsumbench.rouge.scorer import RougeScorer
    from longsumbench.scoring import score_files

    at_least("--resamples", options.resamples, 100)
    allowed("--resampling", options.resampling, ("percentile", "perl"))
    perl_resampling = options.resampling == "perl"
    if perl_resampling and options.mode != "perl":
        raise UsageError("--resampling perl goes with --mode perl: they are ROUGE-1.5.5's own intervals")
    table = Path(options.per_example).expanduser() if options.per_example else None
    if table is not None:
        if table.is_dir():
            raise UsageError(f"--per-example {table} is a folder: name a file")
        writable(table.parent, "--per-example")
    files = [Path(file).expanduser() for file in options.texts]
    try:
        scorer = RougeScorer(options.mode, options.stem, options.tokenizer, options.wordnet)
        report = score_files(
            files[0],
            files[1] if files[1:] else None,
            scorer,
            options.resamples,
            options.intersect,
            perl_resampling,
        )
        if table is not None:
            report.write_per_example(table)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was written") from None
    print(report.to_json() if options.json else report.render())


def compare_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench compare`."""
    from longsumbench.comparing import compare, default_folder
    from longsumbench.configuration import at_least
    from longsumbench.records import Results, writable
    from longsumbench.report.comparison import write

    at_least("--examples", options.examples, 0)
    results = Results(Path(options.results_dir).expanduser())
    try:
        comparison = compare(options.runs, results, options.examples, options.intersect, options.all_pairs)
        folder = Path(options.output).expanduser() if options.output else default_folder(results, comparison.runs)
        written = write(comparison, writable(folder, "--output"))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the runs are as they were; the same command compares them anew") from None
    print(comparison.render(), "", *written, sep="\n")


def inspect_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench inspect`."""
    from longsumbench.inspecting import default_folder, inspect
    from longsumbench.records import Results, writable
    from longsumbench.report.inspection import write

    results = Results(Path(options.results_dir).expanduser())
    try:
        inspection = inspect(options.run, options.example, results)
        folder = Path(options.output).expanduser() if options.output else default_folder(results, inspection.record)
        print(*write(inspection, writable(folder, "--output")), sep="\n")
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the run is as it was; the same command shows the example anew") from None


def stats_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench stats`."""
    from longsumbench.analysis.rank_recall import rank_recall
    from longsumbench.launch import plan_stats
    from longsumbench.records import writable

    asked = plan_stats(options.overrides)
    table = Path(options.csv).expanduser() if options.csv else None
    if table is not None:
        if table.is_dir():
            raise UsageError(f"--csv {table} is a folder: name a file")
        writable(table.parent, "--csv")
    found = rank_recall(*asked)
    if table is not None:
        found.write_csv(table)
    print(found.render())


def list_command(options: argparse.Namespace, words: Sequence[str]) -> None:
    """`longsumbench list`."""
    from longsumbench import catalogue

    if options.model and options.what != "settings":
        raise UsageError(f"'{options.model}' is one word too many: longsumbench list {options.what}")
    print(catalogue.settings(options.model) if options.what == "settings" else catalogue.names(options.what))


if __name__ == "__main__":
    sys.exit(main())
