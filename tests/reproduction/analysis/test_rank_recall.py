"""How much of the reference the best paragraphs say: recalls, the table, and `longsumbench stats`."""

from pathlib import Path

import numpy as np
import pytest
from support.commands import Command
from support.toys import write_jsonl

from longsumbench.core import Scoring
from longsumbench_reproduction.analysis.rank_recall import KEPT, best_recalls, score_orders


def test_worked_recall() -> None:
    """Of the reference 1 2 3 4 the first five texts hold 1, 3, 2 in this order, so 2 of 4; the sixth adds 2 3 4: all.

    Texts: 1 / 3 / 9 / 2 / 9, then 2 3 4. The longest common subsequences are 1 3 or 1 2, then 1 2 3 4.
    """
    assert best_recalls([[1], [3], [9], [2], [9], [2, 3, 4]], [1, 2, 3, 4]) == [0.5, 1.0, 1.0, 1.0]
    assert best_recalls([[2], [1]], [1, 2]) == [0.5] * 4  # the order of reading counts
    assert best_recalls([], [1]) == best_recalls([[1]], []) == [0.0] * 4


def test_examples_without_a_reference_are_counted(tmp_path: Path) -> None:
    """They are in no mean; the table says how many they are, and of what the others are made."""
    from support.toys import ToySplit, example as toy

    texts = [toy(number) for number in range(4)]
    split = ToySplit("test", [*texts[:3], type(texts[3])("x", None, None, texts[3].documents, ())])
    found = score_orders("toys", split, {"none": [[0]] * 4}, "paragraph", Scoring())
    assert found.without == 1
    assert found.recalls["none"].shape == (3, len(KEPT))
    assert np.allclose(found.recalls["none"], 1.0)  # the summary is the paragraph's first sentence
    assert "3 examples of 1 to 1 paragraphs (median 1), 24 words each" in found.render()
    assert "1 example left out: no reference" in found.render()


WRONG = """
2 rank= → name rankers, as in rank=tfidf,lstm
2 rank=lstm ranker.unit=section → ranker.unit follows unit: set unit=section
2 rank=tfidf ranker=lstm → ranker=lstm is not a group of settings
2 rank=tfidf TEXTS → example 'toy-6' has no title and no query, and rank=tfidf needs one
3 rank=lstm TEXTS → learns from a training split, and the dataset has none
"""


@pytest.mark.parametrize("line", WRONG.strip().splitlines())
def test_what_cannot_be_done_is_said(line: str, tmp_path: Path, run_command: Command) -> None:
    """Bad words and unfit texts end with their exit code and one line, before anything is printed."""
    words, message = line.split(" → ")
    texts = f"dataset=jsonl dataset.path={write_jsonl(tmp_path / 'texts', train=0)}"
    code, *typed = words.replace("TEXTS", texts).split()
    output = run_command(int(code), "stats", *typed)
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert message in output.err
