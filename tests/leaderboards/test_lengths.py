"""Which runs are one system tested at several lengths, what is drawn of them, and that the same records repeat it."""

import csv
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.run_records import changed, measured, record

from longsumbench.core import Cut, DatasetSettings, FitReport, Truncation
from longsumbench.corpora.probe import probe
from longsumbench.leaderboards import table as leaderboard
from longsumbench.leaderboards.lengths import (
    FACT_PANELS,
    draw_lengths,
    in_thousands,
    lengths_csv,
    systems_at_lengths,
    title_of,
)
from longsumbench.leaderboards.seed_groups import LEARNED, NO_INTERVAL, NOT_LEARNED
from longsumbench.leaderboards.significance import comparable_rows
from longsumbench.leaderboards.table import Table
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.fact_recall import FactRecall
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results


def run_at(
    model: str,
    mean: float,
    length: int,
    seen: float = 100,
    train: int | None = 1024,
    **changes: Any,
) -> RunRecord:
    """A run that was trained on reports of `train` tokens at most, and stated `mean` percent of longer ones' facts."""
    options = changes.pop("options", {})
    settings = DatasetSettings("probe", document_length=length, train_length=train, **options)
    measures = measured(dict.fromkeys(("fact_recall", *FACT_PANELS), float(mean)), below=4, above=2)
    measures |= measured({"fact_recall_chance": 4.2})
    made = {
        "run_id": f"{model}{length}{changes.get('seed', 1)}000000000000"[:12],
        "texts": {"examples": {"train": 9_000}, **probe.probe_inputs(settings)},
        "source": Truncation(1000, 900, (Cut("num_snippets", round(1000 - 10 * seen), 0),)),
        "fit": FitReport(steps=300),
        "measures": measures,
        "fingerprint": f"f{length}",
        "dataset": "probe",
        "seed": 1,
    }
    return record(model, mean, **{**made, **changes})


def test_measures_are_those_of_the_metric() -> None:
    """What is drawn is measured."""
    assert set(FACT_PANELS) <= set(FactRecall.columns)


def test_runs_of_one_training_are_one_system() -> None:
    """By the lengths they were tested at; a length's seeds are averaged."""
    records = [
        run_at("ea", 90, 1024),
        run_at("ea", 50, 4096, seed=1),
        run_at("ea", 60, 4096, seed=2),
        run_at("trunc", 20, 1024, train=None),  # which is trained on the same reports
        run_at("trunc", 10, 65536, seen=1.5),
    ]
    random.Random(3).shuffle(records)
    ea, trunc = systems_at_lengths(records)
    assert (ea.label, ea.trained, list(ea.tested)) == ("ea", 1024, [1024, 4096])
    assert ea.point("fact_recall_silent", 4096) == Estimate(55, *NO_INTERVAL)
    assert (trunc.label, list(trunc.tested)) == ("trunc", [1024, 65536])
    assert trunc.point("fact_recall_single", 65536) == Estimate(10, 6, 12)
    assert trunc.seen(65536) == pytest.approx(1.5)
    assert (trunc.is_cut(65536), trunc.is_cut(1024)) == (True, False)


def test_who_is_not_drawn() -> None:
    """One length, other training texts, other options, other settings, oracles, baselines, other datasets: no line."""
    base = run_at("ea", 90, 1024)
    recipe = {"model": {}, "train": {"batch_size": 8}}
    for other in (
        run_at("ea", 50, 1024, seed=2),
        run_at("ea", 50, 4096, train=4096),
        run_at("ea", 50, 4096, train=None),
        run_at("ea", 50, 4096, options={"sources": 4}),
        run_at("ea", 50, 4096, variant="num_snippets=9"),
        run_at("ea", 50, 4096, config=recipe),
        run_at("ea", 50, 4096, oracle=True),
        run_at("ea", 50, 4096, fit=FitReport()),
        run_at("ea", 50, 4096, measures={}),
        run_at("ea", 50, 4096, texts={"examples": {"train": 60}}),
        run_at("ea", 50, 4096, split="validation"),
    ):
        assert systems_at_lengths([base, other]) == ()
    assert systems_at_lengths([base, run_at("ea", 50, 4096)])


def test_numbers_by_hand() -> None:
    """A row a system and length in the CSV, with what was seen."""
    found = systems_at_lengths(
        [
            run_at("ea", 90, 1024),
            run_at("ea", 50, 65536),
            run_at("trunc", 20, 1024),
            run_at("trunc", 4, 65536, seen=1),
        ]
    )
    rows = list(csv.DictReader(io.StringIO(lengths_csv(found))))
    assert [
        (row["system"], row["train_length"], row["document_length"], row["source_seen"])
        for row in rows
    ] == [
        ("ea", "1024", "1024", "100.0"),
        ("ea", "1024", "65536", "100.0"),
        ("trunc", "1024", "1024", "100.0"),
        ("trunc", "1024", "65536", "1.0"),
    ]
    assert (rows[1]["fact_recall_relayed"], rows[1]["fact_recall_relayed_lo"], rows[1]["n"]) == (
        "50.0",
        "46.0",
        "20",
    )
    assert list(map(in_thousands, (300, 1024, 1536, 2000, 65536, 2**20))) == [
        "300",
        "1k",
        "1.5k",
        "2k",
        "64k",
        "1M",
    ]


def picture(records: Sequence[RunRecord]) -> bytes:
    found = systems_at_lengths(records)
    return draw_lengths(title_of("probe", found), found)


def test_beside_the_table(tmp_path: Path) -> None:
    """Picture and CSV exist while runs are in several blocks of the table, and are removed after that."""
    results = Results(tmp_path)
    runs = [run_at("ea", 90, 1024), run_at("ea", 50, 65536)]
    for run in runs:
        run.write(results.run_folder(run))
    table = leaderboard.update_table(results, "probe")
    folder = tmp_path / "leaderboard"
    assert table.pictures() == ["probe-lengths.png"]
    assert "trained on 1k tokens at most](probe-lengths.png)" in (
        folder / "probe.md"
    ).read_text().replace(")]", "]")
    assert (folder / "probe-lengths.png").read_bytes() == picture(runs)
    assert (folder / "probe-lengths.csv").read_text() == lengths_csv(systems_at_lengths(runs))
    (results.run_folder(runs[0]) / "record.json").unlink()
    assert leaderboard.update_table(results, "probe").pictures() == []
    assert not list(folder.glob("probe-lengths*"))
    assert Table("probe", comparable_rows(runs)).at_lengths()


def test_pictures_are_drawn_when_the_numbers_change_or_one_is_missing(tmp_path: Path) -> None:
    """The same table does not draw them again; a deleted picture comes back, and so does that of other numbers."""
    results, drawn = Results(tmp_path), tmp_path / "leaderboard" / "probe-lengths.png"
    runs = [run_at("ea", 90, 1024), run_at("ea", 50, 65536)]
    for run in runs:
        run.write(results.run_folder(run))
    leaderboard.update_table(results, "probe")
    drawn.write_bytes(b"kept")
    (tmp_path / "leaderboard" / "probe.md").unlink()
    leaderboard.update_table(results, "probe")
    assert (drawn.read_bytes(), (tmp_path / "leaderboard" / "probe.md").is_file()) == (
        b"kept",
        True,
    )
    drawn.unlink()
    leaderboard.update_table(results, "probe")
    assert drawn.read_bytes() == picture(runs)
    runs[1] = changed(runs[1], measures=run_at("ea", 40, 65536).evaluation.measures)
    runs[1].write(results.run_folder(runs[1]))
    leaderboard.update_table(results, "probe")
    assert drawn.read_bytes() == picture(runs)


def test_whether_a_system_learned_is_judged_on_the_shortest_texts() -> None:
    """One that learned and loses the facts of long texts has learned; one at chance on short texts has not."""
    records = [run_at(model, 0, length) for model in ("ea", "trunc") for length in (1024, 65536)]
    right = {("ea", 1024): 0.9, ("ea", 65536): 0.05, ("trunc", 1024): 0.05, ("trunc", 65536): 0.9}
    scores = {
        run.run_id: pd.DataFrame(
            {"fact_recall": right[run.key.model, length], "fact_recall_chance": 0.042},
            index=range(20),
        )
        for run, length in zip(records, (1024, 65536) * 2, strict=True)
    }
    assert {
        system.model: system.learned.word for system in systems_at_lengths(records, scores)
    } == {
        "ea": LEARNED,
        "trunc": NOT_LEARNED,
    }
