"""Windows: what is read and kept, the published implementation, one window as the plain model, training, bad input."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from support.sled_oracle import OVERLAP, PREFIX, TARGET, TEXT, WINDOW, digest_states, formula_bart
from support.tiny_seq2seq import ARCHITECTURES, checkpoint_of, open_seq2seq
from support.toys import ToySplit, example, fit_tiny
from torch import Tensor
from torch.testing import assert_close
from transformers import AutoModelForSeq2SeqLM

from longsumbench.core import Decoding, Example
from longsumbench.modeling.training.trainer import recompute_activations
from longsumbench.modeling.unit_reader import collate_units
from longsumbench.models.seq2seq.system import Seq2Seq
from longsumbench.models.seq2seq.windows import Window, read_in_windows, split_windows

BEAMS = Decoding(num_beams=3, max_length=12, device="cpu")
TEST = ToySplit.of("test", 6, start=30).examples  # of 15 to 50 tokens
# BigBird-PEGASUS is refused.
WITH_WINDOWS = sorted(ARCHITECTURES.keys() - {"bigbird_pegasus"})
# Printed by tests/support/sled_oracle.py: loss, and a number for every sixth state; without and with a prefix.
RELEASED = {
    False: (
        4.59562889,
        [6.392625, 6.042303, 5.875956, 6.208683, 5.011296, 5.837771, -1.408515, 6.050261],
    ),
    True: (
        4.61198941,
        [-4.372338, -3.183553, -3.334671, 5.65644, 6.389076, 6.984057, 6.69994, 2.900768],
    ),
}


def batch_of(system: Seq2Seq) -> dict[str, Tensor]:
    """Return the batch of the test examples."""
    return collate_units(system.reader, [system.reader.units(one) for one in TEST])


def texts(system: Seq2Seq, decoding: Decoding = BEAMS) -> list[str]:
    """Return the summaries of a batch."""
    return [summary.text for summary in system.summarize(TEST, decoding)]


def test_worked_windows() -> None:
    """Worked: of 21 tokens, windows of 8 that share 4 keep their middle 4; the last one is moved back to the end."""
    bounds = [(0, 8, 0, 6), (4, 12, 6, 10), (8, 16, 10, 14), (12, 20, 14, 18), (13, 21, 18, 21)]
    expected = []
    for start, end, kept_start, kept_end in bounds:
        expected.append(Window([*range(start, end)], range(kept_start, kept_end)))
    assert list(split_windows(0, 21, 8, 4)) == expected
    (short,) = split_windows(0, 8, 8, 4)
    assert short == Window([*range(8)], range(8))


def test_every_token_is_kept_once() -> None:
    """Whatever the sizes, the windows keep each token once, in order, and a window reads what it keeps."""
    for num_tokens in range(1, 40):
        for length in range(1, 9):
            for overlap in range(length):
                kept = 0
                for window in split_windows(0, num_tokens, length, overlap):
                    assert window.read[0] <= window.kept.start == kept
                    assert kept < window.kept.stop <= window.read[-1] + 1
                    assert len(window.read) == min(length, num_tokens)
                    kept = window.kept.stop
                assert kept == num_tokens


@pytest.mark.parametrize("has_prefix", [False, True])
def test_the_authors_sled_computes_the_same(has_prefix: bool) -> None:
    """States and loss are those that the release of SLED computes for the same weights and tokens."""
    head = PREFIX if has_prefix else []
    model, ids = formula_bart(), torch.tensor([[*head, *TEXT]])
    read_in_windows(model, WINDOW, OVERLAP)
    inputs = {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "head_length": torch.tensor([len(head)]),
    }
    output = model(**inputs, labels=torch.tensor([TARGET]))
    loss, states = RELEASED[has_prefix]
    assert output.loss.item() == pytest.approx(loss, abs=1e-7)
    found = digest_states(output.encoder_last_hidden_state[0, ::6])
    assert found == pytest.approx(states, abs=2e-6)


@pytest.mark.parametrize("name", WITH_WINDOWS)
def test_one_window_is_the_plain_model(name: str) -> None:
    """Of a text that fits into a window, logits and summaries are those without windows."""
    folder = checkpoint_of(name)
    plain = open_seq2seq(folder, input_length=48)
    windows = open_seq2seq(folder, input_length=48, window_length=48)
    fed = {"decoder_input_ids": torch.tensor([[2, 5]] * len(TEST))}
    with torch.inference_mode():
        expected = plain.model.eval()(**batch_of(plain), **fed).logits
        found = windows.model.eval()(**batch_of(windows), **fed).logits
    assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert texts(windows) == texts(plain)


@pytest.mark.parametrize("name", WITH_WINDOWS)
def test_the_decoder_sees_each_window_as_it_is_encoded_alone(name: str) -> None:
    """By brute force: the library's encoder reads the prefix and each window alone, in a batch of several texts."""
    folder = checkpoint_of(name)
    system = open_seq2seq(
        folder, input_length=200, window_length=24, window_overlap=6, prefix="kadan"
    )
    batch, library = batch_of(system), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    fed = torch.tensor([[2, 5]] * len(TEST))
    with torch.inference_mode():
        found = system.model.eval()(**batch, decoder_input_ids=fed)
    for row, head in enumerate(batch["head_length"].tolist()):
        ids = batch["input_ids"][row][batch["attention_mask"][row].bool()]
        expected = windows_alone(library, ids, head, length=24, overlap=6)
        states = found.encoder_last_hidden_state[row, : len(ids)]
        assert_close(states, expected, rtol=1e-3, atol=1e-3)


def windows_alone(model: Any, ids: Tensor, head: int, length: int, overlap: int) -> Tensor:
    """Return the states of an input, encoded window by window with the library's encoder: [L, D]."""

    def states_of(places: Sequence[int]) -> Tensor:
        inputs = {"input_ids": ids[None, list(places)]}
        if model.config.model_type == "led":
            marks = torch.zeros_like(inputs["input_ids"])
            marks[:, 0] = 1
            inputs["global_attention_mask"] = marks
        states: Tensor = model.get_encoder()(**inputs)[0][0]
        return states

    if len(ids) <= length:
        return states_of(range(len(ids)))
    with torch.inference_mode():
        joined = [states_of(range(head))]
        for window in split_windows(head, len(ids), length - head, overlap):
            begin = window.read.index(window.kept.start)
            joined.append(states_of(window.read)[begin : begin + len(window.kept)])
    return torch.cat(joined)


@pytest.mark.parametrize("name", ["bart", "led", "t5gemma2"])
def test_a_summary_depends_on_no_other_text(name: str) -> None:
    """A text of several windows is written alone as in a batch, beyond the positions of the checkpoint, too."""
    system = open_seq2seq(checkpoint_of(name), input_length=500, window_length=16, window_overlap=4)
    together = texts(system)
    alone = [next(iter(system.summarize([one], BEAMS))).text for one in TEST]
    assert together == alone
    long = replace(example(1, sentences=40), id="long")
    (summary,) = system.summarize([long], BEAMS)
    assert summary.truncation is not None
    assert summary.truncation.tokens > 128
    assert summary.truncation.cuts == ()


def test_a_query_stands_before_each_window() -> None:
    """Start token, prefix and query are the head; a long query leaves room, and the ledger counts each token once."""
    system = open_seq2seq(
        checkpoint_of("bart"),
        input_length=100,
        window_length=20,
        window_overlap=4,
        prefix="kadan",
    )
    reader = system.reader
    asked = replace(TEST[3], query="nuhit migor")
    units, plain = reader.units(asked), reader.units(TEST[3])
    query = reader.encode(["nuhit migor"])[0].ids
    assert units.columns["head_length"] == 2 + len(query)
    assert units.query_length == len(query)
    assert units.truncation.tokens == plain.truncation.tokens + len(query)
    assert units.truncation.cuts == ()
    long = reader.units(replace(asked, query="nuhit migor " * 9))
    # 20 tokens without prefix, special tokens and the shared ones: half of them
    assert long.query_length == (20 - 3 - 4) // 2
    assert [cut.cause for cut in long.truncation.cuts] == ["query"]


def training_loss(system: Seq2Seq, examples: Sequence[Example]) -> Tensor:
    """Return the loss of a batch in training."""
    batch = system.reader.collator()([system.reader.row(one) for one in examples])
    labels, mask = batch.pop("labels"), batch.pop("unit_mask")
    system.model.train()
    loss: Tensor = system._output(0.0, labels, mask, 1, **batch).loss
    return loss


@pytest.mark.parametrize("name", ["bart", "led", "longt5-tglobal", "t5gemma2"])
def test_windows_computed_again_have_the_same_gradients(name: str) -> None:
    """With gradient checkpointing, loss and gradients are those that are computed without it."""
    folder = checkpoint_of(name)
    gradients = []
    for recomputes in (False, True):
        system = open_seq2seq(folder, input_length=100, window_length=16, window_overlap=4)
        if recomputes:
            recompute_activations(system.model)
        torch.manual_seed(1)  # of dropout
        training_loss(system, TEST).backward()
        weights = dict(system.model.named_parameters())
        gradients.append({name: one.grad for name, one in weights.items() if one.grad is not None})
    plain, again = gradients
    assert plain.keys() == again.keys()
    assert any("encoder" in name for name in plain)
    for key, value in plain.items():
        assert_close(again[key], value, rtol=1e-3, atol=1e-4)


def saved_bytes(tokens: int, recomputes: bool) -> int:
    """Return the memory that a forward pass of training keeps for the backward pass."""
    system = open_seq2seq(checkpoint_of("bart"), input_length=tokens, window_length=16)
    if recomputes:
        recompute_activations(system.model)
    sizes: dict[int, int] = {}

    def count(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(count, lambda value: value):
        training_loss(system, [example(1, sentences=20)])
    return sum(sizes.values())


def test_a_further_window_keeps_its_states_only() -> None:
    """With gradient checkpointing, the memory that grows with the windows is a tenth of that without, or less."""
    growth = []
    for recomputes in (False, True):
        growth.append(saved_bytes(256, recomputes) - saved_bytes(32, recomputes))
    kept, recomputed = growth
    assert 0 < recomputed <= kept / 10


def test_a_trained_checkpoint_is_an_ordinary_one(tmp_path: Path) -> None:
    """After training with windows, the library opens the saved folder and has the same weights."""
    system = fit_tiny(
        "seq2seq", tmp_path, init="checkpoint", input_length=200, window_length=16, window_overlap=4
    )
    system.save(tmp_path / "saved")
    weights = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved").state_dict()
    assert weights.keys() == system.model.state_dict().keys()
    opened = Seq2Seq.load(tmp_path / "saved")
    assert texts(opened) == texts(system)
