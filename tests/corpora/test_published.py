"""The month in which a dataset appeared: where it is declared, and where tables find it."""

from pathlib import Path

from support.json_files import write_json

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.reading.load import load_texts


def test_the_record_gets_the_month(tmp_path: Path, stages: ArtifactCache) -> None:
    """It is a fact about the texts; texts of unknown age have none."""
    topic = {"topic": "battery life", "sentences": ["It lasts long."], "summaries": ["It lasts."]}
    own = {"id": "x", "document": "It lasts long.", "summary": "It lasts."}
    for name, row, month in (("opinosis", topic, "2010-08"), ("jsonl", own, None)):
        path = tmp_path / f"{name}.jsonl"
        write_json(path, row)
        assert (
            load_texts(DatasetSettings(name=name, path=str(path)), stages).facts.get("published")
            == month
        )
