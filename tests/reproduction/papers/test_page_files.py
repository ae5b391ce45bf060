"""The files of a table: Markdown, CSV, JSON and pictures, the same bytes for the same runs."""

import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support.paper_tables import runs_page, toy_paper_table
from support.run_records import record

from longsumbench.cli.main import main
from longsumbench.errors import DataError
from longsumbench.runs.record import StepSeconds
from longsumbench.runs.results import Results
from longsumbench_reproduction.papers.page_files import PaperReport, write_page
from longsumbench_reproduction.papers.page_model import Job, Page, PaperPageFile, read_written
from longsumbench_reproduction.papers.paper_tables import PaperRow
from longsumbench_reproduction.papers.run_planning import plan_paper_table


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """The rows Lead and Random; the run of Lead is finished and took 90 seconds."""
    paper_table = toy_paper_table(
        rows={"Lead": PaperRow("model=lead"), "Random": PaperRow("model=random")},
        scales={"probe": "seed=1"},
        not_given=("The paper does not give *the seed*.",),
        notes=("A note.",),
    )
    planned = plan_paper_table(paper_table, ["seed=2"], Results(tmp_path))
    made = record("lead", 30.0, timings=StepSeconds(total=90.0))
    lead, random = planned.rows
    return replace(planned, rows=(lead._replace(records=(made,)), random))


def test_the_markdown_page(job: Job, tmp_path: Path) -> None:
    """Title, paper, command and state; verdicts, picture and tables; then what differs, the runs and other notes."""
    path = write_page(job, runs_page(job))[0]
    text = path.read_text()
    expected = """
# TOY, Table 1: Lead and Random
Nobody 2020, TOY, Table 1.
[All claims of the papers](index.md)

    longsumbench paper toy-table1 scale=probe seed=2
Typed: seed=2 (instead of seed=1).
1 of 2 runs finished.
Missing: Random on Toys. The same command, without --no-run, continues.
## What the paper claims
| Lead > Random
| Lead leads (§1)
+4.25 (+1.50 to +7.00)
&lt; 0.001 |   +12.5 | 8 examples, 3 seeds
![TOY, Table 1: Lead and Random](toy-table1-a.png)
## Rows
| Lead   | Toys      | lead00000000 |
## What differs from the paper
* Other texts: &lt;toys>.
## Runs
* Made on an unknown machine, in 1 min 30 s.
* Lead on Toys: [lead0000 (1 min 30 s)](../runs/arxiv/lead/lead00000000/)
## What the paper does not give
* The paper does not give \\*the seed\\*.
## Notes
"""
    place = 0
    for part in filter(None, expected.splitlines()):
        place = text.index(part, place) + len(part)


def test_the_same_runs_give_the_same_files(job: Job, tmp_path: Path) -> None:
    """Byte for byte, also in another folder."""
    first = {path.name: path.read_bytes() for path in write_page(job, runs_page(job))}
    moved = replace(job, results=Results(tmp_path / "other"))
    assert first == {path.name: path.read_bytes() for path in write_page(moved, runs_page(moved))}
    assert set(first) == {f"toy-table1{end}" for end in (".md", ".csv", ".json", "-a.png")}


def test_the_json_file_says_what_the_files_show(job: Job, tmp_path: Path) -> None:
    """Scale, words, runs, missing runs, seconds and verdicts are read back; a damaged file is an error of one line."""
    write_page(job, runs_page(job))
    verdicts = runs_page(job).verdicts
    expected = PaperPageFile(
        "toy-table1", "probe", ("seed=2",), {"lead00000000": 90.0}, ("Random on Toys",), verdicts
    )
    assert read_written(Results(tmp_path), "toy-table1") == expected
    assert read_written(Results(tmp_path), "toy-table2") is None
    (tmp_path / "papers" / "toy-table1.json").write_text("{}")
    with pytest.raises(DataError, match="the same `longsumbench paper toy-table1` writes it again"):
        read_written(Results(tmp_path), "toy-table1")


def test_files_of_an_earlier_page_are_deleted(job: Job, tmp_path: Path) -> None:
    """A page without pictures and numbers leaves none of an earlier one; files of other tables stay."""
    write_page(job, runs_page(job))
    (tmp_path / "papers" / "toy-table11.md").write_text("")
    write_page(job, Page(numbers=pd.DataFrame()))
    names = {path.name for path in (tmp_path / "papers").iterdir()}
    assert names == {"toy-table1.md", "toy-table1.json", "toy-table11.md"}


def test_folders_of_this_machine_are_not_written(job: Job, tmp_path: Path) -> None:
    """Paths of texts become FOLDER, other folders their last name; names of the hub stay."""
    model = tmp_path / "models" / "bert"
    model.mkdir(parents=True)
    words = (f"path.toys={tmp_path}", f"bert={model}", "encoder=google/bert")
    write_page(replace(job, words=words), runs_page(job))
    found = read_written(Results(tmp_path), "toy-table1")
    assert found is not None
    assert found.words == ("path.toys=FOLDER", "bert=bert", "encoder=google/bert")
    texts = [path.read_bytes() for path in (tmp_path / "papers").iterdir()]
    assert not any(str(tmp_path).encode() in text for text in texts)


def test_the_terminal_shows_tables_verdicts_and_missing_runs(job: Job) -> None:
    """The same content as the page, without the notes and the claims that were not tested, which are counted."""
    text = PaperReport(job, runs_page(job)).render()
    assert text.index("reproduced") < text.index("lead00000000")
    assert "Lead > Oracle" not in text
    assert "1 claim not tested; the page has the reasons." in text
    for part in ("TOY, Table 1", "Rows", "Typed: seed=2", "Missing: Random on Toys."):
        assert part in text


def test_a_packed_run_is_linked_by_the_index_of_its_bundle(job: Job) -> None:
    """No page links to a folder that was deleted after packing."""
    (run,) = job.rows[0].finished
    run.write(job.results.run_folder(run))
    assert main(["runs", "pack", "--results-dir", str(job.results.root)]) == 0
    shutil.rmtree(job.results.root / "runs")
    text = write_page(job, runs_page(job))[0].read_text()
    assert "* Lead on Toys: [lead0000 (1 min 30 s)](../bundles/arxiv.csv)" in text
    assert "../runs/" not in text
