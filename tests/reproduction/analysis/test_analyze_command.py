"""`longsumbench analyze` from the command line: which examples, whose runs, which files, and what is refused."""

import json
import random
from pathlib import Path

import pytest
from support.commands import Command
from support.tiny_bert import write_bert

from longsumbench.cli.main import main
from longsumbench.core import DatasetSettings
from longsumbench.errors import UsageError
from longsumbench.runs.results import Results
from longsumbench_reproduction.analysis.analyze import analyze
from longsumbench_reproduction.analysis.sampled import SampleSettings, sample_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts of which summaries join sentences."""
    path = tmp_path_factory.mktemp("texts")
    for name, size in (("train", 3), ("validation", 3), ("test", 12)):
        chance = random.Random(name)
        rows = []
        for number in range(size):
            sentences = [" ".join(chance.choices(["ash", "birch", "elm"], k=5)) for _ in range(12)]
            texts = {"document": ". ".join(sentences), "summary": ". ".join(sentences[::4])}
            rows.append(json.dumps({"id": f"{name}-{number}", **texts}))
        (path / f"{name}.jsonl").write_text("\n".join(rows))
    return path


@pytest.fixture(scope="module")
def results(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A folder with finished runs of Lead and Random, the latter on the first eight examples."""
    root = tmp_path_factory.mktemp("results")
    words = f"run dataset=jsonl dataset.path={folder} results_dir={root} baselines=false"
    assert main([*words.split(), "model=lead"]) == 0
    assert main([*words.split(), "model=random", "decode.limit=8"]) == 0
    return Results(root)


def ids(results: Results) -> tuple[str, str]:
    lead, chance = sorted(results.records("jsonl"), key=lambda run: run.key.model)
    return lead.run_id, chance.run_id


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_every_analysis_writes_its_files(
    folder: Path, results: Results, tmp_path: Path, run_command: Command
) -> None:
    """CSV of each, pictures of two, and the pairs of fusions; the same command writes the same bytes."""
    runs, bert = ",".join(run_id[:6] for run_id in ids(results)), write_bert(tmp_path / "bert")
    of_texts = f"dataset=jsonl dataset.path={folder} --results-dir {results.root}"
    for words, extra in {
        "locality": "locality.png locality.svg",
        f"fusion run={runs}": "fusion-runs.csv fusion-pairs.jsonl fusion.png fusion.svg",
        f"coherence run={runs} model={bert} device=cpu": "",
    }.items():
        name = words.partition(" ")[0]
        output = tmp_path / name
        command = f"analyze {words} {of_texts} --output {output}"
        printed = " ".join(run_command(0, *command.split()).out.split())
        assert str(output / f"{name}.csv") in printed
        assert files(output).keys() == {f"{name}.csv", *extra.split()}
        of_runs = "8 of 12 examples, of those that all runs summarized, drawn by seed 1"
        assert (of_runs if "run=" in words else "all 12 examples") in printed
    run_command(0, *f"analyze fusion run={runs} {of_texts}".split())
    assert files(results.root / "analysis" / "jsonl") == files(tmp_path / "fusion")


def test_what_is_drawn(folder: Path, results: Results) -> None:
    """So many examples of the split, in its order, the same for the same seed; of runs, those that all summarized."""
    texts = DatasetSettings(name="jsonl", path=str(folder))
    first, again, other = (
        sample_dataset(texts, SampleSettings(sample=5, seed=seed)) for seed in (1, 1, 2)
    )
    assert first.places == again.places != other.places
    assert [example.id for example in first.examples("looking")] == [
        f"test-{place}" for place in sorted(set(first.places))
    ]
    assert list(sample_dataset(texts, SampleSettings(sample=None)).places) == list(range(12))
    of_run = sample_dataset(texts, SampleSettings(), ids(results)[1], results)
    assert list(of_run.places) == list(range(8))


def test_words_that_cannot_be_meant(
    folder: Path, results: Results, tmp_path: Path, run_command: Command
) -> None:
    """Runs on other texts, split or dataset, settings that are none, and missing models end in one line each."""
    lead, _ = ids(results)
    of_texts = f"dataset=jsonl dataset.path={folder}"
    flags = f"--results-dir {results.root} --output {tmp_path / 'out'}"
    for words, message in {
        f"fusion run={lead}": "is a run on dataset=jsonl, not aclsum",
        f"fusion {of_texts} dataset.limit=2 run={lead}": "has read other texts",
        f"fusion {of_texts} run={lead},{lead[:8]}": "is named twice",
        f"locality {of_texts} run={lead}": "run= has no meaning for locality",
        f"coherence {of_texts}": "model= is missing",
    }.items():
        command = f"analyze {words} {flags}"
        (error,) = run_command(2, *command.split()).err.strip().splitlines()
        assert message in error
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("run", ["80176e73", "007"])
def test_an_id_that_looks_like_a_number_stays_text(run: str, tmp_path: Path) -> None:
    """Ids such as 12345678 and 80176e73 are not read as numbers, typed or as arguments."""
    for given in ({"words": [f"run={run}"]}, {"run": run}, {"run": [run]}):
        with pytest.raises(UsageError, match=f"no finished run is called '{run}'"):
            analyze("fusion", dataset="aclsum", results_dir=tmp_path, **given)
