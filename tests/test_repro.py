"""Repeating a run: the words of its point, the page and the script, and whether a repeat comes out the same."""

import json
import random
import shlex
import subprocess
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from toys import TINY_FOR_ALL, tiny_overrides, write_jsonl

from longsumbench.cli import main
from longsumbench.errors import UsageError
from longsumbench.planning import plan
from longsumbench.records import Results, RunRecord
from longsumbench.repeating import compare, with_cache
from longsumbench.repro import is_same_run, page, reproduce, script
from longsumbench.rewriting import as_value, as_word, flat, rewrite
from longsumbench.stages import cache_folder

COMMITTED = sorted((Path(__file__).parents[1] / "results" / "runs").glob("*/*/*/record.json"))
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
        ["model=trunc", "dataset=pubmed", "train.optimizer=adam", "score.metrics=[novel_ngrams,repetition]", "device=cpu"],
        ["model=etads", "dataset=probe", "model.focus_layers=[]", "model.encoder_layers=3"],
        ["model=etads", "model.focus_layers=[1,2]", "model.saliency_layers=[2]", "decode.evidence='3'"],
        ["model=pagesum", "dataset=probe", "model.locality=spatial", "model.split=tokens", "model.num_pages=null"],
        ["model=trunc", "experiment=smoke", "score=perl", "decode.num_beams=4", "decode.coverage=wu", "train.max_minutes=1"],
    ],
)
def test_words_come_back(words: list[str]) -> None:
    """Whatever is typed, the words found mean the same point, and none of them can be left out."""
    (typed,) = plan(words)
    found = rewrite(asdict(typed.config))
    assert asdict(found.planned.config) == asdict(typed.config)
    assert found.planned.identity == typed.identity
    assert not (found.gone or found.later or found.unlike)
    for left_out in found.words[2:]:
        try:
            (less,) = plan([word for word in found.words if word != left_out])
        except UsageError:
            continue
        assert asdict(less.config) != asdict(typed.config)


@settings(max_examples=200, deadline=None)
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
