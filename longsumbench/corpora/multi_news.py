"""Multi-News: clusters of news articles, and the summary that an editor wrote of each (Fabbri et al. 2019).

Paper: https://aclanthology.org/P19-1102. The summaries come from newser.com. Three sources give the same texts and ids:

* the hub (44,972, 5,622 and 5,622 clusters): a copy of the release's cleaned files, columns document, summary;
* the release at `dataset.path=`: a folder with `train`, `val` and `test` `.src.cleaned` (or `.src`) and `.tgt`. Each
  line is a cluster; its summary is on the same line of the other file;
* JSON lines with the hub's fields at `dataset.path=`: id, document, summary.

`|||||` separates the articles of a cluster. `NEWLINE_CHAR` is a line break in an article. Each article is a document
and each of its lines a paragraph; empty ones are left out. Nothing else is cleaned: most summaries begin with a dash
("– A man …").
"""

import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, zip_longest
from pathlib import Path

from longsumbench.core import Corpus, Entry, Example, Hub, Row, Source
from longsumbench.corpora.loading import files, text_files
from longsumbench.corpora.loading.fields import (
    LEAVE_OUT,
    BadRow,
    id_in,
    paragraphs_in,
    plain_document,
    text_in,
)
from longsumbench.errors import DataError

_SEPARATOR = "|||||"
_LINE_BREAK = re.compile("NEWLINE_CHAR|\n")
_HALF_NAME = re.compile(rf"({'|'.join(files.SPLITS)})\.(src|tgt)(?:\.cleaned)?(?:\.gz)?")


def _cluster(identity: str, cluster: str, summary: str, summary_at: str) -> Example:
    """Return a cluster as an Example; `summary_at` is the place of the summary, for the error message."""
    articles = (paragraphs_in(article, _LINE_BREAK) for article in cluster.split(_SEPARATOR))
    documents = tuple(plain_document(paragraphs) for paragraphs in articles if paragraphs)
    if not documents:
        raise BadRow("the cluster is empty", f"no article has text; {LEAVE_OUT}")
    reference = tuple(chain.from_iterable(paragraphs_in(summary, _LINE_BREAK)))
    if not reference:
        raise BadRow("the summary is empty", f"{summary_at}; {LEAVE_OUT}")
    return Example(identity, None, None, documents, (reference,))


def multi_news_example(row: Row) -> Example:
    """Turn one row of the hub into an Example."""
    identity = id_in(row, "id")
    cluster, summary = text_in(row, "document"), text_in(row, "summary")
    return _cluster(identity, cluster, summary, "the field 'summary'")


def _clusters_source(path: Path) -> Source | None:
    """Return the clusters of the release's files in a folder.

    The result is None for a folder that has only JSON lines, and for a file of another kind.
    """
    if not path.is_dir():
        return None
    clusters, summaries = (files.one_per_split(_halves(path, half)) for half in ("src", "tgt"))
    if not clusters and not summaries:
        if files.has_split_files(path):
            return None
        problem = (
            "no train, val or test .src.cleaned (or .src) with its .tgt in this folder, nor .jsonl"
        )
        raise DataError(problem, path)
    problem = "half of a split: add the other file, .src.cleaned (or .src) or .tgt"
    pairs = files.pair_splits(clusters, summaries, problem)
    halves = list(chain.from_iterable(pairs.values()))
    return files.local_source(path, halves, partial(_cluster_entries, pairs))


def _halves(folder: Path, half: str) -> Iterator[tuple[str, Path]]:
    """Yield (split, file) of the articles ("src") or of the summaries ("tgt")."""
    for file in folder.iterdir():
        match = _HALF_NAME.fullmatch(file.name)
        if match and match[2] == half and file.is_file():
            yield match[1], file


def _cluster_entries(pairs: dict[str, tuple[Path, Path]], full: set[str]) -> Iterator[Entry]:
    for split, (clusters, summaries) in pairs.items():
        number = 0
        both = zip_longest(text_files.lines_of(clusters), text_files.lines_of(summaries))
        for number, lines in enumerate(both, start=1):
            if split in full:
                break
            # a line that is missing shifts the summaries of all later clusters
            if None in lines:
                problem = f"line {number} is missing here or in {summaries.name}"
                advice = "a cluster and its summary must be on the same line; fetch both again"
                raise DataError(f"{problem}: {advice}", clusters)
            location = f"line {number} of {summaries.name}"
            load = partial(_read_cluster, f"{split}-{number - 1}", *lines, location)
            yield Entry(split, load, clusters, number)
        if not number:
            raise DataError("the file is empty", clusters)


def _read_cluster(identity: str, cluster: bytes, summary: bytes, summary_at: str) -> Example:
    return _cluster(identity, text_files.decoded(cluster), text_files.decoded(summary), summary_at)


CORPUS = Corpus(
    name="multi_news",
    title="Multi-News: news articles on one event → an editor's summary: from the hub, "
    "or by dataset.path=FOLDER of .src.cleaned and .tgt.",
    licence="non-commercial research and education only; the articles: © their publishers",
    homepage="https://github.com/Alex-Fabbri/Multi-News",
    published="2019-06",
    multi_document=True,
    hub=Hub("Awesome075/multi_news_parquet"),
    from_hub_row=multi_news_example,
    from_file_row=multi_news_example,
    release=_clusters_source,
)
