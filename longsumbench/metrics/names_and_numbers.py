"""`entity_precision` and `number_precision`: the share of a summary's names, and of its numbers, that the source has.

No model is needed. A name is a sequence of capitalized words, so the first metric does not apply to lower-cased texts.
"""

import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from longsumbench.core import Example
from longsumbench.metrics.word_metrics import WordMetric

_LETTERS = re.compile("[a-z]+")
_SMALL: list[str] = _LETTERS.findall(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
)
_TENS: list[str] = _LETTERS.findall("twenty thirty forty fifty sixty seventy eighty ninety")
_ORDINALS = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "eighth": 8,
    "ninth": 9,
    "twelfth": 12,
}
_SCALES = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
}
_VALUES = {word: value for value, word in enumerate(_SMALL)}
for _word, _value in _VALUES.items():
    if _value not in _ORDINALS.values():
        _ORDINALS[f"{_word}th"] = _value
for _place, _word in enumerate(_TENS, start=2):
    _VALUES[_word] = 10 * _place
    _ORDINALS[f"{_word[:-1]}ieth"] = 10 * _place
_IDIOMS = ("one", "first", "second", "zeroth")  # mostly no numbers
_ABBREVIATIONS = {"k": "thousand", "bn": "billion"}
_MONTHS = _LETTERS.findall(
    "january february march april may june july august september october november december"
)
_WEEKDAYS = _LETTERS.findall("monday tuesday wednesday thursday friday saturday sunday")
_DATE_WORDS = (*_MONTHS, *_WEEKDAYS)
_SURE_DATE_WORDS = tuple(word for word in _DATE_WORDS if word not in ("march", "may"))

_CARDINAL, _ORDINAL = "|".join((*_VALUES, *_SCALES)), "|".join(_ORDINALS)
_BETWEEN = r"(?:\s+and\s+|[\s-]+)"
_SPELLED = re.compile(
    rf"\b(?=[befhmnostz])(?:(?:{_CARDINAL})\b(?:{_BETWEEN}(?:{_CARDINAL})\b)*(?:{_BETWEEN}(?:{_ORDINAL})\b)?|(?:{_ORDINAL})\b)"
)  # of text in lower case
_ISO_DATE = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_DIGITS = re.compile(
    r"(?<![^\W\d_])(?<![\d.])(\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?!\d)|\d+)(\.\d+(?!\.?\d))?"
    rf"(?:[\s-]?({'|'.join(_SCALES)}|k|bn)\b)?"
)
_DATE_WORD = (
    re.compile(  # "may" and "march" are verbs in lower case, and may be at a sentence start
        rf"\b(?:{'|'.join(_SURE_DATE_WORDS)})\b|(?<=[\w,] )(?-i:March|May)\b", re.IGNORECASE
    )
)
_IN_DIGITS, _POINTS = re.compile("[0-9]+(?:[.,][0-9]+)*"), re.compile("[.,]")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")

_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][^\W_]*(?:(?:['’&-]|\.(?=[A-Z]))[^\W_]+)*"
_CAPITALIZED = re.compile(rf"(?<![^\W_]){_CAPITAL}(?: {_CAPITAL})*")
_GAP = re.compile(r"[.!?:;•\n][^\w\n]*$")
_TITLES = "Dr|Mr|Mrs|Ms|Prof|Professor|Sir|St|Dame|Lord|Lady|Sen|Rep|Gov|President"
_POINT_IN_NAME = re.compile(
    rf"\.(?<=\b[A-Z]\.) (?=[A-Z])|\b(?=[DGLMPRS])(?:{_TITLES})\.? (?=[A-Z])"
)
_NO_NAMES = frozenset(
    (*_DATE_WORDS, "i", "i'm", "i'd", "i'll", "i've", "i’m", "i’d", "i’ll", "i’ve")
)
_FUNCTION_WORDS = frozenset(
    _LETTERS.findall(
        """a about above across after afterwards again against all almost along already also although always among an
        and another any anyone are around as at because been before behind being below besides between both but by
        can could despite did do does done during each either else even every everyone few first for four from
        further furthermore had has have having he hence her here hers him his how however i if in including indeed
        instead into is it its itself later less like many may maybe meanwhile might more moreover most much must my
        neither never next no nobody none nor not now of often on once one or other others otherwise our out over
        overall people perhaps please rather second several shall she should since so some someone something
        sometimes soon such than that the their them then there thereby therefore these they third this those though
        three through throughout thus to together toward two under unlike until up upon us using was we well were
        what whatever when whenever where whereas whether which while who whose why will with within without would
        yes yet you your"""
    )
)


# Begin to read here; both metrics have the same form.
class EntityPrecision(WordMetric):
    """The share of the summary's names that the source, its title or its query has.

    A name is a sequence of capitalized words, without titles ("Dr."). The source has it if it has all of its words.
    A word that begins a sentence counts if it is capitalized elsewhere in the summary, or if it is neither a function
    word nor in the source in lower case. Months and weekdays are dates. The metric does not apply to a summary without
    names, so it does not apply to lower-cased texts.
    """

    name = "entity_precision"
    columns = (name,)
    agrees = "τ 0.25 with correctness of stories (people 0.69), -0.23 with faithfulness of reviews"

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `entity_precision` → 0–1, NaN without names."""
        known = self.known_words(example)
        shares = []
        for name in names_in(prediction, example.source_text()):
            words = self.words(name)
            if words:
                shares.append(all(f" {word} " in known for word in words))
        return {self.name: float(np.mean(shares)) if shares else np.nan}


class NumberPrecision(WordMetric):
    """The share of the summary's numbers and parts of dates that the source, its title or its query has.

    Notations are compared by their value: 3,000 = 3000 = three thousand = 3 thousand, 3rd = third, 12 % = twelve
    percent, 2021-03-05 = March 5, 2021. Units are ignored. "One", "first" and "second" alone are no numbers. The metric
    does not apply to a summary without numbers.
    """

    name = "number_precision"
    columns = (name,)
    agrees = "τ 0.42 and 0.30 with factuality of papers (people 0.75 and 0.83), neither clear"

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `number_precision` → 0–1, NaN without numbers."""
        numbers = list(numbers_in(prediction))
        if not numbers:
            return {self.name: np.nan}
        known = self.known_words(example)
        text = f"{example.source_text()} {example.topic or ''}"
        digits = _digits_in(text)
        shares = []
        for number in numbers:
            is_spelled = any(f" {words} " in known for words in number.spellings())
            is_known = number.value in digits or is_spelled
            shares.append(is_known or _is_in_digits(number, digits, text))
        return {self.name: float(np.mean(shares))}


def _digits_in(text: str) -> frozenset[str]:
    """Return the values of the numbers that a text has in digits."""
    values = set()
    for number in set(_IN_DIGITS.findall(text)):
        for part in [number] if _GROUPED.fullmatch(number) else _POINTS.split(number):
            values.add(_plain(part.replace(",", "")))
    return frozenset(values)


def _plain(number: str) -> str:
    """Return a number without zeros at its ends: "007" → "7", "3.50" → "3.5"."""
    whole, point, decimals = number.partition(".")
    return (whole.lstrip("0") or "0") + (point + decimals).rstrip("0").rstrip(".")


class Number(NamedTuple):
    """A number of a summary as its value, or a month or a weekday as its word."""

    value: str
    word: str = ""

    def spellings(self) -> list[str]:
        """Return the ways in which the number is written in words."""
        if self.word:
            return [self.word, self.word[:3]]
        if not self.value.isdecimal() or len(self.value) > len(str(_SCALES["trillion"])):
            return []
        spelled = _spell(int(self.value))
        before, _, last = spelled.rpartition(" ")
        # "twenty one" is also "twenty first"
        ordinals = [word for word, value in _ORDINALS.items() if value == _VALUES.get(last)]
        forms = [spelled, spelled.replace(" hundred ", " hundred and ")]
        return forms + [f"{before} {word}".strip() for word in ordinals]


def _is_in_digits(number: Number, digits: Collection[str], text: str) -> bool:
    """Return True if a text, which has some `digits`, has a month in digits, or a number as digits before "million"."""
    if number.word:
        month = _DATE_WORDS.index(number.word) + 1
        dates = rf"\d{{4}}-0?{month}-\d|\b0?{month}/\d\d?/\d\d|\b\d\d?[/.]0?{month}[/.]\d\d"
        return number.word in _MONTHS and re.search(dates, text) is not None
    for word, scale in _SCALES.items():
        # 3,000,000 may be "3 million" in the source
        mantissa = _plain(f"{Decimal(number.value) / scale:f}")
        pattern = rf"(?<![\d.]){re.escape(mantissa)}[\s-]?{word}"
        if mantissa in digits and re.search(pattern, text, re.IGNORECASE):
            return True
    return False


def _spell(value: int) -> str:
    """Return a number in words: 3021 → "three thousand twenty one"."""
    if value < 20:
        return _SMALL[value]
    rest = value % 10
    before = _TENS[value // 10 - 2] if value < 100 else ""
    for word, scale in _SCALES.items():
        if scale <= value:
            before, rest = f"{_spell(value // scale)} {word}", value % scale
    return f"{before} {_spell(rest)}" if rest else before


def numbers_in(text: str) -> Iterator[Number]:
    """Yield the numbers of a text, and its months and weekdays."""
    numbers: list[Number] = []

    def read_date(match: re.Match[str]) -> str:
        year, month, day = map(int, match.groups())
        numbers.extend((Number(str(year)), Number(str(day))))
        numbers.extend(Number("", name) for name in _MONTHS[max(month - 1, 0) : month])
        return " "

    def read_digits(match: re.Match[str]) -> str:
        digits = re.sub(r"\D", "", match[1]) + (match[2] or "")
        scale = _SCALES.get(_ABBREVIATIONS.get(match[3], match[3]), 1)
        numbers.append(Number(_plain(f"{Decimal(digits) * scale:f}")))
        return " "

    # what was read is replaced, so that no number is read twice
    text = _DIGITS.sub(read_digits, _ISO_DATE.sub(read_date, text))
    yield from numbers
    for _, value in spelled_numbers(text):
        yield Number(str(value))
    for match in _DATE_WORD.finditer(text):
        yield Number("", match[0].lower())


def spelled_numbers(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the numbers in words, without idioms ("one") and a scale alone ("million"), with their values."""
    for match in _SPELLED.finditer(text.lower()):
        parts = [word for word in re.split(r"[\s-]+", match[0]) if word != "and"]
        if len(parts) > 1 or parts[0] not in (*_IDIOMS, *_SCALES):
            yield match, _read_number(parts)


def _read_number(words: list[str]) -> int:
    """Return the value of a number in words: ["three", "thousand", "five"] → 3005."""
    total, part = 0, 0
    for word in words:
        scale = _SCALES.get(word, 0)
        if scale > 100:
            total, part = total + max(part, 1) * scale, 0
        else:
            part = max(part, 1) * scale if scale else part + (_VALUES | _ORDINALS)[word]
    return total + part


def names_in(text: str, source: str) -> Iterator[str]:
    """Yield the names of a summary; `source` decides whether a word at a sentence start is a common one."""
    # in capitals, any word would be a name
    if text.isupper():
        return
    text = _POINT_IN_NAME.sub(" ", text).lstrip()
    sequences = []  # capitalized words, and whether they begin a sentence
    inside, alone = set[str](), set[str]()
    for match in _CAPITALIZED.finditer(text):
        words, place = match[0].split(), match.start()
        begins = not place or bool(_GAP.search(text, max(0, place - 8), place))
        sequences.append((words, begins))
        inside.update(words[begins:])
        if begins and len(words) == 1:
            alone.update(words)
    alone -= inside
    # the source is read once, however many words there are
    common_words = {word.lower() for word in alone}.intersection(source.split(" ")[1:-1])
    for words, begins in sequences:
        first = words[0].lower()
        # a word at a sentence start is capitalized in any case
        if begins and (first in _FUNCTION_WORDS or first.endswith("ly")):
            words = words[1:]
        elif begins and len(words) == 1 and words[0] in alone and first in common_words:
            continue
        parts = [word.removesuffix("'s").removesuffix("’s") for word in words]
        name = [word for word in parts if word[:1].isupper() and word.lower() not in _NO_NAMES]
        if name:
            yield " ".join(name)
