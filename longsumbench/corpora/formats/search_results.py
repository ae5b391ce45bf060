"""An article and the pages that a search finds for it, without clones, from folders of text and Markdown.

    FOLDER/train|validation|test/ARTICLE/article.md       each heading begins a section; a single `#` is the title
    FOLDER/train|validation|test/ARTICLE/1.txt, 2.md, …   the pages, best first

The id is the name of the folder ARTICLE. A page's name begins with its number ("01 Sheep - Britannica.txt"). Its first
line may be an address, which becomes the source.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from longsumbench.api import Document, Entry, Example, Section, Source, Thinned
from longsumbench.corpora.reading.clones import PAGE_RULES
from longsumbench.corpora.reading.fields import LEAVE_OUT, BadRow, paragraphs_in
from longsumbench.corpora.reading.files import ORDER, SPLITS, is_split_file
from longsumbench.corpora.reading.markdown import MarkdownReader
from longsumbench.errors import DataError

MOST_RESULTS = 75  # the best results, which are used (SEAL, §4)
NO_RULE = "none"
RULES = (*PAGE_RULES, NO_RULE)  # the first is the default
_ARTICLE = "article.md"
_BEYOND, _CLONES, _EMPTY, _NO_PROSE = (  # names in the record of what is left out
    f"search results beyond the first {MOST_RESULTS}",
    "clone search results",
    "empty search results",
    "words of code and HTML",
)
_PAGE = re.compile(r"([0-9]+).*\.(?:txt|(md|markdown))")
_ADDRESS = re.compile(r"\s*(https?://\S+)[^\S\n]*(?:\n|\Z)")


def article_of(
    identity: str, title: str | None, sections: Sequence[Section], results: Sequence[Document], rule: str = RULES[0]
) -> Thinned:
    """Return an article as an Example: its first `MOST_RESULTS` search results without clones → the article.

    The title is the search query. Results are ordered, best first. `rule` is one of `RULES` and defines clones.

    Raises:
        BadRow: the article is empty, no page has text, or all pages are clones.
    """
    article = [tuple(section.sentences()) for section in sections]
    if not any(article):
        raise BadRow("the article is empty", LEAVE_OUT)
    top = results[:MOST_RESULTS]
    pages = [Document(page.source, _with_text(page.sections)) for page in top if any(page.sentences())]
    if not pages:
        raise BadRow("no search result has text", LEAVE_OUT)
    clones = [False] * len(pages)
    if rule != NO_RULE:
        clones = PAGE_RULES[rule].clones(article, (tuple(page.sentences()) for page in pages))
    kept = tuple(page for page, clone in zip(pages, clones, strict=True) if not clone)
    if not kept:
        raise BadRow("all search results are clones of the article", f"by the rule '{rule}'; {LEAVE_OUT}")
    left_out = {_BEYOND: len(results) - len(top), _EMPTY: len(top) - len(pages), _CLONES: sum(clones)}
    return Thinned(Example(identity, title, None, kept, (tuple(chain.from_iterable(article)),)), left_out)


def folders_source(path: Path) -> Source | None:
    """Return the articles of a folder with folders train, validation and test, sorted by name.

    Returns:
        None for a file, and for a folder that has only JSON lines.

    Raises:
        DataError: the folder has neither format or both, or a split has two folders or no articles.
    """
    if not path.is_dir():
        return None
    splits = _splits(path)
    lines = any(map(is_split_file, path.iterdir()))
    if not splits and lines:
        return None
    if not splits:
        raise DataError(f"no folder train, validation or test of articles ({_ARTICLE}), and no such .jsonl", path)
    if lines:
        raise DataError("folders of articles and JSON lines in one folder; use one folder each", path)
    articles = {split: [found for found in _visible(folder) if found.is_dir()] for split, folder in splits.items()}
    for split, folders in articles.items():
        if not folders:
            raise DataError(
                f"no article in it: add folders, each with {_ARTICLE} and its search results", splits[split]
            )
    inputs = {"folder": str(path.resolve()), "content": _content(articles)}
    facts = {"source": "local files", "files": [folder.name for folder in splits.values()]}
    return Source(inputs, facts, partial(_entries, articles))


def _splits(path: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in _visible(path):
        if (split := SPLITS.get(folder.name)) and folder.is_dir():
            if before := found.get(split):
                problem = f"two folders for the split '{split}', {before.name} and {folder.name}; remove one"
                raise DataError(problem, path)
            found[split] = folder
    return {split: found[split] for split in ORDER if split in found}


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(found for found in folder.iterdir() if not found.name.startswith("."))
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", folder) from error


def _content(articles: dict[str, list[Path]]) -> str:
    """Return a hash that changes with any file of the articles."""
    content = hashlib.sha256()
    for split, folders in articles.items():
        for file in chain.from_iterable(map(_visible, folders)):
            stat = file.stat()
            where = f"{split}/{file.parent.name}/{file.name}".encode("utf-8", "surrogateescape")
            content.update(b"%s\0%d\0%d\n" % (where, stat.st_size, stat.st_mtime_ns))
    return content.hexdigest()


def _entries(articles: dict[str, list[Path]], full: set[str]) -> Iterator[Entry]:
    for split, folders in articles.items():
        for folder in folders:
            if split in full:
                break
            yield Entry(split, partial(_read, folder), folder)


def _read(folder: Path) -> tuple[Thinned, ...]:
    numbered: list[tuple[int, Path]] = []
    for file in _visible(folder):
        if match := _PAGE.fullmatch(file.name):
            numbered.append((int(match[1]), file))
        elif file.name != _ARTICLE:
            raise BadRow(f"a file that is neither {_ARTICLE} nor a numbered .txt or .md", f"{file.name}; remove it")
    counts = Counter(number for number, _ in numbered)
    if twice := [number for number, count in counts.items() if count > 1]:
        raise BadRow("two search results have one number", f"{twice[0]}; number them in their order")
    if not (folder / _ARTICLE).is_file():
        raise BadRow(f"there is no {_ARTICLE}", LEAVE_OUT)
    article = MarkdownReader(_text(folder / _ARTICLE))
    pages = [_page(file) for _, file in sorted(numbered)]
    title = article.titles[0] if len(article.titles) == 1 else None
    read = article_of(folder.name, title, article.sections, [page for page, _ in pages])
    words = article.words_left_out + sum(left_out for _, left_out in pages)
    return (Thinned(read.example, {**read.left_out, _NO_PROSE: words}),)


def _page(file: Path) -> tuple[Document, int]:
    """Return a page, and the number of words of code and HTML left out."""
    text = _text(file)
    address = _ADDRESS.match(text)
    source, body = (address[1], text[address.end() :]) if address else (None, text)
    if file.suffix == ".txt":
        return Document(source, (Section(None, paragraphs_in(body)),)), 0
    reading = MarkdownReader(body)
    return Document(source, tuple(reading.sections)), reading.words_left_out


def _with_text(sections: Sequence[Section]) -> tuple[Section, ...]:
    return tuple(section for section in sections if section.paragraphs)


def _text(file: Path) -> str:
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRow("not UTF-8", f"{file.name}, byte {error.start + 1}; convert the file") from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", file) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")
