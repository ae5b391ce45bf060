"""What a run looked at: which run and example are meant, what is gathered, what is reported when something lacks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.commands import Typed
from support.pages import Reading
from support.run_records import record, write_run

from longsumbench.core import Cut, Document, Evidence, Example, Section, Summary, Truncation
from longsumbench.outputs.inspection import inspect_example
from longsumbench.runs.evidence import input_line, write_evidence
from longsumbench.runs.results import Results

Finished = Callable[..., Path]
IDS = ("a", "2", "c", "d")
ASKED = {"model": {}, "decode": {"evidence": "3"}}


@pytest.fixture
def finished(tmp_path: Path) -> Finished:
    """Write the files of a finished run on four examples that keeps evidence of some; return its folder."""

    def write(model: str = "looker", kept: int = 3, **facts: object) -> Path:
        words = f"model={model}", "decode.evidence=3", "dataset.path=my texts"
        fields = {"command": ("longsumbench", "run", *words), "config": ASKED, "n": 3, **facts}
        run = record(model, 30, **fields, empty_references=("d",))
        summaries = [Summary(name, f"About {name}.", tokens=3) for name in IDS]
        folder = write_run(tmp_path, run, summaries, [0.1, 0.2, 0.4])
        for number, name in enumerate(IDS[:kept]):
            weights = np.array([[0.25, number / 10], [0.75, 1 - number / 10]], dtype=np.float32)
            texts = {"unit": ("One.", "Two."), "step": ("About", f" {name}.")}
            evidence = Evidence({"weight": weights}, {"weight": ("unit", "step")}, texts)
            write_evidence(folder / "evidence", number, Summary(name, "", evidence=evidence))
        return folder

    return write


@pytest.fixture
def inspected(tmp_path: Path, typed: Typed) -> Typed:
    """Run `inspect`."""
    return lambda *words: typed("inspect", *words, "--results-dir", tmp_path)


@pytest.mark.parametrize("named", ["2", "1"])
def test_what_is_gathered(finished: Finished, tmp_path: Path, named: str) -> None:
    """By its id or its place the same example is found: its summary, scores in percent and the evidence as written.

    An id goes before a place: "2" is the id of the example at place 1.
    """
    finished()
    inspection = inspect_example("looker", named, Results(tmp_path))
    assert (inspection.number, inspection.summary.text) == (1, "About 2.")
    assert inspection.scores == {"R-1": 20.0, "R-2": 20.0, "R-L": 20.0, "R-Lsum": 20.0}
    assert inspection.evidence is not None
    assert inspection.evidence.arrays["weight"][0].tolist() == pytest.approx([0.25, 0.1])
    assert inspection.evidence.texts["step"] == ("About", " 2.")
    assert inspection.example is None


def test_an_example_without_scores(finished: Finished, tmp_path: Path) -> None:
    """An example that no metric scored, and a run whose scores are gone, are shown without."""
    folder = finished(kept=4)
    assert inspect_example("looker", "d", Results(tmp_path)).scores == {}
    (folder / "scores.csv").unlink()
    assert inspect_example("looker", "a", Results(tmp_path)).scores == {}


def test_what_is_printed_and_written(finished: Finished, inspected: Typed, tmp_path: Path) -> None:
    """A page, and with --picture a picture, named by the example's place; their paths follow the example."""
    finished()
    code, out, err = inspected("looker", "c", "--picture")
    folder, elsewhere = tmp_path / "inspections" / "looker000000", tmp_path / "figures" / "new"
    paths = [f"{folder / '2.html'}", f"{folder / '2.png'}"]
    assert (code, out.splitlines()[-2:], err) == (0, paths, "")
    assert (folder / "2.png").read_bytes().startswith(b"\x89PNG")
    assert inspected("looker", "c", "--output", elsewhere)[0] == 0
    assert [path.name for path in elsewhere.iterdir()] == ["2.html"]
    assert (elsewhere / "2.html").read_bytes() == (folder / "2.html").read_bytes()


def test_the_example_is_printed_before_the_paths(
    finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By hand: the beginning of a source of 100 words, the summary, the reference, the scores, what was read."""
    monkeypatch.setenv("COLUMNS", "80")
    finished()
    found = inspect_example("looker", "a", Results(tmp_path))
    source = Document(None, (Section(None, ((" ".join(f"w{n}" for n in range(1, 101)),),)),))
    example = Example("a", None, "Who?", (source,), (("The first.", "And more."), ("The second.",)))
    ledger = Truncation(100, 100, (Cut("length", 75, 75),))
    summary = replace(found.summary, truncation=ledger, complete=False)
    text = replace(found, example=example, summary=summary, ranking_score={"facts": 12.5}).render()
    assert [" ".join(part.split()) for part in text.split("\n\n")] == [
        "arxiv, example a: looker (looker00)",
        "query: Who?",
        f"source: {' '.join(f'w{n}' for n in range(1, 61))} … (100 words)",
        "summary, 3 tokens; it stops at its length limit: About a.",
        "reference 1: The first. And more.",
        "reference 2: The second.",
        "scores: R-1 10.0 · R-2 10.0 · R-L 10.0 · R-Lsum 10.0 · facts 12.5",
        "what was read: read 25 % of the text: length cut 75 words",
    ]
    assert max(map(len, text.splitlines())) <= 80


def test_the_input_is_shown_if_it_was_kept(finished: Finished, inspected: Typed) -> None:
    """The page has the text as the system read it; that of an example without it has none."""
    folder = finished(kept=0)
    read = "── unit 1 of 2\n<s>About a</s>\n── unit 2 of 2\n<s>& more</s>"
    (folder / "inputs.jsonl").write_text(input_line("a", read))
    pages = []
    for name in ("a", "c"):
        path = Path(inspected("looker", name)[1].splitlines()[-1])
        pages.append(Reading(path.read_text()).text)
    assert read in pages[0]
    assert "The input as the system read it" not in pages[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("looker cc", "looker (looker00) summarized no example 'cc' (did you mean 'c'?)"),
        ("looker 4", "summarized no example '4'; its examples have the indices 0 to 3"),
    ],
)
def test_a_wrong_word_is_one_line_with_exit_code_2(
    finished: Finished, inspected: Typed, words: str, message: str
) -> None:
    """Wrong usage ends with exit code 2 and one line."""
    finished()
    code, out, err = inspected(*words.split())
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("looker d", "no evidence of example 3 was kept; looker (looker00) has that of 3 examples"),
        ("lead 0", "lead (lead0000) has no evidence: lead keeps none, at least with these "),
    ],
)
def test_without_evidence(finished: Finished, inspected: Typed, words: str, message: str) -> None:
    """An example without evidence has a page with its output; a line, and the page, say why there is no more."""
    finished()
    finished("lead", kept=0)
    code, out, err = inspected(*words.split())
    assert (code, len(err.splitlines())) == (0, 1)
    assert err.startswith(message)
    page = Reading(Path(out.splitlines()[-1]).read_text())
    assert message in page.text
    assert "About" in page.text
    assert (page.open, page.loaded) == ([], [])


def test_the_command_that_keeps_more_is_named(finished: Finished, inspected: Typed) -> None:
    """The line can be copied: the run's own command, asking for all evidence instead of what it asked for."""
    finished()
    command = "longsumbench run model=looker 'dataset.path=my texts' decode.evidence=all"
    advice = f"decode.evidence=all keeps it for all examples: {command}\n"
    assert inspected("looker", "d")[2].endswith(advice)
    finished("blind", kept=0, config={"decode": {"evidence": "none"}})
    message = inspected("blind", "d")[2]
    assert "blind (blind000) kept no evidence (decode.evidence=none)" in message
    assert message.endswith("'dataset.path=my texts' decode.evidence=all\n")
