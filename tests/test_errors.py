"""The exception tree."""

import errno
import pickle
from contextlib import suppress
from pathlib import Path

import pytest

from longsumbench.errors import (
    DataError,
    EnvironmentProblem,
    PointsFailed,
    SuiteError,
    UnknownName,
    UsageError,
    as_suite_error,
    naming_path,
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
    """File and line are before the problem, as compilers write them."""
    assert str(DataError("empty", *where)) == text


@pytest.mark.parametrize(
    "words",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB.",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.",
    ],
)
def test_a_lack_of_memory_says_what_keeps_the_budget(words: str) -> None:
    """Every library's message becomes exit code 4, with the settings that need less memory for the same training."""
    problem = as_suite_error(RuntimeError(words))
    assert isinstance(problem, EnvironmentProblem)
    assert (
        "train.gradient_checkpointing=true, a smaller train.batch_size with a larger train.accumulation"
        in str(problem)
    )
    assert as_suite_error(RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED")) is None


LIMITS = {
    "larger limit": (OSError(errno.EFBIG, "File too large"), "ulimit -f"),
    "in Rust": (Exception("File too large (os error 27)"), "ulimit -f"),
    "a library": (
        ImportError("libarrow.so: failed to map segment from shared object"),
        "ulimit -v",
    ),
    "an archive": (MemoryError(), "divide a large file"),
    "a process": (OSError(errno.ENOMEM, "Cannot allocate memory"), "ulimit -v"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_of_the_process_is_named(limit: str) -> None:
    """A file or memory beyond what is allowed is exit code 4, without advice about training."""
    error, advice = LIMITS[limit]
    problem = as_suite_error(error)
    assert isinstance(problem, EnvironmentProblem)
    assert advice in str(problem)
    assert "train." not in str(problem)


def test_half_a_character_is_no_matter_of_names_alone() -> None:
    """The message about a lone surrogate speaks of texts, too, and can be printed."""
    with pytest.raises(UnicodeEncodeError) as half:
        "a caf\ud83d is open".encode()
    message = str(as_suite_error(half.value))
    assert message.isascii()
    assert (
        "half a character (a lone surrogate) in 'a caf\\ud83d is open'; correct the text" in message
    )


@pytest.mark.parametrize(
    "error",
    [UsageError("no"), UnknownName("model", "sael", ["seal"]), DataError("empty", "a.jsonl", 7)],
)
def test_errors_cross_processes(error: SuiteError) -> None:
    """An error raised in a worker process arrives whole."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


def test_a_full_disk_is_named_and_other_errors_are_left_alone(tmp_path: Path) -> None:
    """A write to an open file does not say where; what a network says has nothing to do with the place."""
    with (
        pytest.raises(OSError, match="No space left") as full,
        naming_path(tmp_path),
        Path("/dev/full").open("w") as file,
    ):
        file.write("x")
    assert str(as_suite_error(full.value)).startswith(f"the disk is full at {tmp_path}; ")
    for error in (
        OSError("no errno"),
        ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
        OSError(errno.ENOSPC, "full", "a"),
    ):
        before = str(error)
        with suppress(OSError), naming_path(tmp_path):
            raise error
        assert str(error) == before
