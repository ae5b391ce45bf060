"""Real prose for the reports of `probe` (`dataset.filler=`): the usable sentences of each split of another dataset.

    find_prose(settings, longest) → split → Prose: its sentences in reading order, and how many were left out

A sentence is usable if it has 5 to 40 tokens and an end mark, and has no site, no firm, no "bid" and no "goes to".
"""

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import DatasetSettings
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.corpora.probe.language import FIRMS, SITES, tokens_in
from longsumbench.errors import DataError, UsageError

_log = logging.getLogger(__name__)

_TOKENS = range(5, 41)  # of a usable sentence
# tokens of a split; the rest of a large dataset is not read
_ENOUGH = 2_000_000

# What statements of facts consist of. In any casing: a firm can be a common word ("price", "grant").
_OWN_PHRASES = re.compile(
    rf"\b(?:{'|'.join((*SITES, *FIRMS, 'bids?', 'goes to'))})\b", re.IGNORECASE
)
_NO_SENTENCE = f"sentence without {_TOKENS[0]} to {_TOKENS[-1]} tokens and an end mark"
_PROBE_WORDS = "sentence with a site, a firm, 'bid' or 'goes to'"
_REPEATED_SENTENCE = "repeated sentence"


class Prose(NamedTuple):
    """Sentences for one split of `probe`."""

    sentences: tuple[
        str, ...
    ]  # in reading order, document after document; no two are equal, in all splits
    # why sentences were left out → how many
    left_out: Mapping[str, int]


NO_PROSE = Prose((), {})


def load_filler(settings: DatasetSettings) -> Texts:
    """Return the dataset that `settings.filler` names, read as `path`, `strict` and `split_by_hash` say.

    Raises:
        UsageError: it is `probe`, or the settings do not fit it.
        DataError, EnvironmentProblem: as for `load_texts`.
    """
    if settings.filler == settings.reader:
        raise UsageError(
            f"dataset.filler={settings.filler}: choose a dataset of real texts, for example aclsum"
        )
    own_settings = DatasetSettings(
        str(settings.filler),
        reader=settings.filler,
        path=settings.path,
        strict=settings.strict,
        workers=settings.workers,
        split_by_hash=settings.split_by_hash,
    )
    return load_texts(own_settings, user_cache())


def find_prose(settings: DatasetSettings, longest: Mapping[str, int]) -> dict[str, Prose]:
    """Return the usable sentences of each split, and report on one line how many others were left out.

    `longest` has the tokens of the longest report of each split. So many are needed, so that no sentence occurs twice
    in one.

    Raises:
        DataError: the dataset lacks a split, or a split has too few sentences.
    """
    texts, splits = load_filler(settings), dict[str, Prose]()
    for split in sorted(
        longest
    ):  # a sentence of several splits is of the first split by name: test, train, validation
        excluded = frozenset(chain.from_iterable(prose.sentences for prose in splits.values()))
        splits[split] = _select_prose(texts, split, longest[split], excluded)
    left_out = sum((Counter(prose.left_out) for prose in splits.values()), Counter())
    _log.info(f"dataset.filler={texts.name}: {_reasons(left_out)}")
    return splits


def _select_prose(texts: Texts, split: str, longest: int, excluded: Collection[str]) -> Prose:
    dataset = f"dataset.filler={texts.name}"
    if split not in texts.splits:
        has = ", ".join(texts.splits)
        raise DataError(
            f"{dataset} has no {split} split, only {has}: choose another dataset{texts.split_advice}"
        )
    sentences = chain.from_iterable(example.sentences() for example in texts.splits[split])
    prose = usable_prose(sentences, longest, excluded)
    num_tokens = sum(map(tokens_in, prose.sentences))
    if num_tokens < longest:
        raise DataError(
            f"{dataset} has too few sentences: {num_tokens:,} tokens in split '{split}', and a report has {longest:,}"
            f" ({_reasons(prose.left_out)}): choose a larger dataset or shorter reports (dataset.document_length)"
        )
    return prose


def _reasons(left_out: Mapping[str, int]) -> str:
    counts = [f"{count:,} × {reason}" for reason, count in left_out.items()]
    return f"left out {', '.join(counts) or 'nothing'}"


def usable_prose(
    sentences: Iterable[str], longest: int = 0, excluded: Collection[str] = ()
) -> Prose:
    """Select usable sentences, none of `excluded`; stop after 2,000,000 tokens, or `longest` if that is more."""
    usable: dict[str, None] = {}
    left_out: Counter[str] = Counter()
    tokens = 0
    for sentence in sentences:
        reason = _problem(sentence)
        if not reason and (sentence in usable or sentence in excluded):
            reason = _REPEATED_SENTENCE
        if reason:
            left_out[reason] += 1
            continue
        usable[sentence] = None
        tokens += tokens_in(sentence)
        if tokens >= max(_ENOUGH, longest):
            break
    return Prose(tuple(usable), dict(sorted(left_out.items())))


def _problem(sentence: str) -> str:
    """Return why a sentence is not usable; empty if it is."""
    if not sentence.endswith((".", "!", "?")) or tokens_in(sentence) not in _TOKENS:
        return _NO_SENTENCE
    return _PROBE_WORDS if _OWN_PHRASES.search(sentence) else ""
