"""The site of a results folder: what its pages show, link and leave out, and bad input."""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import Command
from support.json_files import write_json
from support.pages import BREAKOUT, HOSTILE, Reading, text_of
from support.run_records import changed, judged, record
from support.stored_runs import small_results, store

from longsumbench.errors import UsageError
from longsumbench.leaderboards.significance import Outcome, build_blocks
from longsumbench.runs.record import ImportedOutputs, RunRecord
from longsumbench.runs.results import Results
from longsumbench.site.build import write_site
from longsumbench.site.pages import Scatter, axis_ticks, page_name, plot_against_cost, show_block
from longsumbench.sweeps.state import FAILED, PointState, Sweep
from longsumbench.views.outcomes import describe_leader

SERVE = ["python", "-m", "http.server", "--directory"]
PRIVATE_TEXT = "the content of a private file"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return small_results(tmp_path / "results")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site of these results, which are next to it."""
    root = small_results(tmp_path_factory.mktemp("site") / "results")
    return write_site(Results(root), root.parent / "site").parent


def run_in(site: Path, model: str) -> RunRecord:
    """Return the first run of a model on arxiv."""
    records = Results(site.parent / "results").records("arxiv")
    return next(run for run in records if run.key.model == model)


def pages(folder: Path) -> Iterator[tuple[Path, Reading]]:
    for path in sorted(folder.rglob("*.html")):
        yield path, Reading(path.read_text())


def test_every_address_is_a_file_of_the_site(site: Path) -> None:
    """Pages link and load only files of the site, so they work from the disk; no address names a host."""
    count = 0
    for path, page in pages(site):
        for address in page.loaded:
            count += 1
            if not address.startswith(("#", "data:")):
                assert ":" not in address, address
                assert (path.parent / address.partition("#")[0]).is_file(), (path, address)
    assert count > 100
    files = "arxiv assets index.html meetings sweeps.html"
    assert sorted(path.name for path in site.iterdir()) == files.split()


def test_overview_has_real_systems_first(site: Path) -> None:
    """The dataset with released outputs comes before those of the suite's own systems; best systems are marked."""
    page = (site / "index.html").read_text()
    parts = ("Real systems", ">meetings</a></h3>", "Systems trained here", ">arxiv</a></h3>")
    places = [page.index(part) for part in parts]
    assert places == sorted(places)
    best = re.findall(r'<tr class="best"><th scope="row"><a[^>]*>([^<]*)', page)
    assert best == ["GPT-9", "seal"]
    assert "7 runs of 5 systems" in page  # GPT-9, lead, oracle, random, seal


def test_dataset_page_by_hand(site: Path) -> None:
    """Rows are in the order of the leaderboard and link their runs; only ranked rows have intervals and places."""
    page = (site / "arxiv" / "index.html").read_text()
    rows = re.findall(
        r"<tr.*?</tr>", page[page.index('id="table-1"') :].partition("</table>")[0], re.DOTALL
    )[1:]
    names = [re.findall(r'<th scope="row"><a[^>]*>([^<]*)', row)[0] for row in rows]
    assert names == ["seal", "lead", "random", "oracle"]
    assert ["<svg" in row for row in rows] == [True, True, True, False]
    assert [len(set(re.findall(r'href="([^"]*)"', row))) for row in rows] == [3, 2, 2, 2]
    assert f'href="examples.html#run={run_in(site, "lead").run_id}"' in rows[1]
    assert "arxiv-page_size.svg" in page
    assert "Scores against page_size" in page
    assert (site / "arxiv" / "arxiv.csv").read_text().count("\n") == 6


# Ends of an axis, its usual marks, its ticks
AXES = """
[9.9, 26.9, [], [10, 15, 20, 25]]
[61, 78, [10, 20, 50, 100], [65, 70, 75]]
[30, 400, [10, 20, 50, 100, 200, 500], [50, 100, 200]]
"""


@pytest.mark.parametrize("axis", AXES.strip().splitlines())
def test_an_axis_has_ticks(axis: str) -> None:
    """Round numbers, also where no usual mark lies between the ends of a logarithmic axis."""
    low, high, marks, ticks = json.loads(axis)
    assert axis_ticks(low, high, marks) == pytest.approx(ticks)


def test_run_page(site: Path) -> None:
    """A run's page has scores, command, loss curve, ledger, settings that were changed, and what is missing."""
    run = run_in(site, "seal")
    path = site / "arxiv" / page_name(run)
    page, text = path.read_text(), text_of(path)
    assert f"longsumbench verify {run.run_id[:8]}" in text
    assert "75.0 % of the source was read" in text
    assert "input_length cut 25.0 %" in text
    assert (
        'points="140.0,0.0 280.0,180.0 420.0,90.0 "' in page
    )  # steps 100, 200, 300; losses 3, 2 and 2.5
    assert '<div class="changed"><dt>max_steps</dt><dd>300</dd></div>' in page
    assert "<div><dt>adam_beta1</dt>" in page
    assert "predictions.jsonl is not here" in text
    assert "scores.csv is not here" not in text


def test_sweep_page_names_failed_points(site: Path) -> None:
    """A sweep has its progress, the score of each point, and why a point failed."""
    text = text_of(site / "sweeps.html")
    assert "1 done, 1 failed" in text
    assert "seal seed=1 done 8 s 31.0" in text
    assert "seal seed=2 failed 1 s the disk was full" in text


def test_evidence_and_papers_are_copied(root: Path, tmp_path: Path) -> None:
    """Pages of `inspect` are copied, those of papers made of their Markdown; links to files that the site lacks go."""
    run = next(run for run in Results(root).records("arxiv") if run.key.seed == 1)
    inspection = root / "inspections" / run.run_id / "3.html"
    inspection.parent.mkdir()
    inspection.write_text("<p>looked at</p>")
    claim = {"claim": "SEAL > CA", "measure": "rouge1", "outcome": "reproduced", "says": BREAKOUT}
    content = {"name": "seal-table2", "scale": "probe", "claims": [claim]}
    links = "[All](index.md) [Same](seal-table2.md) [Run](../runs/a.csv)"
    text = f"# SEAL\n\n{links} ![drawn](seal-table2-x.png) {HOSTILE}\n"
    (root / "papers").mkdir()
    write_json(root / "papers" / "seal-table2.json", content)
    (root / "papers" / "seal-table2.md").write_text(text)
    (root / "papers" / "seal-table2-x.png").write_bytes(b"drawn")
    folder = write_site(Results(root), tmp_path / "site").parent
    copy = folder / "arxiv" / "inspections" / run.run_id / "3.html"
    assert copy.read_bytes() == inspection.read_bytes()
    paper = Reading((folder / "assets" / "papers" / "seal-table2.html").read_text())
    assert {"../../papers.html", "seal-table2.html"} <= {*paper.loaded}
    assert "../runs/a.csv" not in paper.loaded
    assert paper.elements.count("script") == 1
    assert (folder / "assets" / "papers" / "seal-table2-x.png").is_file()
    assert " ".join(BREAKOUT.split()) in text_of(folder / "papers.html")
    assert "reproduced 1" in text_of(folder / "papers.html")


def test_markup_in_names_and_messages_is_text(tmp_path: Path) -> None:
    """`<script>` in a model's name, in the user's name of a run, in its origin, command and reasons is text."""
    root, model = tmp_path / "results", "<script>alert(1)<"
    hostile = record(
        model,
        20,
        config={"name": HOSTILE},
        command=("longsumbench", BREAKOUT),
        run_id="<img onerror=x>",
    )
    hostile = replace(hostile, imported=ImportedOutputs(HOSTILE, "0" * 64, BREAKOUT))
    store(root, hostile, record("lead", 21))
    Sweep.of(root, ["a"]).begin(["longsumbench", BREAKOUT], "basic")
    Sweep.of(root, ["a"]).write_state(1, PointState(HOSTILE, FAILED, reason=BREAKOUT))
    (root / "runs" / "arxiv" / model / "torn").mkdir()
    (root / "runs" / "arxiv" / model / "torn" / "record.json").write_text("{" + HOSTILE)
    folder = write_site(Results(root), tmp_path / "site").parent
    for path, page in pages(folder):
        assert page.elements.count("script") == (3 if path.name == "examples.html" else 1), path
        assert "img" not in page.elements
        assert not page.open
    assert model in text_of(folder / "index.html")
    assert " ".join(HOSTILE.split()) in text_of(folder / "arxiv" / page_name(hostile))


def test_what_is_missing_is_named_and_the_rest_shown(root: Path, tmp_path: Path) -> None:
    """A torn record, a dataset without readable runs, torn scores and a torn page of a paper: the rest is shown."""
    torn = root / "runs" / "arxiv" / "lead" / "torn"
    torn.mkdir()
    (torn / "record.json").write_text('{"run_id": ')
    alone = root / "runs" / "alone" / "lead" / "torn"
    alone.mkdir(parents=True)
    (alone / "record.json").write_text("")
    (root / "papers").mkdir()
    (root / "papers" / "seal-table2.json").write_text("[]")
    scores = next((root / "runs" / "arxiv" / "random").glob("*/scores.csv"))
    scores.write_text("id,rouge1_f\n")
    folder = write_site(Results(root), tmp_path / "site").parent
    overview = text_of(folder / "index.html")
    assert "arxiv: runs/arxiv/lead/torn/record.json: not a run's record" in overview
    assert "alone: runs/alone: no run can be read" in overview
    assert "papers/seal-table2.json" in overview
    assert not (folder / "alone").exists()
    assert str(tmp_path) not in overview  # a public page does not name folders of this machine
    dataset = text_of(folder / "arxiv" / "index.html")
    assert "scores.csv: scores of 0 examples, not of 40" in dataset
    assert "The summaries of 5 of 5 runs are not here" in dataset


def test_nothing_to_show_is_a_usage_error(tmp_path: Path, run_command: Command) -> None:
    """A folder without results is refused in one line, and nothing is written."""
    assert run_command(2, "site", "--results-dir", tmp_path / "none").err.count("\n") == 1
    assert not (tmp_path / "none").exists()
    with pytest.raises(UsageError, match="no finished run"):
        write_site(Results(tmp_path), tmp_path / "site")


def test_command_prints_the_page(root: Path, run_command: Command) -> None:
    """Without options the pages are in `site` of the results; the command that is printed serves them."""
    page, command = run_command(0, "site", "--results-dir", root).out.splitlines()
    assert page == f"{root / 'site' / 'index.html'}"
    assert shlex.split(command) == [*SERVE, str(root / "site"), "--bind", "127.0.0.1"]


def test_links_out_of_the_results_are_not_followed(
    root: Path, tmp_path: Path, log_lines: list[str]
) -> None:
    """A run, a picture and a page that are links to private files: each is named, and their content is on no page."""
    (private := tmp_path / "private.txt").write_text(PRIVATE_TEXT)
    results, site = Results(root), tmp_path / "site"
    lead = next(run for run in results.records("arxiv") if run.key.model == "lead")
    (results.run_folder(lead) / "predictions.jsonl").unlink(missing_ok=True)
    links = [
        results.run_folder(lead) / "predictions.jsonl",
        root / "leaderboard" / "arxiv-recall.png",
        root
        / "inspections"
        / page_name(list(results.records("arxiv"))[-1]).removesuffix(".html")
        / "0.html",
    ]
    for path in links:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(private)
    write_site(results, site)
    for path in links:
        assert [
            line
            for line in log_lines
            if line.startswith(f"left out: {path}: a link that leaves its folder")
        ]
    assert "predictions.jsonl: a link that leaves its folder" in text_of(
        site / "arxiv" / "index.html"
    )
    files = [path for path in site.rglob("*") if path.is_file()]
    assert not [path for path in files if PRIVATE_TEXT.encode() in path.read_bytes()]


def test_how_far_the_best_row_is_ahead() -> None:
    """By hand: the next row is 1 below (an interval of −2 to 0.5), the best baseline 10 and not tested."""
    runs = [record("seal", 30, system={"checkpoint": "a"}), record("ea", 29.9), record("lead", 20)]
    runs[1] = changed(runs[1], imported=ImportedOutputs("out.jsonl", "0" * 64, "a paper"))
    (block,) = build_blocks(runs)
    block = replace(block, differences={(runs[1].run_id, "rougeLsum"): judged(Outcome.NOT_SHOWN)})
    shown = show_block(block, [block])
    assert shown.lead == describe_leader(block)
    assert [row.difference for row in shown.rows] == ["0.0 ±–", "−1.0 ±1.2", "−10.0 ±–"]
    # The axis reaches from −10 to 0.5
    assert [row.interval for row in shown.rows] == [
        (95.2, 95.2, 95.2, 95.2),
        (76.2, 85.7, 100.0, 95.2),
        (0.0, 0.0, 0.0, 95.2),
    ]


def test_a_scatter_by_hand() -> None:
    """Costs of 1, 10 and 100 are at equal steps, the best score on top; equal costs need no drawing."""

    def plot(*prices: float) -> Scatter | None:
        runs = []
        for place, price in enumerate(prices):
            run = record(f"system_{place}", 40 - 5 * place, run_id=f"r{place}")
            runs.append(changed(run, counts={"price": price}))
        (block,) = build_blocks(runs)
        return plot_against_cost(show_block(block, [block]))

    scatter = plot(100, 10, 1)
    assert scatter is not None
    points: list[object] = [(point.place, point.x, point.y) for point in scatter.points]
    assert points == [
        (1, pytest.approx(336), 24),
        (2, pytest.approx(180), 110),
        (3, pytest.approx(24), 196),
    ]
    assert [text for _, text in scatter.x_ticks] == ["1", "10", "100"]
    assert [text for _, text in scatter.y_ticks] == ["30", "35", "40"]
    assert "price, 3 of 3 rows" in scatter.title
    assert plot(5, 5, 5) is None
