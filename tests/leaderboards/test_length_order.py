"""Whether the order of systems is that of the length of their outputs, and what a table then shows."""

from collections.abc import Mapping, Sequence
from itertools import permutations

import numpy as np
import pytest
import scipy.stats
from support.run_records import record

from longsumbench.leaderboards.significance import ComparableRows, comparable_rows
from longsumbench.metrics.aggregate import ScoreTable
from longsumbench.metrics.output_facts import OutputFacts
from longsumbench.metrics.rank_statistics import spearman
from longsumbench.views.columns import choose_columns, columns_of, list_columns
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.notes import describe_lengths, footnotes

# InfiniteBench: the words and R-Lsum of six systems, of which one pair is not in order
WORDS = (707, 547, 344, 218, 195, 161)
ROUGE = (39.5, 37.1, 30.8, 17.7, 21.4, 17.5)
COLUMNS = {"R-1\nprecision", "R-1\nrecall"}


def block_of(words: Sequence[float], means: Sequence[float], noise: float = 1.0) -> ComparableRows:
    """Return rows whose scores of examples differ from their means by chance, but not in the mean."""
    draw = np.random.default_rng(1)
    names = [str(number) for number in range(60)]
    runs, scores = [], {}
    for place, (length, mean) in enumerate(zip(words, means, strict=True)):
        facts = OutputFacts(60, 60, 60, 0, words=length, reference_words=857.0)
        run = record(f"system{place}", mean, outputs=facts)
        errors = draw.normal(0, noise, 60)
        values = (mean + errors - errors.mean()) / 100
        scores[run.run_id] = ScoreTable(names, {"rougeLsum_f": values})
        runs.append(run)
    (block,) = comparable_rows(runs, scores)
    return block


def test_an_order_by_length_is_said_and_shown() -> None:
    """Six systems with one pair in another order: Spearman's ρ is 0.94; words and precision stand by the scores."""
    block = block_of(WORDS, ROUGE)
    assert block.length_order is not None
    correlation, low, high = block.length_order
    assert correlation == pytest.approx(scipy.stats.spearmanr(WORDS, ROUGE).statistic)
    assert (round(low, 2), round(high, 2)) == (0.83, 0.94)
    notes = footnotes(block, {"rougeLsum"})
    assert any("of words and R-Lsum 0.94 (0.83 to 0.94 over examples)" in line for line in notes)
    assert describe_lengths(block.rows) not in notes
    headings = leaderboard_block(block, [block]).columns
    assert set(headings) >= COLUMNS
    assert headings.count("words /\nreference") == 1


NO_ORDER: Mapping[str, tuple[Sequence[float], Sequence[float], float]] = {
    "five systems, one pair of which is not in order": (WORDS[:5], ROUGE[:5], 1.0),
    "another order": (WORDS, (20, 39, 25, 30, 18, 31), 1.0),
    "lengths that hardly differ": ([100 + words / 20 for words in WORDS], ROUGE, 1.0),
    "an order that other examples would not have": (WORDS, [20 + mean / 50 for mean in ROUGE], 9.0),
    "unknown lengths": ((*WORDS[:5], 0), ROUGE, 1.0),
}


@pytest.mark.parametrize("case", NO_ORDER)
def test_no_order_is_claimed_without_evidence(case: str) -> None:
    """Too few systems, chance, equal lengths or noisy scores: no sentence, and no more columns."""
    block = block_of(*NO_ORDER[case])
    assert block.length_order is None
    assert not any("rank correlation" in line for line in footnotes(block, {"rougeLsum"}))
    assert not COLUMNS & set(leaderboard_block(block, [block]).columns)


@pytest.mark.parametrize("systems", [5, 6, 7])
def test_few_random_orders_have_such_a_correlation(systems: int) -> None:
    """What is required, 1.96 / √(systems − 1), is exceeded by at most 2.5 % of all orders of so many systems."""
    orders = np.array(list(permutations(range(systems))), dtype=float)
    is_as_large = spearman(orders, orders[0]) >= 1.96 / np.sqrt(systems - 1)
    assert is_as_large.mean() <= 0.025


def test_lengths_are_a_group_of_columns() -> None:
    """--columns lengths means words, precision and recall; --columns help lists it."""
    columns = columns_of([record("lead", 30)])
    names = [column.name for column in choose_columns(["rouge1", "lengths"], columns)]
    assert names == ["rouge1", "length", "rouge1_p", "rouge1_r"]
    assert "lengths: with R-1 precision and recall" in list_columns(columns)
