"""Hansen's model confidence set: against arch, by hand, and by simulation."""

import numpy as np
import pytest
from arch.bootstrap import MCS

from longsumbench.metrics import statistics
from longsumbench.metrics.statistics import model_confidence_set


def systems(scores: np.ndarray) -> list[np.ndarray]:
    return list(scores.T[:, :, None])


@pytest.mark.parametrize("seed", range(5))
def test_it_equals_arch(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """P-values and members are those of arch's method R on the same resamples; two are almost equal, one is far below.

    arch fails at equal means, and does not count resamples with an equal statistic; random scores have neither.
    """
    draw = np.random.default_rng(seed)
    best = draw.uniform(0, 1, 40)
    others = draw.uniform(0, 1, (4, 40)) - [[0.0], [0.1], [0.2], [3.0]]
    worse = [other - max(0, other.mean() - best.mean() + 0.01) for other in others]
    scores = np.stack([best, best[::-1] - 1e-6, *worse], 1)
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


@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_best_is_in_the_set_over_seeds(spread: float) -> None:
    """Of systems with five seeds, whose runs differ by chance, the best is in the set in about 95 % of the cases."""
    draw, covered = np.random.default_rng(12), 0
    for _ in range(150):
        runs = [draw.normal(0, 1, (60, 5)) + draw.normal(0, spread, (1, 5)) for _ in range(4)]
        # all are equal, so any may be called the best
        covered += model_confidence_set(runs, 300)[0] >= 0.05
    assert covered >= 0.9 * 150
