"""The hub, without one: a test server on this machine, and rows from a folder."""

import re
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest
from support.hub import offer_on_hub
from support.json_files import read_json, write_json, write_rows
from support.serving import QuietHandler, serving
from support.waiting import PATIENCE

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cache.hub import unreachable
from longsumbench.core import DatasetSettings
from longsumbench.corpora import arxiv
from longsumbench.corpora.loading import hub
from longsumbench.corpora.loading.load import load_texts
from longsumbench.errors import EnvironmentProblem

Asked = list[tuple[str, str | None]]
REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def own_library_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the library's cache, its offline switch and proxies of this machine out of the tests."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "library"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    hub.chosen_revision.cache_clear()
    monkeypatch.delenv("HF_DATASETS_OFFLINE", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "library"


@pytest.fixture
def online(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A hub with two papers. Returns what was asked for."""
    rows = [
        {"article": "a b .\nc .", "abstract": "we do ."},
        {"article": "d e .", "abstract": "it works ."},
    ]
    return offer_on_hub(monkeypatch, tmp_path, rows)


def failure(cache: ArtifactCache) -> str:
    with pytest.raises(EnvironmentProblem) as caught:
        load_texts(DatasetSettings(name="arxiv"), cache)
    return str(caught.value)


class Refusal(QuietHandler):
    """Answers with the status that is its state."""

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self.send(self.state, b"", {"Content-Length": "0"})


def test_what_counts_as_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer is one even when it is a refusal; a failing server, offline mode or nonsense is none."""
    monkeypatch.setattr("longsumbench.cache.hub._PROBE_SECONDS", PATIENCE)
    for status, problem in ((200, None), (404, None), (503, "HTTP 503")):
        with serving(Refusal, status) as address:
            monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
            assert unreachable() == problem
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "no address")
    assert unreachable() is not None
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert unreachable() == "offline mode is set"


def test_rows_of_the_newest_revision(online: Asked, cache: ArtifactCache) -> None:
    """The newest commit is resolved, and named in the metadata; rows without ids get them."""
    texts = load_texts(DatasetSettings(name="arxiv"), cache)
    assert online == [("ccdv/arxiv-summarization", "section")]
    assert texts.metadata["source"] == "ccdv/arxiv-summarization@0123abc"
    assert texts.splits["test"].ids == ["test-0", "test-1"]
    assert texts.splits["test"][0].documents[0].sections[0].paragraphs == (("a b .",), ("c .",))
    load_texts(DatasetSettings(name="arxiv"), cache)
    assert len(online) == 1


def test_a_copy_needs_no_network(
    online: Asked, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The early look ends a run without copy and network; what was read once is found again without a network."""
    monkeypatch.setattr(hub, "unreachable", lambda: "no cable")
    with pytest.raises(EnvironmentProblem, match="no cable"):
        hub.check_copy_or_network(arxiv.CORPUS, cache)
    expected = (
        r"'arxiv' \(ccdv/arxiv-summarization\) .*no cable.* dataset.path=, .* dataset=aclsum$"
    )
    assert re.search(expected, failure(cache))
    monkeypatch.setattr(hub, "unreachable", lambda: None)
    hub.check_copy_or_network(arxiv.CORPUS, cache)
    first = load_texts(DatasetSettings(name="arxiv"), cache)
    monkeypatch.setattr(hub, "unreachable", lambda: "no cable")
    hub.check_copy_or_network(arxiv.CORPUS, cache)
    hub.chosen_revision.cache_clear()  # as in another process
    assert load_texts(DatasetSettings(name="arxiv"), cache).fingerprint == first.fingerprint
    assert len(online) == 1


def test_offline_with_the_librarys_copy(
    own_library_cache: Path,
    cache: ArtifactCache,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dataset that is in the library's own cache is read from there, offline, by the library itself."""
    monkeypatch.setattr(hub, "unreachable", lambda: "no cable")
    files = {}
    for split in ("train", "validation", "test"):
        row = {"article": f"{split} text .", "abstract": "we do ."}
        files[split] = str(write_rows(tmp_path / f"{split}.jsonl", [row]))
    datasets.load_dataset("json", data_files=files, cache_dir=str(tmp_path / "made"))
    folder = own_library_cache / "ccdv___arxiv-summarization" / "section" / "0.0.0" / REVISION
    source = next((tmp_path / "made").rglob("dataset_info.json")).parent
    folder.parent.mkdir(parents=True)
    source.rename(folder)
    info = read_json(folder / "dataset_info.json")
    info.update(builder_name="parquet", dataset_name="arxiv-summarization", config_name="section")
    write_json(folder / "dataset_info.json", info)
    for file in folder.glob("json-*.arrow"):
        file.rename(folder / file.name.replace("json-", "arxiv-summarization-"))
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", own_library_cache)
    texts = load_texts(DatasetSettings(name="arxiv"), cache)
    assert texts.metadata["source"] == f"ccdv/arxiv-summarization@{REVISION}"
    assert list(texts.splits["test"][0].sentences()) == ["test text ."]
    assert not datasets.config.HF_HUB_OFFLINE


def test_a_download_that_breaks(
    online: Asked, cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the library becomes one line with its words."""

    def broken(*arguments: Any, **settings: Any) -> None:
        raise ConnectionError("lost\nit")

    monkeypatch.setattr(datasets, "load_dataset", broken)
    message = failure(cache)
    assert "could not be fetched" in message
    assert "ConnectionError: lost it" in message
