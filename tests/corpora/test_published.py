"""The month in which a dataset appeared: where it is declared, and where tables find it."""

import json
import re
from pathlib import Path

import pytest

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, registry
from longsumbench.corpora.reading.load import load_texts


@pytest.mark.parametrize("name", registry.corpora.built_in)
def test_months_can_be_compared(name: str) -> None:
    """A dataset has a year and a month, or nothing."""
    published = registry.corpora.load(name).published
    assert published is None or re.fullmatch(r"20\d\d-(0[1-9]|1[0-2])", published)


def test_the_record_gets_the_month(tmp_path: Path, stages: ArtifactCache) -> None:
    """It is a fact about the texts; texts of unknown age have none."""
    topic = {"topic": "battery life", "sentences": ["It lasts long."], "summaries": ["It lasts."]}
    own = {"id": "x", "document": "It lasts long.", "summary": "It lasts."}
    for name, row, month in (("opinosis", topic, "2010-08"), ("jsonl", own, None)):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(row), encoding="utf-8")
        assert (
            load_texts(DatasetSettings(name=name, path=str(path)), stages).facts.get("published")
            == month
        )
