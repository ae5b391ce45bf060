"""Repeating a run: the words of its point, the page and the script, and whether a repeat comes out the same."""

import json
import random
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from support.paths import ROOT
from support.toys import TINY_FOR_ALL, write_jsonl

from longsumbench.analysis.runs.command_line import as_value, as_word, flat, rewrite
from longsumbench.analysis.runs.repeat import compare_repeat, differences, with_cache
from longsumbench.analysis.runs.reproduce import (
    is_same_run,
    known_constraints,
    reproduce,
    reproduction_page,
    reproduction_script,
)
from longsumbench.cli.main import main
from longsumbench.errors import UsageError
from longsumbench.runs.plan import plan
from longsumbench.runs.record import Results, RunRecord

COMMITTED = sorted((ROOT / "results" / "reference" / "runs").glob("*/*/*/record.json"))
SAMPLED = random.Random(9).sample(COMMITTED, min(10, len(COMMITTED)))
OF_ANOTHER_OUTCOME = {"6e0359c8a1d1"}  # runs whose steps have another outcome in today's code


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Run a point on the toy dataset in a results folder of the module; return its run folder."""
    root = tmp_path_factory.mktemp("repro")
    toy = write_jsonl(root / "my toys, [all]")

    def run(*words: str) -> Path:
        quoted = as_word("dataset.path", str(toy))
        common = ["dataset=jsonl", quoted, "baselines=false", f"results_dir={root / 'results'}", "score.resamples=100"]
        before = set((root / "results").glob("runs/*/*/*"))
        with with_cache(root / "cache"):
            assert main(["run", *common, *words]) == 0
        (folder,) = set((root / "results").glob("runs/*/*/*")) - before
        return folder

    return run


def tiny(model: str, *more: str) -> list[str]:
    """Return the words under which a neural system takes seconds."""
    known = flat(asdict(plan([f"model={model}"])[0].config))
    sizes = [as_word(f"model.{key}", value) for key, value in TINY_FOR_ALL.items() if f"model.{key}" in known]
    steps = ["train.max_steps=4", "train.eval_steps=2", "train.batch_size=8", "decode.batch_size=4", "device=cpu"]
    return [f"model={model}", "scale=tiny", *sizes, *steps, *more]


@pytest.mark.parametrize("path", SAMPLED, ids=lambda path: path.parent.name)
def test_a_committed_run_has_its_command(path: Path) -> None:
    """The words found for a record of the repository plan its configuration, or what differs is named; its id stays."""
    check_rewritten(RunRecord.read(path.parent))


@pytest.mark.slow
@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_every_committed_run_has_its_command(path: Path) -> None:
    """The same of every record of the repository."""
    check_rewritten(RunRecord.read(path.parent))


def check_rewritten(record: RunRecord) -> None:
    rewritten = rewrite(record.config)
    (planned,) = plan(rewritten.words)
    then, now = flat(record.config), flat(asdict(planned.config))
    assert {key: value for key, value in then.items() if now.get(key, value) != value} == {
        key: value for key, (value, _) in rewritten.unlike.items()
    }
    assert set(rewritten.unlike) <= {"dataset.strict"}
    assert not rewritten.gone
    assert set(rewritten.later) == set(now) - set(then)
    assert is_same_run(planned.config, record) is (record.run_id not in OF_ANOTHER_OUTCOME)


@pytest.mark.parametrize(
    "words",
    [
        ["model=lead", "model.length=40", "dataset=jsonl", r"dataset.path='my texts, [1]/it\'s=\${all}'"],
        ["model=seal", "dataset=pubmed", "scale=small", "seed=5", "decode.seed=6", "model.segment_length=32"],
        [
            "model=trunc",
            "dataset=pubmed",
            "train.optimizer=adam",
            "score.metrics=[novel_ngrams,repetition]",
            "device=cpu",
        ],
        ["model=etads", "dataset=probe", "model.focus_layers=[]", "model.encoder_layers=3"],
        ["model=etads", "model.focus_layers=[1,2]", "model.saliency_layers=[2]", "decode.evidence='3'"],
        ["model=pagesum", "dataset=probe", "model.locality=spatial", "model.split=tokens", "model.num_pages=null"],
        [
            "model=trunc",
            "experiment=smoke",
            "score=perl",
            "decode.num_beams=4",
            "decode.coverage=wu",
            "train.max_minutes=1",
        ],
    ],
)
def test_words_come_back(words: list[str]) -> None:
    """Whatever is typed, the words found mean the same point, and none of them can be left out."""
    (typed,) = plan(words)
    found = rewrite(asdict(typed.config))
    assert asdict(found.planned.config) == asdict(typed.config)
    assert found.planned.identity == typed.identity
    assert (found.gone, found.later, found.unlike) == ({}, {}, {})
    for left_out in found.words[2:]:
        try:
            (less,) = plan([word for word in found.words if word != left_out])
        except UsageError:
            continue
        assert asdict(less.config) != asdict(typed.config)


@settings(max_examples=200)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1))
def test_text_is_read_as_it_was(text: str) -> None:
    """A value in Hydra's grammar is that text again, whatever brackets, quotes, blanks and dollars are in it."""
    override = OverridesParser.create().parse_override(f"key={as_value(text)}")
    assert not override.is_sweep_override()
    assert OmegaConf.to_container(OmegaConf.create({"key": override.value()}), resolve=True) == {"key": text}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False), st.lists, max_leaves=6))
def test_values_are_read_as_they_were(value: object) -> None:
    """Numbers, null, truth values and lists of them are the same again."""
    assert OverridesParser.create().parse_override(f"key={as_value(value)}").value() == value


@pytest.mark.parametrize(
    "words",
    [
        ["model=lead", "model.length=40"],
        tiny("trunc", "seed=3", "decode.seed=4", "decode.num_beams=2", "decode.length_norm=wu"),
        tiny("seal", "model.segment_length=4", "decode.evidence=none"),
    ],
    ids=["lead", "trunc", "seal"],
)
def test_a_run_is_repeated(
    made: Callable[..., Path], words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The script's last line gives the same run; its repeat the same predictions; one that was altered is found."""
    folder = made(*words)
    found = reproduce(str(folder), Results(folder.parents[3]))
    assert found.same_run
    assert found.noted
    assert main(["repro", str(folder), "--output", str(tmp_path / "again")]) == 0
    assert found.command in capsys.readouterr().out
    subprocess.run(["bash", "-n", str(tmp_path / "again" / "repro.sh")], check=True)
    *_, last = (tmp_path / "again" / "repro.sh").read_text(encoding="utf-8").splitlines()
    assert main([*shlex.split(last)[1:], f"results_dir={tmp_path / 'results'}"]) == 0
    assert [path.name for path in (tmp_path / "results").glob("runs/*/*/*")] == [folder.name]
    capsys.readouterr()

    assert main(["repro", str(folder), "--check"]) == 0
    assert capsys.readouterr().out.endswith("\n8 of 8 predictions are the same\n")


Changes = dict[str, object]


@pytest.fixture(scope="module")
def lead(made: Callable[..., Path]) -> Path:
    """The folder of a run of Lead."""
    return made("model=lead", "model.length=9")


@pytest.fixture
def copied(lead: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Copy that run, its record changed; repeats are made in a folder `repeats` of the test."""
    (tmp_path / "repeats").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "repeats"))
    monkeypatch.setenv("LONGSUMBENCH_CACHE", str(lead.parents[4] / "cache"))

    def copy(
        name: str = "copy", environment: Changes | None = None, config: Changes | None = None, **facts: object
    ) -> Path:
        folder = shutil.copytree(lead, tmp_path / name, symlinks=True)
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        record["environment"] |= environment or {}
        for key, value in (config or {}).items():
            section, _, setting = key.partition(".")
            record["config"][section][setting] = value
        (folder / "record.json").write_text(json.dumps({**record, **facts}), encoding="utf-8")
        return folder

    return copy


def test_a_prediction_that_differs_is_found(
    copied: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One altered text is counted, shown beside the repeat's, and the repeat is kept where the last line says."""
    folder = copied()
    *lines, last = (folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(last)
    altered = json.dumps({**row, "prediction": "no such words"})
    (folder / "predictions.jsonl").write_text("\n".join([*lines, altered]) + "\n", encoding="utf-8")
    assert main(["repro", str(folder), "--check"]) == 1
    output = capsys.readouterr()
    (kept,) = (tmp_path / "repeats").iterdir()
    assert f"7 of 8 predictions are the same\nthe first that differ: {row['id']}\n" in output.out
    assert f"  the run:    no such words\n  its repeat: {row['prediction']}\n" in output.out
    assert output.err.endswith(f"longsumbench: 1 of 8 predictions differ; the repeat is in {kept}\n")
    assert [path.name for path in kept.glob("results/runs/*/*/*")] == [
        reproduce(str(folder), Results(tmp_path)).record.run_id
    ]


def test_a_missing_prediction_differs(copied: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is lost counts as one that is not the same, and is shown as none."""
    folder = copied()
    lines = (folder / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "predictions.jsonl").write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
    assert main(["repro", str(folder), "--check"]) == 1
    output = capsys.readouterr().out
    assert "7 of 8 predictions are the same" in output
    assert "  the run:    (none)\n" in output


def test_weights_of_another_seed_are_found(
    made: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record that claims another seed of the weights is not confirmed."""
    folder = shutil.copytree(made(*tiny("trunc", "seed=8")), tmp_path / "copy", symlinks=True)
    record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    record["config"]["train"]["seed"] = 7
    (folder / "record.json").write_text(json.dumps(record), encoding="utf-8")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert main(["repro", str(folder), "--check"]) == 1
    output = capsys.readouterr()
    assert "train.seed=7" in output.out
    assert "settings or the outcome of a step have changed since the run" in output.err


def test_what_is_compared_where_files_are_missing(copied: Callable[..., Path], lead: Path) -> None:
    """Without predictions the scores of every example are compared, to the last bit; without these the means."""
    folder, record = copied(), RunRecord.read(lead)
    kinds = [compare_repeat(folder, lead, record)]
    (folder / "predictions.jsonl").unlink()
    kinds.append(compare_repeat(folder, lead, record))
    text = (folder / "scores.csv").read_text(encoding="utf-8")
    number = text.splitlines()[2].split(",")[3]
    (folder / "scores.csv").write_text(text.replace(number, f"{number}1", 1), encoding="utf-8")
    kinds.append(compare_repeat(folder, lead, record))
    (folder / "scores.csv").unlink()
    kinds.append(compare_repeat(folder, lead, record))
    assert [(one.kind, one.total, len(one.unlike)) for one in kinds] == [
        ("predictions", 8, 0),
        ("examples' scores", 8, 0),
        ("examples' scores", 8, 1),
        ("mean scores", 4, 0),
    ]


@pytest.mark.parametrize(
    ("facts", "code", "told"),
    [
        ({"repeatable": False}, 2, "is not repeatable: its training was ended by train.max_minutes"),
        ({"fingerprint": "0" * 64}, 3, "dataset 'jsonl' has other texts here: their fingerprint is "),
        ({"config": {"model.length": "-3"}}, 2, "today's code rejects its settings"),
        ({"config": {"model.name": "sael"}}, 2, "cannot be repeated here: today's code does not know a name"),
        ({"command": ["longsumbench", "run", "--config-dir", "gone"]}, 2, "--config-dir gone: there is no such folder"),
    ],
)
def test_what_cannot_be_repeated(
    copied: Callable[..., Path],
    tmp_path: Path,
    facts: dict[str, Changes],
    code: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One line says why, and nothing is left behind."""
    assert main(["repro", str(copied(**facts)), "--check"]) == code
    last = capsys.readouterr().err.splitlines()[-1]
    assert told in last
    assert last.startswith("longsumbench: ")
    assert list((tmp_path / "repeats").iterdir()) == []


def test_of_a_run_that_is_not_there_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A mistyped id leaves no empty folder where the script was to be."""
    assert main(["repro", "85f3139c", "--output", str(tmp_path / "again"), "--results-dir", str(tmp_path)]) == 2
    assert "no finished run is called '85f3139c'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_differences_are_said_before_the_repeat(
    copied: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Other versions, an unknown patch and a GPU are told first: they are the likely reason of what comes out."""
    environment = {"python": "3.10.1", "commit": None, "patched": True, "gpu": "H200", "packages": {"torch": "1.0"}}
    folder = copied(environment=environment)
    shutil.rmtree(folder / "work")
    assert main(["repro", str(folder), "--check"]) == 0
    output = capsys.readouterr()
    for told in (
        "python: 3.10.1 in the run",
        "torch: 1.0 in the run",
        "the changes are lost",
        "the run was on a GPU (H200)",
    ):
        assert told in output.err
    assert "8 of 8 predictions are the same" in output.out


def test_the_page_says_what_is_not_known(copied: Callable[..., Path], tmp_path: Path) -> None:
    """A lost patch, settings that no longer exist and a changed id are named; typed sweeps are told as such."""
    command = ["longsumbench", "run", "-m", "model=lead,random\nrm -rf x"]
    config = {"model.old": 3, "dataset.strict": False}
    folder = copied(environment={"patched": True}, config=config, command=command, signature="x", run_id="0" * 12)
    (folder / "work" / "patch.diff").unlink()
    found = reproduce(str(folder), Results(tmp_path))
    text = reproduction_page(found)
    assert "The code differed from its commit, but the changes are lost" in text
    assert "Settings that no longer exist; add them at that commit: model.old=3" in text
    assert "another run id, because settings or the outcome of a step have changed: use its commit" in text
    assert "(the run is a point of this sweep)" in text
    assert "dataset.strict=false" in found.command
    own = [line for line in reproduction_script(found).splitlines() if not line.startswith("#")]
    assert not any("rm -rf" in line for line in own)


def test_a_patch_is_handed_on(copied: Callable[..., Path], tmp_path: Path) -> None:
    """What the code was changed by stands beside the script, which applies it; an unchanged one has none."""
    folder = copied(environment={"patched": True, "commit": "c" * 40})
    (folder / "work" / "patch.diff").write_text("a patch\n", encoding="utf-8")
    assert main(["repro", str(folder), "--output", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "patch.diff").read_text(encoding="utf-8") == "a patch\n"
    assert 'apply "$here/patch.diff"' in (tmp_path / "out" / "repro.sh").read_text(encoding="utf-8")
    unchanged = copied("other", environment={"patched": False, "commit": "c" * 40})
    (unchanged / "work" / "patch.diff").write_text("", encoding="utf-8")
    assert main(["repro", str(unchanged), "--output", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out" / "patch.diff").exists()
    assert "apply" not in (tmp_path / "out" / "repro.sh").read_text(encoding="utf-8").replace("applied", "")


def test_the_page_leaves_a_checkout_and_its_packages_alone(copied: Callable[..., Path], tmp_path: Path) -> None:
    """Typed in a checkout, its steps neither clone into the package's folder nor install into the user's packages."""
    found = reproduce(str(copied(environment={"commit": "c" * 40, "patched": False})), Results(tmp_path))
    own = f"repro-{found.record.run_id[:8]}"
    lines = [line.strip() for line in reproduction_page(found).splitlines()]
    assert f"git clone -q <this repository> {own}/longsumbench" in lines
    assert f"{found.python} -m venv {own}/.venv" in lines
    assert any(line.endswith(f" -e {own}/longsumbench") for line in lines)


def test_an_empty_patch_of_changed_code_is_no_patch(copied: Callable[..., Path], tmp_path: Path) -> None:
    """Code that differed, by a patch that says nothing (git did not answer in time), is not taken for the commit's."""
    folder = copied(environment={"patched": True})
    (folder / "work" / "patch.diff").write_bytes(b"")
    assert "the changes are lost" in reproduction_page(reproduce(str(folder), Results(tmp_path)))


def test_a_run_of_several_processes_says_how_many(copied: Callable[..., Path], tmp_path: Path) -> None:
    """The command starts as many, of the installed code; the configuration is shown by one."""
    found = reproduce(str(copied(environment={"processes": 3})), Results(tmp_path))
    assert found.command.startswith("torchrun --nproc-per-node=3 -m longsumbench run model=lead dataset=jsonl")
    exported, check, last = reproduction_script(found).splitlines()[-3:]
    assert last == found.command
    assert exported.endswith(" PYTHONSAFEPATH=1")
    assert check.startswith("longsumbench run model=lead dataset=jsonl")
    assert "processes that worked together: 3 in the run, 1 here" in list(differences(found))


def test_constraints_of_an_older_run(copied: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions of the record go before those of its commit's file, whatever way their names are written."""
    monkeypatch.setattr(
        "longsumbench.analysis.runs.reproduce.file_at", lambda commit, name: "Hydra_core==9\ntorch==1.0\nzipp==3\n"
    )
    record = RunRecord.read(copied(environment={"packages": {"torch": "2.0+cpu", "hydra-core": "1.3"}}))
    assert known_constraints(record) == "hydra-core==1.3\ntorch==2.0+cpu\nzipp==3\n"


def test_yaml_files_of_ones_own_are_found_again(
    made: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run with --config-dir is repeated with it."""
    (tmp_path / "yaml" / "score").mkdir(parents=True)
    (tmp_path / "yaml" / "score" / "mine.yaml").write_text("resamples: 150\n", encoding="utf-8")
    folder = made("model=lead", "model.length=7", "--config-dir", str(tmp_path / "yaml"))
    found = reproduce(str(folder), Results(tmp_path))
    assert found.command.endswith(f"--config-dir {shlex.quote(str(tmp_path / 'yaml'))}")
    assert main([*shlex.split(found.command)[1:], "--show"]) == 0
    assert "length: '7'" in capsys.readouterr().out
