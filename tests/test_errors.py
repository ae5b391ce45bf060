"""The exception tree."""

import pickle

import pytest

from longsumbench.errors import (
    DataError,
    EnvironmentProblem,
    PointsFailed,
    SuiteError,
    UnknownName,
    UsageError,
    did_you_mean,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (PointsFailed("2 of 6 failed"), 1),
        (UsageError("no"), 2),
        (UnknownName("model", "sael", ["seal"]), 2),
        (DataError("no"), 3),
        (EnvironmentProblem("no network"), 4),
    ],
)
def test_each_error_has_its_exit_code(error: SuiteError, code: int) -> None:
    """The class decides the exit code, as the interface promises."""
    assert error.exit_code == code
    assert isinstance(error, SuiteError)


def test_an_unknown_name_says_the_nearest_and_all() -> None:
    """The message names the nearest choice and lists every one, sorted."""
    error = UnknownName("model", "sael", ["trunc", "seal"])
    assert str(error) == "unknown model 'sael' (did you mean 'seal'?); known: seal, trunc"
    assert str(UnknownName("metric", "x", [])) == "unknown metric 'x'; known: none"


@pytest.mark.parametrize(
    ("where", "text"),
    [((), "empty"), (("a.jsonl",), "a.jsonl: empty"), (("a.jsonl", 7), "a.jsonl:7: empty")],
)
def test_a_data_error_says_where(where: tuple[str, int], text: str) -> None:
    """File and line stand before the problem, as compilers write them."""
    assert str(DataError("empty", *where)) == text


@pytest.mark.parametrize(
    "error", [UsageError("no"), UnknownName("model", "sael", ["seal"]), DataError("empty", "a.jsonl", 7)]
)
def test_errors_cross_processes(error: SuiteError) -> None:
    """An error raised in a worker process arrives whole."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_only_a_near_name_is_suggested() -> None:
    """A name unlike all choices gets no suggestion."""
    assert did_you_mean("snippet_lenght", ["snippet_length", "num_snippets"]) == " (did you mean 'snippet_length'?)"
    assert did_you_mean("zzz", ["snippet_length"]) == ""
