"""Functions of this process that `longsumbench.run(model=function)` gives to `model=function`."""

import inspect
import json
from collections.abc import Callable
from typing import Any

from longsumbench.errors import UsageError
from longsumbench.files import digest

# (text) → summary, or (text, query) → summary.
Summarizer = Callable[..., object]
# Values that a partial, an object or a function has.
_HELD = ("args", "keywords", "__dict__", "__defaults__", "__kwdefaults__")
_registered: dict[str, Summarizer] = {}


def register_function(function: Summarizer) -> str:
    """Keep a function for this process, and return its name with a hash of what it is.

    The hash covers its source, its defaults, what it closes over and the attributes of its object, as far as JSON has
    them; of other functions there it covers the source, of other values the type. It does not cover what the function
    finds elsewhere: global variables, imported modules, functions that it calls, files.
    """
    named = getattr(function, "func", function)  # of a partial
    qualified = getattr(named, "__qualname__", type(named).__qualname__)
    name = f"{qualified}@{digest(_content_of(function))[:8]}"
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
    coded = getattr(function, "func", function)  # of a partial
    if not hasattr(coded, "__code__"):  # an object that can be called
        coded = type(coded).__call__
    held = [cell.cell_contents for cell in getattr(coded, "__closure__", None) or ()]
    for holder in (function, getattr(function, "__self__", None), coded):
        held += [getattr(holder, name, None) for name in _HELD]
    return json.dumps([_describe(coded), held], default=_describe, skipkeys=True)


def _describe(value: object) -> str:
    """Return the source of a function; where there is none, its bytecode. Of something else, return its type."""
    code = getattr(value, "__code__", None)
    if code is None:
        return type(value).__qualname__
    try:
        return inspect.getsource(code)
    except OSError:
        return f"{code.co_code.hex()} {code.co_names}"
