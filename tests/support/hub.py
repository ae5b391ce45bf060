"""A hub that offers one dataset, in place of Hugging Face's; and one that stores models."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import filter_repo_objects  # type: ignore[attr-defined] # as in its guide

from longsumbench.corpora.loading import hub
from longsumbench.exchange import push
from longsumbench.modeling import checkpoints


def offer_on_hub(
    monkeypatch: pytest.MonkeyPatch, folder: Path, rows: list[dict[str, Any]]
) -> list[tuple[str, str | None]]:
    """Offer rows as all three splits, at revision 0123abc; return the repositories and configurations asked for."""
    asked: list[tuple[str, str | None]] = []

    def load_dataset(repository: str, config: str | None, **settings: Any) -> datasets.DatasetDict:
        asked.append((repository, config))
        names = ("train", "validation", "test")
        return datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name in names})

    hub.chosen_revision.cache_clear()
    monkeypatch.setenv("HF_DATASETS_CACHE", str(folder / "library"))
    monkeypatch.setattr(hub, "unreachable", lambda: None)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    info = type("Info", (), {"sha": "0123abc"})()
    monkeypatch.setattr(
        huggingface_hub.HfApi, "dataset_info", lambda self, repository, **settings: info
    )
    return asked


@dataclass
class ModelHub:
    """A hub in memory, in place of the library's client.

    Attributes:
        snapshots: the folder of what was fetched.
        files: repository → path → content.
        private: repository → True if it was created as a private one.
        refused: name of a method that the hub refuses.
        messages: of the commits.
    """

    snapshots: Path
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    private: dict[str, bool] = field(default_factory=dict)
    refused: str = ""
    messages: list[str] = field(default_factory=list)
    endpoint: str = "https://hub"

    def create_repo(self, repository: str, private: bool | None, exist_ok: bool) -> None:
        """Create a repository, which may exist."""
        assert self.refused != "create_repo"
        assert exist_ok or repository not in self.files
        self.files.setdefault(repository, {})
        self.private[repository] = bool(private)

    def upload_folder(self, repo_id: str, folder_path: Path, commit_message: str) -> None:
        """Store the files of a commit."""
        assert self.refused != "upload_folder"
        self.messages.append(commit_message)
        for path in folder_path.rglob("*"):
            if path.is_file():
                name = path.relative_to(folder_path).as_posix()
                self.files[repo_id][name] = path.read_bytes()

    def snapshot_download(
        self,
        name: str,
        allow_patterns: list[str],
        ignore_patterns: str | None = None,
        **_: Any,
    ) -> str:
        """Fetch files into a local folder, and return it."""
        if name not in self.files:
            raise HFValidationError(name)
        for path in filter_repo_objects(
            self.files[name], allow_patterns=allow_patterns, ignore_patterns=ignore_patterns
        ):
            copy = self.snapshots / name / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(self.files[name][path])
        return str(self.snapshots / name)


@contextmanager
def model_hub(folder: Path) -> Iterator[ModelHub]:
    """Put an empty hub in place of the library's client, with a token and a cache below a folder."""
    state = ModelHub(folder / "hub")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(huggingface_hub, "HfApi", lambda: state)
        patch.setattr(huggingface_hub, "snapshot_download", state.snapshot_download)
        patch.setenv("HF_TOKEN", "a token for tests")
        for user in (checkpoints, push):
            patch.setattr(user, "unreachable", lambda: None)
        yield state
