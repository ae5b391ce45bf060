"""PageSum as a system: pages and targets, evidence, and texts without what a locality asks for."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from support.hand_texts import encode_letters
from support.toys import ToySplit, example, fit_tiny, refuses, settings_of
from transformers import PreTrainedTokenizerBase

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Decoding, Document, Example, Section
from longsumbench.modeling.tokenizer import token_texts, train_tokenizer
from longsumbench.modeling.unit_reader import collate_units
from longsumbench.models.pagesum.config import PageSumConfig
from longsumbench.models.pagesum.pages import PageReader
from longsumbench.models.pagesum.system import PageSum

BEAMS = Decoding(num_beams=3, max_length=20, min_length=8, no_repeat_ngram=2, device="cpu")
TEXTS = ToySplit.of("test", 4, start=40).examples
LETTERS = SimpleNamespace(bos_token_id=ord("<"), eos_token_id=ord(">"))


def fitted(
    cache: ArtifactCache, split: ToySplit | None = None, steps: int = 2, **changes: Any
) -> Any:
    return fit_tiny("pagesum", cache.root, split, steps, **changes)


def pages_of(one: Example, **settings: Any) -> tuple[list[str], Any]:
    """Return the pages of an example as text, and its ledger."""
    reader = PageReader(PageSumConfig(init="random", **settings))
    reader.tokenizer, reader.encode = LETTERS, encode_letters  # type: ignore[method-assign]
    units = reader.units(one)
    assert len(units.documents) == len(units.words) == len(units.ids)
    return ["".join(map(chr, ids)) for ids in units.ids], units


def text_of(*documents: tuple[tuple[str | None, tuple[str, ...]], ...]) -> Example:
    """Return an example of documents, each of sections with a name and sentences."""
    read = tuple(
        Document(None, tuple(Section(name, (text,)) for name, text in one)) for one in documents
    )
    return Example("x", None, None, read, (("ab",),))


ARTICLE = text_of(((None, ("aa", "bb", "cc")), (None, ("dd", "ee"))))
PAPER = text_of((("One", ("aa", "bb")), ("Two", ()), (None, ("cc",))), (("Three", ("dd ee",)),))
NOTHING = text_of()


@pytest.mark.parametrize(
    ("one", "settings", "expected"),
    [
        (ARTICLE, "num_pages=3", ["<aabb>", "<ccdd>", "<ee>"]),
        (ARTICLE, "num_pages=7 fidelity=official page_size=5", ["<aab>", *["<.>"] * 6]),
        (ARTICLE, "page_size=5 max_input_tokens=15", ["<aab>", "<bcc>", "<dde>"]),
        (
            ARTICLE,
            "page_size=8 max_input_tokens=24 fidelity=official",
            ["<aabbcc>", "<ddee>", "<.>"],
        ),
        (PAPER, "locality=discourse", ["<Oneaabb>", "<cc>", "<Threeddee>"]),
        (PAPER, "locality=document", ["<aabbcc>", "<ddee>"]),
        (NOTHING, "num_pages=2 fidelity=official", ["<>", "<.>"]),
    ],
)
def test_pages_by_hand(one: Example, settings: str, expected: list[str]) -> None:
    """Every page is between its special tokens; the release fills up with ".", the default leaves pages absent."""
    assert pages_of(one, **settings_of(settings))[0] == expected


def test_an_extract_is_made_of_the_most_confident_pages(cache: ArtifactCache) -> None:
    """Scores are the confidences of the summary that is written first, in the mean over its tokens."""
    two = replace(TEXTS[3], documents=TEXTS[2].documents + TEXTS[3].documents)
    system = fitted(cache)
    (scored,) = system.score_source([two], BEAMS)
    (written,) = system.summarize([two], BEAMS)
    spans = system.reader.units(two).spans
    read = [index for index, (first, end) in enumerate(spans) if first < end]
    assert list(scored.spans) == [spans[index] for index in read]
    assert len(read) > 1
    assert_allclose(scored.scores, written.evidence.arrays["confidence"].mean(1)[read], rtol=1e-5)


@pytest.mark.parametrize(("fidelity", "expected"), [("default", "<ab>"), ("official", "ab>")])
def test_targets(fidelity: str, expected: str) -> None:
    """The default learns to write `<s>` first, the release does not."""
    reader = PageReader(PageSumConfig(fidelity=fidelity))
    reader.tokenizer = LETTERS
    assert "".join(map(chr, reader.target([ord("a"), ord("b")]))) == expected


def weighed(system: PageSum, one: Example, fed: torch.Tensor) -> torch.Tensor:
    """Return the confidences of an example's pages when a decoder's input is fed as a whole: [P, T]."""
    with torch.no_grad():
        pages = system.model.model.encoder(
            **collate_units(system.reader, [system.reader.units(one)])
        )
        weights: torch.Tensor = system.model.decode(pages, fed[None]).unit_scores
    return weights[0, :, 0]


@pytest.mark.parametrize("beams", [1, 3])
def test_evidence_is_what_each_token_was_predicted_by(
    beams: int, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step's confidences are those of the state that predicted its token, and sum to one over the pages."""
    system, one, seen = fitted(cache, steps=8), TEXTS[3], []
    whole = system.model.generate

    def generate(**given: Any) -> Any:
        seen.append(whole(**given))
        return seen[0]

    monkeypatch.setattr(system.model, "generate", generate)
    (summary,) = system.summarize([one], replace(BEAMS, num_beams=beams))
    steps = len(seen[0][0]) - 2  # the first two tokens are `</s> <s>`, which nothing predicts
    if summary.complete:
        steps -= 1  # the end
    evidence = summary.evidence
    assert evidence is not None
    confidence = evidence.arrays["confidence"]
    assert confidence.shape == (3, steps)
    assert_allclose(
        confidence, weighed(system, one, seen[0][0])[:, 1 : 1 + steps], rtol=1e-4, atol=1e-6
    )
    assert_allclose(confidence.sum(0), 1, rtol=1e-5)
    assert evidence.axes == {"confidence": ("unit", "step")}


@pytest.mark.parametrize("fidelity", ["default", "official"])
def test_evidence_of_the_reference(fidelity: str, cache: ArtifactCache) -> None:
    """On request it says, for the reference's tokens fed as in training, what would predict each of them."""
    system, one = fitted(cache, steps=8, fidelity=fidelity), TEXTS[1]
    (summary,) = system.summarize([one], replace(BEAMS, reference_evidence=True))
    assert summary.evidence is not None
    found = summary.evidence.arrays["reference_confidence"]
    fed = system.model.shifted(torch.tensor([system.reader.row(one)["labels"]]))[0]
    first = 0 if fidelity == "official" else 1  # behind `<s>`
    assert_allclose(found, weighed(system, one, fed)[:, first:-1], rtol=1e-4, atol=1e-6)
    texts = summary.evidence.texts["reference_step"]
    assert len(texts) == found.shape[1]
    assert one.references[0][0].startswith("".join(texts).strip())


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerBase:
    """A tokenizer that has hardly more than the 256 bytes."""
    return train_tokenizer(ToySplit.of("train", 4), 280)


@given(st.text(max_size=20))
def test_the_texts_of_tokens_joined_are_the_text(
    tokenizer: PreTrainedTokenizerBase, text: str
) -> None:
    """A character of several tokens comes with the last of them, and none is lost or doubled."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    texts = list(token_texts(tokenizer, ids))
    assert len(texts) == len(ids)
    assert "".join(texts) == tokenizer.decode(ids, skip_special_tokens=True)


def split_of(*examples: Example, multi_document: bool = False) -> ToySplit:
    return ToySplit("train", list(examples), multi_document)


@pytest.mark.parametrize(
    ("locality", "split", "message"),
    [
        (
            "discourse",
            split_of(example(1), example(2)),
            r"model\.locality=discourse.*no sections.*choose spatial",
        ),
        (
            "document",
            split_of(example(1), PAPER),
            r"locality=document.*each text is a single document: choose spatial",
        ),
    ],
)
def test_texts_without_what_a_locality_asks_for(
    locality: str, split: ToySplit, message: str, cache: ArtifactCache
) -> None:
    """Discourse pages of texts without sections, or document pages of single documents, are refused before any work."""
    with refuses(message):
        fitted(cache, split, locality=locality)
    assert not list(cache.root.glob("*/*"))
