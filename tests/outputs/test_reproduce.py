"""Repeating a run: its configuration as a command, its facts, and whether a repeat has the same outputs."""

import csv
import json
import random
import shlex
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped] # not annotated
from support.paths import ROOT
from support.toys import TINY, write_jsonl

import longsumbench
from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli.main import main
from longsumbench.errors import DataError, UsageError
from longsumbench.outputs.reproduce import compare_repeat
from longsumbench.runs.overrides import add_config_file
from longsumbench.runs.plan import plan
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

REFERENCE = Results(ROOT / "results" / "reference")
INDICES = sorted((REFERENCE.root / "bundles").glob("*.csv"))
COMMITTED = [row["run_id"] for path in INDICES for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())]
SAMPLED = random.Random(9).sample(COMMITTED, min(4, len(COMMITTED)))
UNSAMPLED = [run_id for run_id in COMMITTED if run_id not in SAMPLED]
LEAD = ["model=lead", "model.length=9"]
TRUNC = ["model=trunc", "scale=tiny", "seed=3", "decode.seed=4", "decode.num_beams=2", "train.max_steps=4"]
TRUNC += ["train.eval_steps=2", "train.batch_size=8", "device=cpu", *(f"model.{key}={TINY[key]}" for key in TINY)]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the runs of this module."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(autouse=True)
def folders(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Share the cache of the module; repeats are made in the folder `repeats` of the test."""
    (tmp_path / "repeats").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "repeats"))
    monkeypatch.setenv(CACHE_VARIABLE, str(root / "cache"))


@pytest.fixture
def run(root: Path, tmp_path: Path) -> Callable[..., Path]:
    """Run a point, once in the module; return a copy of its folder with a changed environment and changed facts."""

    def finished(*words: str, environment: dict[str, object] | None = None, **facts: object) -> Path:
        results = root / f"{hash(words)}"
        if not results.is_dir():
            toy = write_jsonl(root / "my ${toys}, [all] it's")
            quoted = str(toy).replace("'", r"\'").replace("${", r"\${")
            texts = ["dataset=jsonl", f"dataset.path='{quoted}'", "baselines=false", "score.resamples=100"]
            assert main(["run", *texts, f"results_dir={results}", *words]) == 0
        (folder,) = results.glob("runs/*/*/*")
        copy = shutil.copytree(folder, tmp_path / folder.name, symlinks=True)
        record = json.loads((copy / "record.json").read_text(encoding="utf-8"))
        record["environment"] |= environment or {}
        (copy / "record.json").write_text(json.dumps({**record, **facts}), encoding="utf-8")
        return copy

    return finished


@pytest.mark.parametrize("run_id", [*SAMPLED, *(pytest.param(run_id, marks=pytest.mark.slow) for run_id in UNSAMPLED)])
def test_a_committed_configuration_is_planned_again(run_id: str) -> None:
    """Every setting of the file that still exists has its value, and the variant is that of the record.

    A checkpoint that is not here, as those of benchmarks/same_size.py, is an error that names it.
    """
    path = REFERENCE.find(run_id) / "config.yaml"
    then = yaml.safe_load(path.read_text(encoding="utf-8"))
    if checkpoint := then["model"].get("checkpoint"):
        with pytest.raises(UsageError, match=f"model.checkpoint={checkpoint} is neither a folder nor a model"):
            plan(add_config_file(path, []))
        return
    (planned,) = plan(add_config_file(path, []))
    now = asdict(planned.config)
    assert planned.variant == RunRecord.read(path.parent).variant
    for section, values in then.items():
        if isinstance(values, dict):
            assert {key: now[section][key] for key in values if key in now[section]}.items() <= values.items()
        elif section != "overwrite":
            assert now[section] == values


@pytest.mark.parametrize("words", [LEAD, TRUNC], ids=["lead", "trunc"])
def test_a_run_is_repeated(
    words: list[str], run: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The printed command gives the same run id, `--check` the same predictions; no folder is left."""
    folder = run(*words)
    capsys.readouterr()
    assert main(["repro", str(folder)]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    command = shlex.split(last.replace("results_dir=repeated", f"results_dir={tmp_path / 'results'}"))
    assert main(command[command.index("longsumbench") + 1 :]) == 0
    assert [path.name for path in (tmp_path / "results").glob("runs/*/*/*")] == [folder.name]
    assert main(["repro", str(folder), "--check"]) == 0
    assert capsys.readouterr().out.endswith("\n8 of 8 predictions are the same\n")
    assert not list((tmp_path / "repeats").iterdir())


def test_settings_on_the_command_line_win(run: Callable[..., Path], tmp_path: Path) -> None:
    """A new seed also reaches the sections that had the old one; `overwrite` is not taken from the file."""
    path = run(*TRUNC) / "config.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("overwrite: false", "overwrite: true"), encoding="utf-8")
    config = plan(add_config_file(path, ["seed=7", "train.max_steps=5"]))[0].config
    seeds = (config.seed, config.train.seed, config.decode.seed)
    assert (*seeds, config.train.max_steps, config.overwrite) == (7, 7, 4, 5, False)
    changes: dict[str, Any] = {"model.length": 8, "results_dir": str(tmp_path)}
    record = longsumbench.run(config=run(*LEAD) / "config.yaml", **changes)
    assert record.variant == "length=8"


def change_config(folder: Path, key: str, value: object) -> Path:
    """Change or remove (None) a setting in a run's configuration."""
    config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
    section, _, name = key.partition(".")
    config[section].pop(name, None)
    if value is not None:
        config[section][name] = value
    (folder / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder / "config.yaml"


def test_a_setting_that_was_added_since_has_its_default(run: Callable[..., Path]) -> None:
    """A configuration without it gives the same run."""
    folder = run(*LEAD)
    config = plan(add_config_file(change_config(folder, "score.stem", None), []))[0].config
    assert (config.model.length, config.score.stem) == ("9", True)


@pytest.mark.parametrize(
    ("key", "value", "words", "message"),
    [
        ("model.length", "-3", [], "model.length=-3; allowed: "),
        ("model.name", "sael", [], "unknown model 'sael'"),
        ("model.old", 3, [], "unknown setting 'model.old'"),
        ("model.name", None, [], "is not the config.yaml of a run: model.name and dataset.name are missing"),
        ("model.length", "9", ["model=seal"], "model= cannot be combined with --config"),
    ],
)
def test_a_configuration_that_is_refused(
    key: str, value: object, words: list[str], message: str, run: Callable[..., Path]
) -> None:
    """One line says what is wrong."""
    path = change_config(run(*LEAD), key, value)
    with pytest.raises(UsageError) as caught:
        plan(add_config_file(path, words))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [None, b"\xff\xfe\n", b"{", b"- 3\n", b"model: 3\n"])
def test_a_file_that_is_no_configuration(content: bytes | None, tmp_path: Path) -> None:
    """A missing, damaged or other file ends in one line."""
    path = tmp_path / "config.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=f"--config {path} ") as caught:
        add_config_file(path, [])
    assert "\n" not in str(caught.value)


def test_a_prediction_that_differs_is_found(
    run: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A changed and a missing text are counted, the first is shown, and the repeat is kept."""
    folder = run(*LEAD)
    first, *lines, _ = (folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(first)
    changed = json.dumps({**row, "prediction": "no such words"})
    (folder / "predictions.jsonl").write_text("\n".join([changed, *lines]) + "\n", encoding="utf-8")
    assert main(["repro", str(folder), "--check"]) == 1
    output = capsys.readouterr()
    (kept,) = (tmp_path / "repeats").iterdir()
    assert f"6 of 8 predictions are the same\nthe first that differ: {row['id']}\n" in output.out
    assert f"  the run:    no such words\n  its repeat: {row['prediction']}\n" in output.out
    assert output.err.endswith(f"longsumbench: 2 of 8 predictions differ; the repeat is in {kept}\n")
    assert [path.name for path in kept.glob("results/runs/*/*/*")] == [folder.name]


def test_what_is_compared_where_files_are_missing(run: Callable[..., Path], tmp_path: Path) -> None:
    """Without predictions the scores of every example are compared, to the last bit; without these it is an error."""
    folder = run(*LEAD)
    original, record = shutil.copytree(folder, tmp_path / "original", symlinks=True), RunRecord.read(folder)
    kinds = [compare_repeat(folder, original, record)]
    (folder / "predictions.jsonl").unlink()
    kinds.append(compare_repeat(folder, original, record))
    text = (folder / "scores.csv").read_text(encoding="utf-8")
    number = text.splitlines()[2].split(",")[3]
    (folder / "scores.csv").write_text(text.replace(number, f"{number}1", 1), encoding="utf-8")
    kinds.append(compare_repeat(folder, original, record))
    (folder / "scores.csv").unlink()
    with pytest.raises(DataError, match=r"scores.csv missing"):
        compare_repeat(folder, original, record)
    assert [(one.kind, one.total, len(one.unlike)) for one in kinds] == [
        ("predictions", 8, 0),
        ("examples' scores", 8, 0),
        ("examples' scores", 8, 1),
    ]


@pytest.mark.parametrize(
    ("facts", "code", "message"),
    [
        ({"repeatable": False}, 2, "is not repeatable: its training was ended by train.max_minutes"),
        ({"fingerprint": "0" * 64}, 3, "dataset 'jsonl' has other texts here: their fingerprint is "),
    ],
)
def test_what_cannot_be_repeated(
    facts: dict[str, object],
    code: int,
    message: str,
    run: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line says why, and no folder is left."""
    assert main(["repro", str(run(*LEAD, **facts)), "--check"]) == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("longsumbench: ")
    assert message in last
    assert not list((tmp_path / "repeats").iterdir())


def test_differences_and_commands(run: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Other versions, lost changes, a GPU and the number of processes are named; the commands are quoted."""
    environment = {"python": "3.10.1", "commit": "c" * 40, "patched": True, "gpu": "H200", "processes": 3}
    folder = run(*LEAD, environment={**environment, "packages": {"torch": "1.0"}}, command=["run", "a\nrm -rf x"])
    (folder / "work" / "patch.diff").write_text("", encoding="utf-8")
    assert main(["repro", str(folder)]) == 0
    page = capsys.readouterr().out
    named = ["python: 3.10.1 in the run", "torch: 1.0 in the run", "processes: 3 in the run, 1 here"]
    for line in (*named, "the changes are lost", "the run was on a GPU (H200)", f"git checkout {'c' * 40}"):
        assert line in page
    assert "git apply" not in page
    assert "CUDA_VISIBLE_DEVICES" not in page
    assert " torchrun --nproc-per-node=3 -m longsumbench run --config " in page
    (folder / "work" / "patch.diff").write_text("a patch\n", encoding="utf-8")
    assert main(["repro", str(folder)]) == 0
    assert f"git apply {folder / 'work' / 'patch.diff'}" in capsys.readouterr().out
