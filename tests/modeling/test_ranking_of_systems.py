"""Systems whose units a ranker orders: what is learned, kept, and part of which key."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.json_files import read_json
from support.toys import ToySplit, build_tiny, example, tiny_recipe

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Decoding, FitContext, LearnedRanker
from longsumbench.errors import UsageError
from longsumbench.modeling.ranking import Ranking
from longsumbench.models.rankers.lstm import LstmRanker
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


def fitted(cache: ArtifactCache, rank: str = "lstm", seed: int = 1) -> Trunc:
    system: Trunc = build_tiny("trunc", rank=rank)
    system.fit(FitContext(TRAIN, VALIDATION, tiny_recipe(max_steps=1, seed=seed), cache))
    return system


@pytest.mark.parametrize(
    ("rank", "refused"),
    [
        ("none", 0),
        ("lstm", 0),
        ("tfidf", 1),
    ],
)
def test_missing_titles_are_found_before_any_work(rank: str, refused: int) -> None:
    """Rankers that go by titles refuse the example that has none, in one line; nothing else looks at examples."""
    system = build_tiny("trunc", rank=rank)
    system.check_examples([example(1), example(2)])
    message = r"'toy-3' has no title and no query.*or give it a title$"
    with pytest.raises(UsageError, match=message) if refused else nullcontext():
        system.check_examples(iter([example(1), replace(example(3), title=None), example(4)]))


def test_a_learned_ranker_decides_units_and_checkpoint(cache: ArtifactCache) -> None:
    """Both keys name it; another one, of another seed, makes other units; the same one is found, and nothing redone."""
    first = fitted(cache)
    decided = {name: read_json(folder / "inputs.json") for name, folder in cache.folders.items()}
    identity = first.reader.ranking.fitted_identity()["ranker"]
    assert decided["units"]["ranker"] == decided["checkpoint"]["units"]["ranker"] == identity
    assert first.config.identity()["ranker"] == LstmRanker.version
    before = len(list(cache.root.glob("units/*/inputs.json")))
    assert fitted(cache).reader.ranking.fitted_identity() == first.reader.ranking.fitted_identity()
    assert len(list(cache.root.glob("units/*/inputs.json"))) == before
    fitted(cache, seed=2)
    assert len(list(cache.root.glob("units/*/inputs.json"))) == 2 * before


def test_a_checkpoint_keeps_the_ranker(cache: ArtifactCache, tmp_path: Path) -> None:
    """Loaded from a folder alone, a system orders, reads and writes as before; the checkpoint stage holds it, too."""
    system, tests = fitted(cache), ToySplit.of("test", 3, start=900).examples
    assert (cache.folders["checkpoint"] / "ranker" / "model.safetensors").is_file()
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
