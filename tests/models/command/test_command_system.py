"""`model=command` and `model=function` about single examples: what a program gets, and how it can fail."""

import json
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

STOP, EMPTY = Decoding(failed="stop"), Decoding(failed="empty")
PAPER = Example(
    "paper",
    "Long texts",
    "Why?",
    (
        Document(
            None,
            (
                Section(
                    "Methods", (("We read.", "We cut."), ("Then…",)), "We read.\n  We cut.\n\nThen…"
                ),
            ),
        ),
    ),
    (("The answer.",),),
    highlights=("We cut.",),
)


def written(command: str, **settings: Any) -> str:
    """Return what a command writes about an example."""
    system = build_tiny("command", command=command, **settings)
    (summary,) = system.summarize([PAPER], STOP)
    return str(summary.text)


def test_a_program_gets_the_text_as_it_is_laid_out() -> None:
    """Title, headings and paragraphs, or JSON; from a file or standard input; nothing that people wrote about it."""
    text = "Long texts\n\nMethods\n\nWe read.\n  We cut.\n\nThen…"
    assert written("cat") == written("cat {file}") == written("cp {file} {output}") == text
    expected = json.loads(json.dumps(PAPER.to_dict()))
    del expected["references"], expected["highlights"]
    assert json.loads(written("cat", input="json")) == expected


def test_foreign_programs_write_summaries() -> None:
    """A line of a shell, a script of awk, and Python in another interpreter read the same text."""
    assert written("sh -c 'head -n 1 \"$1\" | tr a-z A-Z; cat' sh {file}") == "LONG TEXTS"
    assert written("awk 'END {print NR, \"lines\"}'") == "8 lines"
    code = "import sys; print(len(sys.stdin.read().split()), sys.argv[1])"
    assert written(f"'{sys.executable}' -c '{code}' {{words}}", length="12") == "8 12"
    assert written(r"printf 'reading\rA \033[1mplan.\033[0m\033[K'") == "A plan."


FAILING = {
    "hangs": ("sleep 60", r"was not done after 0\.5 seconds \(model\.timeout_seconds\)"),
    "waits for a child": ("sh -c 'sleep 60 & wait'", "was not done after"),
    "floods": ("yes", r"wrote more than 1,000 bytes \(model\.output_limit\)"),
    "floods standard error": ("sh -c 'yes >&2'", "wrote more than 1,000 bytes"),
    "floods its file": ("sh -c 'yes >\"$1\"' sh {output}", "wrote more than 1,000 bytes"),
    "writes blanks": ("echo", "wrote nothing"),
    "writes no text": (r"printf 'a\377'", "wrote bytes that are not UTF-8"),
    "writes NUL": (r"printf 'a\000b'", "wrote binary data"),
    "wants a terminal": ("sh -c 'cat </dev/tty'", "ended with exit code .*: .*/dev/tty"),
    "fails": ("sh -c 'echo a >&2; echo no memory >&2; exit 3'", "exit code 3: no memory$"),
    "dies": ("sh -c 'kill -SEGV $$'", "ended with signal 11"),
    "leaves its file out": ("echo {output}", r"wrote no file \{output\}"),
}


@pytest.mark.parametrize("kind", FAILING)
def test_a_failing_program_costs_one_example(kind: str) -> None:
    """What went wrong is one line, with the last line of standard error."""
    command, problem = FAILING[kind]
    limits: dict[str, Any] = {"timeout_seconds": 0.5, "output_limit": 1_000}
    with pytest.raises(EnvironmentProblem, match=r"^no answer about 1 example, 'paper' ") as caught:
        written(command, **limits)
    message = str(caught.value).partition("; decode.failed=empty")[0]
    assert re.search(problem, message), message
    assert "\n" not in message


def test_nothing_that_a_program_started_remains() -> None:
    """A child that keeps the output open neither delays the summary nor outlives it."""
    started = time.monotonic()
    child = int(written("sh -c 'sleep 600 & echo $!'"))
    assert time.monotonic() - started < 60
    wait_until(lambda: not is_alive(child))


def test_summaries_keep_their_order() -> None:
    """Programs at once end in any order; their summaries have the order of the examples, and failures their places."""
    code = "import time; n = int(input()); time.sleep((5 - n) / 20); print(10 // n)"
    examples = [replace(example(n), title=str(n)) for n in (1, 2, 0, 4, 5)]
    system = build_tiny("command", command=f"'{sys.executable}' -c '{code}'", parallel=99)
    summaries = list(system.summarize(examples, EMPTY))
    assert [summary.text for summary in summaries] == ["10", "5", "", "2", "2"]
    assert [summary.counts["failed"] for summary in summaries] == [0, 0, 1, 0, 0]
    with pytest.raises(EnvironmentProblem, match=r"'toy-0' .* ZeroDivisionError"):
        list(system.summarize(examples, STOP))


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (" ", "model.command is missing"),
        ("awk '{print}'", "model.command has {print}: it may have {file}, {output} and {words}"),
        ("cat 'x", "No closing quotation"),
        ("/usr {file}", "there is no program '/usr'"),
    ],
)
def test_a_command_is_checked_before_it_runs(command: str, problem: str) -> None:
    """A program or a placeholder that does not exist is one line."""
    with pytest.raises((UsageError, EnvironmentProblem), match=re.escape(problem)):
        build_tiny("command", command=command).config.identity()


def test_braces_of_other_languages_stay() -> None:
    """Doubled braces and variables with a dollar sign are no placeholders."""
    assert written("printf %s {{word}} ${name} {1,2}") == "{{word}}${name}{1,2}"


def test_what_runs_identifies_a_program(tmp_path: Path) -> None:
    """Another script behind the same words, or another printed version, is another system."""
    script = tmp_path / "tool.sh"
    script.write_text("cat")
    settings = {"command": f"sh {script}", "version_command": "echo 1.0 {x}"}
    first = build_tiny("command", **settings).config.identity()
    assert first["program_version"] == "1.0 {x}"
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
        """Return the query before them."""
        return f"{query} {self(text)}"


def test_functions_of_any_kind_summarize() -> None:
    """A function gets the text, and the query if it takes two arguments; objects and methods are called."""
    assert summarized(lambda text: text[:4]) == "Long"
    assert summarized(Shorter(2)) == "Long texts"
    assert summarized(Shorter(1).ask) == "Why? Long"


def test_a_function_that_fails_costs_its_example() -> None:
    """An exception, an exit and a result that is no text are one line each."""
    for function, problem in (
        (lambda text: text["x"], "raised TypeError: string indices"),
        (lambda text: sys.exit("no\nmodel"), "raised SystemExit: no model"),
        (lambda text: None, "returned None, which is no text"),
    ):
        with pytest.raises(EnvironmentProblem, match=f"'paper' .*{problem}"):
            summarized(function)


def test_what_a_function_holds_identifies_it() -> None:
    """Defaults, variables outside and attributes make its name; the same ones make the same name."""

    def closing(words: int, end: str = "") -> Any:
        return lambda text, last=end: text[:words] + last

    kinds = (closing, Shorter, lambda words: Shorter(words).ask)
    for kind in kinds:
        first, second, again = [register_function(kind(words)) for words in (1, 2, 1)]
        assert first == again != second
    assert register_function(closing(1, ".")) != register_function(closing(1))
    assert register_function(Shorter(1)).startswith("Shorter@")
    for unreadable in (partial(print), str.upper, eval("lambda text: text")):  # noqa: S307
        with pytest.raises(UsageError, match="has no source that can be read"):
            register_function(unreadable)
    with pytest.raises(UsageError, match="is not in this process"):
        build_tiny("function", function="gone@12345678")
