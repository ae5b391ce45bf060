"""Settings given in Python, as overrides of a command line: `model={"name": "seal"}` becomes `model=seal`."""

import re
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any

from hydra.core.override_parser.types import Quote, QuotedString

from longsumbench.errors import UsageError
from longsumbench.runs.plan import GROUPS

_NEEDS_NO_QUOTES = re.compile(r"(?!(?:null|true|false|nan|inf)$)[a-z_/][\w./-]*", re.ASCII | re.IGNORECASE)


def format_overrides(settings: Mapping[str, Any], swept: bool = False) -> list[str]:
    """Return settings as overrides.

    Args:
        settings: setting → value. A dictionary as a value holds the settings of a group; `name` chooses in the group.
        swept: whether a list, tuple or range holds values to sweep over.

    Raises:
        UsageError: a value is of a type that no setting has.
    """
    words = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            inner = {key if name == "name" and key in GROUPS else f"{key}.{name}": value[name] for name in value}
            words += format_overrides(inner, swept)
        elif swept and isinstance(value, list | tuple | range):
            if not value:
                raise UsageError(f"{key}={value!r} has no values to sweep over")
            words.append(f"{key}={','.join(_format_value(key, one) for one in value)}")
        else:
            words.append(f"{key}={_format_value(key, value)}")
    return words


def _format_value(key: str, value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case Real():
            return f"{value}"
        case str() | Path():
            text = str(value)
            return text if _NEEDS_NO_QUOTES.fullmatch(text) else QuotedString(text, Quote.single).with_quotes()
        case list() | tuple() | range():
            return f"[{','.join(_format_value(key, one) for one in value)}]"
    raise UsageError(f"{key}={value!r} is a {type(value).__name__}: give text, a number, True, False, None or a list")
