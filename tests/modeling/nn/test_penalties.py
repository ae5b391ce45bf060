from typing import Any

import pytest
import torch
from support.networks import special_tokens
from support.rescoring import COVERAGES, Hypothesis, check_rescored, search
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration

from longsumbench.modeling.nn.encoder_decoder import UnitsToText, fold_cross_attention
from longsumbench.modeling.nn.folded_attention import FoldedAttention, recorded_attention
from longsumbench.modeling.nn.masks import attention_mask, never_empty
from longsumbench.modeling.nn.penalties import Penalties
from longsumbench.modeling.nn.unit_encoder import UnitEncoder

pytestmark = pytest.mark.usefixtures("float64")

PAD, START, END = 0, 1, 2
RAGGED = (7, 4, 1)
SUMMARY, WU = Penalties("wu", 0.9, "summary", 5.0), Penalties("wu", 0.9, "wu", 0.2)


class Plain(UnitsToText, BartForConditionalGeneration):
    """As BART, except: it reads units."""

    def __init__(self, config: BartConfig) -> None:
        super().__init__(config)
        self.model.encoder = UnitEncoder(config, norm_first=False)
        fold_cross_attention(self.model.decoder, config)
        self.post_init()


def network(seed: int = 0, vocabulary: int = 12) -> Any:
    """Return a network that writes ends now and then, and looks at its memory closely."""
    sizes = dict.fromkeys(
        ("encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"),
        2,
    )
    special = {"bos_token_id": START, **special_tokens(PAD, START, END)}
    config = BartConfig(
        vocab_size=vocabulary,
        d_model=16,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        init_std=0.6,
        **sizes,
        **special,
    )
    torch.manual_seed(seed)
    return Plain(config).eval()


def batch(*lengths: int, seed: int = 0) -> dict[str, Tensor]:
    """Return examples of one unit each, of so many tokens."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids = torch.randint(3, 12, mask.shape, generator=generator) * mask
    return {"input_ids": ids[:, None], "unit_mask": mask[:, None]}


def apart(inputs: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Return the examples one by one, their padding cut away."""
    lengths = inputs["unit_mask"].sum((1, 2)).tolist()
    return [
        {name: value[row : row + 1, :, :length] for name, value in inputs.items()}
        for row, length in enumerate(lengths)
    ]


def close(found: list[list[Hypothesis]], others: list[list[Hypothesis]]) -> bool:
    """Tell whether two searches ended with the same hypotheses and scores."""
    ids, other_ids = ([[one.ids for one in some] for some in every] for every in (found, others))
    scores, other_scores = (
        torch.tensor([one.score for some in every for one in some]) for every in (found, others)
    )
    return ids == other_ids and torch.allclose(scores, other_scores, rtol=1e-5, atol=1e-5)


def test_three_tokens_by_hand() -> None:
    """|Y| = 3, log p = -2.4, attention 1.5, 0.9, 0.6 and padding; α 0.9, β 5 (summary) and 0.2 (wu).

    lp = (8/6)^0.9 = 1.29552, so -1.85254. summary: -5·0.5 = -2.5, together -4.35254.
    wu: 0.2·(log 1 + log 0.9 + log 0.6) = 0.2·(0 - 0.10536 - 0.51083) = -0.12324, together -1.97578.
    """
    attention = torch.tensor([[1.5, 0.9, 0.6, 0.0]])
    real = torch.tensor([[True, True, True, False]])
    assert SUMMARY.divisor(3) == pytest.approx(1.29552, abs=1e-5)
    shortened = -2.4 / SUMMARY.divisor(3)
    assert shortened == pytest.approx(-1.85254, abs=1e-5)
    assert shortened + float(SUMMARY.of_coverage(attention, real)) == pytest.approx(
        -4.35254, abs=1e-5
    )
    assert shortened + float(WU.of_coverage(attention, real)) == pytest.approx(-1.97578, abs=1e-5)
    unread = Penalties("wu", 0.9, "wu", 1.0).of_coverage(torch.zeros(1, 4), real)
    assert float(unread) == pytest.approx(3 * -20.72327, abs=1e-4)  # log 1e-9 each, and finite
    assert Penalties("power", 2.0).divisor(3) == 9


@pytest.mark.parametrize("penalties", COVERAGES, ids=str)
@pytest.mark.parametrize(("seed", "beams"), [(0, 2), (1, 3), (2, 5), (3, 10)])
def test_every_hypothesis_is_worth_its_score(penalties: Penalties, seed: int, beams: int) -> None:
    """Of ragged batches every finished hypothesis scores log p / lp + cp, recomputed alone by teacher forcing."""
    inputs = batch(*RAGGED, seed=seed)
    assert (
        check_rescored(network(seed), inputs, apart(inputs), penalties, beams=beams, length=9) > 3
    )


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, -1.0])
@pytest.mark.parametrize("early", [False, True, "never"])
def test_power_alone_is_the_librarys_rule(exponent: float, early: bool | str) -> None:
    """Without coverage and with length_norm=power a search ends with the library's hypotheses and scores."""
    for seed in range(3):
        model, inputs, penalties = (
            network(seed),
            batch(*RAGGED, seed=seed),
            Penalties("power", exponent),
        )
        ours = search(model, inputs, penalties, 4, 10, early_stopping=early)
        assert close(
            ours, search(model, inputs, None, 4, 10, length_penalty=exponent, early_stopping=early)
        )


@pytest.mark.parametrize("kind", ["summary", "wu"])
@pytest.mark.parametrize("weight", [0.1, 0.3, 1.0])
def test_a_search_ends_when_nothing_better_can_come(
    kind: str, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where length changes no score, the rule of ending finds what a search without one finds, in fewer steps."""
    penalties, steps = Penalties("wu", 0.0, kind, weight), []
    followed = Penalties.of_coverage

    def counted(*given: Any) -> Any:
        steps.append(1)
        return followed(*given)

    monkeypatch.setattr(Penalties, "of_coverage", counted)

    def found(seed: int) -> list[int]:
        model = network(seed)
        model.final_logits_bias[0, END] += 2.5
        return search(model, batch(12, seed=seed), penalties, 2, 20)[0][0].ids

    ours = [found(seed) for seed in range(4)]
    taken = len(steps)
    monkeypatch.setattr(Penalties, "at_best", lambda _, found: torch.full_like(found, torch.inf))
    assert ours == [found(seed) for seed in range(4)]
    assert taken < len(steps) - taken


@pytest.mark.parametrize("per_beam", [False, True])
def test_watching_gives_the_weights_and_changes_nothing(per_beam: bool) -> None:
    """Fused attention tells what eager attention tells, and its output is bit by bit what it is unwatched."""
    torch.manual_seed(0)
    config = BartConfig(d_model=16, decoder_attention_heads=2)
    attention = FoldedAttention(16, 2, config=config, layer_idx=0).eval()
    queries, memory, mask = (
        torch.randn(6, 3, 16),
        torch.randn(2, 7, 16),
        never_empty(torch.rand(6, 7) > 0.4),
    )
    mask = mask if per_beam else mask[::3]
    outputs = {}
    for implementation in ("sdpa", "eager"):
        config._attn_implementation = implementation
        form = attention_mask(mask, config, torch.float32)
        plain = attention(queries, key_value_states=memory, attention_mask=form)[0]
        with recorded_attention(attention) as recorded_weights:
            assert torch.equal(
                attention(queries, key_value_states=memory, attention_mask=form)[0], plain
            )
        assert attention.recorded_weights is None
        outputs[implementation] = recorded_weights[0]
    assert outputs["sdpa"].shape == (2, 2, 9, 7)  # [R, H, K·T, S]
    torch.testing.assert_close(outputs["sdpa"], outputs["eager"])
