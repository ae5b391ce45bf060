"""What a dataset is: where its rows come from, and how a row becomes an Example."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from longsumbench.api.config import DatasetSettings
from longsumbench.api.documents import Example

Row = Mapping[str, Any]


class Thinned(NamedTuple):
    """An example of whose text something was left out on purpose.

    Attributes:
        example: what is left.
        left_out: what was left out → how many of it; the record counts them.
    """

    example: Example
    left_out: Mapping[str, int]


Read = Example | Thinned | tuple[Example | Thinned, ...]  # what a row becomes


class Entry(NamedTuple):
    """One row, not yet an example.

    Attributes:
        split: the split it belongs to; None deals it by the example's id.
        read: makes the row's examples, nearly always one; raises BadRow.
        path, line: where it stands, for messages.
        done: bytes of the source's files up to its end, where their sizes are known.
    """

    split: str | None
    read: Callable[[], tuple[Example | Thinned, ...]]
    path: Path | str | None = None
    line: int | None = None
    done: int = 0


@dataclass(frozen=True)
class Source:
    """Where a dataset's rows come from.

    Attributes:
        inputs: what decides the rows, as JSON values: part of the stage key.
        facts: what the record says of it; no path of this machine.
        entries: yields the rows, leaving out splits that stand in the set it is given, which grows as they fill up.
        size: bytes of its files, packed as they are; None where entries do not say how many of them are done.
    """

    inputs: Mapping[str, Any]
    facts: Mapping[str, Any]
    entries: Callable[[set[str]], Iterator[Entry]]
    size: int | None = None


FromRow = Callable[[Row], Read]


@dataclass(frozen=True)
class Hub:
    """A dataset on the Hugging Face hub.

    Attributes:
        repository: "owner/name".
        config: the configuration to load, where it has several.
        revision: a commit; None takes the newest one and records which that was.
        splits: the hub's split names → ours, where they are not `train`, `validation`, `test` or an alias.
    """

    repository: str
    config: str | None = None
    revision: str | None = None
    splits: Mapping[str, str] | None = None


@dataclass(frozen=True)
class BuiltIn:
    """A dataset that is made on the spot, from what every machine with the suite has.

    Attributes:
        generate: yields (split name, example).
        decided_by: JSON values that decide what is generated (versions); stage key and record hold them.
        settings: which of `configuration.GENERATED` it goes by ("document_length"); the others are refused.
    """

    generate: Callable[[DatasetSettings], Iterator[tuple[str, Example]]]
    decided_by: Callable[[DatasetSettings], dict[str, Any]]
    settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Corpus:
    """A dataset: where it comes from, and how a row becomes an Example.

    Attributes:
        name: as in `dataset.name`.
        title: one line for `longsumbench list datasets`.
        licence: what its authors allow, in a few words.
        homepage: where its authors describe it.
        version: changes whenever the same rows would become other Examples.
        multi_document: whether an example is several documents by design.
        hub: where to download it; None when it is not there.
        from_hub_row: a row of the hub's tables → Example, or several; a row without an `id` is given one ("test-12").
        from_file_row: a JSON object of the files under `dataset.path=` → Example, or several.
        release: reads the original release under `dataset.path=` where that is no JSON lines; gives None for a path
            that does not hold it, which is then read as JSON lines.
        tokenized: reads the original release where that holds numbers instead of text, given `dataset.path=` and
            `dataset.tokenizer=`; gives None for a path that does not hold it. None: `dataset.tokenizer` means nothing.
        built_in: how to make it without any file.
        metrics: the names of the metrics that its runs are scored by beside ROUGE.
    """

    name: str
    title: str
    licence: str
    homepage: str
    version: int
    multi_document: bool = False
    hub: Hub | None = None
    from_hub_row: FromRow | None = None
    from_file_row: FromRow | None = None
    release: Callable[[Path], Source | None] | None = None
    tokenized: Callable[[Path, str | None], Source | None] | None = None
    built_in: BuiltIn | None = None
    metrics: tuple[str, ...] = ()
