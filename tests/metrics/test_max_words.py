"""`score.max_words`: ROUGE of the first words of each output, as `-l` of ROUGE-1.5.5 cuts it; references stay whole."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.commands import Typed
from support.toys import write_jsonl

import longsumbench
from longsumbench.core import Example, Scoring
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.rouge import Rouge
from longsumbench.runs.results import Results

CUT = (
    "The well-known model reads the whole meeting, twice.",
    "It then writes a summary: short, but not too short!",
    "Nobody asked for the third sentence -- it is cut.",
)
WHOLE = ("The model reads a meeting and writes a short summary.",)
PEOPLE = "1.5 million people (or so) left.", "They never came back - at least not by train."
TRAIN = "Some 1.5 million people left by train.", "They came back."
# Texts and N → P, R and F of ROUGE-1, -2 and -L that `ROUGE-1.5.5.pl -n 2 -a -l N -z SPL` printed. That program cuts
# references, too, so N is at least their length
PRINTED = [
    (CUT, WHOLE, 10, "0.36364 0.4 0.38095 0.1 0.11111 0.10526 0.36364 0.4 0.38095"),
    (CUT, WHOLE, 13, "0.5 0.7 0.58333 0.15385 0.22222 0.18182 0.5 0.7 0.58333"),
    (CUT, WHOLE, 27, "0.2963 0.8 0.43244 0.07692 0.22222 0.11428 0.25926 0.7 0.37838"),
    (CUT, WHOLE, 28, "0.28571 0.8 0.42105 0.07407 0.22222 0.11111 0.25 0.7 0.36842"),
    (PEOPLE, TRAIN, 10, "0.72727 0.72727 0.72727 0.4 0.4 0.4 0.72727 0.72727 0.72727"),
    (PEOPLE, TRAIN, 13, "0.61538 0.72727 0.66666 0.33333 0.4 0.36363 0.61538 0.72727 0.66666"),
    (PEOPLE, TRAIN, 15, "0.6 0.81818 0.69231 0.28571 0.4 0.33333 0.6 0.81818 0.69231"),
]
WORDS = st.sampled_from(["a", "b", "dogs", "x-y", "--", "…", "日本", "e\u0301", "ไทย"])
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=5).map(tuple)


def rouge(
    prediction: tuple[str, ...], reference: tuple[str, ...], **options: Any
) -> dict[str, float]:
    example = Example("x", None, None, (), (reference,))
    return Rouge(Scoring(stem=False, **options)).score(prediction, example)


@pytest.mark.parametrize(("prediction", "reference", "limit", "printed"), PRINTED)
def test_the_first_words_are_those_of_rouge_155(
    prediction: tuple[str, ...], reference: tuple[str, ...], limit: int, printed: str
) -> None:
    """The five digits are those of the program, within a sentence and at the end of one."""
    scores = rouge(prediction, reference, mode="perl", max_words=limit)
    kinds = ("rouge1", "rouge2", "rougeLsum")
    values = [scores[f"{kind}_{statistic}"] for kind in kinds for statistic in "prf"]
    assert values == [*map(float, printed.split())]


@given(TEXTS, TEXTS, st.sampled_from(["default", "unicode"]))
def test_a_limit_that_no_output_reaches_changes_nothing(
    prediction: tuple[str, ...], reference: tuple[str, ...], tokenizer: str
) -> None:
    """N of at least all words gives the scores of no limit, in every script."""
    longest = max(1, len("".join(prediction)))
    expected = rouge(prediction, reference, tokenizer=tokenizer)
    assert rouge(prediction, reference, tokenizer=tokenizer, max_words=longest) == expected


def test_three_words_by_hand() -> None:
    """Of "a b | c d" three words match three of the four of the whole reference; letters count in Japanese."""
    scores = rouge(("a b", "c d"), ("a b c e",), max_words=3)
    assert (scores["rouge1_p"], scores["rouge1_r"]) == (1, 0.75)
    scores = rouge(("日本の夏",), ("日本の冬",), max_words=2, tokenizer="unicode")
    assert (scores["rouge1_p"], scores["rouge1_r"]) == (1, 0.5)


def test_only_a_limit_is_in_the_signature() -> None:
    """Without one, signatures are as ever; with one, they say what was cut."""
    assert Rouge(Scoring()).signature(3).split("|")[7] == "truncation:none"
    assert Rouge(Scoring(max_words=50)).signature(3).split("|")[7] == "truncation:outputs-50-words"


def test_runs_with_a_limit_are_in_their_own_block(tmp_path: Path, typed: Typed) -> None:
    """`run`, `import` and `score` cut alike; `verify` agrees; the length is that of the whole output."""
    toy, results = write_jsonl(tmp_path / "toy"), Results(tmp_path / "results")
    words = [
        "dataset=jsonl",
        f"dataset.path={toy}",
        "baselines=false",
        f"results_dir={results.root}",
    ]
    for limit in ([], ["score.max_words=3"]):
        assert typed("run", "model=lead", "model.length=20", *words, *limit)[0] == 0
    table = read_table(results, "jsonl")
    rows = [block.rows[0] for block in table.comparable]
    cut, whole = sorted(rows, key=lambda row: row.representative.config.score.max_words or 10**6)
    outputs = results.run_folder(cut.representative) / "predictions.jsonl"
    command = ["import", outputs, "--model", "theirs", "--dataset", "jsonl", words[1], *words[2:]]
    assert typed(*command, "score.max_words=3")[0] == 0
    sizes = sorted(len(block.rows) for block in read_table(results, "jsonl").comparable)
    assert sizes == [1, 2]
    assert cut.words == whole.words == 17.5
    code, out, _ = typed("score", outputs, toy / "test.jsonl", "--max-words", 3, "--json")
    assert code == 0
    assert json.loads(out)["rouge1"]["f"] == cut.representative.evaluation.scores["rouge1"].f
    assert typed("verify", cut.representative.run_id, "--results-dir", results.root)[0] == 0


def test_a_limit_is_a_number_of_words(typed: Typed) -> None:
    """Zero is one line for every command, and an error in Python."""
    settings = "run model=lead dataset=aclsum score.max_words=0"
    for words in (settings, "score nowhere.jsonl --max-words=0"):
        code, out, error = typed(*words.split())
        assert (code, out, error.count("\n")) == (2, "", 1)
        assert "=0 is below 1" in error
    with pytest.raises(longsumbench.errors.UsageError, match="max-words=0 is below 1"):
        longsumbench.score(["a"], ["a"], max_words=0)
