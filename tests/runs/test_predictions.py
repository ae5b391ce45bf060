"""Summaries on disk: in the data's order, never lost, never written twice."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.json_files import read_rows
from support.toys import ToySplit
from support.watching import Watching, WatchingConfig, like

from longsumbench.core import Cut, Decoding, Example, Summary, System, SystemConfig, Truncation
from longsumbench.runs import predictions
from longsumbench.runs.evidence import read_evidence, stored_indices
from longsumbench.runs.predictions import length_buckets, part_file, read_summaries, summarize_split

SPLIT = ToySplit.of("test", 10)


@dataclass
class CountingConfig(SystemConfig):
    """Its settings; `decided_by` is set by a test."""

    decided_by: frozenset[str] = frozenset()


class Counting(System):
    """Writes the id, and what was next to it in the batch; counts its batches."""

    def __init__(
        self, fails_at: int | None = None, decided_by: frozenset[str] = frozenset()
    ) -> None:
        super().__init__(CountingConfig(decided_by))
        self.batches: list[list[str]] = []
        self.fails_at = fails_at

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield an odd text for each example."""
        if len(self.batches) == self.fails_at:
            raise RuntimeError("stopped")
        self.batches.append([example.id for example in examples])
        for example in examples:
            ledger = Truncation(9, 8, (Cut("length", 2, 1),))
            yield Summary(
                example.id, f"{self.batches[-1]}\u2028odd\x85 {example.id}", ledger, False, 7
            )


@given(st.lists(st.integers(0, 30)), st.integers(1, 7))
def test_buckets_hold_every_index_once_longest_first(lengths: list[int], batch_size: int) -> None:
    """Buckets are full but for the last, hold every index once, and fall in length; equal lengths keep their order."""
    buckets = length_buckets(lengths, batch_size)
    flat = [index for bucket in buckets for index in bucket]
    assert sorted(flat) == list(range(len(lengths)))
    assert flat == sorted(flat, key=lambda index: (-lengths[index], index))
    assert all(len(bucket) == batch_size for bucket in buckets[:-1])
    assert all(buckets)


def summarize(system: System, folder: Path, **decoding: Any) -> list[Summary]:
    """Summarize the toy split into the folder of a run."""
    (folder / "work").mkdir(parents=True, exist_ok=True)
    return summarize_split(system, SPLIT, Decoding(**{"batch_size": 3, **decoding}), folder)


def test_summaries_come_in_the_order_of_the_data(tmp_path: Path) -> None:
    """File and answer are in the data's order; `decode.limit` takes the first ones; lines begin with id and text."""
    for limit in (4, 99):
        summaries = summarize(Counting(), tmp_path / f"{limit}", limit=limit)
        path = tmp_path / f"{limit}" / "predictions.jsonl"
        assert [one.id for one in summaries] == SPLIT.ids[:limit]
        assert read_summaries(path) == summaries
        rows = [json.loads(line) for line in path.read_text().split("\n") if line]
        assert [list(row)[:2] for row in rows] == [["id", "prediction"]] * len(summaries)


@pytest.mark.parametrize("stopped_after", [0, 1, 3])
def test_a_resumed_run_writes_what_an_undisturbed_one_does(
    stopped_after: int, tmp_path: Path
) -> None:
    """Finished batches are not done again, the others with the same neighbours; the file is the same, byte by byte."""
    undisturbed, resumed = Counting(), Counting()
    summarize(undisturbed, tmp_path / "whole")
    with pytest.raises(RuntimeError, match="stopped"):
        summarize(Counting(stopped_after), tmp_path / "stopped")
    summarize(resumed, tmp_path / "stopped")
    assert resumed.batches == undisturbed.batches[stopped_after:]
    whole, again = ((tmp_path / name / "predictions.jsonl") for name in ("whole", "stopped"))
    assert again.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("cut", [0, 9])
def test_the_shares_of_killed_processes_are_taken_over(cut: int, tmp_path: Path) -> None:
    """What other processes wrote is not written again, but for a torn line; their seconds are counted, too."""
    path, log = tmp_path / "predictions.jsonl", tmp_path / "work" / "decoding.jsonl"
    whole = summarize(Counting(), tmp_path, batch_size=1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]))
    part_file(path, 1).write_bytes(b"".join(lines[2:5])[: -cut or None])
    log.rename(part_file(log, 1))
    again = Counting()
    assert summarize(again, tmp_path, batch_size=1) == whole
    assert len(again.batches) == len(SPLIT) - (4 if cut else 5)
    assert path.read_bytes().splitlines(keepends=True) == lines
    assert len(log.read_text().splitlines()) == len(SPLIT) + len(again.batches)
    assert not list(tmp_path.rglob("*.part*"))


def test_processes_write_every_summary_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of three processes writes its share of the batches and inputs; together they write what one process would."""
    how: dict[str, Any] = {"batch_size": 2, "keep_inputs": "all"}
    decodes = frozenset({"decode"})
    alone = summarize(Counting(decided_by=decodes), tmp_path / "alone", **how)
    systems = [Counting(decided_by=decodes) for _ in range(3)]
    batches = length_buckets(SPLIT.source_words, 2)
    monkeypatch.setattr(predictions, "process_count", lambda: 3)
    monkeypatch.setattr(predictions, "from_first_process", lambda value=None: batches)
    for place in (1, 2, 0):  # the first one merges the files
        monkeypatch.setattr(predictions, "process_index", lambda place=place: place)
        written = summarize(systems[place], tmp_path / "shared", **how)
    assert written == alone
    for name in ("predictions.jsonl", "inputs.jsonl"):
        shared, whole = (tmp_path / folder / name for folder in ("shared", "alone"))
        assert shared.read_bytes() == whole.read_bytes()
    assert sum(len(system.batches) for system in systems) == len(batches)
    assert all(system.batches for system in systems)


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Watching:
    """A system that keeps evidence, and has not been asked yet."""
    monkeypatch.setattr(Watching, "batches", [])
    return Watching(WatchingConfig())


def files(folder: Path) -> dict[str, bytes]:
    """Return the evidence files, and what they hold."""
    return {path.name: path.read_bytes() for path in (folder / "evidence").glob("*")}


@pytest.mark.parametrize(
    ("asked", "first"), [("all", 10), ("none", 0), ("0", 0), ("4", 4), ("20", 10)]
)
def test_evidence_of_the_first_examples_is_kept(
    asked: str, first: int, watching: Watching, tmp_path: Path
) -> None:
    """The first examples of the split have evidence, their own; summaries are the same with it and without."""
    summaries = summarize(watching, tmp_path, evidence=asked)
    assert stored_indices(tmp_path / "evidence") == set(range(first))
    for index in range(first):
        identity, evidence = read_evidence(tmp_path / "evidence", index)
        assert identity == SPLIT.ids[index]
        assert like(watching.read(SPLIT[index])[1], evidence)
    assert summaries == [watching.read(example)[0] for example in SPLIT]


@pytest.mark.parametrize("stopped_after", [0, 2])
def test_a_killed_run_has_the_evidence_of_its_lines(
    stopped_after: int, watching: Watching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written has its evidence; resumed, the same files come out, and finished batches are not done again."""
    killed = tmp_path / "killed"
    summarize(watching, tmp_path / "whole", evidence="7")
    undisturbed = list(watching.batches)
    monkeypatch.setattr(Watching, "batches", [])
    monkeypatch.setattr(Watching, "fails_at", stopped_after)
    with pytest.raises(KeyboardInterrupt):
        summarize(watching, killed, evidence="7")
    written = {summary.id for summary in read_summaries(killed / "predictions.jsonl")}
    with_evidence = {SPLIT.ids[index] for index in stored_indices(killed / "evidence")}
    assert with_evidence == written & set(SPLIT.ids[:7])
    monkeypatch.setattr(Watching, "fails_at", None)
    summarize(watching, killed, evidence="7")
    assert watching.batches == undisturbed
    assert files(killed) == files(tmp_path / "whole")


@pytest.mark.parametrize("torn", [0, 20])
def test_a_killed_run_completes_its_inputs(
    torn: int, watching: Watching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has what was read of the first examples; resumed, the same comes out, also if its last line was cut."""
    how = {"evidence": "none", "keep_inputs": "7"}
    whole, killed = tmp_path / "inputs.jsonl", tmp_path / "killed" / "inputs.jsonl"
    summarize(watching, tmp_path, **how)
    texts = ["\n".join([*example.sentences()][:6]) for example in SPLIT]
    lines = [{"id": SPLIT.ids[index], "input": texts[index]} for index in range(7)]
    assert read_rows(whole) == lines
    monkeypatch.setattr(Watching, "batches", [])
    monkeypatch.setattr(Watching, "fails_at", 2)
    with pytest.raises(KeyboardInterrupt):
        summarize(watching, killed.parent, **how)
    killed.write_bytes(killed.read_bytes()[: -torn or None])
    monkeypatch.setattr(Watching, "fails_at", None)
    summarize(watching, killed.parent, **how)
    assert killed.read_bytes() == whole.read_bytes()


def test_a_system_that_does_not_tell_its_input(tmp_path: Path) -> None:
    """A system that decodes but tells no input has null; a baseline has no file."""
    summarize(Counting(), tmp_path, keep_inputs="1")
    assert not (tmp_path / "inputs.jsonl").exists()
    silent = Counting(decided_by=frozenset({"decode"}))
    summarize(silent, tmp_path / "silent", keep_inputs="1")
    inputs = tmp_path / "silent" / "inputs.jsonl"
    assert inputs.read_text() == '{"id": "toy-0", "input": null}\n'
