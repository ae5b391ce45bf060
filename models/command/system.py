"""CommandSystem: any program summarizes; FunctionSystem: a function of this process does.

    Example --plain_text, or JSON-->  text  --run_program, or the function-->  Output  -->  Summary

`ForeignSystem.summarize` is the door: it goes through the outputs, in the order of the examples.
"""

import json
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from typing import Any, NamedTuple

from longsumbench.cache.request_cache import RequestCache
from longsumbench.core import Decoding, Example, FitContext, Summary, System
from longsumbench.core.callables import registered_function
from longsumbench.core.failures import report_failed
from longsumbench.errors import EnvironmentProblem, MissingSplit, SuiteError, UsageError
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.modeling.extraction import mean_target_words
from longsumbench.models.command.config import (
    CommandConfig,
    FunctionConfig,
    fill_placeholders,
)
from longsumbench.models.command.programs import ProgramLimits, run_program

_OUTPUTS = "outputs.sqlite"  # finished outputs, in the run's folder
# Of an example, what a program must not see.
_ANSWERS = ("references", "facts", "highlights", "planted")


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
        waiting: list[Summary] = []
        for example, output in zip(examples, self.outputs(examples), strict=True):
            if output.problem:
                failed.append((example.id, output.problem))
            counts = {"seconds": output.seconds, "failed": int(output.problem is not None)}
            read = None if decoding.keep_inputs == "none" else self.text_of(example)
            waiting.append(Summary(example.id, output.text, counts=counts, read=read))
            if not failed:
                yield waiting.pop()
        report_failed(failed, decoding.failed)
        yield from waiting

    def outputs(self, examples: Sequence[Example]) -> Iterator[Output]:
        """Yield the output about each example, in their order."""
        return map(self.output_of, examples)

    def output_of(self, example: Example) -> Output:
        """Return the output about an example: a finished one, or a new one. A text without words has an empty one."""
        if not example.source_words():
            return Output("", 0.0)
        stored = self._finished and self._finished.get(example.id)
        if stored:
            return Output(*json.loads(stored))
        started = time.monotonic()
        text, problem = "", None
        try:
            text = self.write(example)
        except EnvironmentProblem as error:
            problem = error
        output = Output(text, round(time.monotonic() - started, 3), problem)
        if self._finished and not problem:
            self._finished.put(example.id, self.config.name, json.dumps(output))
        return output

    def text_of(self, example: Example) -> str:
        """Return what is summarized."""
        return plain_text(example)

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
    _stopped = Event()

    def facts(self) -> dict[str, Any]:
        """Return the program's version and the hashes of its files."""
        return self.config.program()

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that there are queries, if the command has one.

        Raises:
            UsageError: an example has no query.
        """
        for example in examples if self.config.uses("query") else ():
            if not example.query:
                problem = f"model.command has {{query}}, and example '{example.id}' has no query"
                raise UsageError(f"{problem}: leave it out")

    def prepare(self, context: FitContext) -> None:
        """Learn the length to ask for.

        Raises:
            MissingSplit: the training split is needed, and missing.
        """
        super().prepare(context)
        if self.config.uses("words") and self.config.length == "train":
            if not context.train:
                raise MissingSplit(
                    "model.length=train needs a train split: choose model.length=<words>"
                )
            self.state.target_words = mean_target_words(context.train)

    def outputs(self, examples: Sequence[Example]) -> Iterator[Output]:
        """Yield the output about each example; `model.parallel` programs run at once."""
        self._stopped = Event()
        with ThreadPoolExecutor(self.config.parallel) as pool:
            try:
                yield from pool.map(self.output_of, examples)
            finally:
                self._stopped.set()

    def text_of(self, example: Example) -> str:
        """Return the standard input of the program, or the content of {file}."""
        if self.config.input == "text":
            return plain_text(example)
        values = example.to_dict()
        for name in _ANSWERS:
            values.pop(name, None)
        return json.dumps(values, ensure_ascii=False) + "\n"

    def write(self, example: Example) -> str:
        """Run the program about an example; errors are those of `run_program`."""
        config, text = self.config, self.text_of(example)
        with TemporaryDirectory(prefix="longsumbench-", ignore_cleanup_errors=True) as folder:
            source = Path(folder, "text.json" if config.input == "json" else "text.txt")
            output = Path(folder, "summary.txt")
            values = {
                "file": f"{source}",
                "output": f"{output}",
                "words": f"{self.state.target_words or config.length}",
                "query": f"{example.query}",
            }
            if config.uses("file"):
                source.write_text(text, encoding="utf-8", errors="replace")
                text = ""
            return run_program(
                [fill_placeholders(word, values) for word in config.words],
                text,
                ProgramLimits(config.timeout_seconds, config.output_limit),
                self._stopped,
                output if config.uses("output") else None,
            )


class FunctionSystem(ForeignSystem):
    """A function of Python, (text, query) → summary: `longsumbench.run(model=function)`.

    Raises:
        UsageError: this process does not have the function.
    """

    Config = FunctionConfig
    config: FunctionConfig

    def __init__(self, config: FunctionConfig) -> None:
        super().__init__(config)
        self._function = registered_function(config.function)

    def write(self, example: Example) -> str:
        """Call the function about an example; one with a single parameter is given the text alone."""
        name, arguments = self.config.function, (plain_text(example), example.query)
        try:
            num_parameters = len(signature(self._function).parameters)
            summary = self._function(*arguments[:num_parameters])
        except (Exception, SystemExit) as error:
            raise EnvironmentProblem(f"{name} raised {describe_error(error)}") from error
        if not isinstance(summary, str):
            kind = type(summary).__name__
            raise EnvironmentProblem(f"{name} returned a {kind} instead of a text")
        return summary.strip()


def plain_text(example: Example) -> str:
    """Return an example as plain text: title, names of sections and paragraphs, with blank lines between them."""
    blocks = [example.title or ""]
    for document in example.documents:
        for section in document.sections:
            blocks.append(section.name or "")
            for paragraph in section.paragraphs:
                blocks.append(" ".join(paragraph))
    return "\n\n".join(block for block in blocks if block.strip()) + "\n"
