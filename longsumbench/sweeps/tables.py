"""The tables of the datasets that a launch ran on: rebuilt when its points have run."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from longsumbench.formatting import escape_lines
from longsumbench.leaderboards.after_run import UpdatedTable
from longsumbench.leaderboards.curves_picture import update_curves
from longsumbench.leaderboards.table import update_table
from longsumbench.progress import phase
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.typed_overrides import swept_settings
from longsumbench.sweeps.sweep import Launch

_log = logging.getLogger(__name__)

_Show = Callable[[Sequence[UpdatedTable], Sequence[RunRecord]], None]  # is given tables, and the records of the points


@contextmanager
def updating_tables(launch: Launch, show: _Show = lambda *_: None) -> Iterator[None]:
    """Rebuild and show the tables of a launch's datasets after its points have run.

    Raises:
        PointsFailed: some points of a sweep failed.
        SuiteError: the only point failed, or nothing could begin.
    """
    try:
        yield
    except Exception:
        _update_tables(launch, (), show)  # of what was finished before
        raise
    if launch.table and _log.isEnabledFor(logging.INFO):
        print(escape_lines(f"\n{launch.table}\n"), file=sys.stderr)
    with phase("making the tables"):
        _update_tables(launch, swept_settings(launch.swept), show)
    launch.check_failed()


def _update_tables(launch: Launch, swept: Sequence[str], show: _Show) -> None:
    """Rebuild the tables of the datasets that a launch has finished runs on, and show its runs in them.

    Where one or two settings were swept over, scores are drawn against them.
    """
    ran, updated = {record.run_id for record in launch.finished}, []
    for root in sorted({point.config.results_dir for point in launch.points}):
        results = Results(Path(root).expanduser())
        for name in sorted({record.dataset for record in launch.finished} & set(results.datasets())):
            table = update_table(results, name, redraw=False)
            curves = update_curves(results, name, swept, required=False, run_ids=ran) if len(swept) in (1, 2) else []
            updated.append(UpdatedTable(table, results, tuple(curves)))
    if updated:
        show(updated, launch.records() or launch.finished)
