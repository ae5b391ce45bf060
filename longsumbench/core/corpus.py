"""The interface of a dataset: where its rows come from, and how a row becomes an `Example`."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.core.documents import Example
from longsumbench.core.run_settings import DatasetSettings

Row = Mapping[str, Any]


class PartialExample(NamedTuple):
    """An example from whose text something was removed on purpose.

    Attributes:
        example: what remains.
        left_out: what was removed → how many; the record has the sums.
    """

    example: Example
    left_out: Mapping[str, int]


# What a row becomes.
Read = Example | PartialExample | tuple[Example | PartialExample, ...]


class Entry(NamedTuple):
    """A row that is not yet an example.

    Attributes:
        split: of the row; None: chosen by a hash of the example's id.
        load: returns the row's examples, nearly always one; raises BadRow.
        path, line: of the row, for messages.
    """

    split: str | None
    load: Callable[[], Read]
    path: Path | str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Source:
    """Where a dataset's rows come from.

    Attributes:
        inputs: JSON values that decide the rows; part of the stage key.
        metadata: for the record; no paths of this machine.
        entries: yields the rows. It may stop at splits in the set it gets: the full ones are added to it.
    """

    inputs: Mapping[str, Any]
    metadata: Mapping[str, Any]
    entries: Callable[[set[str]], Iterator[Entry]]


FromRow = Callable[[Row], Read]


@dataclass(frozen=True)
class Hub:
    """A dataset on the Hugging Face hub.

    Attributes:
        repository: "owner/name"; empty: what `dataset.path` names.
        config: the configuration to load, if there are several.
    """

    repository: str
    config: str | None = None


@dataclass(frozen=True)
class BuiltIn:
    """A dataset that the suite generates without downloading anything.

    Attributes:
        generate: yields (split name, example).
        decided_by: JSON values that decide what is generated (versions); part of the stage key and the record.
        settings: which of the settings that decide texts it uses ("document_length"); the others raise an error.
    """

    generate: Callable[[DatasetSettings], Iterator[tuple[str, Read]]]
    decided_by: Callable[[DatasetSettings], dict[str, Any]]
    settings: Collection[str] = ()


@dataclass(frozen=True)
class Corpus:
    """A dataset: where it comes from, and how a row becomes an `Example`.

    Attributes:
        name: as in `dataset.name`.
        title: one line for `longsumbench list datasets`.
        licence: what its authors allow, in a few words.
        homepage: where its authors describe it.
        multi_document: True if an example has several documents by design.
        hub: where to download it; None if the hub does not have it.
        from_hub_row: converts a row of the hub's tables; a row without an `id` gets one ("test-12").
        from_file_row: converts a JSON object of the files under `dataset.path=`.
        release: reads an original release that is not JSON lines, from `dataset.path=`. It returns None for a path
            without that release, which is then read as JSON lines.
        tokenized: reads an original release of token ids, from `dataset.path=` with `dataset.tokenizer=`. It returns
            None for a path without that release. None: the dataset has no such release.
        built_in: how to generate it.
        metrics: names of the metrics that score its runs in addition to ROUGE.
        own_keys: True if the rows are the user's own, whose fields may have other usual names ("article").
        published: the month in which its texts first appeared as a dataset ("2018-04"), for tables; None if unknown.
        holds_code: True if its texts may hold code, in which escapes and tags are meant: no warning names them.
        version: increases when the same rows become other examples.
    """

    name: str
    title: str
    licence: str
    homepage: str
    multi_document: bool = False
    hub: Hub | None = None
    from_hub_row: FromRow | None = None
    from_file_row: FromRow | None = None
    release: Callable[[Path], Source | None] | None = None
    tokenized: Callable[[Path, str | None], Source | None] | None = None
    built_in: BuiltIn | None = None
    metrics: tuple[str, ...] = ()
    own_keys: bool = False
    published: str | None = None
    holds_code: bool = False
    version: int = 1

    def metrics_for(self, settings: DatasetSettings) -> tuple[str, ...]:
        """Return the names of the metrics that score runs on the texts of some settings, in addition to ROUGE."""
        return self.metrics if settings.plant is None else (*self.metrics, "fact_survival")
