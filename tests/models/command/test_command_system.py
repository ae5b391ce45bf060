"""`model=command` and `model=function` about single examples: what a program gets, and how it can fail."""

import ast
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
from support.paths import ROOT
from support.processes import is_alive
from support.toys import build_tiny, example, refuses
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
    "writes colours alone": (r"printf '\033[1m\033[0m'", "wrote nothing"),
    "erases what it wrote": (r"printf '\033[1Gbusy\033[K\033[2K\033[1G'", "wrote nothing"),
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
    with refuses(r"^no answer about 1 example, 'paper' ", EnvironmentProblem) as caught:
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
    with refuses(r"'toy-0' .* ZeroDivisionError", EnvironmentProblem):
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
    with refuses(r"model\.version_command: 'false' ended with", EnvironmentProblem):
        build_tiny("command", command="cat", version_command="false").config.identity()


def summarized(function: Any, **limits: Any) -> str:
    """Return what a function writes about an example."""
    system = build_tiny("function", function=register_function(function), **limits)
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


@pytest.mark.parametrize(
    ("function", "summary"),
    [
        (lambda text: text[:4], "Long"),
        (Shorter(2), "Long texts"),
        (Shorter(1).ask, "Why? Long"),
        (lambda text, sentences=5: str(sentences), "5"),
        (lambda text, sentences=5, *, query: f"{query} {sentences}", "Why? 5"),
    ],
)
def test_functions_of_any_kind_summarize(function: Callable[..., str], summary: str) -> None:
    """One gets the text, and the query if it has a parameter of that name; objects and methods are called."""
    assert summarized(function) == summary


def test_a_function_that_fails_costs_its_example() -> None:
    """An exception, an exit, a result that is no text, and what a program may not do either, are one line each."""

    def hang(text: str) -> str:
        while True:
            with suppress(Exception):
                time.sleep(0.01)

    limits = {"timeout_seconds": 0.1, "output_limit": 1_000}
    failing: tuple[tuple[Any, str], ...] = (
        (lambda text: text["x"], "raised TypeError: string indices"),
        (lambda text: sys.exit("no\nmodel"), "raised SystemExit: no model"),
        (lambda text: None, "returned None, which is no text"),
        (lambda text: " \x1b[0m\n", "returned nothing"),
        (lambda text: "caf\ud83d", "returned half a character"),
        (hang, r"was not done after 0\.1 seconds \(model\.timeout_seconds\)"),
        (lambda text: "é" * 501, r"returned more than 1,000 bytes \(model\.output_limit\)"),
    )
    for function, problem in failing:
        with refuses(f"'paper' .*{problem}", EnvironmentProblem):
            summarized(function, **limits)
    assert summarized(lambda text: "é" * 500, **limits) == "é" * 500


def test_parameters_that_nothing_fills_are_refused() -> None:
    """A function that cannot be called with a text and a query is refused before any text is read."""
    for function in (lambda text, words: "", lambda query: "", lambda: ""):
        with refuses(r"cannot be called as .*\(text\), or with query=QUERY"):
            register_function(function)


# Pairs of functions that differ in one thing which they reach
PAIRS = """
import functools, types
import numpy as np
def pair(code):
    functions = []
    for name in ("one", "two"):
        module = types.ModuleType(name)
        exec(code.replace("@@", repr(name)), vars(module))
        functions.append(module.f)
    return functions
class Held:
    __slots__ = ("end",)
    def __init__(self, end): self.end = end
    def __call__(self, text): return self.end
codes = [
    "f = lambda text: @@",
    "def f(text, end=@@): return end",
    "def f(text, *, end=@@): return end",
    "def f(text): return [end for end in text if (lambda: @@)()]",
    "class C:\\n END = @@\\n def __call__(self, text): return self.END\\nf = C()",
    "class B:\\n def g(self): return @@\\nclass C(B):\\n def __call__(self, text): return self.g()\\nf = C()",
    "class C:\\n @property\\n def g(self): return @@\\n def __call__(self, text): return self.g\\nf = C()",
    "class C:\\n @staticmethod\\n def g(): return @@\\n def __call__(self, text): return self.g()\\nf = C()",
    "END = @@\\ndef g(): return END\\ndef f(text): return g()",
    "END = {@@, 'a', 'b', 'c', 'd'}\\ndef f(text): return text in END",
    "def f(text): return text in {@@, 'a', 'b', 'c', 'd'}",
    "END = {1: @@, 'b': None}\\nf = lambda text: END",
    "import functools\\n@functools.cache\\ndef f(text): return @@",
    "import functools\\ng = lambda end, text: end\\nf = functools.partial(g, @@)",
    "import functools\\ndef d(g): return functools.wraps(g)(lambda text: g(text))\\n@d\\ndef f(text): return @@",
    "import types\\nm = types.ModuleType('m')\\nm.end = @@\\ndef f(text): return m.end",
    "import types\\nclass C: pass\\nf = types.MethodType(lambda self, text: @@, C())",
    "def f(text):\\n def g(): return g, @@\\n return g",
    "def make(end): return lambda text: end\\nf = make(@@)",
    "f = str.upper if @@ == 'one' else str.lower",
    "from typing import NamedTuple\\nclass C(NamedTuple):\\n end: str\\nf = lambda text, c=C(@@): c.end",
]
pairs = [pair(code) for code in codes]
pairs += [[lambda text: text[:9], lambda text: text[-9:]], [Held(1), Held(2)]]
for array in (np.arange(9), np.arange(9).reshape(3, 3)):
    pairs.append([functools.partial(lambda array, text: text, array * factor) for factor in (1, 2)])
ordered = [{"a": 1, "b": 2}, {"b": 2, "a": 1}]
pairs.append([functools.partial(lambda rules, text: text, rules) for rules in ordered])
"""
NAMES = """
from longsumbench.core.callables import register_function
names = [[register_function(function) for function in pair] for pair in pairs]
for function in pairs[3]:
    for _ in range(50):
        function("abc")
assert [register_function(function) for function in pairs[3]] == names[3]
print(names)
"""


def test_what_a_function_reaches_identifies_it(tmp_path: Path) -> None:
    """Functions that differ in anything have two names; each has the same one in other processes and other places."""
    printed = set()
    for seed in ("0", "1", "2"):
        script = tmp_path / seed / f"functions_{seed}.py"
        script.parent.mkdir()
        script.write_text("\n" * int(seed) + PAIRS + NAMES)
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        words = [sys.executable, str(script)]
        printed.add(
            subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE).stdout
        )
    (names,) = printed
    for first, second in ast.literal_eval(names.decode()):
        assert first != second


def test_what_cannot_be_hashed_is_refused() -> None:
    """A lock that a function reaches is named; a function of the process is found by its name only."""
    with refuses(r"cannot be hashed \(cannot pickle '_thread\.lock' object"):
        register_function(partial(lambda lock, text: text, Lock()))
    assert register_function(Shorter(1)).startswith("Shorter@")
    with refuses("is not in this process"):
        build_tiny("function", function="gone@12345678")
