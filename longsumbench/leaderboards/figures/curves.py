"""The curves of a sweep beside the leaderboard: score with its interval against a setting, a line a system.

    Results --update--> <dataset>-<setting>[-<second>].csv, .png, .svg

From records alone. The same records give the same bytes, with the same release of matplotlib.
"""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from longsumbench.cache.locks import exclusive_lock
from longsumbench.errors import UsageError
from longsumbench.leaderboards.curves import Curve, Group, SweepCurves, format_value, short_name, sweep_of
from longsumbench.leaderboards.figures.curves_layout import layout_of
from longsumbench.leaderboards.figures.curves_picture import draw_layout
from longsumbench.leaderboards.significance import scores_at_hand
from longsumbench.report.figures import write_pictures
from longsumbench.runs.record import Results, source_seen

_DECIMALS = 4  # of numbers in the CSV


def update_curves(
    results: Results,
    dataset: str,
    words: Sequence[str],
    kind: str | None = None,
    required: bool = True,
    wanted: Collection[str] = (),
) -> list[Path]:
    """Write the curves of all finished runs on a dataset against one or two settings; return the files.

    `leaderboard/<dataset>-<setting>[-<second>].csv`, `.png` and `.svg`; the pictures of another number than the one by
    which runs are ranked have its name behind. Jobs that finish at the same time take turns.

    Args:
        results: where the runs are.
        dataset: its name.
        words: the settings, as "model.page_size"; "model." may be left out.
        kind: the number that is drawn: a type of ROUGE, or a measure; None: the one by which runs are ranked.
        required: whether it is an error that there is nothing to draw; otherwise, of two settings, the one in which
            runs differ all else being equal is drawn alone, and without one nothing is written.
        wanted: ids of the runs to be drawn, where not all may stand in one picture; none: as many as may.

    Raises:
        UsageError: there is nothing to draw, or an unknown setting or number.
    """
    with exclusive_lock(results.root / f".leaderboard-{dataset}.lock"):
        records = list(results.records(dataset))
        for chosen in [words] if required or len(words) == 1 else [words, *([word] for word in words)]:
            try:
                sweep = sweep_of(dataset, records, chosen, lambda record: scores_at_hand(results, record), wanted)
                break
            except UsageError:
                if required:
                    raise
        else:
            return []
        drawn = kind or sweep.ranked_by()
        images = draw_layout(layout_of(sweep, drawn))
        name = file_name(sweep)
        pictured = name if drawn == sweep.ranked_by() else f"{name}-{drawn}"
        contents: dict[str, str | bytes] = {f"{name}.csv": sweep_csv(sweep)}
        contents |= {f"{pictured}.{suffix}": image for suffix, image in images.items()}
        return write_pictures(results.root / "leaderboard", contents)


def file_name(sweep: SweepCurves) -> str:
    """Return the name of a sweep's files without their endings; settings of the model stand without "model."."""
    return "-".join([sweep.dataset, *map(short_name, sweep.keys)])


def sweep_csv(sweep: SweepCurves) -> str:
    """Return a row for each system and place: all that was measured with its interval, what it cost, and whose runs.

    A system that stands beside several groups has all their numbers in `group`; the first group is drawn.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for group in sweep.groups:
        for curve in (*group.curves, *group.beside):
            for place, point in curve.points.items():
                ids = tuple(run.run_id for run in point.runs)
                groups.setdefault(ids, []).append(group.number)
                rows.setdefault(ids, _row(sweep, group, curve, place))
    values = [{"group": " ".join(map(str, groups[ids])), **row} for ids, row in rows.items()]
    rounded = [{k: round(v, _DECIMALS) if isinstance(v, float) else v for k, v in row.items()} for row in values]
    return pd.DataFrame(rounded, dtype=object).to_csv(index=False, lineterminator="\n")


def _row(sweep: SweepCurves, group: Group, curve: Curve, place: Sequence[str]) -> dict[str, Any]:
    point = curve.points[tuple(place)]
    first = point.runs[0]
    row: dict[str, Any] = {"system": curve.label, "model": first.model}
    row |= {short_name(key): format_value(value) for key, value in zip(sweep.keys, place, strict=True)}
    row |= {"oracle": str(first.oracle).lower(), "split": first.split, "n": first.n}
    row["seeds"] = " ".join(str(run.seed) for run in point.runs if run.seed is not None)
    for kind in sweep.kinds():
        mean, low, high = point.numbers.get(kind, (None, None, None))
        row |= {kind: mean, f"{kind}_lo": low, f"{kind}_hi": high}
    row["interval"] = point.interval
    row["train_seconds"] = _mean(run.fit["seconds"] for run in point.runs if run.fit["steps"])
    row["tokens_per_second"] = _mean(run.decode_tokens_per_second for run in point.runs)
    row["source_seen"] = _mean(source_seen(run) for run in point.runs)
    row["train_steps"] = " ".join(dict.fromkeys(str(run.fit["steps"]) for run in point.runs))
    row["run_ids"] = " ".join(run.run_id for run in point.runs)
    row["repeated"] = " ".join(run.run_id for run in point.repeated)
    row["compared"] = ". ".join(group.told)
    return row


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
