"""Reads outputs that were written outside the suite, and matches them with the examples of a split.

file or folder --match_outputs--> a Summary for each example --> ImportedSystem, which knows nothing else
"""

import hashlib
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longsumbench.analysis.score.files import RawText, first_ids, read_outputs
from longsumbench.api import Decoding, Example, Summary, System, Text
from longsumbench.corpora.reading.load import Texts
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.formatting import format_count
from longsumbench.runs.record import ImportedOutputs

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OutputsToImport:
    """What is said about outputs when they are imported.

    Attributes:
        path: their file or folder.
        model: the name of the system that wrote them.
        variant: its settings, in any words ("beam 5").
        seed: None if it has none, or if it is unknown.
        origin: where the outputs come from: a URL or a paper.
        intersect: leave out examples without an output, and outputs with unknown ids.
    """

    path: Path
    model: str
    variant: Text = ""
    seed: int | None = None
    origin: Text = ""
    intersect: bool = False


@dataclass
class ImportedConfig:
    """The configuration of an imported system, in records and in config.yaml."""

    name: str
    imported: bool = True


class ImportedSystem(System):
    """A system of which only the outputs for some examples are known."""

    Config = ImportedConfig

    def __init__(self, outputs: OutputsToImport, summaries: Sequence[Summary]) -> None:
        super().__init__(ImportedConfig(outputs.model))
        self.outputs = outputs
        self.summaries = {summary.id: summary for summary in summaries}

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield the known outputs."""
        return (self.summaries[example.id] for example in examples)

    def identity(self) -> dict[str, Any]:
        """Return the names that were given, and a hash of the outputs."""
        texts = {name: summary.text for name, summary in self.summaries.items()}
        named = {"imported": self.outputs.model, "variant": self.outputs.variant, "seed": self.outputs.seed}
        return {**named, "outputs": digest(texts)}

    def source(self) -> ImportedOutputs:
        """Return the part of the record that says where the outputs come from."""
        path = self.outputs.path
        if path.is_dir():
            found = digest([summary.text for summary in self.summaries.values()])
        else:
            with path.open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        return ImportedOutputs(path.name or str(path), found, self.outputs.origin)


def match_outputs(outputs: OutputsToImport, texts: Texts, split: str) -> list[Summary]:
    """Read outputs, and return them as summaries in the order of a split.

    Raises:
        DataError: outputs are missing, doubled or unknown; or the split has no references.
    """
    ids, dataset = texts.splits[split].ids, texts.name
    found = read_outputs(outputs.path, ids)
    unknown, missing = [name for name in found if name not in set(ids)], [name for name in ids if name not in found]
    whole = f"the {split} split of {dataset}"
    where = _other_split(unknown, texts, split)
    if len(missing) == len(ids):
        problem = f"no output has an id of {whole} (ids {first_ids(unknown)})"
        raise DataError(f"{problem}; {where or 'correct the ids, or name another dataset'}", outputs.path)
    problems = []
    if unknown:
        problems.append(f"{format_count(len(unknown), 'output')} with an unknown id (ids {first_ids(unknown)})")
    if missing:
        problems.append(
            f"no output for {len(missing):,} of {format_count(len(ids), 'example')} (ids {first_ids(missing)})"
        )
    if problems:
        problem = f"{' and '.join(problems)} in {whole}"
        if not outputs.intersect:
            advice = where or f"correct the ids, or import the {len(ids) - len(missing):,} others by --intersect"
            raise DataError(f"{problem}; {advice}", outputs.path)
        apart = "; other examples, so it is in a block of its own" if missing else ""
        _log.warning(f"left out: {problem}{apart}")
    summaries = [Summary(name, _joined(found[name])) for name in ids if name in found]
    if empty := sum(not summary.text.strip() for summary in summaries):
        _log.warning(f"empty outputs, which score 0: {empty:,} of {len(summaries):,}")
    return summaries


def check_references(texts: Texts, split: str) -> None:
    """Check that outputs for a split can be scored.

    Raises:
        DataError: no example has a reference.
    """
    if not any(sentence.strip() for example in texts.splits[split] for text in example.references for sentence in text):
        raise DataError(f"the {split} split of {texts.name} has no references{texts.way_to_splits}: nothing to score")


def only_summarized(texts: Texts, split: str, ids: Collection[str]) -> Texts:
    """Return a dataset in which a split has only the examples with these ids."""
    if len(ids) == len(texts.splits[split]):
        return texts
    splits: Mapping[str, Any] = {**texts.splits, split: texts.splits[split].select(ids)}
    return replace(texts, splits=splits)


def _other_split(unknown: Sequence[str], texts: Texts, split: str) -> str:
    """Return the advice for ids that are all in another split; empty if there is none."""
    for name, other in texts.splits.items():
        if unknown and name != split and set(unknown) <= set(other.ids):
            return f"these are ids of the {name} split: add --split {name}"
    return ""


def _joined(text: RawText) -> str:
    """Return running text; a line break ends a sentence."""
    return text if isinstance(text, str) else "\n".join(text)
