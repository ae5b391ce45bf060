"""Figures of evidence: the numbers behind them by hand, the page of made-up runs, and of runs of SEAL and PageSum."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.reproduction.paper_jobs import row_job, run_row
from support.run_records import changed, record
from support.toys import TINY_FOR_ALL, write_jsonl

from longsumbench.core import Evidence, Summary
from longsumbench.errors import DataError, UsageError
from longsumbench.runs.evidence import write_evidence
from longsumbench.runs.predictions import write_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.views.evidence.array_views import Selections, Weights
from longsumbench_reproduction.papers.evidence import (
    evidence_page,
    measure_examples,
    measure_view,
    strongest_units,
)
from longsumbench_reproduction.papers.page_model import (
    NOT_TESTED,
    ONE_SEED,
    REPRODUCED,
    TWO_SEEDS,
    Job,
)
from longsumbench_reproduction.papers.paper_tables import PaperClaim

Write = Callable[..., RunRecord]
STEADY = [[0.9, 0.8, 0.3, 0.2], [0.1, 0.2, 0.7, 0.8]]  # best units 0 0 1 1
EARLY = [[0.9, 0.8, 0.7, 0.2], [0.1, 0.2, 0.3, 0.8]]  # best units 0 0 0 1
CLAIM = PaperClaim(orders=("same as the step before > as any other step",), on="same_best_unit")
FEW = PaperClaim(orders=("few pages > half of the steps",), on="few_units")


def test_selections_by_hand() -> None:
    """Of three segments one of two has another selection than the one before; how much of a unit counts nothing."""
    taken = np.array([[5, 0, 0], [3, 0, 0], [0, 2, 1]])
    measures = dict(measure_view(Selections("selected", taken, None, None, None)))
    assert measures == {"changed_selections": 0.5, "selected_units": pytest.approx(4 / 3)}
    alone = dict(measure_view(Selections("selected", taken[:1], None, None, None)))
    assert np.isnan(alone["changed_selections"])


def test_strongest_units_by_hand() -> None:
    """The strongest unit of a step has the highest known weight; a blank has the unit of the step before it."""
    values = np.array([[0.9, 0.1, 0.2], [0.1, 0.9, np.nan]])
    assert strongest_units(Weights("weight", "summary", values, None)) == [0, 1, 0]
    assert strongest_units(Weights("weight", "summary", values, ("A", " ", "b"))) == [0, 0, 0]


def weight_measures(values: Any) -> dict[str, float]:
    return dict(measure_view(Weights("weight", "reference", np.array(values), None)))


def test_weights_by_hand() -> None:
    """Best units 0 0 1 1: two of three steps have that of the step before; of the twelve pairs of steps, four do."""
    assert weight_measures(STEADY) == pytest.approx(
        {
            "best_weight": 0.8,
            "equal_weight": 0.5,
            "same_best_unit": 2 / 3,
            "same_best_unit_any_two": 1 / 3,
            "few_units": 0.0,  # 1 / Σ weight² is 1.2 to 1.7 of two units
        }
    )
    measures = weight_measures([[0.9], [0.1]])
    assert np.isnan([measures["same_best_unit"], measures["same_best_unit_any_two"]]).all()


@pytest.fixture
def finished(tmp_path: Path) -> Write:
    """Write a finished run with weights of its first examples; return its record."""

    def write(
        model: str = "looker",
        kept: int = 12,
        steps: str = "step",
        text: str = "About it.",
        mixed: bool = False,
    ) -> RunRecord:
        made = record(model, 30, command=("longsumbench", "run", "model=looker"), n=14)
        folder = tmp_path / "runs" / made.key.dataset / model / made.run_id
        made.write(folder)
        write_summaries(
            folder / "predictions.jsonl", [Summary(f"e{place}", text) for place in range(14)]
        )
        for place in range(kept):
            texts = {"unit": (text, "Two."), steps: tuple("abcd")}
            weights = np.array(EARLY if mixed and place % 2 else STEADY)
            evidence = Evidence({"weight": weights}, {"weight": ("unit", steps)}, texts)
            write_evidence(folder / "evidence", place, Summary(f"e{place}", "", evidence=evidence))
        return made

    return write


def job_of(
    results: Path,
    example: Any = 0,
    claims: Sequence[PaperClaim] = (CLAIM,),
    **runs: Any,
) -> Job:
    """Return a job with a run per row, or several."""
    rows = {label: run if isinstance(run, list) else [run] for label, run in runs.items()}
    options = {"example": example}
    return row_job("evidence", results, rows, options=options, claims=tuple(claims))


def test_page_of_weights(finished: Write, tmp_path: Path) -> None:
    """A picture per row, the numbers over all kept examples, a verdict on the claim."""
    page = evidence_page(job_of(tmp_path, "e2", PageSum=finished(steps="reference_step")))
    assert page.pictures["toy-table1-pagesum.png"].startswith(b"\x89PNG")
    example, numbers = page.blocks
    assert (example.notes, example.rows[0][2]) == ((), "e2")
    row = "PageSum | 12 | 80.0 ±0.0 | 50.0 ±0.0 | 66.7 ±0.0 | 33.3 ±0.0"
    assert " | ".join(numbers.rows[0][:6]) == row
    (verdict,) = page.verdicts
    assert (verdict.claim, verdict.difference) == (CLAIM.orders[0], pytest.approx(100 / 3))
    rows: Any = page.numbers.set_index(["kind", "measure"])
    assert float(rows.loc[("ours", "same_best_unit"), "value"]) == pytest.approx(66.6667)


def test_first_run_of_each_row(finished: Write, tmp_path: Path, without_rendering: None) -> None:
    """Of several seeds the first finished run is shown; the conditions name all."""
    runs = [changed(finished("one", kept=3), seed=0), changed(finished("two", kept=5), seed=1)]
    page = evidence_page(job_of(tmp_path, ROW=[None, *runs]))
    assert set(page.numbers["n"].dropna()) == {3}
    assert page.conditions[-1] == "Our numbers are means over 2 seeds."


def test_what_is_missing_is_named(finished: Write, tmp_path: Path) -> None:
    """A row without a run, one without outputs, and one without evidence: a sentence each, and no number."""
    record_only, dark = finished("gone", kept=0), finished("dark", kept=0)
    (tmp_path / "runs" / "arxiv" / "gone" / record_only.run_id / "predictions.jsonl").unlink()
    page = evidence_page(job_of(tmp_path, Dark=dark, Gone=record_only, Later=None))
    assert (page.pictures, page.numbers["outcome"].tolist()) == ({}, [NOT_TESTED])
    (block,) = page.blocks
    gone, later, kept_none = block.notes
    assert later == "Later: no run is finished."
    again = "the same `longsumbench run` command makes the run again"
    assert gone.startswith(f"Gone: predictions.jsonl missing; {again}")
    assert kept_none.startswith("Dark: dark (dark0000) kept no evidence")
    assert str(tmp_path) not in " ".join(block.notes)


def test_steps_of_the_reference_can_be_added(finished: Write, tmp_path: Path) -> None:
    """Where the row plans evidence of the reference and the run has that of its output, the page says what adds it."""
    page = evidence_page(job_of(tmp_path, PageSum=finished()))
    (note,) = page.blocks[0].notes
    assert note.endswith("longsumbench run model=looker decode.reference_evidence=true")


@pytest.mark.parametrize(
    ("number", "outcome"), [(1, ONE_SEED), (2, TWO_SEEDS), (3, REPRODUCED), (4, NOT_TESTED)]
)
def test_the_claim_is_tested_over_all_seeds(
    number: int, outcome: str, finished: Write, tmp_path: Path, without_rendering: None
) -> None:
    """One and two seeds decide nothing; with three, steps are steadier than any two steps; a missing run is named."""
    runs = [changed(finished(f"m{seed}", mixed=True), seed=seed) for seed in (1, 2, 3)]
    (verdict,) = evidence_page(job_of(tmp_path, ROW=[*runs, None][:number])).verdicts
    assert verdict.outcome == outcome
    if number > len(runs):
        assert verdict.reason == "runs of ROW missing: 1 of 4"
    else:
        assert (verdict.n, verdict.difference) == (12, pytest.approx(25))


def test_weights_on_few_units_by_hand() -> None:
    """Of five units, weights .9 and .8 on one are on few; equal weights of three units are not, nor those of all."""
    steps = np.array(
        [[0.9, 0.1, 0, 0, 0], [0.8, 0.05, 0.05, 0.05, 0.05], [1 / 3, 1 / 3, 1 / 3, 0, 0], [0.2] * 5]
    ).T
    assert weight_measures(steps)["few_units"] == 0.5


def test_few_units_are_compared_with_half_of_the_steps(
    finished: Write, tmp_path: Path, without_rendering: None
) -> None:
    """Weights that are on few units at no step are 50 points below half of the steps."""
    (verdict,) = evidence_page(job_of(tmp_path, claims=[FEW], ROW=finished())).verdicts
    assert (verdict.measure, verdict.difference) == ("few_units", -50)


def test_an_unknown_example_and_damaged_evidence_are_named(finished: Write, tmp_path: Path) -> None:
    """An example that no run summarized is wrong usage; damaged evidence is named with its file."""
    looker = finished()
    with pytest.raises(UsageError, match="summarized no example 'e20'"):
        evidence_page(job_of(tmp_path, "e20", PageSum=looker))
    folder = tmp_path / "runs" / "arxiv" / "looker" / looker.run_id / "evidence"
    (folder / "3.safetensors").write_bytes(b"?")
    with pytest.raises(DataError, match=r"evidence/3\.json: not the evidence"):
        measure_examples(folder)


@pytest.mark.parametrize(
    ("model", "words", "measure"),
    [
        ("seal", ["model.segment_length=6"], "changed_selections"),
        ("pagesum", ["model.init=random", "decode.reference_evidence=true"], "same_best_unit"),
    ],
)
def test_runs_of_the_systems(tmp_path: Path, model: str, words: list[str], measure: str) -> None:
    """SEAL's selections and PageSum's weights at the reference are shown as a run writes them."""
    from longsumbench.core import registry

    known = registry.systems.load(model).Config.__dataclass_fields__
    tiny = [f"model.{key}={value}" for key, value in TINY_FOR_ALL.items() if key in known]
    command = (
        f"model={model} dataset=jsonl dataset.path={write_jsonl(tmp_path / 'texts')} scale=tiny"
    )
    command += " score.resamples=100 train.max_steps=2 train.eval_steps=2 train.batch_size=8"
    record = run_row(tmp_path / "results", *command.split(), *tiny, *words)
    page = evidence_page(job_of(tmp_path / "results", 1, system=record))
    assert (len(page.pictures), measure in set(page.numbers["measure"])) == (1, True)
    assert page.blocks[0].notes == ()
