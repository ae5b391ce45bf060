"""CA, EA and SEAL as systems: units, labels, evidence, and odd input."""

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from support.hand_texts import encode_letters, text_of
from support.toys import WORDS, example, fit_tiny, refuses

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Decoding
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.unit_reader import UnitReader, collate_units
from longsumbench.models.seal.config import CAConfig, EAConfig, SealConfig, TruncConfig
from longsumbench.models.seal.model import TruncForConditionalGeneration
from longsumbench.models.seal.readers import CAReader, EAReader

GREEDY = Decoding(max_length=20, device="cpu")


def hand(reader: UnitReader, multi_document: bool = False) -> Any:
    """Return a reader with a token a letter, that knows this of the training texts."""
    reader.encode, reader.multi_document = encode_letters, multi_document  # type: ignore[method-assign]
    return reader


def letters(units: Any) -> list[str]:
    """Return units as text."""
    return ["".join(map(chr, ids)) for ids in units.ids]


def test_groups_of_consecutive_snippets() -> None:
    """Of a single document, snippets aa, bb, cc make groups of two: aabb, cc."""
    reader = hand(
        CAReader(CAConfig(snippet_length=2, num_snippets=9, group_size=2, extractive_length=2))
    )
    assert letters(reader.units(text_of(("aa", "bb", "cc")))) == ["aabb", "cc"]


def test_a_group_for_each_document() -> None:
    """Of several documents, each is a group; those beyond `max_documents` join the last one, and are counted."""
    config = CAConfig(snippet_length=2, num_snippets=9, max_documents=2, extractive_length=2)
    units = hand(CAReader(config), multi_document=True).units(
        text_of(("aa", "bb"), ("cc",), ("dd",), ("ee",))
    )
    assert letters(units) == ["aabb", "ccddee"]
    assert units.documents == (0, 1)
    assert units.truncation.documents_merged == 2
    assert units.truncation.cuts == ()


def test_snippets_know_their_document() -> None:
    """EA and SEAL embed the index of a snippet's document, where there are several; the last embedding is shared."""
    config = EAConfig(snippet_length=2, num_snippets=9, max_documents=2, extractive_length=2)
    text = text_of(("aa", "bb"), ("cc",), ("dd",))
    assert hand(EAReader(config)).units(text).documents == (0, 0, 1, 2)
    assert config.model_entries(multi_document=False)["max_documents"] == 0
    several = hand(EAReader(config), multi_document=True).units(text)
    assert several.documents == (0, 0, 1, 1)
    assert several.truncation.documents_merged == 1
    assert config.model_entries(multi_document=True)["max_documents"] == 2


@pytest.mark.parametrize(
    ("multi_document", "settings", "vectors"),
    [
        (False, {}, 18),  # ⌊1024 / ⌈224 / 4⌉⌋
        (True, {}, 8),  # ⌊1024 / 128⌋
        (True, {"extractive_length": 100}, 1),
        (False, {"compressed_length": 5}, 5),
    ],
)
def test_vectors_of_a_group(multi_document: bool, settings: dict[str, int], vectors: int) -> None:
    """A group has max(1, ⌊extractive_length / number of groups⌋) vectors unless it is said otherwise."""
    assert CAConfig(**settings).count_group_vectors(multi_document) == vectors  # type: ignore[arg-type]


def test_labels_of_a_training_row() -> None:
    """Target 1 2 3 4 end, segments of 3: 1 2 3 | 4. Snippet 1 2 3 labels them 1, 0; snippet 2 3 9 4: 2·1/(3+2), 0."""
    segments = EAReader(SealConfig(segment_length=3, snippet_length=4, extractive_length=8))
    whole = EAReader(EAConfig(snippet_length=4, extractive_length=8))
    segments.tokenizer = whole.tokenizer = SimpleNamespace(eos_token_id=0)
    row = {"units": [[1, 2, 3], [2, 3, 9, 4]], "labels": [1, 2, 3, 4, 0], "query_length": 0}
    assert np.allclose(segments.label_row(row), [[1.0, 0.4], [0.0, 0.0]])
    assert np.allclose(whole.label_row(row), [[2 * 2 / (2 + 3), 2 * 1 / (3 + 3)]])


def test_labels_are_made_again_only_when_they_would_change(cache: ArtifactCache) -> None:
    """Another extractive length finds units and labels; another segment length finds the units and makes labels."""
    fit_tiny("seal", cache.root)
    made = lambda name: len(list((cache.root / name).glob("*/rows.arrow")))  # noqa: E731
    assert (made("units"), made("labels")) == (1, 1)
    fit_tiny("seal", cache.root, extractive_length=16)
    assert (made("units"), made("labels")) == (1, 1)
    fit_tiny("seal", cache.root, segment_length=5)
    assert (made("units"), made("labels")) == (1, 2)


def test_a_batch_brings_its_labels_along(cache: ArtifactCache) -> None:
    """Collated labels are those of the rows, 0 where an example has fewer segments or snippets."""
    system = fit_tiny("seal", cache.root, steps=0, segment_length=5)
    reader = system.reader
    rows = [reader.row(example(number, sentences)) for number, sentences in ((1, 6), (2, 2))]
    for row in rows:
        row["proxy_labels"] = reader.label_row(row)
    batch = reader.collator()(rows)
    segments = -(-batch["labels"].shape[1] // 5)
    assert batch["proxy_labels"].shape == (2, segments, batch["input_ids"].shape[1])
    for row, of_row in zip(rows, batch["proxy_labels"], strict=True):
        labels = np.array(row["proxy_labels"])
        assert np.allclose(of_row[: labels.shape[0], : labels.shape[1]], labels)
        assert of_row.sum() == pytest.approx(labels.sum())
    assert "proxy_labels" not in reader.collator()([reader.row(example(1, 6))])


@pytest.mark.parametrize("name", ["ea", "seal"])
def test_evidence_says_what_the_decoder_saw(name: str, cache: ArtifactCache) -> None:
    """A segment saw as many tokens as fit, of the best snippets, whole but for the last; its text is the summary's."""
    system = fit_tiny(name, cache.root, extractive_length=20, snippet_length=16)
    for summary in system.summarize([example(3, 6), example(4, 1)], GREEDY):
        evidence = summary.evidence
        lengths = np.array(
            [len(system.reader.encode([text])[0].ids) for text in evidence.texts["unit"]]
        )
        scores, taken = evidence.arrays["scores"], evidence.arrays["selected_tokens"]
        count = 1 if name == "ea" else -(-(summary.tokens + summary.complete) // 6)
        assert scores.shape == taken.shape == (count, len(lengths))
        assert (taken.sum(1) == min(20, lengths.sum())).all()
        for of_segment, tokens in zip(scores, taken, strict=True):
            order = np.argsort(-of_segment, kind="stable")
            is_whole = tokens[order] == lengths[order]
            assert (np.diff(is_whole.astype(int)) <= 0).all()  # none is whole after one that is cut
        written = "".join(evidence.texts["segment"])
        assert "".join(written.split()) == "".join(summary.text.split())


def test_another_sizes_checkpoint_is_refused(tmp_path: Path, cache: ArtifactCache) -> None:
    """model.init=FOLDER of a SEAL with other sizes, or of EA, is one line that names what differs."""
    fit_tiny("seal", cache.root, steps=0).save(tmp_path)
    for change, message in (
        ({"d_model": 64}, "d_model is 32 there and 64 here"),
        ({"scorer_layers": 2}, "scorer_layers"),
    ):
        with refuses(message):
            fit_tiny("seal", cache.root, None, init=str(tmp_path), **change)
    # No weight depends on these.
    longer: dict[str, Any] = {"extractive_length": 48, "segment_length": 8, "decode_length": 48}
    system = fit_tiny("seal", cache.root, steps=0, init=str(tmp_path), **longer)
    assert system.model.config.segment_length == 8
    with refuses("is a checkpoint of 'seal', not of 'ea'"):
        fit_tiny("ea", cache.root, init=str(tmp_path))


@dataclass
class ClashingConfig(TruncConfig):
    """Trunc's settings, and two with the names of entries of the network's configuration."""

    activation_function: str = "tanh"
    label_smoothing: float = 0.25


def test_only_what_a_network_adds_is_copied_by_name() -> None:
    """A setting sets the entry that the suite's class adds, and never one of the library's that it knows nothing of."""
    made = ModelBuilder(ClashingConfig(), TruncForConditionalGeneration).model_config(40, (0, 1, 2))
    assert (made.activation_function, made.label_smoothing) == ("relu", 0.25)


@pytest.fixture(scope="module")
def seal(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny SEAL, whose snippets have a sentence each."""
    folder = tmp_path_factory.mktemp("stages")
    return fit_tiny("seal", folder, extractive_length=20, snippet_length=16)


@given(sentences=st.integers(1, 8), length=st.integers(1, 40))
def test_the_next_segments_scores_are_those_of_decoding(
    seal: Any, sentences: int, length: int
) -> None:
    """Given what is written, SEAL scores for the next segment as its network does in an output that has it."""
    segment_length = seal.config.segment_length
    text = seal.tokenizer.decode(seal.reader.encode_target(" ".join(WORDS)).ids[:length]).strip()
    ids = seal.reader.encode_target(text).ids
    source = example(3, sentences)
    scored = seal.score_next(source, text, GREEDY)

    whole_segments = -(-len(ids) // segment_length)
    padding = [seal.model.config.pad_token_id] * (whole_segments * segment_length - len(ids))
    history = [seal.model.config.decoder_start_token_id, *ids, *padding, 7, 8, 9]
    batch = collate_units(seal.reader, [seal.reader.units(source)])
    with torch.inference_mode():
        scores, _ = seal.model.select(seal.model.model.encoder(**batch), torch.tensor([history]))
    expected = scores[0, whole_segments, : len(scored.spans)].numpy()
    np.testing.assert_allclose(scored.scores, expected, rtol=1e-4, atol=1e-6)
