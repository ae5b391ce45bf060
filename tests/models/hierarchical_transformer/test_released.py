"""The network under fidelity=official against the authors' released code: vectors that tiny models of theirs gave.

Their beam search keeps a finished hypothesis in the beam and extends it further; the library's does not. So only greedy
searches are compared.
"""

import re
from functools import cache
from typing import Any

import pytest
from safetensors.torch import load_file
from support.json_files import read_json
from support.parity import assert_close, check_gradients, load_tensors, parity_folder, parity_marks
from torch import Tensor

from longsumbench.core import TrainConfig
from longsumbench.modeling.training.trainer import learning_rate
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
)

FOLDER = parity_folder("hierarchical_transformer")
pytestmark = parity_marks(FOLDER)

CASES = ["ragged_b2", "full_b1", "flat_full_b1"]
PAD, START, END = 0, 1, 2
LOCAL = 2  # local layers of the hierarchical network; global ones follow
NAMES = (  # of their weights → ours; the first that fits, in turn
    (r"^(encoder|decoder)\.embeddings\.weight$|^generator\.0\.weight$", "model.shared.weight"),
    (r"^generator\.0\.bias$", "lm_head.bias"),
    (r"^encoder\.layer_norm\.", "model.encoder.last_norm."),
    (r"^(encoder|decoder)\.", r"model.\1."),
    (r"encoder\.transformer_(local|layers)\.([01])\.", r"encoder.layers.\2."),
    (r"encoder\.transformer_layers\.2\.", r"encoder.global_layers.0."),
    (r"encoder\.transformer_layers\.3\.", r"encoder.global_layers.1."),
    (r"decoder\.transformer_layers\.", r"decoder.layers."),
    (r"context_attn\.", "encoder_attn."),
    (r"pooling\.linear_keys\.", "self_attn.pooling.scores."),
    (r"pooling\.linear_values\.", "self_attn.pooling.values."),
    (r"\.layer_norm2\.", ".self_attn.pooling.norm."),
    (r"inter_att\.linear_keys\.", "self_attn.key."),
    (r"inter_att\.linear_values\.", "self_attn.value."),
    (r"inter_att\.linear_query\.", "self_attn.query."),
    (r"(?<=\d)\.linear\.", ".self_attn.out_proj."),
    (r"attn\.linear_keys\.", "attn.k_proj."),
    (r"attn\.linear_values\.", "attn.v_proj."),
    (r"attn\.linear_query\.", "attn.q_proj."),
    (r"final_linear\.", "out_proj."),
    (r"feed_forward\.layer_norm\.", "final_layer_norm."),
    (r"feed_forward\.w_([12])\.", r"fc\1."),
    (r"(?<=\d)\.(layer_norm|layer_norm1|layer_norm_1)\.", ".self_attn_layer_norm."),
    (r"(?<=\d)\.layer_norm_2\.", ".encoder_attn_layer_norm."),
)


def ours(name: str) -> str:
    """Return what we call a weight of theirs."""
    for pattern, replacement in NAMES:
        name = re.sub(pattern, replacement, name)
    return name


def flat(case: str) -> str:
    """Return the prefix of a case's files."""
    return "flat_" if case.startswith("flat_") else ""


@cache
def meta(case: str) -> dict[str, Any]:
    """Return the description of a case's network: sizes, losses, norms of gradients, searches."""
    content: dict[str, Any] = read_json(FOLDER / f"{flat(case)}meta.json")
    return content


def described(case: str) -> dict[str, Any]:
    """Return a case's losses, norms and searches."""
    found: dict[str, Any] = meta(case)["cases"][case.removeprefix("flat_")]
    return found


def tensors(case: str) -> dict[str, Tensor]:
    """Return a case's tensors."""
    return load_tensors(FOLDER / f"{flat(case)}case_{case.removeprefix('flat_')}.safetensors")


def network(case: str, **changes: Any) -> Any:
    """Return the network with the released code's weights."""
    theirs, is_flat = meta(case)["config"], bool(flat(case))
    config = HierarchicalTransformerModelConfig(
        vocab_size=meta(case)["vocab_size"],
        d_model=theirs["emb_size"],
        encoder_ffn_dim=theirs["ff_size"],
        decoder_ffn_dim=theirs["ff_size"],
        encoder_attention_heads=theirs["heads"],
        decoder_attention_heads=theirs["heads"],
        pooling_heads=theirs["inter_heads"],
        encoder_layers=LOCAL,
        global_layers=0 if is_flat else len(theirs["inter_layers"]),
        decoder_layers=theirs["dec_layers"],
        paragraph_positions=not is_flat,
        official=True,
        dropout=0.0,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=START,
        eos_token_id=END,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        **changes,
    )
    model = HierarchicalTransformerForConditionalGeneration(config)
    weights = load_file(FOLDER / f"{flat(case)}weights.safetensors")
    loaded = model.load_state_dict(
        {ours(name): weight for name, weight in weights.items() if not name.startswith("const.")},
        strict=False,
    )
    assert not loaded.unexpected_keys
    tied = {
        "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight",
        "lm_head.weight",
    }
    assert {name for name in loaded.missing_keys if name != "final_logits_bias"} <= tied
    model.tie_weights()
    return model.eval()


def read(case: str) -> dict[str, Tensor]:
    """Return what the network reads."""
    ids = tensors(case)["in.src_ids"]
    ids = ids[:, None] if ids.dim() == 2 else ids
    return {"input_ids": ids, "unit_mask": ids.ne(PAD)}


def targets(case: str) -> tuple[Tensor, Tensor]:
    """Return what is fed and what is to be predicted, padded."""
    ids = tensors(case)["in.tgt_ids"]
    return ids[:, :-1], ids[:, 1:]


@pytest.mark.parametrize("case", CASES)
def test_states_of_the_decoder_and_what_it_predicts(case: str) -> None:
    """The decoder's input, layers, end, and the log-probabilities are the release's, wherever a token is real."""
    model, expected = network(case), tensors(case)
    notes: dict[Any, tuple[Any, Any]] = {}  # part → what it was given, and returned
    decoder = model.model.decoder
    for part in (*decoder.layers, decoder.layer_norm):
        part.register_forward_hook(
            lambda part, given, returned: notes.update({part: (given[0], returned)})
        )
    fed, gold = targets(case)
    logits = model(**read(case), decoder_input_ids=fed).logits
    real = gold.ne(PAD)
    assert_close(notes[decoder.layers[0]][0][real], expected["dec.emb"][real])
    for number, layer in enumerate(decoder.layers):
        _, returned = notes[layer]
        states = returned[0] if isinstance(returned, tuple) else returned
        assert_close(states[real], expected[f"dec.layer{number}_out"][real])
    assert_close(notes[decoder.layer_norm][1][real], expected["dec.out"][real])
    assert_close(logits.log_softmax(-1)[real], expected["out.log_probs"][real])


def loss(model: Any, case: str) -> Tensor:
    fed, gold = targets(case)
    labels = gold.masked_fill(gold.eq(PAD), -100)
    summed: Tensor = model(
        **read(case), decoder_input_ids=fed, labels=labels, num_items_in_batch=1
    ).loss
    return summed


@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_the_release(case: str) -> None:
    """The cross-entropy, and in training the loss smoothed as the release smooths, are the release's."""
    expected, model = described(case), network(case, label_smoothing=0.1)
    assert loss(model, case).item() == pytest.approx(expected["loss_sum_nll"], abs=1e-4)
    assert loss(model.train(), case).item() == pytest.approx(expected["loss_sum_ls0.1"], abs=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_the_release(case: str) -> None:
    """The gradient of every weight is as large as the release's."""
    model, wanted = network(case, label_smoothing=0.1).train(), described(case)
    (loss(model, case) / wanted["n_tokens"]).backward()
    check_gradients(model, {ours(name): norm for name, norm in wanted["grad_norm"].items()})


@pytest.mark.parametrize("case", CASES)
def test_greedy_summaries_are_those_of_the_release(case: str) -> None:
    """Greedy search writes the release's ids, whatever the limits of the length."""
    model, inputs = network(case), read(case)
    greedy = [
        search
        for search in described(case)["generation"]
        if search["beam_size"] == 1 and search["alpha"] == 0
    ]
    assert greedy
    for search in greedy:
        limits = {
            "max_new_tokens": search["max_length"],
            "min_new_tokens": search["min_length"] or None,
        }
        written = model.generate(**inputs, do_sample=False, **limits)[:, 1:].tolist()
        assert [[token for token in ids if token != PAD] for ids in written] == search["raw_ids"]


@pytest.mark.parametrize("factor", [2, 3])
def test_the_schedule_is_that_of_the_release(factor: int) -> None:
    """Noam's schedule gives the release's learning rates, with the paper's factor and with the release's."""
    rate = learning_rate(TrainConfig(schedule="noam", learning_rate=factor, warmup_steps=8000), 256)
    for step, expected in meta("ragged_b2")["noam_lr_at_step"][
        f"lr={factor},d=256,warmup=8000"
    ].items():
        assert rate(int(step)) == pytest.approx(expected, rel=1e-6)
