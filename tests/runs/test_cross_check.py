"""A sample of each run's ROUGE is computed again by rouge_score, and the record says with which result."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.run_records import record
from support.toys import ToySplit, example, write_jsonl

from longsumbench.core import DatasetSettings, Decoding, Example, RunConfig, Scoring, registry
from longsumbench.metrics.cross_check import MOST_CHECKED, CrossCheck, check_rouge
from longsumbench.metrics.evaluate import score_all
from longsumbench.metrics.rouge import Rouge
from longsumbench.rouge import scorer
from longsumbench.runs.pipeline import run_point
from longsumbench.runs.plan import Point
from longsumbench.runs.record import RunRecord


def checked(examples: list[Example], scoring: Scoring, change: float = 0.0, changed: int = 0) -> CrossCheck | None:
    """Score the beginning of each source and check it; one row's F1 is changed."""
    split, rouge = ToySplit("test", examples), Rouge(scoring)
    texts = [" ".join(one.sentences())[:300] + "\nA line more." for one in examples]
    table: Any = score_all([rouge], zip(texts, examples, strict=True)).per_example
    table.iloc[changed, table.columns.get_loc("rougeL_f")] += change
    return check_rouge(rouge, texts, split, table)


@pytest.mark.parametrize("rule", ["suite", "given", "newline"])
@pytest.mark.parametrize("stem", [True, False])
def test_scores_are_those_of_rouge_score(rule: str, stem: bool) -> None:
    """Twenty of many examples are checked, and differ by nothing, however sentences are split."""
    check = checked([example(number) for number in range(30)], Scoring(stem=stem, sentences=rule))
    assert check is not None
    assert (check.examples, check.largest_difference) == (MOST_CHECKED, 0)


def test_a_difference_names_its_example() -> None:
    """A wrong score of one example is the largest difference, with the example's id."""
    examples = [example(number) for number in range(9)]
    change: Any = pytest.approx(1e-3)
    assert checked(examples, Scoring(), 1e-3, 4) == CrossCheck(9, change, examples[4].id)


def test_long_examples_are_few() -> None:
    """Examples of a thousand words are so slow to check that fewer are, but always one."""
    words = " ".join(f"w{number}" for number in range(900))
    long = [Example(f"{n}", None, None, example(n).documents, ((words, words),)) for n in range(9)]
    texts = [words] * 9
    rouge = Rouge(Scoring())
    table: Any = score_all([rouge], zip(texts, long, strict=True)).per_example
    check = check_rouge(rouge, texts, ToySplit("test", long), table)
    assert check is not None
    assert (check.examples, check.largest_difference) == (1, 0)


@pytest.mark.parametrize(
    "scoring", [Scoring("perl", stem=False), Scoring(tokenizer="unicode"), Scoring(references="jackknife")]
)
def test_other_scores_are_not_checked(scoring: Scoring) -> None:
    """What rouge_score does not compute is not compared with it."""
    assert checked([example(1)], scoring) is None


def lead_run(folder: Path) -> RunRecord:
    config = RunConfig(
        registry.systems.load("lead").Config(),
        DatasetSettings("jsonl", str(write_jsonl(folder / "toy"))),
        score=Scoring(resamples=100),
        decode=Decoding(device="cpu"),
        results_dir=str(folder / "results"),
    )
    return run_point(Point(config))


def test_a_run_keeps_its_check(tmp_path: Path) -> None:
    """The record on disk has the number of checked examples and the largest difference."""
    made = lead_run(tmp_path)
    (path,) = (tmp_path / "results").glob("runs/*/*/*/record.json")
    assert RunRecord.read(path.parent).cross_check == made.cross_check
    assert made.cross_check is not None
    assert (made.cross_check.examples, made.cross_check.largest_difference) == (8, 0)


def test_a_run_with_other_scores_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Scores that are not rouge_score's are a warning with the example; the run is finished all the same."""
    right = scorer._google_score
    monkeypatch.setattr(
        scorer, "_google_score", lambda *counts: scorer.Score(*(0.99 * part for part in right(*counts)))
    )
    made = lead_run(tmp_path)
    assert made.cross_check is not None
    assert made.cross_check.largest_difference > 1e-3
    assert f"ROUGE of '{made.cross_check.example}' differs from rouge_score's by" in caplog.text


def test_a_record_without_a_check_is_read(tmp_path: Path) -> None:
    """Records of before the check are read as not checked."""
    record("lead", 30).write(tmp_path)
    values = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    del values["cross_check"]
    (tmp_path / "record.json").write_text(json.dumps(values), encoding="utf-8")
    assert RunRecord.read(tmp_path).cross_check is None
