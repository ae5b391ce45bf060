"""PageSum's network: what it keeps of BART's, how pages are mixed, and searches that give what they should."""

from typing import Any

import pytest
import torch
from support.pagesum_networks import END, PAD, RAGGED, START, batch, network, stock, targets
from torch import Tensor
from torch.nn import functional as F
from torch.testing import assert_close

pytestmark = pytest.mark.usefixtures("float64")

LENGTHS = (12, 7, 9)  # of the targets of RAGGED


def weighed(model: Any, inputs: dict[str, Tensor], ids: Tensor) -> Tensor:
    """Return the pages' confidences: [B, P, T]."""
    weights: Tensor = model.decode(model.model.encoder(**inputs), ids).unit_scores[:, :, 0]
    return weights


def real_pages(inputs: dict[str, Tensor], row: int) -> dict[int, Tensor]:
    """Return the place and the tokens of an example's pages, absent ones left out."""
    pages = enumerate(zip(inputs["input_ids"][row], inputs["unit_mask"][row], strict=True))
    return {place: ids[mask] for place, (ids, mask) in pages if mask.any()}


def states_of(bart: Any, ids: Tensor, fed: Tensor) -> Tensor:
    """Return what a stock BART's decoder makes of some input when it reads one page: [T, D]."""
    states: Tensor = bart.model(input_ids=ids[None], decoder_input_ids=fed[None]).last_hidden_state
    return states[0]


@pytest.mark.parametrize("limits", [(4_096, 512), (12, 4)])
def test_packed_pages_are_stock_ones_mixed_by_hand(
    limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logits are those of a plain loop: each page through a stock BART alone, softmax, sum, projection (Eqs. 6-9)."""
    for name, limit in zip(("PIECE_TOKENS", "ENOUGH_TOKENS"), limits, strict=True):
        monkeypatch.setattr(f"longsumbench.modeling.nn.unit_encoder.{name}", limit)
    model, bart, inputs = network(), stock(), batch(*RAGGED)
    fed = model.shifted(targets(*LENGTHS))
    logits, weights = model(**inputs, decoder_input_ids=fed).logits, weighed(model, inputs, fed)
    for row in range(len(RAGGED)):
        states = {
            place: states_of(bart, ids, fed[row]) for place, ids in real_pages(inputs, row).items()
        }
        for step in range(fed.shape[1]):
            scores = {
                place: model.confidence(hidden[step]).exp() for place, hidden in states.items()
            }
            shares = {place: score / sum(scores.values()) for place, score in scores.items()}
            mixed = sum(share * states[place][step] for place, share in shares.items())
            expected = bart.lm_head(mixed) + bart.final_logits_bias[0]
            assert_close(logits[row, step], expected)
            for place, share in shares.items():
                assert_close(weights[row, place, step], share[0])


def test_global_decoding_is_a_stock_decoder_over_all_pages() -> None:
    """Logits are a stock BART's whose memory is the pages, each encoded alone, one behind the other (Table 7)."""
    model, bart, inputs = network(decoding="global"), stock(), batch(*RAGGED)
    fed = model.shifted(targets(*LENGTHS))
    logits = model(**inputs, decoder_input_ids=fed).logits
    for row in range(len(RAGGED)):
        pages = real_pages(inputs, row).values()
        memory = torch.cat(
            [bart.model.encoder(input_ids=ids[None]).last_hidden_state for ids in pages], 1
        )
        expected = bart(encoder_outputs=(memory,), decoder_input_ids=fed[row : row + 1]).logits[0]
        assert_close(logits[row], expected)


def test_what_training_feeds_by_hand() -> None:
    """For `<s> 7 8 </s>` the default feeds `</s> <s> 7 8`; for `7 8 </s>` the release feeds `<s> 7 8`."""
    labels = torch.tensor([[START, 7, 8, END, -100]])
    assert network().shifted(labels).tolist() == [[END, START, 7, 8, END]]
    assert network(official=True).shifted(labels[:, 1:]).tolist() == [[START, 7, 8, END]]
    assert network().shifted(torch.tensor([[7, -100, -100]])).tolist() == [[END, 7, PAD]]


@pytest.mark.parametrize("official", [False, True])
def test_the_loss_is_the_smoothed_cross_entropy_of_the_logits(official: bool) -> None:
    """It is the mean cross-entropy of the logits for the fed tokens; smoothed in training alone, by ε/V a column."""
    model = network(official=official, label_smoothing=0.1)
    inputs, labels = batch(*RAGGED), targets(*LENGTHS)
    logits = model(**inputs, decoder_input_ids=model.shifted(labels)).logits
    plain = model(**inputs, labels=labels).loss
    assert_close(plain, F.cross_entropy(logits.flatten(0, 1), labels.flatten()))
    columns = -logits.log_softmax(-1)[labels.ne(-100)].mean()
    expected = 0.9 * plain + 0.1 * columns
    assert_close(model.train()(**inputs, labels=labels).loss, expected)
