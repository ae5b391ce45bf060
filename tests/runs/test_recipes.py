"""A checkpoint's card as a layer of `decode`, and recipes of published checkpoints."""

import re
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from longsumbench.conf import CONF
from longsumbench.core import Decoding, catalogue, registry, resolve_config
from longsumbench.errors import UsageError
from longsumbench.models.seal.config import TruncConfig
from longsumbench.runs.compose import compose, hydra_session, with_recipe
from longsumbench.runs.plan import plan

CARD: dict[str, Any] = {
    "num_beams": 4,
    "length_penalty": 2.0,
    "max_length": 30,
    "no_repeat_ngram": 3,
}
LIMIT = TruncConfig().decode_length
# No file of these sets anything under decode
PAPER = ["model=trunc", "dataset=arxiv", "scale=paper"]
PUBLISHED: dict[str, Any] = {
    path.stem: OmegaConf.to_container(OmegaConf.load(path))
    for path in sorted((CONF / "model" / "recipe").glob("*.yaml"))
    if "checkpoint" in path.read_text()
}


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the settings that Trunc takes from a card in this test; a test may change them."""
    values = dict(CARD)
    monkeypatch.setattr(TruncConfig, "usual_decoding", lambda self: values, raising=False)
    return values


def test_a_card_is_the_lowest_layer(card: dict[str, Any]) -> None:
    """The card goes before the dataclass, the YAML files before the card, and the command line before all."""
    (point,) = plan([*PAPER, "decode.num_beams=4"])
    assert (point.config.decode, point.variant) == (Decoding(**CARD), "")
    (greedy,) = plan([*PAPER[:2], "scale=tiny"])  # the scale has one search for all systems
    assert (greedy.config.decode.num_beams, greedy.config.decode.max_length) == (1, None)
    (typed,) = plan([*PAPER, "decode.num_beams=2", "decode.max_length=null", "seed=3"])
    assert "num_beams=2" in typed.variant
    assert (typed.config.decode.num_beams, typed.config.decode.max_length) == (2, None)
    assert (typed.config.decode.length_penalty, typed.config.decode.seed) == (2.0, 3)


def test_a_warning_names_what_a_card_lacks(card: dict[str, Any], log_lines: list[str]) -> None:
    """What the card lacks is named once, with what is used instead; never 20 tokens, but all that can be written."""
    plan(PAPER)
    assert not [line for line in log_lines if "card" in line]
    del card["max_length"], card["no_repeat_ngram"]
    points = plan([*PAPER, "seed=1,2"], sweep=True)
    assert [line for line in log_lines if "card" in line] == [
        f"the card of trunc lacks max_length, no_repeat_ngram: used decode.max_length={LIMIT} decode.no_repeat_ngram=0"
    ]
    assert {point.config.decode.max_length for point in points} == {None}  # the system's limit
    log_lines.clear()
    card |= {**CARD, "max_length": 16383}
    plan([*PAPER, "decode.max_length=50", "decode.no_repeat_ngram=0"])
    assert not [line for line in log_lines if "card" in line]
    assert plan(PAPER)[0].config.decode.max_length == LIMIT
    assert [line for line in log_lines if "card" in line] == [
        f"the card of trunc has max_length=16383: used decode.max_length={LIMIT}, model.decode_length"
    ]


def own_recipe(folder: Path, model: str, dataset: str) -> str:
    """Write a recipe that names its model and its dataset; return the folder."""
    (folder / "model" / "recipe").mkdir(parents=True, exist_ok=True)
    settings = f"model: {{name: {model}, snippet_length: 77}}\ndataset: {{name: {dataset}}}\ndecode: {{num_beams: 3}}\n"
    text = f"# @package _global_\n# Mine\n{settings}"
    (folder / "model" / "recipe" / f"mine-{dataset}.yaml").write_text(text)
    return str(folder)


def test_a_recipe_brings_its_model_and_its_dataset(tmp_path: Path) -> None:
    """A recipe's name is enough; what is typed wins, and recipes can be swept over."""
    folder = own_recipe(tmp_path, "trunc", "pubmed")
    own_recipe(tmp_path, "ea", "arxiv")
    points = plan(["model/recipe=mine-pubmed,mine-arxiv"], True, folder)
    configs = [one.config for one in points]
    names = [(config.model.name, config.dataset.name) for config in configs]
    assert names == [("trunc", "pubmed"), ("ea", "arxiv")]
    assert {
        (vars(config.model)["snippet_length"], config.decode.num_beams) for config in configs
    } == {(77, 3)}
    assert points[0].variant == ""
    words = ["dataset=arxiv", "model.snippet_length=78", "model/recipe=mine-pubmed"]
    (typed,) = plan(words, config_dir=folder)
    assert (typed.config.dataset.name, typed.variant) == ("arxiv", "snippet_length=78")


UNFIT = """
model=pagesum model/recipe=bart-large-cnn-cnn_dailymail → is for model=seq2seq, not model=pagesum
model/recipe=pagesum-arxiv → names no model: add model= and dataset=
model/recipe=led-large-16384-arxi → (did you mean 'led-large-1638
"""


@pytest.mark.parametrize("line", UNFIT.strip().splitlines())
def test_a_recipe_goes_with_its_model(line: str) -> None:
    """A recipe of another model, or one that names none alone, would run something that nobody meant."""
    words, message = line.split(" → ")
    with pytest.raises(UsageError, match=re.escape(message)):
        plan(words.split())


@pytest.mark.parametrize("name", PUBLISHED)
def test_recipes_of_published_checkpoints(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recipe is named by checkpoint and dataset, says where its values are from, and composes to what it says."""
    kind, recipe = registry.load_config_class("seq2seq"), PUBLISHED[name]
    checkpoint, dataset = recipe["model"]["checkpoint"], recipe["dataset"]["name"]
    assert name == f"{checkpoint.partition('/')[2]}-{dataset}"
    assert dict(catalogue.name_rows("recipes"))[name].startswith(f"{checkpoint} on {dataset}: ")
    monkeypatch.setattr(kind, "usual_decoding", lambda self: {}, raising=False)
    with hydra_session():
        config = resolve_config(compose(with_recipe([f"model/recipe={name}"], None), None), kind)
    for section in ("model", "dataset", "train", "decode"):
        assert recipe.get(section, {}).items() <= vars(vars(config)[section]).items()
    assert config.train.max_steps == recipe.get("train", {}).get("max_steps", 0)
