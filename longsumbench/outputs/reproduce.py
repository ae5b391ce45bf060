"""`longsumbench repro`: the facts of a finished run, what differs here, and the commands that repeat it."""

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path

from longsumbench.runs.environment import environment, patch
from longsumbench.runs.record import RunRecord, run_label

_MACHINE_FACTS = ("longsumbench", "commit", "python", "system", "processor", "cores", "threads", "gpu")


def reproduction_page(folder: Path, record: RunRecord) -> str:
    """Return the facts of a run, the differences to this machine and code, and the commands that repeat the run.

    Args:
        folder: the run's folder.
        record: its record.
    """
    differing = list(describe_differences(folder, record))
    sections: list[tuple[str, Iterable[str]]] = [
        ("", _facts(record)),
        ("Differences here:" if differing else "No differences here.", differing),
        ("To repeat it, in a clone of the repository:", _commands(folder, record)),
    ]
    if record.imported:
        sections[1:] = [("Its outputs were imported: it cannot be repeated here. --check scores them again.", ())]
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
    elif (changes or b"") != patch():
        yield "the code differs from its commit in another way than in the run"
    if machine.gpu:
        yield f"the run was on a GPU ({machine.gpu}): the last bits may differ between runs"


def _commands(folder: Path, record: RunRecord) -> Iterator[str]:
    """Yield the commands, quoted for a shell."""
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
