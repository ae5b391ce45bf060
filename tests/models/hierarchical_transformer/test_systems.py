"""The Hierarchical Transformer, the Flat Transformer and T-DMCA as systems: what they read, learn, and show."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.hand_texts import encode_words
from support.language_models import text_example
from support.networks import score_by
from support.toys import ToySplit, build_tiny, fit_context, fit_tiny

from longsumbench.core import Decoding, Document, Evidence, Example, Section
from longsumbench.modeling.unit_reader import collate_units

GREEDY = Decoding(max_length=8, device="cpu")


def built(name: str, **settings: Any) -> Any:
    """Return the reader of a small system that takes paragraphs as they come, a token a word."""
    reader = build_tiny(name, **{"rank": "none", **settings}).reader
    reader.encode = encode_words
    return reader


def fitted(name: str, folder: Path, steps: int = 3, **settings: Any) -> Any:
    """Return a small system without a ranker, trained for a few steps."""
    return fit_tiny(name, folder, steps=steps, **{"rank": "none", "dropout": 0.0, **settings})


def cluster(*documents: tuple[str, ...], title: str | None = "t") -> Example:
    """Return an example of documents of paragraphs of one sentence each."""
    text = text_example(*([[sentence] for sentence in document] for document in documents))
    return replace(text, title=title)


CLUSTER = cluster(("aa bbb cccc", "dd"), ("eeeee f gg",))


def test_paragraphs_are_units_and_the_title_is_the_first() -> None:
    """Unit 0 is the title, then the paragraphs of all documents; each remembers its document."""
    units = built("hierarchical_transformer").units(CLUSTER)
    assert units.ids == ([1], [2, 3, 4], [2], [5, 1, 2])
    assert units.documents == (0, 0, 0, 1)


@pytest.mark.parametrize("name", ["flat_transformer", "tdmca"])
def test_the_others_read_them_as_one_text(name: str) -> None:
    """Title and paragraphs are joined, and cut at the input's length, which the ledger says."""
    units = built(name, input_length=6).units(CLUSTER)
    assert units.ids == ([1, 2, 3, 4, 2, 5],)
    assert [(cut.cause, cut.tokens) for cut in units.truncation.cuts] == [("input_length", 2)]
    assert units.truncation.tokens == 8
    assert built(name).units(cluster((), title=None)).ids == ()


def test_the_release_ends_what_it_joins(tmp_path: Path) -> None:
    """With fidelity=official an end token follows the title and each paragraph that is there."""
    system = fitted("flat_transformer", tmp_path, fidelity="official", decoder_layers=1)
    end, system.reader.encode = system.tokenizer.eos_token_id, encode_words
    assert system.reader.units(CLUSTER).ids == ([1, end, 2, 3, 4, end, 2, end, 5, 1, 2, end],)


def test_sections_and_snippets_as_paragraphs() -> None:
    """A section is one unit; sentences packed to a length are; a longer sentence is a snippet alone, and cut."""
    document = Document(
        None, (Section("s", (("aa b.", "cc d."), ("eee f g.",))), Section(None, (("h i",),)))
    )
    example = replace(CLUSTER, documents=(document, document), title=None)
    sections = built("hierarchical_transformer", unit="section", num_paragraphs=9).units(example)
    assert [len(ids) for ids in sections.ids] == [0, 7, 2, 7, 2]
    for length, expected in ((4, [0, 4, 3, 2, 4, 3, 2]), (2, [0] + [2] * 8)):
        snippets = built(
            "hierarchical_transformer", unit="snippet", paragraph_length=length, num_paragraphs=9
        )
        assert [len(ids) for ids in snippets.units(example).ids] == expected


def test_more_can_be_read_when_it_is_summarized() -> None:
    """Training reads its own number of paragraphs and tokens, writing another."""
    system = built(
        "hierarchical_transformer",
        num_paragraphs=1,
        test_num_paragraphs=3,
        input_length=3,
        test_input_length=7,
    )
    assert system.training_units(CLUSTER).ids == ([1], [2, 3])
    assert system.units(CLUSTER).ids == ([1], [2, 3, 4], [2], [5, 1])


def test_reading_more_is_not_trained_again(tmp_path: Path) -> None:
    """Points that differ in what is read of tested examples alone have one checkpoint, and each its own setting."""
    train, reports = ToySplit.of("train", 24), []
    for number in (None, 3):
        system = build_tiny("hierarchical_transformer", rank="none", test_num_paragraphs=number)
        reports.append(system.fit(fit_context(tmp_path, train, max_steps=3)))
        assert system.reader.limits(training=False).num_paragraphs == (
            number or system.config.num_paragraphs
        )
    assert reports[0] == reports[1]
    assert len(list((tmp_path / "checkpoint").glob("*/fit.json"))) == 1


@pytest.mark.parametrize("graph", ["similarity", "discourse"])
def test_a_graph_reaches_training_and_writing(graph: str, tmp_path: Path) -> None:
    """Rows and batches hold the graph between title and paragraphs; the system trains and writes with it."""
    system = fitted("hierarchical_transformer", tmp_path, graph=graph, entities="capitals")
    example = cluster(
        ("the Owl Hall stands", "However the Owl Hall fell"), ("a stray line",), title="Owl Hall"
    )
    units = system.reader.units(example)
    edges = units.columns["unit_graph"]
    if graph == "discourse":
        assert edges[1][2] == pytest.approx(1.2)  # one entity in common, and a marker
        assert edges[1][3] == 0
    batch = collate_units(system.reader, [units, system.reader.units(CLUSTER)])
    assert batch["unit_graph"].shape == (2, 4, 4)
    assert system.reader.row(example)["unit_graph"] == edges
    assert len(list(system.summarize([example, CLUSTER], GREEDY))) == 2


def test_evidence_says_where_from(tmp_path: Path) -> None:
    """The decoder's attention is shared out over the paragraphs; each paragraph's over all that are there."""
    system = fitted("hierarchical_transformer", tmp_path)
    evidence = next(iter(system.summarize([replace(CLUSTER, title=None)], GREEDY))).evidence
    assert evidence is not None
    attention, relation = evidence.arrays["attention"], evidence.arrays["relation"]
    # The first unit is the title, which is absent.
    assert_allclose(attention.sum(0), 1, atol=1e-5)
    assert_allclose(attention[0], 0, atol=1e-6)
    assert_allclose(relation[:, :, 1:].sum(-1), 1, atol=1e-5)
    assert_allclose(relation[..., 0], 0, atol=1e-6)


def test_paragraphs_are_scored_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A score is the mean attention per token; only the chosen paragraphs have one, in the order of the source."""
    system = build_tiny("hierarchical_transformer", rank="lexrank", num_paragraphs=2)
    system.reader.encode = encode_words
    monkeypatch.setattr(system.reader.ranking, "order", lambda example, texts: [2, 0, 1])
    units = system.reader.units(CLUSTER)
    assert units.ids == ([1], [5, 1, 2], [2, 3, 4])
    assert units.spans == ((0, 0), (2, 3), (0, 1))
    attention = np.array(
        [[0.4, 0.4], [0.3, 0.0], [0.3, 0.6]], np.float32
    )  # title and paragraphs, two steps
    evidence = Evidence({"attention": attention}, {"attention": ("unit", "step")}, {})
    scored = score_by(evidence, system, CLUSTER, units, monkeypatch)
    assert scored.spans == [(0, 1), (2, 3)]
    assert_allclose(scored.scores, [0.15, 0.05], rtol=1e-6)


def test_what_starts_a_summary_does_not_end_it(tmp_path: Path) -> None:
    """T-DMCA's separator is the token that starts, so that an untrained one does not write nothing."""
    system = fitted("tdmca", tmp_path)
    assert system.model.config.decoder_start_token_id == system.tokenizer.bos_token_id
    assert system.model.config.decoder_start_token_id != system.tokenizer.eos_token_id
