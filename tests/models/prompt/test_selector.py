"""`model.selector=RUN`: a finished run of EA or SEAL selects the snippets that a language model reads."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.language_models import EchoEngine, prompted, text_example
from support.run_records import record
from support.stored_runs import store
from support.tiny_causal import causal_folder
from support.toys import WORDS, example, fit_tiny, refuses, tiny_recipe

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Decoding, FitContext
from longsumbench.models.prompt.source_text import LongText
from longsumbench.models.prompt.system import PromptSystem
from longsumbench.runs.plan import plan
from longsumbench.runs.record import ImportedOutputs
from longsumbench.runs.results import Results

DECODING = Decoding(device="cpu", evidence="all")


@pytest.fixture(scope="module", params=["ea", "seal"])
def scorer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny EA or SEAL."""
    return fit_tiny(request.param, tmp_path_factory.mktemp("stages"), snippet_length=16)


def selecting(scorer: Any, **settings: Any) -> PromptSystem:
    """Return a prompted system that selects by the system of a run."""
    system = prompted(EchoEngine(reply=lambda text: WORDS[0]), selector="a1b2", **settings)
    cache = ArtifactCache(Path("unused"))
    system.fit(FitContext(None, None, tiny_recipe(), cache, open_run=lambda name: scorer))
    return system


def test_the_runs_scores_select_its_snippets(scorer: Any) -> None:
    """The units are the run's own snippets, and the best one is read, with others that fit."""
    source = example(3, sentences=8)
    system = selecting(scorer, reading="select")
    length = system.builder.engine.count(system.builder.messages(source, "")) + 30
    system = selecting(scorer, reading="select", input_length=length)
    (summary,) = system.summarize([source], DECODING)
    evidence = summary.evidence
    assert evidence is not None
    expected = scorer.score_next(source, "", DECODING)
    sentences = list(source.sentences())
    snippets = tuple(" ".join(sentences[first:end]) for first, end in expected.spans)
    assert evidence.texts["unit"] == snippets
    scores, is_read = evidence.arrays["scores"][0], evidence.arrays["selected_tokens"][0] > 0
    assert_allclose(scores, expected.scores, rtol=1e-5)
    assert 0 < is_read.sum() < len(snippets)
    assert scores[is_read].max() == scores.max()


@pytest.mark.parametrize("reading", ["select", "segments"])
def test_a_snippet_without_room_is_shortened(scorer: Any, reading: str) -> None:
    """If not even the best snippet of a run fits, its beginning is read, and ledger and evidence say how much."""
    source = example(3, sentences=8)
    system = selecting(scorer, reading=reading)
    entry = "user" if reading == "select" else "segment"
    length = system.builder.room(source, entry).count("") + 5
    system = selecting(scorer, reading=reading, input_length=length)
    system.check_examples([source])
    (summary,) = system.summarize([source], DECODING)
    engine: Any = system.builder.engine
    assert {request.messages[0]["role"] for request in engine.asked} == {"user"}
    assert engine.count(engine.asked[0].messages) <= length
    assert summary.evidence is not None
    assert summary.truncation is not None
    first = summary.evidence.arrays["selected_tokens"][0]
    assert np.count_nonzero(first) == 1
    assert 0 < first.sum() == summary.truncation.tokens_seen <= 5


def test_blank_sentences_are_no_snippet(scorer: Any) -> None:
    """A run's system scores no unit that has no sentence, which would be the whole text."""
    for sentences in (["", " "], [*example(3, sentences=3).sentences(), " "]):
        scored = scorer.score_next(text_example([sentences]), "", DECODING)
        assert len(scored.spans) == len(scored.scores)
        assert all(first < end for first, end in scored.spans)


def test_what_is_written_changes_the_next_scores(scorer: Any) -> None:
    """SEAL's scorer reads what is written; EA's scores are lowered for snippets that repeat it."""
    source = example(3, sentences=8)
    system = selecting(scorer, reading="segments")
    text = LongText(system.builder.passage(source), system.builder.engine.tokenizer)
    spans = system.builder.selector.snippets(source, text)
    snippets = [text.joined([span]) for span in spans]
    first = system.builder.selector.scores(source, snippets, "")
    later = system.builder.selector.scores(source, snippets, snippets[0])
    if scorer.looks_back:
        expected = scorer.score_next(source, snippets[0], DECODING).scores
        assert_allclose(later, expected, rtol=1e-5)
    else:
        assert (later <= first + 1e-9).all()
        assert later[0] < first[0]


def test_a_checkpoint_has_the_runs_system(scorer: Any, tmp_path: Path) -> None:
    """A saved selector scores as before, without the run."""
    selector = selecting(scorer, reading="select").builder.selector
    selector.save(tmp_path)
    loaded = type(selector)(selector.config)
    loaded.load(tmp_path)
    source, snippets = example(4, sentences=6), ["unused"]
    before = selector.scores(source, snippets, "")
    assert_allclose(loaded.scores(source, snippets, ""), before, rtol=1e-5)


def prompt_words(results: Path, selector: object, *more: str) -> list[str]:
    """Return the words of a prompted run that selects snippets."""
    settings = ["reading=select", "length=20", "decode_length=40", "input_length=230"]
    model = [f"model.{setting}" for setting in settings]
    model += [f"model.checkpoint={causal_folder()}", f"model.selector={selector}"]
    return ["model=prompt", *model, "dataset=jsonl", f"results_dir={results}", *more]


def test_a_run_is_the_same_however_it_is_named(tmp_path: Path) -> None:
    """Its id, the beginning of it, its folder and a copy elsewhere give one run; the variant names its id."""
    run = record("ea", 30)
    results = tmp_path / "results"
    store(results, run)
    folder = Results(results).run_folder(run)
    copy = Path(shutil.copytree(folder, tmp_path / "copies" / run.run_id))
    points = []
    for name in (run.run_id, run.run_id[:4], folder, f"{folder}/"):
        points += plan(prompt_words(results, name))
    points += plan(prompt_words(tmp_path / "others", copy))
    run_ids = {point.key.run_id for point in points if point.key}
    assert len(run_ids) == 1
    assert {point.variant for point in points} == {points[0].variant}
    assert f"selector={run.run_id}" in points[0].variant
    (other,) = plan(prompt_words(results, "lexrank"))
    assert other.key is not None
    assert other.key.run_id not in run_ids


BAD_RUNS = {
    "nothing": r"^model\.selector=nothing is neither a ranker .* nor a run: no finished run",
    "trunc": r"^model\.selector=trunc0 is a run of 'trunc', which scores no snippets: choose",
    "seal": r"^model\.selector=seal0 .* has imported outputs of seal and no system",
}


@pytest.mark.parametrize("name", BAD_RUNS)
def test_a_run_that_cannot_select_is_refused(name: str, tmp_path: Path) -> None:
    """The line names the setting, and what is wrong with the run."""
    imported = ImportedOutputs("out.jsonl", "0", "a paper")
    store(tmp_path, record("trunc", 20), replace(record("seal", 30), imported=imported))
    selector = name if name == "nothing" else f"{name}0"
    with refuses(BAD_RUNS[name]):
        plan(prompt_words(tmp_path, selector))
