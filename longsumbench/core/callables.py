"""Functions of this process that `longsumbench.run(model=function)` gives to `model=function`."""

import inspect
import json
from collections.abc import Callable
from typing import Any

from longsumbench.errors import UsageError
from longsumbench.files import digest

# (text) → summary, or (text, query) → summary.
Summarizer = Callable[..., object]
_registered: dict[str, Summarizer] = {}


def register_function(function: Summarizer) -> str:
    """Keep a function for this process, and return its name with a hash of what it is.

    The hash covers its source, its defaults, the variables that it finds outside, and the attributes of its object, as far
    as JSON has them. Of functions that it calls there it covers the source, of other values the type. It does not cover
    what these find elsewhere, imported modules and files.

    Raises:
        UsageError: its source is not known.
    """
    coded: Any = function if hasattr(function, "__code__") else type(function).__call__
    owner = getattr(function, "__self__", function)  # of a method
    attributes = getattr(owner, "__dict__", None)
    try:
        outside = inspect.getclosurevars(coded)
        names = [outside.nonlocals, outside.globals, coded.__defaults__, coded.__kwdefaults__]
        content = json.dumps(
            [_describe(coded), attributes, names], default=_describe, skipkeys=True
        )
    except (OSError, TypeError, ValueError) as error:
        raise UsageError(
            f"model={function!r} has no source that can be read ({error}): write a function into a file"
        ) from error
    qualified = getattr(function, "__qualname__", type(function).__qualname__)
    name = f"{qualified}@{digest(content)[:8]}"
    _registered[name] = function
    return name


def registered_function(name: str | None) -> Summarizer:
    """Return a function by the name that `register_function` gave to it.

    Raises:
        UsageError: this process has no such function.
    """
    if name not in _registered:
        raise UsageError(
            f"model.function={name} is not in this process: call longsumbench.run(model=FUNCTION) where it is defined"
        )
    return _registered[name]


def _describe(value: object) -> str:
    """Return the source of a function; of something else the type."""
    code = getattr(value, "__code__", None)
    return inspect.getsource(code) if code else type(value).__qualname__
