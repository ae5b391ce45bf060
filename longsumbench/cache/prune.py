"""List and delete the stages of a cache folder; `longsumbench.cache.artifacts` describes the folder.

A stage that is being built is never deleted. What a killed builder left can be continued: it is deleted after a day.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from longsumbench.cache.artifacts import INPUTS, delete_folder
from longsumbench.cache.locks import exclusive_lock, lock_holder
from longsumbench.formatting import format_bytes, format_duration, plain_table

_DAY = 86_400.0  # seconds
_STAGE = re.compile(r"([0-9a-f]{24})(\.partial|\.old-[0-9a-f]{8})?")
# of a dataset, system or ranker, in the stored inputs of a stage
_NAMES_IN_INPUTS = re.compile(r'"(?:corpus|name|system|ranker)": (?:\[\s*)?"([^"]+)"')
_LEFT_OVER = "left over"  # by a killed builder or an interrupted deletion


@dataclass(frozen=True)
class CachedArtifact:
    """A folder of a stage.

    Attributes:
        kind: name of the stage: "corpus", "checkpoint", ….
        key: hash of the inputs.
        state: "finished", "left over" or "being built by …".
        size: bytes.
        last_used: time of the last use or, unless finished, of the last change; in seconds since 1970.
    """

    folder: Path
    kind: str
    key: str
    state: str
    size: int
    last_used: float

    @property
    def lock(self) -> Path:
        """The lock file of its builder."""
        return self.folder.with_name(f"{self.key}.lock")


def artifacts_in(root: Path) -> list[CachedArtifact]:
    """Return all stages of a cache folder, the last used first; ignore other files."""
    folders = [path for path in root.glob("*/*") if _STAGE.fullmatch(path.name) and path.is_dir()]
    return sorted(map(_read_artifact, folders), key=lambda stage: -stage.last_used)


def _read_artifact(folder: Path) -> CachedArtifact:
    key, _, suffix = folder.name.partition(".")
    builder = lock_holder(folder.with_name(f"{key}.lock")) if suffix == "partial" else None
    state = _LEFT_OVER if suffix else "finished"
    if builder:
        state = f"being built by {builder}"
    size, changed = 0, 0.0
    with suppress(FileNotFoundError):  # another process deletes it
        changed = folder.stat().st_mtime
        for path in folder.rglob("*"):
            status = path.lstat()
            size += status.st_size
            if suffix:
                changed = max(changed, status.st_mtime)
    return CachedArtifact(folder, folder.parent.name, key, state, size, changed)


def list_kinds(root: Path, stages: Sequence[CachedArtifact]) -> str:
    """Return the table of the kinds of stages, with a row for all if there are several kinds."""
    members: dict[str, list[CachedArtifact]] = {}
    for stage in sorted(stages, key=lambda stage: stage.kind):  # a stable sort: last used first
        members.setdefault(stage.kind, []).append(stage)
    if len(members) > 1:
        members["all"] = list(stages)
    rows = []
    for kind, group in members.items():
        size = sum(stage.size for stage in group)
        rows.append([kind, f"{len(group)}", format_bytes(size), _ago(group[0])])
    return _stage_table(root, ["stage", "number", "size", "last used"], rows)


def list_artifacts(root: Path, stages: Sequence[CachedArtifact]) -> str:
    """Return the table of stages."""
    rows = []
    for stage in stages:
        names = _describe_inputs(stage.folder)
        size = format_bytes(stage.size)
        rows.append([stage.kind, stage.key[:12], size, _ago(stage), stage.state, names])
    return _stage_table(root, ["stage", "key", "size", "last used", "state", "of"], rows)


def _ago(stage: CachedArtifact) -> str:
    return f"{format_duration(time.time() - stage.last_used)} ago"


def _stage_table(root: Path, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    table = plain_table(rows, headers, ("number", "size", "last used"))
    return f"{root}\n\n{table}" if rows else f"{root}: no stages"


def _describe_inputs(folder: Path) -> str:
    try:
        inputs = (folder / INPUTS).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return ", ".join(dict.fromkeys(_NAMES_IN_INPUTS.findall(inputs)))


def delete_outdated(
    stages: Sequence[CachedArtifact], unused_for: float, dry_run: bool = False
) -> str:
    """Delete the stages that were not used for some seconds, and what was left over for a day; return a summary.

    A stage that is being built, or was used since it was listed, stays.
    """
    limits = {"finished": unused_for, _LEFT_OVER: min(unused_for, _DAY)}
    freed, deleted = 0, Counter[str]()
    for stage in stages:
        unused = time.time() - stage.last_used
        if unused <= limits.get(stage.state, math.inf) or _is_in_use(stage):
            continue
        if not dry_run:
            with exclusive_lock(stage.lock):
                delete_folder(stage.folder)
                stage.lock.unlink()
        freed += stage.size
        deleted[stage.kind if stage.state == "finished" else _LEFT_OVER] += 1
    parts = ", ".join(f"{number} {kind}" for kind, number in deleted.items())
    return f"{'would free' if dry_run else 'freed'} {format_bytes(freed)}{parts and f' ({parts})'}"


def _is_in_use(stage: CachedArtifact) -> bool:
    if lock_holder(stage.lock) is not None:
        return True
    with suppress(FileNotFoundError):  # another process deleted it
        return stage.folder.stat().st_mtime > stage.last_used
    return False
