"""CNN/DailyMail: the released stories and their url lists, the hub's rows, and JSON lines with the hub's fields."""

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest
from support.dataset_rows import story_row
from support.hub import offer_on_hub
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.corpora.cnn_dailymail import from_story
from longsumbench.corpora.reading.load import load_texts

read = partial(read_texts, "cnn_dailymail")
problem = partial(reading_problem, "cnn_dailymail")

STORY = "It was late. Nobody came.\n\nThe end .\n\n@highlight\n\nNobody came\n\n@highlight\n\nIt was late. Very late .\n"


def url(number: int) -> str:
    """The address of a story."""
    return f"http://web.archive.org/web/2015id_/http://www.cnn.com/{number}.html"


def digest(number: int) -> str:
    """The name of a story's file, without its ending."""
    return hashlib.sha1(url(number).encode(), usedforsecurity=False).hexdigest()


def write_story(folder: Path, number: int, text: str = STORY) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest(number)}.story"
    path.write_text(text)
    return path


def write_list(path: Path, numbers: list[int]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{url(number)}\n" for number in numbers))
    return path


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of five stories: 1 and 2 of CNN to train on, 3 and 4 of the Daily Mail, and 5, which no list names."""
    root = tmp_path / "release"
    for number in range(1, 6):
        write_story(root / ("cnn" if number < 3 else "dailymail") / "stories", number)
    for split, numbers in (("train", [2, 1]), ("val", [3]), ("test", [4])):
        write_list(root / "url_lists" / f"all_{split}.txt", numbers)
    return root


def test_a_story_is_paragraphs_and_a_sentence_for_each_highlight() -> None:
    """Blank lines separate paragraphs, a highlight is one sentence however many full stops it has, text is kept."""
    text = (
        "By . Associated Press . PUBLISHED: . 14:11 EST, 25 October 2013 . | .\r\n\r\n"
        "The bishop was ill. He\nrests.\r\n \r\nA caption without a full stop\r\n\r\n"
        "@highlight\r\n\r\nBishop ill. He rests .\r\n\r\n@highlight\r\n\r\n  \r\n"
        "@highlight\r\n\r\nNEW: Dr. Who\tsees  him\r\n"
    )
    paragraphs = (
        ("By .", "Associated Press .", "PUBLISHED: .", "14:11 EST, 25 October 2013 .", "| ."),
        ("The bishop was ill.", "He rests."),
        ("A caption without a full stop",),
    )
    document = Document("http://x", (Section(None, paragraphs),))
    reference = ("Bishop ill. He rests .", "NEW: Dr. Who sees him")
    assert from_story(text, "abc", "http://x") == Example(
        "abc", None, None, (document,), (reference,)
    )


def test_the_lists_of_a_release_decide_splits_and_order(
    release: Path, stages: ArtifactCache
) -> None:
    """The lists say the splits and the order, in folders of any name; a story that none of them names is ignored."""
    texts = read(release, stages)
    assert {name: split.ids for name, split in texts.splits.items()} == {
        "train": [digest(2), digest(1)],
        "validation": [digest(3)],
        "test": [digest(4)],
    }
    example = texts.splits["test"][0]
    assert example.documents[0].source == url(4)
    assert example.documents[0].sections[0].paragraphs == (
        ("It was late.", "Nobody came."),
        ("The end .",),
    )
    assert example.references == (("Nobody came", "It was late. Very late ."),)
    assert texts.facts["files"] == [
        f"url_lists/all_{split}.txt" for split in ("train", "val", "test")
    ]
    assert str(release) not in json.dumps(dict(texts.facts))
    assert not texts.multi_document


BAD_STORIES = {
    "only highlights": (
        b"\n\n@highlight\n\nNobody came\n",
        "the article is empty: dataset.strict=false leaves",
    ),
    "no highlights": (b"It was late.\n", "there is no highlight"),
    "nothing": (b"", "the article is empty"),
}


@pytest.mark.parametrize("name", BAD_STORIES)
def test_a_bad_story_is_named(name: str, release: Path, stages: ArtifactCache) -> None:
    """A story that cannot be used is one line with its file; not strict, it is left out and counted."""
    content, expected = BAD_STORIES[name]
    path = release / "cnn" / "stories" / f"{digest(1)}.story"
    path.write_bytes(content)
    message = problem(release, stages)
    assert message.startswith(f"{path}: ")
    assert expected in message
    texts = read(release, stages, strict=False)
    assert texts.splits["train"].ids == [digest(2)]
    assert list(texts.facts["skipped"]["train"].values()) == [1]


def test_a_missing_story_is_named_with_its_list(release: Path, stages: ArtifactCache) -> None:
    """It is named with the list and line that name it; not strict, it is counted."""
    (release / "cnn" / "stories" / f"{digest(1)}.story").unlink()
    message = problem(release, stages)
    assert message.startswith(
        f"{release / 'url_lists' / 'all_train.txt'}:2: the story is missing: "
    )
    assert digest(1) in message
    assert url(1) in message
    assert read(release, stages, strict=False).facts["skipped"] == {
        "train": {"the story is missing": 1}
    }


def test_what_is_no_release_is_named(release: Path, stages: ArtifactCache) -> None:
    """No lists, an empty list, no stories, and nothing at all are each said plainly."""
    assert "none of the url lists" in problem(release / "cnn", stages)
    empty = write_list(release / "url_lists" / "all_val.txt", [])
    assert problem(release, stages) == f"{empty}: the file is empty"
    assert problem(release / "url_lists", stages).startswith(
        f"{release / 'url_lists'}: no .story files"
    )


def test_rows_of_the_hub(
    stages: ArtifactCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They come from version 3.0.0, keep their ids, and are read from JSON lines, too; a highlight is a sentence."""
    row = story_row("x1")
    asked = offer_on_hub(monkeypatch, tmp_path, [row])
    texts = load_texts(DatasetSettings(name="cnn_dailymail"), stages)
    assert asked == [("abisee/cnn_dailymail", "3.0.0")]
    assert texts.splits["test"][0].references == (("It snowed .", "She left ."),)
    (tmp_path / "train.jsonl").write_text(json.dumps(row) + "\n")
    assert list(read(tmp_path, stages).splits["train"]) == list(texts.splits["train"])
