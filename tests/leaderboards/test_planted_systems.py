"""Outputs that say nothing about their sources are caught wherever runs are shown; good ones are not."""

import json
from pathlib import Path
from typing import Any

import longsumbench
from longsumbench.corpora.probe.probe import reports
from longsumbench.leaderboards.seed_groups import DEPENDS, NOT_RANKED
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


def test_the_form_alone_is_not_learned(tmp_path: Path) -> None:
    """The form has a ROUGE-Lsum of 80 and gains nothing; half of the facts gain more in R-2 than Random.

    The reports are read as the user's texts: nothing knows their facts, so all is decided by ROUGE.
    """
    path = tmp_path / "reports.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for report, reference in zip(REPORTS, REFERENCES, strict=True):
            row = {"document": " ".join(report.sentences()), "summary": " ".join(reference)}
            file.write(json.dumps({"id": report.id, **row}) + "\n")
    settings: dict[str, Any] = {
        "dataset": {"name": "jsonl", "path": str(path)},
        "results_dir": str(tmp_path / "results"),
        "baselines": False,
    }
    longsumbench.run(model={"name": "random", "length": 30}, **settings)
    for name, outputs in OUTPUTS.items():
        lines = [" ".join(sentences) for sentences in outputs]
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        longsumbench.import_outputs(tmp_path / name, model=name, **settings)
    (block,) = read_table(Results(tmp_path / "results"), "jsonl").comparable
    rows = {row.first.key.model: row for row in block.rows}
    assert {name: row.learned.word for name, row in rows.items()} == {
        "constant": NOT_RANKED,
        "form": NOT_RANKED,
        "half": DEPENDS,
        "whole": DEPENDS,
        "random": "",
    }
    assert rows["form"].numbers["rougeLsum"].mean > 75
    lifts: list[Any] = [rows[name].learned.lift for name in ("form", "half", "whole")]
    assert lifts == sorted(lifts)
    assert lifts[0] < 50 < lifts[1]
