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
from support.commands import Command
from support.json_files import write_rows
from support.toys import example, tiny_overrides, write_jsonl

import longsumbench
from longsumbench.cli.main import main
from longsumbench.errors import SuiteError, UnknownName, UsageError
from longsumbench.runs.overrides import format_overrides

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
        lambda value: longsumbench.compare("a", "b", results_dir=value),
        lambda value: longsumbench.import_outputs(value, model="m", dataset="probe"),
        lambda value: longsumbench.import_outputs({"a": "b"}, model=value, dataset="probe"),
        lambda value: longsumbench.load_system(value),
        lambda value: longsumbench.load_dataset("mine", path=value),
        lambda value: longsumbench.leaderboard(value),
        lambda value: longsumbench.agreement("nosuch", where=value),
        lambda value: longsumbench.analyze(value),
        lambda value: longsumbench.paper(value, run=False),
    ],
)
def test_a_collection_in_a_wrong_place_is_an_error(
    call: Callable[[object], object], value: object, here: Path
) -> None:
    """Each public function refuses lists, tables and generators where it needs a name, in one line."""
    with pytest.raises(SuiteError) as error:
        call(value)
    assert "\n" not in str(error.value)


def test_an_example_and_a_figure_are_shown(toy: dict[str, Any]) -> None:
    """An inspected example has its page, a figure its systems, and nothing is written."""
    lead = longsumbench.sweep(model=["lead", "lexrank"], **toy)[0]
    before = sorted(Path("results").rglob("*"))
    example = longsumbench.inspect(lead, 1)
    assert longsumbench.inspect(lead.run_id, example.summary.id).summary == example.summary
    assert example.summary.text.split()[0] in example.page()
    figure: Any = longsumbench.leaderboard_figure("jsonl")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert {label.split()[0] for label in labels} == {"lead", "lexrank"}
    assert sorted(Path("results").rglob("*")) == before


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


def test_statistics_and_analyses_are_those_of_the_commands(
    toy: dict[str, Any], run_command: Command
) -> None:
    """Each returns what its command prints, and writes nothing."""
    data = ["dataset=jsonl", f"dataset.path={toy['dataset']['path']}", "sample=3"]
    stats = longsumbench.stats(dataset=toy["dataset"], sample=3)
    fusion = longsumbench.analyze("fusion", dataset=toy["dataset"], sample=3, bins=5)
    assert not Path("results").exists()
    for report, words in (
        (stats, ["stats", *data]),
        (fusion, ["analyze", "fusion", *data, "bins=5", "--output", "out"]),
    ):
        assert run_command(0, *words).out.startswith(report.render())
    with pytest.raises(UnknownName, match="did you mean 'fusion'"):
        longsumbench.analyze("fusoin")


@pytest.mark.parametrize(
    ("settings", "swept", "words"),
    [
        ({"dataset.path": Path("/a b"), "seed": None}, False, ["dataset.path='/a b'", "seed=null"]),
        (
            {"model": {"name": "seal", "segment_length": 64}},
            False,
            ["model=seal", "model.segment_length=64"],
        ),
        ({"model.focus_layers": (1, 2)}, False, ["model.focus_layers=[1,2]"]),
        ({"model.focus_layers": [[], [1, 2]]}, True, ["model.focus_layers=[],[1,2]"]),
        (
            {"model": {"name": ("ea", "seal")}, "seed": range(2)},
            True,
            ["model=ea,seal", "seed=0,1"],
        ),
        ({"hydra": {"launcher": {"n_jobs": 2}}}, True, ["hydra.launcher.n_jobs=2"]),
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


@pytest.mark.parametrize("settings", [{"seed": {1}}, {"seed": [{}]}, {"seed": []}])
def test_values_that_no_setting_has(settings: dict[str, Any]) -> None:
    """A set, a list of dictionaries and a sweep over nothing are errors that name the setting."""
    with pytest.raises(UsageError, match="seed="):
        longsumbench.sweep(**settings)


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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "leed"}, ["model=leed"]),
        ({"model": {"name": "lead", "lenght": 3}}, ["model=lead", "model.lenght=3"]),
        ({"config_dir": "nowhere"}, ["--config-dir", "nowhere"]),
    ],
)
def test_an_error_says_what_the_command_says(
    settings: dict[str, Any], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exception's message is the line that the command prints, and its exit code the command's."""
    results = str(tmp_path / "r")
    code, said = main(["run", *words, f"results_dir={results}"]), capsys.readouterr().err
    with pytest.raises(SuiteError) as caught:
        longsumbench.run(**settings, results_dir=results)
    assert (caught.value.exit_code, f"longsumbench: {caught.value}") == (
        code,
        said.splitlines()[-1],
    )


def test_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under torchrun, the message names the command that works there."""
    monkeypatch.setattr("longsumbench.sweeps.run.started_processes", lambda: 2)
    with pytest.raises(UsageError, match="torchrun -m longsumbench run"):
        longsumbench.run()


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
    with pytest.raises(
        UsageError, match=r"unknown setting 'dataset.lmit' \(did you mean 'limit'\?\)"
    ):
        longsumbench.load_dataset("jsonl", lmit=3)
    with pytest.raises(UnknownName, match=r"did you mean 'jsonl'"):
        longsumbench.load_dataset("jsnl")


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
    for texts, problem in (
        (["  "], "text 1: there is no text"),
        ("text", "put a single text into a list"),
    ):
        with pytest.raises(SuiteError, match=problem):
            system.summarize(texts)
    with pytest.raises(UsageError, match="a trained system has these settings"):
        longsumbench.load_system(record, model={"name": "lead"})


def test_scores_are_those_of_the_command(tmp_path: Path, run_command: Command) -> None:
    """Texts, lists of sentences and several references are read as from a file."""
    predictions = ["The cat sat. It slept.", ["The dog ran.", "It barked."]]
    references = ["A cat sat down.", ["A dog ran.", ["The dog ran off.", "It barked."]]]
    rows = [
        {"id": "1", "prediction": predictions[0], "reference": references[0]},
        {"id": "2", "prediction": predictions[1], "references": references[1]},
    ]
    write_rows(tmp_path / "both.jsonl", rows)
    for mode in ("google", "perl"):
        found = longsumbench.score(
            predictions, references, mode=mode, wordnet="none", resamples=100
        )
        words = ["--mode", mode, "--wordnet", "none", "--resamples", "100", "--json"]
        assert (
            found.to_json() == run_command(0, "score", tmp_path / "both.jsonl", *words).out.strip()
        )
        assert found.f1["rouge1"] == found.scores["rouge1"].f


@pytest.mark.parametrize(
    ("predictions", "references", "options", "problem"),
    [
        ({"a": "x"}, ["x"], {}, "one has ids"),
        (
            {"a": "x", "b": "y"},
            {"a": "x", "c": "z"},
            {},
            r"1 prediction without references \(ids 'b'\) and 1 ref.*out",
        ),
        ({"a": "x"}, {"b": "x"}, {}, "predictions and references have no id in common"),
        ({1: "x", "1": "y"}, {"1": "x"}, {}, "the id '1' occurs twice"),
        ([], [], {}, "0 predictions, 0 references"),
        (
            ["a", "b"],
            ["a"],
            {},
            "2 predictions, 1 reference: give the references of each prediction",
        ),
        (
            ["a", None],
            ["a", "b"],
            {},
            "example 2: the field 'predictions' must be text or a list of .*, not null",
        ),
        (["a"], ["a"], {"mode": "prl"}, r"mode=prl \(did you mean 'perl'\?\)"),
        (["a"], ["a"], {"resamples": 5}, "--resamples=5 is below 100"),
    ],
)
def test_texts_that_cannot_be_scored(
    predictions: Any, references: Any, options: dict[str, Any], problem: str
) -> None:
    """Each is an exception of the suite that says what is wrong."""
    with pytest.raises(SuiteError, match=problem):
        longsumbench.score(predictions, references, **options)
