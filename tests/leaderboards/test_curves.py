"""Which runs form a curve, the values of its points, and the errors if there is no curve."""

from typing import Any

import pytest
from support.swept_runs import baseline, trained

from longsumbench.errors import UsageError
from longsumbench.leaderboards.curves import Curve, SweepCurves, build_sweep
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord


def sweep(records: list[RunRecord], *words: str) -> SweepCurves:
    return build_sweep("arxiv", records, words)


def means(curve: Curve) -> dict[tuple[str, ...], float]:
    return {place: point.means["rougeLsum"].mean for place, point in curve.points.items()}


def curves(found: SweepCurves) -> dict[str, dict[tuple[str, ...], float]]:
    return {curve.label: means(curve) for curve in found.groups[0].curves}


def error(records: list[RunRecord], *words: str) -> str:
    with pytest.raises(UsageError) as caught:
        sweep(records, *words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


PAGES = [
    trained("pagesum", 20 + place, page_size=size) for place, size in enumerate((1024, 128, 512))
]


def test_a_curve_by_hand() -> None:
    """Runs that differ only in the page size are a curve, by size; systems without one are reference lines."""
    found = sweep(
        [*PAGES, trained("trunc", 18), baseline("lead", 30), baseline("oracle", 45)], "page_size"
    )
    assert found.keys == ("model.page_size",)
    (group,) = found.groups
    assert curves(found) == {"pagesum": {("128",): 21, ("512",): 22, ("1024",): 20}}
    assert group.curves[0].points["128",].means["rougeLsum"] == Estimate(21, 20, 21.6)
    assert [(one.label, means(one), one.representative.oracle) for one in group.references] == [
        ("lead", {("",): 30}, False),
        ("oracle", {("",): 45}, True),
        ("trunc", {("",): 18}, False),
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"split": "validation"},
        {"signature": "other"},
        {"locality": "document"},
        {"train": {"learning_rate": 0.5}},
    ],
)
def test_all_else_is_equal(changes: dict[str, Any]) -> None:
    """A run that was scored, trained or decoded otherwise continues no curve."""
    records = [*PAGES[:2], trained("pagesum", 40, page_size=2048, **changes)]
    found = sweep(records, "page_size")
    assert [len(curve.points) for group in found.groups for curve in group.curves] == [2, 1]


def test_the_group_of_wanted_runs_is_drawn() -> None:
    """Though another is larger; not if nothing varies in it."""
    longer = [trained("pagesum", 30, signature="a", page_size=size) for size in (128, 256)]
    other = trained("pagesum", 30, signature="b", page_size=128)
    records = [*PAGES, *longer, other]
    for wanted, sizes in ((longer[:1], [2, 3, 1]), ([other], [3, 2, 1]), ([], [3, 2, 1])):
        found = build_sweep(
            "arxiv", records, ["page_size"], run_ids=[record.run_id for record in wanted]
        )
        assert [len(group.curves[0].points) for group in found.groups] == sizes


def test_two_settings() -> None:
    """A point has a value of each setting, and "" for a setting that the system does not have."""
    records = [trained("seal", a + b, extractive=a, segment=b) for a in (10, 20) for b in (1, 2)]
    records += [trained("ea", 5, extractive=10), baseline("lead", 3)]
    found = sweep(records, "segment", "extractive")
    assert curves(found) == {
        "seal": {("1", "10"): 11, ("1", "20"): 21, ("2", "10"): 12, ("2", "20"): 22},
        "ea": {("", "10"): 5},
    }
    assert found.values(1) == ["10", "20"]


def test_errors_name_what_varies() -> None:
    """An unknown setting, one that is the same in all runs, a seed, three settings, the same twice: one line each."""
    records = [*PAGES, trained("ea", 3, page_size=9), trained("ea", 3, seed=2, page_size=9)]
    vary = "comparable runs differ in: model.page_size"
    assert error(records, "page_siz") == (
        "--against page_siz: no run on arxiv has this setting, or it affects no outcome (did you mean 'page_size'?); "
        + vary
    )
    constant = "no two comparable runs on arxiv differ only in decode.num_beams; " + vary
    assert (
        error(records, "decode.num_beams") == error(records, "page_size", "num_beams") == constant
    )
    assert error(records, "seed") == f"--against seed: a curve is the mean over seeds; {vary}"
    assert error(records, "page_size", "model.page_size").startswith(
        "--against model.page_size is given twice"
    )
    assert error(records[:1], "page_size").endswith("comparable runs differ in no single setting")
