"""The LCS of many texts with both sides of every cut of one."""

from itertools import pairwise

from hypothesis import given, strategies as st

from longsumbench.rouge.cut_lcs import TextsToMatch

IDS = st.lists(st.integers(0, 4), max_size=9)


def lcs(one: list[int], other: list[int]) -> int:
    """The textbook's recurrence."""
    row = [0] * (len(other) + 1)
    for word in one:
        above = row[:]
        for place, match in enumerate(other):
            row[place + 1] = above[place] + 1 if word == match else max(above[place + 1], row[place])
    return row[-1]


@given(st.lists(IDS, max_size=4), IDS, st.sampled_from([1, 7, 16]))
def test_equals_the_textbook(texts: list[list[int]], target: list[int], times: int) -> None:
    """Every length before and behind every cut is the textbook's, over one machine word and over several."""
    target = target * times
    before, behind = TextsToMatch(texts).lcs_of_cuts(target)
    cuts = range(len(target) + 1)
    assert before.tolist() == [[lcs(text, target[:cut]) for cut in cuts] for text in texts]
    assert behind.tolist() == [[lcs(text, target[cut:]) for cut in cuts] for text in texts]


@given(st.lists(IDS, max_size=4), IDS)
def test_lengths_rise_by_one_at_most(texts: list[list[int]], target: list[int]) -> None:
    """A word more of the target adds 0 or 1, and one less behind the cut takes 0 or 1."""
    before, behind = TextsToMatch(texts).lcs_of_cuts(target)
    for lengths in (before, behind[:, ::-1]):
        assert set(lengths[:, 0].tolist()) <= {0}
        assert {b - a for row in lengths.tolist() for a, b in pairwise(row)} <= {0, 1}


def test_carries_cross_machine_words() -> None:
    """70 times the same word: texts of 60, 66 and 70 of them reach over the 64th bit."""
    before, behind = TextsToMatch([[3] * 60, [3] * 66, [1, *[3] * 70]]).lcs_of_cuts([3] * 70)
    assert before[:, -1].tolist() == behind[:, 0].tolist() == [60, 66, 70]
    assert before[:, 65].tolist() == [60, 65, 65]
