import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from support.hand_texts import encode_letters, text_of
from support.seal_networks import SIZES, batch, network
from support.toys import build_tiny, fit_tiny
from torch.testing import assert_close
from transformers import PegasusConfig, PegasusForConditionalGeneration

from longsumbench.models.seal.config import TruncConfig
from longsumbench.models.seal.readers import TruncReader


def test_equals_the_library_model() -> None:
    """With the same weights, logits, loss and greedy ids are those of a stock Pegasus that is given a flat input."""
    ours, inputs = network("trunc"), batch((9,), (5,))
    stock = PegasusForConditionalGeneration(PegasusConfig(**SIZES)).eval()
    stock.lm_head.weight = ours.lm_head.weight
    stock.load_state_dict(ours.state_dict(), strict=False)  # ours has no table of positions
    labels = torch.tensor([[5, 6, 7, 2], [8, 2, -100, -100]])
    inputs.pop("unit_documents")
    flat = {
        "input_ids": inputs["input_ids"][:, 0],
        "attention_mask": inputs["unit_mask"][:, 0].long(),
    }
    expected, actual = stock(**flat, labels=labels), ours(**inputs, labels=labels)
    assert_close(actual.logits, expected.logits, rtol=1e-4, atol=1e-5)
    assert_close(actual.loss, expected.loss)
    for beams in (1, 3):
        search = {"max_new_tokens": 12, "num_beams": beams, "do_sample": False}
        assert (
            ours.generate(**inputs, **search).tolist() == stock.generate(**flat, **search).tolist()
        )


def test_post_norm_has_no_last_norm_and_normalises_every_sublayer() -> None:
    """norm=post: the encoder's output is the output of a LayerNorm, so every state has mean 0 and variance 1."""
    states = network("trunc", norm="post").model.encoder(**batch((6,))).last_hidden_state
    assert_close(states.mean(-1), torch.zeros(1, 6), rtol=0, atol=1e-5)
    assert_close(states.var(-1, unbiased=False), torch.ones(1, 6), rtol=1e-3, atol=1e-3)


def test_training_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """model.init=FOLDER starts with that folder's weights and tokenizer, and its content is the identity."""
    first = fit_tiny("trunc", tmp_path / "cache", steps=3)
    (tmp_path / "a").mkdir()
    first.save(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    init: dict[str, Any] = {"init": str(tmp_path / "a"), "vocabulary_size": 999}
    second = fit_tiny("trunc", tmp_path / "cache", steps=0, **init)
    found = second.model.state_dict()
    assert all(torch.equal(one, found[key]) for key, one in first.model.state_dict().items())
    copy = build_tiny("trunc", **{**init, "init": str(tmp_path / "b")}).config
    assert copy.identity() == second.config.identity()
    first.model.lm_head.weight.data.add_(1)
    first.save(tmp_path / "b")
    assert copy.identity() != second.config.identity()


def test_hand_worked_units() -> None:
    """Snippets of at most 4: "aaa", "bb"+"c", "dddd|d" cut; joined and cut at 8: a a a b b c d d."""
    reader = TruncReader(TruncConfig(input_length=8, snippet_length=4, num_snippets=3))
    reader.encode = encode_letters  # type: ignore[method-assign]
    units = reader.units(text_of(("aaa", "bb", "c"), ("ddddd", "ee")))
    assert ["".join(map(chr, ids)) for ids in units.ids] == ["aaabbcdd"]
    assert {cut.cause: cut.tokens for cut in units.truncation.cuts} == {
        "snippet_length": 1,
        "num_snippets": 2,
        "input_length": 2,
    }


def test_ranked_snippets_come_best_first() -> None:
    """With rank=title the snippet that shares the title's word is read first."""
    reader = TruncReader(TruncConfig(input_length=5, snippet_length=3, rank="title"))
    decoder = SimpleNamespace(batch_decode=lambda ids: ["".join(map(chr, one)) for one in ids])
    reader.encode, reader.tokenizer = encode_letters, decoder  # type: ignore[method-assign]
    units = reader.units(text_of(("aaa", "bb", "ccc"), title="bb"))
    assert "".join(map(chr, units.ids[0])) == "bbaaa"
