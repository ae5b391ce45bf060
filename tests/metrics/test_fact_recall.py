"""What a summary says of a fact, worked by hand, and which columns the fact counts in."""

import math
from dataclasses import replace

import pytest
from support.waiting import assert_linear

from longsumbench.core import Example, Fact, Scoring
from longsumbench.metrics.fact_recall import FactRecall, split_words, stated_values

FIRMS = ("adler", "york", "wells", "dahl")
BRIDGE = Fact("single", "bridge", "adler", FIRMS, 0.0, 0)

EMPTY = Example("e", None, None, (), (("x",),))  # of facts


def score(prediction: str, *facts: Fact) -> dict[str, float]:
    """Return the columns that apply to an example with the facts."""
    row = FactRecall(Scoring()).score(prediction, replace(EMPTY, facts=facts))
    assert tuple(row) == FactRecall.columns
    return {column: value for column, value in row.items() if not math.isnan(value)}


SUMMARIES = """
adler: the bridge goes to adler .
york: the bridge goes to york .
adler: The BRIDGE goes to Adler.
adler: «the bridge», it seems, goes to (adler), not york!
-: the mill goes to adler .
-: the bridge goes to adlers .
-:
-: adler built the bridge .
york: adler built the bridge and york the mill .
-: is it the bridge? adler
-: the bridge .) adler
-: the bridge / adler
-: the bridge waits . the bridge goes to adler .
york: the bridge goes to york . the bridge goes to adler .
adler: the mill goes to york . the bridge goes to adler .
adler: the bridge a b c d e f g h i adler
-: the bridge a b c d e f g h i j adler
adler: the bridge , a b , c d — e f g ; h i adler
adler: the bridge costs 3.5 million and goes to adler
"""


@pytest.mark.parametrize("line", SUMMARIES.strip().splitlines())
def test_what_a_summary_says(line: str) -> None:
    """The first value after the subject, in the first sentence that names it, within ten words; a slash ends a line."""
    value, _, prediction = line.replace(" / ", "\n").partition(":")
    assert (stated_values(split_words(prediction), BRIDGE) or "-") == value
    assert score(prediction, BRIDGE)["fact_recall"] == (value == "adler")


def test_columns_by_hand() -> None:
    """Each cell is the share of right ones among the facts that belong in it; cells without facts do not apply."""
    facts = (
        BRIDGE,  # right, in the first tenth
        Fact("single", "mill", "york", FIRMS, 0.09, 0),  # wrong, in the first tenth
        Fact("single", "pool", "york", FIRMS, 0.999, 0),  # right, in the last tenth
        Fact("relayed", "market", "wells", FIRMS, 0.3, 0),  # right, one section
        Fact("relayed", "school", "wells", FIRMS, 0.3, 7),  # wrong, farthest
        Fact("silent", "tower", "dahl", FIRMS, 0.3, 3),  # never named
        Fact(
            "silent", "tunnel", "dahl", ("dahl", "york"), 0.3, 9
        ),  # right, beyond the farthest column
    )
    said = "bridge adler, mill dahl, pool york, market wells, school york, tunnel dahl"
    prediction = said.replace(",", " . ")
    assert score(prediction, *facts) == pytest.approx(
        {
            "fact_recall": 4 / 7,
            "fact_recall_single": 2 / 3,
            "fact_recall_relayed": 1 / 2,
            "fact_recall_silent": 1 / 2,
            "fact_recall_single_position_0": 1 / 2,
            "fact_recall_single_position_9": 1.0,
            "fact_recall_relayed_same": 1.0,
            "fact_recall_relayed_other": 0.0,
            "fact_recall_relayed_distance_0": 1.0,
            "fact_recall_relayed_distance_7": 0.0,
            "fact_recall_silent_other": 1 / 2,
            "fact_recall_silent_distance_3": 0.0,
            "fact_recall_chance": (6 / 4 + 1 / 2) / 7,
        }
    )


def test_without_facts_nothing_applies() -> None:
    """An example without facts has no value in any column; one of an unknown kind counts in the whole only."""
    assert score("the bridge goes to adler .") == {}
    fact = Fact("rumour", "bridge", "adler", FIRMS, 0.5, 0)
    assert score("the bridge goes to adler .", fact) == {
        "fact_recall": 1.0,
        "fact_recall_chance": 0.25,
    }


def test_runs_of_punctuation_take_linear_time() -> None:
    """A run of marks is read once, also within a word, where no sentence ends."""
    assert_linear(lambda length: split_words("a" + "." * length + "b"), 100_000)
