"""The stemmers of `rouge_score` (Porter) and of ROUGE-1.5.5 (WordNet's exception lists, then Porter).

Words of up to three letters and words with characters beyond a–z and 0–9 stay unchanged.

Porter's stemmer (Porter 1980) has two variants. `google` is nltk's, with its extensions. `perl` is that of ROUGE-1.5.5,
Porter's later version: in step 4, -ement, -ment, -ent and -ion are tried one after the other, after the other suffixes.
So "argument" becomes "argum" and "developmental" "develop".

A word's form has a "c" for each consonant and a "v" for each vowel; its measure m is the number of "vc".
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from longsumbench.errors import DataError, EnvironmentProblem, UsageError

# letters of a word that is stemmed
SHORTEST = 4


def _read_pairs(text: str) -> dict[str, str]:
    return dict(re.findall("([a-z]+):([a-z]*)", text))


_LETTERS = "abcdefghijklmnopqrstuvwxz0123456789"  # without y, which is either
# Of bytes: they are translated several times faster than strings.
_FORMS = bytes.maketrans(
    _LETTERS.encode(), bytes(ord("v" if letter in "aeiou" else "c") for letter in _LETTERS)
)
# suffix → replacement
_STEP_2 = _read_pairs(
    "ational:ate tional:tion enci:ence anci:ance izer:ize bli:ble alli:al entli:ent eli:e ousli:ous ization:ize "
    "ation:ate ator:ate alism:al iveness:ive fulness:ful ousness:ous aliti:al iviti:ive biliti:ble"
)
_STEP_3 = _read_pairs("icate:ic ative: alize:al iciti:ic ical:ic ful: ness:")
_SUFFIXES = re.findall("[a-z]+", "al ance ence er ic able ible ant ou ism ate iti ous ive ize")
_MENT = ("ement", "ment", "ent")
# only the last three letters are removed
_ION = ("sion", "tion")
_IRREGULAR = _read_pairs(  # nltk's
    "skies:sky dying:die lying:lie tying:tie innings:inning outings:outing cannings:canning sky:sky news:news "
    "inning:inning outing:outing canning:canning howe:howe proceed:proceed exceed:exceed succeed:succeed"
)
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


class Porter:
    """A stemmer for words of four letters and more; `mode` is "google" or "perl"."""

    def __init__(self, mode: str) -> None:
        self._extended = mode == "google"
        self._irregular: Mapping[str, str] = _IRREGULAR if self._extended else {}
        self._step_2 = _STEP_2 | {"fulli": "ful"} if self._extended else _STEP_2
        self._endings_2 = _by_last_letter((*self._step_2, "logi"))
        self._endings_3 = _by_last_letter(_STEP_3)
        self._endings_4 = _by_last_letter((*_SUFFIXES, *_MENT, *_ION))

    def stem(self, word: str) -> str:
        """Return the stem of a word in lower case; short words and words beyond ASCII stay unchanged."""
        if len(word) < SHORTEST or not word.isascii():
            return word
        if word in self._irregular:
            return self._irregular[word]
        last = word[-1]
        if last == "s":
            word = self._without_s(word)
            last = word[-1]
        if last in "dg" and word.endswith(("ed", "ing")):
            word = self._without_ed_or_ing(word)
            last = word[-1]
        if last == "y" and self._precedes_y(word[:-1]):
            word = word[:-1] + "i"
            last = "i"
        if last in self._endings_2 and word.endswith(self._endings_2[last]):
            word = self._second_step(word)
            last = word[-1]
        if last in self._endings_3 and word.endswith(self._endings_3[last]):
            word = _replaced(word, self._endings_3[last], _STEP_3)
            last = word[-1]
        if last in self._endings_4 and word.endswith(self._endings_4[last]):
            word = self._fourth_step(word)
            last = word[-1]
        if last == "e":
            word = self._without_e(word)
        if word.endswith("ll") and _porter_m(word[:-1]) > 1:
            word = word[:-1]
        return word

    def _without_s(self, word: str) -> str:
        """Step 1a."""
        if not word.endswith(("ies", "ss", "sses")):
            return word[:-1]
        if word.endswith("ss"):
            return word
        if self._extended and word.endswith("ies") and len(word) == len("dies"):
            return word[:-1]
        return word[:-2]

    def _without_ed_or_ing(self, word: str) -> str:
        """Step 1b."""
        if self._extended and word.endswith("ied"):
            return word[:-1] if len(word) == len("died") else word[:-2]
        if word.endswith("eed"):
            return word[:-1] if _porter_m(word[:-3]) else word
        stem = word[:-2] if word.endswith("ed") else word[:-3]
        form = _form(stem)
        if "v" not in form:
            return word
        if stem.endswith(("at", "bl", "iz")):
            return stem + "e"
        if stem[-1] == stem[-2:-1] and form[-1] == "c":
            return stem if stem[-1] in "lsz" else stem[:-1]
        return stem + "e" if form.count("vc") == 1 and self._is_short(stem, form) else stem

    def _precedes_y(self, stem: str) -> bool:
        """Step 1c."""
        form = _form(stem)
        return len(form) > 1 and form[-1] == "c" if self._extended else "v" in form

    def _second_step(self, word: str) -> str:
        """Step 2; nltk repeats the step after -alli."""
        if self._extended and word.endswith("alli") and _porter_m(word[:-4]):
            return self._second_step(word[:-2])
        if word.endswith("logi"):
            # in nltk its l belongs to the stem
            stem = word[:-3] if self._extended else word[:-4]
            return word[:-1] if _porter_m(stem) else word
        return _replaced(word, self._endings_2[word[-1]], self._step_2)

    def _fourth_step(self, word: str) -> str:
        """Step 4."""
        if self._extended:
            return _without_suffix(word, self._endings_4[word[-1]])
        word = _without_suffix(word, _SUFFIXES)
        for suffix in _MENT:
            word = _without_suffix(word, (suffix,))
        return _without_suffix(word, _ION)

    def _without_e(self, word: str) -> str:
        """Step 5a."""
        stem = word[:-1]
        form = _form(stem)
        measure = form.count("vc")
        return stem if measure > 1 or (measure == 1 and not self._is_short(stem, form)) else word

    def _is_short(self, stem: str, form: str) -> bool:
        """Return True if a stem ends in consonant, vowel, consonant (not w, x, y); in nltk also if it is like "us"."""
        return (form.endswith("cvc") and stem[-1] not in "wxy") or (self._extended and form == "vc")


def _by_last_letter(suffixes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return last letter → the suffixes that end with it, so that most words need one lookup."""
    by_letter: dict[str, tuple[str, ...]] = {}
    for suffix in suffixes:
        by_letter[suffix[-1]] = (*by_letter.get(suffix[-1], ()), suffix)
    return by_letter


def _form(stem: str) -> str:
    form = stem.encode().translate(_FORMS).decode()
    while "y" in form:  # a vowel after a consonant
        head, _, tail = form.partition("y")
        form = f"{head}{'v' if head[-1:] == 'c' else 'c'}{tail}"
    return form


def _porter_m(stem: str) -> int:
    return _form(stem).count("vc")


def _replaced(word: str, suffixes: Iterable[str], replacements: Mapping[str, str]) -> str:
    """Replace the first matching suffix if the rest has m > 0."""
    for suffix in suffixes:
        if word.endswith(suffix):
            stem = word.removesuffix(suffix)
            return stem + replacements[suffix] if _porter_m(stem) else word
    return word


def _without_suffix(word: str, suffixes: Iterable[str]) -> str:
    """Remove the first matching suffix if the rest has m > 1."""
    for suffix in suffixes:
        if word.endswith(suffix):
            stem = word[:-3] if suffix in _ION else word.removesuffix(suffix)
            return stem if _porter_m(stem) > 1 else word
    return word


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
    bases = {
        word: base
        for word, base in exceptions.bases.items()
        if len(word) >= SHORTEST and word.isascii()
    }
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
        for line in text.splitlines():
            if len(words := line.split()) > 1:
                bases[words[0]] = words[1]
    return Exceptions(bases, digest.hexdigest()[:8])


def _folder(wordnet: str | None) -> Path:
    folders = list(map(Path, _PLACES))
    if wordnet:
        folders = [Path(wordnet).expanduser(), Path(wordnet, "dict").expanduser()]
    for folder in folders:
        if all((folder / name).is_file() for name in LISTS):
            return folder
    if wordnet:
        raise UsageError(
            f"wordnet={wordnet} does not have {', '.join(LISTS)}; name the folder that does, or 'none'"
        )
    raise EnvironmentProblem(
        f"perl mode stems with WordNet's exception lists, and they are not installed: install the package {_PACKAGE} "
        "(apt-get install wordnet-base), name their folder with wordnet=FOLDER, or set wordnet=none"
    )


def _read_list(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"not a readable WordNet list ({error}); install {_PACKAGE} again", path
        ) from error
