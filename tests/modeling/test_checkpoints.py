"""Networks are counted before memory is taken for them."""

from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch
from support.networks import NEURAL
from support.tiny_seq2seq import write_seq2seq
from support.toys import ToySplit, build_tiny, refuses
from transformers import BartForConditionalGeneration

from longsumbench.errors import EnvironmentProblem
from longsumbench.modeling.checkpoints import load_network
from longsumbench.modeling.tokenizer import train_tokenizer

TOKENIZER = train_tokenizer(ToySplit.of("train", 12), 320)


def tiny(name: str) -> Any:
    """Return a tiny system that starts at random."""
    system = build_tiny(name)
    system.reader.tokenizer = TOKENIZER
    return system


def free(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let so many bytes of memory be free."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=size))


@pytest.mark.parametrize("name", sorted({*NEURAL} - {"seq2seq"}))
def test_the_count_is_that_of_the_weights(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network needs the bytes of its weights, no more and no less, and counting changes no random number."""
    system = tiny(name)
    torch.manual_seed(1)
    expected = system.builder.build(system.reader)
    tensors = {id(one): one for one in (*expected.parameters(), *expected.buffers())}
    size = sum(one.nbytes for one in tensors.values())
    torch.manual_seed(1)
    free(size, monkeypatch)
    built = system.builder.initial_model(system.reader)
    assert all(
        torch.equal(one, two)
        for one, two in zip(built.parameters(), expected.parameters(), strict=True)
    )
    free(size - 1, monkeypatch)
    with refuses(
        f"the weights of model={name} need .* GB of memory, .* are free", EnvironmentProblem
    ):
        system.builder.initial_model(system.reader)


def test_a_checkpoint_beyond_the_memory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that does not fit is refused in one line that names it."""
    folder = write_seq2seq(tmp_path / "bart")
    free(1_000, monkeypatch)
    with refuses(rf"the weights of model.init={folder} need 0.0 GB", EnvironmentProblem):
        load_network(BartForConditionalGeneration, folder, f"model.init={folder}")
