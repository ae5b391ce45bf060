"""The discourse graph between paragraphs."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.paths import SHARED
from support.requirements import SHARED_FOLDER

from longsumbench.core import build_settings
from longsumbench.models.hierarchical_transformer.config import HierarchicalTransformerConfig
from longsumbench.models.hierarchical_transformer.graphs import Graph, Place
from longsumbench_reproduction.models import discourse_graph
from longsumbench_reproduction.models.discourse_graph import (
    DISCOURSE_MARKERS,
    DiscourseGraph,
    is_marked,
)
from longsumbench_reproduction.models.entities import find_entities

PAPER = SHARED / "papers" / "hierarchical_transformer.txt"
CAPITALS = find_entities("capitals", "")
WORDS = ("red", "fox", "den", "a", "hen", "However,", "then", "Ann Lee", "Bob Ray.")
TEXT = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
PARAGRAPHS = st.lists(TEXT, max_size=7)


def discourse_by_hand(texts: Sequence[str], places: Sequence[Place]) -> Graph:
    """A.2 pair by pair."""
    graph = np.zeros((len(texts), len(texts)), np.float32)
    found = CAPITALS(texts)
    for i, (one, at) in enumerate(zip(texts, places, strict=True)):
        for j, (other, there) in enumerate(zip(texts, places, strict=True)):
            if not one.strip() or not other.strip():
                continue
            graph[i, j] = 0.2 * len(found[i] & found[j])
            if at is None or there is None or at[0] != there[0] or abs(at[1] - there[1]) != 1:
                continue
            later = other if there[1] > at[1] else one
            graph[i, j] += later.lower().startswith(("however", "then"))
    return graph


@given(st.data(), PARAGRAPHS)
def test_discourse_is_the_appendix_pair_by_pair(data: st.DataObject, texts: list[str]) -> None:
    """The graph equals A.2 written down for each pair, in any order of paragraphs from several documents."""
    every: list[Place] = [(document, place) for document in range(2) for place in range(5)]
    places = [None, *data.draw(st.permutations(every))][: len(texts)]
    graph = DiscourseGraph("capitals", "")(texts, places)
    np.testing.assert_allclose(graph, discourse_by_hand(texts, places), rtol=0, atol=1e-6)
    assert np.array_equal(graph, graph.T)


@pytest.mark.parametrize("marker", DISCOURSE_MARKERS)
def test_a_marker_counts_at_the_beginning(marker: str) -> None:
    """Each of the 36 counts in any casing, across a line break and behind a quotation mark, as whole words only."""
    for text in (
        f"{marker} we",
        f"{marker.upper()}, we",
        f" “{marker.capitalize()}: we",
        marker.replace(" ", "\n"),
    ):
        assert is_marked(text)
    for text in (f"{marker}s we", f"We {marker} we", marker[:-1], f"un{marker} we", ""):
        assert not is_marked(text)


@pytest.mark.skipif(not PAPER.is_file(), reason=SHARED_FOLDER)
def test_the_markers_are_in_the_papers_order() -> None:
    """The list is the appendix's, word for word."""
    text = PAPER.read_text()
    listed = text[
        text.index("again, also, another") : text.index("the day before") + len("the day before")
    ]
    joined = " ".join(listed.replace("-\n", "").split())
    assert tuple(re.split(r", ?", joined)) == DISCOURSE_MARKERS


@pytest.mark.parametrize("there", [False, True])
def test_the_configuration_says_how_entities_are_found(
    there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The discourse graph takes spaCy where it is installed, else capitals, unless one of them is asked for."""
    monkeypatch.setattr(discourse_graph, "available", lambda name: there)
    assert HierarchicalTransformerConfig(graph="discourse").entities == (
        "spacy" if there else "capitals"
    )
    assert HierarchicalTransformerConfig(graph="discourse", entities="spacy").entities == "spacy"


def test_another_pipeline_makes_other_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which spaCy pipeline finds entities is part of the keys; of graphs without spaCy, nothing is."""
    monkeypatch.setattr(discourse_graph, "pipeline_identity", lambda name: f"{name} 1.0")
    config = HierarchicalTransformerConfig(graph="discourse", entities="spacy", spacy_model="some")
    assert config.identity()["spacy"] == "some 1.0"
    for settings in (
        {"graph": "discourse", "entities": "capitals"},
        {"graph": "similarity"},
        {"entities": "spacy"},
    ):
        config = build_settings(HierarchicalTransformerConfig, settings, "model.")
        assert config.identity().get("spacy") is None
