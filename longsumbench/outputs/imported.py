"""Outputs that were written outside the suite: matched with the examples of a split, as a system, scored again.

file or folder --match_outputs--> a Summary for each example --> ImportedSystem, which knows nothing else
"""

import hashlib
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import (
    SECTIONS,
    DatasetSettings,
    Decoding,
    Example,
    FitReport,
    RunConfig,
    Summary,
    System,
    Text,
    build_settings,
)
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError
from longsumbench.files import digest
from longsumbench.formatting import format_count
from longsumbench.outputs.files import first_ids, read_outputs
from longsumbench.outputs.repeat import check_same_texts
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import ImportedOutputs, RunRecord, StepSeconds
from longsumbench.runs.run_id import check_split
from longsumbench.runs.scoring import score_run

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
        facts = {"imported": self.outputs.model, "variant": self.outputs.variant, "seed": self.outputs.seed}
        return {**facts, "outputs": digest(texts)}

    def facts(self) -> dict[str, Any]:
        """Return the fields of the record that say where the outputs come from, and that their costs are unknown."""
        path, texts = self.outputs.path, [summary.text for summary in self.summaries.values()]
        checksum = digest(texts) if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
        costs = {"timings": StepSeconds(), "decode_tokens_per_second": None, "peak_memory_gb": None}
        source = ImportedOutputs(path.name or str(path), checksum, self.outputs.origin)
        return {"imported": source, "seed": self.outputs.seed, **costs}


def match_outputs(outputs: OutputsToImport, texts: Texts, settings: DatasetSettings) -> list[Summary]:
    """Read outputs, and return them as summaries in the order of the chosen split.

    Raises:
        DataError: outputs are missing, doubled or unknown; or the split is missing or has no references.
    """
    check_split(settings, texts)
    split, split_name = texts.splits[settings.split], f"the {settings.split} split of {texts.name}"
    if not any(sentence.strip() for example in split for text in example.references for sentence in text):
        raise DataError(f"{split_name} has no references{texts.way_to_splits}: nothing to score")
    by_id, ids = read_outputs(outputs.path, split.ids), set(split.ids)
    unknown, missing = [name for name in by_id if name not in ids], [name for name in split.ids if name not in by_id]
    split_hint = _other_split(unknown, texts, settings.split)
    if len(missing) == len(ids):
        problem = f"no output has an id of {split_name} (ids {first_ids(unknown)})"
        raise DataError(f"{problem}; {split_hint or 'correct the ids, or name another dataset'}", outputs.path)
    counts = {
        f"{format_count(len(unknown), 'output')} with an unknown id": unknown,
        f"no output for {len(missing):,} of {format_count(len(ids), 'example')}": missing,
    }
    problem = " and ".join(f"{count} (ids {first_ids(ids)})" for count, ids in counts.items() if ids)
    if problem and not outputs.intersect:
        advice = split_hint or f"correct the ids, or import the {len(ids) - len(missing):,} others by --intersect"
        raise DataError(f"{problem} in {split_name}; {advice}", outputs.path)
    if problem:
        own_block = "; other examples, so it is in a separate block" if missing else ""
        _log.warning(f"left out: {problem} in {split_name}{own_block}")
    pairs = [(name, by_id[name]) for name in split.ids if name in by_id]
    summaries = [Summary(name, text if isinstance(text, str) else "\n".join(text)) for name, text in pairs]
    if empty := sum(not summary.text.strip() for summary in summaries):
        _log.warning(f"empty outputs, which score 0: {empty:,} of {len(summaries):,}")
    return summaries


def only_summarized(texts: Texts, split: str, ids: Collection[str]) -> Texts:
    """Return a dataset in which a split has only the examples with these ids."""
    if len(ids) == len(texts.splits[split]):
        return texts
    return replace(texts, splits={**texts.splits, split: texts.splits[split].select(ids)})


def score_again(folder: Path, record: RunRecord, root: Path) -> Path:
    """Score the stored outputs of an imported run again, and write the scores into the folder `root`; return it.

    Raises:
        DataError: the texts differ from those of the run, or its predictions are missing.
    """
    record.check_written(folder, ["predictions.jsonl"])
    sections = {name: build_settings(kind, record.config[name], f"{name}.") for name, kind in SECTIONS.items()}
    config = RunConfig(ImportedConfig(record.model), **sections)
    texts = load_texts(config.dataset, user_cache())
    check_same_texts(texts, record)
    summaries = read_summaries(folder / "predictions.jsonl")
    subset = only_summarized(texts, record.split, {summary.id for summary in summaries})
    score_run(config, subset, FitReport(), [summaries], root)
    return root


def _other_split(unknown: Sequence[str], texts: Texts, split: str) -> str:
    """Return the advice for ids that are all in another split; empty if there is none."""
    for name, examples in texts.splits.items():
        if unknown and name != split and set(unknown) <= set(examples.ids):
            return f"these are ids of the {name} split: add --split {name}"
    return ""
