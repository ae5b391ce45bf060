"""Reading folders of judged outputs: what is taken, what is left out, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.json_files import write_rows
from support.toys import refuses

from longsumbench.core import Scoring
from longsumbench.errors import DataError, SuiteError, UsageError
from longsumbench.outputs.judgements import read_judged, score_judged

SOURCE = "The old bridge was closed in May. A new bridge opens in June. It costs nine million."
TEXTS = {
    "a": "The old bridge was closed.",
    "b": "A new bridge opens. A new bridge opens.",
    "c": "Nothing is known about it.",
}
Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture
def rows() -> Rows:
    """Return two documents, three systems and two annotators."""
    ids = ("one", "two")
    return {
        "documents": [
            {
                "id": name,
                "document": SOURCE,
                "references": ["The bridge was closed.", "A new bridge."],
            }
            for name in ids
        ],
        "outputs": [
            {"id": name, "system": system, "output": text}
            for name in ids
            for system, text in TEXTS.items()
        ],
        "judgements": [
            {
                "id": name,
                "system": system,
                "annotator": annotator,
                "aspect": "overall",
                "score": place + annotator,
            }
            for name in ids
            for place, system in enumerate(TEXTS)
            for annotator in (1, 2)
        ],
    }


def write_files(folder: Path, rows: Rows) -> Path:
    """Write the three files."""
    for name, items in rows.items():
        write_rows(folder / f"{name}.jsonl", items)
    return folder


def test_judgements_have_an_axis_for_each_name(rows: Rows, tmp_path: Path) -> None:
    """They are in the order of the files; an annotator's several scores of one output are averaged."""
    rows["judgements"].append({**rows["judgements"][0], "score": 4})
    judged = read_judged(write_files(tmp_path, rows))
    assert (list(judged.examples), judged.systems, judged.aspects) == (
        ["one", "two"],
        ["a", "b", "c"],
        ["overall"],
    )
    assert judged.judgements.tolist() == [[[[2.5, 2, 3], [1, 2, 3]], [[2, 3, 4], [2, 3, 4]]]]
    assert list(judged.notes) == []


def test_scores_and_controls_of_an_output(rows: Rows, tmp_path: Path) -> None:
    """Each value of ROUGE is that of the reference that is best for it; controls are as counted by hand."""
    measures = score_judged(
        read_judged(write_files(tmp_path, rows)), Scoring(metrics=["extractive"])
    )
    values = {name: table[0].tolist() for name, table in measures.scores.items()}
    assert values["rouge1_p"] == pytest.approx([4 / 5, 3 / 8, 0])
    assert values["rouge1_r"] == pytest.approx(
        [1, 1, 0]
    )  # all of "The bridge was closed.", all of "A new bridge."
    assert values["words"] == [5, 8, 5]
    assert values["copied_bigrams"] == pytest.approx([1, 6 / 7, 0])
    assert values["repeated_bigrams"] == pytest.approx([0, 3 / 7, 0])
    assert list(measures.shown)[-4:] == [
        "extractive_coverage",
        "words",
        "copied_bigrams",
        "repeated_bigrams",
    ]


def test_without_sources_what_reads_them_is_left_out(rows: Rows, tmp_path: Path) -> None:
    """No output has a share of novel or copied words of a source that is missing; a line names these measures."""
    for row in rows["documents"]:
        del row["document"]
    metrics = ["extractive", "novel_ngrams"]
    left_out = ["entity_precision", "number_precision", "copied", *metrics]
    measures = score_judged(read_judged(write_files(tmp_path, rows)), Scoring(metrics=metrics))
    assert all(
        name.startswith("rouge") or name in ("words", "repeated_bigrams")
        for name in measures.scores
    )
    assert list(measures.notes) == [
        f"{name} is left out in 2 of 2 documents: it reads sources" for name in left_out
    ]


def test_without_references_rouge_is_left_out(rows: Rows, tmp_path: Path) -> None:
    """The controls stay; a document without reference is left out if others have one."""
    rows["documents"][0]["references"] = []
    judged = read_judged(write_files(tmp_path, rows))
    assert (list(judged.examples), judged.judgements.shape) == (["two"], (1, 2, 1, 3))
    assert list(judged.notes) == ["left out: 1 document without reference ('one')"]
    rows["documents"][1]["references"] = []
    judged = read_judged(write_files(tmp_path, rows))
    measures = score_judged(judged, Scoring())
    assert {"words", "copied_bigrams", "repeated_bigrams"} <= measures.scores.keys()
    assert not any(name.startswith("rouge") for name in measures.scores)
    assert list(measures.notes) == [
        "rouge is left out: it applies to no output (are references missing?)"
    ]


def test_empty_outputs_are_left_out(rows: Rows, tmp_path: Path) -> None:
    """An empty output has no score, not 0, and no judgement; a line names it, as one of a single word."""
    rows["outputs"][0]["output"], rows["outputs"][1]["output"] = " ", "nan"
    judged = read_judged(write_files(tmp_path, rows))
    measures = score_judged(judged, Scoring())
    assert np.isnan(judged.judgements[:, :, 0, 0]).all()
    assert all(np.isnan(table[0, 0]) for table in measures.scores.values())
    assert list(judged.notes) == ["left out: 1 empty output ('a on one')"]
    assert list(measures.notes) == ["1 output of fewer than two words ('b on one')"]


def test_sources_in_another_file(rows: Rows, tmp_path: Path) -> None:
    """A source may be in a row of another file with the same id; it may be a list of documents."""
    for row in rows["documents"]:
        row |= {"document": None, "document_at": "stories.jsonl", "story_id": 7}
    stories = [
        {"story_id": 6, "document": "Another one."},
        {"story_id": 7, "document": [SOURCE, "", "The end."]},
    ]
    write_files(tmp_path, {**rows, "stories": stories})
    example = read_judged(tmp_path).examples["one"]
    assert [" ".join(document.sentences()) for document in example.documents] == [
        SOURCE,
        "The end.",
    ]


def test_the_files_may_be_tables(rows: Rows, tmp_path: Path) -> None:
    """Judgements in a CSV are those of the JSON lines; of two files with the same name neither is read."""
    expected = read_judged(write_files(tmp_path, rows))
    pd.DataFrame(rows["judgements"]).to_csv(tmp_path / "judgements.csv", index=False)
    with pytest.raises(DataError, match=r"judgements\.csv and judgements\.jsonl: keep one"):
        read_judged(tmp_path)
    (tmp_path / "judgements.jsonl").unlink()
    assert read_judged(tmp_path).judgements.tolist() == expected.judgements.tolist()


def test_documents_and_systems_are_chosen(rows: Rows, tmp_path: Path) -> None:
    """`where` takes the documents with a value of a field, `leave_out` drops a system."""
    rows["documents"][1]["corpus"] = "arXiv"
    judged = read_judged(write_files(tmp_path, rows), ["corpus=arXiv"], ["b"])
    assert (list(judged.examples), judged.systems) == (["two"], ["a", "c"])
    for wrong, message in (
        ({"where": ["corpus=x"]}, "no document has corpus=x"),
        ({"leave_out": ["d"]}, "system 'd'"),
    ):
        with pytest.raises(UsageError, match=message):
            read_judged(tmp_path, **wrong)


# File, what its first row has instead, and the error
BAD_ROWS = """
judgements {"id": "three"} → judgements.jsonl:1: unknown document 'three'
judgements {"score": null} → judgements.jsonl:1: Expected `float`, got `null`
outputs {"id": "two"} → outputs.jsonl:4: a second output of a for 'two'
documents {"references": {"a": "text"}} → 'references' must be a list
documents {"id": "two"} → documents.jsonl:2: a second document 'two'
"""


@pytest.mark.parametrize("line", BAD_ROWS.strip().splitlines())
def test_bad_rows_are_one_line(line: str, rows: Rows, tmp_path: Path) -> None:
    """The error names the file, the line and what is wrong."""
    row, message = line.split(" → ")
    name, change = row.split(" ", 1)
    rows[name][0] |= json.loads(change)
    with refuses(re.escape(message), DataError):
        read_judged(write_files(tmp_path, rows))


def test_judgements_without_their_output_are_refused(rows: Rows, tmp_path: Path) -> None:
    """So are missing and empty files."""
    del rows["outputs"][2]
    with pytest.raises(DataError, match="c has no output for 'one'"):
        read_judged(write_files(tmp_path, rows))
    (tmp_path / "judgements.jsonl").write_text("")
    with pytest.raises(DataError, match="the file is empty"):
        read_judged(tmp_path)
    with pytest.raises(SuiteError, match="documents"):
        read_judged(tmp_path / "nowhere")


def test_words_are_counted_between_blanks(rows: Rows, tmp_path: Path) -> None:
    """The control `words` counts as tables do, whatever ROUGE's tokenizer keeps of a text."""
    for row, text in zip(
        rows["outputs"], ("A three-year plan.", "Η νέα γέφυρα ανοίγει."), strict=False
    ):
        row["output"] = text
    measures = score_judged(read_judged(write_files(tmp_path, rows)), Scoring())
    assert measures.scores["words"][0].tolist() == [3, 4, 5]
