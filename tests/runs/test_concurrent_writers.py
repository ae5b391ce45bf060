"""Many processes that finish at once lose nothing."""

from pathlib import Path

import pytest
from support.processes import next_line, start_python
from support.run_records import record

from longsumbench.runs.results import Results
from longsumbench.views.leaderboard import update_table

UPDATERS = """
import os, sys
from dataclasses import replace
from pathlib import Path
from longsumbench.views.leaderboard import update_table
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

results, pattern, processes = Results(Path(sys.argv[1])), RunRecord.read(Path(sys.argv[2])), int(sys.argv[3])
for number in range(processes):
    if os.fork() == 0:
        sys.stdin.readline()
        for turn in range(2):
            made = replace(pattern, run_id=f"{number:02d}{turn}")
            made.write(results.run_folder(made))
            update_table(results, made.key.dataset)
        os._exit(0)
print("ready", flush=True)
print(sum(os.waitpid(-1, 0)[1] for _ in range(processes)))
"""


@pytest.fixture
def pattern(tmp_path: Path) -> Path:
    """The folder of a record that processes make theirs of."""
    record("lead", 20.0).write(tmp_path / "pattern")
    return tmp_path / "pattern"


def test_the_last_table_holds_all(tmp_path: Path, pattern: Path) -> None:
    """Eight processes write runs and rebuild the table at once; when all have ended, the table holds every run."""
    results = Results(tmp_path / "results")
    process = start_python(UPDATERS, results.root, pattern, 8)
    assert next_line(process) == "ready"
    assert process.communicate()[0].strip() == "0"
    table = (results.root / "leaderboard" / "arxiv.csv").read_text().splitlines()
    column = table[0].split(",").index("run_id")
    assert {line.split(",")[column] for line in table[1:]} == {
        f"{n:02d}{turn}" for n in range(8) for turn in range(2)
    }
    update_table(results, "arxiv")
    assert (results.root / "leaderboard" / "arxiv.csv").read_text().splitlines() == table
