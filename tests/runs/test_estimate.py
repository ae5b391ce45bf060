"""What runs cost, before they run."""

from collections import Counter
from pathlib import Path

import pytest
from support.json_files import write_rows
from support.language_models import EchoEngine, prompted
from support.tiny_causal import causal_folder
from support.tiny_seq2seq import tiny_checkpoint
from support.toys import ToySplit
from support.watching import Watching, WatchingConfig

from longsumbench.core import Decoding, TrainConfig
from longsumbench.runs.estimate import (
    RunCost,
    describe_costs,
    estimate_point,
    estimate_tokens,
    examples_in_batch,
)
from longsumbench.runs.plan import plan

API = "model=prompt model.engine=api model.base_url=http://127.0.0.1:9/v1 model.checkpoint=m"


@pytest.fixture
def texts(tmp_path: Path) -> list[str]:
    """Return overrides of 4 texts to train on and 10 to summarize, of 100 words each, with summaries of 10."""
    for name, size in (("train", 4), ("test", 10)):
        row = {"document": " ".join(["word"] * 99 + ["end."]), "summary": " ".join(["word"] * 10)}
        rows = [{"id": f"{name} {number}", **row} for number in range(size)]
        write_rows(tmp_path / f"{name}.jsonl", rows)
    return ["dataset=jsonl", "dataset.name=mine", f"dataset.path={tmp_path}"]


def estimated(*words: str) -> RunCost:
    """Return the estimate of a point."""
    (point,) = plan(words)
    return estimate_point(point.config)


def test_a_language_model_costs_its_tokens(texts: list[str]) -> None:
    """Ten prompts of 130 tokens and the instructions, and ten answers of 13, have the prices that are given."""
    prices = "model.reading=whole model.input_price=2 model.output_price=10"
    words = [*f"{API} {prices}".split(), *texts]
    cost = estimated(*words)
    instructions = cost.source_length - 130
    assert 30 < instructions < 150
    assert cost.tokens == pytest.approx(10 * (130 + instructions + 13))
    assert cost.price == pytest.approx(10 * (2 * cost.source_length + 10 * 13) / 1e6)
    assert f"{cost.price:,.4g}" in describe_costs(plan(words))


def test_a_reading_costs_its_requests(texts: list[str]) -> None:
    """Parts of a text cost more prompts, summaries of parts more answers, and what is cut costs nothing."""
    prompts = f"model.tokenizer={causal_folder()} model.input_length=130"
    prices = "model.input_price=2 model.output_price=0"
    words = [*f"{API} {prompts} {prices}".split(), *texts]
    costs = {}
    for reading in ("beginning", "select", "stages", "refine"):
        costs[reading] = estimated(*words, f"model.reading={reading}").price or 0.0
    several = estimated(*words, "model.reading=segments", "model.segment_length=5").price
    assert costs["beginning"] == costs["select"] == pytest.approx(10 * 2 * 130 / 1e6)
    assert several == pytest.approx(3 * costs["select"])
    assert costs["stages"] > 1.5 * costs["beginning"]
    assert costs["refine"] > 1.5 * costs["beginning"]


def test_a_checkpoint_is_estimated_from_its_configuration(texts: list[str]) -> None:
    """As it is, it only writes; trained for 10 steps of 16 texts, it reads their 130 tokens and the special ones."""
    words = ["model=seq2seq", f"model.checkpoint={tiny_checkpoint()}", "scale=paper", *texts]
    untrained = estimated(*words)
    trained = estimated(*words, "train.max_steps=10", "train.accumulation=1")
    assert untrained.tokens == 0
    assert 130 <= untrained.source_length == trained.source_length <= 133
    assert trained.tokens == pytest.approx(160 * (130 + 13), rel=0.05)


def test_batches_hold_as_many_texts_as_fit() -> None:
    """10,500 tokens are 6.5625 texts of 1,600, and 2,048 words 4 to 64 texts; else a batch has its number of texts."""
    assert examples_in_batch(TrainConfig(batch_tokens=10_500), 1_600, 1_600) == 6.5625
    by_words = TrainConfig(batch_words=2_048)
    assert [examples_in_batch(by_words, 64, words) for words in (256, 4_000, 10)] == [8, 4, 64]
    assert examples_in_batch(TrainConfig(batch_size=16), 1_600, 1_600) == 16


def test_tokens_of_a_run_are_those_of_its_requests() -> None:
    """What is expected of two texts is about what an engine was sent and wrote; baselines ask nothing."""
    split = ToySplit.of("test", 6)
    engine = EchoEngine(lambda question: "mihit " * 20)
    system = prompted(engine, reading="stages", input_length=400, length="16")
    counts = Counter[str]()
    for summary in system.summarize([split[1], split[4]], Decoding()):
        counts.update(summary.counts)
    done = counts["prompt_tokens"] + counts["output_tokens"]
    assert 0.5 < estimate_tokens(system, split, [1, 4]) / done < 2
    assert estimate_tokens(Watching(WatchingConfig()), split, [1, 4]) == 0
