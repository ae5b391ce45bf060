"""Folders of `.story` files, and lists that assign the stories to the splits.

This is the layout of the stories of CNN and Daily Mail (Hermann et al. 2015, See et al. 2017). A list has one URL per
line; its SHA-1 is the name of the story's file. A file has the paragraphs of the article, separated by blank lines, and
then the highlights, each under a line `@highlight`.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from longsumbench.api import Entry, Example, Source
from longsumbench.corpora.reading.fields import LEAVE_OUT, BadRow, Paragraphs, paragraphs_in, plain_document
from longsumbench.corpora.reading.files import SPLITS, is_split_file, lines_of
from longsumbench.errors import DataError

_LISTS = ("all_train.txt", "all_val.txt", "all_test.txt")
# also cnn_wayback_training_urls.txt, or wayback_training_urls.txt in one folder per site
_LIST = re.compile(r"(?:all_(train|val|test)|(?:\w+_)?wayback_(training|validation|test)_urls)\.txt")
_SPLITS = {**SPLITS, "training": "train"}
_ENDING = ".story"
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
    found = _find(path)
    if not found.folders:
        if not found.lists and any(map(is_split_file, path.iterdir())):
            return None
        raise DataError(f"no {_ENDING} files in this folder or below, nor train, validation or test .jsonl in it", path)
    if not found.lists:
        problem = f"{_ENDING} files, but none of the url lists that define their splits: add {' '.join(_LISTS)}"
        raise DataError(problem, path)
    names = [file.relative_to(path).as_posix() for _, file in found.lists]
    inputs = {"folder": str(path.resolve()), "lists": names, "content": found.content}
    facts = {"source": "local files", "files": names, "stories": len(found.folders)}
    return Source(inputs, facts, partial(_entries, found))


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


@dataclass(frozen=True)
class _Found:
    """The content of a folder: lists by split, folder of each story's file, and a hash that changes with any file."""

    lists: list[tuple[str, Path]]
    folders: dict[str, str]
    content: str


def _find(root: Path) -> _Found:
    lists: list[tuple[str, Path]] = []
    folders: dict[str, str] = {}
    content = hashlib.sha256()
    for folder, file in _files(root):
        if file.name.endswith(_ENDING):
            if before := folders.get(file.name):
                raise DataError(f"two files for one story, {before} and {folder} have {file.name}; remove one", root)
            folders[file.name] = folder
        elif match := _LIST.fullmatch(file.name):
            lists.append((_SPLITS[match[1] or match[2]], Path(file.path)))
        else:
            continue
        stat = file.stat()
        where = os.fsencode(file.path.removeprefix(str(root)))
        content.update(b"%s\0%d\0%d\n" % (where, stat.st_size, stat.st_mtime_ns))
    lists.sort(key=lambda entry: ("train", "validation", "test").index(entry[0]))
    return _Found(lists, folders, content.hexdigest())


def _files(root: Path) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield (folder, file) for all files below a folder, sorted by name. Linked folders are read once."""
    stack, seen = [str(root)], set()
    while stack:
        folder = stack.pop()
        real = os.path.realpath(folder)
        if real in seen:
            continue
        seen.add(real)
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
            below = [entry.path for entry in reversed(entries) if entry.is_dir()]
            files = [entry for entry in entries if entry.is_file()]
        except OSError as error:
            raise DataError(f"cannot be read ({error.strerror or error})", folder) from error
        stack += below
        yield from ((folder, file) for file in files)


def _entries(found: _Found, full: set[str]) -> Iterator[Entry]:
    named: dict[str, tuple[str, Path]] = {}
    for listed in found.lists:
        split, path = listed
        for number, url in _urls(path):
            if split in full:
                break
            name = hashlib.sha1(url, usedforsecurity=False).hexdigest() + _ENDING
            before = named.get(name)
            named.setdefault(name, listed)
            if before is None and name in found.folders:
                story = Path(found.folders[name], name)
                yield Entry(split, partial(_read, story, url), story)
            elif before is None:
                yield Entry(split, partial(_raise_missing, name, url), path, number)
            elif before[0] != split or before[1] == path:  # all_train.txt repeats the lists of the two sites
                yield Entry(split, partial(_raise_duplicate, before[1], url), path, number)


def _urls(path: Path) -> Iterator[tuple[int, bytes]]:
    empty = True
    for number, line in enumerate(lines_of(path), start=1):
        if url := line.strip():
            empty = False
            yield number, url
    if empty:
        raise DataError("the file is empty", path)


def _read(path: Path, url: bytes) -> tuple[Example, ...]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRow("not UTF-8", f"byte {error.start + 1}; convert the file") from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from error
    return (from_story(text, path.name.removesuffix(_ENDING), url.decode("utf-8", "replace")),)


def _raise_missing(name: str, url: bytes) -> tuple[Example, ...]:
    raise BadRow("the story is missing", f"no {name} for {url.decode('utf-8', 'replace')}; {LEAVE_OUT}")


def _raise_duplicate(first: Path, url: bytes) -> tuple[Example, ...]:
    raise BadRow("the story is named twice", f"{url.decode('utf-8', 'replace')} is already in {first.name}")
