"""`longsumbench repro --check`: a run is done again, from nothing, and what it writes is compared with what it wrote.

Reproduction --repeat--> a finished run in a new folder --compare_repeat--> RepeatComparison
"""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from longsumbench.analysis.runs.reproduce import Reproduction
from longsumbench.cache.artifacts import CACHE_VARIABLE, ArtifactCache, MissingArtifact, cache_folder, check_layout
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import DataError, NotRepeated, UsageError
from longsumbench.formatting import print_text
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.environment import environment, patch
from longsumbench.runs.pipeline import Point, run_point
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, output_files

_log = logging.getLogger(__name__)

_FACTS = ("longsumbench", "commit", "python", "system", "processor", "cores", "threads", "gpu")  # that numbers hang on


@dataclass(frozen=True)
class RepeatComparison:
    """What two runs wrote.

    Attributes:
        kind: what was compared ("predictions").
        total: how many there are, on either side.
        unlike: of which examples they differ → (the run's, its repeat's); None where one side has none.
    """

    kind: str
    total: int
    unlike: Mapping[str, tuple[str | None, str | None]]

    def __str__(self) -> str:
        """How many are the same, and the first that is not."""
        lines = [f"{self.total - len(self.unlike)} of {self.total} {self.kind} are the same"]
        for example, (then, now) in [*self.unlike.items()][:1]:
            lines += [f"the first that differ: {example}", f"  the run:    {_or_none(then)}"]
            lines += [f"  its repeat: {_or_none(now)}"]
        return "\n".join(lines)


def check_repeat(found: Reproduction) -> RepeatComparison:
    """Repeat a run from nothing, though on texts that were read before, and compare.

    Returns:
        The comparison; all is the same.

    Raises:
        UsageError: the run is not repeatable.
        DataError: the texts are other ones here.
        NotRepeated: something differs; the repeat is kept.
        SuiteError: the repeat failed.
    """
    if not found.record.repeatable:
        raise UsageError(f"{found.folder} is not repeatable: its training was ended by train.max_minutes")
    for line in differences(found):
        _log.info(line)
    root = Path(tempfile.mkdtemp(prefix="longsumbench-repro-"))
    compared = None
    try:
        compared = compare_repeat(found.folder, _repeat(found, root), found.record)
    finally:
        if compared is None or not compared.unlike:
            shutil.rmtree(root)
    if compared.unlike:
        print_text(compared)
        raise NotRepeated(f"{len(compared.unlike)} of {compared.total} {compared.kind} differ; the repeat is in {root}")
    return compared


def differences(found: Reproduction) -> Iterator[str]:
    """Yield in what the machine and the code of today differ from those of a run."""
    then, now = found.record.environment, environment()
    facts = [(name, getattr(then, name), getattr(now, name)) for name in _FACTS]
    packages = {**then.packages, **now.packages}
    facts += [(name, then.packages.get(name), now.packages.get(name)) for name in packages]
    facts.append(("processes that worked together", found.processes, 1))
    for name, before, today in facts:
        if before != today and (name != "threads" or None not in (before, today)):
            as_many = " (its repeat takes as many)" if name == "threads" else ""
            yield f"{name}: {_or_none(before)} in the run, {_or_none(today)} here{as_many}"
    if found.patch is None:
        yield "the code differed from its commit in the run, but the changes are lost"
    elif found.patch != patch():
        yield "the code differs from its commit in another way than in the run"
    if not found.same_run:
        yield "settings or the outcome of a step have changed since the run"
    if then.gpu:
        yield f"the run was on a GPU ({then.gpu}): the last bits may differ from run to run"


def _or_none(value: object) -> str:
    """Return a value for people; what is not there is none."""
    return "(none)" if value is None else str(value)


def _repeat(found: Reproduction, root: Path) -> Path:
    """Do a run again in a folder with a separate cache; return its run folder.

    Raises:
        DataError: the texts are other ones here.
    """
    config = replace(found.rewritten.planned.config, results_dir=str(root / "results"), baselines=False)
    if config.device == "auto" and not found.record.environment.gpu:
        parts = {name: replace(getattr(config, name), device="cpu") for name in ("train", "decode", "score")}
        config = replace(config, device="cpu", **parts)
    shared = ArtifactCache(cache_folder(), finished_only=True)
    own = ArtifactCache(root / "cache")
    try:
        try:
            texts = load_texts(config.dataset, shared)
        except MissingArtifact:
            texts = load_texts(config.dataset, own)
        if texts.fingerprint != found.record.fingerprint:
            fingerprints = f"{texts.fingerprint[:12]}, those of the run {found.record.fingerprint[:12]}"
            raise DataError(f"dataset '{texts.name}' has other texts here: their fingerprint is {fingerprints}")
        check_layout(own.root)
        for folder in shared.used.values():
            link = own.root / folder.parent.name / folder.name
            link.parent.mkdir(parents=True)
            link.symlink_to(folder.resolve(), target_is_directory=True)
        command = ("longsumbench", "run", *found.rewritten.words)
        point = Point(config, found.rewritten.planned.variant, command)
        with with_cache(own.root), _with_threads(found.record.environment.threads):
            record = run_point(point)
    finally:
        shared.release()
        own.release()
    return root / "results" / "runs" / record.dataset / record.model / record.run_id


@contextmanager
def with_cache(folder: Path) -> Iterator[None]:
    """Keep finished stages in another folder meanwhile."""
    before = os.environ.get(CACHE_VARIABLE)
    os.environ[CACHE_VARIABLE] = str(folder)
    try:
        yield
    finally:
        os.environ.pop(CACHE_VARIABLE)
        if before is not None:
            os.environ[CACHE_VARIABLE] = before


@contextmanager
def _with_threads(number: int | None) -> Iterator[None]:
    """Compute on as many threads meanwhile; None: on those that there are."""
    torch = sys.modules.get("torch")  # there, where a system that needs it was loaded
    if torch is None or number is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def compare_repeat(folder: Path, repeated: Path, record: RunRecord) -> RepeatComparison:
    """Compare what a run wrote with what its repeat wrote: of what came with the run, what says most.

    Args:
        folder: of the run.
        repeated: of its repeat.
        record: of the run.

    Raises:
        DataError: a file of the run is damaged.
    """
    predictions, scores = zip(*output_files(len(record.checkpoints)), strict=True)
    kinds: dict[str, tuple[Sequence[str], Callable[[Path], dict[str, str]]]] = {
        "predictions": (predictions, _texts_in),
        "examples' scores": (scores, _scores_in),
        "mean scores": (["record.json"], _means_in),
    }
    kind = next(kind for kind, (names, _) in kinds.items() if all((folder / name).is_file() for name in names))
    names, read = kinds[kind]
    then, now = ({(name, key): value for name in names for key, value in read(of / name).items()}
                 for of in (folder, repeated))  # fmt: skip
    keys = dict.fromkeys([*then, *now])
    unlike = {key: (then.get(key), now.get(key)) for key in keys if then.get(key) != now.get(key)}
    shown = {f"{key}{f' ({name})' if names[1:] else ''}": pair for (name, key), pair in unlike.items()}
    return RepeatComparison(kind, len(keys), shown)


def _texts_in(path: Path) -> dict[str, str]:
    """Return id → prediction."""
    return {summary.id: summary.text for summary in read_summaries(path)}


def _scores_in(path: Path) -> dict[str, str]:
    """Return id → all scores of ROUGE, to the last bit: those of other metrics may have been added later."""
    table = read_scores(path)
    columns = [f"{kind}_{part}" for kind in ROUGE_HEADINGS for part in "prf" if f"{kind}_{part}" in table]
    return {str(name): ", ".join(map(str, row)) for name, *row in table[columns].itertuples(name=None)}


def _means_in(path: Path) -> dict[str, str]:
    """Return type of ROUGE → its means and interval, to the last bit."""
    scores = RunRecord.read(path.parent).scores
    return {kind: ", ".join(f"{part} {mean}" for part, mean in asdict(means).items()) for kind, means in scores.items()}
