"""The k best checkpoints: kept while training; each summarizes and is scored, or they are made one."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from support.commands import Command
from support.toys import (
    TINY,
    TINY_FOR_ALL,
    ToySplit,
    refuses,
    tiny_overrides,
    tiny_recipe,
    write_jsonl,
)
from support.trainings import fit, mean_validation_loss, restless, weights

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cli.main import main
from longsumbench.core import FitContext, FitReport
from longsumbench.errors import DataError
from longsumbench.files import read_json
from longsumbench.metrics.aggregate import column_means, read_scores
from longsumbench.metrics.evaluate import mean_scores
from longsumbench.models.seal.system import Trunc
from longsumbench.runs.record import RunRecord

TRAIN, VALIDATION = ToySplit.of("train", 40), ToySplit.of("validation", 9, start=900)
MODEL = "model.safetensors"


def test_each_kept_checkpoint_has_the_loss_that_the_report_says(cache: ArtifactCache) -> None:
    """The three best of seven validations, the first of them the checkpoint that is used anyway.

    A loss is that of examples taken one by one, divided by their target tokens, without smoothing and dropout.
    """
    system, report = fit(cache, restless(keep_best=3, label_smoothing=0.02))
    assert report.kept[0] == (report.best_step, report.validation_loss)
    assert {step for step, _ in report.kept} != {10, 12, 14}  # not merely the last ones
    assert sorted(path.name for path in (system.checkpoint / "kept").iterdir()) == ["2", "3"]
    for number, (_, loss) in [*enumerate(report.kept, start=1), (1, report.kept[0])]:
        system.load_checkpoint(number)
        assert mean_validation_loss(system) == pytest.approx(loss, rel=1e-5)
    loaded = Trunc.load(system.checkpoint / "kept" / "2")  # like any other checkpoint
    system.load_checkpoint(2)
    assert all(torch.equal(value, weights(loaded)[name]) for name, value in weights(system).items())
    assert report == read_json(system.checkpoint / "fit.json", FitReport)


def test_the_disk_is_bounded(cache: ArtifactCache) -> None:
    """Before a checkpoint is written there are k + 1 weights at most and one checkpoint; at the end, no such folder."""
    counts: list[int] = []
    usual = torch.save

    def count(content: Any, file: Any) -> None:
        folder = Path(file.name).parent
        assert len(list(folder.glob("checkpoint-*"))) <= 1
        counts.append(len(list(folder.glob("weights-*"))))
        usual(content, file)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "save", count)
        system, _ = fit(cache, restless(keep_best=2, max_steps=20))
    assert len(counts) == 10
    assert max(counts) == 3
    assert not (system.checkpoint / "trainer").exists()


def test_average_weights_is_the_mean_of_the_kept_weights(tmp_path: Path) -> None:
    """The same training keeps three; the mean of their files, by hand, is the one file of the other."""
    apart, kept = fit(ArtifactCache(tmp_path / "a"), restless(keep_best=3))
    together, averaged = fit(ArtifactCache(tmp_path / "b"), restless(average_weights=3))
    assert (kept.averaged, averaged.kept) == ((), ())
    assert averaged.averaged == kept.kept
    assert not (together.checkpoint / "kept").exists()
    three = [load_file(apart.checkpoint / place / MODEL) for place in ("", "kept/2", "kept/3")]
    mean = load_file(together.checkpoint / MODEL)
    assert mean.keys() == three[0].keys()
    for name, weight in mean.items():
        by_hand: Any = sum(one[name].double() for one in three) / 3
        assert torch.equal(weight, by_hand.float())
    assert any(not torch.equal(weight, three[0][name]) for name, weight in mean.items())


def test_what_cannot_be_meant_is_refused(cache: ArtifactCache) -> None:
    """Both at once, or no validation split to choose by: one line each, before anything is done."""
    with refuses(r"^train\.keep_best=5 and train\.average_weights=3: one averages scores"):
        tiny_recipe(keep_best=5, average_weights=3)
    for setting in ("keep_best", "average_weights"):
        system = Trunc(Trunc.Config(**TINY))
        with refuses(
            rf"^train\.{setting}=2 chooses checkpoints by .*; add one, or choose", DataError
        ):
            system.fit(FitContext(TRAIN, None, tiny_recipe(**{setting: 2}), cache))
    assert not cache.root.exists()


def test_a_mean_of_scores_by_hand() -> None:
    """Example by example; what applies to some predictions only has the mean over these."""
    ids = pd.Index(["b", "a"], name="id")
    one = pd.DataFrame({"rougeL_f": [0.2, 0.6], "novelty": [0.5, math.nan]}, ids)
    two = pd.DataFrame({"rougeL_f": [0.4, 0.6], "novelty": [math.nan, 0.9]}, ids)
    means = mean_scores([one, two])
    assert means["rougeL_f"].tolist() == pytest.approx([0.3, 0.6])
    assert means["novelty"].tolist() == [0.5, 0.9]
    assert column_means(means, in_units=set()) == pytest.approx({"rougeL_f": 45, "novelty": 70})


SEAL_SIZES = ("extractive_length", "segment_length")
RECIPE = ["baselines=false", "decode.evidence=2", "train.keep_best=2", "train.eval_steps=10"]
RECIPE += ["train.learning_rate=0.005", "train.optimizer=adam"]  # it learns some words


def test_a_run_averages_the_scores_of_its_checkpoints(tmp_path: Path, run_command: Command) -> None:
    """Each checkpoint has summaries and scores of its own, and the run has their mean."""
    results = tmp_path / "results"
    words = tiny_overrides(write_jsonl(tmp_path / "toy"), steps=40)
    words = [word for word in words if "input_length" not in word]
    words += [f"model.{key}={TINY_FOR_ALL[key]}" for key in SEAL_SIZES]
    # SEAL keeps evidence.
    assert main(["run", *words, *RECIPE, "model=seal", f"results_dir={results}"]) == 0
    (folder,) = (results / "runs").glob("*/*/*")
    assert "mean of 2 checkpoints;" in (results / "leaderboard" / "jsonl.md").read_text()
    predictions = sorted(path.name for path in folder.glob("predictions*"))
    assert predictions == ["predictions-2.jsonl", "predictions.jsonl"]
    one, two, mean = (read_scores(folder / f"scores{number}.csv") for number in ("-1", "-2", ""))
    pd.testing.assert_frame_equal(mean, mean_scores([one, two]), check_index_type=False)
    assert not one.equals(two)
    run = RunRecord.read(folder)
    for checkpoint, scores, kept in zip(
        run.evaluation.checkpoints, (one, two), run.fit.kept, strict=True
    ):
        assert (checkpoint.step, checkpoint.validation_loss) == kept
        assert checkpoint.means == pytest.approx(column_means(scores, run.evaluation.units))
    f = [checkpoint.means["rougeLsum_f"] for checkpoint in run.evaluation.checkpoints]
    assert run.evaluation.scores["rougeLsum"].f == pytest.approx(sum(f) / 2)
    assert {path.stem for path in (folder / "evidence").iterdir()} == {"0", "1"}
    page = Path(
        run_command(0, "inspect", folder, "0", "--results-dir", results).out.splitlines()[-1]
    ).read_text()
    assert f"R-1 {100 * one['rouge1_f'].iloc[0]:.1f}" in page  # of the summary that is shown
