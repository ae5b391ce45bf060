"""What processes tell each other: calls and errors as JSON, and nothing that whoever reaches the store can execute."""

import json
import os
import pickle
import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from support.toys import TINY
from torch.distributed import HashStore

from longsumbench.api import registry
from longsumbench.api.config import DatasetSettings, RunConfig
from longsumbench.errors import DataError, EnvironmentProblem, SuiteError, UnknownName, UsageError
from longsumbench.runs import rank_tasks as assisting
from longsumbench.runs.processes import Team, error_of, told_of_error
from longsumbench.runs.rank_tasks import TASKS, parse_config


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        """Say what unpickling does."""
        return os.mkdir, (str(self.folder),)


def told_by(team: Team, call: int, what: str) -> str:
    """Return the key under which something is told in a call."""
    return replace(team, calls=call)._key(what)


def heard(calls: list[bytes], tasks: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[SuiteError | None]:
    """Let a helper hear calls, until it is dismissed; return what it says went wrong in each."""
    store = HashStore()
    team = Team(1, 2, _store=store)
    monkeypatch.setattr(Team, "_meet", lambda self, opens=False: store)
    monkeypatch.setattr(Team, "_begin_anew", lambda self: None)
    for number, call in enumerate([*calls, b"null"], start=1):
        store.set(told_by(team, number, "task"), call)
    team.help(tasks)
    keys = [told_by(team, number, "problem") for number in range(1, len(calls) + 1)]
    return [error_of(store.get(key)) if store.check([key]) else None for key in keys]


def call(name: object, arguments: object) -> bytes:
    return json.dumps({"name": name, "arguments": arguments}).encode()


def test_only_calls_from_the_table_are_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pickled objects, other JSON and unknown names are refused in one line each; the call after them is done."""
    done: list[Any] = []
    random.seed(19)
    bad = [
        pickle.dumps(Bomb(tmp_path / "made")),
        pickle.dumps(Bomb(tmp_path / "made"), protocol=0),
        *(random.randbytes(size) for size in (1, 10, 1_000)),
        *(b"", b"\xff", b"[]", b"1", b'"task"', b"{}", b"{", b"[" * 200_000),
        *(call("system", {}), call("os.system", {}), call(["task"], {}), call(None, {}), call({}, {})),
        *(call("task", []), call("task", None), call("task", "x")),
        json.dumps({"name": "task"}).encode(),
        json.dumps({"name": "task", "arguments": {}, "more": 1}).encode(),
    ]
    good = call("task", {"x": 1})
    problems = heard([*bad, good], {"task": lambda team, arguments: done.append(arguments)}, monkeypatch)
    assert done == [{"x": 1}]
    assert not (tmp_path / "made").exists()
    for problem in problems[:-1]:
        assert isinstance(problem, EnvironmentProblem)
        assert "process 1 of 2 refused a call" in str(problem)
        assert "\n" not in str(problem)
    assert problems[-1] is None


def arguments_of(task: str) -> dict[str, Any]:
    """Return the arguments of a call as this program makes it."""
    config = RunConfig(registry.systems.load("trunc").Config(**TINY))
    sent: dict[str, Any] = {}

    class Listening(Team):
        def helped(self, name: str, arguments: Mapping[str, Any]) -> Any:
            assert name == task
            sent.update(json.loads(json.dumps(arguments)))
            raise InterruptedError

    assistants = assisting.Assistants(Listening(0, 2), config, Path("/run"))
    with suppress(InterruptedError):
        if task == "train":
            assistants.training(Path("/cache/checkpoint/a.partial")).__enter__()
        else:
            assistants.crew(1, Path("/run/p.jsonl"), None, Path("/run/evidence")).called([[0, 2], [1]])
    return sent


WRONG: dict[str, list[Any]] = {
    "config": [None, [], "x", {}, {"model": {"name": "os.system"}}, {"model": {"name": ["trunc"]}}],
    **{name: [None, 1, ["x"], {}] for name in ("folder", "stage", "predictions")},
    "number": [None, 0, -1, 1.5, True, "1"],
    **{name: [1, ["x"], {}] for name in ("log", "evidence")},
    "batches": [None, {}, "x", [0], [[]], [["x"]], [[-1]], [[True]], [[0.5]]],
}


@pytest.mark.parametrize("task", TASKS)
def test_calls_with_wrong_arguments_are_refused(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments that are missing, too many or of another type are refused in one line, before anything is read."""
    read: list[RunConfig] = []

    def read_again(config: RunConfig) -> Any:
        read.append(config)
        raise UsageError("read")

    monkeypatch.setattr(assisting, "_read_again", read_again)
    right = arguments_of(task)
    bad = [{key: value for key, value in right.items() if key != name} for name in right]
    bad += [{**right, "more": 1}]
    bad += [{**right, name: value} for name in right for value in WRONG[name]]
    for group, value in (("train", {"max_steps": "x"}), ("train", 3), ("seed", "x"), ("dataset", {"nothing": 1})):
        bad.append({**right, "config": {**right["config"], group: value}})
    problems = heard([call(task, arguments) for arguments in [*bad, right]], TASKS, monkeypatch)
    assert len(read) == 1
    for arguments, problem in zip(bad, problems, strict=False):
        assert isinstance(problem, EnvironmentProblem), arguments
        assert "refused a call" in str(problem)
        assert "\n" not in str(problem)
    assert (type(problems[-1]), str(problems[-1])) == (UsageError, "read")


@pytest.mark.parametrize("name", registry.systems.targets())
def test_a_configuration_arrives_as_it_was_sent(name: str) -> None:
    """Settings of every system, and unusual values, are the same in the other process."""
    dataset = DatasetSettings("jsonl", path="/texts/${x}/ é", limit=3, redundancy=0.25)
    config = RunConfig(registry.systems.load(name).Config(), dataset, seed=7, timeout_minutes=0.1)
    config.score.metrics = ["fact_recall"]
    assert parse_config(json.loads(json.dumps(asdict(config)))) == config


def test_an_error_arrives_with_its_class_and_message() -> None:
    """An error of the suite is the same in another process; another class is the nearest of the table."""
    for error in (UsageError("a"), DataError("b", "file", 3), EnvironmentProblem("c: é")):
        found = error_of(json.dumps(told_of_error(error)).encode())
        assert (type(found), str(found), found.exit_code) == (type(error), str(error), error.exit_code)
    found = error_of(json.dumps(told_of_error(UnknownName("model", "sael", ["seal"]))).encode())
    assert type(found) is UsageError
    assert "did you mean 'seal'" in str(found)


@pytest.mark.parametrize(
    "told", [b"", b"\x80\x04N.", b"[]", b'["os.system", "ls"]', b'["UsageError", 1]', b'["x"]', b"1"]
)
def test_an_error_that_is_none(told: bytes) -> None:
    """What is no error of the table is a general problem."""
    assert str(error_of(told)) == "another process failed"
