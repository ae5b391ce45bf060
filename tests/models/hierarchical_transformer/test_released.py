"""The network under fidelity=official against the authors' released code: vectors that tiny models of theirs gave.

Their beam search keeps a finished hypothesis in the beam and extends it further; the library's does not. Greedy
searches write the same ids; of what theirs found with beams, the test compares the score.
"""

import json
import re
from functools import cache
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.paths import SHARED
from support.requirements import SHARED_FOLDER
from torch import Tensor

from longsumbench.core import Recipe
from longsumbench.modeling.nn.unit_encoder import Memory
from longsumbench.modeling.training.optimization import learning_rate
from longsumbench.models.hierarchical_transformer.model import (
    HierarchicalTransformerForConditionalGeneration,
    HierarchicalTransformerModelConfig,
)

FOLDER = SHARED / "parity" / "hierarchical_transformer"
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason=SHARED_FOLDER),
    pytest.mark.usefixtures("float64"),
]

HIERARCHICAL = ["ragged_b2", "full_b1"]
CASES = [*HIERARCHICAL, "flat_full_b1"]
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
    content: dict[str, Any] = json.loads(
        (FOLDER / f"{flat(case)}meta.json").read_text(encoding="utf-8")
    )
    return content


def described(case: str) -> dict[str, Any]:
    """Return a case's losses, norms and searches."""
    found: dict[str, Any] = meta(case)["cases"][case.removeprefix("flat_")]
    return found


@cache
def tensors(case: str) -> dict[str, Tensor]:
    """Return a case's tensors, numbers in float64: what differs is the rounding in the vectors alone."""
    loaded = load_file(FOLDER / f"{flat(case)}case_{case.removeprefix('flat_')}.safetensors")
    return {
        name: value.double() if value.is_floating_point() else value
        for name, value in loaded.items()
    }


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


def assert_close(actual: Tensor, expected: Tensor) -> None:
    """Compare as closely as the vectors are good for."""
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-4)


class Recorder:
    """What parts of a network were given and returned, the last time they ran."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.given: dict[str, tuple[Any, ...]] = {}
        self.returned: dict[str, Any] = {}

    def watch(self, name: str) -> None:
        """Watch a part."""

        def note(_module: Any, given: tuple[Any, ...], returned: Any) -> None:
            self.given[name], self.returned[name] = given, returned

        self.model.get_submodule(name).register_forward_hook(note)


def encoded(case: str) -> tuple[Any, Recorder, Memory]:
    """Run the encoder, its layers and their parts watched."""
    model = network(case)
    recorder = Recorder(model)
    for name, _ in model.named_modules():
        if name.startswith("model.encoder"):
            recorder.watch(name)
    with torch.no_grad():
        memory = model.model.encoder(**read(case))
    return model, recorder, memory


def dense(case: str, packed: Tensor, mask: Tensor) -> Tensor:
    """Return states of real paragraphs, which were sorted by length, where the vectors have them: [B, P, T, D]."""
    real = mask.any(-1)
    order = mask[real].sum(-1).argsort(descending=True, stable=True)
    states = torch.zeros(*mask.shape, packed.shape[-1])
    of_real = torch.zeros(len(order), *states.shape[2:])
    of_real[order] = of_real[order].masked_scatter(mask[real][order][..., None], packed)
    states[real] = of_real
    return states


@pytest.mark.parametrize("case", CASES)
def test_states_of_the_encoder(case: str) -> None:
    """Embeddings, all layers' states and the memory are the release's, wherever a token is real."""
    _, recorder, memory = encoded(case)
    expected, mask = tensors(case), read(case)["unit_mask"]
    shape = (*mask.shape, -1)
    real = mask.any(-1)
    order = mask[real].sum(-1).argsort(descending=True, stable=True)

    def assert_states(name: str, states: Tensor) -> None:
        wanted = expected[name].view(shape)
        if states.dim() == 2:  # packed
            assert_close(dense(case, states, mask)[mask], wanted[mask])
        else:
            kept = mask[real][order]
            assert_close(states[kept[:, : states.shape[1]]], wanted[real][order][kept])

    assert_states("enc.emb", recorder.given["model.encoder.layers.0"][0])
    for layer in range(LOCAL):
        assert_states(f"enc.layer{layer}_out", recorder.returned[f"model.encoder.layers.{layer}"])
    for layer in range(0 if flat(case) else 2):
        assert_states(
            f"enc.layer{LOCAL + layer}_out",
            recorder.returned[f"model.encoder.global_layers.{layer}"],
        )
    wanted, hidden = expected["enc.memory"], expected["enc.memory_pad_mask"].bool()
    assert torch.equal(memory.mask, ~hidden)
    assert_close(memory.last_hidden_state[memory.mask], wanted[~hidden])


@pytest.mark.parametrize("layer", [0, 1])
@pytest.mark.parametrize("case", HIERARCHICAL)
def test_parts_of_a_global_layer(case: str, layer: int) -> None:
    """Pooling weights, heads, attention between paragraphs and contexts are the release's, for real paragraphs."""
    model, recorder, _ = encoded(case)
    expected = {
        name.split("_", 1)[1]: value
        for name, value in tensors(case).items()
        if name.startswith(f"enc.layer{LOCAL + layer}_")
    }
    real = read(case)["unit_mask"].any(-1)
    name = f"model.encoder.global_layers.{layer}.self_attn"
    attention = model.get_submodule(name)
    _, paragraphs, _ = recorder.given[name]
    scores = recorder.returned[f"{name}.pooling.scores"]
    pool_attn = torch.zeros(int(real.sum()), *expected["pool_attn"].shape[2:])
    for piece in paragraphs.pieces:
        weights = attention.pooling.weights(scores, piece.rows, piece.mask)
        pool_attn[piece.indices, :, : weights.shape[-1]] = weights
    assert_close(pool_attn, expected["pool_attn"][real])
    assert_close(recorder.given[f"{name}.pooling.norm"][0], expected["pool_out"][real])
    assert_close(recorder.returned[f"{name}.pooling"], expected["head"][real])
    context, message = recorder.returned[name]
    assert_close(context, expected["c"][real])
    assert_close(message.transpose(1, 2)[real], expected["inter_attn"].transpose(1, 2)[real])
    contexts = expected["context"].transpose(1, 2)[real].flatten(1)
    assert_close(recorder.given[f"{name}.out_proj"][0], contexts)


@pytest.mark.parametrize("case", CASES)
def test_states_of_the_decoder_and_what_it_predicts(case: str) -> None:
    """The decoder's input, layers, end, and the log-probabilities are the release's, wherever a token is real."""
    model, expected = network(case), tensors(case)
    recorder = Recorder(model)
    for name in ("model.decoder.layers.0", "model.decoder.layers.1", "model.decoder.layer_norm"):
        recorder.watch(name)
    fed, gold = targets(case)
    logits = model(**read(case), decoder_input_ids=fed).logits
    real = gold.ne(PAD)
    assert_close(recorder.given["model.decoder.layers.0"][0][real], expected["dec.emb"][real])
    for layer in (0, 1):
        returned = recorder.returned[f"model.decoder.layers.{layer}"]
        states = returned[0] if isinstance(returned, tuple) else returned
        assert_close(states[real], expected[f"dec.layer{layer}_out"][real])
    assert_close(recorder.returned["model.decoder.layer_norm"][real], expected["dec.out"][real])
    assert_close(logits.log_softmax(-1)[real], expected["out.log_probs"][real])


@pytest.mark.parametrize("case", CASES)
def test_positions_are_those_of_the_release(case: str) -> None:
    """Positions are the release's tables, of a half or of the whole width."""
    weights = load_file(FOLDER / f"{flat(case)}weights.safetensors")
    constants = {name: one.double() for name, one in weights.items()}
    model = network(case)
    encoder = constants["const.pe_enc" if flat(case) else "const.pe_enc_half"]
    assert_close(model.model.encoder.embed_positions.upto(64), encoder)
    assert_close(model.model.decoder.embed_positions.upto(64), constants["const.pe_dec"])


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
    """The gradient of every weight is as large as the release's; where theirs is noise, so is ours."""
    model, wanted = network(case, label_smoothing=0.1).train(), described(case)
    (loss(model, case) / wanted["n_tokens"]).backward()
    found = {
        name: float(weight.grad.to_dense().norm()) for name, weight in model.named_parameters()
    }
    expected = {ours(name): norm for name, norm in wanted["grad_norm"].items()}
    assert set(found) == set(expected)
    for name, norm in expected.items():
        assert found[name] == (
            pytest.approx(norm, rel=1e-3) if norm > 1e-4 else pytest.approx(0, abs=1e-4)
        ), name


NUM_SEARCHES = {"ragged_b2": 7, "full_b1": 7, "flat_full_b1": 7}
SEARCHES = [(case, number) for case, count in NUM_SEARCHES.items() for number in range(count)]


@pytest.mark.parametrize(("case", "number"), SEARCHES)
def test_summaries_are_those_of_the_release(case: str, number: int) -> None:
    """Greedy search writes the release's ids; what its beams found has, with our logits, the score it had there."""
    search, model, inputs = described(case)["generation"][number], network(case), read(case)
    if search["beam_size"] == 1 and search["alpha"] == 0:
        limits = {
            "max_new_tokens": search["max_length"],
            "min_new_tokens": search["min_length"] or None,
        }
        written = model.generate(**inputs, do_sample=False, **limits)[:, 1:].tolist()
        assert [[token for token in ids if token != PAD] for ids in written] == search["raw_ids"]
    for row, (ids, score) in enumerate(zip(search["raw_ids"], search["scores"], strict=True)):
        fed = torch.tensor([[START, *ids[:-1]]])
        one = {name: value[row : row + 1] for name, value in inputs.items()}
        logs = model(**one, decoder_input_ids=fed).logits[0].log_softmax(-1)[range(len(ids)), ids]
        divisor = ((5 + len(ids)) / 6) ** search["alpha"]
        assert float(logs.sum().detach()) / divisor == pytest.approx(score, abs=1e-4)


def test_an_example_alone() -> None:
    """The second example of the ragged batch, unpadded, is predicted as in the batch."""
    inputs, (fed, gold) = read("ragged_b2"), targets("ragged_b2")
    together, real = (
        network("ragged_b2")(**inputs, decoder_input_ids=fed).logits[1],
        gold[1].ne(PAD),
    )
    paragraphs, length = inputs["unit_mask"][1].any(-1).sum(), inputs["unit_mask"][1].sum(-1).max()
    alone = {name: value[1:, :paragraphs, :length] for name, value in inputs.items()}
    logits = network("ragged_b2")(**alone, decoder_input_ids=fed[1:, : real.sum()]).logits[0]
    assert_close(logits, together[real])


@pytest.mark.parametrize("factor", [2, 3])
def test_the_schedule_is_that_of_the_release(factor: int) -> None:
    """Noam's schedule gives the release's learning rates, with the paper's factor and with the release's."""
    rate = learning_rate(Recipe(schedule="noam", learning_rate=factor, warmup_steps=8000), 256)
    for step, expected in meta("ragged_b2")["noam_lr_at_step"][
        f"lr={factor},d=256,warmup=8000"
    ].items():
        assert rate(int(step)) == pytest.approx(expected, rel=1e-6)
