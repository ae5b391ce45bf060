"""Reading a dataset from files, and the one line in which that ends."""

from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.loading.load import Texts, load_texts
from support.toys import one_line


def read_texts(name: str, path: Path, cache: ArtifactCache, **settings: Any) -> Texts:
    """Read the dataset `name` at a path."""
    return load_texts(DatasetSettings(name=name, path=str(path), **settings), cache)


def reading_problem(name: str, path: Path, cache: ArtifactCache, **settings: Any) -> str:
    """Return the line of the DataError that reading ends with."""
    return one_line(lambda: read_texts(name, path, cache, **settings))
