"""The sentence of benchmarks/fact_answers.py, on outcomes made up so that other ones would be false."""

import math
from collections.abc import Iterable

import fact_answers as program
import pandas as pd
import pytest
from fact_matching import read_written

from longsumbench.core import Example, registry


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("right", "errs about 50.0 % (15.0–85.0), without any text about 75.0 %, and the matcher"),
        ("missing", "errs about 25.0 % (4.6–69.9), without any text about 50.0 %, and the matcher"),
    ],
)
def test_readers_are_compared_with_labels_and_the_matcher(label: str, said: str) -> None:
    """Errors are facts found wrongly or missed; of those on which the matcher differs, its right ones are counted."""
    table = pd.DataFrame(
        {
            "source": "made up",
            "kind": "date",
            "label": [label, "right", "wrong", "missing"],
            "matcher": ["right", "right", "missing", "missing"],
            "reader: R": ["missing", "right", "right", "wrong"],
            "guess: R": ["wrong", "wrong", "right", "wrong"],
        }
    )
    [sentence] = program.sentences_of(table)
    assert said in sentence
    matcher_right = 2 if label == "right" else 1
    assert sentence.endswith(
        f"differ about 2; there, the label is the matcher's in {matcher_right}."
    )
    rows = {row[1]: row[2:6] for row in program.describe(table) if row[0] == "all"}
    assert rows["matcher"] == [4, 2 if label == "right" else 1, 0 if label == "right" else 1, 0]


def test_what_the_reader_alone_has_is_named_by_kind() -> None:
    """Facts count as agreed if both have them or neither; what the matcher alone has is no gain of the reader."""
    counts = {
        ("date", True, True): 2,
        ("date", False, False): 4,
        ("name", True, False): 1,
        ("negation", False, True): 3,
    }
    assert program.sentence_of_runs(counts) == (
        "Of 10 facts, reader and matcher agree about 6. The reader alone is right about 3: 3 of the kind `negation`."
    )
    del counts["negation", False, True]
    assert program.sentence_of_runs(counts).endswith("right about 0: none.")


class Silent:
    """A metric whose reader answers nothing at all."""

    def __init__(self, scoring: object) -> None:
        pass

    def prepare(self, items: Iterable[tuple[str, Example]]) -> None:
        """Ask nothing."""

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Return no score."""
        columns = ("answers", "answers_wrong", "answers_missing", "answers_guessed")
        return dict.fromkeys(columns, math.nan)


def test_a_reader_without_an_answer_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no score counts as missing."""
    monkeypatch.setattr(type(registry.metrics), "load", lambda metrics, name: Silent)
    table = program.ask_reader("R", "FILE", list(read_written())[:3])
    assert set(table["reader: R"]) == {"missing"}
    assert set(table["guess: R"]) == {"wrong"}
