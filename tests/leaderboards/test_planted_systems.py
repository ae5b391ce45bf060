"""Outputs that say nothing about their sources are caught wherever runs are shown; good ones are not."""

import json
from pathlib import Path
from typing import Any

import pytest

import longsumbench
from longsumbench.corpora.probe.probe import reports
from longsumbench.leaderboards.seed_groups import DEPENDS, NOT_RANKED, Learned
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.results import Results

REPORTS = list(reports([128], seed=3, number=60))
REFERENCES = [list(report.references[0]) for report in REPORTS]
NEXT = REFERENCES[1:] + REFERENCES[:1]
OUTPUTS = {
    "constant": [REFERENCES[0]] * len(REPORTS),
    "form": NEXT,  # statements about the same sites, with facts of another report
    "half": [
        [*own[:3], *other[3:]] for own, other in zip(REFERENCES, NEXT, strict=True)
    ],  # half of the facts
    "whole": REFERENCES,
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generated reports as own texts: nothing knows their facts, so all is decided by ROUGE."""
    path = tmp_path_factory.mktemp("texts") / "reports.jsonl"
    rows = [
        {"id": report.id, "document": " ".join(report.sentences()), "summary": " ".join(reference)}
        for report, reference in zip(REPORTS, REFERENCES, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def results(texts: Path) -> Path:
    """The planted outputs as imported runs, and Random."""
    folder = texts.parent / "results"
    random: dict[str, Any] = {"model": {"name": "random", "length": 30}, "baselines": False}
    longsumbench.run(
        dataset={"name": "jsonl", "path": str(texts)}, results_dir=str(folder), **random
    )
    for name, outputs in OUTPUTS.items():
        path = texts.parent / f"{name}.txt"
        path.write_text(
            "".join(" ".join(sentences) + "\n" for sentences in outputs), encoding="utf-8"
        )
        settings: dict[str, Any] = {"results_dir": str(folder), "baselines": False}
        longsumbench.import_outputs(
            path, model=name, dataset={"name": "jsonl", "path": str(texts)}, **settings
        )
    return folder


def test_the_form_alone_is_not_learned(results: Path) -> None:
    """The form has a ROUGE-Lsum of 80 and gains nothing; half of the facts gain more in R-2 than Random."""
    (block,) = read_table(Results(results), "jsonl").comparable
    rows = {row.first.key.model: row for row in block.rows}
    learned: dict[str, Learned] = {name: row.learned for name, row in rows.items()}
    assert {name: row.word for name, row in learned.items()} == {
        "constant": NOT_RANKED,
        "form": NOT_RANKED,
        "half": DEPENDS,
        "whole": DEPENDS,
        "random": "",
    }
    assert rows["form"].numbers["rougeLsum"].mean > 75
    assert (
        (learned["form"].lift or 0)
        < 50
        < (learned["half"].lift or 0)
        < (learned["whole"].lift or 0)
    )
