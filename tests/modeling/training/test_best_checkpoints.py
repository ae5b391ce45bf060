"""The k best checkpoints: kept while training; each summarizes and is scored, or they are made one."""

import csv
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from support.run_records import record
from support.toys import TINY, TINY_FOR_ALL, ToySplit, tiny_overrides, tiny_recipe, write_jsonl
from support.trainings import fit, mean_validation_loss, restless, weights

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cli.main import main
from longsumbench.core import FitContext, FitReport
from longsumbench.errors import DataError, UsageError
from longsumbench.files import read_json
from longsumbench.leaderboards.columns import remarks
from longsumbench.leaderboards.notes import describe_training_differences
from longsumbench.metrics.aggregate import column_means, read_scores
from longsumbench.metrics.evaluate import CheckpointMeans, mean_scores
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.models.seal.system import Trunc
from longsumbench.runs.record import RunRecord

TRAIN, VALIDATION = ToySplit.of("train", 40), ToySplit.of("validation", 9, start=900)
MODEL = "model.safetensors"


def test_each_kept_checkpoint_has_the_loss_that_the_report_says(stages: ArtifactCache) -> None:
    """The three best of seven validations, the first of them the checkpoint that is used anyway."""
    system, report = fit(stages, restless(keep_best=3))
    assert report.kept[0] == (report.best_step, report.validation_loss)
    assert {step for step, _ in report.kept} != {10, 12, 14}  # not merely the last ones
    assert sorted(path.name for path in (system.checkpoint / "kept").iterdir()) == ["2", "3"]
    for number, (_, loss) in [*enumerate(report.kept, start=1), (1, report.kept[0])]:
        system.load_checkpoint(number)
        assert mean_validation_loss(system) == pytest.approx(loss, rel=1e-5)
    assert report == read_json(system.checkpoint / "fit.json", FitReport)


def test_a_kept_checkpoint_is_one_of_its_own(stages: ArtifactCache) -> None:
    """It can be loaded, or named to `summarize`, like any other."""
    system, _ = fit(stages, restless(keep_best=2))
    system.load_checkpoint(2)
    loaded = Trunc.load(system.checkpoint / "kept" / "2")
    assert all(torch.equal(value, weights(loaded)[name]) for name, value in weights(system).items())
    assert loaded.model.config.use_cache


def test_the_disk_is_bounded(stages: ArtifactCache) -> None:
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
        system, _ = fit(stages, restless(keep_best=2, max_steps=20))
    assert len(counts) == 10
    assert max(counts) == 3
    assert not (system.checkpoint / "trainer").exists()


@pytest.mark.parametrize("changes", [{}, {"gradient_checkpointing": True}])
def test_average_weights_is_the_mean_of_the_kept_weights(
    tmp_path: Path, changes: dict[str, bool]
) -> None:
    """The same training keeps three; the mean of their files, by hand, is the one file of the other."""
    apart, kept = fit(ArtifactCache(tmp_path / "a"), restless(keep_best=3, **changes))
    together, averaged = fit(ArtifactCache(tmp_path / "b"), restless(average_weights=3, **changes))
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


def test_what_cannot_be_meant_is_refused(stages: ArtifactCache) -> None:
    """Both at once, or no validation split to choose by: one line each, before anything is done."""
    with pytest.raises(
        UsageError, match=r"^train\.keep_best=5 and train\.average_weights=3: one averages scores"
    ):
        tiny_recipe(keep_best=5, average_weights=3)
    for setting in ("keep_best", "average_weights"):
        system = Trunc(Trunc.Config(**TINY))
        with pytest.raises(
            DataError, match=rf"^train\.{setting}=2 chooses checkpoints by .*; add one, or choose"
        ):
            system.fit(FitContext(TRAIN, None, tiny_recipe(**{setting: 2}), stages))
    assert not stages.root.exists()


def test_a_mean_of_scores_by_hand() -> None:
    """Example by example; what applies to some predictions only has the mean over these, and to none stays out."""
    ids = pd.Index(["b", "a"], name="id")
    one = pd.DataFrame(
        {"rougeL_f": [0.2, 0.6], "novelty": [0.5, math.nan], "x": [math.nan] * 2, "t": [3.0, 4.0]},
        ids,
    )
    two = pd.DataFrame(
        {"rougeL_f": [0.4, 0.6], "novelty": [0.1, math.nan], "x": [math.nan] * 2, "t": [5.0, 6.0]},
        ids,
    )
    three = two.assign(novelty=[math.nan, 0.9])
    means = mean_scores([one, two, three])
    assert list(means.index) == ["b", "a"]
    assert means["rougeL_f"].tolist() == pytest.approx([1 / 3, 0.6])
    assert means["novelty"].tolist() == pytest.approx([0.3, 0.9])
    message = column_means(means, in_units={"t"})
    assert message == pytest.approx(
        {"rougeL_f": 100 * (1 / 3 + 0.6) / 2, "novelty": 60.0, "t": (13 / 3 + 16 / 3) / 2}
    )
    assert mean_scores([one]) is one


def test_tables_say_so() -> None:
    """A row says that it is a mean; a note says where recipes differ."""
    averaged = {"fit": FitReport(steps=3, averaged=((2, 1.0), (4, 2.0)))}
    assert remarks(record("trunc", 30)) == []
    assert remarks(record("trunc", 30, **averaged)) == ["weights of 2 checkpoints averaged"]
    several = record(
        "trunc",
        30,
        checkpoints=(CheckpointMeans(1, None, {}),) * 3,
        fit=FitReport(ended_by="max_minutes"),
    )
    assert remarks(several) == ["not repeatable", "mean of 3 checkpoints"]
    trained = {"fit": FitReport(steps=3)}
    before, now, more = (
        record(name, 30, **trained, config={"train": train})
        for name, train in (
            ("one", {"keep_best": 1}),
            ("two", {"keep_best": 1}),
            ("three", {"keep_best": 5}),
        )
    )
    assert describe_training_differences([before, now]) == ""
    assert (
        describe_training_differences([before, more])
        == "Rows differ in training: keep_best 1 (one00000), 5 (three000)."
    )


class Runs:
    """The command, on a toy dataset, with SEAL, which keeps evidence, and two checkpoints."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        toy = write_jsonl(folder / "toy")
        sizes = [
            f"model.{key}={TINY_FOR_ALL[key]}" for key in ("extractive_length", "segment_length")
        ]
        words = [
            word
            for word in tiny_overrides(toy, steps=40)
            if word != "model=trunc" and "input_length" not in word
        ]
        where = [
            f"results_dir={self.results}",
            "baselines=false",
            "decode.evidence=2",
            "train.keep_best=2",
        ]
        where += [
            "train.eval_steps=10",
            "train.learning_rate=0.005",
            "train.optimizer=adam",
        ]  # learns some words
        self.words = ["run", "model=seal", *words, *sizes, *where]

    def run(self, *words: str) -> int:
        """Do the run, or what is missing of it."""
        return main([*self.words, *words])

    @property
    def folder(self) -> Path:
        """The only run's."""
        (folder,) = (self.results / "runs").glob("*/*/*")
        return folder

    def outcome(self) -> dict[str, bytes]:
        """Return the summaries and scores."""
        paths = [path for path in self.folder.iterdir() if path.suffix in (".jsonl", ".csv")]
        return {path.name: path.read_bytes() for path in sorted(paths)}


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    """A folder of its own for a test; the checkpoints are shared, as a user's are."""
    return Runs(tmp_path)


def test_a_run_averages_the_scores_of_its_checkpoints(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each checkpoint has summaries and scores of its own, the run the mean; tables and commands go on from there."""
    assert runs.run() == 0
    capsys.readouterr()
    folder, board = runs.folder, runs.results / "leaderboard"
    assert "; mean of 2 checkpoints;" in (board / "jsonl.md").read_text(encoding="utf-8")
    names = [
        "predictions-2.jsonl",
        "predictions.jsonl",
        "scores-1.csv",
        "scores-2.csv",
        "scores.csv",
    ]
    assert list(runs.outcome()) == names
    one, two, mean = (read_scores(folder / f"scores{number}.csv") for number in ("-1", "-2", ""))
    pd.testing.assert_frame_equal(mean, mean_scores([one, two]), check_index_type=False)
    assert not one.equals(two)
    found = RunRecord.read(folder)
    for checkpoint, scores, (step, loss) in zip(
        found.evaluation.checkpoints, (one, two), found.fit.kept, strict=True
    ):
        assert (checkpoint.step, checkpoint.validation_loss) == (step, loss)
        assert checkpoint.means == pytest.approx(column_means(scores, found.evaluation.units))
    f = [checkpoint.means["rougeLsum_f"] for checkpoint in found.evaluation.checkpoints]
    assert found.evaluation.scores["rougeLsum"].f == pytest.approx(sum(f) / 2)
    assert {path.stem for path in (folder / "evidence").iterdir()} == {"0", "1"}
    assert found.costs.timings.total > 0
    table = (board / "jsonl.csv").read_text(encoding="utf-8").splitlines()
    assert next(csv.DictReader(table))["checkpoints"] == "2"
    assert main(["inspect", str(folder), "0", "--results-dir", str(runs.results)]) == 0
    page = Path(capsys.readouterr().out.splitlines()[-1]).read_text(encoding="utf-8")
    assert f"R-1 {100 * one['rouge1_f'].iloc[0]:.1f}" in page  # of the summary that is shown
    source = runs.results / "one.txt"
    source.write_text("Ka lo mi nu. Re dan.", encoding="utf-8")
    assert main(["summarize", str(folder), str(source), "--results-dir", str(runs.results)]) == 0


def test_a_finished_run_is_given_what_it_lacks(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    """More measures, of every checkpoint, and more evidence, of the best; to the last bit as if asked for at once."""
    assert runs.run() == 0
    before, first = runs.outcome(), RunRecord.read(runs.folder)
    assert runs.run("score.metrics=[repetition]", "decode.evidence=all") == 0
    assert "already finished, except for repetition" in capsys.readouterr().err
    after, second, scores = (
        runs.outcome(),
        RunRecord.read(runs.folder),
        read_scores(runs.folder / "scores.csv"),
    )
    assert len(list((runs.folder / "evidence").glob("*.json"))) == 8
    assert {name: text for name, text in before.items() if "pred" in name}.items() <= after.items()
    assert second.evaluation.scores == first.evaluation.scores
    applies = scores.dropna(axis="columns", how="all")
    added = [name for name in map(str, applies) if not name.startswith("rouge")]
    assert list(second.evaluation.measures) == added
    for checkpoint in second.evaluation.checkpoints:
        assert {*checkpoint.means} <= {*first.evaluation.checkpoints[0].means, *added}
    one, two = (read_scores(runs.folder / f"scores-{number}.csv") for number in (1, 2))
    pd.testing.assert_frame_equal(scores, mean_scores([one, two]), check_index_type=False)
    assert {name: second.evaluation.measures[name].mean for name in added} == pytest.approx(
        column_means(scores[added], second.evaluation.units)
    )
    assert runs.run("score.metrics=[repetition]") == 0
    assert "already finished: seal" in capsys.readouterr().err
    assert runs.run("score.metrics=[repetition]", "overwrite=true") == 0
    again = RunRecord.read(runs.folder)
    assert [one.means for one in again.evaluation.checkpoints] == [
        one.means for one in second.evaluation.checkpoints
    ]
    assert (runs.outcome(), again.evaluation.measures) == (after, second.evaluation.measures)


@pytest.mark.parametrize("batches", [1, 3])
def test_a_run_killed_in_any_checkpoint_goes_on_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batches: int
) -> None:
    """Of two checkpoints with two batches each: what was written is kept, and the outcome is that of one piece."""
    runs, whole, done = Runs(tmp_path / "a"), Runs(tmp_path / "b"), list[str]()
    summarize = NeuralSystem.summarize

    def counted(self: NeuralSystem, *args: Any) -> Any:
        if len(done) == batches and "killed" not in done:
            done.append("killed")
            raise KeyboardInterrupt
        done.append("batch")
        return summarize(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(NeuralSystem, "summarize", counted)
        assert runs.run() == 130
        assert runs.run() == 0
    assert done.count("batch") == 4
    assert whole.run() == 0
    assert runs.outcome() == whole.outcome()
    assert runs.folder.name == whole.folder.name
