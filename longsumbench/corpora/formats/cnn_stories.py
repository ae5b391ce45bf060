"""Folders of `.story` files, with lists that say which of them are the train, validation and test split.

So were the stories of CNN and Daily Mail released (Hermann et al. 2015, See et al. 2017). A list is a URL a line, whose
SHA-1 names the file of the story, and in that stand the paragraphs of the article, set apart by blank lines, and then
the highlights, each under a line `@highlight`.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from longsumbench.api.corpus import Entry, Source
from longsumbench.api.documents import Example
from longsumbench.corpora.reading.fields import LEAVE_OUT, BadRow, Paragraphs, paragraphs_in, plain_document
from longsumbench.corpora.reading.files import SPLITS, is_split_file, lines_of
from longsumbench.errors import DataError

_LISTS = ("all_train.txt", "all_val.txt", "all_test.txt")
# those, cnn_wayback_training_urls.txt, and, in a folder a site, wayback_training_urls.txt
_LIST = re.compile(r"(?:all_(train|val|test)|(?:\w+_)?wayback_(training|validation|test)_urls)\.txt")
_SPLITS = {**SPLITS, "training": "train"}
_ENDING = ".story"
_HIGHLIGHT = re.compile(r"^[^\S\n]*@highlight(?!\S)", re.MULTILINE)


def stories_source(path: Path) -> Source | None:
    """Return the stories that the lists under a folder name, in the order of the lists; others are ignored.

    Args:
        path: what holds stories and lists, each in the folder itself or in folders of any depth below it.

    Returns:
        None for a file, and for a folder without any of it but with JSON lines.

    Raises:
        DataError: there are no stories, or no lists, or a story is there twice, or a folder cannot be read.
    """
    if not path.is_dir():
        return None
    found = _find(path)
    if not found.folders:
        if not found.lists and any(map(is_split_file, path.iterdir())):
            return None
        raise DataError(f"no {_ENDING} files in this folder or below, nor train, validation or test .jsonl in it", path)
    if not found.lists:
        problem = f"{_ENDING} files, but none of the url lists that say their splits: add {' '.join(_LISTS)}"
        raise DataError(problem, path)
    names = [file.relative_to(path).as_posix() for _, file in found.lists]
    inputs = {"folder": str(path.resolve()), "lists": names, "content": found.content}
    facts = {"source": "local files", "files": names, "stories": len(found.folders)}
    return Source(inputs, facts, partial(_entries, found))


def example_of(identity: str, paragraphs: Paragraphs, highlights: tuple[str, ...], source: str | None) -> Example:
    """Return a story as an Example: every highlight is one sentence of the reference.

    Raises:
        BadRow: there is no article or no highlight.
    """
    if not paragraphs:
        raise BadRow("the article is empty", LEAVE_OUT)
    if not highlights:
        raise BadRow("there is no highlight", LEAVE_OUT)
    return Example(identity, None, None, (plain_document(paragraphs, source),), (highlights,))


def from_story(text: str, identity: str, url: str) -> Example:
    """Turn the text of a story's file into an Example; an `@highlight` with nothing under it is none.

    Raises:
        BadRow: there is no article or no highlight.
    """
    article, *highlights = _HIGHLIGHT.split(text)
    sentences = tuple(" ".join(highlight.split()) for highlight in highlights)
    return example_of(identity, paragraphs_in(article.strip()), tuple(filter(None, sentences)), url)


@dataclass(frozen=True)
class _Found:
    """What a folder holds.

    Attributes:
        lists: (split, file), in the order train, validation, test.
        folders: the name of a story's file → its folder.
        content: a hash that changes with any file.
    """

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
    lists.sort(key=lambda one: ("train", "validation", "test").index(one[0]))
    return _Found(lists, folders, content.hexdigest())


def _files(root: Path) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
    """Yield (folder, file) for all files below a folder in the order of their names, linked folders' too, each once."""
    waiting, seen = [str(root)], set()
    while waiting:
        folder = waiting.pop()
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
        waiting += below
        yield from ((folder, file) for file in files)


def _entries(found: _Found, full: set[str]) -> Iterator[Entry]:
    named: dict[str, tuple[str, Path]] = {}
    for here in found.lists:
        split, path = here
        for number, url in _urls(path):
            if split in full:
                break
            name = hashlib.sha1(url, usedforsecurity=False).hexdigest() + _ENDING
            before = named.get(name)
            named.setdefault(name, here)
            if before is None and name in found.folders:
                story = Path(found.folders[name], name)
                yield Entry(split, partial(_read, story, url), story)
            elif before is None:
                yield Entry(split, partial(_missing, name, url), path, number)
            elif before[0] != split or before[1] == path:  # all_train.txt has what the lists of the two sites have
                yield Entry(split, partial(_twice, before[1], url), path, number)


def _urls(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line, URL) of a list."""
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


def _missing(name: str, url: bytes) -> tuple[Example, ...]:
    raise BadRow("the story is missing", f"no {name} for {url.decode('utf-8', 'replace')}; {LEAVE_OUT}")


def _twice(first: Path, url: bytes) -> tuple[Example, ...]:
    raise BadRow("the story is named twice", f"{url.decode('utf-8', 'replace')} stands in {first.name} already")
