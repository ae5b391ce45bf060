"""The source of a dataset's rows: local files (`dataset.path=`), the hub, or a built-in generator."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Corpus, DatasetSettings, Entry, FromRow, Hub, Read, Row, Source, names_deciding
from longsumbench.corpora.reading.fields import BadRow
from longsumbench.corpora.reading.files import files_source
from longsumbench.corpora.reading.hub import hub_source
from longsumbench.errors import UsageError


def choose_source(corpus: Corpus, settings: DatasetSettings, stages: ArtifactCache) -> Source:
    """Return the source that the settings name.

    Raises:
        UsageError: the settings do not fit the dataset.
        DataError: a local file or folder cannot be used.
    """
    for name in sorted(names_deciding(DatasetSettings, "texts")):
        if getattr(settings, name) is not None and not (corpus.built_in and name in corpus.built_in.settings):
            raise UsageError(f"dataset '{corpus.name}' does not use this setting: leave out dataset.{name}")
    if settings.tokenizer is not None and corpus.tokenized is None:
        raise UsageError(f"dataset '{corpus.name}' holds text, not piece ids: leave out dataset.tokenizer")
    if settings.columns is not None:
        renamed = [
            from_row and partial(_from_columns, settings.columns, from_row)
            for from_row in (corpus.from_file_row, corpus.from_hub_row)
        ]
        corpus = replace(corpus, from_file_row=renamed[0], from_hub_row=renamed[1])
    if corpus.hub is not None and not corpus.hub.repository:
        return hub_source(replace(corpus, hub=_hub_at(settings)), stages)
    if settings.path is not None and settings.filler is None:
        return _source_at(Path(settings.path).expanduser(), corpus, settings)
    if settings.split_by_hash and settings.filler is None:
        raise UsageError("dataset.split_by_hash=true needs dataset.path=FILE")
    if corpus.built_in is not None:
        generate, decided_by = corpus.built_in.generate, corpus.built_in.decided_by(settings)
        facts = {"source": "built in", **decided_by}
        return Source(decided_by, facts, lambda full: _generated(generate(settings), full))
    if corpus.hub is None:
        raise UsageError(f"dataset '{corpus.name}' needs dataset.path=FOLDER or FILE")
    return hub_source(corpus, stages)


def _from_columns(columns: Mapping[str, str], from_row: FromRow, row: Row) -> Read:
    """Read a row whose fields have the names in `columns`; others but `id` are not read."""
    if absent := [column for column in columns.values() if column not in row]:
        raise BadRow(f"the column '{absent[0]}' is missing", f"the row has {', '.join(row)}")
    return from_row({"id": row.get("id"), **{field: row[column] for field, column in columns.items()}})


def _hub_at(settings: DatasetSettings) -> Hub:
    names = (settings.path or "").split("/")
    if len(names) not in (2, 3) or not all(names):
        raise UsageError("dataset=hub needs dataset.path=OWNER/NAME, or OWNER/NAME/CONFIGURATION if it has several")
    if settings.split_by_hash:
        raise UsageError("dataset.split_by_hash=true divides one file: leave it out, or choose dataset=jsonl")
    return Hub("/".join(names[:2]), names[2] if names[2:] else None)


def _source_at(path: Path, corpus: Corpus, settings: DatasetSettings) -> Source:
    if corpus.tokenized is not None:
        source = corpus.tokenized(path, settings.tokenizer)
    else:
        source = corpus.release(path) if corpus.release else None
    if source is not None:
        if settings.split_by_hash:
            raise UsageError(f"the release of '{corpus.name}' has its own splits: leave out dataset.split_by_hash")
        return source
    if corpus.from_file_row is None:
        advice = "leave out dataset.path, or write dataset=jsonl"
        raise UsageError(f"dataset '{corpus.name}' is not read from files: {advice}")
    return files_source(path, corpus.from_file_row, settings.split_by_hash)


def _generated(rows: Iterator[tuple[str, Read]], full: set[str]) -> Iterator[Entry]:
    for split, row in rows:
        if split not in full:
            yield Entry(split, partial(_unchanged, row))


def _unchanged(row: Read) -> Read:
    return row
