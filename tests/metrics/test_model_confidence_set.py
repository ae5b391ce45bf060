"""Hansen's model confidence set: against its definition step by step, by hand, and by simulation."""

import numpy as np
import pytest
from arch.bootstrap import MCS
from hypothesis import given, strategies as st

from longsumbench.errors import DataError
from longsumbench.metrics import statistics
from longsumbench.metrics.statistics import model_confidence_set, resampled_means

SEEDS = st.integers(0, 2**32)


def by_definition(scores: np.ndarray, resamples: int, seed: int) -> list[float]:
    """Follow Hansen, Lunde & Nason (2011), §3: losses, d_ij, t_ij, the T_R test, e_R, and p-values."""
    losses = -scores
    mean, count = losses.mean(axis=0), losses.shape[1]
    resampled = -resampled_means(scores, resamples, seed)
    p_values, model, largest = [1.0] * count, list(range(count)), 0.0
    while len(model) > 1:
        pairs = [(i, j) for i in model for j in model if i != j]
        centred = {
            (i, j): [row[i] - row[j] - (mean[i] - mean[j]) for row in resampled] for i, j in pairs
        }
        error = {pair: float(np.mean(np.square(values))) ** 0.5 for pair, values in centred.items()}
        t = {(i, j): (mean[i] - mean[j]) / error[i, j] for i, j in pairs}
        statistic = max(map(abs, t.values()))
        simulated = [
            max(abs(centred[pair][b]) / error[pair] for pair in pairs) for b in range(resamples)
        ]
        largest = max(largest, sum(value >= statistic for value in simulated) / resamples)
        eliminated = max(
            model, key=lambda i: max(value for pair, value in t.items() if pair[0] == i)
        )
        p_values[eliminated] = largest
        model.remove(eliminated)
    return p_values


def systems(scores: np.ndarray) -> list[np.ndarray]:
    return list(scores.T[:, :, None])


@given(SEEDS, st.integers(2, 6), st.integers(5, 40))
def test_it_follows_the_definition(seed: int, count: int, examples: int) -> None:
    """Every p-value is that of the paper's steps in plain loops, on the same resamples."""
    draw = np.random.default_rng(seed)
    scores = (
        draw.normal(0, 1, (examples, count))
        + draw.normal(0, 1, (examples, 1))
        + np.linspace(0, 0.5, count)
    )
    assert model_confidence_set(systems(scores), 60, 3) == pytest.approx(
        by_definition(scores, 60, 3)
    )


@pytest.mark.parametrize("seed", range(5))
def test_it_equals_arch(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-values and members are those of arch's method R on the same resamples; two are almost equal, one is far below.

    arch fails at equal means, and does not count resamples with an equal statistic; random scores have neither.
    """
    draw = np.random.default_rng(seed)
    best = draw.uniform(0, 1, 40)
    others = draw.uniform(0, 1, (4, 40)) - [[0.0], [0.1], [0.2], [3.0]]
    scores = np.stack(
        [
            best,
            best[::-1] - 1e-6,
            *(other - max(0, other.mean() - best.mean() + 0.01) for other in others),
        ],
        1,
    )
    arch = MCS(-scores, 0.05, reps=400, block_size=1, method="R", bootstrap="circular", seed=seed)
    arch.compute()
    resampled = scores[np.array(arch._bootstrap_indices)].mean(axis=1)
    monkeypatch.setattr(statistics, "resampled_means", lambda *_: resampled)
    p_values = model_confidence_set(systems(scores), 400)
    assert arch.pvalues["Pvalue"].sort_index().tolist() == p_values.tolist()
    assert arch.included == np.flatnonzero(p_values > 0.05).tolist()
    assert {0, 1} <= set(arch.included)
    assert 5 not in arch.included


def test_two_systems_by_hand() -> None:
    """Differences −1 and 3 have the resampled means −1, 1, 1, 3: half are as far from their mean 1 as 1 is from 0."""
    first, second = np.array([[0.0], [5.0]]), np.array([[1.0], [2.0]])
    best, other = model_confidence_set([first, second], 20_000)
    assert (best, other) == (1, pytest.approx(0.5, abs=0.02))


def test_copies_stay_and_a_constant_loss_leaves() -> None:
    """Equal systems are all in the set with p 1; one that is worse on every example by the same amount has p 0."""
    values = np.random.default_rng(0).uniform(0, 1, (50, 1))
    assert model_confidence_set([values, values, values - 0.1, values]).tolist() == [1, 1, 0, 1]
    assert model_confidence_set([values]).tolist() == [1]


def test_a_set_that_marks_against_the_best_miss() -> None:
    """Of many equal systems the apparent best is a matter of luck: the set has all of them in 95 % of the cases."""
    draw, complete = np.random.default_rng(11), 0
    for _ in range(200):
        scores = draw.normal(0, 1, (60, 8)) + draw.normal(0, 1, (60, 1))
        complete += model_confidence_set(systems(scores), 300).min() >= 0.05
    assert complete >= 0.9 * 200


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_best_is_in_the_set_over_seeds(spread: float) -> None:
    """Of systems with five seeds, whose runs differ by chance, the best is in the set in about 95 % of the cases."""
    draw, covered = np.random.default_rng(12), 0
    for _ in range(150):
        runs = [draw.normal(0, 1, (60, 5)) + draw.normal(0, spread, (1, 5)) for _ in range(4)]
        covered += (
            model_confidence_set(runs, 300)[0] >= 0.05
        )  # all are equal, so any may be called the best
    assert covered >= 0.9 * 150


def test_scores_must_be_finite() -> None:
    """No scores, and scores that are no numbers, are errors."""
    with pytest.raises(DataError, match="at least one"):
        model_confidence_set([np.zeros((0, 1)), np.zeros((0, 1))])
    with pytest.raises(DataError, match="finite"):
        model_confidence_set([np.array([[np.nan]]), np.array([[1.0]])])
