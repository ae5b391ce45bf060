"""The sentences that state planted facts, and the names and values that fill them.

A template has one sentence, or two that stand in different places ("first | second"). Its slots:

    {name}         the subject: an invented name, the same in all sentences
    {reference}    what links two sentences ("K-4127"), the same in both
    {not:…}        a denial, in the template's own words
    others         the answer, drawn anew for each sentence

Each kind has templates for train and validation, and others for test, so no system can learn those of the test split.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from longsumbench.corpora.probe.language import Draw

# Raise it if the same texts get other facts.
PLANTING_VERSION = 1
# Kinds whose first sentence is revoked by the second.
REVOKED_KINDS = ("correction", "revocation")
# Slots that are the same in all sentences.
SHARED_SLOTS = ("name", "reference")


def _words_in(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_STEMS = _words_in(
    "Hal Bren Tor Marl Lind Ves Kor Dal Ost Rav Nor Fal Grim Sel Var Tal Ulm Wes Yar Zel Bar Cor Ebb Fen Gar Hol Ing"
    " Jor Kel Lor Mel Nes Orm Pel Quin Ros Sten Thor Und Vin"
)
_ENDINGS = _words_in(
    "vorsen berg mark stedt wick holm quist ford dahl gaard mann sund lund strand heim rup bury leigh nik sky"
)
_FIRST_NAMES = _words_in(
    "Ingrid Marta Selma Astrid Helene Clara Judith Nadia Renata Silvia Tamara Wilma Anton Bruno Emil Felix Gustav Henrik"
    " Jonas Konrad Magnus Oskar Rasmus Viktor"
)
_CURRENCIES = (("euros", "€"), ("dollars", "$"), ("pounds", "£"), ("francs", "CHF "))
# Tenths of a million, without whole millions.
_TENTHS = [tenths for tenths in range(11, 990) if tenths % 10]
_MONTHS = _words_in(
    "January February March April May June July August September October November December"
)
# Days that every month has.
_DAYS = range(1, 29)
_YEARS = range(2014, 2026)
_NUMBERS = range(1_013, 9_988)
_LETTERS = "ABCDEFGHKLMNPRSTVWXZ"
_FOLDERS = _words_in("deploy config scripts src tools tests data docs")
_FILE_STEMS = _words_in(
    "limits routes schema worker parser index export session cleanup metrics policy"
)
_FILE_TAGS = _words_in("eu us v2 v3 old new local batch main draft")
_FILE_ENDINGS = _words_in("toml yaml json py sql sh")


def _write_name(draw: Draw) -> list[str]:
    return [draw.one_of(_STEMS) + draw.one_of(_ENDINGS)]


def _write_person(draw: Draw) -> list[str]:
    [surname] = _write_name(draw)
    return [f"{draw.one_of(_FIRST_NAMES)} {surname}", surname]


def _write_amount(draw: Draw) -> list[str]:
    currency, sign = draw.one_of(_CURRENCIES)
    tenths = draw.one_of(_TENTHS)
    millions = f"{tenths / 10} million"
    digits = f"{tenths * 100_000:,}"
    return draw.shuffled([f"{millions} {currency}", f"{digits} {currency}", f"{sign}{millions}"])


def _write_number(draw: Draw) -> list[str]:
    number = draw.one_of(_NUMBERS)
    return draw.shuffled([f"{number:,}", f"{number}"])


def _write_date(draw: Draw) -> list[str]:
    day, month, year = draw.one_of(_DAYS), draw.one_of(_MONTHS), draw.one_of(_YEARS)
    return draw.shuffled([f"{day} {month}", f"{month} {day}", f"{day} {month} {year}"])


def _write_reference(draw: Draw) -> list[str]:
    return [f"{draw.one_of(_LETTERS)}-{draw.one_of(_NUMBERS)}"]


def _write_file(draw: Draw) -> list[str]:
    name = f"{draw.one_of(_FILE_STEMS)}-{draw.one_of(_FILE_TAGS)}.{draw.one_of(_FILE_ENDINGS)}"
    return [f"{draw.one_of(_FOLDERS)}/{name}"]


@dataclass(frozen=True)
class Slot:
    """What fills a place of a template.

    Attributes:
        kind: of the `FactPart`.
        number: how many values there are.
        write: draws one of them, and returns the forms it can have; the first is written.
    """

    kind: str
    number: int
    write: Callable[[Draw], Sequence[str]]


_NUM_NAMES = len(_STEMS) * len(_ENDINGS)
_NUM_FILES = len(_FOLDERS) * len(_FILE_STEMS) * len(_FILE_TAGS) * len(_FILE_ENDINGS)
SLOTS = {
    "name": Slot("name", _NUM_NAMES, _write_name),
    "person": Slot("name", _NUM_NAMES * len(_FIRST_NAMES), _write_person),
    "amount": Slot("amount", len(_TENTHS) * len(_CURRENCIES), _write_amount),
    "number": Slot("number", len(_NUMBERS), _write_number),
    "date": Slot("date", len(_DAYS) * len(_MONTHS), _write_date),
    "reference": Slot("name", len(_LETTERS) * len(_NUMBERS), _write_reference),
    "file": Slot("file", _NUM_FILES, _write_file),
}


@dataclass(frozen=True)
class Paraphrases:
    """The templates of a kind: those of the train and validation splits, and those of the test split."""

    train: tuple[str, ...]
    test: tuple[str, ...]

    def of_split(self, split: str) -> tuple[str, ...]:
        """Return the templates of a split."""
        return self.test if split == "test" else self.train


_PROSE = {
    "decision": Paraphrases(
        train=("The board approved {amount} for the {name} project.",),
        test=("The trustees decided to set aside {amount} for the {name} clinic.",),
    ),
    "number": Paraphrases(
        train=("The {name} survey counted {number} households.",),
        test=("The {name} collection holds {number} manuscripts.",),
    ),
    "date": Paraphrases(
        train=("The {name} agreement was signed on {date}.",),
        test=("The {name} inquiry published its report on {date}.",),
    ),
    "name": Paraphrases(
        train=("The {name} prize went to {person}.",),
        test=("{person} designed the {name} pavilion.",),
    ),
    "negation": Paraphrases(
        train=("The board {not:did not approve} the {name} extension.",),
        test=("The {name} merger {not:was not completed}.",),
    ),
    "correction": Paraphrases(
        train=(
            "The {name} fair drew {number} visitors."
            " | The figure for the {name} fair was wrong: it drew {number} visitors.",
        ),
        test=(
            "The {name} grant amounts to {amount}."
            " | Contrary to what was stated before, the {name} grant amounts to {amount}.",
        ),
    ),
    "two_places": Paraphrases(
        train=(
            "File {reference} concerns the sale of the {name} estate."
            " | {person} is in charge of file {reference}.",
        ),
        test=(
            "The {name} manuscript has the shelf mark {reference}."
            " | {person} donated the volume with the shelf mark {reference}.",
        ),
    ),
}
_MEETING = _PROSE
_SESSION = _MEETING | {
    "file": Paraphrases(
        train=("The settings of {name} are kept in {file}.",),
        test=("You will find the {name} schema in {file}.",),
    ),
    "attempt": Paraphrases(
        train=(
            "Raising the pool size of {name} to {number} {not:did not help} with the timeouts.",
        ),
        test=("Restarting {name} after {number} requests {not:did not solve} the leak.",),
    ),
    "revocation": Paraphrases(
        train=(
            "Write the {name} results to {file}."
            " | Forget what I said about the {name} results; write them to {file}.",
        ),
        test=(
            "Store the {name} keys in {file}."
            " | Ignore my earlier message on the {name} keys; store them in {file}.",
        ),
    ),
}
# Register of a text → kind → templates.
TEMPLATES: Mapping[str, Mapping[str, Paraphrases]] = {
    "prose": _PROSE,
    "meeting": _MEETING,
    "session": _SESSION,
}
