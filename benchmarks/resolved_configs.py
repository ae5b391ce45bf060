"""The resolved configuration and run id of every model × dataset × scale × experiment.

    python benchmarks/resolved_configs.py FILE [--compare OLD] [--processes 2]

Writes one JSON line per combination and point. With `--compare`, prints each line that differs from those of OLD, and
exits with 1 if there is one. "-" means that nothing was typed. A combination that is refused has its error message
instead. No dataset is read: the run ids have a fixed fingerprint. Takes about 20 minutes on two cores.
"""

import argparse
import copy
import gc
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr
from dataclasses import asdict
from difflib import unified_diff
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from longsumbench.conf import CONF
from longsumbench.core import registry
from longsumbench.errors import SuiteError
from longsumbench.runs.plan import Planned, plan
from longsumbench.runs.run_id import run_spec_on

FINGERPRINT = "0" * 12  # of no dataset
NOTHING = "-"
EXPERIMENT = "experiment"


def main() -> None:
    """Write the file; compare it with an earlier one."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="where the lines are written")
    parser.add_argument("--compare", type=Path, metavar="OLD", help="the lines of an earlier checkout")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="processes that share the work")
    options = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    combinations = [dict(zip(choices(), chosen, strict=True)) for chosen in product(*choices().values())]
    with ProcessPoolExecutor(options.processes, initializer=read_once) as pool:
        found = pool.map(lines, combinations, chunksize=20)
        written = sorted(line for lines_of_one in found for line in lines_of_one)
    options.file.write_text("\n".join([*written, ""]), encoding="utf-8")
    print(f"{len(combinations)} combinations, {len(written)} points and errors")
    if options.compare is not None:
        before = options.compare.read_text(encoding="utf-8").splitlines()
        differing = list(unified_diff(before, written, str(options.compare), str(options.file), n=0, lineterm=""))
        print("\n".join([*differing, f"{'different' if differing else 'equal'}"]))
        sys.exit(bool(differing))


def read_once() -> None:
    """Read every YAML file and the entry points once, which halves the time; collect no garbage of libraries."""
    load = OmegaConf.load
    known: dict[str, Any] = {}

    def remembered(file: Any) -> Any:
        name = str(getattr(file, "name", file))
        known[name] = known.get(name) or load(file)
        return copy.deepcopy(known[name])

    OmegaConf.load = remembered  # type: ignore[assignment, method-assign]
    vars(registry)["entry_points"] = cache(vars(registry)["entry_points"])
    gc.freeze()


def choices() -> dict[str, list[str]]:
    """Return group → the names that can be typed."""
    files = {group: sorted(path.stem for path in (CONF / group).glob("*.yaml")) for group in ("scale", EXPERIMENT)}
    tables = {"model": sorted(registry.systems.built_in), "dataset": sorted(registry.corpora.built_in)}
    return {group: [NOTHING, *names] for group, names in {**tables, **files}.items()}


def lines(chosen: dict[str, str]) -> list[str]:
    """Return the lines of a combination: group → name."""
    return [json.dumps({**chosen, **point}, sort_keys=True, ensure_ascii=False) for point in points(chosen)]


def points(chosen: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield what becomes of a combination: its points, or its error."""
    words = [f"{group}={name}" for group, name in chosen.items() if name != NOTHING]
    experiment = CONF / EXPERIMENT / f"{chosen[EXPERIMENT]}.yaml"
    sweep = experiment.is_file() and "\nsweep:" in experiment.read_text(encoding="utf-8")
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stderr(nowhere):
            planned = plan(words, sweep=sweep)
    except SuiteError as error:
        yield {"error": f"{type(error).__name__}: {error}"}
        return
    for one in planned:
        yield {"point": one.name, "variant": one.variant, "config": asdict(one.config), "run_id": run_id(one)}


def run_id(planned: Planned) -> str:
    """Return the run id that a point has on texts with a fixed fingerprint."""
    config = planned.config
    try:
        system = registry.systems.load(config.model.name)(config.model)
        metrics = registry.corpora.load(str(config.dataset.reader)).metrics
        return run_spec_on(config, system, FINGERPRINT, metrics).run_id
    except SuiteError as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
