"""`longsumbench repro`: the facts of a finished run, what differs here, and the commands that repeat it.

`repro --check` repeats the run from scratch, except its texts, and compares the outputs.
"""

import logging
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from longsumbench.cache.artifacts import CACHE_VARIABLE, ArtifactCache, cache_folder
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import DataError, NotRepeated, UsageError
from longsumbench.formatting import print_text
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import read_scores
from longsumbench.runs.environment import environment, patch as code_changes
from longsumbench.runs.overrides import add_config_file
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import plan
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import RunRecord, output_files, run_label

_log = logging.getLogger(__name__)

_MACHINE_FACTS = ("longsumbench", "commit", "python", "system", "processor", "cores", "threads", "gpu")


def reproduction_page(folder: Path, record: RunRecord) -> str:
    """Return the facts of a run, the differences to this machine and code, and the commands that repeat the run."""
    differing = list(describe_differences(folder, record))
    sections: list[tuple[str, Iterable[str]]] = [
        ("", _facts(record)),
        ("Differences here:" if differing else "No differences here.", differing),
        ("To repeat it, in a clone of the repository:", _commands(folder, record)),
    ]
    if record.imported:
        sections[1:] = [
            ("Its outputs were imported: it cannot be repeated here, only scored again: longsumbench verify.", ())
        ]
    return "\n\n".join("\n  ".join(filter(None, [title, *lines])).removeprefix("  ") for title, lines in sections)


def _facts(record: RunRecord) -> Iterator[str]:
    machine, seed = record.environment, "" if record.seed is None else f", seed {record.seed}"
    path = record.settings.dataset.path
    place = "" if Path(path or "/").is_absolute() else ", relative to the folder of the command"
    source = record.texts.source if path is None else f"{path}{place}"
    yield f"run {record.run_id}: {run_label(record)} on {record.dataset}{seed}, finished {record.finished}"
    yield f"typed as: {shlex.join(record.command)}"
    if imported := record.imported:
        yield f"outputs: {imported.file}, SHA-256 {imported.sha256}, from {imported.origin or 'an unknown place'}"
    yield f"texts: {record.dataset} ({source}), fingerprint {record.fingerprint[:12]}"
    yield f"machine: {machine.gpu or 'CPU'} ({machine.processor}, {machine.cores} cores)"
    versions = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    yield f"versions: Python {machine.python}, {versions}"
    if not record.repeatable:
        yield "not repeatable: train.max_minutes ended its training, and a repeat ends at another step"


def describe_differences(folder: Path, record: RunRecord) -> Iterator[str]:
    """Yield the differences between the machine and the code of a run and those of now."""
    machine, this_machine = record.environment, environment()
    packages = {**machine.packages, **this_machine.packages}
    facts = [(name, getattr(machine, name), getattr(this_machine, name)) for name in _MACHINE_FACTS]
    facts += [(name, machine.packages.get(name), this_machine.packages.get(name)) for name in packages]
    facts += [("processes", machine.processes, 1)]
    for name, run_value, value_here in facts:
        if run_value != value_here and (name != "threads" or None not in (run_value, value_here)):
            yield f"{name}: {_or_none(run_value)} in the run, {_or_none(value_here)} here"
    if (changes := _patch(folder)) is None and machine.patched:
        yield "the code differed from its commit in the run, but the changes are lost (work/patch.diff)"
    elif (changes or b"") != code_changes():
        yield "the code differs from its commit in another way than in the run"
    if machine.gpu:
        yield f"the run was on a GPU ({machine.gpu}): the last bits may differ between runs"


def _commands(folder: Path, record: RunRecord) -> Iterator[str]:
    machine, work = record.environment, folder.absolute() / "work"
    if commit := machine.commit:
        yield f"git checkout {shlex.quote(commit)}"
    if _patch(folder):
        yield f"git apply {shlex.quote(str(work / 'patch.diff'))}"
    if (work / "constraints.txt").is_file():
        suite = "-e ." if commit else shlex.quote(f"longsumbench=={machine.longsumbench}")
        yield f"pip install -c {shlex.quote(str(work / 'constraints.txt'))} {suite}"
    variables = [f"OMP_NUM_THREADS={machine.threads or 1}"]
    variables += [] if machine.gpu else ["CUDA_VISIBLE_DEVICES="]
    processes = machine.processes
    command = ["torchrun", f"--nproc-per-node={processes}", "-m", "longsumbench"] if processes > 1 else ["longsumbench"]
    config = str(folder.absolute() / "config.yaml")
    yield " ".join([*variables, shlex.join([*command, "run", "--config", config, "results_dir=repeated"])])


def _patch(folder: Path) -> bytes | None:
    """Return the changes of the code to its commit; None if there are none, or if they are lost."""
    path = folder / "work" / "patch.diff"
    return (path.read_bytes() if path.is_file() else b"") or None


def _or_none(value: object) -> str:
    return "(none)" if value is None else str(value)


class RepeatComparison(NamedTuple):
    """The outputs of a run and of its repeat.

    Attributes:
        kind: what was compared ("predictions").
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


def check_repeat(folder: Path, record: RunRecord) -> RepeatComparison:
    """Repeat a run in a temporary folder, and compare. Return the comparison; all outputs are the same.

    Raises:
        UsageError: the run is not repeatable, its outputs were imported, or its settings are refused.
        DataError: the texts differ from those of the run.
        NotRepeated: an output differs; the repeat is kept.
        SuiteError: the repeat failed.
    """
    if record.imported:
        raise UsageError(f"{folder} has imported outputs: `longsumbench verify` computes their scores again")
    if not record.repeatable:
        raise UsageError(f"{folder} is not repeatable: its training was ended by train.max_minutes")
    for line in describe_differences(folder, record):
        _log.info(line)
    root, compared = Path(tempfile.mkdtemp(prefix="longsumbench-repro-")), None
    try:
        compared = compare_repeat(folder, _repeat(folder, record, root), record)
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
    (point,) = plan(words)
    if (torch := sys.modules.get("torch")) and record.environment.threads:
        torch.set_num_threads(record.environment.threads)
    with patch.dict(os.environ, {CACHE_VARIABLE: str(root / "cache")}):
        texts = load_texts(point.config.dataset, ArtifactCache(cache_folder()))
        check_same_texts(texts, record)
        repeated = run_point(replace(point, variant=record.variant, command=("longsumbench", "run", *words)))
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


def compare_repeat(folder: Path, repeated: Path, record: RunRecord) -> RepeatComparison:
    """Compare the predictions of a run with those of its repeat.

    The scores of each example are compared if predictions are missing.

    Raises:
        DataError: a file of the run is missing or damaged.
    """
    files = output_files(len(record.checkpoints))
    kind, names, read_file = "predictions", [predictions for predictions, _ in files], _read_texts
    if not all((folder / name).is_file() for name in names):
        kind, names, read_file = "examples' scores", [scores for _, scores in files], _read_rouge
        record.check_written(folder, names)
    first, second = (
        {
            f"{key}{f' ({name})' if names[1:] else ''}": value
            for name in names
            for key, value in read_file(place / name).items()
        }
        for place in (folder, repeated)
    )
    keys = dict.fromkeys([*first, *second])
    unlike = {key: (first.get(key), second.get(key)) for key in keys if first.get(key) != second.get(key)}
    return RepeatComparison(kind, len(keys), unlike)


def _read_texts(path: Path) -> dict[str, str]:
    return {summary.id: summary.text for summary in read_summaries(path)}


def _read_rouge(path: Path) -> dict[str, str]:
    """Return id → all scores of ROUGE, to the last bit; other metrics may have been added later."""
    table = read_scores(path)
    columns = [f"{kind}_{part}" for kind in ROUGE_HEADINGS for part in "prf" if f"{kind}_{part}" in table]
    return {str(name): ", ".join(map(str, row)) for name, *row in table[columns].itertuples(name=None)}
