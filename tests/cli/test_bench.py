"""`longsumbench bench`: its table, the ratios of an earlier run, an interrupt, and its cases, made tiny."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from longsumbench.cache.artifacts import CACHE_VARIABLE
from longsumbench.cli import bench
from longsumbench.cli.bench import Measurement
from longsumbench.cli.main import main
from longsumbench.errors import INTERRUPTED


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep ratios in a folder of the test."""
    monkeypatch.setenv(CACHE_VARIABLE, f"{tmp_path}")


def reading(ratio: float) -> Measurement:
    return Measurement("reading", "7 documents/s", "5 documents/s", ratio, "≥ 1")


def interrupted() -> Iterator[Measurement]:
    """Measure something, and be interrupted."""
    yield reading(1.75)
    raise KeyboardInterrupt


def test_ratios_are_shown_with_those_of_the_run_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first run has no earlier ratios; the second shows those of the first."""
    lines = []
    for ratio in (1.4, 1.5):
        monkeypatch.setattr(bench, "CASES", (lambda ratio=ratio: iter([reading(ratio)]),))
        assert main(["bench"]) == 0
        lines.append(capsys.readouterr().out.splitlines()[-1].split())
    values = ["reading", "7", "documents/s", "5", "documents/s"]
    assert lines == [[*values, "1.40", "≥", "1"], [*values, "1.50", "≥", "1", "1.4"]]


def test_what_was_measured_before_an_interrupt_is_shown_and_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C ends the command with a table of what was measured, which the next run is compared with."""
    monkeypatch.setattr(bench, "CASES", (interrupted,))
    assert [main(["bench"]), main(["bench"])] == [INTERRUPTED, INTERRUPTED]
    assert capsys.readouterr().out.splitlines()[-1].split()[-4:] == ["1.75", "≥", "1", "1.75"]


@pytest.mark.parametrize("case", bench.CASES)
def test_every_case_measures_something(
    case: Callable[[], Iterator[Measurement]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tiny texts and models, every case gives positive ratios under different names."""
    tiny = {"turns": 1, "pairs": 4, "sample": 2, "documents": 2, "points": 2, "width": 16, "page": 16}
    monkeypatch.setattr(bench, "CASE_SIZES", tiny)
    rows = list(case())
    assert len({row.what for row in rows}) == len(rows) > 0
    assert all(row.ratio > 0 for row in rows if row.what != "import longsumbench")
