"""CommandSystem: any program summarizes; FunctionSystem: a function of this process does.

    Example --plain_text, or JSON-->  text  --run_program, or the function-->  Output  -->  Summary

`ForeignSystem.summarize` is the door: it goes through the outputs, in the order of the examples.
"""

import inspect
import json
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event

from longsumbench.cache.request_cache import RequestCache
from longsumbench.core import Decoding, Example, FitContext, Summary, System
from longsumbench.core.callables import Summarizer, registered_function
from longsumbench.core.failures import report_failed
from longsumbench.errors import EnvironmentProblem, MissingSplit, SuiteError, UsageError
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.modeling.extraction import mean_target_words
from longsumbench.models.command.config import (
    CommandConfig,
    FunctionConfig,
    fill_placeholders,
)
from longsumbench.models.command.programs import Limits, run_program

_OUTPUTS = "outputs.sqlite"  # finished outputs, in the run's folder
# Of an example, what a program must not see.
_ANSWERS = ("references", "facts", "highlights", "planted")


@dataclass(frozen=True)
class Output:
    """What was written about a text, in how many seconds; `problem` says why there is nothing."""

    text: str
    seconds: float
    problem: SuiteError | None = None


class ForeignSystem(System):
    """Base class: summaries are written by code that is not the suite's, about one text at a time."""

    def __init__(self, config: CommandConfig | FunctionConfig) -> None:
        super().__init__(config)
        self._finished: RequestCache | None = None

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
            if output.problem is not None:
                failed.append((example.id, output.problem))
            counts = {"seconds": output.seconds, "failed": int(output.problem is not None)}
            read = self.text_for(example) if decoding.keep_inputs != "none" else None
            waiting.append(Summary(example.id, output.text, counts=counts, read=read))
            if not failed:
                yield waiting.pop()
        report_failed(failed, decoding.failed)
        yield from waiting

    @abstractmethod
    def outputs(self, examples: Sequence[Example]) -> Iterator[Output]:
        """Yield the output about each example, in their order."""

    @abstractmethod
    def write(self, example: Example, text: str) -> str:
        """Return the summary of an example, of which `text` is `text_for`.

        Raises:
            SuiteError: there is none.
        """

    def text_for(self, example: Example) -> str:
        """Return what is summarized."""
        return plain_text(example)

    def output_of(self, example: Example) -> Output:
        """Return the output about an example: a finished one, or a new one. A text without words has an empty one."""
        if not example.source_words():
            return Output("", 0.0)
        stored = self._finished and self._finished.get(example.id)
        if stored:
            return Output(*json.loads(stored))
        started = time.monotonic()
        try:
            text = self.write(example, self.text_for(example))
        except SuiteError as problem:
            return Output("", _seconds_since(started), problem)
        seconds = _seconds_since(started)
        if self._finished is not None:
            self._finished.put(example.id, self.config.name, json.dumps([text, seconds]))
        return Output(text, seconds)


class CommandSystem(ForeignSystem):
    """Any program: it is given a text, and what it writes is the summary."""

    Config = CommandConfig
    config: CommandConfig

    def facts(self) -> dict[str, object]:
        """Return the program's version and the hashes of its files."""
        identity = self.config.identity()
        return {"program_version": identity.get("version"), "program_files": identity["files"]}

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that there are queries, if the command has one.

        Raises:
            UsageError: an example has no query.
        """
        if self.config.uses("query"):
            for example in examples:
                if not example.query:
                    raise UsageError(
                        f"model.command has {{query}}, and example '{example.id}' has no query: leave it out"
                    )

    def prepare(self, context: FitContext) -> None:
        """Check the program, and learn the length to ask for.

        Raises:
            EnvironmentProblem: there is no such program.
            MissingSplit: the training split is needed, and missing.
        """
        self.config.identity()
        super().prepare(context)
        if self.config.uses("words") and self.config.length == "train":
            if not context.train:
                raise MissingSplit(
                    "model.length=train needs a train split: choose model.length=<words>"
                )
            self.state.target_words = mean_target_words(context.train)

    def text_for(self, example: Example) -> str:
        """Return the standard input of the program, or the content of {file}."""
        if self.config.input == "text":
            return plain_text(example)
        values = example.to_dict()
        for name in _ANSWERS:
            values.pop(name, None)
        return json.dumps(values, ensure_ascii=False) + "\n"

    def outputs(self, examples: Sequence[Example]) -> Iterator[Output]:
        """Yield the output about each example; `parallel` programs run at once."""
        self._stopped = Event()
        with ThreadPoolExecutor(self.config.parallel) as pool:
            try:
                yield from pool.map(self.output_of, examples)
            finally:
                self._stopped.set()

    def write(self, example: Example, text: str) -> str:
        """Run the program about an example."""
        config = self.config
        with TemporaryDirectory(prefix="longsumbench-") as folder:
            source, output = Path(folder, f"text.{config.input}"), Path(folder, "summary")
            values = {
                "file": f"{source}",
                "output": f"{output}",
                "words": f"{self.state.target_words or config.length}",
                "query": example.query or "",
            }
            words = [fill_placeholders(word, values) for word in config.words]
            reads_file = config.uses("file")
            if reads_file:
                source.write_text(text, encoding="utf-8", errors="replace")
            return run_program(
                words,
                None if reads_file else text,
                Limits(config.timeout_seconds, config.output_limit),
                self._stopped,
                output if config.uses("output") else None,
            )


class FunctionSystem(ForeignSystem):
    """A function of Python, (text, query) → summary: `longsumbench.run(model=function)`."""

    Config = FunctionConfig
    config: FunctionConfig

    def prepare(self, context: FitContext) -> None:
        """Check that this process has the function.

        Raises:
            UsageError: it has not.
        """
        registered_function(self.config.function)
        super().prepare(context)

    def outputs(self, examples: Sequence[Example]) -> Iterator[Output]:
        """Yield the output about each example, one after the other."""
        return map(self.output_of, examples)

    def write(self, example: Example, text: str) -> str:
        """Call the function about an example."""
        function = registered_function(self.config.function)
        arguments = [text, example.query] if _takes_query(function) else [text]
        try:
            summary = function(*arguments)
        except (Exception, SystemExit) as error:
            message = f"{self.config.function} raised {describe_error(error)}"
            raise EnvironmentProblem(message) from error
        if not isinstance(summary, str):
            kind = type(summary).__name__
            raise EnvironmentProblem(f"{self.config.function} returned a {kind} instead of a text")
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


def _takes_query(function: Summarizer) -> bool:
    """Return True if a function has a parameter `query`, or a second one without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C
        return False
    given = []
    for parameter in parameters:
        is_given = parameter.default is parameter.empty or parameter.name == "query"
        if is_given and parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD):
            given.append(parameter)
    return len(given) > 1


def _seconds_since(started: float) -> float:
    return round(time.monotonic() - started, 3)
