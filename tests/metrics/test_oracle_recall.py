"""Which of the oracle's sentences a summary copies, and from where: worked by hand, and what must hold of any texts."""

import math

import pytest

from longsumbench.core import Document, Example, Scoring, Section, Sentences
from longsumbench.metrics.oracle_recall import OracleRecall
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import oracle_sentences

# Twenty words: two in a tenth of the source
SOURCE = (
    "Red foxes dig dens.",
    "Hens hide.",
    "Snow fell on the hills.",
    "Nobody saw it.",
    "Cars pass by.",
    "Old men rest.",
)
REFERENCES = (("Red foxes dig dens.", "Cars pass by."),)


def example(source: Sentences = SOURCE, references: tuple[Sentences, ...] = REFERENCES) -> Example:
    documents = tuple(
        Document(None, (Section(None, (part,)),)) for part in (source[:2], source[2:])
    )
    return Example("e", None, None, documents, references)


def score(prediction: str, one: Example) -> dict[str, float]:
    """Return the columns that apply."""
    scores = OracleRecall(Scoring()).score(prediction, one)
    assert set(scores) == set(OracleRecall.columns)
    return {column: value for column, value in scores.items() if not math.isnan(value)}


@pytest.mark.parametrize(
    ("prediction", "recall", "foxes", "cars", "places"),
    [
        (
            "red foxes  DIG dens.\nHens hide.",
            0.5,
            1,
            0,
            {0: 0.5, 2: 0.5},
        ),  # case and blanks are ignored
        ("Red foxes dig dens. Cars pass by.", 1, 1, 1, {0: 0.5, 7: 0.5}),  # both on one line
        ("Red foxes dig dens.\nCars pass", 0.5, 1, 0, {0: 1}),  # a cut sentence is none
        (
            "Cars pass by.\nCars pass by.\nOld men rest.\nNew words.",
            0.5,
            0,
            1,
            {7: 2 / 3, 8: 1 / 3},
        ),
        ("Foxes dig.", 0, 0, 0, {}),
        ("", 0, 0, 0, {}),
    ],
)
def test_worked_recall(
    prediction: str, recall: float, foxes: float, cars: float, places: dict[int, float]
) -> None:
    """The oracle takes the foxes, before whom there is no word, and the cars, before whom there are 14 of 20."""
    assert oracle_sentences(example(), SuiteScorer(Scoring())) == [0, 4]
    tenths = (
        {f"extracted_position_{tenth}": places.get(tenth, 0.0) for tenth in range(10)}
        if places
        else {}
    )
    recalls = {"oracle_recall_position_0": foxes, "oracle_recall_position_7": cars}
    assert score(prediction, example()) == {"oracle_recall": recall, **recalls, **tenths}


def test_a_line_is_compared_before_it_is_split() -> None:
    """A source sentence that the splitter would cut in two is found as a line, but not inside another line."""
    one = example(("It fell. Then rose.", "Hens hide."), (("It fell. Then rose.",),))
    assert score("It fell. Then rose.\nHens hide.", one)["oracle_recall"] == 1.0
    assert score("It fell. Then rose. Hens hide.", one)["oracle_recall"] == 0.0


def test_without_oracle_sentences_only_places_apply() -> None:
    """If nothing in the source is like the reference, there is no recall; of no copied sentence, there is no place."""
    other = example(references=(("Nothing alike.",),))
    assert score("Hens hide.", other) == {
        f"extracted_position_{tenth}": float(tenth == 2) for tenth in range(10)
    }
    assert score("New.", other) == score("", example((), REFERENCES)) == {}
