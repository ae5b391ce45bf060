"""A hub that offers one dataset, in place of Hugging Face's."""

from pathlib import Path
from typing import Any

import datasets
import huggingface_hub
import pytest

from longsumbench.corpora.reading import hub


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
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", lambda self, repository, **settings: info)
    return asked
