"""WikiSum as Liu and Lapata (2019) released it: torch files of piece ids, the 40 best paragraphs of each article.

Files are `WIKI.train.0.pt` and so on (`train`, `valid`, `test`; https://github.com/nlpyang/hiersumm). Each is a list of
articles. `src` is a list of paragraphs, each a list of piece ids, ordered by the paper's ranker, best first. `tgt` has
the ids of the lead section, and `tgt_str` its text. The ids are those of its SentencePiece model, `dataset.tokenizer=`.

Files are loaded with `weights_only`, so none can run a program. There are no titles and no pages. Neighbours in the
ranking are not neighbours in a page, so each paragraph is a document. The release's marks (`<S>`, `</S>`, `<T>`, `<P>`,
`<Q>`, `<PAD>`, `<t>`, `</t>`) are removed; each ends a sentence. The release has no clones.
"""

import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

from longsumbench.core import Entry, Example, Sentences, Source
from longsumbench.corpora.loading.fields import BadRow, plain_document
from longsumbench.corpora.loading.files import ORDER, SPLITS, local_source
from longsumbench.errors import DataError, EnvironmentProblem, UsageError
from longsumbench.sentences import split_sentences

_MARKS = ("<S>", "</S>", "<T>", "<P>", "<Q>", "<PAD>", "<t>", "</t>")
_ANY_MARK = re.compile("|".join(_MARKS))
_RANKED_NAME = re.compile(rf"(?:.+\.)?({'|'.join(SPLITS)})(?:\.([0-9]+))?\.pt")
# split, and how the ids of its articles begin
_RankedFile = tuple[str, str, Path]


def ranked_source(path: Path, tokenizer: str | None) -> Source | None:
    """Return the articles of the released files at a path, in the order of the files' numbers.

    A single file is `test`. The result is None if there are no such files.

    Raises:
        UsageError: `dataset.tokenizer` is missing, or given without ranked files.
        DataError: the tokenizer cannot be read.
    """
    files = _find_ranked(path)
    if not files:
        if tokenizer is not None and path.exists():
            raise UsageError(
                f"dataset.tokenizer is for the ranked files (.pt), and {path} has none: leave it out"
            )
        return None
    if tokenizer is None:
        raise UsageError(
            f"{files[0][2]} holds piece ids: give its SentencePiece model by dataset.tokenizer=FILE"
        )
    model = Path(tokenizer).expanduser()
    try:
        sha256 = hashlib.sha256(model.read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); correct dataset.tokenizer", model
        ) from error
    tokenizer_file = {"tokenizer": {"file": model.name, "sha256": sha256}}
    entries = partial(_article_entries, files, model)
    source = local_source(path, [file for *_, file in files], entries)
    inputs, metadata = {**source.inputs, **tokenizer_file}, {**source.metadata, **tokenizer_file}
    return replace(source, inputs=inputs, metadata=metadata)


class Pieces:
    """The release's tokenizer, a SentencePiece model: ids → sentences.

    Raises:
        EnvironmentProblem: the package sentencepiece is missing.
        DataError: the file is not a SentencePiece model.
    """

    def __init__(self, path: Path) -> None:
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            problem = f"the ranked files of wikisum need the package sentencepiece ({error})"
            raise EnvironmentProblem(
                f"{problem}: pip install -e '.[wikisum]' in the clone"
            ) from error
        try:
            self._model = SentencePieceProcessor(model_file=str(path))
        except (RuntimeError, OSError) as error:
            raise DataError(
                "not a SentencePiece model; give the release's by dataset.tokenizer=FILE", path
            ) from error
        self._size = len(self._model)
        marks = set(map(self._model.piece_to_id, _MARKS)) - {self._model.unk_id()}
        self._marks = marks | set(filter(self._model.is_control, range(self._size)))

    def sentences(self, ids: Any, field: str) -> Sentences:
        """Decode a list of ids into sentences.

        Raises:
            BadRow: the value is not a list of ids, or an id is unknown to the tokenizer.
        """
        if not isinstance(ids, Sequence) or not all(type(piece) is int for piece in ids):
            raise BadRow(f"'{field}' must hold lists of piece ids", "use the file of the release")
        for piece in ids:
            if not 0 <= piece < self._size:
                advice = (
                    f"{piece}, of {self._size:,}; give the release's own by dataset.tokenizer=FILE"
                )
                raise BadRow(f"'{field}' has an id that the tokenizer does not know", advice)
        runs = groupby(ids, key=self._marks.__contains__)
        texts = (self._model.decode(list(run)) for is_mark, run in runs if not is_mark)
        return tuple(chain.from_iterable(map(split_sentences, texts)))


def _article_example(item: Any, identity: str, model: Path) -> Example:
    pieces = _read_pieces(model)
    if not isinstance(item, dict) or not isinstance(item.get("src"), Sequence):
        raise BadRow(
            "an article must be a dictionary with the paragraphs 'src' and the summary 'tgt'"
        )
    paragraphs = (pieces.sentences(paragraph, "src") for paragraph in item["src"])
    documents = tuple(plain_document((paragraph,)) for paragraph in paragraphs if paragraph)
    if not documents:
        raise BadRow("'src' has no paragraph with text")
    text = item.get("tgt_str")
    if isinstance(text, str) and text.strip():
        summary = tuple(chain.from_iterable(map(split_sentences, _ANY_MARK.split(text))))
    else:
        summary = pieces.sentences(item.get("tgt"), "tgt")
    if not summary:
        raise BadRow("the summary is empty", "neither 'tgt_str' nor 'tgt' has words")
    return Example(identity, None, None, documents, (summary,))


def _find_ranked(path: Path) -> list[_RankedFile]:
    """Return the released files of a folder in the order of splits and numbers, or the one file."""
    if path.is_file():
        return [("test", path.stem, path)] if path.suffix == ".pt" else []
    numbered_files = []
    for file in path.iterdir() if path.is_dir() else ():
        match = _RANKED_NAME.fullmatch(file.name)
        if match and file.is_file():
            split, number = SPLITS[match[1]], match[2]
            name = split if number is None else f"{split}-{int(number)}"
            numbered_files.append((ORDER.index(split), int(number or -1), (split, name, file)))
    return [file for *_, file in sorted(numbered_files)]


def _article_entries(files: list[_RankedFile], model: Path, full: set[str]) -> Iterator[Entry]:
    # raises an error of the tokenizer before the files are read
    _read_pieces(model)
    for split, name, path in files:
        for index, item in enumerate(_articles(path) if split not in full else ()):
            if split in full:
                break
            load = partial(_article_example, item, f"{name}-{index}", model)
            yield Entry(split, load, f"{path} article {index + 1}")


_read_pieces = cache(Pieces)  # once in each process


def _articles(path: Path) -> list[Any]:
    import torch  # slow, so imported only here

    try:
        with warnings.catch_warnings():
            # torch's warning about pickle protocols
            warnings.simplefilter("ignore")
            articles = torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror or error})", path) from error
    except Exception as error:  # unpickling another file can raise any error
        problem = "not a torch file, a broken one, or one with more than lists, numbers and text"
        raise DataError(
            f"{problem} ({type(error).__name__}); fetch the release's file again", path
        ) from error
    if not isinstance(articles, list):
        raise DataError(
            f"must hold a list of articles, not {type(articles).__name__}; fetch it again", path
        )
    if not articles:
        raise DataError("the file has no article", path)
    return articles
