"""Student's t in plain Python, compared with scipy's."""

import pytest
import scipy.special
from hypothesis import given, strategies as st

from longsumbench.metrics.student import student_cdf, student_quantile

degrees_of_freedom = st.floats(1, 1e5)


@given(degrees=degrees_of_freedom, t=st.floats(-50, 50))
def test_probabilities_are_those_of_scipy(degrees: float, t: float) -> None:
    """For any degrees of freedom, also broken ones, and in both tails down to the smallest probabilities."""
    assert student_cdf(degrees, t) == pytest.approx(float(scipy.special.stdtr(degrees, t)), rel=1e-8, abs=1e-200)


@given(degrees=degrees_of_freedom, probability=st.floats(1e-6, 1 - 1e-6))
def test_quantiles_are_those_of_scipy(degrees: float, probability: float) -> None:
    """On both sides of the middle, and for the heavy tails of few degrees of freedom."""
    expected = float(scipy.special.stdtrit(degrees, probability))
    assert student_quantile(degrees, probability) == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_by_hand() -> None:
    """With one degree of freedom it is the Cauchy distribution: a quarter lies above 1; the middle is 0."""
    assert student_cdf(1, 1) == pytest.approx(0.75)
    assert student_quantile(1, 0.75) == pytest.approx(1)
    assert student_cdf(7, 0) == 0.5
