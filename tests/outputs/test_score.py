"""`longsumbench score`: any system's outputs, as a user types it."""

import csv
import json
import math
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pandas as pd
import pytest
from rouge_score import rouge_scorer
from support.commands import Typed
from support.json_files import read_rows, write_rows
from support.toys import refuses, write_jsonl

import longsumbench
from longsumbench.errors import SuiteError
from longsumbench.metrics.aggregate import read_scores
from longsumbench.metrics.statistics import perl_intervals
from longsumbench.rouge.scorer import ROUGE_TYPES
from longsumbench.runs.record import RunRecord
from longsumbench.sentences import split_summary

PAIRS = (
    (
        "a",
        "The cat sat on the mat. It slept for an hour.",
        "It slept. The cat had been sitting on a mat.",
    ),
    (
        "b",
        "Nothing of this is said there.",
        "Rates rose in March. Banks were surprised by the size of it.",
    ),
    (
        "c",
        "Rates rose by 2.5 points. Shops closed!",
        "In May, rates rose by 2.5 points, and shops were closed.",
    ),
)
HEADER = ["id", *(f"{kind}_{statistic}" for kind in ROUGE_TYPES for statistic in "prf")]
Scored = Callable[..., tuple[int, str, list[str]]]
Files = tuple[Path, Path]


@pytest.fixture
def scored(typed: Typed) -> Scored:
    """Run `score`; return its exit code, stdout, and the lines of stderr."""

    def run(*words: object) -> tuple[int, str, list[str]]:
        code, out, err = typed("score", "--resamples", "100", *words)
        return code, out, err.splitlines()

    return run


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """Predictions and references of `PAIRS`, the latter in another order."""
    predictions = [{"id": name, "prediction": text} for name, text, _ in PAIRS]
    references = [{"id": name, "references": [text]} for name, _, text in reversed(PAIRS)]
    return write_rows(tmp_path / "ours.jsonl", predictions), write_rows(
        tmp_path / "theirs.jsonl", references
    )


@pytest.mark.parametrize("stem", [True, False])
def test_scores_equal_rouge_score(files: Files, tmp_path: Path, scored: Scored, stem: bool) -> None:
    """Every example's scores are those of rouge_score over the suite's sentences, to the last bit, in the file too."""
    table = tmp_path / "scores" / "s.csv"
    code, _, message = scored(*files, "--stem" if stem else "--no-stem", "--per-example", table)
    assert (code, message) == (0, [])
    with table.open(newline="") as file:
        assert next(csv.reader(file)) == HEADER
    scores = read_scores(table)
    peer = rouge_scorer.RougeScorer(list(ROUGE_TYPES), use_stemmer=stem)
    for name, prediction, reference in PAIRS:
        expected = peer.score(
            "\n".join(split_summary(reference)), "\n".join(split_summary(prediction))
        )
        assert list(scores.loc[name]) == [value for kind in ROUGE_TYPES for value in expected[kind]]
    assert list(scores.index) == ["a", "b", "c"]


def test_perl_resampling(files: Files, tmp_path: Path, scored: Scored) -> None:
    """The intervals are those of ROUGE-1.5.5's own resamples of the five-digit scores; the means stay plain ones."""
    words = (*files, "--mode", "perl", "--no-stem", "--json")
    plain = json.loads(scored(*words)[1])["rouge1"]
    more = ("--resampling", "perl", "--per-example", tmp_path / "s.csv")
    found = json.loads(scored(*words, *more)[1])["rouge1"]
    column = read_scores(tmp_path / "s.csv").sort_index()[["rouge1_f"]].to_numpy()
    _, low, high = (100 * perl_intervals(column, resamples=100)[0]).tolist()
    assert (found["f_lo"], found["f_hi"]) == pytest.approx((low, high))
    assert (found["p"], found["r"], found["f"]) == (plain["p"], plain["r"], plain["f"])


def test_the_table_has_all_types_and_the_signature(files: Files, scored: Scored) -> None:
    """The table says P, R and F with its interval of all types, then the signature with the number of examples."""
    code, out, _ = scored(*files)
    lines = out.splitlines()
    assert (code, lines[2].split()) == (0, ["P", "R", "F"])
    assert lines[0] == "3 examples; 8 words a prediction, 11 a reference"
    assert [line.split()[0] for line in lines[4:8]] == ["R-1", "R-2", "R-L", "R-Lsum"]
    assert all("±" in line for line in lines[4:8])
    assert "|n:3|" in lines[-1]


def test_json_has_all_that_the_table_says(files: Files, scored: Scored) -> None:
    """One object has all that the table says, and what was left out; means are those of the examples, in percent."""
    ours, theirs = files
    text = PAIRS[0][2]
    outputs = {"a": "", "b": text, "c": "x"}
    write_rows(ours, [{"id": name, "prediction": output} for name, output in outputs.items()])
    references: list[dict[str, Any]] = [{"id": "a", "references": ["Some text."]}]
    references += [{"id": "b", "reference": text}, {"id": "c", "summary": "—"}]
    write_rows(theirs, references)
    code, out, message = scored(ours, theirs, "--json")
    values = json.loads(out)
    assert code == 0
    assert {key: values["rougeLsum"][key] for key in "prf"} == {"p": 50.0, "r": 50.0, "f": 50.0}
    names = "n signature warnings left_out empty_predictions outputs"
    assert list(values) == [*ROUGE_TYPES, *names.split()]
    assert (values["n"], values["empty_predictions"]) == (2, 1)
    left_out = {"empty_references": ["c"], "only_predicted": [], "only_referenced": []}
    assert values["left_out"] == left_out
    assert [f"warning: {line}" for line in values["warnings"]] == message
    reason = "1 of 3 examples, because no reference has a word"
    assert message[-1].startswith(f"warning: left out of the means: {reason}")


def test_ids_of_one_side(files: Files, scored: Scored) -> None:
    """They end the command with 3; --intersect goes on, and tells and counts them. One example has no interval."""
    ours, theirs = files
    write_rows(ours, [{"id": "c", "prediction": "Rates"}, {"id": "z", "prediction": "y"}])
    code, out, message = scored(ours, theirs)
    assert (code, out, len(message)) == (3, "", 1)
    code, out, message = scored(ours, "--intersect", theirs)
    assert (code, len(message)) == (0, 2)
    assert out.startswith(
        "1 example; 1 left out (only predicted); 2 left out (only referenced); 1 word"
    )
    assert "warning: 2 references without a prediction left out ('b', 'a')" in message
    assert out.count(" ±–") == 4
    assert json.loads(scored(ours, theirs, "--intersect", "--json")[1])["rouge2"]["f_lo"] is None


def test_nothing_can_be_scored(tmp_path: Path, scored: Scored) -> None:
    """Texts in another script are an error whose warnings name the way out, and the way out works."""
    row = {"id": "a", "prediction": "Желтый дом", "reference": "Дом желтый"}
    both = write_rows(tmp_path / "a.jsonl", [row])
    code, out, message = scored(both)
    assert (code, out) == (3, "")
    assert all("--tokenizer unicode keeps the others" in line for line in message[:2])
    assert "no example can be scored" in message[-1]
    code, out, message = scored(both, "--tokenizer", "unicode", "--json")
    assert (code, message, json.loads(out)["rouge1"]["f"]) == (0, [], 100.0)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("a b c", 2, "give PREDICTIONS, and REFERENCES if in another file"),
        ("a --resamples 5", 2, "--resamples=5 is below 100"),
        ("a --resampling perl", 2, "--resampling perl needs --mode perl"),
        ("a --mode perl --wordnet no/lists", 2, "does not have adj.exc"),  # before a file is read
        ("a --per-example /dev/null/x.csv", 4, "cannot write to /dev/null (File exists)"),
        ("nowhere.jsonl", 3, "nowhere.jsonl: no such file or folder"),
    ],
)
def test_a_wrong_word_is_one_line_that_says_what_is_allowed(
    scored: Scored, words: str, code: int, message: str
) -> None:
    """Each ends with one line that says what is allowed, and its exit code."""
    exit_code, out, lines = scored(*words.split())
    assert (exit_code, out, len(lines)) == (code, "", 1)
    assert message in lines[0]


@pytest.fixture
def wordless(tmp_path: Path) -> Path:
    """Three predictions in a file: one is right, one is half right, one has a reference without a word."""
    references = {"a": "one two", "b": "one three", "c": "…"}
    rows = []
    for name, reference in references.items():
        rows.append({"id": name, "prediction": "one two", "references": [reference]})
    return write_rows(tmp_path / "both.jsonl", rows)


@pytest.mark.parametrize(
    ("rule", "mean", "n", "left_out"), [("skip", 75.0, 2, ["c"]), ("zero", 50.0, 3, [])]
)
def test_an_empty_reference_is_left_out_or_scores_zero(
    wordless: Path, scored: Scored, rule: str, mean: float, n: int, left_out: list[str]
) -> None:
    """F of 1 and 1/2 have the mean 3/4; with the wordless reference as 0 it is 1/2, as the signature says."""
    code, output, _ = scored(wordless, "--empty-references", rule, "--json")
    found = json.loads(output)
    assert (code, found["rouge1"]["f"], found["n"]) == (0, pytest.approx(mean), n)
    assert found["left_out"]["empty_references"] == left_out
    assert found["signature"].endswith("|empty_references:zero") == (rule == "zero")
    assert ("empty_references" in found["signature"]) == (rule == "zero")


def test_a_run_is_scored_against_its_references(tmp_path: Path, typed: Typed) -> None:
    """`score RUN` gives the run's own scores, by its folder or the beginning of its id; without its texts, nothing."""
    results, toy = tmp_path / "results", write_jsonl(tmp_path / "toy")
    # three texts, of two with two questions
    rows = read_rows(toy / "test.jsonl")
    write_rows(
        toy / "test.jsonl",
        ({**row, "document": rows[n // 2]["document"]} for n, row in enumerate(rows)),
    )
    words = ["dataset=jsonl", f"dataset.path={toy}", "baselines=false"]
    assert typed("run", "model=lead", *words, f"results_dir={results}", "decode.limit=5")[0] == 0
    (path,) = results.glob("runs/*/*/*/record.json")
    run, place = RunRecord.read(path.parent), ["--results-dir", results]
    for name in (path.parent, run.run_id[:4]):
        values = json.loads(typed("score", name, "--json", *place)[1])
        assert (values["n"], values["groups"]) == (5, 3)
        for kind, score in run.evaluation.scores.items():
            assert values[kind] == asdict(score)
    code, _, err = typed("score", path.parent, "--groups", "id")
    assert (code, "a run has the groups of its sources" in err) == (2, True)
    (path.parent / "work" / "corpus").unlink()
    code, _, err = typed("score", path.parent)
    problem = "texts are not on this machine: name REFERENCES, or read them by longsumbench run"
    assert (code, problem in err) == (3, True)
    code, _, err = typed("score", "nosuch", *place)
    problem = "nosuch: no such file or folder, and no finished run is called 'nosuch'"
    assert (code, problem in err) == (3, True)


TEXTS = ["the cat sat", "a dog", "stocks fell on monday"]
LABELLED = pd.Series(TEXTS, index=["a", "b", "c"])
SHUFFLED = pd.Series(TEXTS).sample(frac=1, random_state=3)


@pytest.mark.parametrize(
    ("predictions", "references"),
    [
        (iter(TEXTS), tuple(TEXTS)),
        (LABELLED, LABELLED[::-1]),
        (LABELLED[::-1], dict(LABELLED)),
        (SHUFFLED, pd.Series(TEXTS)),
        (pd.Series(TEXTS), TEXTS),
        (pd.Series([np.array([text]) for text in TEXTS]), [[text] for text in TEXTS]),
        (datasets.Dataset.from_dict({"p": TEXTS})["p"], TEXTS),
    ],
)
def test_texts_are_paired_by_label_or_place(predictions: Any, references: Any) -> None:
    """Equal texts with the same labels, or at the same places, are paired, whatever they come in."""
    report = longsumbench.score(predictions, references, resamples=100)
    assert report.f1["rouge1"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("predictions", "references", "words"),
    [
        (LABELLED.to_frame("p"), TEXTS, "predictions is a table of p: give one column"),
        (TEXTS, datasets.Dataset.from_dict({"r": TEXTS}), "references is a table of r: give one"),
        (
            LABELLED,
            LABELLED.rename({"b": "x"}),
            "ids 'b') and 1 reference without a prediction (ids 'x'",
        ),
        (LABELLED, TEXTS, "one has ids"),
        (pd.concat([LABELLED, LABELLED]), LABELLED, "predictions has the label 'a' twice"),
        (LABELLED.astype("string").where(LABELLED != "a dog"), LABELLED, "example 'b'"),
        ([TEXTS[0], LABELLED.to_frame()], TEXTS[:2], "example 2"),
        (np.array("a text"), TEXTS, "put a single text into a list"),
    ],
)
def test_what_cannot_be_paired_is_one_line(predictions: Any, references: Any, words: str) -> None:
    """Tables, other labels, labels that occur twice and missing texts are named."""
    with refuses(re.escape(words), SuiteError):
        longsumbench.score(predictions, references)


MEETINGS = ["m", 7, "m"]


@pytest.mark.parametrize("labels", [None, ["a", "b", "c"]])
def test_named_groups_are_drawn_together(labels: list[str] | None) -> None:
    """Two questions about one meeting are one case: means stay, the interval is over two meetings."""
    sides: list[Any] = [["the cat sat", "stocks", "a dog"], [TEXTS[0], *TEXTS[:0:-1]], MEETINGS]
    if labels is not None:
        sides = [pd.Series(side, labels) for side in sides]
    predictions, texts, groups = sides
    alone = longsumbench.score(predictions, texts, resamples=500)
    report = longsumbench.score(predictions, texts, resamples=500, groups=groups)
    assert report.f1 == alone.f1
    assert report.render().startswith("3 examples of 2 texts;")
    assert json.loads(report.to_json())["groups"] == 2
    assert "groups" not in json.loads(alone.to_json())
    assert report.scored.per_example["group"].tolist() == [0, 1, 0]
    # the second meeting, drawn twice, scores lowest
    lowest = 100 * report.scored.per_example["rouge1_f"].iloc[1]
    interval = report.scores["rouge1"].f_lo, report.scores["rouge1"].f_hi
    assert interval == pytest.approx((lowest, 100))


@pytest.mark.parametrize(
    "groups", [MEETINGS[1:], ["m", "m", math.nan], {"1": "m", "2": "m"}, "mmm"]
)
def test_bad_groups_are_one_line(groups: Any) -> None:
    """Too few groups, none for an example, and values that are no name are errors."""
    with pytest.raises(SuiteError, match=r"^groups.*list"):
        longsumbench.score(TEXTS, TEXTS, groups=groups)


@pytest.mark.parametrize("place", [0, 1])
def test_the_field_of_groups(files: Files, scored: Scored, tmp_path: Path, place: int) -> None:
    """`--groups` takes a field of either file; a field that neither has, or that is no name, is an error."""
    rows = read_rows(files[place])
    write_rows(files[place], [{**row, "talk": 3 if row["id"] == "b" else "x"} for row in rows])
    table = tmp_path / "scores.csv"
    code, out, _ = scored(*files, "--groups", "talk", "--per-example", table)
    assert (code, out.startswith("3 examples of 2 texts;")) == (0, True)
    assert read_scores(table)["group"].tolist() == [0, 1, 0]
    for field, status, problem in (
        ("nosuch", 2, "has no such field"),
        ("references", 3, "the field 'references'"),
    ):
        code, _, err = scored(*files, "--groups", field)
        assert (code, problem in err[-1]) == (status, True)
    for name in ("x.dec", "x.ref"):
        (tmp_path / name).write_text("a b")
    code, _, err = scored(tmp_path, "--groups", "talk")
    assert (code, "has no such field" in err[-1]) == (2, True)
