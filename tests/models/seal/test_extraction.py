"""EA and SEAL as extractors: the scorer trained alone, the order of snippets, and the extracts."""

from pathlib import Path
from typing import Any

import pytest
import torch
from support.networks import alone
from support.seal_networks import RAGGED, batch, network, targets
from support.toys import ToySplit, build_tiny, fit_context

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.models.seal.model import draw_units

SCORER = ("ea", "seal")


@pytest.mark.parametrize("name", SCORER)
def test_the_scorers_loss_alone_is_what_it_adds_to_the_whole_loss(name: str) -> None:
    """In training, the whole loss minus the cross-entropy is the loss of the scorer alone."""
    model, inputs, labels = network(name).double().train(), batch(*RAGGED), targets(20, 7, 13)
    proxies = torch.rand(3, 4 if name == "seal" else 1, 9, dtype=torch.float64)
    whole = model(**inputs, labels=labels, proxy_labels=proxies, num_proxy_labels=50).loss
    loss = model.score_alone(
        **inputs, labels=labels, proxy_labels=proxies, num_proxy_labels=50
    ).loss
    torch.testing.assert_close(loss, whole - model(**inputs, labels=labels).loss)


def test_eas_order_is_that_of_its_scores() -> None:
    """EA scores snippets for an extract as it does for its memory."""
    model, inputs = network("ea"), batch(*RAGGED)
    reading = model.model.encoder(**inputs)
    scores, _ = model.select(reading, torch.ones(3, 1, dtype=torch.long))
    assert torch.equal(model.scores_to_extract(reading, inputs["input_ids"]), scores[:, 0])


def best_next(model: Any, inputs: dict[str, Any], chosen: list[int]) -> int:
    """Return the best snippet of one text after some others, each of which is a segment of the output."""
    encoder = model.model.encoder
    reading = encoder(**inputs)
    history = [
        encoder.encode(inputs["input_ids"][:, [one]], inputs["unit_mask"][:, [one]]).pooled
        for one in chosen
    ]
    seen = (torch.cat(history, 1), torch.ones(1, len(chosen), dtype=torch.bool)) if chosen else ()
    scores = encoder.scorer(reading.pooled, reading.real, *seen)[0]
    scores[chosen] = -torch.inf
    return int(scores.argmax())


def test_seal_scores_the_next_snippet_given_those_before() -> None:
    """The order of SEAL's snippets is that of a search that scores all of them again after each choice."""
    model, inputs = network("seal").double(), batch(*RAGGED)
    found = model.scores_to_extract(model.model.encoder(**inputs), inputs["input_ids"])
    for row, example in enumerate(RAGGED):
        one, chosen = alone(inputs, row), list[int]()
        while len(chosen) < len(example):
            chosen.append(best_next(model, one, chosen))
        assert found[row, : len(example)].argsort(descending=True).tolist() == chosen


@pytest.mark.parametrize("name", SCORER)
def test_training_the_scorer_alone_leaves_the_decoder(name: str, tmp_path: Path) -> None:
    """Encoder and scorer learn, the decoder's layers keep their weights, and the validation loss is that of scores."""
    weights = []
    train, validation = ToySplit.of("train", 24), ToySplit.of("validation", 6)
    for steps in (0, 6):
        system = build_tiny(name)
        recipe = {"only": "scorer", "max_steps": steps, "eval_steps": 2, "label_smoothing": 0.1}
        report = system.fit(fit_context(tmp_path, train, validation, **recipe))
        weights.append(system.model.state_dict())
    changed = {key for key in weights[0] if not torch.equal(weights[0][key], weights[1][key])}
    assert not any("decoder.layers" in key for key in changed)
    assert "model.encoder.scorer.score.weight" in changed
    rows = system.reader.rows(validation, 6, ArtifactCache(tmp_path), with_labels=True)
    collated = system.reader.collator()(list(rows))
    expected = system.model.eval().score_alone(**collated).loss.item()
    assert report.validation_loss == pytest.approx(expected, rel=1e-5)


def test_a_share_of_the_snippets_is_drawn() -> None:
    """The others are absent; the number of labels is the expected one, so that the mean loss stays as it is."""
    torch.manual_seed(0)
    mask = torch.ones(50, 40, 3, dtype=torch.bool)
    drawn = draw_units({"unit_mask": mask, "num_proxy_labels": torch.tensor(2_000)}, 0.25)
    kept = drawn["unit_mask"]
    assert torch.equal(kept.any(-1), kept.all(-1))
    assert float(kept.float().mean()) == pytest.approx(0.25, abs=0.03)
    assert int(drawn["num_proxy_labels"]) == 500
