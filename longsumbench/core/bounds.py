"""Bounds of settings: a field's type states which values are allowed.

    batch_size: Count = 16             a number between two bounds
    agenda: Agenda | None = None       one of some names: Annotated[str, OneOf("fixed", "asked")]
    path: Text | None = None           free text

`longsumbench.core.config.build_settings` checks the values that a user sets. A dataclass checks in its `__post_init__`
only what involves several fields. Fields of plug-ins need no bounds.
"""

import math
import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from functools import lru_cache
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, get_args, get_type_hints

from longsumbench.errors import UsageError, did_you_mean

# Characters of a text; no path is longer on Linux.
_LONGEST_TEXT = 4_096
# Characters of a refused value that a message repeats.
_SHOWN = 60
_MAX_COUNT = 10**9
_FOLDER_NAME = re.compile(
    r"(?!(?:null|true|false|nan|inf)$)[a-z][\w.-]{0,59}", re.ASCII | re.IGNORECASE
)


class Bound(ABC):
    """A condition on one value.

    Attributes:
        secret: True if a message must not repeat the value.
    """

    secret: ClassVar[bool] = False

    @abstractmethod
    def problem(self, value: object) -> str | None:
        """Return the end of the error message; None if the value is allowed."""


@dataclass(frozen=True)
class Between(Bound):
    """A number from `low` to `high`; `open_low` and `open_high` exclude the bound."""

    low: float
    high: float
    open_low: bool = False
    open_high: bool = False

    def problem(self, value: object) -> str | None:
        """Return the end of the error message; NaN is an error."""
        if not isinstance(value, int | float):
            return " is not a number"
        if self.open_high and not self.low <= value < self.high:
            return f" must be at least {self.low} and below {self.high}"
        if self.open_low and not value > self.low:
            return f" must be above {self.low}"
        if not value >= self.low:
            return f" is below {self.low}"
        return f" is above {self.high:,}" if value > self.high else None


class OneOf(Bound):
    """One of a set of names.

    Args:
        names: always allowed.
        more: returns further names, for example those of a registry.
        number_of: the unit ("words"), if a whole number is allowed too.
        least: the minimum of such a number.
        elsewhere: what others call it ("map-reduce") → the name that is meant.
    """

    def __init__(
        self,
        *names: str,
        more: Callable[[], Iterable[str]] | None = None,
        number_of: str = "",
        least: int = 1,
        elsewhere: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.names, self.more, self.number_of, self.least = names, more, number_of, least
        self.elsewhere = elsewhere

    def problem(self, value: object) -> str | None:
        """Return the end of the error message, which lists the names and suggests the nearest."""
        choices = (*self.names, *(self.more() if self.more else ()))
        if value in choices:
            return None
        short = str(value).isdecimal() and len(str(value)) < len(str(_MAX_COUNT))
        if self.number_of and short and int(str(value)) >= self.least:
            return None
        number = (
            f", or a number of {self.number_of}, at least {self.least}" if self.number_of else ""
        )
        meant = self.elsewhere.get(re.sub(r"[^a-z]", "", str(value).lower()))
        suggestion = did_you_mean(meant or str(value)[:_SHOWN], choices)
        return f"{suggestion}; allowed: {', '.join(choices)}{number}"


@dataclass(frozen=True)
class FreeText(Bound):
    """A name or a path without control characters; it need not exist."""

    def problem(self, value: object) -> str | None:
        """Return the end of the error message for control characters, lone surrogates and texts that are too long."""
        if not isinstance(value, str):
            return " is not a text"
        if len(value) > _LONGEST_TEXT:
            return f" has {len(value):,} characters; at most {_LONGEST_TEXT:,} are allowed"
        for character in value:
            if unicodedata.category(character) in ("Cc", "Cs"):
                return f" has a control character ({character!a}): remove it"
        return None


class VariableName(Bound):
    """The name of an environment variable. Its value may be a password, which a user could give by mistake."""

    secret = True

    def problem(self, value: object) -> str | None:
        """Return the end of the error message."""
        if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", str(value)):
            return None
        return " is not the name of an environment variable: give a name of letters, digits and _"


@dataclass(frozen=True)
class Date(Bound):
    """A month ("2019-10") or a day ("2019-10-29")."""

    def problem(self, value: object) -> str | None:
        """Return the end of the error message."""
        day = f"{value}-01" if len(str(value)) == len("2019-10") else str(value)
        try:
            # fromisoformat also reads other notations.
            if date.fromisoformat(day).isoformat() == day:
                return None
        except ValueError:
            pass
        return " is no date: give a month (2019-10) or a day (2019-10-29)"


# The range of numpy's seeds.
Seed = Annotated[int, Between(0, 2**32 - 1)]
Count = Annotated[int, Between(1, _MAX_COUNT)]
NonNegative = Annotated[int, Between(0, _MAX_COUNT)]
BatchSize = Annotated[int, Between(1, 10**6)]
Processes = Annotated[int, Between(1, 1_024)]
TokenCount = Annotated[int, Between(1, 10**7)]
TargetTokens = Annotated[int, Between(2, 10**7)]
Width = Annotated[int, Between(1, 10**6)]
Heads = Annotated[int, Between(1, 10**4)]
Depth = Annotated[int, Between(1, 1_000)]
VocabularySize = Annotated[int, Between(1, 10**7)]
Fraction = Annotated[float, Between(0, 1)]
FractionBelowOne = Annotated[float, Between(0, 1, open_high=True)]
Percentage = Annotated[float, Between(0, 100)]
Weight = Annotated[float, Between(0, 10**6)]
Positive = Annotated[float, Between(0, 10**6, open_low=True)]
Seconds = Positive
Minutes = Annotated[float, Between(0, 10**7)]
Resamples = Annotated[int, Between(100, 10**6)]
Device = Annotated[str, OneOf("auto", "cpu", "cuda", "mps")]
DeviceMap = Annotated[str, OneOf("auto", "balanced", "balanced_low_0", "sequential")]
WeightType = Annotated[str, OneOf("float32", "bfloat16", "float16")]
Text = Annotated[str, FreeText()]
ReleaseDate = Annotated[str, Date()]


def check_value(key: str, value: object, bound: Bound | None) -> None:
    """Check a value, each item of a list, or each key of a dictionary; None is allowed, and without a bound any value.

    Raises:
        UsageError: the value is out of its bound; the message has the full key.
    """
    for item in value if isinstance(value, list | dict) else [value]:
        if bound and item is not None and (problem := bound.problem(item)):
            assignment = "" if bound.secret else f"={shorten(item)}"
            raise UsageError(f"{key}{assignment}{problem}")


@lru_cache
def collect_bounds(schema: type) -> dict[str, Bound | None]:
    """Return field → bound; None for a field without one."""
    hints = get_type_hints(schema, include_extras=True)
    return {item.name: _bound_in(hints[item.name]) for item in fields(schema)}


def _bound_in(hint: Any) -> Bound | None:
    for part in get_args(hint):
        bound = part if isinstance(part, Bound) else _bound_in(part)
        if bound is not None:
            return bound
    return None


def shorten(value: object) -> str:
    """Return a value for an error message: on one line, cut after 60 characters."""
    text = str(value)
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Check that a setting is one of its choices.

    Raises:
        UsageError: it is not; the message lists the choices and suggests the nearest.
    """
    check_value(key, value, OneOf(*choices))


def check_folder_name(key: str, name: str) -> None:
    """Check that a name can be typed without quotes everywhere, and can name a folder of results.

    Raises:
        UsageError: it cannot.
    """
    if not _FOLDER_NAME.fullmatch(name):
        form = "a letter, then letters, digits, '.', '_' or '-', 60 characters at most; not null, true or false"
        raise UsageError(f"{key}={shorten(name)} cannot name a folder: write {form}")


def check_minimum(key: str, value: float | None, least: float) -> None:
    """Check that a number, if given, is not below `least`.

    Raises:
        UsageError: the number is below `least`, or NaN.
    """
    check_value(key, value, Between(least, math.inf))
