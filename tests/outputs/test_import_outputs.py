"""Outputs that were written outside the suite, made a run: what it has, its place, what is refused."""

import hashlib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.commands import Typed
from support.json_files import read_rows, write_rows
from support.pages import Reading

import longsumbench
from longsumbench.cli.main import main
from longsumbench.errors import DataError, UsageError
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.record import ImportedOutputs, RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_list import list_runs

NUM_TEST = 8


@pytest.fixture
def held_out(toy: Path) -> Path:
    """Outputs for the test split: the first four words of each text, in reversed order of the examples."""
    return write_rows(
        toy.parent / "held-out.jsonl", [get_output(row) for row in rows_of(toy)[::-1]]
    )


@pytest.fixture
def imported(typed: Typed, toy: Path) -> Typed:
    """Import a file for the toy examples, without baselines."""

    def run(path: Path, *words: object) -> tuple[int, str, str]:
        model = [] if "--model" in words else ["--model", "theirs"]
        texts = ["--dataset", "jsonl", f"dataset.path={toy}", "score.resamples=100"]
        place = [f"results_dir={toy.parent / 'results'}", "baselines=false"]
        return typed("import", path, *model, *texts, *place, *words)

    return run


def rows_of(toy: Path) -> list[dict[str, str]]:
    return read_rows(toy / "test.jsonl")


def get_output(row: dict[str, str]) -> dict[str, str]:
    return {"id": row["id"], "prediction": " ".join(row["document"].split()[:4])}


def folders_of(toy: Path) -> list[Path]:
    return sorted((toy.parent / "results" / "runs" / "jsonl" / "theirs").glob("*"))


def test_import_compare_inspect(typed: Typed, toy: Path, held_out: Path, tmp_path: Path) -> None:
    """Three commands lead from a file to a row of the table, a comparison and a page."""
    results = tmp_path / "results"
    words = [f"dataset.path={toy}", f"results_dir={results}", "score.resamples=100"]
    code, out, _ = typed("import", held_out, "--model", "theirs", "--dataset", "jsonl", *words)
    assert (code, "theirs" in out, "imported" in out) == (0, True, True)
    table = pd.read_csv(results / "leaderboard" / "jsonl.csv").set_index("model")
    assert sorted(table.index) == ["lead", "oracle", "random", "theirs"]
    row, (folder,) = table.loc["theirs"], folders_of(toy)
    assert row["imported_from"] == "held-out.jsonl"
    predictions = [get_output(example)["prediction"] for example in rows_of(toy)]
    references = [example["summary"] for example in rows_of(toy)]
    scores = longsumbench.score(predictions, references, resamples=100).f1
    assert row["rouge1"] == pytest.approx(scores["rouge1"], abs=1e-4)
    (lead,) = (results / "runs" / "jsonl" / "lead").iterdir()
    label, first = f"theirs (imported, {folder.name[:8]})", rows_of(toy)[0]
    assert f"{label} minus lead" in typed("compare", lead, folder)[1]
    code, out, err = typed("inspect", folder, first["id"], "--results-dir", results)
    reason = f"{label} has no evidence: its outputs were written outside the suite"
    assert (code, err) == (0, f"{reason}\n")
    page = Reading(Path(out.splitlines()[-1]).read_text())
    assert first["summary"] in " ".join(page.text.split())


def test_the_record_says_where_the_outputs_come_from(
    imported: Typed, toy: Path, held_out: Path
) -> None:
    """The record says who wrote the outputs, where they come from and which file it was; costs are unknown."""
    words = ["--variant", "beam 5", "--seed", 3, "--from", "https://example.org"]
    assert imported(held_out, *words, "score.metrics=[length_ratio]")[0] == 0
    (folder,) = folders_of(toy)
    record = RunRecord.read(folder)
    assert (record.key.model, record.variant, record.key.seed) == ("theirs", "beam 5", 3)
    checksum = hashlib.sha256(held_out.read_bytes()).hexdigest()
    origin = ImportedOutputs("held-out.jsonl", checksum, "https://example.org")
    assert record.imported == origin
    assert record.costs.decode_tokens_per_second is record.costs.peak_memory_gb is None
    assert not record.trained
    assert (record.config.train.seed, record.config.decode.seed) == (3, 3)
    assert "length_ratio" in record.evaluation.measured_by
    summaries = read_summaries(folder / "predictions.jsonl")
    assert [summary.id for summary in summaries] == [row["id"] for row in rows_of(toy)]


def test_the_same_outputs_are_one_run(
    imported: Typed, toy: Path, held_out: Path, log_lines: list[str]
) -> None:
    """The same outputs and names are one run; metrics can be added; another variant is another run."""
    assert imported(held_out)[0] == 0
    (folder,) = folders_of(toy)
    written = (folder / "record.json").read_bytes()
    assert imported(held_out)[0] == 0
    assert log_lines[-1] == f"already finished: theirs on jsonl, {folder}"
    assert (folder / "record.json").read_bytes() == written
    assert imported(held_out, "score.metrics=[length_ratio]")[0] == 0
    assert "length_ratio" in RunRecord.read(folder).evaluation.measured_by
    assert imported(held_out, "--from", "a paper", "overwrite=true")[0] == 0
    assert folders_of(toy) == [folder]
    assert RunRecord.read(folder).imported.origin == "a paper"  # type: ignore[union-attr]
    assert imported(held_out, "--variant", "beam 5")[0] == 0
    assert len(folders_of(toy)) == 2


def test_formats_give_the_same_run(
    imported: Typed, toy: Path, held_out: Path, tmp_path: Path, log_lines: list[str]
) -> None:
    """JSON lines, lines in the split's order, folders named by ids or by numbers, and a run's folder mean the same."""
    outputs = [get_output(row) for row in rows_of(toy)]
    lines = tmp_path / "out.txt"
    lines.write_text("".join(f"{one['prediction']}\n" for one in outputs))
    by_name, by_number = tmp_path / "named", tmp_path / "numbered"
    for place, one in enumerate(outputs):
        for folder, name in ((by_name, one["id"]), (by_number, f"{place + 5}_decoded")):
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.dec").write_text(one["prediction"])
    assert imported(held_out)[0] == 0
    for path in (lines, by_name, by_number, folders_of(toy)[0]):
        assert imported(path)[0] == 0
        assert len(folders_of(toy)) == 1
    assert sum("the first is '5_decoded'" in line for line in log_lines) == 1


@pytest.mark.parametrize("name", ["zoo {letter}", "{letter}_2024", "{letter}"])
def test_files_without_ids_need_numbers(
    name: str, imported: Typed, toy: Path, tmp_path: Path
) -> None:
    """Names that are neither ids nor have a number of their own say nothing about whose outputs they are."""
    folder = tmp_path / "named"
    folder.mkdir()
    for letter, one in zip("hgfedcba", map(get_output, rows_of(toy)), strict=True):
        (folder / f"{name.format(letter=letter)}.txt").write_text(one["prediction"])
    code, out, err = imported(folder)
    assert (code, out, err.count("\n")) == (3, "", 1)
    assert "no file has the id of an example as its name" in err
    assert "nor each a number of its own; rename the files" in err


def test_intersect_imports_examples_with_an_output(
    imported: Typed, typed: Typed, toy: Path, held_out: Path, log_lines: list[str]
) -> None:
    """With --intersect, only examples with an output are imported; a line counts the others."""
    rows = rows_of(toy)
    write_rows(held_out, [{"id": "nobody", "prediction": "x"}, *map(get_output, rows[2:5])])
    assert imported(held_out, "--intersect")[0] == 0
    unknown = "1 output with an unknown id (ids 'nobody')"
    assert any(f"{unknown} and no output for 5 of 8 examples" in line for line in log_lines)
    (folder,) = folders_of(toy)
    assert RunRecord.read(folder).evaluation.n == 3
    assert imported(held_out, "--intersect", "score.metrics=[length_ratio]")[0] == 0
    assert RunRecord.read(folder).evaluation.measures["length_ratio"].n == 3
    code, out, _ = typed("verify", folder)
    assert code == 0, out


def test_outputs_are_not_run_again(
    imported: Typed, typed: Typed, toy: Path, held_out: Path
) -> None:
    """An imported run is no system that could run or summarize, in one line each; without record it names no command."""
    assert imported(held_out)[0] == 0
    (folder,) = folders_of(toy)
    commands = {
        "imported outputs of theirs and no system": ("summarize", folder, toy / "test.jsonl"),
        "outputs of theirs, which cannot be run": ("run", "--config", folder / "config.yaml"),
    }
    for message, words in commands.items():
        code, out, err = typed(*words)
        assert (code, out, len(err.splitlines()), message in err) == (2, "", 1, True)
    (folder / "record.json").unlink()
    (run,) = list_runs(Results(toy.parent / "results"))
    assert (run.state, run.command) == ("interrupted", "")


@pytest.mark.parametrize(
    ("outputs", "words", "code", "message"),
    [
        ("one is missing", "", 3, "no output for 1 of 8 examples (ids '"),
        ("one is unknown", "", 3, "1 output with an unknown id (ids 'x')"),
        ("all are unknown", "--intersect", 3, "no output for 8 of 8 examples"),
        ("right", "--split train", 3, "these are ids of the test split: add --split test"),
        ("right", "--model seal", 2, "--model seal is a system of the suite"),
        ("right", "--model ../a", 2, "--model=../a cannot name a folder"),
        ("right", "--variant a\nb", 2, "--variant='a\\nb' has a control character"),
        ("right", "--seed -1", 2, "seed=-1"),
        ("right", "decode.num_beams=5", 2, "import takes dataset.*, score.* and"),
        ("right", "dataset=aclsum", 2, "write --dataset aclsum"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(
    imported: Typed, toy: Path, held_out: Path, outputs: str, words: str, code: int, message: str
) -> None:
    """What does not fit ends with one line that says what, and nothing is written."""
    rows, unknown = [get_output(row) for row in rows_of(toy)], {"id": "x", "prediction": ""}
    kinds = {"one is missing": rows[1:], "one is unknown": [*rows, unknown], "right": rows}
    write_rows(held_out, kinds.get(outputs, [unknown]))
    exit_code, out, err = imported(held_out, *(words.split(" ") if words else []))
    assert (exit_code, out, len(err.splitlines()), message in err) == (code, "", 1, True), err
    assert not folders_of(toy)


def test_lines_that_do_not_fit(
    imported: Typed, toy: Path, tmp_path: Path, log_lines: list[str]
) -> None:
    """Another number of lines is an error; empty lines are outputs, and are counted."""
    lines = tmp_path / "out.txt"
    lines.write_text("a\n" * (NUM_TEST - 1))
    assert "out.txt: 7 lines for 8 examples" in imported(lines)[2]
    lines.write_text("a\n" * (NUM_TEST - 2) + "\n\n")
    assert imported(lines)[0] == 0
    assert "empty outputs, which score 0: 2 of 8" in log_lines
    assert RunRecord.read(folders_of(toy)[0]).evaluation.empty_predictions == 2


def test_outputs_may_be_a_dictionary(toy: Path, held_out: Path) -> None:
    """Outputs by id make the run that their file makes; what is no text, or of no example, is refused."""
    outputs: dict[str, Any] = {row["id"]: get_output(row)["prediction"] for row in rows_of(toy)}
    settings: dict[str, Any] = {"dataset": {"name": "jsonl", "path": str(toy)}, "model": "theirs"}
    settings |= {"results_dir": toy.parent / "results", "baselines": False}
    from_file = longsumbench.import_outputs(held_out, **settings)
    assert longsumbench.import_outputs(outputs, **settings).run_id == from_file.run_id
    bold = {
        name: f"\x1b[1m{text}\x1b[0m" for name, text in outputs.items()
    }  # as a terminal shows it
    assert longsumbench.import_outputs(bold, **settings).run_id == from_file.run_id
    for origin in ("https://me:secret@host/a", "https%3A//host/a?token=secret"):
        with pytest.raises(UsageError, match=r"^--from has an address with a password or a key"):
            longsumbench.import_outputs(outputs, **settings, origin=origin)
    assert main(list(from_file.command[1:])) == 0
    assert len(folders_of(toy)) == 1
    with pytest.raises(DataError, match="must be text"):
        longsumbench.import_outputs(outputs | {"x0": 3}, **settings)
    with pytest.raises(DataError, match="no output for 8 of 8 examples"):
        longsumbench.import_outputs({}, **settings)
