"""`longsumbench merge`: the runs of several results folders and bundles in one results folder.

A run is copied into a hidden folder, which is then renamed: no run is ever half there. Nothing is overwritten.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from longsumbench.cache.locks import exclusive_lock
from longsumbench.errors import DataError
from longsumbench.exchange.verify import flatten_values, unlike_values
from longsumbench.files import write_atomically
from longsumbench.formatting import format_count
from longsumbench.runs.record import VERIFIED_FILE, WORK_FOLDER, RunRecord
from longsumbench.runs.results import Results, finished_folders, hash_scored_files
from longsumbench.views.leaderboard import update_table

# What belongs to a machine or to its user
_NOT_COPIED = shutil.ignore_patterns(WORK_FOLDER, ".*", VERIFIED_FILE)


def merge_results(sources: Sequence[str], target: Results) -> Iterator[str]:
    """Copy the finished runs of results folders and bundles into a results folder, and make the tables again.

    A run that is there already with the same results is kept. Yield a line for each source. One merge at a time changes
    the folder.

    Raises:
        DataError: something was left out, with a line on stderr; everything else is merged.
    """
    with exclusive_lock(target.root / ".merging.lock"):
        yield from _merge_sources(sources, target)


def _merge_sources(sources: Sequence[str], target: Results) -> Iterator[str]:
    datasets = set[str]()
    for source in sources:
        path = Path(source).expanduser()
        try:
            folders = finished_folders(path, foreign=True, reported=target.reported)
        except DataError as error:
            target.leave_out(error)
            continue
        copied: list[bool] = []  # False if the target has the run
        for folder in folders:
            try:
                copied.append(_merge_run(folder, source, target))
                datasets.add(folder.parents[1].name)
            except DataError as error:
                target.leave_out(error)
        yield f"{source}: {format_count(sum(copied), 'run')} merged, {copied.count(False):,} already there"
    for dataset in sorted(datasets):
        update_table(target, dataset)
    if target.reported:
        problem = f"left out: {len(target.reported):,} of the runs and files (named above)"
        raise DataError(f"{problem}; all others are merged")


def _merge_run(folder: Path, source: str, target: Results) -> bool:
    """Copy a run into a results folder; return False if it is there already; DataError if it cannot be copied."""
    # dataset, model and run id
    names = folder.absolute().parts[-3:]
    if folder.resolve() != folder.parents[3].resolve().joinpath("runs", *names):
        raise DataError("a link that leaves its results folder, which is not followed", folder)
    record = RunRecord.read(folder)
    if (record.key.dataset, record.key.model, record.run_id) != names:
        raise DataError(
            f"the record of another run, {record.run_id} of {record.key.model}",
            folder / "record.json",
        )
    run_folder = target.folder(*names)
    if (run_folder / "record.json").is_file():
        if unlike := _unlike_files(folder, run_folder):
            problem = f"{' and '.join(unlike)} differ from those of the same run in {run_folder}"
            raise DataError(f"{problem}; neither is changed: delete one of the two runs", folder)
        return False
    if run_folder.exists():
        raise DataError(f"{run_folder} is unfinished: let it end, or delete it", folder)
    with TemporaryDirectory(prefix=".merge-", dir=target.root) as temporary:
        copy = Path(temporary, folder.name)
        try:
            shutil.copytree(folder, copy, ignore=_NOT_COPIED)
        except shutil.Error as error:
            raise DataError(f"cannot be copied ({error.args[0][0][2]})", folder) from error
        write_atomically(copy / "origin.json", json.dumps({"merged_from": source}) + "\n")
        run_folder.parent.mkdir(parents=True, exist_ok=True)
        copy.rename(run_folder)
    return True


def _unlike_files(folder: Path, run_folder: Path) -> list[str]:
    """Return the files in which two copies of a run differ; its record only if the results do, not the costs."""
    first, second = hash_scored_files(folder), hash_scored_files(run_folder)
    names = [name for name in first if first[name] != second.get(name, first[name])]
    results = []
    for each in (folder, run_folder):
        values = flatten_values(asdict(RunRecord.read(each).evaluation))
        results.append({name: value for name, value in values.items() if value is not None})
    unlike = unlike_values(*results)
    # An earlier version may not know all of them
    is_other = any(name in results[0] and name in results[1] for name in unlike)
    return [name for name in names if name != "record.json" or is_other]
