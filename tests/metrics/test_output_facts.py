"""What outputs are like as a whole, and what is warned of."""

import random

import pytest

from longsumbench.metrics.output_facts import FEWEST, NUM_COMPARED, OutputFacts, describe_outputs, output_warnings

WORDS = [f"word{number}" for number in range(500)]


def texts(count: int, words: int = 40, seed: int = 1) -> list[str]:
    """Return texts of words drawn at random."""
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=words)) for _ in range(count)]


def test_means_and_repetitive_texts_by_hand() -> None:
    """Means are over outputs and over references; a text that says four words over and over is repetitive."""
    facts = describe_outputs(["One two.", "a b c d " * 5], [(("Three words here.",), ("One.", "Two."))])
    assert facts == OutputFacts(count=2, compared=2, distinct=2, repetitive=1, words=11.0, reference_words=2.5)


def test_three_texts_for_twenty_documents() -> None:
    """Copies count once, also where a word or the case is another."""
    three = texts(3)
    outputs = [three[number % 3] for number in range(18)] + [three[0].upper(), three[1].rsplit(" ", 1)[0] + " other"]
    assert output_warnings(describe_outputs(outputs)) == ["nearly identical outputs, 3 of 20 distinct"]


def test_many_outputs_are_compared_in_part() -> None:
    """Of 1,000 outputs 200 are compared, from all over them."""
    facts = describe_outputs(texts(500) + [texts(1)[0]] * 500)
    assert (facts.count, facts.compared, facts.distinct) == (1_000, NUM_COMPARED, 100)


def test_cut_and_repetitive() -> None:
    """Half of the outputs at the limit, or half that repeat themselves, are warned of; fewer are not."""
    outputs = [*texts(10), *(" ".join([one] * 3) for one in texts(10, words=10, seed=2))]
    facts = describe_outputs(outputs)
    assert output_warnings(facts, num_cut=10) == [
        "10 of 20 outputs stopped at the length limit",
        "10 of 20 outputs repeat themselves",
    ]
    assert output_warnings(describe_outputs(outputs[:-1] + texts(1, seed=3)), num_cut=9) == []


@pytest.mark.parametrize("outputs", [[], ["the same"] * (FEWEST - 1)])
def test_too_few_outputs(outputs: list[str]) -> None:
    """Fewer than five outputs, or none, are described and not warned of; neither is a record without facts."""
    assert output_warnings(describe_outputs(outputs), num_cut=len(outputs)) == []
    assert output_warnings(None, num_cut=20) == []


def test_empty_outputs() -> None:
    """Empty outputs are equal to each other, and not repetitive."""
    facts = describe_outputs([""] * 8)
    assert (facts.distinct, facts.repetitive, facts.words) == (1, 0, 0.0)
