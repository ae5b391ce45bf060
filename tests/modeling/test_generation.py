from itertools import pairwise
from typing import Any

import pytest
import torch
from transformers import PegasusConfig, PegasusForConditionalGeneration

from longsumbench.api import Decoding
from longsumbench.modeling.generation import decode, generation_config

CONFIG = PegasusConfig(
    vocab_size=40,
    d_model=16,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=16,
    decoder_ffn_dim=16,
    max_position_embeddings=64,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
    decoder_start_token_id=1,
    forced_eos_token_id=None,
    init_std=0.5,
)


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(3)
    return PegasusForConditionalGeneration(CONFIG).eval()


def inputs() -> dict[str, torch.Tensor]:
    torch.manual_seed(4)
    ids = torch.randint(3, 40, (3, 8))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids}


def brute_force(model: Any, ids: torch.Tensor, length: int) -> list[int]:
    """Greedy search written out: the likeliest token, again and again."""
    written = [1]
    while len(written) <= length and written[-1] != 2:
        logits = model(input_ids=ids, decoder_input_ids=torch.tensor([written])).logits
        written.append(int(logits[0, -1].argmax()))
    return [token for token in written[1:] if token != 2]


def test_greedy_is_the_likeliest_token_each_time(model: Any) -> None:
    """The default decoding equals a search written out by hand, example by example."""
    outputs, complete = decode(model, inputs(), Decoding(), limit=12)
    for i, ids in enumerate(inputs()["input_ids"]):
        assert outputs[i] == brute_force(model, ids[None], 12)
        assert complete[i] == (len(outputs[i]) < 12)


def test_limits_are_in_output_tokens(model: Any) -> None:
    """min_length and max_length count what is written: no start token, no end token."""
    outputs, complete = decode(model, inputs(), Decoding(min_length=9, max_length=10), limit=60)
    assert all(9 <= len(ids) <= 10 for ids in outputs)
    assert all(ended == (len(ids) < 10) for ids, ended in zip(outputs, complete, strict=True))


def test_the_systems_own_limit_holds(model: Any) -> None:
    """A setting beyond what the system can write is cut down to that."""
    assert generation_config(model, Decoding(max_length=500), limit=30).max_new_tokens == 30
    assert generation_config(model, Decoding(), limit=30).max_new_tokens == 30


@pytest.mark.parametrize("beams", [1, 3])
def test_the_first_token_can_be_the_models_own(beams: int, model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose summaries begin with one token, as BART's do, writes it first; what follows is searched for."""
    free, _ = decode(model, inputs(), Decoding(num_beams=beams, min_length=4), limit=12)
    monkeypatch.setattr(model.generation_config, "forced_bos_token_id", 7)
    forced, _ = decode(model, inputs(), Decoding(num_beams=beams, min_length=4), limit=12)
    assert {ids[0] for ids in free}.isdisjoint({7})
    assert {ids[0] for ids in forced} == {7}
    assert len({tuple(ids) for ids in forced}) > 1


def test_no_repeated_ngrams(model: Any) -> None:
    """With no_repeat_ngram=2 no pair of tokens comes twice."""
    outputs, _ = decode(model, inputs(), Decoding(no_repeat_ngram=2, min_length=20, max_length=25), limit=60)
    for ids in outputs:
        pairs = list(pairwise(ids))
        assert len(pairs) == len(set(pairs))


def test_beams_find_a_likelier_summary(model: Any) -> None:
    """Four beams never end with a less likely output of the same length than greedy search."""
    fixed = {"min_length": 8, "max_length": 8}
    greedy, _ = decode(model, inputs(), Decoding(**fixed), limit=60)
    beams, _ = decode(model, inputs(), Decoding(**fixed, num_beams=4), limit=60)
    for i, ids in enumerate(inputs()["input_ids"]):
        assert log_probability(model, ids, beams[i]) >= log_probability(model, ids, greedy[i]) - 1e-4


def log_probability(model: Any, ids: torch.Tensor, output: list[int]) -> float:
    logits = model(input_ids=ids[None], decoder_input_ids=torch.tensor([[1, *output[:-1]]])).logits
    logits[..., 2] = -torch.inf  # neither search may end early
    return float(logits.log_softmax(-1)[0, range(len(output)), output].sum().detach())
