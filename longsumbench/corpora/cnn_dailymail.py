"""CNN/DailyMail: news stories and their highlights, with names left in (See et al. 2017).

Paper: https://aclanthology.org/P17-1099. Hermann et al. (2015) collected the stories. Three sources:

* the hub (287,113, 13,368 and 11,490 stories). An article is one line; lines without a full stop got one ("expected .",
  mostly captions). The 114 stories without an article are missing;
* the release at `dataset.path=`: a folder that holds, at any depth, the `.story` files of both sites and the url lists
  of https://github.com/abisee/cnn-dailymail. Text stays as released. The lists name 287,227, 13,368 and 11,490 stories.
  A story without an article is an error; `dataset.strict=false` skips and counts it;
* JSON lines with the hub's fields at `dataset.path=`: id, article, highlights (one per line).

Each highlight is one sentence of the reference. Articles are not cleaned ("By . Associated Press . PUBLISHED: …").
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from longsumbench.core import Corpus, Entry, Example, Hub, Row, Source
from longsumbench.corpora.loading import fields, files, text_files
from longsumbench.errors import DataError

_LISTS = {"all_train.txt": "train", "all_val.txt": "validation", "all_test.txt": "test"}
_STORY = ".story"
_HIGHLIGHT = re.compile(r"^[^\S\n]*@highlight(?!\S)", re.MULTILINE)


def cnn_dailymail_example(row: Row) -> Example:
    """Turn one row of the hub into an Example."""
    article, highlights = fields.text_in(row, "article"), fields.text_in(row, "highlights")
    return build_example(fields.id_in(row, "id"), article, highlights.split("\n"), None)


def _stories_source(path: Path) -> Source | None:
    """Return the stories that the lists name, in the order of the lists; others are ignored.

    A list has one URL per line; its SHA-1 is the name of the story's file.

    The result is None for a file, and for a folder that has only JSON lines.
    """
    if not path.is_dir():
        return None
    lists, stories = _find_stories(path)
    if not stories:
        if not lists and files.has_split_files(path):
            return None
        raise DataError(
            f"no {_STORY} files in this folder or below, nor train, validation or test .jsonl in it",
            path,
        )
    if not lists:
        problem = f"{_STORY} files, but none of the url lists that define their splits: add {' '.join(_LISTS)}"
        raise DataError(problem, path)
    story_files = (folder / name for name, folder in stories.items())
    return files.local_source(
        path, list(lists.values()), partial(_story_entries, lists, stories), story_files
    )


def build_example(
    identity: str, article: str, highlights: Sequence[str], source: str | None
) -> Example:
    """Return a story as an Example. Each highlight is one sentence of the reference; empty ones are ignored.

    Raises:
        BadRow: there is no article or no highlight.
    """
    document = fields.text_document(article, source)
    if not document.sections[0].paragraphs:
        raise fields.BadRow("the article is empty", fields.LEAVE_OUT)
    sentences = tuple(filter(None, (" ".join(highlight.split()) for highlight in highlights)))
    if not sentences:
        raise fields.BadRow("there is no highlight", fields.LEAVE_OUT)
    return Example(identity, None, None, (document,), (sentences,))


def from_story(text: str, identity: str, url: str) -> Example:
    """Turn the text of a story's file into an Example; errors as `build_example`."""
    article, *highlights = _HIGHLIGHT.split(text)
    return build_example(identity, article, highlights, url)


def _find_stories(root: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return split → its list, and the name of a story's file → its folder. Linked folders are read, too."""
    lists: dict[str, Path] = {}
    stories: dict[str, Path] = {}
    for inside, folders, names in os.walk(root, onerror=_raise_unreadable, followlinks=True):
        folders.sort()
        lists |= {_LISTS[name]: Path(inside, name) for name in names if name in _LISTS}
        stories |= {name: Path(inside) for name in sorted(names) if name.endswith(_STORY)}
    return {split: lists[split] for split in files.ORDER if split in lists}, stories


def _raise_unreadable(error: OSError) -> None:
    raise DataError(f"cannot be read ({error.strerror or error})", error.filename) from error


def _story_entries(
    lists: dict[str, Path], stories: dict[str, Path], full: set[str]
) -> Iterator[Entry]:
    for split, path in lists.items():
        number = 0
        for number, url in text_files.names_in_list(path):
            name = hashlib.sha1(url, usedforsecurity=False).hexdigest() + _STORY
            address = url.decode("utf-8", "replace")
            if name in stories:
                story = stories[name] / name
                yield Entry(split, partial(_read_story, story, address), story)
            else:
                problem = f"no {name} for {address}; {fields.LEAVE_OUT}"
                refuse = partial(fields.refuse_row, "the story is missing", problem)
                yield Entry(split, refuse, path, number)
        if not number:
            raise DataError("the file is empty", path)


def _read_story(path: Path, address: str) -> Example:
    return from_story(text_files.read_text_file(path), path.name.removesuffix(_STORY), address)


CORPUS = Corpus(
    name="cnn_dailymail",
    title="CNN/DailyMail stories → highlights (See et al. 2017): from the hub, "
    "or by dataset.path=FOLDER of .story files and url lists.",
    licence="the scripts that made it: Apache-2.0; the stories: © CNN and Daily Mail",
    homepage="https://github.com/abisee/cnn-dailymail",
    published="2015-06",
    hub=Hub("abisee/cnn_dailymail", config="3.0.0"),
    from_hub_row=cnn_dailymail_example,
    from_file_row=cnn_dailymail_example,
    release=_stories_source,
)
