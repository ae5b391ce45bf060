"""Student's t distribution in plain Python: importing scipy takes longer than a table of results."""

import math
from functools import cache
from statistics import NormalDist

_TINY = 1e-300  # in place of 0, which nothing can be divided by
_EQUAL = 1e-15  # relative difference of two numbers that are equal but for rounding
_MOST_STEPS = 10_000


def student_cdf(degrees: float, t: float) -> float:
    """Return the probability of a value of at most `t`, with `degrees` of freedom."""
    square = t * t
    tail = _beta_share(degrees / 2, 0.5, degrees / (degrees + square), square / (degrees + square)) / 2
    return tail if t < 0 else 1 - tail


@cache
def student_quantile(degrees: float, probability: float) -> float:
    """Return the value that is exceeded with a probability of 1 − `probability`, from 0 to 1.

    Newton's method from the normal quantile: that is nearer to 0, from where no step goes too far.
    """
    t = NormalDist().inv_cdf(probability)
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    for _ in range(_MOST_STEPS):
        density = math.exp(scale - (degrees + 1) / 2 * math.log1p(t * t / degrees))
        step = (probability - student_cdf(degrees, t)) / density
        t += step
        if abs(step) <= 1e-13 * abs(t):
            break
    return t


def _beta_share(a: float, b: float, x: float, rest: float) -> float:
    """Return the regularized incomplete beta function I_x(a, b); `rest` is 1 − x.

    The continued fraction converges fast where x is below the mean; elsewhere it is that of 1 − x.
    """
    if x <= 0 or rest <= 0:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(b, a, rest, x)
    scale = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(scale + a * math.log(x) + b * math.log(rest)) / (a * _continued_fraction(a, b, x))


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Return 1 + d₁/(1 + d₂/(1 + …)) of the incomplete beta function, by Lentz's method."""
    value, upper, lower = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        half = step // 2
        if step % 2:
            term = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            term = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        lower = 1 / ((1 + term * lower) or _TINY)
        upper = (1 + term / upper) or _TINY
        value *= upper * lower
        if abs(upper * lower - 1) < _EQUAL:
            break
    return value
