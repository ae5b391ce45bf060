"""ETADS as a system: what it reads, what it learns, and its evidence."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support.etads_networks import VARIANTS
from support.toys import TINY, ToySplit, tiny_recipe

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    WINDOW_AXIS,
    Decoding,
    Document,
    Evidence,
    Example,
    FitContext,
    Section,
)
from longsumbench.modeling.generation import GeneratedText
from longsumbench.modeling.units import EncodedSentence
from longsumbench.models.etads import system as etads
from longsumbench.models.etads.config import EtadsConfig
from longsumbench.models.etads.system import Etads, EtadsReader

SETTINGS = {name: value for name, value in TINY.items() if name in EtadsConfig.__dataclass_fields__}
SMALL: dict[str, Any] = {
    **SETTINGS,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "dropout": 0.0,
    "tokenizer": "trained",
}
GREEDY = Decoding(max_length=8, device="cpu")


def fitted(folder: Path, steps: int = 3, **settings: Any) -> Etads:
    system = Etads(EtadsConfig(**{**SMALL, **settings}))
    system.fit(
        FitContext(
            ToySplit.of("train", 24), None, tiny_recipe(max_steps=steps), ArtifactCache(folder)
        )
    )
    return system


def words(sentences: list[str]) -> list[EncodedSentence]:
    """Tokenize by words: the id is the word's length."""
    return [
        EncodedSentence([len(word) for word in text.split()], len(text.split()))
        for text in sentences
    ]


def text(*documents: str, title: str | None = None) -> Example:
    made = tuple(Document(None, (Section(None, ((document,),)),)) for document in documents)
    return Example("x", title, None, made, (("a",),))


def test_the_title_stands_before_the_text_and_the_rest_is_cut() -> None:
    """Of a title of 1 word and 3 + 2 words in two documents, 5 are read: the last word is cut, and counted."""
    reader = EtadsReader(EtadsConfig(**{**SMALL, "input_length": 5}))
    reader.encode = words  # type: ignore[method-assign, assignment]
    units = reader.units(text("aa bbb cccc", "dd eeeee", title="t"))
    assert units.ids == ([1, 2, 3, 4, 2],)
    assert units.words == (5,)
    assert [(cut.cause, cut.tokens, cut.words) for cut in units.truncation.cuts] == [
        ("input_length", 1, 1)
    ]
    assert units.truncation.tokens == 6


def test_a_text_without_a_title_is_read_from_its_start() -> None:
    """Without a title the first token is the text's; a text that fits is not cut; one of nothing has no unit."""
    reader = EtadsReader(EtadsConfig(**SMALL))
    reader.encode = words  # type: ignore[method-assign, assignment]
    assert reader.units(text("aa bbb")).ids == ([2, 3],)
    assert not reader.units(text("aa bbb")).truncation.cuts
    assert reader.units(text()).ids == ()


def test_evidence_is_what_the_layers_computed(tmp_path: Path) -> None:
    """Foci of every layer and head are those of the network fed by hand; saliencies are shares, a row a step."""
    system = fitted(tmp_path, focus_layers=[2], saliency_layers=[1, 2])
    example = ToySplit.of("test", 1, start=40)[0]
    summary = next(iter(system.summarize([example], GREEDY)))
    evidence = summary.evidence
    assert evidence is not None
    focus, saliency = evidence.arrays["focus"], evidence.arrays["saliency"]
    length = len(evidence.texts["source_token"])
    assert focus.shape == (1, 2, length, 2)
    assert evidence.axes["focus"] == ("layer", "head", "source_token", WINDOW_AXIS)
    assert evidence.texts["layer"] == ("encoder layer 2",)
    assert saliency.shape == (len(evidence.texts["step"]), length)
    assert "".join(evidence.texts["step"]).strip() == summary.text
    assert (focus[..., 0] >= 0).all()
    assert (focus <= length).all()
    assert ((saliency > 0) & (saliency < 1)).all()

    units = system.reader.units(example)
    with torch.inference_mode():
        encoder = system.model.model.encoder
        states = encoder.layers[0](encoder.embed(torch.tensor(units.ids), torch.zeros(1)), None)
        attention = encoder.layers[1].self_attn
        queries = attention.q_proj(states).view(1, length, 2, -1).transpose(1, 2)
        windows = attention.focus(queries, torch.ones(1, length, dtype=torch.bool))
    np.testing.assert_allclose(focus[0, ..., 0], windows.centres[0].numpy(), rtol=1e-4)
    np.testing.assert_allclose(focus[0, ..., 1], windows.widths[0].numpy(), rtol=1e-4)


def test_saliencies_are_those_of_the_equation(tmp_path: Path) -> None:
    """Of each token written and each read: the mean of sigmoid((W_h Q)(W_s K)ᵀ) over selecting layers and heads."""
    system = fitted(tmp_path, saliency_layers=[1, 2])
    example, written = ToySplit.of("test", 1, start=40)[0], [7, 9, 5]
    units = system.reader.units(example)
    saliency = system.evidence(GeneratedText(example, units, written)).arrays["saliency"]

    ids = torch.tensor([units.ids])
    layers = [layer.encoder_attn for layer in system.model.model.decoder.layers]
    queries: list[torch.Tensor] = []  # of each layer, [T, D]
    for attention in layers:
        attention.q_proj.register_forward_hook(
            lambda _module, _inputs, output: queries.append(output[0])
        )
    found = []
    with torch.inference_mode():
        memory = system.model.model.encoder(
            ids, torch.ones_like(ids, dtype=torch.bool)
        ).last_hidden_state[0]
        fed = torch.tensor([[system.model.config.decoder_start_token_id, *written[:-1]]])
        system.model(
            input_ids=ids, unit_mask=torch.ones_like(ids, dtype=torch.bool), decoder_input_ids=fed
        )
        for attention, asked in zip(layers, queries, strict=True):
            of_heads = (
                one.view(len(one), 2, -1).unbind(1) for one in (asked, attention.k_proj(memory))
            )
            for query, key, w_h, w_s in zip(
                *of_heads, attention.gate.w_h, attention.gate.w_s, strict=True
            ):
                found.append(torch.sigmoid((query @ w_h) @ (key @ w_s).T))
    np.testing.assert_allclose(saliency, torch.stack(found).mean(0).numpy(), rtol=1e-4)


def test_sentences_are_scored_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score is the mean over a sentence's read tokens and the steps: no title, no query, nothing that is not read."""
    system = Etads(EtadsConfig(**{**SMALL, "input_length": 7}))
    system.reader.encode = words  # type: ignore[method-assign, assignment]
    example = replace(text("aa bbb", "", "cc dd", "ee", title="t"), query="u v?")
    read = system.reader.units(example)
    assert read.ids == ([1, 2, 1, 2, 3, 2, 2],)
    saliency = np.array(
        [[9, 9, 9, 0.2, 0.4, 0.5, 0.5], [9, 9, 9, 0.6, 0.4, 0.7, 0.9]], np.float32
    )  # two steps
    evidence = Evidence({"saliency": saliency}, {"saliency": ("step", "source_token")}, {})
    monkeypatch.setattr(system, "evidence", lambda written: evidence)
    system.model = None  # nothing is decoded
    monkeypatch.setattr(etads, "generate_texts", lambda *_: [GeneratedText(example, read, [5, 6])])
    (scored,) = system.score_source([example], GREEDY)
    assert scored.spans == [(0, 1), (2, 3)]  # the second has no token, the fourth is not read
    np.testing.assert_allclose(scored.scores, [0.4, 0.65], rtol=1e-6)


def test_a_variant_keeps_the_evidence_that_it_has(tmp_path: Path) -> None:
    """Without focus there are no foci, without selection no saliencies, and the basic model keeps no evidence."""
    example = ToySplit.of("test", 1, start=40)[0]
    kept = {}
    for variant in ("basic", "focus", "saliency"):
        system = fitted(
            tmp_path / variant, **{"focus_layers": [], "saliency_layers": [], **VARIANTS[variant]}
        )
        evidence = next(iter(system.summarize([example], GREEDY))).evidence
        kept[variant] = set(evidence.arrays) if evidence is not None else None
    assert kept == {"basic": None, "focus": {"focus"}, "saliency": {"saliency"}}
