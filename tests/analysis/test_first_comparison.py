"""The first command from end to end, with fewer papers and reports."""

import pytest
from support.commands import Command

from longsumbench.analysis import first_comparison

PAPERS = "dataset=aclsum scale=extractive dataset.limit=6 model=lead,random,highlights,ea"
REPORTS = "dataset=probe dataset.limit=8 model=trunc"
SMALL = "baselines=false train.max_steps=1 train.eval_steps=1 score.resamples=100 model.vocabulary_size=300"


@pytest.mark.usefixtures("here", "without_rendering")
def test_the_first_command_answers_and_answers_again(
    run_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One screen: the table and the verdict on papers, one paper, facts, three commands; then the same, without work."""
    monkeypatch.setattr(first_comparison, "_ON_PAPERS", f"{PAPERS} {SMALL}".split())
    monkeypatch.setattr(first_comparison, "_ON_REPORTS", f"{REPORTS} {SMALL}".split())
    first = run_command(0, "run")
    headings = ("REAL PAPERS", "ONE OF THEM", "THE AUTHORS' ABSTRACT", "PLANTED FACTS", "NEXT")
    places = [first.out.index(heading) for heading in headings]
    assert places == sorted(places)
    assert "Without training, so far." in first.err
    again = run_command(0, "run")
    assert again.out == first.out
    assert "training" not in again.err
