"""Stemmers against nltk's and against the stems of ROUGE-1.5.5; where WordNet's lists come from."""

import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from nltk.stem.porter import PorterStemmer
from support.paths import SHARED
from support.requirements import SHARED_FOLDER
from support.toys import refuses

from longsumbench.errors import EnvironmentProblem
from longsumbench.rouge import stemmers
from longsumbench.rouge.stemmers import LISTS, Exceptions, google_stem, perl_stem, read_exceptions

STEMS = SHARED / "reference" / "perl_stems.tsv"
SUFFIXES = re.findall(
    r"\w+",
    "s es ed ing eed ied ies y ly ement ment ent ion ational ization fulness al alli logi able ance er e ll ss yy",
)
WORDS = st.builds(
    lambda stem, suffixes: stem + "".join(suffixes),
    st.text("abeilnosty", max_size=6),
    st.lists(st.sampled_from(SUFFIXES), max_size=3),
)


@pytest.fixture(scope="module")
def recorded() -> list[tuple[str, str]]:
    if not STEMS.is_file():
        pytest.skip(SHARED_FOLDER)
    word_and_stem = (line.split("\t") for line in STEMS.read_text(encoding="utf-8").splitlines())
    return [(word, stem) for word, stem in word_and_stem if len(word) >= stemmers.SHORTEST]


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    for name in LISTS:
        (tmp_path / name).write_text("", encoding="utf-8")
    (tmp_path / "adj.exc").write_text("better good well\naxes wrong\n", encoding="utf-8")
    (tmp_path / "noun.exc").write_text("axes ax axis\nmen man\n", encoding="utf-8")
    return tmp_path


def test_recorded_perl_stems(recorded: list[tuple[str, str]]) -> None:
    """Every recorded word gets the stem that ROUGE-1.5.5 gives it without exception lists."""
    stem = perl_stem(Exceptions({}, "none"))
    assert [(word, stem(word)) for word, _ in recorded] == recorded


@given(WORDS)
def test_google_stems(word: str) -> None:
    """Made-up words get nltk's stem from four letters on, and stay as they are below."""
    assert google_stem()(word) == (PorterStemmer().stem(word) if len(word) > 3 else word)


def test_perl_step_by_hand() -> None:
    """The suffixes -ement, -ment, -ent and -ion go one after the other, where nltk takes one of them at most."""
    stem = perl_stem(Exceptions({}, "none"))
    words = "argument developmental affectionate"
    assert list(map(stem, words.split())) == ["argum", "develop", "affect"]
    assert google_stem()("argument") == "argument"


def test_exceptions_by_hand(lists: Path) -> None:
    """The later list counts, of several bases the first, as it stands; short words are not looked up."""
    stem = perl_stem(read_exceptions(str(lists)))
    assert list(map(stem, ["better", "axes", "men", "hopping"])) == ["good", "ax", "men", "hop"]


def test_versions_tell_lists_apart(lists: Path) -> None:
    """Other lists have another version; the folder may hold them in `dict`."""
    before = read_exceptions(str(lists))
    inner = lists / "wordnet" / "dict"
    inner.mkdir(parents=True)
    for name in LISTS:
        (inner / name).write_bytes((lists / name).read_bytes())
    assert read_exceptions(str(inner.parent)) == before
    (inner / "verb.exc").write_text("went go\n", encoding="utf-8")
    assert read_exceptions(str(inner.parent)).version != before.version


def test_missing_lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the lists there is no silent fallback: the error names the package and the way to do without."""
    monkeypatch.setattr(stemmers, "_PLACES", (str(tmp_path),))
    with refuses(r"wordnet-base.*wordnet=FOLDER.*wordnet=none", EnvironmentProblem):
        read_exceptions()
    with refuses(r"does not have adj\.exc"):
        read_exceptions(str(tmp_path))
    assert read_exceptions("none") == Exceptions({}, "none")
