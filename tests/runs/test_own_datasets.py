"""The user's own texts have names: in settings, records and tables, and as datasets that can be chosen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import longsumbench
from longsumbench.core import DatasetSettings
from longsumbench.core.catalogue import own_dataset_rows
from longsumbench.errors import UsageError
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.overrides import add_config_file
from longsumbench.runs.plan import plan
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import TableView

Lead = Callable[..., RunRecord]


@pytest.fixture
def lead(toy: Path, tmp_path: Path) -> Lead:
    """Run Lead on the toy texts under a name."""

    def run(name: str, path: Path = toy, **settings: object) -> RunRecord:
        dataset = {"reader": "jsonl", "name": name, "path": path, **settings}
        scoring: dict[str, Any] = {
            "score.resamples": 100,
            "baselines": False,
            "results_dir": tmp_path / "r",
        }
        return longsumbench.run(model="lead", dataset=dataset, **scoring)

    return run


def test_a_name_is_in_record_folder_and_table(lead: Lead, toy: Path, tmp_path: Path) -> None:
    """Record, folder, heading and CSV have name and fingerprint; only the record has the path as typed."""
    record = longsumbench.load_run(lead("scisumm").run_id, tmp_path / "r")
    assert (record.key.dataset, record.config.dataset.path) == ("scisumm", str(toy))
    table = TableView(read_table(Results(tmp_path / "r"), "scisumm"))
    (row,) = table.frame().to_dict("records")
    facts = (row["dataset"], row["path"], row["train_split"], row["fingerprint"])
    assert facts == ("scisumm", "toy", 24, record.key.fingerprint)
    assert "scisumm" in table.heading()


def test_the_name_is_part_of_the_run_and_not_of_the_texts(lead: Lead, tmp_path: Path) -> None:
    """Two names for the same texts are two runs, which share the texts in the cache; a configuration keeps the name."""
    one, other = lead("one"), lead("other")
    assert one.key.fingerprint == other.key.fingerprint
    assert one.run_id != other.run_id
    folders = [Results(tmp_path / "r").run_folder(run) for run in (one, other)]
    assert len({(folder / "work" / "corpus").resolve() for folder in folders}) == 1
    (point,) = plan(add_config_file(folders[0] / "config.yaml", ["seed=3"]))
    dataset = point.config.dataset
    assert (dataset.name, dataset.reader, point.config.seed) == ("one", "jsonl", 3)


@pytest.mark.parametrize("name", ["", "a b", "..", "-a", "7", "null", "x" * 61, "é"])
def test_a_name_is_the_name_of_a_folder(name: str) -> None:
    """A name of letters, digits, dots, - and _ that begins with a letter can be typed without quotes everywhere."""
    with pytest.raises(UsageError, match="cannot name a folder"):
        DatasetSettings(name, path="x")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: [", "expected the node content"),
        ("dataset: {name: own, path: x}", "a dataset needs a name"),
        ("name: own\nreader: jsnl\npath: x", r"reader=jsnl \(did you mean 'jsonl'\?\)"),
        ("name: other\npath: x", "'name: other' is not the name of the file, 'own'"),
        ("\xff", "not UTF-8"),
    ],
)
def test_a_broken_file_is_named_when_it_is_used(
    content: str, message: str, own_config: Path
) -> None:
    """A file that cannot be used is one line with its path, and no matter for other datasets."""
    file = own_config / "dataset" / "own.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(content, encoding="latin-1")
    assert plan(["model=lead", "dataset=aclsum"])
    with pytest.raises(UsageError, match=message) as error:
        plan(["model=lead", "dataset=own"])
    assert str(error.value).startswith(str(file))
    assert "\n" not in str(error.value)
    assert own_dataset_rows() == [["own", str(error.value)]]


def test_files_by_hand(own_config: Path, tmp_path: Path) -> None:
    """A file may set a scale as the suite's files do; the user's folder goes before --config-dir."""
    with_scale = "# @package _global_\n# My texts\ndefaults:\n  - override /scale: tiny\n"
    with_scale += "dataset: {name: own, path: x}\n"
    for folder, text in ((own_config, with_scale), (tmp_path / "more", "name: other\npath: y\n")):
        (folder / "dataset").mkdir(parents=True)
        (folder / "dataset" / "own.yaml").write_text(text)
    (point,) = plan(["model=lead", "dataset=own"], config_dir=str(tmp_path / "more"))
    config = point.config
    assert (config.dataset.name, config.dataset.reader, config.scale) == ("own", "jsonl", "tiny")
    assert own_dataset_rows() == [["own", "My texts: x"]]
