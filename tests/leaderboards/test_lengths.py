"""Which runs are one system tested at several lengths, what is drawn of them, and that the same records repeat it."""

import csv
import io
import random
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.run_records import measured, record

from longsumbench.core import Cut, DatasetSettings, FitReport, Truncation
from longsumbench.corpora.probe import probe
from longsumbench.leaderboards.lengths import systems_at_lengths
from longsumbench.leaderboards.seed_groups import LEARNED, NO_INTERVAL, NOT_LEARNED
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import TableView, update_table
from longsumbench.views.lengths import FACT_PANELS, in_thousands, lengths_csv, lengths_figure


def run_at(
    model: str,
    mean: float,
    length: int,
    seen: float = 100,
    train: int | None = 1024,
    **changes: Any,
) -> RunRecord:
    """A run that was trained on reports of `train` tokens at most, and stated `mean` percent of longer ones' facts."""
    settings = DatasetSettings("probe", document_length=length, train_length=train)
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


@pytest.mark.parametrize(
    "changes",
    [
        {"length": 1024, "seed": 2},
        {"train": 4096},
        {"variant": "num_snippets=9"},
        {"oracle": True},
        {"fit": FitReport()},
        {"texts": {"examples": {"train": 60}}},
    ],
)
def test_who_is_not_drawn(changes: dict[str, Any]) -> None:
    """One length, other training texts, options or settings, oracles, baselines, other datasets: no line."""
    other = run_at("ea", 50, **{"length": 4096, **changes})
    assert systems_at_lengths([run_at("ea", 90, 1024), other]) == ()


def test_numbers_by_hand() -> None:
    """The CSV has a row for a system and length, with what was seen; the figure has it at its logarithm, to the base 2."""
    systems = systems_at_lengths(
        [
            run_at("ea", 90, 1024),
            run_at("ea", 60, 65536),
            run_at("trunc", 20, 1024),
            run_at("trunc", 4, 65536, seen=1),
        ]
    )
    rows = list(csv.DictReader(io.StringIO(lengths_csv(systems))))
    names = ("system", "train_length", "document_length", "source_seen", "fact_recall_relayed_lo")
    assert [" ".join(row[name] for name in names) for row in rows] == [
        "ea 1024 1024 100.0 86.0",
        "ea 1024 65536 100.0 56.0",
        "trunc 1024 1024 100.0 16.0",
        "trunc 1024 65536 1.0 0.0",
    ]
    figure = lengths_figure("about", systems)
    silent = figure.rows[0].panels[-1]
    assert silent.ticks == {10: "1k", 16: "64k"}
    ea, trunc = silent.series
    assert ea.points == {10: Estimate(90, 86, 92), 16: Estimate(60, 56, 62)}
    assert (ea.hollow, trunc.hollow) == (set(), {16})
    assert "Hollow: less than 99 % of the text is seen." in figure.notes[0]


def test_lengths_are_short() -> None:
    """Thousands and millions are 1,024 tokens, or 1,000 if they are round."""
    names = [in_thousands(length) for length in (300, 1024, 1536, 2000, 65536, 2**20)]
    assert names == ["300", "1k", "1.5k", "2k", "64k", "1M"]


def test_files_of_a_table(tmp_path: Path) -> None:
    """Picture and CSV exist while systems have several lengths; the picture is drawn again if numbers changed."""
    results, folder = Results(tmp_path), tmp_path / "leaderboard"
    drawn = folder / "probe-lengths.png"
    runs = [run_at("ea", 90, 1024), run_at("ea", 50, 65536)]

    def write_runs() -> TableView:
        for run in runs:
            run.write(results.run_folder(run))
        return TableView(update_table(results, "probe"))

    assert write_runs().picture_files() == ["probe-lengths.png"]
    assert "trained on 1k tokens at most)](probe-lengths.png)" in (folder / "probe.md").read_text()
    assert (folder / "probe-lengths.csv").read_text() == lengths_csv(systems_at_lengths(runs))
    drawn.write_bytes(b"kept")
    write_runs()
    assert drawn.read_bytes() == b"kept"
    runs[1] = run_at("ea", 40, 65536)
    write_runs()
    assert drawn.read_bytes() != b"kept"
    (results.run_folder(runs[0]) / "record.json").unlink()
    assert TableView(update_table(results, "probe")).picture_files() == []
    assert not list(folder.glob("probe-lengths*"))


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
