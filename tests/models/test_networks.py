"""What every network that reads units keeps to, in double precision: one set of checks for all."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from support import etads_networks, hierarchical_networks, pagesum_networks, seal_networks
from support.networks import alone
from support.reproduction import tdmca_networks
from torch import Tensor
from torch.testing import assert_close

from longsumbench.modeling.nn.folded_attention import CACHE

pytestmark = pytest.mark.usefixtures("float64")


class Case(NamedTuple):
    """A network with a ragged batch of three examples, and their targets."""

    network: Callable[[], Any]
    batch: Callable[[], dict[str, Tensor]]
    targets: Callable[..., Tensor]


def cases(
    module: Any, named: dict[str, dict[str, Any]], *lengths: Any, **batch: Any
) -> dict[str, Case]:
    return {
        name: Case(
            partial(module.network, **settings),
            partial(module.batch, *lengths, **batch),
            module.targets,
        )
        for name, settings in named.items()
    }


SEAL = {name: {"name": name} for name in seal_networks.FAMILY}
PAGESUM = {f"pagesum {decoding}": {"decoding": decoding} for decoding in pagesum_networks.DECODINGS}
HIERARCHICAL = {f"hierarchical {name}": of for name, of in hierarchical_networks.VARIANTS.items()}
ETADS = {f"etads {name}": of for name, of in etads_networks.VARIANTS.items()}
TDMCA = {"tdmca": {}, "tdmca without source": {"source_loss": False}}
PARAGRAPHS = ([5, 3, 0, 7], [2, 6], [4])
CASES = {
    **cases(seal_networks, SEAL, *seal_networks.RAGGED),
    **cases(pagesum_networks, PAGESUM, *pagesum_networks.RAGGED),
    **cases(etads_networks, ETADS, 23, 9, 15),
    **cases(hierarchical_networks, HIERARCHICAL, *PARAGRAPHS),
    **cases(hierarchical_networks, {"hierarchical, a graph": {}}, *PARAGRAPHS, graph=True),
    **cases(tdmca_networks, TDMCA, 23, 9, 2),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    """Every network."""
    return CASES[request.param]


def test_an_example_alone_has_the_logits_it_has_in_a_batch(case: Case) -> None:
    """Other examples, longer or with more units, change no logit."""
    model, inputs, labels = case.network(), case.batch(), case.targets(12, 7, 9)
    together = model(**inputs, labels=labels).logits
    for row, length in enumerate((12, 7, 9)):
        single = model(**alone(inputs, row), labels=labels[row : row + 1, :length]).logits[0]
        assert_close(single, together[row, :length])


@pytest.mark.parametrize("beams", [1, 4])
def test_cached_search_equals_uncached(case: Case, beams: int) -> None:
    """Keys and values that are kept give the ids that computing all anew gives, alone, too; the cache grows."""
    model, inputs = case.network(), case.batch()
    options = {"pad_token_id": model.config.pad_token_id, "num_beams": beams, "max_new_tokens": 20}
    options |= {"no_repeat_ngram_size": 1, "do_sample": False}
    with torch.inference_mode():
        cached, uncached = (
            model.generate(**inputs, **options, use_cache=use) for use in (True, False)
        )
        assert torch.equal(cached, uncached)
        for row, ids in enumerate(cached.tolist()):
            (single,) = model.generate(**alone(inputs, row), **options).tolist()
            assert single == ids[: len(single)]


def test_stepwise_equals_teacher_forced(case: Case) -> None:
    """Feeding a few tokens at a time through the cache gives the logits of the whole target."""
    model, inputs, cache, steps = case.network(), case.batch(), None, []
    ids = model.shifted(case.targets(12, 12, 12))
    reading = model.model.encoder(**inputs)
    for some in ids.split(5, 1):
        one = model(
            encoder_outputs=reading, decoder_input_ids=some, use_cache=True, **{CACHE: cache}
        )
        cache = one[CACHE]
        steps.append(one.logits)
    assert_close(torch.cat(steps, 1), model(**inputs, decoder_input_ids=ids).logits)


def test_every_weight_learns(case: Case) -> None:
    """The loss has a gradient for every weight but those of selection, which SEAL's own loss trains (SEAL §3.4)."""
    model = case.network().train()
    model(**case.batch(), labels=case.targets(12, 7, 9)).loss.backward()
    for name, weight in model.named_parameters():
        if "confidence" not in name:
            reached = weight.grad is not None and bool(weight.grad.any())
            assert reached == ("scorer" not in name), name


def test_a_checkpoint_gives_back_the_network(case: Case, tmp_path: Path) -> None:
    """Saved and opened by the library alone, it gives the same logits."""
    model, inputs, labels = case.network(), case.batch(), case.targets(4, 7, 2)
    model.tie_weights()
    model.save_pretrained(tmp_path)
    opened = (
        type(model).from_pretrained(tmp_path).eval().double()
    )  # float32 sums depend on where weights lie in memory
    assert_close(
        opened(**inputs, labels=labels).logits, model.double()(**inputs, labels=labels).logits
    )
