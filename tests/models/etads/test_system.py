"""ETADS as a system: what it reads, what it learns, and its evidence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.etads_networks import VARIANTS
from support.hand_texts import encode_words, text_of
from support.networks import score_by
from support.toys import ToySplit, build_tiny, fit_tiny

from longsumbench.core import Decoding, Evidence
from longsumbench.modeling.generation import GeneratedText
from longsumbench.models.etads.config import EtadsConfig
from longsumbench.models.etads.system import EtadsReader

SMALL: dict[str, Any] = {"encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
GREEDY = Decoding(max_length=8, device="cpu")


def test_the_title_stands_before_the_text_and_the_rest_is_cut() -> None:
    """Of a title of 1 word and 3 + 2 words in two documents, 5 are read: the last word is cut, and counted."""
    reader = EtadsReader(EtadsConfig(input_length=5))
    reader.encode = encode_words  # type: ignore[method-assign]
    units = reader.units(text_of(("aa bbb cccc",), ("dd eeeee",), title="t"))
    assert units.ids == ([1, 2, 3, 4, 2],)
    assert units.words == (5,)
    assert [(cut.cause, cut.tokens, cut.words) for cut in units.truncation.cuts] == [
        ("input_length", 1, 1)
    ]
    assert units.truncation.tokens == 6


def test_evidence_has_the_mean_saliency(tmp_path: Path) -> None:
    """Of each token written and each read: the mean of the gates over selecting layers and heads."""
    system = fit_tiny("etads", tmp_path, **SMALL)
    example, written = ToySplit.of("test", 1, start=40)[0], [7, 9, 5]
    units = system.reader.units(example)
    evidence = system.evidence(GeneratedText(example, units, written))
    saliencies: list[torch.Tensor] = []  # of each layer, [H, T, S]
    for layer in system.model.model.decoder.layers:
        layer.encoder_attn.gate.register_forward_hook(
            lambda _module, _inputs, output: saliencies.append(output[0])
        )
    ids = torch.tensor([units.ids])
    fed = torch.tensor([[system.model.config.decoder_start_token_id, *written[:-1]]])
    with torch.inference_mode():
        system.model(
            input_ids=ids, unit_mask=torch.ones_like(ids, dtype=torch.bool), decoder_input_ids=fed
        )
    expected = torch.cat(saliencies).mean(0).numpy()
    np.testing.assert_allclose(evidence.arrays["saliency"], expected, rtol=1e-4)


def test_sentences_are_scored_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score is the mean over a sentence's read tokens and the steps: no title, no query, nothing that is not read."""
    system = build_tiny("etads", input_length=7)
    system.reader.encode = encode_words
    example = replace(text_of(("aa bbb",), ("",), ("cc dd",), ("ee",), title="t"), query="u v?")
    read = system.reader.units(example)
    assert read.ids == ([1, 2, 1, 2, 3, 2, 2],)
    saliency = np.array(
        [[9, 9, 9, 0.2, 0.4, 0.5, 0.5], [9, 9, 9, 0.6, 0.4, 0.7, 0.9]], np.float32
    )  # two steps
    evidence = Evidence({"saliency": saliency}, {"saliency": ("step", "source_token")}, {})
    scored = score_by(evidence, system, example, read, monkeypatch)
    assert scored.spans == [(0, 1), (2, 3)]  # the second has no token, the fourth is not read
    np.testing.assert_allclose(scored.scores, [0.4, 0.65], rtol=1e-6)


def test_a_variant_keeps_the_evidence_that_it_has(tmp_path: Path) -> None:
    """Without focus there are no foci, without selection no saliencies, and the basic model keeps no evidence."""
    example = ToySplit.of("test", 1, start=40)[0]
    kept = {}
    for variant in ("basic", "focus", "saliency"):
        system = fit_tiny(
            "etads",
            tmp_path / variant,
            **{**SMALL, "focus_layers": [], "saliency_layers": [], **VARIANTS[variant]},
        )
        evidence = next(iter(system.summarize([example], GREEDY))).evidence
        kept[variant] = set(evidence.arrays) if evidence is not None else None
    assert kept == {"basic": None, "focus": {"focus"}, "saliency": {"saliency"}}
