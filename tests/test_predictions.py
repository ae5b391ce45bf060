"""Summaries on disk: in the data's order, never lost, never written twice."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toys import ToySplit

from longsumbench.configuration import Decoding
from longsumbench.documents import Cut, Example, Truncation
from longsumbench.predictions import length_buckets, read_summaries, summarize_split, to_line
from longsumbench.system import Summary, System

SPLIT = ToySplit.of("test", 10)


class Counting(System):
    """Writes the id, and what was beside it in the batch; counts its batches."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.batches: list[list[str]] = []
        self.fails_at = fails_at

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield an odd text for each example."""
        if len(self.batches) == self.fails_at:
            raise RuntimeError("stopped")
        self.batches.append([example.id for example in examples])
        for example in examples:
            ledger = Truncation(9, 8, (Cut("length", 2, 1),))
            yield Summary(example.id, f"{self.batches[-1]}\u2028odd\x85 {example.id}", ledger, False, 7)


@given(st.lists(st.integers(0, 30)), st.integers(1, 7))
def test_buckets_hold_every_index_once_longest_first(lengths: list[int], batch_size: int) -> None:
    """Buckets are full but for the last, hold every index once, and fall in length; equal lengths keep their order."""
    buckets = length_buckets(lengths, batch_size)
    flat = [index for bucket in buckets for index in bucket]
    assert sorted(flat) == list(range(len(lengths)))
    assert flat == sorted(flat, key=lambda index: (-lengths[index], index))
    assert all(len(bucket) == batch_size for bucket in buckets[:-1])
    assert all(buckets)


def test_summaries_come_in_the_order_of_the_data(tmp_path: Path) -> None:
    """File and answer are in the data's order, whatever the order of the batches; each line begins with id and text."""
    summaries = summarize_split(Counting(), SPLIT, Decoding(batch_size=3), tmp_path / "p.jsonl")
    assert [one.id for one in summaries] == SPLIT.ids
    assert read_summaries(tmp_path / "p.jsonl") == summaries
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text(encoding="utf-8").split("\n") if line]
    assert [list(row)[:2] for row in rows] == [["id", "prediction"]] * len(SPLIT)


def test_only_the_first_examples_are_summarized(tmp_path: Path) -> None:
    """`decode.limit` takes the first examples of the split; one beyond its size takes all."""
    few = summarize_split(Counting(), SPLIT, Decoding(limit=4), tmp_path / "few.jsonl")
    assert [one.id for one in few] == SPLIT.ids[:4]
    assert len(summarize_split(Counting(), SPLIT, Decoding(limit=99), tmp_path / "all.jsonl")) == len(SPLIT)


def test_every_field_survives(tmp_path: Path) -> None:
    """A summary with every field set, or none, is read as it was written, odd line separators included."""
    whole = Summary("a", "x\u2028y\u0085z\n\t“ü” 🦜", Truncation(3, 2, (Cut("length", 1, 1),)), False, 12)
    bare = Summary("b", "")
    (tmp_path / "p.jsonl").write_text(to_line(whole) + to_line(bare), encoding="utf-8")
    assert read_summaries(tmp_path / "p.jsonl") == [whole, bare]


@pytest.mark.parametrize("stopped_after", [0, 1, 3])
def test_a_resumed_run_writes_what_an_undisturbed_one_does(stopped_after: int, tmp_path: Path) -> None:
    """Finished batches are not done again, the others with the same neighbours; the file is the same, byte by byte."""
    undisturbed, resumed = Counting(), Counting()
    summarize_split(undisturbed, SPLIT, Decoding(batch_size=3), tmp_path / "whole.jsonl")
    with pytest.raises(RuntimeError, match="stopped"):
        summarize_split(Counting(stopped_after), SPLIT, Decoding(batch_size=3), tmp_path / "p.jsonl")
    summarize_split(resumed, SPLIT, Decoding(batch_size=3), tmp_path / "p.jsonl")
    assert resumed.batches == undisturbed.batches[stopped_after:]
    assert (tmp_path / "p.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_nothing_is_summarized_twice(tmp_path: Path) -> None:
    """When all summaries are there, the system is not asked."""
    summaries = summarize_split(Counting(), SPLIT, Decoding(batch_size=3), tmp_path / "p.jsonl")
    assert summarize_split(Counting(fails_at=0), SPLIT, Decoding(batch_size=3), tmp_path / "p.jsonl") == summaries


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_line_costs_its_batch_only(cut: int, tmp_path: Path) -> None:
    """A file cut anywhere in its last line, within a character too, ends as if it had not been."""
    summarize_split(Counting(), SPLIT, Decoding(batch_size=1), tmp_path / "p.jsonl")
    whole = (tmp_path / "p.jsonl").read_bytes()
    (tmp_path / "p.jsonl").write_bytes(whole[:-cut])
    again = Counting()
    summarize_split(again, SPLIT, Decoding(batch_size=1), tmp_path / "p.jsonl")
    assert (tmp_path / "p.jsonl").read_bytes() == whole
    assert again.batches == ([[SPLIT.ids[-1]]] if cut > 1 else [])  # without its line break a line is still whole


@pytest.mark.parametrize("line", ["", "3", "null", "{}", '{"id": "a"}', "[]", "\x00\x00", '{"id": "a", "prediction"'])
def test_what_is_no_summary_is_left_out(line: str, tmp_path: Path) -> None:
    """A line that is no summary is not taken for one."""
    (tmp_path / "p.jsonl").write_text(f"{line}\n{to_line(Summary('b', 'text'))}", encoding="utf-8")
    assert [one.id for one in read_summaries(tmp_path / "p.jsonl")] == ["b"]
