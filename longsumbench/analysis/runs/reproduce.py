"""`longsumbench repro`: prints the steps that repeat a finished run: code, packages, texts, machine and command.

RUN --reproduce--> Reproduction --> page for people, or script with the files that it needs
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench.analysis.runs.command_line import NOT_OF_THE_POINT, Rewritten, as_value, as_word, rewrite
from longsumbench.api import registry
from longsumbench.api.config import RunConfig
from longsumbench.errors import UnknownName, UsageError
from longsumbench.files import write_atomically
from longsumbench.runs.environment import file_at, project_name
from longsumbench.runs.record import SHORT_ID, Results, RunRecord, run_label
from longsumbench.runs.run_id import run_spec_on

_WHEELS = "https://download.pytorch.org/whl"  # for builds of PyTorch with a local version: "+cpu"


@dataclass(frozen=True)
class Reproduction:
    """The requirements for repeating a run.

    Attributes:
        record: the run's record.
        folder: the run's folder.
        rewritten: the run's configuration as overrides for today's code.
        config_dir: the run's `--config-dir`, if any.
        same_run: whether today's code gives the overrides the same run id, on the same texts.
        patch: the code's changes to its commit, empty if there are none; None if they are lost.
        constraints: versions of packages, for `pip install -c`.
        noted: whether the run wrote `constraints`; if not, they come from its record and commit.
    """

    record: RunRecord
    folder: Path
    rewritten: Rewritten
    config_dir: str | None
    same_run: bool
    patch: bytes | None
    constraints: str
    noted: bool

    @property
    def command(self) -> str:
        """The command line, quoted for a shell."""
        more = [] if self.config_dir is None else ["--config-dir", self.config_dir]
        team = ["torchrun", f"--nproc-per-node={self.processes}", "-m", "longsumbench"]
        suite = team if self.processes > 1 else ["longsumbench"]
        return shlex.join([*suite, "run", *self.rewritten.words, *more])

    @property
    def processes(self) -> int:
        """Number of processes of the run."""
        return self.record.environment.processes

    @property
    def commit(self) -> str | None:
        """Commit of the code; None for an installed package."""
        return self.record.environment.commit

    @property
    def python(self) -> str:
        """Name of the interpreter ("python3.11")."""
        return "python" + ".".join((self.record.environment.python or "3").split(".")[:2])


def reproduce(run: str, results: Results) -> Reproduction:
    """Collect the requirements for repeating a run.

    Args:
        run: the run's folder, its id or a unique prefix of the id.
        results: where ids of runs are looked up.

    Raises:
        UsageError: the run is unknown or ambiguous, or today's code rejects its system, dataset or settings.
        DataError: the run's record is damaged.
    """
    folder = results.find(run)
    record = RunRecord.read(folder)
    config_dir = _typed_config_dir(record.command)
    if config_dir is not None and not Path(config_dir).is_dir():
        raise UsageError(f"{folder} was run with --config-dir {config_dir}: there is no such folder")
    try:
        rewritten = rewrite(record.config, config_dir)
    except UsageError as problem:
        kind = "does not know a name" if isinstance(problem, UnknownName) else "rejects its settings"
        reason = f"today's code {kind} ({problem}); use its commit {record.environment.commit}"
        raise UsageError(f"{folder} cannot be repeated here: {reason}") from problem
    patch, constraints = folder / "work" / "patch.diff", folder / "work" / "constraints.txt"
    differed = patch.read_bytes() if patch.is_file() else b""
    return Reproduction(
        record,
        folder,
        rewritten,
        config_dir,
        is_same_run(rewritten.planned.config, record),
        differed or (None if record.environment.patched else b""),
        constraints.read_text(encoding="utf-8", errors="replace")
        if constraints.is_file()
        else known_constraints(record),
        constraints.is_file(),
    )


def _typed_config_dir(command: Sequence[str]) -> str | None:
    """Return the value of `--config-dir` in a command line."""
    for word, following in pairwise([*command, ""]):
        name, sign, value = word.partition("=")
        if name == "--config-dir":
            return value if sign else following
    return None


def is_same_run(config: RunConfig, record: RunRecord) -> bool:
    """Return whether a configuration, on the texts of a finished run, has that run's id.

    The record does not contain whether the texts had queries, so both cases are tried.
    """
    system = registry.systems.load(config.model.name)(config.model)
    metrics = registry.corpora.load(config.dataset.name).metrics
    ids = (run_spec_on(config, system, record.fingerprint, metrics, queried).run_id for queried in (False, True))
    return record.run_id in ids


def known_constraints(record: RunRecord) -> str:
    """Return the versions in a record and, for other packages, in `constraints.txt` of its commit."""
    pins = {project_name(name): f"{name}=={found}" for name, found in record.environment.packages.items()}
    for line in (file_at(str(record.environment.commit), "constraints.txt") or "").splitlines():
        pins.setdefault(project_name(line.partition("==")[0]), line)
    return "".join(f"{pins[name]}\n" for name in sorted(pins))


def reproduction_page(found: Reproduction) -> str:
    """Return the steps for a person; code and packages are put in a new folder."""
    work, own = found.folder / "work", f"repro-{found.record.run_id[:SHORT_ID]}"
    clone = f"{own}/longsumbench"
    constraints = shlex.quote(str(work / "constraints.txt")) if found.noted else "constraints.txt"
    steps = {
        "The code": _code(found, "<this repository>", clone, shlex.quote(str(work.absolute() / "patch.diff"))),
        f"The packages: {_describe_constraints(found)}": _packages(found, f"{own}/.venv", clone, constraints),
        f"The texts: {_texts(found.record)}": [],
        f"The run, {_machine(found.record)}": [_settings(found.record), found.command],
    }
    lines = _about(found.record)
    for number, (step, content) in enumerate(steps.items(), start=1):
        lines += ["", f"{number}. {step}", *(f"   {line}" for line in content)]
    return "\n".join([*lines, "", *_remarks(found)])


def write_reproduction(found: Reproduction, folder: Path) -> list[Path]:
    """Write `repro.sh` and the files that it needs; return their paths."""
    config = {key: value for key, value in found.record.config.items() if key not in NOT_OF_THE_POINT}
    shown = {**config, **{key: False for key in NOT_OF_THE_POINT if key in found.record.config}}
    contents: dict[str, str | bytes] = {
        "repro.sh": reproduction_script(found),
        "constraints.txt": found.constraints,
        "config.yaml": OmegaConf.to_yaml(OmegaConf.create({key: shown[key] for key in found.record.config})),
        **({"patch.diff": found.patch} if found.patch else {}),
    }
    (folder / "patch.diff").unlink(missing_ok=True)  # of another run
    for name, content in contents.items():
        write_atomically(folder / name, content)
    return [folder / name for name in contents]


def reproduction_script(found: Reproduction) -> str:
    """Return the steps as a shell script, which first checks that the command gives the recorded configuration."""
    clone = '"$here/longsumbench"'
    stop = "echo 'the command gives another configuration at this commit (see above): not run' >&2; exit 1"
    comments = [
        *_about(found.record),
        f"texts: {_texts(found.record)}",
        f"packages: {_describe_constraints(found)}",
        *_remarks(found),
        "usage: bash repro.sh REPOSITORY     (the address of longsumbench's repository, or the folder of a clone)",
        "Code and packages are put in the folder of this script. Start it in the folder to which paths are relative.",
    ]
    lines = [
        "#!/usr/bin/env bash",
        *(f"# {line}" for comment in comments for line in comment.splitlines()),
        "set -euo pipefail",
        'here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)',
        *_code(found, '"${1:?usage: bash repro.sh REPOSITORY}"', clone, '"$here/patch.diff"'),
        *_packages(found, '"$here/.venv"', clone, '"$here/constraints.txt"'),
        _settings(found.record),
        f'{_shown(found)} | diff "$here/config.yaml" - || {{ {stop}; }}',
        found.command,
    ]
    return "\n".join(lines) + "\n"


def _shown(found: Reproduction) -> str:
    """Return the command that shows the configuration, with one process."""
    return f"longsumbench{found.command[found.command.index(' run ') :]} --show"


def _about(record: RunRecord) -> list[str]:
    seed = "" if record.seed is None else f", seed {record.seed}"
    swept = " (the run is a point of this sweep)" if {"-m", "--multirun"} & set(record.command) else ""
    return [
        f"run {record.run_id}: {run_label(record)} on {record.dataset}{seed}, finished {record.finished}",
        f"typed as: {shlex.join(record.command)}{swept}",
    ]


def _code(found: Reproduction, repository: str, clone: str, patch: str) -> Iterator[str]:
    """Yield the commands that get the code; all arguments are quoted for a shell."""
    if found.commit is not None:
        yield f"git clone -q {repository} {clone}"
        yield f"git -C {clone} checkout -q {shlex.quote(found.commit)}"
        if found.patch:
            yield f"git -C {clone} apply {patch}"


def _packages(found: Reproduction, environment: str, clone: str, constraints: str) -> Iterator[str]:
    """Yield the commands that install the packages; all arguments are quoted for a shell."""
    version = shlex.quote(f"longsumbench=={found.record.environment.longsumbench}")
    suite = version if found.commit is None else f"-e {clone}"
    build = next((line for line in found.constraints.splitlines() if line.startswith("torch==")), "").partition("+")[2]
    wheels = f" --extra-index-url {shlex.quote(f'{_WHEELS}/{build}')}" if build else ""
    yield f"{shlex.quote(found.python)} -m venv {environment}"
    yield f". {environment}/bin/activate"
    yield f"pip install{wheels} -c {constraints} {suite}"


def _describe_constraints(found: Reproduction) -> str:
    python = f"Python {found.record.environment.python}"
    if found.noted:
        return f"{python}, and the packages installed then"
    known = ", ".join(f"{name} {version}" for name, version in found.record.environment.packages.items())
    return f"{python}, {known}; constraints.txt (--output writes it) adds the versions of the commit's constraints.txt"


def _texts(record: RunRecord) -> str:
    path = record.settings.dataset.path
    place = record.texts.source or "" if path is None else f"at {path}, from where the run was started"
    return f"{record.dataset} ({place}), fingerprint {record.fingerprint[:12]}"


def _machine(record: RunRecord) -> str:
    where = record.environment
    threads = "" if where.threads is None else f", threads: {where.threads}"
    return f"on {where.gpu or 'the CPU'} ({where.processor}, {where.cores} cores{threads})"


def _settings(record: RunRecord) -> str:
    """Return the command that sets the threads, hides an unused GPU, and makes torchrun import the installed code."""
    where = record.environment
    chosen = [f"OMP_NUM_THREADS={where.threads or 1}"]
    chosen += [] if where.gpu else ["CUDA_VISIBLE_DEVICES="]
    chosen += ["PYTHONSAFEPATH=1"] if where.processes > 1 else []
    return f"export {' '.join(chosen)}"


def _remarks(found: Reproduction) -> Iterator[str]:
    """Yield lines about possible differences of a repeat."""
    record, rewritten = found.record, found.rewritten
    if found.commit is None:
        yield "The code was installed as a package, without a checkout: its commit is unknown."
    if found.patch is None:
        yield "The code differed from its commit, but the changes are lost: work/patch.diff is empty or missing."
    if found.same_run:
        yield f"Today's code gives the command the same run id on these texts: {record.run_id}."
    else:
        reason = "settings or the outcome of a step have changed"
        yield f"Today's code gives the command another run id, because {reason}: use its commit."
    if rewritten.gone:
        yield f"Settings that no longer exist; add them at that commit: {_listed(rewritten.gone)}"
    if rewritten.unlike:
        differing = (f"{key} ({as_value(a)} then, {as_value(b)} now)" for key, (a, b) in rewritten.unlike.items())
        yield f"Settings whose default has changed since: {', '.join(differing)}"
    if rewritten.later:
        yield f"Newer settings, and their values in this command: {_listed(rewritten.later)}"
    if not record.repeatable:
        yield "Training was ended by train.max_minutes: a repeat ends at another step."
    if record.environment.gpu:
        yield "On a GPU, the last bits may differ between runs, and with them single words."


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(as_word(key, value) for key, value in values.items())
