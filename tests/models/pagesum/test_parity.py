"""PageSum's network against the authors' released code: vectors that a tiny model of theirs gave.

Their searches follow the rules of transformers 4.6.1, which count the start token when they divide by the length, and
stop earlier; the installed library's do not. `OTHER_RULES` lists where that leads to another sequence.
"""

from functools import cache
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from support.json_files import read_json
from support.parity import assert_close, check_gradients, load_tensors, parity_folder, parity_marks
from torch import Tensor

from longsumbench.models.pagesum.model import PageSumForConditionalGeneration, PageSumModelConfig

FOLDER = parity_folder("pagesum")
pytestmark = parity_marks(FOLDER)

CASES = ["full_b1_p3", "dotpages_b2_p4", "twopages_alone_b1_p2", "single_page_b1_p1"]
TRUE_PAGES = [
    "twopages_alone_b1_p2",
    "single_page_b1_p1",
]  # without "." pages or padding: the default's, too
FIDELITIES = [*((case, "official") for case in CASES), *((case, "default") for case in TRUE_PAGES)]
NUM_SEARCHES = 7  # of every case
OTHER_RULES = {("dotpages_b2_p4", 4), ("twopages_alone_b1_p2", 4), ("single_page_b1_p1", 4)}
START, PAD, END = 0, 1, 2  # `<s>`, padding, `</s>`


@cache
def meta() -> dict[str, Any]:
    """Return the vectors' description: sizes, losses, norms of gradients, searches."""
    content: dict[str, Any] = read_json(FOLDER / "meta.json")
    return content


def tensors(case: str) -> dict[str, Tensor]:
    """Return a case's tensors."""
    return load_tensors(FOLDER / f"case_{case}.safetensors")


def network(fidelity: str = "official", **changes: Any) -> Any:
    """Return PageSum with the released code's weights."""
    of_search = ("num_beams", "forced_bos_token_id", "forced_eos_token_id")
    sizes = {name: value for name, value in meta()["config"].items() if name not in of_search}
    model = PageSumForConditionalGeneration(
        PageSumModelConfig(**sizes, official=fidelity == "official", **changes)
    )
    weights = load_file(FOLDER / "weights.safetensors")
    renamed = {
        name.replace("lin.", "confidence.") if name.startswith("lin.") else name: w
        for name, w in weights.items()
    }
    loaded = model.load_state_dict(renamed, strict=False)
    assert not loaded.unexpected_keys
    assert all(
        "embed_tokens" in name or "lm_head" in name for name in loaded.missing_keys
    )  # tied to the one matrix
    model.tie_weights()
    return model.eval()


def read(case: str) -> dict[str, Tensor]:
    """Return what the network reads."""
    ids = tensors(case)["in.src_ids"]
    return {"input_ids": ids, "unit_mask": ids.ne(PAD)}


@pytest.mark.parametrize(("case", "fidelity"), FIDELITIES)
def test_mixed_states_and_logits(case: str, fidelity: str) -> None:
    """Memory, scores, confidences, mixed states and logits are the release's, wherever a token is real."""
    model, expected, inputs = network(fidelity), tensors(case), read(case)
    seen: list[Tensor] = []
    model.confidence.register_forward_hook(lambda module, given, output: seen.append(output))
    pages, targets = model.model.encoder(**inputs), expected["in.tgt_ids"]
    real = targets.ne(PAD)
    decoded = model.decode(pages, targets)
    memory, mask = pages.memory()
    read_mask = inputs["unit_mask"].flatten(0, 1)[pages.places, : memory.shape[1]]
    assert mask is None or torch.equal(mask, read_mask)
    memory_of_release = expected["enc.memory"].flatten(0, 1)[pages.places, : memory.shape[1]]
    assert_close(memory[read_mask], memory_of_release[read_mask])
    hidden = pages.spread(
        model.decode_pages(pages, targets[pages.documents][:, None], None), 0.0
    ).flatten(0, 1)[:, 0]
    of_page = real.repeat_interleave(pages.lengths.shape[1], 0)
    assert_close(hidden[of_page], expected["dec.page_hidden"].flatten(0, 1)[of_page])
    scores = pages.spread(seen[-1], 0.0).view(expected["conf.scores"].shape)
    assert_close(scores.mT[real], expected["conf.scores"].mT[real])
    assert decoded.unit_scores is not None
    assert_close(decoded.unit_scores[:, :, 0].mT[real], expected["conf.weights"].mT[real])
    assert_close(decoded.hidden[real], expected["dec.mixed_hidden"][real])
    assert_close(model.project(decoded.hidden)[real], expected["out.logits"][real])


def loss(model: Any, case: str) -> Tensor:
    """Return the loss of a case, its target fed as the release feeds it."""
    ids = tensors(case)["in.tgt_ids"]
    labels = ids[:, 1:].masked_fill(ids[:, 1:].eq(PAD), -100)
    fed = {} if model.config.official else {"decoder_input_ids": ids[:, :-1]}
    result: Tensor = model(**read(case), labels=labels, **fed).loss
    return result


@pytest.mark.parametrize(("case", "fidelity"), FIDELITIES)
def test_losses_are_those_of_the_release(case: str, fidelity: str) -> None:
    """The cross-entropy and the smoothed loss of training are the release's."""
    expected, model = meta()["cases"][case], network(fidelity, label_smoothing=0.1)
    assert loss(model, case).item() == pytest.approx(expected["loss_eps0"], abs=1e-4)
    assert loss(model.train(), case).item() == pytest.approx(expected["loss_eps0.1"], abs=1e-4)


@pytest.mark.parametrize(("case", "fidelity"), FIDELITIES)
def test_gradients_are_those_of_the_release(case: str, fidelity: str) -> None:
    """The gradient of every weight is as large as the release's."""
    model = network(fidelity, label_smoothing=0.1).train()
    loss(model, case).backward()
    expected = {
        name.replace("lin.", "confidence.") if name.startswith("lin.") else name: norm
        for name, norm in meta()["cases"][case]["grad_norm_eps0.1"].items()
    }
    check_gradients(model, expected)


def searched(case: str, number: int) -> dict[str, Any]:
    """Return the arguments and the outcome of one of a case's searches."""
    found: dict[str, Any] = meta()["cases"][case]["generation"][number]
    return found


@pytest.mark.parametrize("number", range(NUM_SEARCHES))
@pytest.mark.parametrize("case", CASES)
def test_summaries_are_those_of_the_release(case: str, number: int) -> None:
    """Greedy search writes the release's ids; so does beam search, except where the rules of search differ."""
    wanted = searched(case, number)
    arguments = {
        name: value
        for name, value in wanted["args"].items()
        if value or name != "no_repeat_ngram_size"
    }
    ids = (
        network()
        .generate(**read(case), forced_bos_token_id=START, forced_eos_token_id=END, **arguments)
        .tolist()
    )
    assert (ids == wanted["ids"]) == ((case, number) not in OTHER_RULES)
