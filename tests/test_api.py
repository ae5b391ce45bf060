"""The functions of `longsumbench`: settings as on the command line, results as objects, errors as exceptions."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import QuotedString
from hypothesis import given, strategies as st
from support.toys import example, tiny_overrides, write_jsonl

import longsumbench
from longsumbench.cli.main import main
from longsumbench.errors import SuiteError
from longsumbench.runs.overrides import format_overrides
from longsumbench_reproduction.analysis.analyze import analyze
from longsumbench_reproduction.papers.command import paper

_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.floats(-1e6, 1e6), st.text()
)


@pytest.fixture
def toy(here: Path) -> dict[str, Any]:
    """The settings of a run on toy texts, with `results` in the working folder."""
    path = write_jsonl(here / "toy")
    return {"dataset": {"name": "jsonl", "path": path}, "score.resamples": 100, "baselines": False}


def test_every_public_name_is_there_and_nothing_heavy_is_loaded_before_it_is_used() -> None:
    """`import longsumbench` loads no library; scoring, comparing and tables load no torch."""
    code = (
        "import sys, longsumbench\n"
        "assert not {'numpy', 'torch', 'hydra', 'pandas', 'tqdm'} & set(sys.modules)\n"
        "assert set(longsumbench.__all__) <= set(dir(longsumbench))\n"
        "longsumbench.score(['A cat.'], ['A cat.'], resamples=100)\n"
        "assert all(callable(getattr(longsumbench, name)) for name in longsumbench.__all__)\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'rnu'"):
        _ = longsumbench.rnu  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [["a"], pd.Series(["a", "b"]), pd.DataFrame({"a": ["b"]})])
@pytest.mark.parametrize(
    "call",
    [
        lambda value: longsumbench.compare(value, value),
        lambda value: longsumbench.import_outputs(value, model="m", dataset="probe"),
        lambda value: longsumbench.import_outputs({"a": "b"}, model=value, dataset="probe"),
        lambda value: longsumbench.load_system(value),
        lambda value: longsumbench.load_dataset("mine", path=value),
        lambda value: longsumbench.agreement("nosuch", where=value),
        lambda value: analyze(value),
        lambda value: paper(value, run=False),
    ],
)
def test_a_collection_in_a_wrong_place_is_an_error(
    call: Callable[[object], object], value: object, here: Path
) -> None:
    """Each public function refuses lists, tables and generators where it needs a name, in one line."""
    with pytest.raises(SuiteError) as error:
        call(value)
    assert "\n" not in str(error.value)


def test_frames_have_a_row_for_each_example(toy: dict[str, Any]) -> None:
    """Their means differ as the comparison says; references are there while the texts are."""
    short, long = longsumbench.sweep(model="lead", **{**toy, "model.length": [5, 9]})
    outputs = longsumbench.load_outputs(long)
    assert set(outputs["references"].map(len)) == {1}
    assert outputs["words"].mean() == 9
    comparison = longsumbench.compare(short, long)
    difference = comparison.pairs[0].main.difference
    scores = [longsumbench.load_outputs(run)["rougeLsum_f"].mean() for run in (short, long)]
    assert 100 * (scores[1] - scores[0]) == pytest.approx(difference)
    shutil.rmtree(Path("results/runs/jsonl/lead") / long.run_id / "work")
    assert set(longsumbench.load_outputs(long)["references"]) == {None}


@pytest.mark.parametrize(
    ("settings", "swept", "words"),
    [
        ({"dataset.path": Path("/a b"), "seed": None}, False, ["dataset.path='/a b'", "seed=null"]),
        (
            {"model": {"name": "seal", "segment_length": 64}},
            False,
            ["model=seal", "model.segment_length=64"],
        ),
        ({"model.focus_layers": [[], [1, 2]]}, True, ["model.focus_layers=[],[1,2]"]),
        (
            {"model": {"name": ("ea", "seal")}, "seed": range(2)},
            True,
            ["model=ea,seal", "seed=0,1"],
        ),
    ],
)
def test_settings_become_overrides(settings: dict[str, Any], swept: bool, words: list[str]) -> None:
    """Dictionaries are groups, lists are lists or, in a sweep, values; text that could be read otherwise is quoted."""
    assert format_overrides(settings, swept) == words


@given(_VALUES)
def test_an_override_means_the_value_it_was_made_of(value: object) -> None:
    """The parser of the command line reads back every value, of the same type."""
    (word,) = format_overrides({"dataset.path": value})
    (parsed,) = OverridesParser.create().parse_overrides([word])
    found = parsed.value()
    if not isinstance(found, bool | int | float | None):
        found = found.text if isinstance(found, QuotedString) else str(found)
    assert (type(found), found) == (type(value), value)


def test_a_run_is_that_of_the_command(
    toy: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Its record names a command, which finds the run finished; nothing is printed to stdout; tables are there."""
    record = longsumbench.run(model="lead", **toy)
    assert capsys.readouterr().out == ""
    assert Path("results/leaderboard/jsonl.csv").is_file()
    assert main(record.command[1:]) == 0
    assert "already finished" in capsys.readouterr().err
    for run in (record, record.run_id[:8], Path("results/runs/jsonl/lead") / record.run_id):
        assert longsumbench.load_run(run).run_id == record.run_id
    outputs = longsumbench.load_outputs(record)
    assert outputs["rouge1_f"].mean() * 100 == pytest.approx(record.evaluation.scores["rouge1"].f)
    assert all(isinstance(text, str) for text in outputs["prediction"])


def test_a_sweep_returns_a_record_for_each_point(
    toy: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the combinations, also of points that are one run, or were finished before."""
    runs = longsumbench.sweep(model=["random", "lead"], seed=[2, 1], **toy)
    points = [("random", 2), ("random", 1), ("lead", None), ("lead", None)]
    assert [(run.key.model, run.key.seed) for run in runs] == points
    assert longsumbench.run(model="random", seed=1, **toy) == runs[1]
    assert capsys.readouterr().out == ""
    table = longsumbench.leaderboard("jsonl")
    assert set(table["run_id"]) == {run.run_id for run in runs}
    pair, other = longsumbench.compare(runs[2], *runs[:2]).pairs
    assert pair.run.record == runs[0]
    assert other.rows[0].mean == pytest.approx(runs[1].evaluation.scores["rouge1"].f)


def test_a_dataset_is_read_by_its_settings(toy: dict[str, Any]) -> None:
    """Splits are sequences of examples; the texts are those of a run with the same settings."""
    texts = longsumbench.load_dataset("jsonl", path=toy["dataset"]["path"], limit=3)
    assert {name: len(split) for name, split in texts.splits.items()} == {
        "train": 3,
        "validation": 3,
        "test": 3,
    }
    assert texts.splits["train"][0].references == example(0, sentences=2).references
    toy["dataset"]["limit"] = 3
    assert longsumbench.run(model="lead", **toy).key.fingerprint == texts.fingerprint


def test_a_trained_system_summarizes_texts(
    toy: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """Text and examples alike, as the command does; its settings can be changed; evidence is kept if asked for."""
    words = [word.split("=", 1) for word in tiny_overrides(toy["dataset"]["path"], steps=2)]
    record = longsumbench.run(
        **{key: json.loads(value) if value.isdigit() else value for key, value in words}
    )
    system = longsumbench.load_system(record, device="cpu")
    text = " ".join(example(1).sentences())
    Path("text.txt").write_text(text)
    capsys.readouterr()
    assert main(["summarize", record.run_id, "text.txt", "device=cpu"]) == 0
    one, two = system.summarize([text, example(1)])
    assert (one.text, two.text) == (capsys.readouterr().out.removesuffix("\n"), one.text)
    assert (one.id, two.id, two.evidence) == ("text 1", "toy-1", None)
    short = longsumbench.load_system(
        record.run_id, decode={"max_length": 1, "evidence": "all"}, device="cpu"
    )
    assert short.summarize([text])[0].tokens == 1
    with pytest.raises(SuiteError, match="put a single text into a list"):
        system.summarize("text")
