"""The Hugging Face hub as a source of rows.

Without a network the library would retry for half a minute. So the endpoint is probed first. If it is unreachable, a
copy from an earlier run is used: this suite's, or the one in the library's cache.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.cache.hub import unreachable
from longsumbench.core import Corpus, Entry, Hub, Source
from longsumbench.corpora.loading.files import SPLITS
from longsumbench.errors import EnvironmentProblem
from longsumbench.files import BadFile, read_json


def hub_source(corpus: Corpus, cache: ArtifactCache) -> Source:
    """Return the rows of a dataset on the hub, at its newest revision, which the record states.

    Raises:
        EnvironmentProblem: the hub cannot be reached, and this machine has no copy of the dataset.
    """
    assert corpus.hub is not None
    hub = corpus.hub
    revision = chosen_revision(corpus.name, hub.repository, hub.config, cache.root)
    inputs = {"repository": hub.repository, "config": hub.config, "revision": revision}
    metadata = {"source": f"{hub.repository}@{revision}", "config": hub.config}
    return Source(inputs, metadata, partial(_hub_entries, corpus, hub, revision))


def check_copy_or_network(corpus: Corpus, cache: ArtifactCache) -> None:
    """Check, before heavy imports, that a dataset of the hub is on this machine or can be fetched.

    Raises:
        EnvironmentProblem: neither is true.
    """
    assert corpus.hub is not None
    hub = corpus.hub
    local = _local_revision(hub.repository, hub.config, cache.root)
    if local is None and (problem := unreachable()):
        raise _no_copy(corpus.name, hub.repository, problem)


# all points of a sweep read the same revision
@cache
def chosen_revision(name: str, repository: str, config: str | None, root: Path) -> str:
    """Return the newest revision, or that of a local copy if the hub cannot be reached."""
    problem = unreachable()
    if problem is None:
        return _newest_revision(name, repository)
    local = _local_revision(repository, config, root)
    if local is None:
        raise _no_copy(name, repository, problem)
    return local


def _newest_revision(name: str, repository: str) -> str:
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(repository, timeout=10).sha)
    except Exception as error:  # the library's errors have no common class
        raise _failed(name, repository, error) from error


def _local_revision(repository: str, config: str | None, root: Path) -> str | None:
    """Return the revision of a local copy: the library's newest, else this suite's newest."""
    if cached := _cached_revisions(repository, config):
        return cached[-1]
    revisions = {}
    for path in (root / "corpus").glob("*/inputs.json"):
        with suppress(FileNotFoundError, BadFile):
            inputs = read_json(path, dict[str, Any])
            if (inputs.get("repository"), inputs.get("config")) == (repository, config):
                revisions[path.stat().st_mtime_ns] = str(inputs["revision"])
    return revisions[max(revisions)] if revisions else None


def _cached_revisions(repository: str, config: str | None) -> list[str]:
    """Return the revisions in the library's cache, newest last."""
    from huggingface_hub import constants

    root = Path(
        os.environ.get("HF_DATASETS_CACHE") or Path(constants.HF_HOME) / "datasets"
    ).expanduser()
    folders = root.glob(f"{repository.replace('/', '___')}/{config or '*'}/*/*/dataset_info.json")
    return [path.parent.name for path in sorted(folders, key=lambda path: path.stat().st_mtime)]


def _hub_entries(corpus: Corpus, hub: Hub, revision: str, full: set[str]) -> Iterator[Entry]:
    assert corpus.from_hub_row is not None
    for name, rows in _download(corpus, hub, revision).items():
        split = SPLITS.get(name)
        for index, row in enumerate(rows if split else ()):
            if split in full:
                break
            load_row = partial(corpus.from_hub_row, {"id": f"{name}-{index}", **row})
            yield Entry(split, load_row, f"{hub.repository} {name}", index + 1)


def _download(corpus: Corpus, hub: Hub, revision: str) -> Mapping[str, Any]:
    problem = unreachable()
    if problem is not None and revision not in _cached_revisions(hub.repository, hub.config)[-1:]:
        raise _no_copy(corpus.name, hub.repository, problem)
    import datasets

    offline, datasets.config.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE, problem is not None
    try:
        splits: Mapping[str, Any] = datasets.load_dataset(
            hub.repository, hub.config, revision=None if problem else revision
        )
        return splits
    except Exception as error:  # the library's errors have no common class
        raise _failed(corpus.name, hub.repository, error) from error
    finally:
        datasets.config.HF_HUB_OFFLINE = offline


def _no_copy(name: str, repository: str, problem: str) -> EnvironmentProblem:
    return EnvironmentProblem(
        f"dataset '{name}' ({repository}) is not on this machine, and the Hugging Face hub cannot be reached"
        f" ({problem}): give its files by dataset.path=, or use the built-in dataset=aclsum"
    )


def _failed(name: str, repository: str, error: Exception) -> EnvironmentProblem:
    reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return EnvironmentProblem(
        f"dataset '{name}' ({repository}) could not be fetched from the Hugging Face hub ({reason});"
        " try again, give its files by dataset.path=, or use the built-in dataset=aclsum"
    )
