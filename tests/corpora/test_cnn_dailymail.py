"""CNN/DailyMail: the released stories and their url lists, the hub's rows, and JSON lines with the hub's fields."""

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest
from support.reading import read_texts, reading_problem

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Document, Example, Section
from longsumbench.corpora.cnn_dailymail import from_story

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
    release: Path, cache: ArtifactCache
) -> None:
    """The lists say the splits and the order, in folders of any name; a story that none of them names is ignored."""
    texts = read(release, cache)
    train, validation, test = (split.ids for split in texts.splits.values())
    assert (train, validation, test) == ([digest(2), digest(1)], [digest(3)], [digest(4)])
    assert texts.splits["test"][0] == from_story(STORY, digest(4), url(4))
    assert texts.metadata["files"][0] == "url_lists/all_train.txt"
    assert str(release) not in json.dumps(dict(texts.metadata))


def test_a_bad_story_is_named(release: Path, cache: ArtifactCache) -> None:
    """A story that cannot be used is one line with its file."""
    path = release / "cnn" / "stories" / f"{digest(1)}.story"
    for content, expected in (
        ("\n@highlight\n\nx\n", "the article is empty"),
        ("x", "no highlight"),
    ):
        path.write_text(content)
        message = problem(release, cache)
        assert message.startswith(f"{path}: ")
        assert expected in message


def test_a_missing_story_is_named_with_its_list(release: Path, cache: ArtifactCache) -> None:
    """It is named with the list and line that name it; not strict, it is counted."""
    (release / "cnn" / "stories" / f"{digest(1)}.story").unlink()
    place = f"{release / 'url_lists' / 'all_train.txt'}:2"
    expected = f"{place}: the story is missing: no {digest(1)}.story for {url(1)}"
    assert problem(release, cache).startswith(expected)
    assert read(release, cache, strict=False).metadata["skipped"] == {
        "train": {"the story is missing": 1}
    }
