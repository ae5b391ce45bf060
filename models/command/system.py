"""CommandSystem: any program summarizes; FunctionSystem: a function of this process does.

    Example --format_text-->  text, or JSON  --Program.write, or the function-->  Output  -->  Summary

`ForeignSystem.summarize` is the door: it goes through the outputs, in the order of the examples.
"""

import json
import os
import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from itertools import tee
from typing import Any, NamedTuple

from longsumbench.cache.request_cache import RequestCache
from longsumbench.core import Decoding, Example, FitContext, Summary, System
from longsumbench.core.answer_text import report_failed
from longsumbench.core.callables import query_argument, registered_function
from longsumbench.core.terminal_text import remove_control_codes, show_text
from longsumbench.errors import EnvironmentProblem, SuiteError
from longsumbench.interrupts import time_limit
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.modeling.extraction import mean_target_words
from longsumbench.models.command.config import CommandConfig, FunctionConfig
from longsumbench.models.command.programs import Program, check_program_files

_OUTPUTS = "outputs.sqlite"  # finished outputs, in the run's folder
# What a program may see of an example.
_VISIBLE_FIELDS = ("id", "title", "query", "documents")


class Output(NamedTuple):
    """What was written about a text, in how many seconds; `problem` says why there is nothing."""

    text: str
    seconds: float
    problem: SuiteError | None = None


class ForeignSystem(System):
    """Base class: summaries are written by code that is not the suite's, about one text at a time."""

    _finished: RequestCache | None = None

    def prepare(self, context: FitContext) -> None:
        """Open the file of finished outputs: an interrupted run writes none again."""
        if context.workdir is not None:
            self._finished = RequestCache(context.workdir / _OUTPUTS)

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example, in their order; an empty one of an example without an output.

        Raises:
            SuiteError: an example has no output, and `decoding.failed` is "stop". Outputs about the others are kept.
        """
        failed: list[tuple[str, SuiteError]] = []
        pairs, copies = tee(zip(examples, self.outputs(examples), strict=True))
        texts = remove_control_codes((example.id, output.text) for example, output in copies)
        for text, (example, output) in zip(texts, pairs, strict=True):
            if output.problem:
                failed.append((example.id, output.problem))
            counts = {"seconds": output.seconds, "failed": int(output.problem is not None)}
            read = None if decoding.keep_inputs == "none" else self.format_text(example)
            if not failed or decoding.failed != "stop":
                yield Summary(example.id, text, counts=counts, read=read)
        report_failed(failed, decoding.failed)

    def outputs(self, examples: Sequence[Example]) -> Iterator[Output]:
        """Yield the output about each example, in their order."""
        return map(self.find_output, examples)

    def find_output(self, example: Example) -> Output:
        """Return the output about an example: a finished one, or a new one. A text without words has an empty one."""
        if not example.source_words():
            return Output("", 0.0)
        stored = self._finished and self._finished.get(example.id)
        if stored:
            return Output(*json.loads(stored))
        started = time.monotonic()
        try:
            text = self.write(example)
        except EnvironmentProblem as problem:
            return Output("", time.monotonic() - started, problem)
        output = Output(text, round(time.monotonic() - started, 3))
        if self._finished:
            self._finished.put(example.id, self.config.name, json.dumps(output))
        return output

    def format_text(self, example: Example) -> str:
        """Return what is summarized: title, names of sections and paragraphs, with blank lines between them."""
        blocks = [example.title or ""]
        for section in example.sections():
            blocks += [section.name or "", section.as_written()]
        return "\n\n".join(filter(str.strip, blocks)) + "\n"

    @abstractmethod
    def write(self, example: Example) -> str:
        """Return the summary of an example.

        Raises:
            EnvironmentProblem: there is none.
        """


class CommandSystem(ForeignSystem):
    """Any program: it is given a text, and what it writes is the summary."""

    Config = CommandConfig
    config: CommandConfig
    _program: Program

    def metadata(self) -> dict[str, Any]:
        """Return the program's version and the hashes of its files."""
        return self.config.program

    def prepare(self, context: FitContext) -> None:
        """Learn the length to ask for. MissingSplit as from `mean_target_words`."""
        super().prepare(context)
        if "words" in self.config.placeholders and self.config.length == "train":
            self.state.target_words = mean_target_words(context.train)

    def outputs(self, examples: Sequence[Example]) -> Iterator[Output]:
        """Yield the output about each example; `model.parallel` programs run at once."""
        config = self.config
        self._program = Program(config.words, config.timeout_seconds, config.output_limit)
        with ThreadPoolExecutor(config.parallel) as pool:
            try:
                yield from pool.map(self.find_output, examples)
            finally:
                self._program.stopped.set()

    def format_text(self, example: Example) -> str:
        """Return the standard input of the program, or the content of {file}."""
        if self.config.input == "text":
            return super().format_text(example)
        values = example.to_dict()
        visible_fields = {name: values[name] for name in _VISIBLE_FIELDS}
        return json.dumps(visible_fields, ensure_ascii=False) + "\n"

    def write(self, example: Example) -> str:
        """Run the program about an example; errors are those of `Program.write`.

        Raises:
            DataError: a file of the program was changed since the run began; the output is not stored.
        """
        words = self.state.target_words or self.config.length
        output = self._program.write(self.format_text(example), f"{words}")
        check_program_files(self.config.program["program_files"])
        return output


class FunctionSystem(ForeignSystem):
    """A function of Python, (text, query=…) → summary: `longsumbench.run(model=function)`.

    Raises:
        UsageError: this process does not have the function.
    """

    Config = FunctionConfig
    config: FunctionConfig

    def __init__(self, config: FunctionConfig) -> None:
        super().__init__(config)
        self._function = registered_function(config.function)

    def write(self, example: Example) -> str:
        """Call the function about an example; its parameter `query`, if it has one, is the query."""
        config = self.config
        arguments = query_argument(self._function, example.query)
        problem = ""
        try:
            # It may change the working folder, in which results have their place
            with time_limit(config.timeout_seconds / 60, problem=_LateError()), chdir(os.curdir):
                summary = self._function(self.format_text(example), **arguments)
        except _LateError:
            problem = (
                f"was not done after {config.timeout_seconds:g} seconds (model.timeout_seconds)"
            )
        except (Exception, SystemExit) as error:
            raise EnvironmentProblem(f"{config.function} raised {describe_error(error)}") from error
        else:
            problem = self._find_problem(summary)
        if problem:
            raise EnvironmentProblem(f"{config.function} {problem}")
        return str(summary).strip()

    def _find_problem(self, summary: object) -> str:
        """Return what is wrong with a summary, as a verb; empty: nothing."""
        if not isinstance(summary, str):
            return f"returned {summary!r:.50}, which is no text"
        encoded = summary.encode(errors="replace")
        if len(encoded) > self.config.output_limit:
            return f"returned more than {self.config.output_limit:,} bytes (model.output_limit)"
        if encoded.decode() != summary:
            return "returned half a character (a lone surrogate)"
        return "" if show_text(summary).strip() else "returned nothing"


class _LateError(BaseException):
    """Raised in a function at its time limit; `except Exception` in it does not catch it."""
