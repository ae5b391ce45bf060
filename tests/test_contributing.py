"""The Python of CONTRIBUTING.md and README.md works as it is written there."""

import re
import tomllib
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.packages import install_package
from support.paths import ROOT
from support.processes import run_python
from support.toys import write_jsonl

from longsumbench.cli.main import main
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
SHORT = (
    "train.max_steps=2",
    "train.eval_steps=2",
    "train.eval_examples=2",
    "train.warmup_steps=1",
    "decode.limit=4",
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package `mine` of the guide, as if pip had installed it; returns a folder for results."""
    files = dict(re.findall(r"```python\n# (mine/\w+\.py)\n(.*?)```", GUIDE, re.DOTALL))
    project = tomllib.loads("\n".join(re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)))[
        "project"
    ]
    install_package(tmp_path / "site", "mine", files, project["entry-points"])
    monkeypatch.syspath_prepend(tmp_path / "site")
    return tmp_path / "results"


def run(results: Path, *words: str) -> RunRecord:
    """Run a system without baselines; return its record."""
    settings = ("baselines=false", "score.resamples=100", "device=cpu", f"results_dir={results}")
    assert main(["run", *words, *settings]) == 0
    (dataset,) = Results(results).datasets()
    (record,) = Results(results).records(dataset)
    return record


def test_a_plain_system(package: Path, tmp_path: Path) -> None:
    """Last keeps the last words of the source, and its setting is known."""
    record = run(
        package,
        "model=last",
        "model.words=3",
        "dataset=jsonl",
        f"dataset.path={write_jsonl(tmp_path / 'toy')}",
    )
    assert record.evaluation.outputs is not None
    assert record.evaluation.outputs.words == 3


def test_a_neural_system(package: Path) -> None:
    """Near trains, with the parameters of its own attention, decodes, and counts what it does not read."""
    record = run(
        package, "model=near", "model.num_units=2", "dataset=probe", "dataset.limit=20", *SHORT
    )
    assert record.fit.steps == 2
    (run_folder,) = Results(package).run_folders("probe", "near/*")
    weights = load_file(run_folder / "work" / "checkpoint" / "model.safetensors")
    slopes = [weight for name, weight in weights.items() if name.endswith("self_attn.slopes")]
    assert len(slopes) == 2
    assert not torch.equal(slopes[0], torch.linspace(0, 1, 4)[:, None, None])  # trained
    assert (
        {cut.cause for cut in record.ledger.source.cuts}
        if record.ledger.source
        else {"num_snippets"}
    )


def test_a_dataset_and_a_metric(package: Path, tmp_path: Path) -> None:
    """Letters are read, and the numbers of their subject lines are counted in the summaries."""
    letters = tmp_path / "letters"
    letters.mkdir()
    rows = [
        '{"id": "1", "body": "We paid 40 pounds.", "subject": "Paid 40"}',
        '{"id": "2", "body": "Rain.", "subject": "7"}',
    ]
    (letters / "test.jsonl").write_text("\n".join(rows))
    words = [
        "dataset=letters",
        f"dataset.path={letters}",
        "model=last",
        "score.metrics=[number_recall]",
    ]
    assert run(package, *words).evaluation.measures["number_recall"].mean == 50.0


def test_python_of_the_readme(tmp_path: Path) -> None:
    """Its lines run one after the other in an empty folder."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    # For speed: eight examples, of a dataset that is made in a second.
    code = code.replace("100", "8").replace("aclsum", "probe")
    assert "rouge1" in run_python(code, cwd=tmp_path)
