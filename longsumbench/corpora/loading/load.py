"""Reads a dataset once into the normal form and stores it as a stage.

    load_texts(settings, cache) → Texts: name, fingerprint, splits, metadata

A row that cannot be used is an error that names its file and line. With `dataset.strict=false` it is left out and
counted by reason. Examples that occur in two splits are counted; each load warns about them. With `dataset.strict=true`
they are an error.
"""

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any

from longsumbench import sentences
from longsumbench.cache.artifacts import (
    ArtifactCache,
    check_content,
    clear_partial,
    reading_artifact,
)
from longsumbench.core import (
    Corpus,
    DatasetSettings,
    Entry,
    FromRow,
    Hub,
    PartialExample,
    Read,
    Row,
    Source,
    names_deciding,
    registry,
)
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.corpora.loading.fields import BadRow, NoExample, id_in
from longsumbench.corpora.loading.files import ORDER, files_source
from longsumbench.corpora.loading.hub import hub_source
from longsumbench.corpora.loading.rows import (
    MadeExample,
    RowOutcome,
    num_cores,
    read_rows,
    thinned_examples,
)
from longsumbench.corpora.loading.store import ReadSplit, SplitWriter
from longsumbench.corpora.loading.text_damage import describe_marks
from longsumbench.corpora.loading.text_files import describe_unread_files
from longsumbench.corpora.loading.usual_keys import OWN_FIELDS, rename_keys
from longsumbench.corpora.planting.plant import planted_source
from longsumbench.errors import DataError, MissingSplit, UsageError
from longsumbench.files import digest
from longsumbench.formatting import format_count
from longsumbench.progress import track

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Texts:
    """A dataset in the normal form.

    Attributes:
        name: the dataset's name.
        fingerprint: hash of the content of all splits; independent of the source.
        splits: split name → its examples, in the order train, validation, test; only existing splits.
        multi_document: True if examples can have several documents.
        metadata: JSON values for the record: counts, licence, source, versions, what was left out and why.
        metrics: metrics in addition to ROUGE; not part of the fingerprint.
        layout: hash of the content with line breaks and blanks, which the fingerprint is without; empty if the
            sentences give them.
    """

    name: str
    fingerprint: str
    splits: Mapping[str, ReadSplit]
    multi_document: bool
    metadata: Mapping[str, Any]
    metrics: tuple[str, ...] = ()
    layout: str = ""

    @property
    def split_advice(self) -> str:
        """Which local files were read, and how to divide a single one into splits; empty for other sources."""
        if self.metadata.get("source") != "local files":
            return ""
        files = self.metadata["files"]
        advice = "; dataset.split_by_hash=true with dataset.path=FILE divides one file into three"
        return f" (read: {', '.join(files)}{advice if len(files) == 1 else ''})"

    def check_split(self, split: str) -> None:
        """Check that the dataset has the split to summarize.

        Raises:
            DataError: it does not.
        """
        if split not in self.splits:
            choices = f"choose dataset.split={', '.join(self.splits)}{self.split_advice}"
            raise DataError(f"{self.name} has no {split} split; {choices}")

    def check_references(self, split: str, number: int) -> None:
        """Check that one of the first examples of a split has a reference.

        Raises:
            DataError: none has.
        """
        lengths = self.splits[split].reference_words
        if not any(lengths[:number]):
            which = (
                f"the first {format_count(number, 'example')} of " if number < len(lengths) else ""
            )
            problem = f"no reference in {which}the {split} split of {self.name}: nothing to score"
            raise DataError(f"{problem}; add some, or plant facts to look for by dataset.plant=8")

    @contextmanager
    def naming_files(self) -> Iterator[None]:
        """Add the names of the read files to an error about a missing training split."""
        try:
            yield
        except MissingSplit as error:
            if "train" in self.splits:
                raise
            raise MissingSplit(f"{error}{self.split_advice}") from error


def load_texts(settings: DatasetSettings, cache: ArtifactCache) -> Texts:
    """Return a dataset, and read it first if no stage has it.

    Raises:
        UnknownName: the dataset is not registered.
        UsageError: the settings do not fit the dataset.
        DataError: a file or a row cannot be used; with `dataset.strict=true` also if splits overlap.
        EnvironmentProblem: the dataset is on the hub and the hub cannot be reached.
    """
    corpus: Corpus = registry.corpora.load(str(settings.reader))
    source = _choose_source(corpus, settings, cache)
    if settings.plant is not None:
        source = planted_source(source, settings.plant, settings.plant_at)
    inputs = {
        "corpus": [corpus.name, corpus.version],
        "reading": LOADING_VERSION,
        "limit": settings.limit,
        # decides about bad rows only, not overlaps
        "strict": settings.strict is not False,
        "keeps_layout": True,
        **source.inputs,
    }
    if settings.columns is not None:
        inputs["columns"] = settings.columns
    folder = cache.get("corpus", inputs, partial(_build, corpus, settings, source))
    _log.debug(f"dataset '{settings.name}': {folder}")
    with reading_artifact(folder):
        check_content(folder / "corpus.json")
        texts = _open_splits(settings, corpus, folder)
    for note in (*texts.metadata.get("read_as", ()), *texts.metadata.get("unread", ())):
        _note_once(note)
    for problem in (*texts.metadata.get("cut_references", ()), *texts.metadata.get("marks", ())):
        warn_once(f"{texts.name}: {problem}")
    _report_overlaps(texts, settings.strict is True)
    return texts


def _choose_source(corpus: Corpus, settings: DatasetSettings, cache: ArtifactCache) -> Source:
    """Return the source that the settings name."""
    for name in sorted(names_deciding(DatasetSettings, "texts")):
        is_used = corpus.built_in is not None and name in corpus.built_in.settings
        if vars(settings)[name] is not None and not is_used:
            raise UsageError(
                f"dataset '{corpus.name}' does not use this setting: leave out dataset.{name}"
            )
    if settings.tokenizer is not None and corpus.tokenized is None:
        raise UsageError(
            f"dataset '{corpus.name}' holds text, not piece ids: leave out dataset.tokenizer"
        )
    if corpus.own_keys or settings.columns is not None:
        renamed = partial(_from_renamed, _list_fields(corpus, settings), settings)
        from_hub, from_file = corpus.from_hub_row, corpus.from_file_row
        corpus = replace(
            corpus,
            from_hub_row=from_hub and partial(renamed, from_hub),
            from_file_row=from_file and partial(renamed, from_file),
        )
    if corpus.hub is not None and not corpus.hub.repository:
        return hub_source(replace(corpus, hub=_hub_at(settings)), cache)
    if settings.path is not None and settings.filler is None:
        return _source_at(Path(settings.path).expanduser(), corpus, settings)
    if settings.split_by_hash and settings.filler is None:
        raise UsageError("dataset.split_by_hash=true needs dataset.path=FILE")
    if corpus.built_in is not None:
        generate, decided_by = corpus.built_in.generate, corpus.built_in.decided_by(settings)
        metadata = {"source": "built in", **decided_by}
        return Source(decided_by, metadata, lambda full: _generated(generate(settings)))
    if corpus.hub is None:
        raise UsageError(f"dataset '{corpus.name}' needs dataset.path=FOLDER or FILE")
    return hub_source(corpus, cache)


def _list_fields(corpus: Corpus, settings: DatasetSettings) -> tuple[str, ...]:
    """Return the fields that are looked for under usual names: none that `dataset.columns` names."""
    return tuple(
        field for field in OWN_FIELDS if corpus.own_keys and field not in (settings.columns or ())
    )


def _from_renamed(
    fields: Sequence[str], settings: DatasetSettings, from_row: FromRow, row: Row
) -> Read:
    renamed = rename_keys(row, fields, settings.columns)
    has_reference = any(renamed.get(field) is not None for field in ("summary", "references"))
    if settings.plant is not None and not has_reference:
        # Planted sentences become the reference.
        renamed["summary"] = ""
    read = from_row(renamed)
    if "group" not in (settings.columns or ()):
        return read
    group = id_in(renamed, "group")
    return tuple(
        PartialExample(replace(example, group=group), left_out)
        for example, left_out in thinned_examples(read)
    )


def _hub_at(settings: DatasetSettings) -> Hub:
    names = (settings.path or "").split("/")
    if len(names) not in (2, 3) or not all(names):
        raise UsageError(
            "dataset=hub needs dataset.path=OWNER/NAME, or OWNER/NAME/CONFIGURATION if it has several"
        )
    if settings.split_by_hash:
        raise UsageError(
            "dataset.split_by_hash=true divides one file: leave it out, or choose dataset=jsonl"
        )
    return Hub("/".join(names[:2]), names[2] if names[2:] else None)


def _source_at(path: Path, corpus: Corpus, settings: DatasetSettings) -> Source:
    source = None
    if corpus.tokenized:
        source = corpus.tokenized(path, settings.tokenizer)
    elif corpus.release:
        source = corpus.release(path)
    if source is not None:
        if settings.split_by_hash:
            raise UsageError(
                f"the release of '{corpus.name}' has its own splits: leave out dataset.split_by_hash"
            )
        return source
    if corpus.from_file_row is None:
        advice = "leave out dataset.path, or write dataset=jsonl"
        raise UsageError(f"dataset '{corpus.name}' is not read from files: {advice}")
    return files_source(
        path, corpus.from_file_row, settings.split_by_hash, _list_fields(corpus, settings)
    )


def _generated(rows: Iterator[tuple[str, Read]]) -> Iterator[Entry]:
    for split, row in rows:
        yield Entry(split, partial(tuple, thinned_examples(row)))


@dataclass
class _Reading:
    """The splits of a dataset while they are being written."""

    folder: Path
    settings: DatasetSettings
    writers: dict[str, SplitWriter] = field(default_factory=dict)
    skipped: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    left_out: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # kind of files without an example → their names
    unread: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    full: set[str] = field(default_factory=set)

    def take(self, entry: Entry, outcome: RowOutcome) -> None:
        """Write the examples of a row, or count why it has none."""
        if isinstance(outcome, BadRow):
            return self._skip(entry, outcome)
        if isinstance(outcome, Exception):
            raise outcome
        for item in outcome:
            try:
                self._write(item)
            except BadRow as problem:
                self._skip(entry, problem)

    def _write(self, item: MadeExample) -> None:
        split = item.split
        if split in self.full:
            return
        if split not in self.writers:
            self.writers[split] = SplitWriter(self.folder / f"{split}.arrow")
        writer = self.writers[split]
        writer.add(item.example)
        if item.left_out:
            self.left_out[split].update(item.left_out)
        if len(writer) == self.settings.limit:
            self.full.add(split)

    def _skip(self, entry: Entry, problem: BadRow) -> None:
        split = entry.split or "any"
        if isinstance(problem, NoExample):
            self.left_out[split][problem.reason] += 1
            self.unread[problem.reason].append(Path(f"{entry.path}").name)
            return
        if self.settings.strict is not False:
            raise DataError(f"{problem}", entry.path, problem.line or entry.line) from problem
        self.skipped[split][problem.reason] += 1


def _build(corpus: Corpus, settings: DatasetSettings, source: Source, folder: Path) -> None:
    """Read all rows of a source into a stage's folder."""
    clear_partial(folder)
    reading = _Reading(folder, settings)
    entries = (entry for entry in source.entries(reading.full) if entry.split not in reading.full)
    with closing(read_rows(entries, _workers(corpus, settings))) as rows:
        for entry, outcome in track(rows, f"reading {settings.name}", None, "rows"):
            reading.take(entry, outcome)
    writers = {split: reading.writers[split] for split in ORDER if split in reading.writers}
    for writer in writers.values():
        writer.close()
    skipped = _sorted_counts(reading.skipped)
    num_examples = {split: len(writer) for split, writer in writers.items()}
    _check_not_empty(settings.name, num_examples, {**reading.left_out, **skipped})
    cut_references: list[str] = []
    marks: list[str] = []
    for split, writer in writers.items():
        cut_references += writer.cut_references.describe(f"references of the {split} split")
        marks += describe_marks(writer.marked, len(writer), f"examples of the {split} split")
    metadata = {
        "examples": num_examples,
        "skipped": skipped,
        "licence": corpus.licence,
        "homepage": corpus.homepage,
        "sentences": sentences.SPLITTER_NAME,
        **source.metadata,
    }
    findings = {
        "left_out": _sorted_counts(reading.left_out) or None,
        "unread": describe_unread_files(reading.unread) or None,
        "overlaps": _find_overlaps(folder, writers) or None,
        # in code they are meant
        "marks": [] if corpus.holds_code else marks or None,
        "cut_references": cut_references or None,
    }
    metadata |= {name: value for name, value in findings.items() if value is not None}
    content = {
        "splits": {split: writer.fingerprint for split, writer in writers.items()},
        "layouts": {split: writer.layout for split, writer in writers.items()},
        "multi_document": corpus.multi_document
        or any(writer.multi_document for writer in writers.values()),
        "queried": any(writer.queried for writer in writers.values()),
        "facts": metadata,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False)
    (folder / "corpus.json").write_text(text, encoding="utf-8")


def _sorted_counts(counts: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {split: dict(sorted(numbers.items())) for split, numbers in counts.items()}


def _workers(corpus: Corpus, settings: DatasetSettings) -> int:
    is_generated = corpus.built_in is not None and (settings.path is None or settings.filler)
    # rows after a limit are not read; generated rows are examples already
    if settings.limit is not None or is_generated:
        return 1
    return settings.workers or num_cores()


def _find_overlaps(folder: Path, writers: Mapping[str, SplitWriter]) -> dict[str, Any]:
    """Return "test in train" → how many examples of test are also in train, and the id of the first."""
    overlaps = {}
    for earlier_split, split in combinations(writers, 2):
        if counts := compare_splits(writers[split].hashes, writers[earlier_split].hashes):
            first = ReadSplit(split, folder / f"{split}.arrow", "")[counts.pop("place")]
            overlaps[f"{split} in {earlier_split}"] = {**counts, "first": first.id}
    return overlaps


def _report_overlaps(texts: Texts, is_error: bool) -> None:
    """Warn of examples that occur in two splits; raise DataError if `is_error`."""
    if overlaps := texts.metadata.get("overlaps"):
        described = _describe_overlaps(overlaps, texts.metadata["examples"])
        problem = f"splits of dataset '{texts.name}' overlap: {described}"
        if is_error:
            raise DataError(
                f"{problem}; take these out of one split, or leave out dataset.strict=true"
            )
        warn_once(f"{problem}; dataset.strict=true makes this an error")


@cache
def warn_once(problem: str) -> None:
    """Log a warning, once for a sweep, or for a run with its baselines."""
    _log.warning(f"warning: {problem}")


# how a file was read
_note_once = cache(_log.info)


def compare_splits(
    hashes: Mapping[str, Sequence[int]], earlier_hashes: Mapping[str, Sequence[int]]
) -> dict[str, Any]:
    """Count the examples of a split that also occur in an earlier one.

    Both have the same kinds of hashes of each example, as "text" and "id"; 0 is of nothing.

    Returns:
        The number of "examples" found, by "same_text", "same_id" and so on, and the "place" of the first; {} for none.
    """
    import numpy as np

    same = {}
    for by, numbers in hashes.items():
        values = np.array(numbers)
        same[f"same_{by}"] = np.isin(values, np.array(earlier_hashes[by])) & (values != 0)
    overlapping = np.logical_or.reduce(list(same.values()))
    if not overlapping.any():
        return {}
    counts = {by: int(mask.sum()) for by, mask in same.items()}
    return {"examples": int(overlapping.sum()), **counts, "place": int(overlapping.argmax())}


def _describe_overlaps(overlaps: Mapping[str, Mapping[str, Any]], counts: Mapping[str, int]) -> str:
    lines = []
    for pair, overlap in overlaps.items():
        split, _, earlier_split = pair.partition(" in ")
        shared = f"{overlap['examples']:,} of {counts[split]:,} in {split} also in {earlier_split}"
        reasons = [f"{overlap[f'same_{by}']:,} by {by}" for by in ("text", "id", "reference")]
        lines.append(f"{shared} ({', '.join(reasons)}; '{overlap['first']}')")
    return ", ".join(lines)


def _check_not_empty(
    name: str, counts: Mapping[str, int], skipped: Mapping[str, Mapping[str, int]]
) -> None:
    for split in {*counts, *skipped} or {"any"}:
        if not counts.get(split) and (split != "any" or not counts):
            reasons = [f"{count} × {reason}" for reason, count in skipped.get(split, {}).items()]
            problem = f"no usable example in split '{split}' ({', '.join(reasons) or 'no rows'})"
            raise DataError(f"dataset '{name}' has {problem}")


def _open_splits(settings: DatasetSettings, corpus: Corpus, folder: Path) -> Texts:
    content = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    fingerprints, layouts, metadata = content["splits"], content["layouts"], content["facts"]
    several = content["multi_document"]
    splits = {}
    for split, fingerprint in fingerprints.items():
        path = folder / f"{split}.arrow"
        splits[split] = ReadSplit(
            split, path, fingerprint, several, content["queried"], layouts[split]
        )
    if corpus.published is not None:
        # not a part of the stage, so that a correction needs no other texts
        metadata["published"] = corpus.published
    layout = digest(layouts) if layouts != fingerprints else ""
    metrics = corpus.metrics_for(settings)
    return Texts(settings.name, digest(fingerprints), splits, several, metadata, metrics, layout)
