"""Entities of paragraphs, for the discourse graph (Hierarchical Transformer, A.2): by spaCy, or runs of capitals.

spaCy is an extra (`longsumbench[spacy]`); its pipelines are separate packages or folders. Nothing is downloaded.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from longsumbench.core import check_choice
from longsumbench.errors import EnvironmentProblem
from longsumbench.sentences import split_sentences

FindEntities: TypeAlias = Callable[[Sequence[str]], list[frozenset[str]]]

_ENTITY_KINDS = ("spacy", "capitals")
_TYPES = frozenset({"PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "EVENT", "WORK_OF_ART", "LAW"})
_NOT_NEEDED = (
    "tagger",
    "parser",
    "senter",
    "attribute_ruler",
    "morphologizer",
    "lemmatizer",
)  # for entities
_DOWNLOAD = "python -m spacy download en_core_web_sm"
_ELSE = "or choose model.entities=capitals"
_POSSESSIVES = ("'s", "’s")
_FIRST_PERSON = re.compile(r"I(?:['’]|$)")
_NAME_OPENERS = (  # words that begin a sentence with a capital and are no names
    "a an the this that these those all both each some many most no one two such other another in on at by for from of"
    " to with as into over under about between among through until and but or nor yet so if when while after before"
    " since because although though during it its he his she her they their we our you your my there here where what"
    " who why how which is are was were not only also however"
)
OPENERS = frozenset(_NAME_OPENERS.split())


def find_entities(kind: str, spacy_model: str) -> FindEntities:
    """Return a function from paragraphs to the set of entities of each.

    "spacy" finds entities of the paper's nine types, by a spaCy pipeline (a package or a folder); for "capitals" see
    `capitalised`.

    Raises:
        UsageError: the kind is unknown.
        EnvironmentProblem: spaCy or the pipeline is missing.
    """
    check_choice("model.entities", kind, _ENTITY_KINDS)
    if kind == "capitals":
        return lambda paragraphs: [capitalised(text) for text in paragraphs]
    pipeline = _pipeline(spacy_model)
    return lambda paragraphs: _recognized(pipeline, paragraphs)


def available(spacy_model: str) -> bool:
    """Return True if spaCy and the pipeline are installed; loads neither."""
    return find_spec("spacy") is not None and _is_installed(spacy_model)


def pipeline_identity(spacy_model: str) -> str:
    """Return a pipeline's language, name and version, which decide the entities that it finds.

    Raises:
        UsageError, EnvironmentProblem: as `find_entities`.
    """
    meta = _pipeline(spacy_model).meta
    return f"{meta['lang']}_{meta['name']} {meta['version']}"


def capitalised(text: str) -> frozenset[str]:
    """Return the runs of capitalised words of a text, as they are written, the words joined by a blank.

    A run ends with its sentence, at any sign but a period or a hyphen, and after a possessive: "Ann's Paris, Texas"
    has three. A capital at the beginning of a sentence says little. There, a word such as "The" or "When" belongs to
    no run. Any other single word counts only if it also has a capital within a sentence of the same text. "I" never
    counts.
    """
    runs = [run for sentence in split_sentences(text) for run in _capital_runs(sentence)]
    within = {word for run in runs for word in (run.words[1:] if run.begins else run.words)}
    names = (
        run.words for run in runs if len(run.words) > 1 or not run.begins or run.words[0] in within
    )
    return frozenset(" ".join(words) for words in names)


class _Run(NamedTuple):
    """Consecutive capitalised words; `begins` is True if the first one begins a sentence."""

    words: list[str]
    begins: bool


def _capital_runs(sentence: str) -> Iterator[_Run]:
    words: list[str] = []
    begins = False
    for number, piece in enumerate(sentence.split()):
        word, opened, closed = _bare_word(piece)
        is_part = (
            word[:1].isupper()
            and not _FIRST_PERSON.match(word)
            and not (number == 0 and _opens(word))
        )
        if words and (opened or not is_part):
            yield _Run(words, begins)
            words = []
        if is_part:
            begins = number == 0 if not words else begins
            words.append(word)
        if words and closed:
            yield _Run(words, begins)
            words = []
    if words:
        yield _Run(words, begins)


def _bare_word(piece: str) -> tuple[str, bool, bool]:
    """Return a word without the signs around it; True if a run ends before it; True if one ends after it."""
    start = next((place for place, sign in enumerate(piece) if sign.isalnum()), len(piece))
    end = next(
        (place for place in range(len(piece), start, -1) if piece[place - 1].isalnum()), start
    )
    word = piece[start:end]
    possessive = word.endswith(_POSSESSIVES)
    return word[:-2] if possessive else word, start > 0, possessive or piece[end:] not in ("", ".")


def _opens(word: str) -> bool:
    """Return True for words that begin sentences but no names; not for US and IT."""
    return word.lower() in OPENERS and word == word.capitalize()


def _recognized(pipeline: Any, paragraphs: Sequence[str]) -> list[frozenset[str]]:
    return [
        frozenset(entity.text for entity in doc.ents if entity.label_ in _TYPES)
        for doc in pipeline.pipe(paragraphs)
    ]


def _is_installed(spacy_model: str) -> bool:
    try:
        distribution(spacy_model)
    except (PackageNotFoundError, ValueError):  # ValueError: an empty name
        return (Path(spacy_model) / "config.cfg").is_file()
    return True


@lru_cache(maxsize=1)
def _pipeline(spacy_model: str) -> Any:
    if find_spec("spacy") is None:
        problem = (
            "model.entities=spacy needs the package spaCy: pip install -e '.[spacy]' in the clone"
        )
        raise EnvironmentProblem(f"{problem} and a pipeline ({_DOWNLOAD}), {_ELSE}")
    if not _is_installed(spacy_model):
        problem = f"model.spacy_model={spacy_model} is neither an installed spaCy pipeline nor a folder with one"
        raise EnvironmentProblem(f"{problem}: {_DOWNLOAD}, {_ELSE}")
    import spacy

    return spacy.load(spacy_model, exclude=_NOT_NEEDED)
