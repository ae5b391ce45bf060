"""Verified runs: what does not agree is found and named, and tables mark what agrees until a file changes."""

import csv
import io
import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from support.commands import Typed
from support.json_files import read_json, read_rows, write_json, write_rows
from support.permissions import heeded
from support.toys import tiny_overrides, write_jsonl

from longsumbench.cli.main import main
from longsumbench.corpora import aclsum
from longsumbench.exchange import verify
from longsumbench.metrics.aggregate import read_scores, write_scores
from longsumbench.runs.overrides import read_config_file
from longsumbench.runs.results import finished_folders
from longsumbench.runs.scoring import score_run

MINE = ["dataset.name=mine", "baselines=false", "score.resamples=100"]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with texts, and with runs of Lead, Random and a system of two checkpoints in `results`."""
    folder = tmp_path_factory.mktemp("toy")
    texts, results = write_jsonl(folder / "texts"), f"results_dir={folder / 'results'}"
    words = [*MINE, "dataset=jsonl", f"dataset.path={texts}", results]
    for model in ("lead", "random"):
        assert main(["run", f"model={model}", *words, "score.metrics=[repetition]"]) == 0
    steps = ["train.eval_steps=1", "train.keep_best=2"]
    assert main(["run", *tiny_overrides(texts, steps=2), *steps, *MINE, results]) == 0
    return folder


@pytest.fixture
def work(toy: Path, here: Path) -> Path:
    """A copy of these results; the current folder is the one above."""
    shutil.copytree(toy / "results", here / "results", symlinks=True)
    return here


def run_of(model: str) -> Path:
    """The folder of the run of a model."""
    (record,) = Path("results").glob(f"runs/mine/{model}/*/record.json")
    return record.parent


def table_rows() -> list[dict[str, str]]:
    """The rows of the CSV."""
    with Path("results/leaderboard/mine.csv").open() as file:
        return list(csv.DictReader(file))


def marks_of_table(typed: Typed) -> dict[str, str]:
    """Make the table again; return model → cell of the column `verified`."""
    typed("leaderboard", "mine")
    return {row["model"]: row.get("verified", "") for row in table_rows()}


def change_score(run: Path) -> None:
    """Give the third example another ROUGE-1 F1."""
    scores = read_scores(run / "scores.csv")
    scores.loc[scores.index[2], "rouge1_f"] = 0.75
    write_scores(run / "scores.csv", scores)


def drop_score(run: Path) -> None:
    """Leave out the scores of the last example."""
    write_scores(run / "scores.csv", read_scores(run / "scores.csv").iloc[:-1])


def change_record(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the record of a run."""
    record = read_json(run / "record.json")
    change(record)
    write_json(run / "record.json", record)


def set_in_record(run: Path, path: str, value: object) -> None:
    """Set a value of the record ("fit.steps")."""
    *parts, name = path.split(".")

    def change(record: dict[str, Any]) -> None:
        for part in parts:
            record = record[part]
        record[name] = value

    change_record(run, change)


def change_outputs(
    run: Path, change: Callable[[list[dict[str, str]]], object], name: str = "predictions.jsonl"
) -> None:
    """Change the summaries of a run."""
    lines = read_rows(run / name)
    change(lines)
    write_rows(run / name, lines)


def test_runs_that_agree_are_marked(work: Path, typed: Typed) -> None:
    """Every run of a folder, one with two checkpoints and one with a requested metric; again, nothing changes."""
    code, out, _ = typed("verify", "results")
    expected = [[model, "mine", "verified"] for model in ("lead", "random", "trunc")]
    assert (code, [line.split()[1:] for line in out.splitlines()]) == (0, expected)
    marks = {path: path.read_bytes() for path in Path("results").rglob("verified.json")}
    assert {path.parent for path in marks} == {*finished_folders(Path("results"))}
    files = json.loads(marks[run_of("trunc") / "verified.json"])["files"]
    scored = (
        "predictions-2.jsonl predictions.jsonl record.json scores-1.csv scores-2.csv scores.csv"
    )
    assert sorted(files) == scored.split()
    assert typed("verify", "results")[0] == 0
    assert {path: path.read_bytes() for path in marks} == marks


def test_runs_that_cannot_be_changed_are_verified(work: Path, typed: Typed) -> None:
    """Where no file can be written, a run that agrees is verified, and a line says that it is not marked."""
    run = run_of("lead")
    run.chmod(0o555)
    with heeded():
        code, out, err = typed("verify", run)
    assert (code, out.split()[-1]) == (0, "verified")
    assert "agrees, but cannot be marked here (Permission denied)" in err
    assert not (run / "verified.json").exists()


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        (change_score, ["scores.csv: rouge1_f of 'toy-32' is 0.75, the outputs give "]),
        (
            lambda run: change_outputs(run, lambda lines: lines[0].update(prediction="Not this.")),
            [
                "predictions.jsonl: changed, or the scores in all",
                "record.json: ",
                "scores.csv: rouge1_p of 'toy-30'",
            ],
        ),
        (
            lambda run: change_outputs(run, lambda lines: lines.pop(2)),
            ["predictions.jsonl: 1 missing example ('toy-32')"],
        ),
        (drop_score, ["scores.csv: 1 missing example ('toy-37')"]),
        (lambda run: (run / "predictions.jsonl").unlink(), ["not verified: "]),
    ],
)
def test_what_does_not_agree_is_named(
    change: Callable[[Path], object], problems: list[str], work: Path, typed: Typed
) -> None:
    """One run was changed by hand: a line for each thing, exit code 3, and no mark; the others are verified."""
    change(run_of("lead"))
    code, out, err = typed("verify", "results")
    lines = [line.split(maxsplit=3) for line in out.splitlines()]
    last = "longsumbench: 1 run of 3 not verified: see the table"
    assert (code, err.splitlines()[-1]) == (3, last)
    assert [line[3] for line in lines if line[1] != "lead"] == ["verified", "verified"]
    of_lead = [line[3] for line in lines if line[1] == "lead"]
    for line, start in zip(of_lead, problems, strict=True):
        assert line.startswith(start)
    marks = marks_of_table(typed)
    assert marks.pop("lead", "no") == "no"
    assert marks == {"random": "yes", "trunc": "yes"}


def test_tables_mark_rows_until_a_file_changes(work: Path, typed: Typed) -> None:
    """Without a mark all files are as before; with one, a column is added to them and nothing else changes."""
    folder = Path("results/leaderboard")
    assert typed("leaderboard", "mine")[0] == 0
    before = {path.name: path.read_text() for path in folder.glob("mine.*")}
    assert "verified" not in "".join(before.values())
    run = run_of("lead")
    assert typed("verify", run.name[:6])[0] == 0
    shown = typed("leaderboard", "mine")[1]
    rows = table_rows()
    marks = {row["model"]: row.pop("verified") for row in rows}
    assert rows == list(csv.DictReader(io.StringIO(before["mine.csv"])))
    assert marks == {"lead": "yes", "random": "no", "trunc": "no"}
    written = [(folder / f"mine.{kind}").read_text() for kind in ("md", "tex")]
    for text in (shown, *written):
        of_rows = [("verified" in line, "reported" in line) for line in text.splitlines()]
        assert (of_rows.count((True, False)), of_rows.count((False, True))) == (1, 2)
    change_score(run)
    # A record cannot mark itself
    change_record(run_of("random"), lambda record: record.update(verified=True))
    assert set(marks_of_table(typed).values()) == {""}


def test_a_row_of_several_seeds_says_what_holds_for_each(
    work: Path, typed: Typed, toy: Path
) -> None:
    """Only one of two seeds is verified."""
    words = [*MINE, "score.metrics=[repetition]", "dataset=jsonl", f"dataset.path={toy / 'texts'}"]
    assert typed("run", "model=random", "seed=2", *words)[0] == 0
    first = min(Path("results").glob("runs/mine/random/*"))
    assert typed("verify", first)[0] == 0
    assert typed("leaderboard", "mine")[0] == 0
    lines = Path("results/leaderboard/mine.md").read_text().splitlines()
    row = next(line for line in lines if "| random " in line)
    assert "verified, reported" in row or "reported, verified" in row


def test_packed_runs_are_checked_and_not_marked(work: Path, typed: Typed, toy: Path) -> None:
    """Their copies in the cache stay as they are; a mark that was packed with its run still counts."""
    assert typed("verify", run_of("random"))[0] == 0
    assert typed("runs", "pack")[0] == 0
    shutil.rmtree("results/runs")
    copies = finished_folders(Path("results"))
    files = {path for copy in copies for path in copy.rglob("*")}
    for name in ("results", "results/bundles/mine.tar.xz", copies[0].name):
        code, out, err = typed("verify", name, "--dataset-path", toy / "texts")
        assert (code, "verified" in out, "packed, so it is not marked" in err) == (0, True, True)
    assert {path for copy in copies for path in copy.rglob("*")} == files
    assert marks_of_table(typed) == {"lead": "no", "random": "yes", "trunc": "no"}


def test_texts_in_another_place(work: Path, typed: Typed, toy: Path) -> None:
    """A run of another machine names a folder that is not here: --dataset-path names the right one."""
    run = run_of("lead")
    set_in_record(run, "config.dataset.path", "/nowhere/texts")
    code, out, _ = typed("verify", run)
    assert code == 3
    for part in ("needs the texts of mine (fingerprint ", "--dataset-path", "/nowhere/texts"):
        assert part in out
    assert typed("verify", run, "--dataset-path", toy / "texts")[0] == 0


def test_metrics_that_need_a_model_are_named(work: Path, typed: Typed) -> None:
    """They are not computed again; everything else is."""
    run = run_of("lead")
    for metric in ("judge", "theirs"):
        set_in_record(run, f"evaluation.measured_by.{metric}", f"{metric}:1")
    code, _, err = typed("verify", run)
    reason = "not computed again, which needs a model or a plug-in: judge, theirs"
    assert (code, f"lead {run.name[:8]}: {reason}" in err) == (0, True)


# Fields that nothing decides: a change of them is not seen (docs/how-to/share-results.md)
NOT_SHOWN = re.compile(
    r"config\.(name|dataset\.path)$|(environment|command|texts\.more|system\.more)\b|finished$"
    r"|costs\.(timings\.\w+|decode_tokens_per_second|peak_memory_gb)$|fit\.seconds$"
)


def field_paths(values: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of all fields in a record, those of lists and mappings too."""
    items = dict(enumerate(values)) if isinstance(values, list) else values
    for name, value in items.items() if isinstance(items, dict) else ():
        yield (*path, name)
        yield from field_paths(value, (*path, name))


def tampered(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield copies of a record in which one field is missing, null, another value, or longer, with its path."""
    for path in field_paths(record):
        for change in ("missing", "null", "other", "longer"):
            copy = deepcopy(record)
            owner: Any = copy
            for name in path[:-1]:
                owner = owner[name]
            value = owner[path[-1]]
            if change == "missing":
                del owner[path[-1]]
            elif change == "null":
                owner[path[-1]] = None
            elif isinstance(value, dict):
                value["invented"] = 1.5
            elif isinstance(value, list):
                value += value[-1:] or [1]
            elif change == "other":
                owner[path[-1]] = value + "x" if isinstance(value, str) else (value or 0) + 1
            if copy != record:
                yield f"{'.'.join(map(str, path))} {change}", copy


def test_every_field_of_a_record_is_compared(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing, null, changed or added value is a difference, except for changes of fields on the documented list."""
    run = run_of("lead").absolute()
    # What does not depend on the record is computed once
    scored: list[Any] = []

    def score_once(
        config: Any, texts: Any, report: Any, outputs: Sequence[Any], folder: Path
    ) -> Any:
        if not scored:
            scored.append(score_run(config, texts, report, outputs, work))
        for table in work.glob("scores*.csv"):
            shutil.copy(table, folder)
        return scored[0]

    record = read_json(run / "record.json")
    # The default dataset, which takes seconds to read, is not there
    monkeypatch.setattr(aclsum, "distribution", Mock(side_effect=PackageNotFoundError))
    monkeypatch.setattr(verify, "score_run", score_once)
    monkeypatch.setattr(verify, "read_config_file", cache(read_config_file))
    monkeypatch.setattr(verify, "_expected_variant", lambda *_: record["variant"])
    passed = []
    for change, copy in tampered(record):
        write_json(run / "record.json", copy)
        ((_, problems),) = verify.verify_runs([run])
        if not problems:
            passed.append(change)
    # As in records of before these fields
    for name in ("groups", "outputs.marked", "outputs.unchanged"):
        passed.remove(f"evaluation.{name} missing")
    assert [change for change in passed if not NOT_SHOWN.match(change.rpartition(" ")[0])] == []
    # Lists and mappings without a schema may lack entries
    free = ("command.", "environment.packages.", "texts.more.")
    assert all(change.startswith(free) for change in passed if change.endswith("missing"))


def problems_of(typed: Typed, *words: object) -> list[str]:
    """The lines of `verify` about runs that are not verified."""
    lines = [line.split(maxsplit=3)[3] for line in typed("verify", *words)[1].splitlines()]
    return [line for line in lines if line != "verified"]


GIVE = "settings, texts and outputs give"
CHANGED = """
evaluation.scores.rouge2.f = 1.5 → evaluation.scores.rouge2.f is 1.5, GIVE
evaluation.signature = "rouge:0" → scored by another version, so not compared:
key.fingerprint = "00000000" → not verified: dataset 'mine' has other texts here:
variant = "length=50" → variant is length=50, GIVE batch_size=4,
key.seeds = [2, 2, 2] → key.seeds.0 is 2, GIVE 1 (3 values in all)
fit.validation_loss = 0.5 → fit.validation_loss is 0.5, GIVE
fit.validation_losses = [[1, 2.5], [2, 9.0]] → fit.validation_losses.0.1 is 2.5,
fit.steps = 1 → fit.steps is 1, GIVE 2
fit.first_loss = 1e6 → no training has such losses: the first is 1e+06,
finished = "2999-01-01T00:00:00+00:00" → finished in the future: 2999
outputs_digest = "0000000000000000" → outputs_digest is 0000000000000000, GIVE
"""


@pytest.mark.parametrize("change", CHANGED.strip().splitlines())
def test_a_changed_record_is_named(change: str, work: Path, typed: Typed) -> None:
    """A value that the outputs, the settings, the training or the calendar do not allow is named."""
    changed, problem = change.replace("GIVE", GIVE).split(" → ")
    path, value = changed.split(" = ")
    run = run_of("lead" if path.startswith("evaluation") else "trunc")
    set_in_record(run, path, json.loads(value))
    lines = [line.removeprefix("record.json: ") for line in problems_of(typed, run)]
    assert any(line.startswith(problem) for line in lines), lines


def test_a_record_without_its_training_is_checked_by_its_recipe(work: Path, typed: Typed) -> None:
    """Without the checkpoint's own report, losses at other steps, or too few of them, are named."""
    run = run_of("trunc")
    shutil.rmtree(run / "work")
    assert problems_of(typed, run) == []
    change_record(run, lambda record: record["fit"]["validation_losses"].pop())
    (line,) = problems_of(typed, run)
    assert line.startswith("record.json: fit.validation_losses.1.0 is missing, ")
    for name, value in (("validation_losses", []), ("first_loss", None), ("last_loss", None)):
        set_in_record(run, f"fit.{name}", value)
    assert "record.json: a training without losses" in problems_of(typed, run)


def test_another_run_id_or_place_is_named(work: Path, typed: Typed) -> None:
    """A run id that its settings do not give, and a folder that is not the record's, are refused."""
    run = run_of("trunc")
    set_in_record(run, "run_id", "0" * 12)
    problem = "its folder is not runs/mine/trunc/000000000000, "
    assert problems_of(typed, run)[0].startswith(problem)
    moved = run.rename(run.with_name("0" * 12))
    problem = "record.json: run_id is 000000000000, settings, texts and outputs give "
    assert problems_of(typed, moved)[0].startswith(problem)


def test_the_run_id_of_imported_outputs_has_their_labels(
    toy: Path, typed: Typed, tmp_path: Path
) -> None:
    """Imported outputs are verified; another variant, seed or name is refused."""
    lead = next((toy / "results/runs/mine/lead").iterdir())
    place = ["--results-dir", tmp_path / "results"]
    outputs = tmp_path / "outputs.jsonl"
    text = (lead / "predictions.jsonl").read_text()
    outputs.write_text(text.replace('"prediction": "', '"prediction": "So '))
    words = f"--model theirs --dataset jsonl dataset.path={toy / 'texts'} --seed 1"
    where = f"results_dir={tmp_path / 'results'}"
    assert typed("import", outputs, *words.split(), *MINE, where, "--variant", "beam 5")[0] == 0
    (run,) = (tmp_path / "results/runs/mine/theirs").iterdir()
    assert problems_of(typed, run, *place) == []
    record = (run / "record.json").read_text()
    for path, value in (("variant", "beam 9"), ("key.seeds", [2]), ("key.model", "others")):
        set_in_record(run, path, value)
        assert problems_of(typed, run, *place) != []
        (run / "record.json").write_text(record)
