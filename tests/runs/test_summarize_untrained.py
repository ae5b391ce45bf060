"""`longsumbench summarize` by systems that are not trained here: by name, and of finished runs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.tiny_causal import causal_folder
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import toy_words

import longsumbench
from longsumbench.cli.main import main

TEXT = "Alpha beta gamma.\n\nAlpha beta.\n\nBeta gamma alpha.\n\nDelta."
Typed = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def text(here: Path) -> str:
    """A file in the current folder."""
    Path("a.txt").write_text(TEXT)
    return "a.txt"


MODELS = {
    "lead": "model.length=4",
    "seq2seq": f"model.checkpoint={tiny_checkpoint()} model.decode_length=12 device=cpu",
    "prompt": f"model.checkpoint={causal_folder()} model.decode_length=150 device=cpu",
}


@pytest.mark.parametrize("model", MODELS)
def test_a_finished_run_and_its_settings_write_the_same(
    model: str, text: str, tmp_path: Path, typed: Typed, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that trained nothing summarizes again what it summarized; its name with its settings writes the same."""
    words, texts = MODELS[model].split(), tmp_path / "toy" / "test.jsonl"
    assert main(["run", f"model={model}", *words, *toy_words(tmp_path)]) == 0
    capsys.readouterr()
    (predictions,) = tmp_path.glob("results/runs/*/*/*/predictions.jsonl")
    rows = predictions.read_text().splitlines()
    expected = [json.loads(row)["prediction"] for row in rows]
    commands = [[predictions.parent.name, "device=cpu"], [model, *words]]
    if model == "prompt":  # a run asks for as many words as a training target has
        commands.pop()
    for command in commands:
        code, out, _ = typed(*command, texts, "--json")
        assert (code, [json.loads(line)["summary"] for line in out.splitlines()]) == (0, expected)


def test_a_baseline_by_its_name(text: str, typed: Typed) -> None:
    """By hand: Lead and LexRank, in the command and in Python; without a length 100 words are written, and said."""
    assert typed("lead", text, "model.length=4")[:2] == (
        0,
        "Alpha beta gamma.\nAlpha\n",
    )
    assert typed("lexrank", text, "model.length=5")[:2] == (
        0,
        "Alpha beta gamma.\nBeta gamma\n",
    )
    (summary,) = longsumbench.load_system("lexrank", model={"length": 5}).summarize([TEXT])
    assert summary.text == "Alpha beta gamma.\nBeta gamma"
    code, out, err = typed("lead", text)
    assert (code, len(out.split()), err[0].partition(",")[0]) == (0, 9, "model.length=100 words")


REFUSED = """
2 seal → model=seal has to be trained first: name a run
2 oracle → model=oracle needs references or highlights, and these texts have none
3 ranker model.rank=lstm → the ranker 'lstm' learns from a training split
2 lead train.max_steps=3 → 'train.max_steps=3': model=lead has these settings here: model.
3 prompt model.checkpoint=TINY model.shots=1 → model.shots=1 needs a train split
"""


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_what_cannot_summarize_untrained(line: str, text: str, typed: Typed) -> None:
    """A system that learns, one that needs references, a wrong name or setting: one line and the right code."""
    command, problem = line.replace("TINY", str(causal_folder())).split(" → ")
    code, *words = command.split()
    ended, out, err = typed(*words, text)
    assert (ended, out) == (int(code), "")
    assert problem in err[-1]
