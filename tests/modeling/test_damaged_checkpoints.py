"""Damaged checkpoints and tokenizers, where a user can name one: one line that names the folder, and an exit code."""

import os
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.json_files import change_json
from support.tiny_bert import write_bert
from support.tiny_seq2seq import write_seq2seq
from support.toys import ToySplit, build_tiny, fit_context, refuses
from torch import Tensor

from longsumbench.core import Scoring
from longsumbench.errors import SuiteError
from longsumbench.modeling.tokenizer import train_tokenizer
from longsumbench.models.pagesum.config import PageSumConfig
from longsumbench.models.pagesum.system import PageSum
from longsumbench.runs.checkpoints import open_system
from longsumbench_reproduction.metrics.coherence import Coherence

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
TRAIN = ToySplit.of("train", 12)


def trunc(folder: Path) -> Path:
    """Write the checkpoint of a tiny Trunc that has learned nothing."""
    system = build_tiny("trunc")
    system.reader.tokenizer = train_tokenizer(TRAIN, 320)
    system.model = system.builder.build(system.reader)
    folder.mkdir()
    system.save(folder)
    return folder


def begin(folder: Path) -> None:
    system = PageSum(PageSumConfig(page_size=16, num_pages=3, decode_length=24, init=str(folder)))
    system.config.identity()
    system.prepare(fit_context(folder.parent / "stages", TRAIN))
    system.builder.initial_model(system.reader)


def score(folder: Path) -> None:
    """Score the coherence of two sentences."""
    Coherence(Scoring(coherence_model=str(folder), device="cpu")).score(
        "A cat. It slept.", TRAIN[0]
    )


USES: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "summarize": (trunc, open_system),
    "model.init": (write_seq2seq, begin),
    "score.coherence_model": (write_bert, score),
}


def change_weights(folder: Path, change: Callable[[dict[str, Tensor], str], object]) -> None:
    weights = load_file(folder / WEIGHTS)
    change(weights, max(weights))
    save_file(weights, folder / WEIGHTS, {"format": "pt"})


def as_pipe(folder: Path, name: str) -> None:
    """Replace a file by a pipe, which nobody writes to."""
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a torn config": lambda folder: (folder / CONFIG).write_text('{"model_type": "ba'),
    "another type": lambda folder: change_json(folder / CONFIG, model_type="t5"),
    "code of a kernel": lambda folder: change_json(
        folder / CONFIG, attn_implementation="somebody/attention"
    ),
    "a pipe of weights": lambda folder: as_pipe(folder, WEIGHTS),
    "a huge width": lambda folder: change_json(folder / CONFIG, vocab_size=10**10),
    "torn weights": lambda folder: (folder / WEIGHTS).write_bytes(
        (folder / WEIGHTS).read_bytes()[:999]
    ),
    "a weight less": lambda folder: change_weights(folder, lambda weights, name: weights.pop(name)),
    "not finite": lambda folder: change_weights(
        folder, lambda all, name: all.update({name: all[name] * torch.nan})
    ),
    "a torn tokenizer": lambda folder: (folder / TOKENIZER).write_text('{"version": '),
}


@pytest.mark.parametrize(
    ("use", "damage"),
    [
        *product(["summarize"], DAMAGES),
        *product(USES, ["torn weights", "a torn tokenizer"]),
    ],
)
def test_a_damaged_checkpoint_ends_in_one_line(use: str, damage: str, tmp_path: Path) -> None:
    """The line names the folder, and the exit code is a documented one."""
    write, read = USES[use]
    folder = write(tmp_path / "checkpoint")
    DAMAGES[damage](folder)
    with refuses(str(folder), SuiteError) as caught:
        read(folder)
    assert caught.value.exit_code in (2, 3, 4)
