"""Folders of `.story` files, and lists that assign the stories to the splits.

This is the layout of the stories of CNN and Daily Mail (Hermann et al. 2015, See et al. 2017). A list has one URL per
line; its SHA-1 is the name of the story's file. A file has the paragraphs of the article, separated by blank lines, and
then the highlights, each under a line `@highlight`.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from longsumbench.core import Entry, Example, Source
from longsumbench.corpora.reading.fields import LEAVE_OUT, BadRow, Paragraphs, paragraphs_in, plain_document, refuse_row
from longsumbench.corpora.reading.files import (
    ORDER,
    SPLITS,
    has_split_files,
    local_source,
    names_in_list,
    text_of_file,
)
from longsumbench.errors import DataError

_URLS = ("all_train.txt", "all_val.txt", "all_test.txt")
# also cnn_wayback_training_urls.txt, or wayback_training_urls.txt in one folder per site
_URL_LIST = re.compile(r"(?:all_(train|val|test)|(?:\w+_)?wayback_(training|validation|test)_urls)\.txt")
_LIST_SPLITS = {**SPLITS, "training": "train"}
_STORY = ".story"
_HIGHLIGHT = re.compile(r"^[^\S\n]*@highlight(?!\S)", re.MULTILINE)


def stories_source(path: Path) -> Source | None:
    """Return the stories that the lists name, in the order of the lists; others are ignored.

    Args:
        path: a folder with stories and lists, at any depth.

    Returns:
        None for a file, and for a folder that has only JSON lines.

    Raises:
        DataError: there are no stories or no lists, a story has two files, or a folder cannot be read.
    """
    if not path.is_dir():
        return None
    lists, stories = _find_stories(path)
    if not stories:
        if not lists and has_split_files(path):
            return None
        raise DataError(f"no {_STORY} files in this folder or below, nor train, validation or test .jsonl in it", path)
    if not lists:
        problem = f"{_STORY} files, but none of the url lists that define their splits: add {' '.join(_URLS)}"
        raise DataError(problem, path)
    files = (folder / name for name, folder in stories.items())
    return local_source(path, [file for _, file in lists], partial(_story_entries, lists, stories), files)


def example_of(identity: str, paragraphs: Paragraphs, highlights: tuple[str, ...], source: str | None) -> Example:
    """Return a story as an Example. Each highlight is one sentence of the reference.

    Raises:
        BadRow: there is no article or no highlight.
    """
    if not paragraphs:
        raise BadRow("the article is empty", LEAVE_OUT)
    if not highlights:
        raise BadRow("there is no highlight", LEAVE_OUT)
    return Example(identity, None, None, (plain_document(paragraphs, source),), (highlights,))


def from_story(text: str, identity: str, url: str) -> Example:
    """Turn the text of a story's file into an Example. An empty `@highlight` is ignored.

    Raises:
        BadRow: there is no article or no highlight.
    """
    article, *highlights = _HIGHLIGHT.split(text)
    sentences = tuple(" ".join(highlight.split()) for highlight in highlights)
    return example_of(identity, paragraphs_in(article.strip()), tuple(filter(None, sentences)), url)


def _find_stories(root: Path) -> tuple[list[tuple[str, Path]], dict[str, Path]]:
    """Return the lists, each with its split, and story → its folder. Linked folders are read, too."""
    lists: list[tuple[str, Path]] = []
    stories: dict[str, Path] = {}
    for inside, folders, names in os.walk(root, onerror=_raise_unreadable, followlinks=True):
        folders.sort()
        folder = Path(inside)
        for name in sorted(names):
            if name.endswith(_STORY):
                if clash := stories.get(name):
                    raise DataError(f"two files for one story, {clash} and {folder} have {name}; remove one", root)
                stories[name] = folder
            elif match := _URL_LIST.fullmatch(name):
                lists.append((_LIST_SPLITS[match[1] or match[2]], folder / name))
    return sorted(lists, key=lambda listed: ORDER.index(listed[0])), stories


def _raise_unreadable(error: OSError) -> None:
    raise DataError(f"cannot be read ({error.strerror or error})", error.filename) from error


def _story_entries(lists: list[tuple[str, Path]], stories: dict[str, Path], full: set[str]) -> Iterator[Entry]:
    listings: dict[str, tuple[str, Path]] = {}
    for listed in lists:
        split, path = listed
        number = 0
        for number, url in names_in_list(path):
            if split in full:
                break
            name = hashlib.sha1(url, usedforsecurity=False).hexdigest() + _STORY
            listing, address = listings.get(name), url.decode("utf-8", "replace")
            listings.setdefault(name, listed)
            if listing is None and name in stories:
                story = stories[name] / name
                yield Entry(split, partial(_read_story, story, address), story)
            elif listing is None:
                problem = f"no {name} for {address}; {LEAVE_OUT}"
                yield Entry(split, partial(refuse_row, "the story is missing", problem), path, number)
            elif listing[0] != split or listing[1] == path:  # all_train.txt repeats the lists of the two sites
                problem = f"{address} is already in {listing[1].name}"
                yield Entry(split, partial(refuse_row, "the story is named twice", problem), path, number)
        if not number:
            raise DataError("the file is empty", path)


def _read_story(path: Path, address: str) -> Example:
    return from_story(text_of_file(path), path.name.removesuffix(_STORY), address)
