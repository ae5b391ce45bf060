"""From a command line to points: the settings, equal runs, and the names of variants."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf
from support.waiting import PATIENCE

from longsumbench.core import registry
from longsumbench.core.registry import load_config_class
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.runs.compose import compose, offer_plugins, scale_models
from longsumbench.runs.overrides import as_hydra
from longsumbench.runs.plan import plan

OwnSweep = Callable[[str], str]
SWEEP = ["model=lead,random,oracle,trunc", "model.input_length=64,256", "seed=1,2"]


def test_the_command_line_precedes_scale_recipe_and_defaults() -> None:
    """A dataclass's default gives way to the model × dataset recipe, that to the scale, all to the command line."""
    lengths = [
        vars(plan(["model=trunc", *words])[0].config.model)["num_snippets"]
        for words in (["dataset=arxiv"], ["dataset=pubmed"], ["dataset=pubmed", "scale=tiny"])
    ]
    assert lengths == [224, 96, 64]
    assert (
        vars(plan(["dataset=pubmed", "scale=tiny", "model.num_snippets=5"])[0].config.model)[
            "num_snippets"
        ]
        == 5
    )


# 1024 is the dataclass's default, but not the recipe's; Lead does not search; [1,2] are all layers, as without a word.
VARIANTS = """
→
model.norm=post model.input_length=64 decode.num_beams=4 → input_length=64,norm=post,num_beams=4
model.input_length=64 model.input_length=512 → input_length=512
model.input_length=1024 → input_length=1024
decode.limit=5 decode.device=cpu seed=4 →
train.max_steps=5 →
model=lead model.length=50 decode.num_beams=4 → length=50
model=etads model.focus_layers=[] model.saliency_layers=null → focus_layers=[]
model=etads model.focus_layers=[1,2] →
model=etads model.encoder_layers=4 model.focus_layers=[1,2] → encoder_layers=4,focus_layers=[1,2]
model=ea decode.mode=extract train.only=scorer → mode=extract,only=scorer
"""


@pytest.mark.parametrize("line", VARIANTS.strip().splitlines())
def test_a_variant_is_what_differs_from_the_recipe(line: str) -> None:
    """Model and decode overrides that change the outcome, sorted, by their last value, without the recipe's own."""
    words, _, variant = line.partition("→")
    assert plan(["model=trunc", *words.split()])[0].variant == variant.strip()


# Nothing is selected at scale=extractive; one beam is a greedy search.
ALIKE = {
    "model=ea scale=extractive model.extractive_length=64,128": True,
    "model=ea scale=extractive train.only=all model.extractive_length=64,128": False,
    "model=trunc decode.length_penalty=1,2": True,
    "model=trunc decode.num_beams=2 decode.length_penalty=1,2": False,
    "model=tdmca model.rank=lstm model.ranker_steps=1,2": False,
}


@pytest.mark.parametrize("words", ALIKE)
def test_points_that_differ_in_a_setting_without_effect_are_one_run(words: str) -> None:
    """What decides a run is asked for the settings at hand; a setting without effect is in no variant either."""
    first, second = plan(words.split(), sweep=True)
    assert (first.settings_hash == second.settings_hash) == ALIKE[words]
    assert (first.variant == second.variant) == ALIKE[words]


def test_lists_are_swept_over(log_lines: list[str]) -> None:
    """Lists are values of a sweep as others are, also with models that lack the setting."""
    words = ["model=etads,trunc", "model.focus_layers=[],[1,2],[2]"]
    points = plan(words, sweep=True)
    assert [vars(one.config.model)["focus_layers"] for one in points[:3]] == [[], [1, 2], [2]]
    assert [one.variant for one in points[:3]] == ["focus_layers=[]", "", "focus_layers=[2]"]
    assert len({one.settings_hash for one in points[3:]}) == 1
    assert "left out for trunc, which has no such setting: model.focus_layers" in log_lines
    for word in ("'[1,2'", "x", "1"):
        with pytest.raises(UsageError, match=r"model.focus_layers=.* is not of type list\[int\]"):
            plan(["model=etads", f"model.focus_layers={word}"])
    with pytest.raises(UsageError, match="has several values: sweep over them with -m"):
        plan(["model=etads", words[1]])


@pytest.fixture
def own_sweep(tmp_path: Path) -> OwnSweep:
    """Write an experiment `mine` on Trunc with a sweep of its own; return the folder."""

    def write(sweep: str) -> str:
        (tmp_path / "experiment").mkdir(exist_ok=True)
        text = (
            f"# @package _global_\ndefaults:\n  - override /model: trunc\nseed: 7\nsweep: {sweep}\n"
        )
        (tmp_path / "experiment" / "mine.yaml").write_text(text)
        return str(tmp_path)

    return write


def test_an_experiment_with_a_sweep_of_its_own(own_sweep: OwnSweep) -> None:
    """Its lines are points as if typed, every combination within a line, combined with what is typed behind them."""
    folder = own_sweep(
        "[model.norm=post model.dropout=0.3, 'model.norm=post model.input_length=64,128']"
    )
    points = plan(["experiment=mine"], sweep=True, config_dir=folder)
    assert [(one.name, one.variant, one.config.seed) for one in points] == [
        ("model.dropout=0.3", "dropout=0.3,norm=post", 7),
        ("model.input_length=64", "input_length=64,norm=post", 7),
        ("model.input_length=128", "input_length=128,norm=post", 7),
    ]
    words = ["seed=1,2", "experiment=mine", "model.norm=pre"]
    several = plan(words, sweep=True, config_dir=folder)
    assert several[2].name == "seed=1 model.input_length=128"
    assert several[3].name == "seed=2 model.dropout=0.3"
    assert {vars(one.config.model)["norm"] for one in several} == {
        "pre"
    }  # the command line goes before all
    both = plan(["experiment=smoke,mine", "model=trunc"], sweep=True, config_dir=folder)
    names = ["experiment=smoke", "experiment=mine model.dropout=0.3"]
    assert [one.name for one in both][:2] == names
    with pytest.raises(UsageError, match="experiment=mine has several runs: start it with -m"):
        plan(["experiment=mine"], config_dir=folder)


SWEEPS = r"""
model.norm=post → experiment=mine: 'sweep' in its file is not a list of lines
[{model.norm: post}] → is not a list of lines
[''] → is not a list of lines
[model.nrom=post] → unknown setting 'model\.nrom' \(did you mean 'norm'\?\)
["model.norm='post"] → experiment=mine: 'sweep' in its file is not a list of lines
"""


@pytest.mark.parametrize("line", SWEEPS.strip().splitlines())
def test_a_sweep_that_cannot_be_meant(line: str, own_sweep: OwnSweep) -> None:
    """What is no list of lines with words is refused, and words are checked as typed ones are."""
    sweep, problem = line.split(" → ")
    with pytest.raises(UsageError, match=problem):
        plan(["experiment=mine"], sweep=True, config_dir=own_sweep(sweep))


def test_a_sweep_is_every_combination(capsys: pytest.CaptureFixture[str]) -> None:
    """Points come in the order of the words; what some systems lack is left out for them, said in one line."""
    points = plan(SWEEP, sweep=True)
    assert len(points) == 16
    assert points[0].name == "model=lead model.input_length=64 seed=1"
    assert points[-1].name == "model=trunc model.input_length=256 seed=2"
    assert capsys.readouterr().err.splitlines() == [
        "left out for lead, random, oracle, which have no such setting: model.input_length"
    ]
    runs = {(one.config.model.name, one.settings_hash) for one in points}
    assert sorted(name for name, _ in runs) == ["lead", "oracle", *["random"] * 2, *["trunc"] * 4]


def write_scale(folder: Path, text: str) -> str:
    """Write a scale `mine`; return the folder."""
    (folder / "scale").mkdir(exist_ok=True)
    (folder / "scale" / "mine.yaml").write_text(f"# @package _global_\nscale: mine\n{text}")
    return str(folder)


def test_a_system_takes_what_it_has_of_a_scale(tmp_path: Path) -> None:
    """Settings of all systems are left out where a system lacks them; its own block and later files win."""
    folder = write_scale(
        tmp_path,
        "train: {max_steps: 5}\nmodels:\n  all: {d_model: 64, segment_length: 8}\n"
        "  ea: {d_model: 32, train: {max_steps: 7}}\n",
    )
    found = {
        one.config.model.name: one
        for one in plan(["model=lead,ea,seal", "scale=mine"], True, folder)
    }
    assert vars(found["seal"].config.model)["segment_length"] == 8
    assert [vars(found[name].config.model)["d_model"] for name in ("ea", "seal")] == [32, 64]
    assert [found[name].config.train.max_steps for name in ("ea", "seal")] == [7, 5]
    assert {one.variant for one in found.values()} == {""}
    (tmp_path / "experiment").mkdir()
    text = "# @package _global_\nmodel:\n  d_model: 16\n"
    (tmp_path / "experiment" / "small.yaml").write_text(text)
    (point,) = plan(["model=ea", "scale=mine", "experiment=small"], config_dir=folder)
    assert vars(point.config.model)["d_model"] == 16


def test_only_a_scale_may_set_what_a_system_lacks(tmp_path: Path) -> None:
    """What is typed, an experiment's settings and a scale's `model` are checked, whatever `models` says."""
    folder = write_scale(tmp_path, "models:\n  all: {snippet_length: 64}\n")
    with pytest.raises(UsageError, match=r"unknown setting 'model\.snippet_length'"):
        plan(["model=lead", "model.snippet_length=64", "scale=mine"], config_dir=folder)
    (tmp_path / "experiment").mkdir()
    for text, unknown in (
        ("model:\n  snippet_length: 64\n", r"model\.snippet_length"),
        ("models:\n  a: {}\n", "models"),
    ):
        (tmp_path / "experiment" / "own.yaml").write_text(f"# @package _global_\n{text}")
        with pytest.raises(UsageError, match=f"unknown setting '{unknown}'"):
            plan(["model=lead", "experiment=own", "scale=mine"], config_dir=folder)
    folder = write_scale(tmp_path, "model:\n  snippet_length: 64\n")
    with pytest.raises(UsageError, match=r"unknown setting 'model\.snippet_length'"):
        plan(["model=lead", "scale=mine"], config_dir=folder)


def test_scales_name_settings_that_there_are() -> None:
    """Under `models`, the suite's scales name its own systems, and settings that one of them has."""
    known = {
        name: {item.name for item in fields(load_config_class(name))}
        for name in registry.systems.shipped()
    }
    for blocks in scale_models(None).values():
        assert set(blocks) <= {"all", *known}
        assert set(blocks["all"]) <= set().union(*known.values())


SERVED = "model.engine=api model.checkpoint=tiny model.base_url=http://localhost:9/v1"
PROMPTED = f"{SERVED} model.reading=whole model.length=20 dataset=jsonl"


def test_a_prompted_model_takes_no_training_steps() -> None:
    """Steps typed for language models alone are refused; 0, those of a scale or of others in a sweep are not."""
    settings = PROMPTED.split()
    problem = r"^train\.max_steps=50: model=prompt is not trained: leave it out"
    for models in ("prompt", "lead,prompt"):
        with pytest.raises(UsageError, match=problem):
            plan([f"model={models}", *settings, "train.max_steps=50"], sweep=True)
    plan(["model=prompt", *settings, "train.max_steps=0", "scale=tiny"])
    plan(["model=prompt", *settings, "scale=tiny"])
    plan(["model=trunc,prompt", *settings, "train.max_steps=50"], sweep=True)


def test_a_value_that_must_be_given(tmp_path: Path) -> None:
    """A file may leave a value open; it is asked for, and then it is part of the variant."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "open.yaml").write_text("name: lead\nlength: ???\n")
    with pytest.raises(UsageError, match=r"model\.length has no default"):
        plan(["model=open"], config_dir=str(tmp_path))
    assert plan(["model=open", "model.length=5"], config_dir=str(tmp_path))[0].variant == "length=5"


def test_texts_are_looked_for_before_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network nothing begins when all texts are on the hub; a sweep with other texts goes on with those."""
    monkeypatch.setattr("longsumbench.corpora.loading.hub.unreachable", lambda: "no cable")
    with pytest.raises(EnvironmentProblem, match=r"'arxiv'.*no cable"):
        plan(["dataset=arxiv,pubmed", "model=lead"], sweep=True, check_access=True)
    assert len(plan(["dataset=arxiv,aclsum", "model=lead"], sweep=True, check_access=True)) == 2
    assert (
        len(plan(["dataset=arxiv", "dataset.path=somewhere", "model=lead"], check_access=True)) == 1
    )


LAID_OVER = {
    "numbers": "model.page_size=128 | seed=3 | train.learning_rate=1e-3 | overwrite=true",
    "words": "model.page_size=null | results_dir='a, b' | dataset.path='x=y' | train.max_steps=5",
    "lists": "model.focus=[1,2] | model.focus=[] | score.metrics=[novel_ngrams,'a b']",
    "interpolations": "decode.seed=${seed} | seed='${train.seed}' | train.seed=0x10",
    "nested": 'model.a.b.c=1 | model.a.d=TRUE | scale=small | model.text="it\'s" | model.other=a\\,b',
}


@pytest.mark.parametrize("name", LAID_OVER)
def test_settings_are_laid_over_files_as_hydra_does(name: str) -> None:
    """Hydra itself reads all files anew for every value of a setting, and comes to the same."""
    words = LAID_OVER[name].split(" | ")
    overrides = [as_hydra(word) for word in ["model=pagesum", *words, "dataset=aclsum"]]
    with hydra.initialize_config_module("longsumbench.conf", version_base="1.3"):
        offer_plugins(None)
        expected, found = hydra.compose("run", overrides), compose(overrides, None)
    OmegaConf.set_struct(expected, False)
    expected.pop("models")  # of the scale's file: it is laid over `model` already
    assert OmegaConf.to_container(found) == OmegaConf.to_container(expected)
    assert OmegaConf.to_yaml(found) == OmegaConf.to_yaml(expected)


def test_hydra_parses_ranges_without_assert_statements() -> None:
    """`python -O` drops Hydra's own assert statements, which read the input; its parser has them nevertheless."""
    code = "from longsumbench.runs.overrides import OverridesParser\n"
    code += "texts = ['seed=range(1,3)', 'seed=choice(4,5)', 'x={a:1,b:[2]}']\n"
    code += "overrides = OverridesParser.create().parse_overrides(texts)\n"
    code += "print([*overrides[0].sweep_iterator()], [*overrides[1].sweep_iterator()], overrides[2].value())"
    process = subprocess.run(
        [sys.executable, "-O", "-c", code], capture_output=True, text=True, timeout=PATIENCE
    )
    assert process.stdout.strip() == "[1, 2] [4, 5] {'a': 1, 'b': [2]}", process.stderr
