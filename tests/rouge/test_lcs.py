"""The LCS of many texts with every prefix of a target."""

from hypothesis import given, strategies as st

from longsumbench.rouge.overlap import lengths_of_prefixes

IDS = st.lists(st.integers(0, 4), max_size=9)


def lcs(one: list[int], other: list[int]) -> int:
    """The textbook's recurrence."""
    row = [0] * (len(other) + 1)
    for word in one:
        above = row[:]
        for place, match in enumerate(other):
            row[place + 1] = (
                above[place] + 1 if word == match else max(above[place + 1], row[place])
            )
    return row[-1]


@given(st.lists(IDS, min_size=1, max_size=4), IDS, st.sampled_from([1, 7, 16]))
def test_equals_the_textbook(texts: list[list[int]], target: list[int], times: int) -> None:
    """The length for every prefix is the textbook's, for short targets and long ones, and of each target alone."""
    target = target * times
    lengths, of_none = lengths_of_prefixes(texts, [target, []])
    assert lengths.tolist() == [
        [lcs(text, target[:cut]) for text in texts] for cut in range(len(target) + 1)
    ]
    assert of_none.tolist() == [[0] * len(texts)]
