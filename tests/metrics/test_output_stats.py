"""What outputs are like as a whole, and what is warned of."""

import random

import pytest

from longsumbench.metrics.output_stats import (
    FEWEST,
    NUM_COMPARED,
    OutputStats,
    collapse_reasons,
    describe_outputs,
    output_warnings,
)

WORDS = [f"word{number}" for number in range(500)]


def texts(count: int, words: int = 40, seed: int = 1) -> list[str]:
    """Return texts of words drawn at random."""
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=words)) for _ in range(count)]


def test_means_and_repetitive_texts_by_hand() -> None:
    """Means are over outputs and over references; a text that says four words over and over is repetitive."""
    stats = describe_outputs(
        ["One two.", "a b c d " * 5], [(("Three words here.",), ("One.", "Two."))]
    )
    assert stats == OutputStats(
        2, 2, 2, 1, 11.0, 2.5, loops=1, empty=0, preambles=0, marked=0, unchanged=0
    )


def test_three_texts_for_twenty_documents() -> None:
    """Copies count once, also where a word or the case is another."""
    three = texts(3)
    outputs = [three[number % 3] for number in range(18)] + [
        three[0].upper(),
        three[1].rsplit(" ", 1)[0] + " other",
    ]
    assert output_warnings(describe_outputs(outputs)) == [
        "nearly identical outputs, 3 of 20 distinct"
    ]


def test_many_outputs_are_compared_in_part() -> None:
    """Of 1,000 outputs 200 are compared, from all over them."""
    stats = describe_outputs(texts(500) + [texts(1)[0]] * 500)
    assert (stats.count, stats.compared, stats.distinct) == (1_000, NUM_COMPARED, 100)


def test_cut_and_repetitive() -> None:
    """Half of the outputs at the limit, or half that repeat themselves, are warned of; fewer are not."""
    outputs = [*texts(10), *(" ".join([one] * 3) for one in texts(10, words=10, seed=2))]
    stats = describe_outputs(outputs)
    assert output_warnings(stats, num_cut=10) == [
        "10 of 20 outputs stopped at the length limit",
        "10 of 20 outputs repeat more than 30 % of their sequences of 4 words",
    ]
    assert collapse_reasons(describe_outputs(outputs[:-1] + texts(1, seed=3))) == []


@pytest.mark.parametrize("outputs", [[], ["the same"] * (FEWEST - 1)])
def test_too_few_outputs(outputs: list[str]) -> None:
    """Fewer than five outputs, or none, are described and not warned of; neither is a record without stats."""
    assert output_warnings(describe_outputs(outputs), num_cut=len(outputs)) == []
    assert output_warnings(None, num_cut=20) == []


def test_empty_outputs() -> None:
    """Empty outputs are called empty, neither nearly identical nor repetitive."""
    stats = describe_outputs(["", " \n"] * 3)
    assert (stats.distinct, stats.repetitive, stats.words) == (1, 0, 0.0)
    assert output_warnings(stats) == collapse_reasons(stats) == ["6 of 6 outputs are empty"]
    assert output_warnings(describe_outputs([*texts(6), "", ""])) == []


def test_loops_are_seen_before_a_system_has_collapsed() -> None:
    """Eight of 20 outputs with a third of their 4-grams said twice are named with a remedy; they show no collapse."""
    looping = [
        f"{text} {' '.join(text.split()[-9:])} {' '.join(text.split()[-9:])}"
        for text in texts(8, words=22)
    ]
    stats = describe_outputs([*looping, *texts(12, seed=2)])
    line = "8 of 20 outputs repeat more than 30 % of their sequences of 4 words"
    assert output_warnings(stats) == [line]
    assert output_warnings(stats, can_block_loops=True) == [
        f"{line}; decode.no_repeat_ngram=4 prevents that"
    ]
    assert (stats.repetitive, collapse_reasons(stats)) == (0, [])


@pytest.mark.parametrize(
    "preamble",
    [
        "Summary: ",
        "**Summary**\n\n",
        "Sure! Here’s the summary you asked for:\n\n",
        "TL;DR: ",
        "## Summary of the article\n",
        "摘要：",
    ],
)
def test_preambles_are_named(preamble: str) -> None:
    """Words about the summary before most outputs are named, and the same words within an output are not."""
    outputs = [preamble + text for text in texts(6)] + texts(4, seed=2)
    (line,) = output_warnings(describe_outputs(outputs))
    assert line.startswith("6 of 10 outputs begin with a preamble")
    inside = [f"{text}. The bill has a summary of costs: 3, 4 and 5." for text in texts(6)]
    plain = ["The summary judgment was: he pays.", "Hereford is in England: it has a cathedral."]
    assert output_warnings(describe_outputs(inside + plain)) == []


@pytest.mark.parametrize(
    "answer",
    [
        "<think>They want a summary.</think>{}",
        "{}<|im_end|>",
        "analysisLet me read.assistantfinal{}",
        "[INST] Sum up. [/INST] {}",
        "{}</s>",
    ],
)
def test_thinking_and_marks_of_chat_formats_are_named(answer: str) -> None:
    """Two outputs of ten are enough, as the marks are scored; texts that have brackets or speak of thinking are not named."""
    plain = [f"{text} [Figure 1] a < b > c, I think: <b>final</b> analysis." for text in texts(8)]
    assert output_warnings(describe_outputs(plain)) == []
    outputs = plain + [answer.format(text) for text in texts(2, seed=2)]
    (line,) = output_warnings(describe_outputs(outputs))
    assert line.startswith("2 of 10 outputs have thinking or marks of a chat format")


@pytest.mark.parametrize(
    "answer",
    [
        "The existing summary is sufficient.",
        "The provided original summary does not need any refinement, as the new context is about salaries.",
        "No changes are needed.",
        "**No further refinement is necessary**: the context adds nothing.",
        "Since the original summary covers it, your current summary remains unchanged.",
    ],
)
def test_answers_that_say_that_nothing_changed_are_named(answer: str) -> None:
    """As `refine` gets them; sentences of summaries about summaries and changes are not named."""
    plain = [
        *texts(6),
        "The original summary judgment was appealed.",
        "No changes in policy were made.",
    ]
    assert output_warnings(describe_outputs(plain)) == []
    (line,) = output_warnings(describe_outputs([*plain, answer]))
    assert line.startswith("1 of 9 outputs are answers that say that nothing changed")
