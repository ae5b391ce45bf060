"""Searches with all their hypotheses, and what each is worth, computed from scratch by teacher forcing."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from longsumbench.modeling.nn.penalties import Penalties

COVERAGES = [
    Penalties("wu", 0.9, "summary", 5.0),
    Penalties("wu", 0.6, "wu", 0.2),
    Penalties("power", 1.0, "wu", 1.0),
]


class Hypothesis(NamedTuple):
    """A hypothesis that ended.

    Attributes:
        ids: its tokens, the end token among them if it wrote one.
        score: what the search ranked it by.
    """

    ids: list[int]
    score: float


def search(
    model: Any,
    inputs: dict[str, Tensor],
    penalties: Penalties | None,
    beams: int,
    length: int,
    **options: Any,
) -> list[list[Hypothesis]]:
    """Return all hypotheses that a search ends with, of each example, the best first; None: by the library's rule."""
    options = {"max_new_tokens": length, "do_sample": False, "forced_eos_token_id": None, **options}
    returned = {
        "num_return_sequences": beams,
        "return_dict_in_generate": True,
        "output_scores": True,
    }

    def run() -> Any:
        return model.generate(**inputs, num_beams=beams, **options, **returned)

    with torch.inference_mode():
        if penalties is None:
            found = run()
        else:
            with model.ranked_by(penalties):
                found = run()
    end = model.config.eos_token_id
    written = [
        ids[1:][: length if end not in ids[1:] else ids[1:].index(end) + 1]
        for ids in found.sequences.tolist()
    ]
    every = [
        Hypothesis(ids, score)
        for ids, score in zip(written, found.sequences_scores.tolist(), strict=True)
    ]
    of_examples = [every[start : start + beams] for start in range(0, len(every), beams)]
    return [[one for one in some if one.score > -1e8] for some in of_examples]


@torch.inference_mode()
def rescored(
    model: Any, inputs: dict[str, Tensor], ids: list[int], penalties: Penalties, forced: int = 0
) -> float:
    """Return a hypothesis's score, written out: the library's plain attention, teacher forcing, sums in a loop.

    Args:
        model: a network.
        inputs: one example.
        ids: of the hypothesis, as in `Hypothesis`.
        penalties: how it is ranked.
        forced: how many of its first tokens were forced, so that they cost nothing.
    """
    message: list[Tensor] = []
    attention = model.model.decoder.layers[-1].encoder_attn
    hook = attention.register_forward_hook(
        lambda _module, _inputs, outputs: message.append(outputs[1])
    )
    model.set_attn_implementation("eager")  # which gives its weights by itself
    fed = torch.tensor([[model.config.decoder_start_token_id, *ids[:-1]]])
    logits = model(**inputs, decoder_input_ids=fed).logits[0]
    model.set_attn_implementation("sdpa")
    hook.remove()
    likelihoods = logits.double().log_softmax(-1)[range(len(ids)), ids]
    weights = message[-1][0].double().mean(0)  # [T, S]
    base = len(ids) if penalties.length_norm == "power" else (5 + len(ids)) / 6
    score = float(likelihoods[forced:].sum()) / base**penalties.length_penalty
    for attended in (float(column.sum()) for column in weights.T if column.any()):
        if penalties.coverage == "summary":
            score -= penalties.coverage_penalty * max(0.0, attended - 1)
        elif penalties.coverage == "wu":
            score += penalties.coverage_penalty * math.log(min(attended, 1))
    return float(score)


def check_rescored(
    model: Any,
    inputs: dict[str, Tensor],
    examples: list[dict[str, Tensor]],
    penalties: Penalties,
    **search_by: Any,
) -> int:
    """Check that every hypothesis is worth what the search says, and return how many there were.

    Args:
        model: a network.
        inputs: a batch.
        examples: its examples, each alone.
        penalties: how hypotheses are ranked.
        **search_by: `beams`, `length` and `generate`'s options.
    """
    found, count = search(model, inputs, penalties, **search_by), 0
    forced = 1 if search_by.get("forced_bos_token_id") is not None else 0
    for example, hypotheses in zip(examples, found, strict=True):
        assert hypotheses
        assert hypotheses == sorted(hypotheses, key=lambda one: -one.score)
        for one in hypotheses:
            expected = rescored(model, example, one.ids, penalties, forced)
            assert math.isclose(one.score, expected, rel_tol=1e-5, abs_tol=1e-5), (one, expected)
            count += 1
    return count
