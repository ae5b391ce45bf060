"""`longsumbench summarize`: one's own files through a fitted system, as a user types it."""

import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.json_files import change_json, read_json
from support.toys import build_tiny, fit_tiny, tiny_overrides, toy_words
from support.watching import Watching, WatchingConfig, with_watching

from longsumbench.cache.artifacts import cache_folder
from longsumbench.cli.main import main
from longsumbench.core import (
    Cut,
    Decoding,
    Example,
    Summary,
    Truncation,
    registry,
)
from longsumbench.corpora.own_files import Input
from longsumbench.runs.summarize import (
    describe_losses,
    settle_decoding,
    unlike_what_was_learned,
)

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
    """Each summary is under a line with its file's name, in the order of the command line, rows by their ids."""
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


def test_together_they_are_one(watching: Path, tmp_path: Path, typed: Typed) -> None:
    """With --together there is one summary of all files."""
    write(tmp_path / "a.txt", "Aaa aaa. Bcdef.")
    write(tmp_path / "b.txt", "Ghijkl mno.")
    code, out, err = typed("--together", watching, "a.txt", "b.txt")
    assert (code, out) == (0, "Ghijkl mno. Bcdef.\n")
    assert err == ["a.txt + 1 more: read all of the text, 5 words"]


def test_json_lines_say_everything(watching: Path, tmp_path: Path, typed: Typed) -> None:
    """By hand: every line is an object; evidence is nested lists under the names of their axes, with the texts."""
    write(tmp_path / "a.txt", "Ab. Abcd.")
    write(tmp_path / "b.txt", "X.")
    code, out, _ = typed(watching, "a.txt", "--json", "b.txt")
    first, second = map(json.loads, out.splitlines())
    axes = ["segment", "unit"]
    arrays = {
        "score": {"axes": axes, "values": [[0.03, 0.05], [0.029, 0.049]]},
        "selected": {"axes": axes, "values": [[False, True], [True, False]]},
    }
    assert code == 0
    assert first == {
        "id": "a.txt",
        "summary": "Abcd. Ab.",
        "complete": True,
        "tokens": 2,
        "truncation": {"tokens": 2, "words": 2, "cuts": [], "documents_merged": 0},
        "evidence": {"arrays": arrays, "texts": {"unit": ["Ab.", "Abcd."]}},
        "input": None,
    }
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
    assert [typed(*words, limit)[0] for limit in limits] == [2, 2]


@pytest.mark.parametrize(
    ("ledger", "left_out", "message"),
    [
        (Truncation(9, 1200), 0, "f: read all of the text, 1,200 words"),
        (
            Truncation(9, 3000, (Cut("num_snippets", 5, 1204), Cut("x", 1, 2))),
            0,
            "f: read 59 % of the text: num_snippets cut 1,204 words, x cut 2 words",
        ),
        (
            Truncation(1, 1, (), 3),
            35,
            "f: read all of the text, 1 word; 3 documents beyond max_documents share the last one's place; "
            "35 words of code, HTML or front matter left out; the summary stops at its length limit; "
            "the summary is empty",
        ),
    ],
)
def test_what_was_not_read_is_told(ledger: Truncation | None, left_out: int, message: str) -> None:
    """By hand: what was cut, by cause, and whatever else of the text or the summary is not whole."""
    summary = Summary("a", "" if left_out else "text", ledger, complete=not left_out)
    item = Input("f", Example("a", None, None, (), ((),)), left_out)
    assert describe_losses(item, summary) == message


def test_settings_are_checked_as_those_of_a_run(
    watching: Path, tmp_path: Path, typed: Typed
) -> None:
    """Wrong settings end with exit code 2 and one line, before anything is summarized."""
    write(tmp_path / "a.txt")
    for word, message in {
        "decode.num_beam=2": "unknown setting 'decode.num_beam' (did you mean 'num_beams'?)",
        "decode.num_beams=0": "decode.num_beams=0 is below 1",
        "model.num_units=2": "'model.num_units=2': a trained system has these settings: decode., device=",
    }.items():
        code, out, err = typed(watching, "a.txt", word)
        assert (code, out, len(err)) == (2, "", 1), word
        assert message in err[0]
    assert not Watching.batches


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


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [("a.txt", b"", 3), ("a.pdf", b"", 2)],
)
def test_files_are_read_before_anything_is_summarized(
    name: str, content: bytes, code: int, watching: Path, tmp_path: Path, typed: Typed
) -> None:
    """A file that cannot be used ends the command with one line, before the ones ahead of it are summarized."""
    (tmp_path / name).write_bytes(content)
    ended, out, err = typed(watching, write(tmp_path / "good.txt"), tmp_path / name)
    assert (ended, out, len(err), Watching.batches) == (code, "", 1, [])


@pytest.mark.parametrize(
    "words", ["a.txt", "texts", "-", "gone.jsonl", "plain", "model=lead a.txt"]
)
def test_texts_without_a_system_are_asked_for_one(words: str, here: Path, typed: Typed) -> None:
    """If a text is in the place of the system, one line says that the system is missing, and which to name."""
    (here / "texts").mkdir()
    for name in ("a.txt", "plain", "texts/c.txt"):
        write(here / name)
    code, _, (line,) = typed(*words.split())
    missing = f"the system is missing before '{words.split()[0]}': name lexrank, lead, random"
    assert (code, missing in line) == (2, True)


def test_every_text_is_asked_the_same(fitted: Path, tmp_path: Path, typed: Typed) -> None:
    """A query is read before the text, and counted; a system that was fitted without any is said to be so."""
    file = write(tmp_path / "a.txt")
    plain, asked = (
        json.loads(typed(fitted, file, "--json", *more)[1])
        for more in ((), ("--query", "what is it?"))
    )
    assert asked["truncation"]["words"] == plain["truncation"]["words"] + 3
    message = "trunc was trained on texts without queries: it has not learned to answer them"
    assert message in typed(fitted, file, "--query", "what is it?")[2]
    assert message not in typed(fitted, file)[2]


def test_a_system_that_learned_to_answer_wants_a_question() -> None:
    """A text without a question has a message if all that was learned had one."""
    system = build_tiny("trunc")
    system.state.queried = True
    plain = Example("a", None, None, (), ((),))
    message = unlike_what_was_learned(system, [Input("a.txt", plain)])
    assert message.endswith("add one with --query")
    assert not unlike_what_was_learned(system, [Input("a.txt", replace(plain, query="who?"))])


def test_an_interrupt_leaves_what_is_printed(
    watching: Path, tmp_path: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the command with 130; the summaries of finished batches are printed."""
    monkeypatch.setattr(Watching, "fails_at", 1)
    files = [write(tmp_path / f"{name}.txt", f"{name}.") for name in "abc"]
    code, out, err = typed(watching, *files, "decode.batch_size=1", "--json")
    assert (code, [json.loads(line)["summary"] for line in out.splitlines()]) == (130, ["a."])
    assert (
        err[-1]
        == "longsumbench: interrupted; the summaries so far are complete; with --output the same command continues"
    )


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
    rows = map(json.loads, (folder / "predictions.jsonl").read_text().splitlines())
    expected = {row["id"]: row["prediction"] for row in rows}
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


def test_it_reads_a_pipe(watching: Path, typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text on standard input is summarized."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(ONE.encode()), encoding="utf-8"))
    code, _, (line,) = typed(watching, "-")
    assert (code, line.partition(": read ")[0]) == (0, "standard input")
