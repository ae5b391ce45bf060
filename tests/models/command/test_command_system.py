"""`model=command` and `model=function` about single examples: what a program gets, and how it can fail."""

import json
import os
import re
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.processes import is_alive
from support.toys import build_tiny, example
from support.waiting import wait_until

from longsumbench.core import Decoding, Document, Example, Section
from longsumbench.core.callables import register_function
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.models.command.system import plain_text

STOP, EMPTY = Decoding(failed="stop"), Decoding(failed="empty")
QUERY = 'it\'s "x"; rm -rf $(HOME) `id` {file} \n--help &'
PAPER = Example(
    "paper",
    "Long texts",
    QUERY,
    (Document(None, (Section("Methods", (("We read.", "We cut."), ("Then…",))),)),),
    (("The answer.",),),
    highlights=("We cut.",),
)


def written(command: str, about: Example = PAPER, **settings: Any) -> str:
    """Return what a command writes about an example."""
    system = build_tiny("command", command=command, **settings)
    (summary,) = system.summarize([about], STOP)
    return str(summary.text)


def python(code: str, *words: str) -> str:
    """Return a command that runs some code without quotes in a separate interpreter."""
    return f"'{sys.executable}' -c \"{code}\" {' '.join(words)}"


def test_a_program_gets_the_text_as_it_is_laid_out() -> None:
    """Title, headings and paragraphs, from a file or standard input; no word of what people wrote about it."""
    text = "Long texts\n\nMethods\n\nWe read. We cut.\n\nThen…"
    assert plain_text(PAPER) == text + "\n"
    assert written("cat") == written("cat {file}") == text
    assert written("cp {file} {output}") == text


def test_a_program_gets_json() -> None:
    """JSON has the example as datasets give it, without references and highlights."""
    expected = PAPER.to_dict()
    del expected["references"], expected["highlights"]
    assert json.loads(written("cat", input="json")) == json.loads(json.dumps(expected))
    assert written("basename {file}", input="json") == "text.json"


def test_foreign_programs_write_summaries() -> None:
    """A line of a shell, a script of Perl or awk, and Python in another interpreter read the same text."""
    assert written("sh -c 'head -n 1 \"$1\" | tr a-z A-Z' sh {file}") == "LONG TEXTS"
    assert written("awk 'END {print NR, \"lines\"}'") == "7 lines"
    code = "import sys; print(len(sys.stdin.read().split()), sys.argv[1])"
    assert written(python(code, "{words}"), length="12") == "8 12"


@pytest.mark.parametrize("placing", ["{query}", "--query={query}"])
def test_a_query_adds_no_words(placing: str) -> None:
    """Whatever a query says, it is one word of the program, letter for letter; placeholders in it stay."""
    code = "import sys; print(repr(sys.argv[1:]))"
    words = written(python(code, "a", placing, "z"))
    assert words == repr(["a", placing.replace("{query}", QUERY), "z"])


FAILING = {
    "hangs": ("sleep 60", r"was not done after 0\.5 seconds \(model\.timeout_seconds\)"),
    "waits for a child": ("sh -c 'sleep 60 & wait'", "was not done after"),
    "floods": ("yes", r"wrote more than 1,000 bytes \(model\.output_limit\)"),
    "floods standard error": ("sh -c 'yes >&2'", "wrote more than 1,000 bytes"),
    "floods its file": ("sh -c 'seq 1000 >\"$1\"' sh {output}", "wrote more than 1,000 bytes"),
    "writes nothing": ("true", "wrote nothing to its standard output"),
    "writes blanks": ("echo", "wrote nothing"),
    "writes no text": (r"printf 'a\377'", "wrote bytes that are not UTF-8"),
    "writes NUL": (r"printf 'a\000b'", "wrote binary data"),
    "wants a terminal": ("sh -c 'cat </dev/tty'", "ended with exit code .*: .*/dev/tty"),
    "fails": (
        "sh -c 'echo a >&2; echo no memory >&2; exit 3'",
        "ended with exit code 3: no memory$",
    ),
    "dies": ("sh -c 'kill -SEGV $$'", r"was ended by signal 11 \(Segmentation fault\)"),
    "leaves its file out": ("echo {output}", r"wrote no file \{output\}"),
    "makes a folder": ("mkdir {output}", r"wrote no file \{output\}"),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_failing_program_costs_one_example(kind: str) -> None:
    """What went wrong is one line, with the last line of standard error; it is counted, with its seconds."""
    command, problem = FAILING[kind]
    limits: dict[str, Any] = {"timeout_seconds": 0.5, "output_limit": 1_000}
    with pytest.raises(EnvironmentProblem, match=r"^no answer about 1 example, 'paper' ") as caught:
        written(command, **limits)
    message = str(caught.value).partition("; decode.failed=empty")[0]
    assert re.search(problem, message), message
    assert "\n" not in message
    (summary,) = build_tiny("command", command=command, **limits).summarize([PAPER], EMPTY)
    assert (summary.text, summary.counts["failed"]) == ("", 1)
    assert summary.counts["seconds"] < 30


def test_nothing_that_a_program_started_remains() -> None:
    """A child that keeps the output open neither delays the summary nor outlives it."""
    started = time.monotonic()
    child = int(written("sh -c 'sleep 600 & echo $!'"))
    assert time.monotonic() - started < 60
    wait_until(lambda: not is_alive(child))


def test_summaries_keep_their_order() -> None:
    """Programs at once end in any order; their summaries have the order of the examples, and failures their places."""
    code = "import sys, time; n = int(sys.argv[1]); time.sleep((5 - n) / 20); print(10 // n)"
    examples = [replace(example(n), query=str(n)) for n in (1, 2, 0, 4, 5)]
    system = build_tiny("command", command=python(code, "{query}"), parallel=5)
    summaries = list(system.summarize(examples, EMPTY))
    assert [summary.text for summary in summaries] == ["10", "5", "", "2", "2"]
    with pytest.raises(EnvironmentProblem, match=r"'toy-0' .* ZeroDivisionError"):
        list(system.summarize(examples, STOP))


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (" ", "model.command is missing"),
        ("cat {fil}", "{fil} (did you mean 'file'?)"),
        ("cat 'x", "No closing quotation"),
        ("no-such-program {file}", "there is no program 'no-such-program'"),
        ("sh -c 'grep {query}'", "where it could become code"),
    ],
)
def test_a_command_is_checked_before_it_runs(command: str, problem: str) -> None:
    """A program or a placeholder that does not exist is one line; so is a query within code."""
    with pytest.raises((UsageError, EnvironmentProblem), match=re.escape(problem)):
        build_tiny("command", command=command).config.identity()
    with pytest.raises(UsageError, match="example 'toy-1' has no query"):
        build_tiny("command", command="cat {query}").check_examples([PAPER, example(1)])


def test_braces_of_other_languages_stay() -> None:
    """Doubled braces and variables with a dollar sign are no placeholders."""
    assert written("printf %s {{word}} ${name} {1,2}") == "{{word}}${name}{1,2}"


def test_what_runs_identifies_a_program(tmp_path: Path) -> None:
    """Another script behind the same words, or another printed version, is another system."""
    script = tmp_path / "tool.sh"
    script.write_text("cat")
    (tmp_path / "version").write_text("1.0\n")
    settings = {"command": f"sh {script}", "version_command": f"cat {tmp_path / 'version'}"}
    first = build_tiny("command", **settings).config.identity()
    assert first["program_version"] == "1.0"
    assert set(first["program_files"]) == {"sh", str(script)}
    script.write_text("tac")
    second = build_tiny("command", **settings).config.identity()
    assert first["program_files"]["sh"] == second["program_files"]["sh"]
    assert first != second
    with pytest.raises(EnvironmentProblem, match=r"model\.version_command: 'false' ended with"):
        build_tiny("command", command="cat", version_command="false").config.identity()


def summarized(function: Any) -> str:
    """Return what a function writes about an example."""
    system = build_tiny("function", function=register_function(function))
    (summary,) = system.summarize([PAPER], STOP)
    return str(summary.text)


class Shorter:
    """An object that summarizes."""

    def __init__(self, words: int) -> None:
        self.words = words

    def __call__(self, text: str) -> str:
        """Return the first words."""
        return " ".join(text.split()[: self.words])

    def ask(self, text: str, query: str) -> str:
        """Return the beginning of the query before them."""
        return f"{query[:4]} {self(text)}"


def test_functions_of_any_kind_summarize() -> None:
    """A function gets the text, and the query if it takes two arguments; objects, methods and partials are called."""
    assert summarized(lambda text: text[:4]) == "Long"
    assert summarized(lambda text, query: query[:4] + text[:4]) == "it'sLong"
    assert summarized(Shorter(2)) == "Long texts"
    assert summarized(Shorter(1).ask) == "it's Long"
    assert summarized(partial(Shorter.__call__, Shorter(3))) == "Long texts Methods"


def test_a_function_that_fails_costs_its_example() -> None:
    """An exception, an exit and a result that is no text are one line each."""
    for function, problem in (
        (lambda text: text["x"], "raised TypeError: string indices"),
        (lambda text: sys.exit("no\nmodel"), "raised SystemExit: no model"),
        (lambda text: None, "returned a NoneType instead of a text"),
    ):
        with pytest.raises(EnvironmentProblem, match=f"'paper' .*{problem}"):
            summarized(function)


def test_what_a_function_holds_identifies_it() -> None:
    """Its source, defaults, closed-over values and attributes make its name; the same ones make the same name."""

    def closing(words: int) -> Any:
        return lambda text, last=os.linesep: text[:words] + last

    names = [register_function(function) for function in (closing(1), closing(2), closing(1))]
    assert names[0] == names[2] != names[1]
    objects = [register_function(one) for one in (Shorter(1), Shorter(2), Shorter(1))]
    assert objects[0] == objects[2] != objects[1]
    assert objects[0].startswith("Shorter@")
    methods = [register_function(Shorter(words).ask) for words in (1, 2)]
    assert methods[0] != methods[1]
    partials = [register_function(partial(print, end=end)) for end in "ab"]
    assert partials[0] != partials[1]
    code = "lambda text: text + str(1)"
    typed = [register_function(eval(one)) for one in (code, code, code.replace("+", "*"))]  # noqa: S307
    assert typed[0] == typed[1] != typed[2]
    with pytest.raises(UsageError, match="is not in this process"):
        build_tiny("function", function="gone@12345678")
