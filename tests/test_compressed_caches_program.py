"""Sentences of benchmarks/compressed_caches.py, on results made up so that the published ones would be false."""

import gzip
import json
from pathlib import Path

import compressed_caches as program
import pytest
from support.run_records import record
from support.stored_runs import store

from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results

SETS = list(program.SETS)[:2]
WHOLE = 30.0


def runs_of(name: str, adakv: float, snapkv: float, limit: int | None) -> list[RunRecord]:
    """Return the rows of a set at one length, with the R-Lsum of the two methods at every size."""
    runs = []
    means = {program.WHOLE: WHOLE, **dict(zip(program.METHODS, (adakv, snapkv), strict=True))}
    for file, model, variant in program.systems():
        run = record(
            model,
            means[model],
            run_id=f"{name}-{file}-{limit}",
            dataset=program.dataset_name(name),
            variant=variant,
            config={"score": {"max_words": limit}},
            signature=f"rouge:{limit}|n:40|v:1",
        )
        runs.append(run)
    return runs


def sentences(folder: Path, own: tuple[float, float], equal: tuple[float, float]) -> str:
    """Return all sentences of two sets whose methods have these scores at the two lengths."""
    for name in SETS:
        store(folder, *runs_of(name, *own, None), *runs_of(name, *equal, 50))
    results = Results(folder)
    sets = [program.read_lengths(results, name) for name in SETS]
    return " ".join([*program.sentences_of(sets), program.sentence_on_families(sets)])


def test_losses_that_are_only_length(tmp_path: Path) -> None:
    """All rows are below at their own length, and none at equal length; the methods are alike."""
    text = sentences(tmp_path, own=(20, 20), equal=(30, 30))
    assert "QMSum 40 examples and N = 50; GovReport 40 examples and N = 50." in text
    assert "At their own length, 16 of 16 compressed rows are shown to be below the whole" in text
    assert (
        "At equal length, 0 of 16 compressed rows are shown to be below the whole cache and 0"
        in text
    )
    assert (
        "QMSum, own length: the whole cache, in points of R-Lsum: above AdaKV-early-2024 of" in text
    )
    assert (
        "QMSum, first 50 words: the whole cache, in points of R-Lsum: not shown to differ:" in text
    )
    assert text.count("shown to differ in 0 of 8 comparisons") == 2
    assert (
        "one family, 16 rows differ from the whole cache at their own length and 0 at equal" in text
    )


def test_rows_above_the_whole_cache(tmp_path: Path) -> None:
    """A method that is above the whole cache, or above the other method, is said to be so at the length where it is."""
    text = sentences(tmp_path, own=(30, 30), equal=(35, 25))
    assert "0 of 16 compressed rows are shown to be below the whole cache and 0 above it" in text
    assert "8 of 16 compressed rows are shown to be below the whole cache and 8 above it" in text
    assert "QMSum, first 50 words: the whole cache, in points of R-Lsum: below AdaKV" in text
    for size in program.SIZES:
        names = [f"{model} of {size} entries" for model in program.METHODS]
        assert f"GovReport, first 50 words: {names[0]} is above {names[1]} by " in text
        assert f"GovReport, own length: {names[0]} is above" not in text
    assert "shown to differ in 8 of 8 comparisons" in text
    assert text.endswith("and AdaKV and SnapKV differ in 0 and 8 comparisons.")
    worse = sentences(tmp_path / "worse", own=(25, 35), equal=(30, 30))
    assert (
        "QMSum, own length: SnapKV-early-2024 of 256 entries is above AdaKV-early-2024 of" in worse
    )


def test_equal_length_is_that_of_the_shortest_row() -> None:
    """Means of 25 and 19.5 words give 10: the shorter one, rounded down."""
    long, short = [{"summary": "a " * 25}], [{"summary": "a " * 19}, {"summary": "a " * 20}]
    assert program.equal_length({"a": long, "b": short}) == 10


def test_meetings_are_found_by_question_and_answer(tmp_path: Path) -> None:
    """Two meetings with the same question are told apart by the answer; an unknown answer ends the program."""
    (tmp_path / "qmsum").mkdir()
    meetings = []
    for name in ("m1", "m2"):
        query = {"query": "Summarize it.", "answer": f"{name} "}
        lists = {"general_query_list": [query], "specific_query_list": []}
        meetings.append({**lists, "meeting_id": name})
    lines = "\n".join(map(json.dumps, meetings))
    (tmp_path / "qmsum" / "validation.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    questions = [{"query": "Summarize it.", "references": [answer]} for answer in ("m2", "m1")]
    assert list(program.meetings_of(questions, tmp_path)) == ["m2", "m1"]
    with pytest.raises(KeyError):
        list(program.meetings_of([{"query": "Summarize it.", "references": ["m3"]}], tmp_path))
