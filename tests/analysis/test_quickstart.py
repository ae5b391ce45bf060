"""The first command from end to end, with fewer papers and reports."""

from pathlib import Path

import pytest
from support.commands import Command
from support.tiny_causal import write_causal

from longsumbench.analysis import quickstart
from longsumbench.views.run_summary_screen import MOST_LINES

PAPERS = "dataset=aclsum scale=extractive dataset.limit=6 model=lead,random,highlights,ea"
REPORTS = "dataset=probe dataset.limit=8 model=trunc"
SMALL = "baselines=false train.max_steps=1 train.eval_steps=1 score.resamples=100 model.vocabulary_size=300"


@pytest.mark.usefixtures("here", "without_rendering")
def test_the_first_command_answers_and_answers_again(
    run_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Papers, who is ahead, a line on facts, commands; the same again; and with two readings of a language model."""
    monkeypatch.setattr(quickstart, "_ON_PAPERS", f"{PAPERS} {SMALL}".split())
    monkeypatch.setattr(quickstart, "_ON_REPORTS", f"{REPORTS} {SMALL}".split())
    first = run_command(0, "run")
    assert first.out.startswith("6 papers, summarized and scored in the same way (dataset=aclsum)")
    assert "Nothing is shown: " in first.out
    assert "\nprobe: trunc, facts " in first.out
    assert len(first.out.splitlines()) <= MOST_LINES
    assert "Without training, so far." in first.err
    again = run_command(0, "run")
    assert again.out == first.out
    assert "training" not in again.err
    prompted_words = (*quickstart._LANGUAGE_MODEL, "dataset.limit=6", "score.resamples=100")
    monkeypatch.setattr(quickstart, "_LANGUAGE_MODEL", prompted_words)
    model = write_causal(tmp_path / "tiny", positions=1_024)
    words = (f"model.checkpoint={model}", "model.input_length=400", "model.decode_length=8")
    prompted = run_command(0, "run", *words).out
    assert " beginning" in prompted
    assert " select" in prompted


@pytest.mark.usefixtures("here")
def test_a_language_model_of_the_environment_is_named(
    run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who did not type the setting reads where it is from; two models at once have no names to tell them apart."""
    monkeypatch.setenv("LONGSUMBENCH_MODEL", "missing.gguf")
    printed = run_command(2, "run").err
    assert "LONGSUMBENCH_MODEL is set: model.checkpoint=missing.gguf is added" in printed
    assert "there is no such file" in printed
    several = run_command(2, "run", "model.checkpoint=a,b").err
    assert "only model.reading may have several values" in several
