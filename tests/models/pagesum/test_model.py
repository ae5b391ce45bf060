"""PageSum's network: what it keeps of BART's, how pages are mixed, and searches that give what they should."""

from typing import Any

import pytest
import torch
from support.pagesum_networks import (
    DECODINGS,
    END,
    PAD,
    RAGGED,
    START,
    alone,
    batch,
    network,
    stock,
    targets,
)
from support.rescoring import COVERAGES, check_rescored
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache

from longsumbench.modeling.nn.penalties import Penalties
from longsumbench.models.pagesum.model import PageCache, Pages, confidences, mix

pytestmark = pytest.mark.usefixtures("float64")

LENGTHS = (12, 7, 9)  # of the targets of RAGGED


def weighed(model: Any, inputs: dict[str, Tensor], ids: Tensor) -> Tensor:
    """Return the pages' confidences: [B, P, T]."""
    weights: Tensor = model.decode(model.model.encoder(**inputs), ids).unit_scores[:, :, 0]
    return weights


def gradients(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    model.train()(**inputs, labels=targets(*LENGTHS)).loss.backward()
    return {name: weight.grad.to_dense() for name, weight in model.named_parameters()}


def test_reordering_by_hand() -> None:
    """When beams 1 0 | 2 2 of two documents go on, rows 0 1, 2 3 | 4 5 of their pages become 1 0, 3 2 | 4 4.

    The first document has two pages, the second one; the memory's rows stay.
    """
    cache = PageCache(DynamicCache(), DynamicCache())
    rows = torch.arange(6.0).view(6, 1, 1, 1)
    cache.append(0, torch.stack([rows, 10 * rows]))
    cache.cross_attention_cache.update(rows[:3], rows[:3], 0)
    cache.documents, cache.num_documents = torch.tensor([0, 0, 1]), 2
    cache.reorder_cache(torch.tensor([1, 0, 2, 2]))
    (keys, values), memory = cache.target[0][:, :, :, :1], cache.cross_attention_cache.layers[0]
    assert keys.flatten().tolist() == [1, 0, 3, 2, 4, 4]
    assert values.flatten().tolist() == [10, 0, 30, 20, 40, 40]
    assert memory.keys.flatten().tolist() == [0, 1, 2]


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
    model, bart, inputs = network().double(), stock().double(), batch(*RAGGED)
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
            torch.testing.assert_close(logits[row, step], expected)
            for place, share in shares.items():
                torch.testing.assert_close(weights[row, place, step].double(), share[0])


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
        torch.testing.assert_close(logits[row], expected)


def test_mixing_by_hand() -> None:
    """Confidences .25/.75, states 4/8, so the mix is 7; a document of one page is that page; an absent page is 0."""
    lengths, places = (
        torch.tensor([[3, 0, 1], [0, 2, 0]]),
        torch.tensor([0, 4, 2]),
    )  # the longest page first
    pages = Pages(torch.zeros(6, 1), lengths, [3, 2, 1], places, places[:, None], None)
    weights = confidences(torch.tensor([1.0, 5.0, 3.0]).log().view(3, 1, 1), pages)
    mixed = mix(torch.tensor([4.0, 9.0, 8.0]).view(3, 1, 1, 1), weights, pages)
    torch.testing.assert_close(weights[:, :, 0, 0], torch.tensor([[0.25, 0, 0.75], [0, 1, 0]]))
    torch.testing.assert_close(mixed.flatten(), torch.tensor([7.0, 9.0]))


class OperatorNames(TorchDispatchMode):
    """Records the operators that are called, and those that index by a mask as nonzero."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        by_mask = name == "index" and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        self.names.add("nonzero" if by_mask else name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("beams", [1, 3])
def test_a_step_waits_for_nothing_and_sums_in_a_fixed_order(
    beams: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Around the decoder, a step reads no number from the device and uses no atomic sum."""
    model, inputs = network(), batch(*RAGGED)
    pages, ids = model.model.encoder(**inputs), torch.zeros(3 * beams, 1, dtype=torch.long)
    monkeypatch.setattr(
        model, "run_decoder", lambda ids, *_: torch.zeros(*ids.shape, model.config.d_model)
    )
    with OperatorNames() as operators:
        model.decode(pages, ids, model.new_cache())
    waiting, atomic = {"_local_scalar_dense", "nonzero"}, {"index_add", "scatter_add", "index_put"}
    assert {"softmax", "_softmax"} & operators.names
    assert not operators.names & (waiting | atomic)


@pytest.mark.parametrize("decoding", DECODINGS)
def test_the_order_of_pages_is_not_seen(decoding: str) -> None:
    """Positions restart on every page, so that pages the other way round change no logit; confidences go with them."""
    model, inputs = network(decoding=decoding), batch(*RAGGED)
    turned, fed = (
        {name: value.flip(1) for name, value in inputs.items()},
        model.shifted(targets(*LENGTHS)),
    )
    logits = model(**inputs, decoder_input_ids=fed).logits
    torch.testing.assert_close(model(**turned, decoder_input_ids=fed).logits, logits)
    if decoding == "page":
        torch.testing.assert_close(weighed(model, turned, fed), weighed(model, inputs, fed).flip(1))


def test_absent_pages_and_padding_get_nothing() -> None:
    """Confidences sum to one over real pages and are 0 for absent ones; what is under the mask has no gradient."""
    model, inputs = network(), batch(*RAGGED)
    real = inputs["unit_mask"].any(-1)
    weights = weighed(model, inputs, model.shifted(targets(*LENGTHS)))
    assert (weights[real] > 0).all()
    assert not weights[~real].any()
    torch.testing.assert_close(weights.sum(1), torch.ones(3, 12))
    unseen = {name: value.clone() for name, value in inputs.items()}
    unseen["input_ids"][~inputs["unit_mask"]] = 5  # a token, instead of padding
    expected, found = gradients(network(), inputs), gradients(network(), unseen)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_what_training_feeds_by_hand() -> None:
    """For `<s> 7 8 </s>` the default feeds `</s> <s> 7 8`; for `7 8 </s>` the release feeds `<s> 7 8`."""
    labels = torch.tensor([[START, 7, 8, END, -100]])
    assert network().shifted(labels).tolist() == [[END, START, 7, 8, END]]
    assert network(official=True).shifted(labels[:, 1:]).tolist() == [[START, 7, 8, END]]
    assert network().shifted(torch.tensor([[7, -100, -100]])).tolist() == [[END, 7, PAD]]


@pytest.mark.parametrize("decoding", DECODINGS)
@pytest.mark.parametrize("official", [False, True])
def test_the_loss_is_the_smoothed_cross_entropy_of_the_logits(
    official: bool, decoding: str
) -> None:
    """It is the mean cross-entropy of the logits for the fed tokens; smoothed in training alone, by ε/V a column."""
    model = network(official=official, decoding=decoding, label_smoothing=0.1)
    inputs, labels = batch(*RAGGED), targets(*LENGTHS)
    logits = model(**inputs, decoder_input_ids=model.shifted(labels)).logits
    plain = model(**inputs, labels=labels).loss
    torch.testing.assert_close(plain, F.cross_entropy(logits.flatten(0, 1), labels.flatten()))
    columns = -logits.log_softmax(-1)[labels.ne(-100)].mean()
    expected = 0.9 * plain + 0.1 * columns
    torch.testing.assert_close(model.train()(**inputs, labels=labels).loss, expected)
    torch.testing.assert_close(
        model(**inputs, labels=labels, num_items_in_batch=56).loss, expected / 2
    )  # of 28 tokens


@pytest.mark.parametrize("penalties", [*COVERAGES, Penalties("wu", 0.9)], ids=str)
def test_global_decoding_follows_its_coverage(penalties: Penalties) -> None:
    """Every hypothesis of global decoding scores what it scores alone; its forced first token costs nothing."""
    inputs = batch(*RAGGED)
    examples = [alone(inputs, row) for row in range(3)]
    options = {"beams": 3, "length": 9, "forced_bos_token_id": START}
    check_rescored(network(decoding="global"), inputs, examples, penalties, **options)
