"""The stemmers of `rouge_score` (Porter) and of ROUGE-1.5.5 (WordNet's exception lists, then Porter).

Words of up to three letters and words with characters beyond a–z and 0–9 stay unchanged.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from longsumbench.errors import DataError, EnvironmentProblem, UsageError
from longsumbench.rouge.porter import SHORTEST, Porter

_PACKAGE = "wordnet-base"  # of Debian and Ubuntu
NO_WORDNET = "none"
LISTS = ("adj.exc", "adv.exc", "noun.exc", "verb.exc")
_PLACES = (
    "/usr/share/wordnet",
    "/usr/share/wordnet/dict",
    "/usr/local/share/wordnet",
    "/usr/local/share/wordnet/dict",
    "/usr/local/WordNet-3.0/dict",
    "/usr/local/WordNet-3.1/dict",
    "/opt/homebrew/opt/wordnet/dict",
    "/usr/local/opt/wordnet/dict",
)

Stem = Callable[[str], str]


@dataclass(frozen=True)
class Exceptions:
    """WordNet's exception lists.

    Attributes:
        bases: an irregular form → its base form.
        version: the first eight digits of the lists' SHA-256; "none" without lists.
    """

    bases: Mapping[str, str]
    version: str


def google_stem() -> Stem:
    """Return the stemmer of `rouge_score`."""
    return Porter("google").stem


def perl_stem(exceptions: Exceptions) -> Stem:
    """Return the stemmer of ROUGE-1.5.5: the base of an irregular form, else the Porter stem."""
    stem = Porter("perl").stem
    bases = {word: base for word, base in exceptions.bases.items() if len(word) >= SHORTEST and word.isascii()}
    return lambda word: bases.get(word) or stem(word)


def read_exceptions(wordnet: str | None = None) -> Exceptions:
    """Read WordNet's exception lists.

    The lists are read in the order of their names. The last line of a form counts, and the first base on it.

    Args:
        wordnet: the folder with the lists, or its parent if it is called `dict`; "none": no lists; None: search.

    Raises:
        UsageError: the folder does not have the lists.
        EnvironmentProblem: the search found no lists.
        DataError: a list cannot be read.
    """
    if wordnet == NO_WORDNET:
        return Exceptions({}, NO_WORDNET)
    folder = _folder(wordnet)
    bases: dict[str, str] = {}
    digest = hashlib.sha256()
    for name in LISTS:
        text = _read_list(folder / name)
        digest.update(text.encode())
        bases.update((words[0], words[1]) for words in map(str.split, text.splitlines()) if len(words) > 1)
    return Exceptions(bases, digest.hexdigest()[:8])


def _folder(wordnet: str | None) -> Path:
    user_folder = Path(wordnet).expanduser() if wordnet else None
    for folder in (user_folder, user_folder / "dict") if user_folder else map(Path, _PLACES):
        if _has_lists(folder):
            return folder
    if user_folder:
        raise UsageError(f"wordnet={wordnet} does not have {', '.join(LISTS)}; name the folder that does, or 'none'")
    raise EnvironmentProblem(
        f"perl mode stems with WordNet's exception lists, and they are not installed: install the package {_PACKAGE} "
        "(apt-get install wordnet-base), name their folder with wordnet=FOLDER, or set wordnet=none"
    )


def _has_lists(folder: Path) -> bool:
    return all((folder / name).is_file() for name in LISTS)


def _read_list(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"not a readable WordNet list ({error}); install {_PACKAGE} again", path) from error
