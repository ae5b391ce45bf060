"""List and delete the stages of a cache folder; stages in use or being built are never deleted.

What a killed builder left can be continued, so it is deleted only after a day, unless the user requests it.
`longsumbench.cache.artifacts` describes the folder.
"""

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tabulate import tabulate

from longsumbench.cache.artifacts import check_layout, discard_folder, mark_layout, remove_path, side_path
from longsumbench.cache.checksums import find_damage
from longsumbench.cache.locks import Holder, exclusive_lock, is_lock_shared, lock_holder
from longsumbench.errors import DataError, UsageError, did_you_mean
from longsumbench.formatting import format_bytes, format_rough_time, print_text
from longsumbench.progress import Progress

_DAY = 86_400.0  # seconds
UNUSED_FOR = 30 * _DAY
_LEFT_FOR = _DAY  # then it is unlikely that anybody continues what a killed builder left
_KEY = re.compile(r"[0-9a-f]{24}")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_LONGEST_SPAN = 100_000 * _DAY
_SPANS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": _DAY, "w": 7 * _DAY}
_ALIGNED = ("left", "right", "right", "right", "right", "right", "right")


@dataclass(frozen=True)
class CachedArtifact:
    """All folders of one key in the cache.

    Attributes:
        folder: of the finished stage; it may be missing.
        rests: folders that a builder is filling, or that killed builders and interrupted deletions left.
    """

    folder: Path
    rests: tuple[Path, ...] = ()

    @property
    def kind(self) -> str:
        """Name of the stage: "corpus", "checkpoint", …."""
        return self.folder.parent.name

    @property
    def key(self) -> str:
        """Hash of the inputs."""
        return self.folder.name

    @cached_property
    def is_finished(self) -> bool:
        """True if the finished stage exists."""
        return self.folder.is_dir()

    @cached_property
    def size(self) -> int:
        """Bytes of the finished stage."""
        return _size_of([self.folder])

    @cached_property
    def rest_size(self) -> int:
        """Bytes of the rests."""
        return _size_of(self.rests)

    @cached_property
    def last_used(self) -> float:
        """Time of the last use or change, in seconds since 1970."""
        paths = [side_path(self.folder, "used"), self.folder, *self.rests, *_files_in(self.rests)]
        return max((status.st_mtime for path in paths if (status := _status_of(path))), default=0.0)

    @cached_property
    def builder(self) -> Holder | None:
        """The process that builds the stage, if any."""
        return lock_holder(side_path(self.folder, "lock"))

    @cached_property
    def is_used(self) -> bool:
        """True while a process uses the stage."""
        return is_lock_shared(side_path(self.folder, "used"))

    @property
    def is_left_over(self) -> bool:
        """True if there are rests and no process builds the stage."""
        return bool(self.rests) and self.builder is None

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """Content of `inputs.json`; empty if the file is missing or damaged."""
        for folder in (self.folder, *self.rests):
            with suppress(OSError, ValueError):
                found = json.loads((folder / "inputs.json").read_text(encoding="utf-8"))
                return found if isinstance(found, dict) else {}
        return {}

    def state(self) -> str:
        """Describe who builds or uses the stage, for a table."""
        if self.builder is not None:
            return f"being built by {self.builder}"
        parts = ["in use"] if self.is_used else []
        return ", ".join([*parts, *(["left over"] if self.is_left_over else [])])


def artifacts_in(root: Path) -> list[CachedArtifact]:
    """Return all stages of a cache folder, sorted by kind and key; ignore other files."""
    found: list[CachedArtifact] = []
    for kind in sorted(entry for entry in root.iterdir() if entry.is_dir()) if root.is_dir() else ():
        rests: dict[str, list[Path]] = {}
        for path in sorted(kind.iterdir()):
            key, _, what = path.name.partition(".")
            if _KEY.fullmatch(key) and (what in ("", "partial") or what.startswith(("old-", "damaged-"))):
                rests.setdefault(key, []).extend([path] if what else [])
        found += [CachedArtifact(kind / key, tuple(left)) for key, left in rests.items()]
    return found


def select_artifacts(
    stages: Sequence[CachedArtifact], kinds: Collection[str] = (), keys: Iterable[str] = ()
) -> list[CachedArtifact]:
    """Select stages by kind and by the beginnings of keys; all stages if neither is given.

    Raises:
        UsageError: a kind or key does not exist, or several keys begin with the same text.
    """
    known = sorted({stage.kind for stage in stages})
    for kind in kinds:
        if kind not in known:
            raise UsageError(
                f"no '{kind}' in the cache{did_you_mean(kind, known)}; there: {', '.join(known) or 'none'}"
            )
    for key in keys:
        num_found = sum(stage.key.startswith(key) for stage in stages)
        if num_found != 1:
            problem = f"{num_found} stages begin with '{key}'" if num_found else f"no stage begins with '{key}'"
            raise UsageError(f"{problem}; `longsumbench cache --all` lists them")
    selected = [stage for stage in stages if not kinds or stage.kind in kinds]
    return [stage for stage in selected if not keys or stage.key.startswith(tuple(keys))]


def list_kinds(root: Path, stages: Sequence[CachedArtifact]) -> str:
    """Return the table of the kinds of stages, the largest first."""
    kinds = {kind: [stage for stage in stages if stage.kind == kind] for kind in (stage.kind for stage in stages)}
    rows = [_row(kind, members) for kind, members in kinds.items()]
    rows = sorted(rows, key=lambda row: -sum(stage.size for stage in kinds[str(row[0])]))
    if len(rows) > 1:
        rows.append(_row("all", stages))
    headers = ["stage", "number", "size", "last used", "in use", "being built", "left over"]
    table = tabulate(rows, headers=headers, tablefmt="plain", disable_numparse=True, colalign=_ALIGNED)
    builders = [f"{stage.kind} {stage.key[:8]}: {stage.state()}" for stage in stages if stage.builder is not None]
    return "\n".join([f"{root}", "", table, *([""] if builders else []), *builders]) if rows else f"{root}: no stages"


def _row(name: str, members: Sequence[CachedArtifact]) -> list[str]:
    finished = [stage for stage in members if stage.is_finished]
    left = [stage for stage in members if stage.is_left_over]
    numbers = (sum(stage.is_used for stage in members), sum(stage.builder is not None for stage in members))
    rests = f"{len(left)} ({format_bytes(sum(stage.rest_size for stage in left))})" if left else ""
    used = f"{format_rough_time(time.time() - max(stage.last_used for stage in members))} ago"
    size = format_bytes(sum(stage.size for stage in finished))
    return [name, f"{len(finished)}", size, used, *(f"{number or ''}" for number in numbers), rests]


def list_artifacts(root: Path, stages: Sequence[CachedArtifact], everything: Sequence[CachedArtifact]) -> str:
    """Return the table of `stages`, the last used first; the corpora in `everything` give the names of texts."""
    texts, now = _known_texts(everything), time.time()
    rows = [
        [
            *(
                stage.kind,
                stage.key,
                format_bytes(stage.size + stage.rest_size),
                f"{format_rough_time(now - stage.last_used)} ago",
            ),
            *(stage.state(), describe_artifact(stage.inputs, texts)),
        ]
        for stage in sorted(stages, key=lambda stage: -stage.last_used)
    ]
    headers = ["stage", "key", "size", "last used", "state", "of"]
    aligned = ("left", "left", "right", "right", "left", "left")
    table = tabulate(rows, headers=headers, tablefmt="plain", disable_numparse=True, colalign=aligned)
    return f"{root}\n\n{table}" if rows else f"{root}: no stages"


def _known_texts(stages: Iterable[CachedArtifact]) -> dict[str, str]:
    """Return fingerprint → dataset and split, for the corpora in the cache."""
    texts: dict[str, str] = {}
    for stage in stages:
        if stage.kind == "corpus":
            with suppress(OSError, ValueError, KeyError, AttributeError):
                content = json.loads((stage.folder / "corpus.json").read_text(encoding="utf-8"))
                name = describe_artifact(stage.inputs, {})
                texts |= {fingerprint: f"{name} {split}" for split, fingerprint in content["splits"].items()}
    return texts


def describe_artifact(inputs: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Describe a stage by its inputs: dataset, or system and texts; `texts`: fingerprint → dataset and split."""
    parts = []
    values = list(_values(inputs))
    if isinstance(corpus := inputs.get("corpus"), list) and corpus:
        limit = inputs.get("limit")
        parts.append(f"{corpus[0]}" + (f" limit={limit}" if limit is not None else ""))
    parts += [f"{value}" for key, value in values if key in ("name", "system", "ranker") and isinstance(value, str)]
    parts += [f"vocabulary_size={value}" for key, value in values if key == "vocabulary_size"]
    parts += [texts[value] for _, value in values if isinstance(value, str) and value in texts]
    return ", ".join(dict.fromkeys(parts))


def _values(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _values(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner, "")
    else:
        yield key, value


@dataclass
class Pruning:
    """Deletes stages and counts them.

    Attributes:
        dry_run: count only, delete nothing.
        deleted: kind → number of finished stages.
        rests: number of deleted rests.
        freed: bytes.
        kept: a line for each stage that could not be deleted.
    """

    dry_run: bool = False
    deleted: dict[str, int] = field(default_factory=dict)
    rests: int = 0
    freed: int = 0
    kept: list[str] = field(default_factory=list)

    def delete(self, stage: CachedArtifact, rests_only: bool = False) -> None:
        """Delete a stage with its rests, or its rests only, unless another process uses or builds it."""
        rests_only = rests_only and stage.is_finished
        if stage.builder is not None:
            self._keep(stage, f"it is being built by {stage.builder}")
        elif not rests_only and stage.is_used:
            self._keep(stage, "it is in use")
        else:
            freed = stage.rest_size + (0 if rests_only else stage.size)
            finished = stage.is_finished and not rests_only
            if self.dry_run or self._delete(stage, rests_only):
                self.freed += freed
                self.rests += len(stage.rests)
                if finished:
                    self.deleted[stage.kind] = self.deleted.get(stage.kind, 0) + 1

    def _delete(self, stage: CachedArtifact, rests_only: bool) -> bool:
        """Delete a stage under its locks; False if another process holds one."""
        lock, used = side_path(stage.folder, "lock"), side_path(stage.folder, "used")
        try:
            with exclusive_lock(lock, _in_use):
                if rests_only:
                    _delete_folders(stage.rests)
                else:
                    with exclusive_lock(used, _in_use):
                        discard_folder(stage.folder)
                        _delete_folders(stage.rests)
                        used.unlink(missing_ok=True)
                if not stage.folder.is_dir():
                    lock.unlink(missing_ok=True)
        except BlockingIOError as error:
            self._keep(stage, f"it is in use by {error}")
            return False
        return True

    def _keep(self, stage: CachedArtifact, reason: str) -> None:
        self.kept.append(f"kept: {stage.kind} {stage.key}, {format_bytes(stage.size + stage.rest_size)}: {reason}")

    def describe(self) -> str:
        """Describe what was kept and what was freed, or would be."""
        parts = [f"{number} {kind}" for kind, number in self.deleted.items()]
        parts += [f"{self.rests} left over" if self.rests else ""]
        of = f" ({', '.join(part for part in parts if part)})" if any(parts) else ""
        return "\n".join([*self.kept, f"{'would free' if self.dry_run else 'freed'} {format_bytes(self.freed)}{of}"])


def _in_use(other: Holder) -> None:
    raise BlockingIOError(other.name)


def _delete_folders(folders: Iterable[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            remove_path(folder, ignore_errors=True)


def prune(
    root: Path,
    pruning: Pruning,
    kinds: Collection[str] = (),
    keys: Sequence[str] = (),
    unused_for: float = UNUSED_FOR,
    rests_only: bool = False,
    everything: bool = False,
) -> None:
    """Delete stages of a cache folder; by default, those that were not used recently.

    Args:
        root: the cache folder.
        pruning: deletes and counts the stages.
        kinds: only stages of these kinds.
        keys: beginnings of keys; these stages are deleted even if they were used recently.
        unused_for: seconds since the last use.
        rests_only: delete only what killed builders left, even recently.
        everything: delete all stages, in any layout.

    Raises:
        UsageError: a kind or key does not exist.
        EnvironmentProblem: the folder has another layout, and `everything` is False.
    """
    if not everything and root.is_dir():
        check_layout(root)
    now = time.time()
    for stage in select_artifacts(artifacts_in(root), kinds, keys):
        idle = now - stage.last_used
        if everything or keys or (not rests_only and idle > unused_for):
            pruning.delete(stage)
        elif stage.rests and (rests_only or idle > _LEFT_FOR):
            pruning.delete(stage, rests_only=True)
    if everything and not kinds and not pruning.dry_run and root.is_dir() and not artifacts_in(root):
        mark_layout(root)


def verify_artifacts(stages: Iterable[CachedArtifact]) -> str:
    """Read finished stages in full, print a line for each damaged one, and return a summary.

    Raises:
        DataError: a stage is damaged.
    """
    finished = [stage for stage in stages if os.path.lexists(stage.folder)]
    damaged, size = 0, format_bytes(sum(stage.size for stage in finished))
    with Progress("verifying", len(finished), "stages") as progress:
        for stage in finished:
            if problems := _problems_of(stage):
                damaged += 1
                print_text(f"damaged: {stage.kind} {stage.key}: {', '.join(problems)}")
            progress.advance()
    total = f"{len(finished)} stage{'' if len(finished) == 1 else 's'} in the cache ({size})"
    if damaged:
        advice = "a run that needs one builds it again; `longsumbench cache prune KEY` deletes one"
        raise DataError(f"{damaged} of {total} damaged: {advice}")
    return f"{total} verified: nothing is damaged"


def _problems_of(stage: CachedArtifact) -> list[str]:
    try:
        problems = find_damage(stage.folder, in_full=True)
    except OSError as error:
        problems = [f"{error.filename} cannot be read ({error.strerror})"]
    return problems if os.path.lexists(stage.folder) else []  # another process may have deleted it meanwhile


def _size_of(folders: Iterable[Path]) -> int:
    return sum(status.st_size for path in _files_in(folders) if (status := _status_of(path)))


def _files_in(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        for inside, _, names in os.walk(folder):
            yield from (Path(inside, name) for name in names)


def _status_of(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def parse_seconds(span: str) -> float:
    """Parse a time span: "30d", "12h", "2w".

    Raises:
        UsageError: the span is invalid or too long.
    """
    if not (found := _SPAN.fullmatch(span)):
        raise UsageError(f"--unused-for {span}: write a number followed by s, m, h, d or w, as in 30d")
    seconds = float(found[1]) * _SPANS[found[2]]
    if seconds > _LONGEST_SPAN:
        raise UsageError(f"--unused-for {span[:20]}: at most {_LONGEST_SPAN / _DAY:,.0f}d")
    return seconds
