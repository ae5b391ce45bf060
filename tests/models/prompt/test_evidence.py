"""The evidence of readings: which parts of the text each request had, pages that show it, and what is expected."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.language_models import text_example
from support.pages import Reading, inspection
from support.tiny_causal import write_causal
from support.toys import example, fit_tiny, settings_of

from longsumbench.core import Decoding, Summary
from longsumbench.runs.evidence import check_evidence_arrays, read_evidence, write_evidence
from longsumbench.views.evidence.array_views import Selections, Weights, views

KEEP = Decoding(evidence="all", keep_inputs="all", device="cpu")
SNIPPETS = "selector=lexrank snippet_length=24 input_length=330"
READINGS = {
    "select": settings_of(SNIPPETS),
    "segments": settings_of(f"{SNIPPETS} segment_length=8"),
    "pages": {"page_length": 60},
    "stages": {"input_length": 260},
    "refine": {"input_length": 340},
}
LONG = example(3, sentences=36)
SHORT = text_example([["A short text."]], name="short")
EMPTY = text_example([[" "]], name="empty")
EXAMPLES = (LONG, SHORT, EMPTY)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny causal language model."""
    return write_causal(tmp_path_factory.mktemp("causal"), positions=1024)


@pytest.fixture(scope="module", params=READINGS)
def summaries(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Summary]]:
    """A reading, and the summaries of a long, a short and an empty text."""
    settings: dict[str, Any] = {"length": "20", "decode_length": 20, "checkpoint": str(model)}
    settings |= {"reading": request.param, **READINGS[request.param]}
    system = fit_tiny("prompt", tmp_path_factory.mktemp("stages"), **settings)
    return request.param, list(system.summarize(EXAMPLES, KEEP))


def test_evidence_is_stored_and_drawn(summaries: tuple[str, list[Summary]], tmp_path: Path) -> None:
    """Evidence of every text is valid, read as it was written, and drawn with the text of each unit."""
    reading, of_texts = summaries
    for number, summary in enumerate(of_texts):
        assert summary.evidence is not None
        check_evidence_arrays(summary.evidence)
        write_evidence(tmp_path, number, summary)
        name, evidence = read_evidence(tmp_path, number)
        assert name == EXAMPLES[number].id
        assert evidence.texts == summary.evidence.texts
        page = Reading(inspection(evidence).page())
        assert page.open == []
        for unit in evidence.texts["unit"]:
            assert unit in page.text
        if summary.text:
            (view,) = views(evidence)
            assert isinstance(view, Weights if reading == "pages" else Selections)


def test_units_and_rows_are_those_of_the_requests(summaries: tuple[str, list[Summary]]) -> None:
    """The units are the text; each request has its part, or what fits; the ledger counts what any request had."""
    reading, (summary, *_) = summaries
    evidence, ledger = summary.evidence, summary.truncation
    assert evidence is not None
    assert ledger is not None
    units = evidence.texts["unit"]
    assert " ".join(units).split() == " ".join(LONG.sentences()).split()
    assert len(units) > 2
    prompt = "page" if reading == "pages" else "request"
    assert f"{summary.read}".startswith(f"── {prompt} 1 of ")
    if reading == "pages":
        np.testing.assert_allclose(evidence.arrays["confidences"].sum(0), 1, rtol=1e-4)
        return
    taken = evidence.arrays["selected_tokens"] > 0
    words = np.array([len(unit.split()) for unit in units])
    assert ledger.words_seen == words[taken.any(0)].sum()
    if reading in ("stages", "refine"):
        assert np.array_equal(taken, np.eye(len(units), dtype=bool))
        return
    assert ledger.words_seen < ledger.words
    answers = "".join(evidence.texts["segment"])
    assert "".join(answers.split()) == "".join(summary.text.split())
    for is_taken, scores in zip(taken, evidence.arrays["scores"], strict=True):
        assert scores[is_taken].min() >= scores[~is_taken].max()
