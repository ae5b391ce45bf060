"""The command line. Each command imports its heavy libraries when it runs."""

import logging
import os
import sys
import traceback
from argparse import Namespace
from collections.abc import Iterator, Sequence
from types import MappingProxyType

from longsumbench import __version__
from longsumbench.cli.parser import Command, Parser, check_blanks
from longsumbench.core.registry import Registry
from longsumbench.errors import INTERRUPTED, BrokenPlugin, PointsFailed, UsageError, did_you_mean
from longsumbench.formatting import escape_line, escape_lines, redact
from longsumbench.interrupts import sigterm_as_interrupt
from longsumbench.progress import log_level

_log = logging.getLogger(__name__)
# In the order of the help: run, look at results, work with outputs, with texts, with other people; then plug-ins
commands = Registry(
    "command",
    "longsumbench.commands",
    MappingProxyType(
        {
            "run": "longsumbench.cli.run:run_command",
            "recommend": "longsumbench.cli.texts:recommend_command",
            "leaderboard": "longsumbench.cli.leaderboard:leaderboard_command",
            "site": "longsumbench.cli.site:site_command",
            "status": "longsumbench.cli.lists:status_command",
            "summarize": "longsumbench.cli.outputs:summarize_command",
            "score": "longsumbench.cli.outputs:score_command",
            "import": "longsumbench.cli.outputs:import_command",
            "compare": "longsumbench.cli.finished_runs:compare_command",
            "agreement": "longsumbench.cli.outputs:agreement_command",
            "inspect": "longsumbench.cli.finished_runs:inspect_command",
            "stats": "longsumbench.cli.texts:stats_command",
            "runs": "longsumbench.cli.finished_runs:runs_command",
            "merge": "longsumbench.cli.exchange:merge_command",
            "verify": "longsumbench.cli.exchange:verify_command",
            "export": "longsumbench.cli.exchange:export_command",
            "push": "longsumbench.cli.exchange:push_command",
            "cache": "longsumbench.cli.lists:cache_command",
            "list": "longsumbench.cli.lists:list_command",
            "completion": "longsumbench.cli.completion:completion_command",
        }
    ),
)
# Arguments that take any number of words, also after flags
_FREE_WORDS = ("overrides", "inputs", "texts", "runs", "words", "filters")
# Flags before or after a command
_LEVELS = {"-q": "WARNING", "--quiet": "WARNING", "-v": "DEBUG", "--verbose": "DEBUG"}
# Words of removed commands and flags → what to do instead
_REMOVED = {
    "dataset": "write dataset.name=NAME dataset.path=PATH (docs/get-started/own-texts.md)",
    "cache --all": "write --unused-for 0s",
}
_OVERVIEW = """\
Compare long-input summarizers on the same documents, with the same ROUGE, under the same budget.

  longsumbench run                              compare tiny systems, in minutes
  longsumbench run model=lead dataset=pubmed dataset.path=FOLDER
  longsumbench run -m model=lead,random,trunc seed=1,2
  longsumbench recommend my_texts               which system suits your texts?
  longsumbench status                           show the progress of a sweep
  longsumbench leaderboard aclsum                print a table again
  longsumbench site                             look at all results in the browser
  longsumbench summarize RUN paper.md           summarize your own file
  longsumbench score out.jsonl test.jsonl       ROUGE of any system's outputs
  longsumbench import out.jsonl --model theirs --dataset pubmed
  longsumbench compare RUN RUN                  test whether two runs differ
  longsumbench inspect RUN 0                    show what a system looked at
  longsumbench stats dataset=aclsum              print statistics of a dataset
  longsumbench analyze fusion dataset=aclsum     distance of joined sentences
  longsumbench export --format eee              results for other tools
  longsumbench push RUN me/my-model             share a trained system on the hub
  longsumbench list models                      list the available models
  longsumbench list runs                        list the runs, the newest first
  longsumbench runs pack                        finished runs in one file a dataset
  longsumbench merge theirs ours                several results folders in one
  longsumbench verify RUN                       compute a run's scores again from its outputs
  longsumbench completion bash                  let the shell complete words
"""


@sigterm_as_interrupt()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks, by the code of `longsumbench completion`
        import argcomplete

        argcomplete.autocomplete(parser(), always_complete_options=False)
    # Flags of the level of messages may be anywhere; records do not store them.
    argv = list(sys.argv[1:] if arguments is None else arguments)
    words = [word for word in argv if word not in _LEVELS]
    level = next((_LEVELS[word] for word in reversed(argv) if word in _LEVELS), None)
    outcome = "the same command starts again"
    try:
        with log_level(level):
            options = parse_words(words)
            outcome = options.interrupted
            options.execute(options)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        print(
            escape_line(f"longsumbench: interrupted; {f'{interrupt}' or outcome}"), file=sys.stderr
        )
        return INTERRUPTED
    except BrokenPipeError:
        # As in `longsumbench list settings | head`: the rest is not written, without an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        return _show_problem(error, verbose=level == "DEBUG")
    return 0


def _show_problem(error: Exception, verbose: bool) -> int:
    """Print an error in one line, after its traceback if `verbose`; return the exit code."""
    # Imported here: a command that ends well needs no report.
    from longsumbench.runs.bug_report import as_reported_error

    problem = as_reported_error(error)
    if verbose:
        print(escape_lines(redact("".join(traceback.format_exception(error)))), file=sys.stderr)
    # PointsFailed contains a table.
    escaped = escape_lines if isinstance(problem, PointsFailed) else escape_line
    print(escaped(f"longsumbench: {problem}"), file=sys.stderr)
    return problem.exit_code


def parse_words(words: Sequence[str]) -> Namespace:
    """Parse the words of a command line; overrides may precede or follow flags.

    Returns: the arguments of the command; its name is `command`.

    Raises:
        UsageError: the command is missing, or a word is neither a flag of the command nor an override.
    """
    for removed, advice in _REMOVED.items():
        command, *flags = removed.split()
        if words[:1] == [command] and {*flags} <= {*words}:
            raise UsageError(f"longsumbench {removed} was removed: {advice}")
    # Blanks first: argparse would complain about another word.
    check_blanks(words)
    options, extra = parser().parse_known_args(words or ["--help"])
    free_words = [name for name in _FREE_WORDS if name in options]
    for word in extra:
        if word.startswith("-") and word != "-":
            raise _unknown_flag(word, options)
        if not free_words:
            raise UsageError(f"unknown argument '{word}' (see {options.parser.prog} --help)")
    for name in free_words:
        # argparse stops at the first flag
        vars(options)[name] = [*vars(options)[name], *extra]
    options.command_line = ("longsumbench", *words)
    return options


def _unknown_flag(word: str, options: Namespace) -> UsageError:
    command, flag = options.parser, word.partition("=")[0]
    suggestion = did_you_mean(flag, command.flags())
    settings = "; settings have no dashes: KEY=VALUE" if "overrides" in options else ""
    return UsageError(f"unknown flag '{flag}'{suggestion}{settings} (see {command.prog} --help)")


def _load_commands() -> Iterator[Command]:
    """Yield the commands; warn of those of plug-ins that cannot be imported."""
    for name in commands.targets():
        try:
            yield commands.load(name)
        except BrokenPlugin as problem:
            _log.warning(problem)


def parser() -> Parser:
    """Build the parser of all commands."""
    top = Parser("longsumbench", description=_OVERVIEW)
    top.add_argument("--version", action="version", version=f"longsumbench {__version__}")
    subparsers = top.add_subparsers(
        title="commands", metavar="COMMAND", dest="command", required=True
    )
    for entry in _load_commands():
        command = subparsers.add_parser(
            entry.name, help=entry.summary, description=entry.description
        )
        command.set_defaults(parser=command, execute=entry.execute, interrupted=entry.interrupted)
        for argument in entry.arguments:
            command.add_argument(*argument.names, **argument.settings)
    return top
