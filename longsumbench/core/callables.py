"""Functions of this process that `longsumbench.run(model=function)` gives to `model=function`."""

import inspect
import json
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from longsumbench.errors import UsageError
from longsumbench.files import digest

# (text, query) → summary, or (text) → summary.
Summarizer = Callable[..., object]
_HASH = 8  # hexadecimal digits
_registered: dict[str, Summarizer] = {}


def register_function(function: Summarizer) -> str:
    """Keep a function for this process, and return its name with a hash of what it is.

    The hash covers its source, its defaults, what it closes over and the attributes of its object, as far as JSON has
    them; of other functions there it covers the source, of other values the type. It does not cover what the function
    finds elsewhere: global variables, imported modules, functions that it calls, files.
    """
    named = function.func if isinstance(function, partial) else function
    qualified = getattr(named, "__qualname__", type(named).__qualname__)
    name = f"{named.__module__}.{qualified}@{digest(_content_of(function))[:_HASH]}"
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


def _content_of(function: Any) -> str:
    """Return JSON of what makes a function what it is."""
    held: list[Any] = []
    if isinstance(function, partial):
        held += [function.args, function.keywords]
        function = function.func
    held.append(getattr(getattr(function, "__self__", None), "__dict__", None))
    if not hasattr(function, "__code__"):  # an object that can be called
        held.append(getattr(function, "__dict__", None))
        function = type(function).__call__
    for cell in getattr(function, "__closure__", None) or ():
        held.append(cell.cell_contents)
    held += [getattr(function, "__defaults__", None), getattr(function, "__kwdefaults__", None)]
    return json.dumps([_source_of(function), held], default=_describe, skipkeys=True)


def _describe(value: object) -> str:
    is_function = isinstance(value, FunctionType)
    return _source_of(value) if is_function else f"{type(value).__module__}.{type(value).__name__}"


def _source_of(function: Any) -> str:
    """Return the source of a function; where there is none, its bytecode and the names in it."""
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        code = getattr(function, "__code__", None)
        return f"{code.co_code.hex()} {code.co_names}" if code else f"{function!r}"
