"""The Python of CONTRIBUTING.md and README.md works as it is written there."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from support.commands import Command
from support.json_files import write_json
from support.packages import install_package
from support.paths import ROOT
from support.processes import run_python
from support.tiny_causal import causal_folder
from support.toys import write_jsonl

from longsumbench.cli.main import main
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, source_seen
from longsumbench.runs.results import Results

GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
SHORT = "train.max_steps=2 train.eval_steps=2 train.eval_examples=2 train.warmup_steps=1"


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
    texts = write_jsonl(tmp_path / "toy")
    words = f"model=last model.words=3 dataset=jsonl dataset.path={texts}"
    record = run(package, *words.split())
    assert record.evaluation.outputs is not None
    assert record.evaluation.outputs.words == 3


def test_a_neural_system(package: Path) -> None:
    """Near trains, with the parameters of its own attention, decodes, and counts what it does not read."""
    words = f"model=near model.num_units=2 dataset=probe dataset.limit=20 decode.limit=4 {SHORT}"
    record = run(package, *words.split())
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
    words = f"dataset=letters dataset.path={letters} model=last score.metrics=[number_recall]"
    assert run(package, *words.split()).evaluation.measures["number_recall"].mean == 50.0


def test_a_command_and_a_page(package: Path, tmp_path: Path, run_command: Command) -> None:
    """The command and the page name the system that was run, the menu has the page, and Python the function."""
    data = ["dataset=jsonl", f"dataset.path={write_jsonl(tmp_path / 'toy')}"]
    run(package, "model=lead", *data)
    assert run_command(0, "systems", "--results-dir", str(package)).out == "lead\n"
    assert run_command(0, "site", "--results-dir", str(package), "--output", "site").out
    assert Path("site/systems.txt").read_text() == "lead"
    assert '<a href="systems.txt">Systems</a>' in Path("site/index.html").read_text()
    assert import_module("longsumbench").list_systems(Results(package)) == ["lead"]


@pytest.mark.parametrize(
    ("words", "summary"),
    [
        ("model=ranker model.rank=early", "We paid 40 pounds."),
        ("model=prompt model.engine=parrot model.checkpoint=2 model.reading=whole", "We paid"),
        ("model=prompt model.decode_length=9 model.reading=middle model.checkpoint=TINY", None),
    ],
)
def test_a_ranker_a_reading_and_an_engine(
    package: Path, tmp_path: Path, words: str, summary: str | None
) -> None:
    """The ranker copies the first sentence, the engine repeats two words; the reading skips a third of the text."""
    text = f"We paid 40 pounds. {'The rain fell on the long road to the sea. ' * 20}"
    letters = tmp_path / "test.jsonl"
    write_json(letters, {"id": "1", "body": text, "subject": "Paid 40"})
    words = words.replace("TINY", str(causal_folder()))
    words += f" dataset=letters dataset.path={letters} model.length=4"
    record = run(package, *words.split())
    (folder,) = Results(package).run_folders()
    (row,) = read_summaries(folder / "predictions.jsonl")
    assert summary in (None, row.text)
    assert summary or 0 < (source_seen(record) or 0) < 67


ODD = """
from mine.last import LastConfig, System
class Half(System):
    Config = LastConfig
class Way: pass
def order(paragraphs): return []
"""


UNFIT = {
    "model=odd": "model 'odd' (odd:Half) lacks `summarize`; see",
    "model=ranker model.rank=odd": "ranker 'odd' (odd:order) does not fit: order() takes 1",
    "model=prompt model.reading=odd": "reading 'odd' (odd:Way) lacks `mixes_pages`; see",
}


@pytest.mark.parametrize("words", UNFIT)
def test_what_does_not_fit_is_named(
    package: Path, tmp_path: Path, run_command: Command, words: str
) -> None:
    """The last line names the class and what it lacks, and sends nobody to the project."""
    targets = {"systems": "odd:Half", "rankers": "odd:order", "readings": "odd:Way"}
    groups = {f"longsumbench.{kind}": {"odd": target} for kind, target in targets.items()}
    install_package(tmp_path / "site", "odd", {"odd.py": ODD}, groups)
    texts = f"dataset=jsonl dataset.path={write_jsonl(tmp_path / 'toy')} results_dir={package}"
    last = run_command(2, "run", *words.split(), *texts.split()).err.splitlines()[-1]
    assert last.startswith(f"longsumbench: the plug-in of {UNFIT[words]}")
    assert "report it" not in last


def test_python_of_the_readme(tmp_path: Path) -> None:
    """Its lines run one after the other in an empty folder."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    # For speed: eight examples, of a dataset that is made in a second.
    code = code.replace("100", "8").replace("aclsum", "probe")
    assert "rouge1" in run_python(code, cwd=tmp_path)
