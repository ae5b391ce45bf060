"""Systems whose units a ranker orders: what is learned, kept, and part of which key."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.toys import TINY, ToySplit, example, tiny_recipe

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import (
    Decoding,
    Document,
    FitContext,
    LearnedRanker,
    RankerSettings,
    Section,
    learned_ranker,
    texts_to_rank,
)
from longsumbench.errors import UnknownName, UsageError
from longsumbench.modeling.ranking import Ranking, find_ranker, tfidf_with_title
from longsumbench.models.rankers.lstm import LstmRanker
from longsumbench.models.seal.config import TruncConfig
from longsumbench.models.seal.system import Trunc

TRAIN, VALIDATION = ToySplit.of("train", 16), ToySplit.of("validation", 4, start=500)


@pytest.fixture(autouse=True)
def _quick_ranker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rankers learn for a moment."""
    settings = Ranking.settings
    quick: dict[str, Any] = {"dimension": 8, "steps": 3, "batch_size": 2}
    monkeypatch.setattr(
        Ranking, "settings", lambda self, context: replace(settings(self, context), **quick)
    )


def fitted(stages: ArtifactCache, rank: str = "lstm", seed: int = 1) -> Trunc:
    system = Trunc(TruncConfig(**{**TINY, "rank": rank}))
    system.fit(FitContext(TRAIN, VALIDATION, tiny_recipe(max_steps=1, seed=seed), stages))
    return system


def test_what_is_ranked() -> None:
    """Paragraphs, sections without their names or sentences, in reading order, across documents, without empty ones."""
    sections = (Section("name", (("a b.", "c."), (" ",))), Section(None, (("d.",),)))
    one = replace(
        example(1),
        documents=(Document(None, sections), Document(None, (Section(None, (("e.",),)),))),
    )
    assert texts_to_rank(one) == ["a b. c.", "d.", "e."]
    assert texts_to_rank(one, "section")[1:] == ["d.", "e."]
    assert texts_to_rank(one, "sentence") == ["a b.", "c.", "d.", "e."]


def test_rankers_are_found_by_name(stages: ArtifactCache) -> None:
    """A plain ranker is the function itself, one that learns is fitted, none is neither, an unknown one is an error."""
    settings = RankerSettings(dimension=8, steps=1, vocabulary_size=300, device="cpu")
    assert find_ranker("tfidf", None, None, settings, stages) is tfidf_with_title
    assert isinstance(find_ranker("lstm", TRAIN, None, settings, stages), LearnedRanker)
    assert learned_ranker("none") is learned_ranker("tfidf") is None
    assert learned_ranker("lstm") is LstmRanker
    with pytest.raises(UnknownName, match="lstm"):
        learned_ranker("lsmt")


def test_a_missing_title_names_the_example() -> None:
    """The error says whose title is missing, by which setting it is needed, and what to choose instead."""
    untitled = replace(example(3), title=None)
    system = Trunc(TruncConfig(**TINY, rank="tfidf"))
    message = (
        r"'toy-3' has no title and no query, and model\.rank=tfidf needs one: choose model\.rank="
    )
    with pytest.raises(UsageError, match=message):
        system.reader.ranking.order(untitled, ["a", "b"])
    assert Trunc(TruncConfig(**TINY)).reader.ranking.order(untitled, ["a", "b"]) == [0, 1]


@pytest.mark.parametrize(
    ("rank", "refused"), [("none", 0), ("lexrank", 0), ("lstm", 0), ("tfidf", 1), ("title", 1)]
)
def test_missing_titles_are_found_before_any_work(rank: str, refused: int) -> None:
    """Rankers that go by titles refuse the example that has none, in one line; nothing else looks at examples."""
    system = Trunc(TruncConfig(**{**TINY, "rank": rank}))
    system.check_examples([example(1), example(2)])
    message = r"'toy-3' has no title and no query.*or give it a title$"
    with pytest.raises(UsageError, match=message) if refused else nullcontext():
        system.check_examples(iter([example(1), replace(example(3), title=None), example(4)]))


def test_a_learned_ranker_decides_units_and_checkpoint(stages: ArtifactCache) -> None:
    """Both keys name it; another one, of another seed, makes other units; the same one is found, and nothing redone."""
    first = fitted(stages)
    decided = {
        name: json.loads((folder / "inputs.json").read_text())
        for name, folder in stages.folders.items()
    }
    identity = first.reader.ranking.fitted_identity()["ranker"]
    assert decided["units"]["ranker"] == decided["checkpoint"]["units"]["ranker"] == identity
    assert first.config.identity()["ranker"] == LstmRanker.version
    before = len(list(stages.root.glob("units/*/inputs.json")))
    assert fitted(stages).reader.ranking.fitted_identity() == first.reader.ranking.fitted_identity()
    assert len(list(stages.root.glob("units/*/inputs.json"))) == before
    fitted(stages, seed=2)
    assert len(list(stages.root.glob("units/*/inputs.json"))) == 2 * before


def test_a_checkpoint_keeps_the_ranker(stages: ArtifactCache, tmp_path: Path) -> None:
    """Loaded from a folder alone, a system orders, reads and writes as before; the checkpoint stage holds it, too."""
    system, tests = fitted(stages), ToySplit.of("test", 3, start=900).examples
    assert (stages.folders["checkpoint"] / "ranker" / "model.safetensors").is_file()
    (tmp_path / "kept").mkdir()
    system.save(tmp_path / "kept")
    again = Trunc.load(tmp_path / "kept")
    texts = ["kadan lofel", "midan", "nugor kahit redan"]
    orders = [[of.reader.ranking.order(one, texts) for one in tests] for of in (system, again)]
    assert orders[0] == orders[1]
    decoding = Decoding(max_length=6, device="cpu")
    assert list(again.summarize(tests, decoding)) == list(system.summarize(tests, decoding))
    assert isinstance(again.reader.ranking.ranker, LearnedRanker)
    assert again.reader.ranking.ranker.device == "cpu"
