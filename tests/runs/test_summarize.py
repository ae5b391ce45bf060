"""`longsumbench summarize`: one's own files through a fitted system, as a user types it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.json_files import change_json, read_json, read_rows
from support.toys import build_tiny, fit_tiny, tiny_overrides, toy_words
from support.watching import Watching, WatchingConfig, with_watching

from longsumbench.cache.artifacts import cache_folder
from longsumbench.cli.main import main
from longsumbench.core import Decoding, Example, Summary, Truncation, registry
from longsumbench.corpora.own_files import Input
from longsumbench.errors import UsageError
from longsumbench.runs.summarize import describe_losses, settle_decoding, unlike_what_was_learned

ONE = "Alpha beta gamma. Delta. Aaa aaa. Epsilon zeta eta theta.\n\nB b. C c. Nothing of this is read any more."
Typed = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def watching(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The checkpoint of a system that keeps evidence."""
    monkeypatch.setattr(registry, "systems", with_watching())
    monkeypatch.setattr(Watching, "batches", [])
    (here / "saved").mkdir()
    Watching(WatchingConfig()).save(here / "saved")
    return here / "saved"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint of a tiny Trunc."""
    folder = tmp_path_factory.mktemp("fitted")
    fit_tiny("trunc", tmp_path_factory.mktemp("stages")).save(folder)
    return folder


def write(path: Path, text: str = ONE) -> Path:
    """Write a file of text."""
    path.write_text(text)
    return path


def test_a_file_is_summarized(watching: Path, tmp_path: Path, typed: Typed) -> None:
    """The summary is alone on stdout, and on stderr one line about what was not read."""
    code, out, err = typed(watching, write(tmp_path / "a.txt"))
    assert (code, out) == (0, "Epsilon zeta eta theta. Alpha beta gamma.\n")
    assert err == [f"{tmp_path}/a.txt: read 66 % of the text: num_units cut 7 words"]  # 14 of 21


def test_several_files_are_named_in_their_order(
    watching: Path, tmp_path: Path, typed: Typed
) -> None:
    """Each summary is under a line with its file's name, rows by their ids; with --together there is one of all."""
    write(tmp_path / "z.txt", "Zed. Why so?")
    write(tmp_path / "rows.jsonl", '{"id": "r1", "document": "Rrr sss."}\n')
    write(tmp_path / "a.md", "# T\n\nAaa bcd.")
    code, out, err = typed(watching, "z.txt", "rows.jsonl", "a.md", "z.txt", "decode.batch_size=3")
    names = ["z.txt", "rows.jsonl: r1", "a.md", "z.txt"]
    texts = ["Why so? Zed.", "Rrr sss.", "Aaa bcd.", "Why so? Zed."]
    pairs = zip(names, texts, strict=True)
    assert (code, out) == (0, "".join(f"==> {name} <==\n{text}\n\n" for name, text in pairs))
    assert [line.partition(": read")[0] for line in err] == names
    assert [len(ids) for ids, _ in Watching.batches] == [3, 1]
    code, out, err = typed("--together", watching, "z.txt", "a.md")
    assert (code, len(out.splitlines()), err[0].partition(": read")[0]) == (0, 1, "z.txt + 1 more")


FIRST_LINE = """
{"id": "a.txt", "summary": "Abcd. Ab.", "complete": true, "tokens": 2,
 "truncation": {"tokens": 2, "words": 2, "cuts": [], "documents_merged": 0},
 "evidence": {
   "arrays": {
     "score": {"axes": ["segment", "unit"], "values": [[0.03, 0.05], [0.029, 0.049]]},
     "selected": {"axes": ["segment", "unit"], "values": [[false, true], [true, false]]}},
   "texts": {"unit": ["Ab.", "Abcd."]}},
 "input": null}
"""


def test_json_lines_say_everything(watching: Path, tmp_path: Path, typed: Typed) -> None:
    """By hand: every line is an object; evidence is nested lists under the names of their axes, with the texts."""
    write(tmp_path / "a.txt", "Ab. Abcd.")
    write(tmp_path / "b.txt", "X.")
    code, out, _ = typed(watching, "a.txt", "--json", "b.txt")
    first, second = map(json.loads, out.splitlines())
    assert code == 0
    assert first == json.loads(FIRST_LINE)
    assert second["evidence"]["texts"] == {"unit": ["X."]}


def test_evidence_and_inputs_of_the_first_are_shown(
    watching: Path, tmp_path: Path, typed: Typed
) -> None:
    """`decode.evidence` and `decode.keep_inputs` limit them; other batches are decoded without; only --json has them."""
    words = [watching, *(write(tmp_path / f"{name}.txt", f"{name}.") for name in "abc")]
    limits = ["decode.evidence=1", "decode.keep_inputs=2"]
    _, out, _ = typed(*words, *limits, "decode.batch_size=1", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["evidence"] is None for line in lines] == [False, True, True]
    assert [line["input"] for line in lines] == ["a.", "b.", None]
    assert [asked for _, asked in Watching.batches] == ["1", "none", "none"]
    typed(*words)
    assert [asked for _, asked in Watching.batches[3:]] == ["none"]


def test_what_was_not_read_is_told() -> None:
    """By hand: what else of the text or the summary is not whole; what was cut is described with the ledger."""
    summary = Summary("a", "", Truncation(1, 1), complete=False)
    assert describe_losses(Input("f", Example("a", None, None, (), ((),)), 35), summary) == (
        "f: read all of the text, 1 word; 35 words of code, HTML or front matter left out; "
        "the summary stops at its length limit; the summary is empty"
    )


def test_settings_lie_over_those_of_the_run() -> None:
    """What is typed goes before the run's; decoding follows the top level's seed and device, unless it has its own."""
    usual = Decoding(num_beams=3, max_length=9, seed=4)
    assert settle_decoding([], usual) == usual
    typed = [
        "decode.num_beams=2",
        "seed=5",
        "device=cpu",
        "decode.max_length=null",
        "decode.length_penalty=0.5",
    ]
    assert settle_decoding(typed, usual) == Decoding(
        num_beams=2, seed=5, device="cpu", length_penalty=0.5
    )
    assert settle_decoding(["seed=5", "decode.seed=6"], usual).seed == 6
    recorded = replace(usual, reference_evidence=True)  # which no untrained system has
    settings = settle_decoding(["decode.coverage=summary"], recorded)
    assert settings == replace(recorded, coverage="summary")
    for word, problem in (
        ("decode.num_beam=2", r"unknown setting 'decode\.num_beam' \(did you mean 'num_beams'\?\)"),
        ("decode.num_beams=0", r"decode\.num_beams=0 is below 1"),
        ("model.num_units=2", "a trained system has these settings: decode., device=, seed="),
    ):
        with pytest.raises(UsageError, match=problem):
            settle_decoding([word], usual)


def test_a_checkpoint_that_cannot_be_used_is_told(
    fitted: Path, tmp_path: Path, typed: Typed
) -> None:
    """Torn weights, a system that is not installed, and a folder without one: one line, and the right code."""
    text, copy = write(tmp_path / "a.txt"), tmp_path / "copy"
    shutil.copytree(fitted, copy)
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    ended = [typed(copy, text)]
    change_json(copy / "system.json", system="last")
    ended.append(typed(copy, text))
    (copy / "system.json").unlink()
    ended.append(typed(copy, text))
    messages = [
        "SafetensorError: Error while deserializing header",
        "is a checkpoint of model 'last', which is not installed here: install its package (known: ",
        "is neither a checkpoint (system.json) nor a run",
    ]
    assert [(code, out, len(err)) for code, out, err in ended] == [(3, "", 1), *[(2, "", 1)] * 2]
    for (_, _, (line,)), message in zip(ended, messages, strict=True):
        assert message in line


def test_every_text_is_asked_the_same(fitted: Path, tmp_path: Path, typed: Typed) -> None:
    """A query is read before the text, and counted."""
    file = write(tmp_path / "a.txt")
    plain, asked = (
        json.loads(typed(fitted, file, "--json", *more)[1])
        for more in ((), ("--query", "what is it?"))
    )
    assert asked["truncation"]["words"] == plain["truncation"]["words"] + 3


def run(tmp_path: Path, *words: str) -> Path:
    """Do a run on the toys; return its folder."""
    assert main(["run", *words, *toy_words(tmp_path)]) == 0
    (record,) = tmp_path.glob("results/runs/*/*/*/record.json")
    return record.parent


def test_a_run_is_found_by_folder_or_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: Typed
) -> None:
    """Named by folder, id or its beginning, a run's checkpoint writes with the run's settings what the run wrote."""
    tiny = tiny_overrides(tmp_path / "toy", steps=2)
    folder = run(tmp_path, *tiny, "decode.max_length=5", "device=cpu")
    capsys.readouterr()
    expected = {row["id"]: row["prediction"] for row in read_rows(folder / "predictions.jsonl")}
    texts, where = tmp_path / "toy" / "test.jsonl", ["--results-dir", tmp_path / "results"]
    for named in (folder, folder.name, folder.name[:6]):
        code, out, _ = typed(named, texts, *where, "--json")
        summaries = map(json.loads, out.splitlines())
        assert (code, {one["id"]: one["summary"] for one in summaries}) == (0, expected)
    fit = read_json(folder / "record.json")["fit"]
    change_json(folder / "record.json", fit={**fit, "seconds": -1.0})
    code, out, err = typed(folder, texts)
    assert (code, out, "was written by other weights" in err[0]) == (2, "", True)


def test_a_run_without_a_checkpoint_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: Typed
) -> None:
    """A checkpoint that was deleted, a run that came without its work folder, a run that is not finished."""
    folder, text = (
        run(tmp_path, *tiny_overrides(tmp_path / "toy", steps=1), "device=cpu"),
        write(tmp_path / "a.txt"),
    )
    capsys.readouterr()

    def message(*words: object) -> str:
        code, out, err = typed(*words, text, "--results-dir", tmp_path / "results")
        assert (code, out, len(err)) == (2, "", 1)
        return err[0]

    (folder / "work" / "checkpoint").unlink()
    (folder / "work" / "checkpoint").symlink_to(cache_folder() / "checkpoint" / "gone")
    assert "is no longer in the cache: run it again with overwrite=true" in message(folder)
    shutil.rmtree(folder / "work")
    assert "came without its checkpoint: run it again here" in message(folder)
    assert "no folder abc, and no finished run is called 'abc' under" in message("abc")
    (folder / "record.json").unlink()
    (folder / "work" / "checkpoint").mkdir(parents=True)
    assert "that run is not finished, its checkpoint is" in message(folder)


def test_a_system_is_warned_of_texts_unlike_those_it_learned() -> None:
    """A text without a question has a message if all that was learned had one, and the reverse."""
    system = build_tiny("trunc")
    plain = Example("a", None, None, (), ((),))
    asked = replace(plain, query="who?")
    for queried, like, unlike in ((True, asked, plain), (False, plain, asked)):
        system.state.queried = queried
        assert unlike_what_was_learned(system, [Input("a.txt", unlike)])
        assert not unlike_what_was_learned(system, [Input("a.txt", like)])
