"""The points of one `longsumbench run`, carried out one after the other."""

import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from longsumbench import registry
from longsumbench.configuration import RunConfig
from longsumbench.errors import as_suite_error
from longsumbench.pipeline import BASELINES, Point, baseline, run
from longsumbench.planning import Planned
from longsumbench.records import RunRecord


@dataclass
class Launch:
    """The points of one `longsumbench run`, and what became of them.

    Attributes:
        points: to be run, in this order.
        command: everything as typed, for the records.
        sweep: whether a point's failure leaves the others untouched.
        finished: the records so far, baselines included.
        failed: name of a point → why.
        failed_baselines: name of a baseline, and of the point it was scored beside → why.
        done: how many runs were done, others having been found finished.
    """

    points: Sequence[Planned]
    command: tuple[str, ...] = ()
    sweep: bool = False
    finished: list[RunRecord] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    failed_baselines: dict[str, str] = field(default_factory=dict)
    done: int = 0
    _said: set[str] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Run the points, one after the other; points that are the same run once.

        Raises:
            SuiteError: the only point failed.
        """
        first: dict[str, int] = {}
        self._taken |= {planned.identity for planned in self.points}
        for number, planned in enumerate(self.points, start=1):
            same = first.setdefault(planned.identity, number)
            if self.sweep:
                end = "" if same == number else f": the same run as point {same}"
                self.say(f"point {number}/{len(self.points)}: {planned.name}{end}")
            if same == number:
                self._run(planned)
        if self.sweep:
            found = len(first) - self.done - len(self.failed)
            self.say(f"{len(first)} runs: {self.done} done, {found} found finished, {len(self.failed)} failed")

    def _run(self, planned: Planned) -> None:
        """Run one point; in a sweep its failure is noted and the others go on."""
        point = Point(planned.config, planned.variant, self.command, self.say)
        if too_large_for_a_cpu(planned.config):
            self.say("scale=paper is meant for a GPU, and none is used: on a CPU choose scale=tiny or scale=small")
        with self._noting(self.failed, planned.name):
            self.finished.append(run(point))
            self.done += point.carried_out
        if planned.config.baselines and planned.name not in self.failed:
            for name in BASELINES:
                with self._noting(self.failed_baselines, f"{name} beside {planned.name}"):
                    if name != planned.config.model.name:
                        self.finished.extend(baseline(point, name, self._taken))

    @contextmanager
    def _noting(self, failed: dict[str, str], name: str) -> Iterator[None]:
        """In a sweep, note a failure instead of ending with it."""
        try:
            yield
        except Exception as error:
            known = as_suite_error(error)
            if not self.sweep:
                raise known or error from error
            if known is None:
                traceback.print_exc()
            failed[name] = str(known or f"{type(error).__name__}: {error}")
            self.say(f"failed: {failed[name]}" if failed is self.failed else f"failed: {name}: {failed[name]}")

    def say(self, line: str) -> None:
        """Show a line, the same one once."""
        if line not in self._said:
            print(line, file=sys.stderr, flush=True)
        self._said.add(line)


def too_large_for_a_cpu(config: RunConfig) -> bool:
    """Tell whether a system is to be trained at the papers' sizes without a GPU."""
    torch = sys.modules.get("torch")  # there, once a system that needs it was loaded
    trains = "train" in registry.systems.load(config.model.name).decided_by
    if config.scale != "paper" or not trains or torch is None:
        return False
    return config.train.device == "cpu" or not torch.cuda.is_available()
