"""A cache whose files changed: the folder of what is damaged is named, and never used."""

import os
import shutil
from dataclasses import fields
from pathlib import Path

import pytest
from support.commands import Command
from support.toys import TINY_FOR_ALL, write_jsonl

from longsumbench.cache.artifacts import CACHE_VARIABLE, ArtifactCache
from longsumbench.cli.main import main
from longsumbench.errors import DataError
from longsumbench.models.hierarchical_transformer.config import FlatTransformerConfig


def build(folder: Path) -> None:
    """Build a stage of one file."""
    (folder / "text").write_text("some text")


def test_a_damaged_stage_is_refused_until_it_is_deleted(tmp_path: Path) -> None:
    """The message names the folder; when it is deleted, it is built again."""
    folder = ArtifactCache(tmp_path).get("corpus", {}, build)
    for damage, problem in (
        (lambda: os.truncate(folder / "text", 3), "text has 3 bytes instead of 9"),
        ((folder / "text").unlink, "text is missing"),
    ):
        damage()
        with pytest.raises(DataError) as caught:
            ArtifactCache(tmp_path).get("corpus", {}, build)
        assert str(caught.value) == (
            f"{folder}: this stage is damaged ({problem}); delete this folder and run the same command again"
        )
    shutil.rmtree(folder)
    assert (ArtifactCache(tmp_path).get("corpus", {}, build) / "text").read_text() == "some text"


def test_other_times_alone_are_no_damage(tmp_path: Path) -> None:
    """A copied cache is used as it is."""
    ArtifactCache(tmp_path / "cache").get("corpus", {}, build)
    shutil.copytree(tmp_path / "cache", tmp_path / "copy", copy_function=shutil.copy)
    folder = ArtifactCache(tmp_path / "copy").get(
        "corpus", {}, lambda folder: pytest.fail("built again")
    )
    assert folder.is_relative_to(tmp_path / "copy")


def _flip(path: Path, old: bytes = b"") -> None:
    """Change one bit in the middle of a file, or of its last occurrence of some bytes; size and form stay the same."""
    content = bytearray(path.read_bytes())
    place = content.rindex(old) if old else len(content) // 2
    content[place] ^= 1
    path.write_bytes(content)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a cache in which a small system with a learned ranker is trained."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CACHE_VARIABLE, str(folder / "cache"))
        assert main(_training(folder)) == 0
    return folder


def _training(folder: Path) -> list[str]:
    data = folder / "toy" if (folder / "toy").exists() else write_jsonl(folder / "toy")
    names = {item.name for item in fields(FlatTransformerConfig)}
    sizes = [f"model.{name}={value}" for name, value in TINY_FOR_ALL.items() if name in names]
    words = (
        f"run model=flat_transformer scale=tiny dataset=jsonl dataset.path={data} train.max_steps=2"
    )
    words += f" decode.max_length=10 baselines=false device=cpu results_dir={folder / 'results'}"
    return [*words.split(), *sizes]


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("corpus/*/test.arrow", b"kadan"),
        ("corpus/*/train.arrow", b"kadan"),
        ("corpus/*/corpus.json", b"train"),
        ("tokenizer/*/tokenizer.json", b"kadan"),
        ("ranker/*/model.safetensors", b""),
        ("checkpoint/*/model.safetensors", b""),
        ("units/*/rows.arrow", (3).to_bytes(4, "little")),
    ],
)
def test_a_flipped_bit_is_found_when_the_file_is_read(
    file: str,
    part: bytes,
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_command: Command,
) -> None:
    """Content of the same size that can be read gives no score: the file and the folder are named."""
    cache = tmp_path / "cache"
    shutil.copytree(trained / "cache", cache)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    if file.startswith(("units", "tokenizer", "ranker")):
        shutil.rmtree(cache / "checkpoint")  # else nothing reads them again
    if file.startswith("tokenizer"):
        shutil.rmtree(cache / "units")
    path = next(iter(sorted(cache.glob(file))))
    _flip(path, part)
    stage = cache / Path(*path.relative_to(cache).parts[:2])
    output = run_command(3, *_training(trained), f"results_dir={tmp_path / 'results'}")
    name = path.relative_to(stage).as_posix()
    assert f"{stage}: this stage is damaged ({name} has other content)" in output.err
    assert not list(tmp_path.glob("results/runs/*/*/*/record.json"))
