"""What is wrong with outputs is found, counted and named, and nothing is said of texts that are all right."""

import pytest

from longsumbench.metrics.evaluate import RawText
from longsumbench.outputs.files import ScoredPair
from longsumbench.outputs.score import find_warnings, split_sides

GOOD = (
    "The hearing was held on Monday. Two members spoke against the plan, and one for it.",
    "A survey of 40 farms shows that yields fell by a tenth. The authors blame the dry spring.",
    "Trains between both cities will stop in March! Buses run instead.",
    "Is it safe? The agency says so. It asks for another trial, though.",
)


def message(
    predictions: tuple[RawText, ...] = GOOD,
    references: tuple[RawText, ...] = GOOD,
    drops: bool = True,
) -> list[str]:
    """Return what is said of some texts; their ids are letters from a on."""
    pairs: list[ScoredPair] = []
    for prediction, reference in zip(predictions, references, strict=True):
        pairs.append(ScoredPair(chr(97 + len(pairs)), prediction, (reference,)))
    return find_warnings(*split_sides(pairs), drops=drops)


def lists(texts: tuple[str, ...]) -> tuple[RawText, ...]:
    """Return the texts as lists of their sentences, cut at full stops."""
    return tuple(tuple(f"{part.strip('. ')}." for part in text.split(". ")) for text in texts)


@pytest.mark.parametrize(
    ("mark", "word", "advice"),
    [
        ("<n>", "n", "replace it by a"),
        ("</s>", "s", "remove it"),
    ],
)
@pytest.mark.parametrize("as_lists", [False, True])
def test_literal_marks(mark: str, word: str, advice: str, as_lists: bool) -> None:
    """A mark is reported with the texts that hold it, the first of them, the word it becomes, and what to do."""
    marked: list[RawText] = [*GOOD]
    for place in (1, 2):
        text = f"{GOOD[place]} {mark} It ends here."
        marked[place] = (text,) if as_lists else text
    predictions = lists(GOOD) if as_lists else GOOD
    (line,) = (line for line in message(predictions, tuple(marked)) if line.startswith("literal"))
    start = f"literal {mark} in 2 of 4 references (e.g. 'b')"
    assert line.startswith(f"{start}: it is scored as '{word}', ")
    assert advice in line


@pytest.mark.parametrize("swapped", [False, True])
def test_one_side_is_not_split(swapped: bool) -> None:
    """One-item lists against lists of sentences cost 20 to 30 points; unsplit strings are split by the splitter."""
    whole: tuple[RawText, ...] = tuple((text,) for text in GOOD)
    name = "references" if swapped else "predictions"
    for unsplit, effect in (
        (whole, "one-item lists are scored as one sentence"),
        (GOOD, "the splitter splits"),
    ):
        for split in (lists(GOOD), tuple(text.replace(". ", ".\n") for text in GOOD)):
            (line,) = message(split, unsplit) if swapped else message(unsplit, split)
            assert line.startswith(f"4 of 4 {name} (e.g. 'a') are one unsplit line")
            assert effect in line


def test_a_lower_cased_side() -> None:
    """It is reported where the other side has capitals, and only there."""
    lower = tuple(text.lower() for text in GOOD)
    (line,) = message(lower, GOOD)
    assert line.startswith(
        "4 of 4 predictions (e.g. 'a') are lower-cased, the references are not: words still"
    )
    assert [line.partition(" (")[0] for line in message(GOOD, lower)] == ["4 of 4 references"]
    assert message(lower, lower) == []


def test_other_scripts() -> None:
    """By hand: of 4 Cyrillic and 6 Latin letters and digits 40 % are dropped; the unicode tokenizer drops none."""
    mixed = ("Ab 12 Жёлт ef.", *GOOD[1:])
    (line,) = message(mixed)
    assert line.startswith(
        "the tokenizer drops 40 % of the letters and digits of 1 of 4 predictions (e.g. 'a')"
    )
    assert line.endswith("--tokenizer unicode keeps the others")
    assert message(mixed, drops=False) == []
    assert (
        message(tuple(text.replace("-", "—").replace(".", "…") + "“”." for text in GOOD)) == []
    )  # no letters
