"""benchmarks/gpu.py runs anywhere with tiny networks, so that whoever has a GPU can rely on it."""

import csv
import sys
from pathlib import Path

import gpu
import pytest


def rows_of(folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str) -> list[dict[str, str]]:
    """Run the benchmark in this process on the CPU; return the rows of its CSV file."""
    path = folder / "gpu.csv"
    tiny = ["--tiny", "--device", "cpu", "--seconds", "0.01", "--csv", str(path)]
    monkeypatch.setattr(sys, "argv", ["gpu.py", *tiny, *words])
    gpu.main()
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_network_trains_and_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each network and its LED train in both precisions and write in both ways, without an error."""
    rows = rows_of(tmp_path, monkeypatch)
    assert [row["error"] for row in rows if row["error"]] == []
    works = [
        ("train", "bfloat16"),
        ("train", "float32"),
        ("greedy", "float32"),
        ("beam 2", "float32"),
    ]
    networks = [name for case in gpu.CASES for name in (case, f"LED as {case}")]
    assert [(row["network"], row["work"], row["precision"]) for row in rows] == [
        (name, *work) for name in networks for work in works
    ]
    for row in rows:
        if row["work"] == "train":
            case = gpu.CASES[row["network"].removeprefix("LED as ")].tiny()
            assert float(row["tokens/s"]) * float(row["ms"]) / 1e3 == pytest.approx(
                case.examples * case.units[0] * case.units[1]
            )
            assert float(row["MFU"]) > 0
