"""Searches over settings: Optuna asks for one point after the other."""

import json
import re
from pathlib import Path

import pytest
from omegaconf import DictConfig
from support.sweeping import untrained
from support.toys import write_jsonl

from longsumbench.cli.main import main
from longsumbench.sweeps.launchers import Engine


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The words of points that take no training."""
    return untrained(write_jsonl(tmp_path / "toy"), tmp_path)


def test_a_search_finds_the_best_and_is_continued(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Optuna asks for points by their score; the same command asks for the same ones, which are found finished."""
    search = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=6", "model.length=choice(1,2,4,6)", "model=lead"]
    command = ["run", "-m", *words, "baselines=false", "dataset.split=validation", *search]
    assert main(command) == 0
    said = capsys.readouterr()
    done = sorted((tmp_path / "r").rglob("record.json"))
    assert 1 <= len(done) <= 4
    assert f"{len(done)} runs: {len(done)} done" in said.err
    best = next((tmp_path / "r").rglob("optimization_results.yaml")).read_text(encoding="utf-8")
    scores = {}
    for path in done:
        record = json.loads(path.read_text(encoding="utf-8"))
        scores[record["config"]["model"]["length"]] = record["scores"]["rougeLsum"]["f"]
    assert f"best_value: {max(scores.values())}" in best
    assert main(command) == 0
    assert f"{len(done)} runs: 0 done, {len(done)} found finished" in capsys.readouterr().err


def test_a_searched_point_that_cannot_be_meant_ends_nothing(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told with its reason, and counts as a trial without a score."""
    search = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=6", "model.length=choice(-1,4)", "model=lead"]
    assert main(["run", "-m", *words, "baselines=false", *search]) == 0
    said = capsys.readouterr().err
    assert "model.length=-1" in said
    assert "the search goes by the test split" in said


def test_a_search_of_which_no_point_can_be_meant_is_wrong_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A searched key that does not exist ends in what is wrong with it, not in what the sweeper makes of that."""
    search = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "model.lenght=choice(3,4)", "model=lead"]
    assert main(["run", "-m", *words, *search]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert said[-1].startswith("longsumbench: unknown setting 'model.lenght' (did you mean 'length'?)")


def test_a_search_of_which_every_point_fails_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As with any sweep, exit code 1 and each reason; a point is named by what is searched alone."""
    toy = write_jsonl(tmp_path / "toy", train=0, validation=0)
    words = ["dataset=jsonl", f"dataset.path={toy}", f"results_dir={tmp_path / 'r'}", "baselines=false", "model=trunc"]
    search = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=2", "model.snippet_length=choice(16,32)", "scale=tiny"]
    assert main(["run", "-m", *words, *search]) == 1
    said = capsys.readouterr().err
    assert "of 1 point failed" in said or "of 2 points failed" in said
    assert re.search(r"^model\.snippet_length=\d\d  .*learns from a training split", said, flags=re.M)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("hydra.sweeper.storage=nonsense", "Could not parse SQLAlchemy URL"),
        ("hydra.sweeper.max_failure_rate=2", "AssertionError"),
        ("hydra.sweeper.n_jobs=0", "division by zero"),
        ("hydra.sweeper.direction=up", "Please set either 'minimize' or 'maximize'"),
    ],
)
def test_a_setting_that_a_sweeper_refuses_is_one_line(
    word: str, told: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the sweeper itself, and the libraries behind it, know what they cannot do."""
    search = ["hydra/sweeper=optuna", "hydra.sweeper.n_trials=1", "model.length=choice(3,4)", "model=lead", word]
    assert main(["run", "-m", *words, "baselines=false", *search]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith(f"longsumbench: hydra/sweeper=optuna does not work so: {told}")


def test_a_fault_of_the_program_in_a_search_is_no_wrong_usage(tmp_path: Path) -> None:
    """What goes wrong in asking for a point is no sweeper's refusal: it is seen as what it is."""
    engine = Engine.of(["hydra/sweeper=optuna", "hydra.sweeper.n_trials=1"], sweep=True)
    with pytest.raises(ZeroDivisionError):
        engine.search(lambda words: 1 / 0, ["seed=choice(1,2)"], tmp_path)


def test_a_setting_of_a_sweeper_may_name_a_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the words, those of the launcher alone are not the sweeper's."""
    seen: list[str] = []

    class Seen:
        def __init__(self, config: DictConfig, **_: object) -> None:
            seen.append(config.hydra.sweeper.study_name)

        def sweep(self, arguments: list[str]) -> None: ...

    monkeypatch.setattr("hydra.core.plugins.Plugins.instantiate_sweeper", lambda _, **made: Seen(**made))
    words = ["hydra/sweeper=optuna", "hydra.sweeper.study_name=launcher_test", "hydra/launcher=joblib"]
    Engine.of([*words, "hydra.launcher.n_jobs=2"], sweep=True).search(lambda words: 0.0, [], tmp_path)
    assert seen == ["launcher_test"]


def test_a_search_shows_what_its_points_share(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """With --show nothing is asked for yet: the configuration without the searched settings is shown."""
    assert main(["run", "-m", *words, "hydra/sweeper=optuna", "model=lead", "seed=choice(1,2)", "--show"]) == 0
    assert "name: lead" in capsys.readouterr().out
