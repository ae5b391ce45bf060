"""What may be typed behind `longsumbench`. Only argparse at import, so that help is there at once."""

import argparse
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from longsumbench import __version__, help_texts
from longsumbench.errors import UsageError, did_you_mean

FREE_WORDS = ("overrides", "inputs", "texts", "runs", "keys")  # of the commands that take any number of words
# What settings begin with: groups, sections and those of the top level. A test compares it with `planning`.
SETTINGS = (
    *("model", "dataset", "scale", "train", "decode", "score", "experiment"),
    *("seed", "device", "results_dir", "overwrite", "baselines", "timeout_minutes"),
)
VERBOSE = ("-v", "--verbose")  # before or after a command's name; `main` takes them away
KINDS = ("models", "datasets", "scales", "experiments", "metrics", "rankers", "settings")
ANALYSES = ("locality", "fusion", "coherence")


class Parser(argparse.ArgumentParser):
    """As ArgumentParser, except: wrong usage is an error like any other, in one line."""

    def __init__(self, prog: str, **about: Any) -> None:
        raw = argparse.RawDescriptionHelpFormatter
        super().__init__(prog, **about, epilog=help_texts.EXIT_CODES, formatter_class=raw, allow_abbrev=False)

    def flags(self) -> list[str]:
        """Return the flags that it knows ("--show")."""
        return [flag for flag in self._option_string_actions if flag.startswith("--")]

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


class About(NamedTuple):
    """A command: a line about it, its help, and what adds its arguments."""

    line: str
    description: str
    add_arguments: Callable[[Parser], None]


def read(words: Sequence[str]) -> argparse.Namespace:
    """Parse the words of a command line; overrides may stand on either side of a flag.

    Returns: the command's arguments, and its name as `command`.

    Raises:
        UsageError: no command, or a word that is neither a flag of the command nor an override.
    """
    options, extra = parser().parse_known_args(words or ["--help"])
    for word in extra:
        if word.startswith("-") and word != "-":
            raise unknown_flag(word, words, options)
        if not any(hasattr(options, name) for name in FREE_WORDS):
            raise UsageError(f"unknown argument '{word}' (see {options.parser.prog} --help)")
    for name in FREE_WORDS:
        if hasattr(options, name):
            setattr(options, name, [*getattr(options, name), *extra])  # argparse takes those before the first flag only
            check_numbers(getattr(options, name))
    return options


def check_numbers(words: Sequence[str]) -> None:
    """Check that no word holds a number that is too long for Python to read.

    Raises:
        UsageError: one does.
    """
    if long := next((word for word in words if re.search(r"\d{4000}", word)), None):
        raise UsageError(f"'{long[:40]}…' holds a number of more than 4,000 digits")


def unknown_flag(word: str, words: Sequence[str], options: argparse.Namespace) -> UsageError:
    """Return the error for a flag that the command does not have; a setting's name with dashes becomes key=value."""
    flag, _, value = word.partition("=")
    setting, own = flag.lstrip("-").replace("-", "_"), options.parser
    if setting.partition(".")[0] in SETTINGS and (hasattr(options, "overrides") or hasattr(options, "inputs")):
        behind = [one for one in words[words.index(word) + 1 :][:1] if not one.startswith("-") and "=" not in one]
        return UsageError(f"'{flag}' is no flag: write {setting}={value or ''.join(behind) or 'VALUE'}")
    return UsageError(f"unknown flag '{flag}'{did_you_mean(flag, own.flags())} (see {own.prog} --help)")


def parser() -> Parser:
    """Build the parser of all commands."""
    top = Parser("longsumbench", description=help_texts.DESCRIPTION)
    top.add_argument("--version", action="version", version=f"longsumbench {__version__}")
    add_verbose(top)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name, (about, description, add_arguments) in all_commands().items():
        command = commands.add_parser(name, help=about, description=description)
        command.set_defaults(parser=command)
        add_arguments(command)
        add_verbose(command)
    return top


def all_commands() -> dict[str, About]:
    """Return the commands in the order in which help lists them."""
    scales = "|".join(sorted(path.stem for path in (Path(__file__).parent / "conf" / "scale").glob("*.yaml")))
    return {
        "run": About("run a point or a sweep", help_texts.RUN.format(scales=scales), run_arguments),
        "leaderboard": About("rebuild and print tables from results/", help_texts.LEADERBOARD, leaderboard_arguments),
        "status": About("show what a sweep is at", help_texts.STATUS, status_arguments),
        "summarize": About("summarize files of your own", help_texts.SUMMARIZE, summarize_arguments),
        "score": About("score outputs of any system", help_texts.SCORE, score_arguments),
        "compare": About("compare finished runs", help_texts.COMPARE, compare_arguments),
        "inspect": About("show what a system looked at", help_texts.INSPECT, inspect_arguments),
        "stats": About("print what a dataset is like", help_texts.STATS, stats_arguments),
        "analyze": About("analyze texts, and what runs made of them", help_texts.ANALYZE, analyze_arguments),
        "cache": About("show what is kept between runs, verify it, or delete of it", help_texts.CACHE, cache_arguments),
        "repro": About("repeat a finished run", help_texts.REPRO, repro_arguments),
        "list": About("list what can be named", help_texts.LIST, list_arguments),
    }


def run_arguments(command: Parser) -> None:
    """Add those of `longsumbench run`."""
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="what departs from the defaults")
    command.add_argument("-m", "--multirun", action="store_true", help="sweep over comma-separated values")
    command.add_argument("--config-dir", metavar="FOLDER", help="a folder with more YAML files (model/, dataset/, …)")
    command.add_argument("--show", action="store_true", help="print the resolved configuration and stop")


def leaderboard_arguments(command: Parser) -> None:
    """Add those of `longsumbench leaderboard`."""
    command.add_argument("dataset", nargs="?", help="one dataset; all of them when left out")
    command.add_argument("--latex", action="store_true", help="print LaTeX (booktabs) instead")
    command.add_argument("--ledger", action="store_true", help="print what was not read, learned or finished instead")
    command.add_argument("--measure", default="f1", help="of ROUGE: f1 (default), precision or recall")
    command.add_argument(
        "--against", action="append", default=[], metavar="SETTING", help="also draw scores against a setting, or two"
    )
    command.add_argument("--kind", metavar="NAME", help="what --against draws, as rouge2 (default: what ranks runs)")
    add_results_dir(command)


def status_arguments(command: Parser) -> None:
    """Add those of `longsumbench status`."""
    command.add_argument(
        "sweep", nargs="?", metavar="SWEEP", help="its id, or the beginning of it (default: what runs)"
    )
    command.add_argument("--watch", nargs="?", type=float, const=5.0, metavar="SECONDS", help="again and again")
    add_results_dir(command)


def summarize_arguments(command: Parser) -> None:
    """Add those of `longsumbench summarize`."""
    command.add_argument("checkpoint", metavar="CHECKPOINT", help="a checkpoint's folder, a run's, or a run's id")
    command.add_argument("inputs", nargs="*", metavar="FILE", help="files, and settings as KEY=VALUE")
    command.add_argument("--together", action="store_true", help="take all files as one text of several documents")
    command.add_argument("--query", metavar="TEXT", help="the question that the summaries shall answer")
    command.add_argument("--json", action="store_true", help="print an object a line, with evidence")
    add_results_dir(command)


def score_arguments(command: Parser) -> None:
    """Add those of `longsumbench score`."""
    command.add_argument("texts", nargs="*", metavar="FILE", help="PREDICTIONS, then REFERENCES where they stand apart")
    command.add_argument("--mode", default="google", help="google (as rouge_score; default) or perl (as ROUGE-1.5.5)")
    command.add_argument("--stem", action=argparse.BooleanOptionalAction, default=True, help="reduce words to stems")
    command.add_argument("--wordnet", metavar="FOLDER", help="perl mode: WordNet's exception lists; none: without them")
    command.add_argument("--tokenizer", default="default", help="default (a-z, 0-9) or unicode (all scripts' letters)")
    command.add_argument("--per-example", metavar="FILE.csv", help="write a row an example: id, rouge1_p, ... 0-1")
    command.add_argument("--json", action="store_true", help="print one object instead of the table")
    command.add_argument("--intersect", action="store_true", help="leave out the ids that only one side has")
    command.add_argument(
        "--empty-references", default="skip", help="references without a word: skip (default), or zero: scored 0"
    )
    command.add_argument("--resamples", type=int, default=1_000, metavar="N", help="of the bootstrap (default: 1000)")
    command.add_argument("--resampling", default="percentile", help="percentile (default), or perl: ROUGE-1.5.5's own")
    add_results_dir(command)


def compare_arguments(command: Parser) -> None:
    """Add those of `longsumbench compare`."""
    command.add_argument("runs", nargs="*", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("--all-pairs", action="store_true", help="each run with each, not only with the first")
    command.add_argument("--intersect", action="store_true", help="compare the examples that all runs have")
    command.add_argument(
        "--examples", type=int, default=10, metavar="N", help="show the N that gained most and the N that lost most"
    )
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: comparisons/IDS in the results)")
    add_results_dir(command)


def inspect_arguments(command: Parser) -> None:
    """Add those of `longsumbench inspect`."""
    command.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("example", metavar="EXAMPLE", help="an example's id, or its place in its split, from 0")
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: inspections/ID in results)")
    add_results_dir(command)


def stats_arguments(command: Parser) -> None:
    """Add those of `longsumbench stats`."""
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="the dataset, and what is asked of it")
    command.add_argument("--csv", metavar="FILE", help="also write all numbers, a row each")
    command.add_argument("--output", metavar="FOLDER", help="write stats.csv, stats.md and stats.html there")


def analyze_arguments(command: Parser) -> None:
    """Add those of `longsumbench analyze`."""
    command.add_argument("what", metavar="ANALYSIS", choices=ANALYSES, help=", ".join(ANALYSES))
    command.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="the dataset, and what is asked of it")
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: analysis/DATASET in the results)")
    add_results_dir(command)


def cache_arguments(command: Parser) -> None:
    """Add those of `longsumbench cache`."""
    command.add_argument("keys", nargs="*", metavar="[verify|prune] [KEY]", help="the beginnings of stages' keys")
    command.add_argument("--all", action="store_true", help="every stage in a row of its own; with prune: delete all")
    command.add_argument("--kind", nargs="+", default=[], metavar="NAME", help="only these kinds of stages")
    command.add_argument("--unused-for", metavar="TIME", help="of prune: 30d (default), 12h, 2w")
    command.add_argument("--left-over", action="store_true", help="of prune: only what killed processes began, at once")
    command.add_argument("--dry-run", action="store_true", help="of prune: say what would be deleted")


def repro_arguments(command: Parser) -> None:
    """Add those of `longsumbench repro`."""
    command.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("--check", action="store_true", help="repeat it now, and compare what is written")
    command.add_argument("--output", metavar="FOLDER", help="also write repro.sh there, and what it needs")
    add_results_dir(command)


def list_arguments(command: Parser) -> None:
    """Add those of `longsumbench list`."""
    command.add_argument("what", metavar="KIND", choices=KINDS, help=", ".join(KINDS))
    command.add_argument("model", nargs="?", help="with settings: those of this model too")


def add_verbose(command: Parser) -> None:
    """Add the flag of all commands, so that help shows it."""
    command.add_argument(*VERBOSE, action="store_true", default=argparse.SUPPRESS, help="show an error's traceback")


def add_results_dir(command: Parser) -> None:
    """Add the flag of all commands that read runs."""
    command.add_argument(
        "--results-dir", default="results", metavar="FOLDER", help="where the runs are (default: results)"
    )
