"""`longsumbench push`: what is uploaded summarizes as its run did."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import ModelCard, constants
from support.commands import Command, Typed
from support.hub import ModelHub, model_hub
from support.run_records import record
from support.toys import ToySplit, tiny_overrides, write_jsonl

import longsumbench
from longsumbench.cli.main import main
from longsumbench.exchange import model_card
from longsumbench.models.seal.system import Trunc
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.summarize import resolve_system

DECODING = ("decode.num_beams=2", "decode.no_repeat_ngram=2")  # not the defaults
Push = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of a tiny Trunc."""
    folder = tmp_path_factory.mktemp("pushed")
    words = [f"results_dir={folder / 'results'}", "baselines=false", *DECODING]
    assert main(["run", *tiny_overrides(write_jsonl(folder / "texts")), *words]) == 0
    (run,) = folder.glob("results/runs/*/trunc/*")
    return run


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[ModelHub]:
    """An empty hub."""
    with model_hub(tmp_path) as state:
        yield state


@pytest.fixture
def push(typed: Typed) -> Push:
    """Push; return the exit code and the last line that is printed."""

    def run(*words: object) -> tuple[int, str]:
        code, out, err = typed("push", *words)
        return code, (err if code else out).rstrip().splitlines()[-1]

    return run


def test_what_was_pushed_summarizes_as_the_run(
    hub: ModelHub, trained: Path, tmp_path: Path, push: Push
) -> None:
    """Another machine has only the repository's name: it has the same summaries, by the run's own search."""
    code, line = push(trained, "me/tiny-trunc")
    assert (code, line) == (0, f"{hub.endpoint}/me/tiny-trunc")
    system = longsumbench.load_system("me/tiny-trunc", tmp_path / "no results", device="cpu")
    assert (system.decoding.num_beams, system.decoding.no_repeat_ngram) == (2, 2)
    texts = list(ToySplit.of("test", 38))[30:]
    expected = [summary.text for summary in read_summaries(trained / "predictions.jsonl")]
    assert [len(expected), *(summary.text for summary in system.summarize(texts))] == [8, *expected]


def test_what_is_uploaded(hub: ModelHub, trained: Path, push: Push) -> None:
    """Weights without pickles, configuration, tokenizer and card, in one commit; no path of here."""
    assert push(trained, "me/tiny-trunc", "--private")[0] == 0
    files, run = hub.files["me/tiny-trunc"], RunRecord.read(trained)
    needed = "README.md config.json model.safetensors system.json tokenizer.json"
    assert set(needed.split()) <= files.keys()
    endings = {Path(name).suffix for name in files}
    assert endings <= {".json", ".md", ".safetensors", ".txt", ".jinja"}
    assert hub.messages == [f"Run {run.run_id}"]
    assert hub.private == {"me/tiny-trunc": True}
    saved = json.loads(files["system.json"])
    assert (saved["system"], saved["decode"]["num_beams"]) == ("trunc", 2)
    assert not any(str(trained.parents[4]).encode() in content for content in files.values())


def test_the_card_states_the_run(hub: ModelHub, trained: Path, push: Push) -> None:
    """The hub's library reads its scores; it has signature, budget, truncation, the command and a note on licences."""
    push(trained, "me/tiny-trunc")
    run = RunRecord.read(trained)
    card: Any = ModelCard(hub.files["me/tiny-trunc"]["README.md"].decode())
    values = {row.metric_type: row.metric_value for row in card.data.eval_results}
    assert values == {name: number.mean for name, number in model_card.shared_numbers(run).items()}
    assert values["rougeLsum"] == run.evaluation.scores["rougeLsum"].f
    parts = [
        run.evaluation.signature.replace("|", " "),
        "6 steps × 8 examples",
        "longsumbench summarize me/tiny-trunc paper.md",
        "What was not read",
        "dataset.path=texts",
        f"fingerprint `{run.key.fingerprint[:12]}`",
        "states no licence",
    ]
    text = card.text.replace("\\", "")
    assert [part for part in parts if part not in text] == []


def test_a_run_without_weights(hub: ModelHub, tmp_path: Path, push: Push) -> None:
    """A baseline has nothing to upload: one line, and nothing is created."""
    folder = tmp_path / "runs" / "arxiv" / "lead" / "0123456789ab"
    record("lead", 30.0).write(folder)
    code, line = push(folder, "me/nothing")
    assert (code, hub.files) == (2, {})
    assert "has no weights to push: name a run that trained its system" in line


@pytest.mark.parametrize("name", ["tiny", "a/b/c", "me/.git", "", "../tiny"])
def test_a_malformed_name(name: str, hub: ModelHub, trained: Path, push: Push) -> None:
    """It is refused before anything else happens."""
    code, line = push(trained, name)
    assert (code, hub.files) == (2, {})
    assert line.startswith(f"longsumbench: cannot push to '{name}': ")


def test_no_token_and_no_network(
    hub: ModelHub,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    push: Push,
) -> None:
    """Each is one line with exit code 4; nothing is created."""
    with monkeypatch.context() as patch:
        patch.delenv("HF_TOKEN")
        patch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
        code, line = push(trained, "me/tiny")
        assert (code, "no token of the Hugging Face hub: set HF_TOKEN" in line) == (4, True)
    with monkeypatch.context() as patch:
        patch.setattr("longsumbench.exchange.push.unreachable", lambda: "offline mode is set")
        code, line = push(trained, "me/tiny")
        problem = "cannot be reached (offline mode is set); nothing was pushed"
        assert (code, problem in line) == (4, True)
    assert hub.files == {}


@pytest.mark.parametrize(
    ("refused", "state"),
    [
        ("create_repo", "nothing was pushed"),
        (
            "upload_folder",
            "me/tiny exists, without the files of this run; the same command pushes them",
        ),
    ],
)
def test_what_a_refusal_leaves(
    refused: str, state: str, hub: ModelHub, trained: Path, push: Push
) -> None:
    """The line says what the hub has now, and the same command does the rest."""
    hub.refused = refused
    code, line = push(trained, "me/tiny")
    assert (code, line.endswith(state)) == (4, True), line
    assert not hub.files.get("me/tiny")
    hub.refused = ""
    assert push(trained, "me/tiny")[0] == 0
    assert hub.files["me/tiny"]


def test_a_system_that_saves_pickles(
    hub: ModelHub,
    trained: Path,
    monkeypatch: pytest.MonkeyPatch,
    push: Push,
) -> None:
    """A file that could hold code is not uploaded."""
    save = Trunc.save

    def save_with_pickle(system: Trunc, folder: Path) -> None:
        save(system, folder)
        (folder / "extra.pt").write_bytes(b"")

    monkeypatch.setattr(Trunc, "save", save_with_pickle)
    code, line = push(trained, "me/tiny")
    assert (code, hub.files) == (2, {})
    assert "model=trunc saves extra.pt: only .jinja, .json," in line


def test_the_folder_of_a_ranker_travels(
    hub: ModelHub,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    push: Push,
) -> None:
    """A learned ranker is a model in a folder of the checkpoint; it is uploaded, and fetched with the rest."""
    save = Trunc.save

    def save_with_ranker(system: Trunc, folder: Path) -> None:
        save(system, folder)
        (folder / "ranker").mkdir()
        (folder / "ranker" / "config.json").write_text("{}")

    monkeypatch.setattr(Trunc, "save", save_with_ranker)
    assert push(trained, "me/ranked")[0] == 0
    found, _ = resolve_system("me/ranked", [], Results(tmp_path), "none")
    assert (Path(found.name) / "ranker" / "config.json").read_text() == "{}"
    assert found.load().config.name == "trunc"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "me/model is neither a folder nor a model on the Hugging Face hub"),
        ({"config.json": b"{}"}, "has no system.json: it was not uploaded by `longsumbench push`"),
    ],
)
def test_another_model_of_the_hub(
    files: dict[str, bytes] | None,
    message: str,
    hub: ModelHub,
    tmp_path: Path,
    run_command: Command,
) -> None:
    """`summarize` says in one line that it is none of this suite, or does not exist."""
    hub.files |= {"me/model": files} if files else {}
    (tmp_path / "a.txt").write_text("A text.")
    words = [str(tmp_path / "a.txt"), "--results-dir", str(tmp_path)]
    (line,) = run_command(2, "summarize", "me/model", *words).err.splitlines()
    assert message in line


@pytest.mark.parametrize(
    ("source", "texts"),
    [("a/b@01ab", ("a/b", "01ab")), ("local files", None), ("a/b", None), ("x@y", None)],
)
def test_hub_names_only(source: str, texts: tuple[str, str] | None) -> None:
    """By hand: the source of texts from the hub has a repository and a revision; other sources do not."""
    assert model_card.hub_texts(record("seal", 1.0, texts={"source": source})) == texts
