"""`longsumbench repro --check`: repeat a run from scratch, except its texts, and compare the outputs."""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from longsumbench.cache.artifacts import CACHE_VARIABLE, ArtifactCache, cache_folder
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, NotRepeated, UsageError
from longsumbench.formatting import print_text
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import read_scores
from longsumbench.outputs.reproduce import describe_differences
from longsumbench.runs.overrides import add_config_file
from longsumbench.runs.pipeline import Point, run_point
from longsumbench.runs.plan import plan
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, output_files

_log = logging.getLogger(__name__)

Repeat = Callable[[Path, RunRecord, Path], Path]


@dataclass(frozen=True)
class RepeatComparison:
    """The outputs of a run and of its repeat.

    Attributes:
        kind: what was compared ("predictions").
        total: their number.
        unlike: id of an example that differs → (the run's output, its repeat's); None if it is missing.
    """

    kind: str
    total: int
    unlike: Mapping[str, tuple[str | None, str | None]]

    def __str__(self) -> str:
        """Return the number of equal outputs, and the first difference."""
        lines = [f"{self.total - len(self.unlike)} of {self.total} {self.kind} are the same"]
        for example, (first, second) in [*self.unlike.items()][:1]:
            lines += [f"the first that differ: {example}", f"  the run:    {first}", f"  its repeat: {second}"]
        return "\n".join(lines)


def check_repeat(folder: Path, record: RunRecord, repeat: Repeat | None = None) -> RepeatComparison:
    """Repeat a run in a temporary folder, and compare.

    Args:
        folder: the run's folder.
        record: its record.
        repeat: repeats the run in a folder, and returns the folder of its repeat; None: trains and summarizes again.

    Returns:
        The comparison; all outputs are the same.

    Raises:
        UsageError: the run is not repeatable, or its settings are refused.
        DataError: the texts differ from those of the run.
        NotRepeated: an output differs; the repeat is kept.
        SuiteError: the repeat failed.
    """
    if not record.repeatable:
        raise UsageError(f"{folder} is not repeatable: its training was ended by train.max_minutes")
    for line in describe_differences(folder, record) if repeat is None else ():
        _log.info(line)
    root, compared = Path(tempfile.mkdtemp(prefix="longsumbench-repro-")), None
    try:
        compared = compare_repeat(folder, (repeat or _repeat)(folder, record, root), record)
    finally:
        if compared is None or not compared.unlike:
            shutil.rmtree(root)
    if compared.unlike:
        print_text(compared)
        raise NotRepeated(f"{len(compared.unlike)} of {compared.total} {compared.kind} differ; the repeat is in {root}")
    return compared


def _repeat(folder: Path, record: RunRecord, root: Path) -> Path:
    """Repeat a run with an empty cache, except for the user's texts; return the run folder."""
    (cache_folder() / "corpus").mkdir(parents=True, exist_ok=True)
    (root / "cache").mkdir()
    (root / "cache" / "corpus").symlink_to((cache_folder() / "corpus").resolve(), target_is_directory=True)
    settings = [f"results_dir={root / 'results'}", "baselines=false"]
    if record.config["device"] == "auto" and not record.environment.gpu:
        settings += ["device=cpu", *(f"{section}.device=cpu" for section in ("train", "decode", "score"))]
    words = add_config_file(folder / "config.yaml", settings)
    (planned,) = plan(words)
    if (torch := sys.modules.get("torch")) and record.environment.threads:
        torch.set_num_threads(record.environment.threads)
    with _with_cache(root / "cache"):
        texts = load_texts(planned.config.dataset, ArtifactCache(cache_folder()))
        check_same_texts(texts, record)
        repeated = run_point(Point(planned.config, record.variant, ("longsumbench", "run", *words)))
    if repeated.run_id != record.run_id:
        _log.info(f"run id {repeated.run_id} here: settings or the outcome of a step have changed since the run")
    return root / "results" / "runs" / repeated.dataset / repeated.model / repeated.run_id


def check_same_texts(texts: Texts, record: RunRecord) -> None:
    """Check that a dataset has the texts of a run.

    Raises:
        DataError: it does not.
    """
    if texts.fingerprint != record.fingerprint:
        fingerprints = f"{texts.fingerprint[:12]}, those of the run {record.fingerprint[:12]}"
        raise DataError(f"dataset '{texts.name}' has other texts here: their fingerprint is {fingerprints}")


@contextmanager
def _with_cache(folder: Path) -> Iterator[None]:
    """Use another cache folder."""
    previous = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(CACHE_VARIABLE)
        if previous is not None:
            os.environ[CACHE_VARIABLE] = previous


def compare_repeat(folder: Path, repeated: Path, record: RunRecord) -> RepeatComparison:
    """Compare the predictions of a run with those of its repeat.

    The scores of each example are compared if predictions are missing, or if the run's outputs were imported.

    Args:
        folder: the run's folder.
        repeated: its repeat's.
        record: the run's record.

    Raises:
        DataError: a file of the run is missing or damaged.
    """
    predictions, scores = zip(*output_files(len(record.checkpoints)), strict=True)
    kind, names, read_file = "predictions", predictions, _read_texts
    if record.imported or not all((folder / name).is_file() for name in names):
        kind, names, read_file = "examples' scores", scores, _read_rouge
        record.check_written(folder, names)
    first, second = ({(name, key): value for name in names for key, value in read_file(of / name).items()}
                 for of in (folder, repeated))  # fmt: skip
    keys = dict.fromkeys([*first, *second])
    unlike = {key: (first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)}
    pairs_by_label = {f"{key}{f' ({name})' if names[1:] else ''}": pair for (name, key), pair in unlike.items()}
    return RepeatComparison(kind, len(keys), pairs_by_label)


def _read_texts(path: Path) -> dict[str, str]:
    """Return id → prediction."""
    return {summary.id: summary.text for summary in read_summaries(path)}


def _read_rouge(path: Path) -> dict[str, str]:
    """Return id → all scores of ROUGE, to the last bit; other metrics may have been added later."""
    table = read_scores(path)
    columns = [f"{kind}_{part}" for kind in ROUGE_HEADINGS for part in "prf" if f"{kind}_{part}" in table]
    return {str(name): ", ".join(map(str, row)) for name, *row in table[columns].itertuples(name=None)}
