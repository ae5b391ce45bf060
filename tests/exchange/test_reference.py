"""The runs behind verdicts that were stated before: their outputs are published, and give their scores again."""

from pathlib import Path

import pytest

from longsumbench.exchange.verify import verify_runs
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_model import read_all_written

REFERENCE = Results(Path(__file__).parents[2] / "results/reference")


@pytest.mark.slow
def test_the_outputs_behind_stated_verdicts_give_their_scores() -> None:
    """Each run is verified from its outputs, its settings and its texts, which are generated."""
    names = dict[str, None]()
    for page in read_all_written(REFERENCE):
        for claim in page.counted:
            if claim.stated.endswith("run after it"):
                names |= dict.fromkeys(claim.runs.split())
    folders = list(map(REFERENCE.find, names))
    assert len(folders) >= 36
    assert all((folder / "predictions.jsonl").is_file() for folder in folders)
    assert {folder.name: lines for folder, lines in verify_runs(folders) if lines} == {}
