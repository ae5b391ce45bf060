"""Entities of paragraphs, for the discourse graph (Hierarchical Transformer, A.2): by spaCy, or runs of capitals.

spaCy is an extra (`longsumbench[spacy]`); its pipelines are separate packages or folders. Nothing is downloaded.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from longsumbench.errors import EnvironmentProblem
from longsumbench.sentences import split_sentences

FindEntities: TypeAlias = Callable[[Sequence[str]], list[frozenset[str]]]

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
        EnvironmentProblem: spaCy or the pipeline is missing.
    """
    if kind == "capitals":
        return lambda paragraphs: list(map(capitalised, paragraphs))
    return partial(_recognized, _pipeline(spacy_model))


def available(spacy_model: str) -> bool:
    """Return True if spaCy and the pipeline are installed; loads neither."""
    return find_spec("spacy") is not None and _is_installed(spacy_model)


def pipeline_identity(spacy_model: str) -> str:
    """Return a pipeline's language, name and version, which decide the entities that it finds.

    Raises:
        EnvironmentProblem: as `find_entities`.
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
    runs: list[_Run] = []
    for sentence in split_sentences(text):
        runs += _capital_runs(sentence)
    # Words with a capital within a sentence.
    within: set[str] = set()
    for run in runs:
        within.update(run.words[run.begins :])
    # A single word that begins a sentence is a name only if it is one elsewhere.
    names = set()
    for run in runs:
        if len(run.words) > 1 or not run.begins or run.words[0] in within:
            names.add(" ".join(run.words))
    return frozenset(names)


class _Run(NamedTuple):
    """Consecutive capitalised words; `begins` is True if the first one begins a sentence."""

    words: list[str]
    begins: bool


def _capital_runs(sentence: str) -> Iterator[_Run]:
    words: list[str] = []
    begins = False
    for number, piece in enumerate(sentence.split()):
        word, opened, closed = _bare_word(piece)
        is_name = word[:1].isupper() and not _FIRST_PERSON.match(word)
        is_part = is_name and not (number == 0 and _opens(word))
        if words and (opened or not is_part):
            yield _Run(words, begins)
            words = []
        if is_part:
            begins = begins if words else number == 0
            words.append(word)
        if words and closed:
            yield _Run(words, begins)
            words = []
    if words:
        yield _Run(words, begins)


def _bare_word(piece: str) -> tuple[str, bool, bool]:
    """Return a word without the signs around it; True if a run ends before it; True if one ends after it."""
    places = [index for index, sign in enumerate(piece) if sign.isalnum()]
    if not places:
        return "", piece != "", False
    start, end = places[0], places[-1] + 1
    word = piece[start:end]
    opened, closed = start > 0, piece[end:] not in ("", ".")
    if word.endswith(_POSSESSIVES):
        return word[:-2], opened, True
    return word, opened, closed


def _opens(word: str) -> bool:
    """Return True for words that begin sentences but no names; not for US and IT."""
    return word.lower() in OPENERS and word == word.capitalize()


def _recognized(pipeline: Any, paragraphs: Sequence[str]) -> list[frozenset[str]]:
    names_of = []
    for document in pipeline.pipe(paragraphs):
        names = {entity.text for entity in document.ents if entity.label_ in _TYPES}
        names_of.append(frozenset(names))
    return names_of


def _is_installed(spacy_model: str) -> bool:
    try:
        distribution(spacy_model)
    except (PackageNotFoundError, ValueError):  # ValueError: an empty name
        return (Path(spacy_model) / "config.cfg").is_file()
    return True


@lru_cache(maxsize=1)
def _pipeline(spacy_model: str) -> Any:
    if find_spec("spacy") is None:
        raise EnvironmentProblem(
            "model.entities=spacy needs the package spaCy: pip install -e '.[spacy]' in the clone and a pipeline"
            f" ({_DOWNLOAD}), {_ELSE}"
        )
    if not _is_installed(spacy_model):
        raise EnvironmentProblem(
            f"model.spacy_model={spacy_model} is neither an installed spaCy pipeline nor a folder with one:"
            f" {_DOWNLOAD}, {_ELSE}"
        )
    import spacy

    return spacy.load(spacy_model, exclude=_NOT_NEEDED)
