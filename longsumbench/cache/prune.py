"""What the cache folder holds, and how it is deleted: never what is in use or being built.

The same command continues what a killed builder left. So this is left over only after a day without a builder, unless
the user asks for it. `longsumbench.cache.artifacts` describes the folder.
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
_LEFT_FOR = _DAY  # after which nobody is expected to continue what a killed builder left
_KEY = re.compile(r"[0-9a-f]{24}")
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
_LONGEST_SPAN = 100_000 * _DAY
_SPANS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": _DAY, "w": 7 * _DAY}
_ALIGNED = ("left", "right", "right", "right", "right", "right", "right")


@dataclass(frozen=True)
class CachedArtifact:
    """All that stands in the cache under one key.

    Attributes:
        folder: of the finished stage, whether or not it is there.
        rests: what killed builders and interrupted deletions have left, or a builder is filling.
    """

    folder: Path
    rests: tuple[Path, ...] = ()

    @property
    def kind(self) -> str:
        """What it is: "corpus", "checkpoint"."""
        return self.folder.parent.name

    @property
    def key(self) -> str:
        """Of its inputs."""
        return self.folder.name

    @cached_property
    def is_finished(self) -> bool:
        """Whether it can be used."""
        return self.folder.is_dir()

    @cached_property
    def size(self) -> int:
        """Bytes of the finished stage."""
        return _size_of([self.folder])

    @cached_property
    def rest_size(self) -> int:
        """Bytes of what is not finished."""
        return _size_of(self.rests)

    @cached_property
    def last_used(self) -> float:
        """When it was asked for last, or written to; seconds since 1970."""
        every = [side_path(self.folder, "used"), self.folder, *self.rests, *_files_in(self.rests)]
        return max((status.st_mtime for path in every if (status := _status_of(path))), default=0.0)

    @cached_property
    def builder(self) -> Holder | None:
        """Who builds it right now."""
        return lock_holder(side_path(self.folder, "lock"))

    @cached_property
    def is_used(self) -> bool:
        """Whether a process uses it right now."""
        return is_lock_shared(side_path(self.folder, "used"))

    @property
    def is_left_over(self) -> bool:
        """Whether something unfinished stands there that nobody works at."""
        return bool(self.rests) and self.builder is None

    @cached_property
    def inputs(self) -> Mapping[str, Any]:
        """What decided it; nothing where that is not known, or damaged."""
        for folder in (self.folder, *self.rests):
            with suppress(OSError, ValueError):
                found = json.loads((folder / "inputs.json").read_text(encoding="utf-8"))
                return found if isinstance(found, dict) else {}
        return {}

    def state(self) -> str:
        """Say what becomes of it, for people."""
        if self.builder is not None:
            return f"being built by {self.builder}"
        parts = ["in use"] if self.is_used else []
        return ", ".join([*parts, *(["left over"] if self.is_left_over else [])])


def artifacts_in(root: Path) -> list[CachedArtifact]:
    """Return all stages of a cache folder, by kind and key. Nothing else that stands there is looked at."""
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
    """Return the stages of some kinds, or whose keys begin in some ways; all where nothing is asked for.

    Raises:
        UsageError: nothing of that kind or key is there, or a beginning fits several.
    """
    known = sorted({stage.kind for stage in stages})
    for kind in kinds:
        if kind not in known:
            raise UsageError(
                f"no '{kind}' in the cache{did_you_mean(kind, known)}; there: {', '.join(known) or 'none'}"
            )
    for key in keys:
        fitting = [stage for stage in stages if stage.key.startswith(key)]
        if len(fitting) != 1:
            many = f"{len(fitting)} stages begin with '{key}'" if fitting else f"no stage begins with '{key}'"
            raise UsageError(f"{many}; `longsumbench cache --all` lists them")
    wanted = [stage for stage in stages if not kinds or stage.kind in kinds]
    return [stage for stage in wanted if not keys or stage.key.startswith(tuple(keys))]


def list_kinds(root: Path, stages: Sequence[CachedArtifact]) -> str:
    """Return the table of the kinds of stages, the largest first."""
    kinds = {stage.kind: [one for one in stages if one.kind == stage.kind] for stage in stages}
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
    """Return the table of the stages one by one, the last used first.

    Args:
        root: the cache folder.
        stages: to be listed.
        everything: that is in the cache, by which texts are told.
    """
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
    """Return fingerprint → dataset and split, of the corpora in the cache."""
    texts: dict[str, str] = {}
    for stage in stages:
        if stage.kind == "corpus":
            with suppress(OSError, ValueError, KeyError, AttributeError):
                content = json.loads((stage.folder / "corpus.json").read_text(encoding="utf-8"))
                name = describe_artifact(stage.inputs, {})
                texts |= {fingerprint: f"{name} {split}" for split, fingerprint in content["splits"].items()}
    return texts


def describe_artifact(inputs: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Say in a few words what a stage is of: its dataset, or its system and texts.

    Args:
        inputs: what decided it.
        texts: as `_known_texts` returns them.
    """
    told = []
    values = list(_values(inputs))
    if isinstance(named := inputs.get("corpus"), list) and named:
        limit = inputs.get("limit")
        told.append(f"{named[0]}" + (f" limit={limit}" if limit is not None else ""))
    told += [f"{value}" for key, value in values if key in ("name", "system", "ranker") and isinstance(value, str)]
    told += [f"vocabulary_size={value}" for key, value in values if key == "vocabulary_size"]
    told += [texts[value] for _, value in values if isinstance(value, str) and value in texts]
    return ", ".join(dict.fromkeys(told))


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
    """The deletion of stages, and what became of it.

    Attributes:
        dry_run: whether it is only told what would be deleted.
        deleted: kind → how many finished stages.
        rests: how many left-overs.
        freed: bytes.
        kept: why stages that were meant were not deleted.
    """

    dry_run: bool = False
    deleted: dict[str, int] = field(default_factory=dict)
    rests: int = 0
    freed: int = 0
    kept: list[str] = field(default_factory=list)

    def delete(self, stage: CachedArtifact, rests_only: bool = False) -> None:
        """Delete a stage with all that belongs to it, or only what is left over; not what others use or build."""
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
        """Delete it under its locks; False when another process came first."""
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

    def told(self) -> str:
        """Say what was freed, or would be, and what was kept."""
        parts = [f"{number} {kind}" for kind, number in self.deleted.items()]
        parts += [f"{self.rests} left over" if self.rests else ""]
        of = f" ({', '.join(part for part in parts if part)})" if any(parts) else ""
        return "\n".join([*self.kept, f"{'would free' if self.dry_run else 'freed'} {format_bytes(self.freed)}{of}"])


def _in_use(other: Holder) -> None:
    raise BlockingIOError(other.name)


def _delete_folders(folders: Iterable[Path]) -> None:
    """Delete folders that nobody uses; what is not finished need not be seen whole."""
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
    """Delete stages of a cache folder; without a choice, what was not used for long.

    Args:
        root: the cache folder.
        pruning: is told what becomes of it, also where it is interrupted.
        kinds: only these.
        keys: these, by the beginnings of their keys, however lately they were used.
        unused_for: seconds.
        rests_only: only what killed builders left, however lately.
        everything: all, also where another version of the suite has kept it.

    Raises:
        UsageError: what is named is not there.
        EnvironmentProblem: the folder was written by another version, and not all of it is to be deleted.
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
    """Read finished stages in full, print a line for each damaged one, and return how many are whole.

    Raises:
        DataError: one is damaged.
    """
    finished = [stage for stage in stages if os.path.lexists(stage.folder)]
    damaged, size = 0, format_bytes(sum(stage.size for stage in finished))
    with Progress("verifying", len(finished), "stages") as progress:
        for stage in finished:
            if problems := _problems_of(stage):
                damaged += 1
                print_text(f"damaged: {stage.kind} {stage.key}: {', '.join(problems)}")
            progress.advance()
    of = f"{len(finished)} stage{'' if len(finished) == 1 else 's'} in the cache ({size})"
    if damaged:
        advice = "a run that needs one builds it anew; `longsumbench cache prune KEY` deletes one"
        raise DataError(f"{damaged} of {of} damaged: {advice}")
    return f"{of} verified: nothing is damaged"


def _problems_of(stage: CachedArtifact) -> list[str]:
    """Read a finished stage in full; return what is damaged in it, or cannot be read."""
    try:
        problems = find_damage(stage.folder, in_full=True)
    except OSError as error:
        problems = [f"{error.filename} cannot be read ({error.strerror})"]
    return problems if os.path.lexists(stage.folder) else []  # another process has deleted it meanwhile


def _size_of(folders: Iterable[Path]) -> int:
    """Return the bytes of some folders' files; what others delete meanwhile counts nothing."""
    return sum(status.st_size for path in _files_in(folders) if (status := _status_of(path)))


def _files_in(folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the files of some folders, however deep, as far as nobody deletes them meanwhile."""
    for folder in folders:
        for inside, _, names in os.walk(folder):
            yield from (Path(inside, name) for name in names)


def _status_of(path: Path) -> os.stat_result | None:
    """Return what is known of a file or folder; None where there is none (any more)."""
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def parse_seconds(span: str) -> float:
    """Read a span of time: "30d", "12h", "2w".

    Raises:
        UsageError: it is none.
    """
    if not (found := _SPAN.fullmatch(span)):
        raise UsageError(f"--unused-for {span}: write a number with s, m, h, d or w behind it, as in 30d")
    seconds = float(found[1]) * _SPANS[found[2]]
    if seconds > _LONGEST_SPAN:
        raise UsageError(f"--unused-for {span[:20]}: at most {_LONGEST_SPAN / _DAY:,.0f}d")
    return seconds
