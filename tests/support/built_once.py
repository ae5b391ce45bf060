"""What is costly and never changed in tests is built once, for all processes of a test session."""

import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from longsumbench.cache.artifacts import ArtifactCache

FOLDER_VARIABLE = "LONGSUMBENCH_TESTS_FOLDER"  # set by conftest.py


@cache
def shared_cache() -> ArtifactCache:
    """Return the stages that all processes of the session share; outside a session, those of this process."""
    folder = os.environ.get(FOLDER_VARIABLE) or tempfile.mkdtemp(prefix="longsumbench-tests-")
    return ArtifactCache(Path(folder))


def built_once(name: str, build: Callable[[Path], object]) -> Path:
    """Return a folder that one of the processes fills.

    Args:
        name: what is built; the same name means the same content.
        build: writes to a folder that is there, and empty.
    """

    def build_content(stage: Path) -> None:
        (stage / "content").mkdir(exist_ok=True)
        build(stage / "content")

    return shared_cache().get("built", {"name": name}, build_content) / "content"
