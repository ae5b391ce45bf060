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
    ("error", "code", "message"),
    [
        (PointsFailed("2 of 6 failed"), 1, "2 of 6 failed"),
        (UsageError("no"), 2, "no"),
        (
            UnknownName("model", "sael", ["trunc", "seal"]),
            2,
            "unknown model 'sael' (did you mean 'seal'?); known: seal, trunc",
        ),
        (UnknownName("metric", "x", []), 2, "unknown metric 'x'; known: none"),
        (DataError("empty", "a.jsonl"), 3, "a.jsonl: empty"),
        (DataError("empty", "a.jsonl", 7), 3, "a.jsonl:7: empty"),
        (EnvironmentProblem("no network"), 4, "no network"),
    ],
)
def test_each_error_has_its_exit_code_and_message(
    error: SuiteError, code: int, message: str
) -> None:
    """The class decides the exit code; an error raised in a worker process arrives whole."""
    assert (error.exit_code, str(error)) == (code, message)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))


TRAINING = "train.gradient_checkpointing=true, a smaller train.batch_size with a larger"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB."), TRAINING),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublas`"), TRAINING),
        (RuntimeError("CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"), TRAINING),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes."), TRAINING),
        (OSError(errno.EFBIG, "File too large"), "ulimit -f"),
        (Exception("File too large (os error 27)"), "ulimit -f"),
        (ImportError("libarrow.so: failed to map segment from shared object"), "ulimit -v"),
        (MemoryError(), "divide a large file"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "ulimit -v"),
    ],
)
def test_a_lack_of_memory_or_space_says_what_to_do(error: Exception, advice: str) -> None:
    """Each library's message is exit code 4; only the network's memory has advice about training."""
    problem = as_suite_error(error)
    assert isinstance(problem, EnvironmentProblem)
    assert advice in str(problem)
    assert (advice == TRAINING) == ("train." in str(problem))
    assert as_suite_error(RuntimeError("CUBLAS_STATUS_EXECUTION_FAILED")) is None


def test_half_a_character_is_no_matter_of_names_alone() -> None:
    """The message about a lone surrogate speaks of texts, too, and can be printed."""
    with pytest.raises(UnicodeEncodeError) as half:
        "a caf\ud83d is open".encode()
    message = str(as_suite_error(half.value))
    assert message.isascii()
    assert (
        "half a character (a lone surrogate) in 'a caf\\ud83d is open'; correct the text" in message
    )


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
