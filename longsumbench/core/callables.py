"""Functions of this process that `longsumbench.run(model=function)` gives to `model=function`."""

import dis
import functools
import os
import pickle
import re
import sys
from collections.abc import Callable
from inspect import signature
from operator import attrgetter
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from joblib.hashing import NumpyHasher  # type: ignore[import-untyped]

from longsumbench.errors import UsageError

# (text) → summary, or (text, query=…) → summary.
TextFunction = Callable[..., object]
_registered: dict[str, TextFunction] = {}

_INSTALLED = re.compile(rf"{re.escape(os.path.dirname(os.__file__))}/|.*/(site|dist)-packages/")
# What code does is decided by these fields, not by its place
_CODE_FIELDS = "code consts names varnames freevars cellvars flags exceptiontable argcount posonlyargcount kwonlyargcount"
# Types that pickle refuses or stores by name, and their attributes
_CACHED = type(functools.cache(len))
_WRAPPERS = (CellType, staticmethod, classmethod, property, functools.cached_property, _CACHED)
_WRAPPED = ("cell_contents", "__wrapped__", "fget", "fset", "fdel", "func")


def register_function(function: TextFunction) -> str:
    """Keep a function for this process, and return its name with a hash of what it is.

    The hash covers code, constants and values of all that it reaches: defaults, variables outside, attributes, classes,
    and functions that it calls. Of installed packages it covers the names, and nothing of what is imported inside the
    function or read from files.

    Raises:
        UsageError: it cannot be called about a text, or it reaches a value that cannot be hashed (a lock, an open file).
    """
    qualified = getattr(function, "__qualname__", type(function).__qualname__)
    try:
        signature(function).bind("", **query_argument(function, None))
    except (TypeError, ValueError) as error:
        problem = f"model={qualified} cannot be called as {qualified}(text), or with query=QUERY"
        raise UsageError(f"{problem} ({error}): give its other parameters defaults") from error
    try:
        name = f"{qualified}@{_hash_value(function)[:8]}"
    except Exception as error:  # objects of any library
        problem = f"model={qualified} reaches a value that cannot be hashed"
        raise UsageError(f"{problem} ({error}): make it inside the function") from error
    _registered[name] = function
    return name


def registered_function(name: str | None) -> TextFunction:
    """Return a function by the name that `register_function` gave to it.

    Raises:
        UsageError: this process has no such function.
    """
    if name not in _registered:
        raise UsageError(
            f"model.function={name} is not in this process: call longsumbench.run(model=FUNCTION) where it is defined"
        )
    return _registered[name]


def query_argument(function: TextFunction, query: str | None) -> dict[str, str | None]:
    """Return the argument `query` if a function has a parameter of that name."""
    return {"query": query} if "query" in signature(function).parameters else {}


class _Hasher(NumpyHasher):
    """Hashes values as pickle stores them; functions and classes that are not installed by what they reach."""

    # joblib sorts dictionaries, but what a function does may depend on their order
    _batch_setitems = pickle._Pickler._batch_setitems  # type: ignore[attr-defined]

    def __init__(self) -> None:
        super().__init__("sha1")
        self.reached: list[Any] = []  # functions and classes

    def save(self, value: object) -> None:
        if isinstance(value, MethodType):  # joblib takes its name only
            value = [value.__func__, value.__self__]
        super().save(value)

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, FunctionType | type) and not _is_stored_by_name(value):
            self.reached.append(value)
            return str, (value.__qualname__, len(self.reached))
        content = _list_content(value)
        return NotImplemented if content is None else (str, (type(value).__name__,), content)


def _hash_value(value: object) -> str:
    """Return a hash of a value that is the same in other processes, and for code in another place."""
    hasher = _Hasher()
    hasher.dump(value)
    for code in hasher.reached:  # it grows; recursion would be too deep
        hasher.dump(_list_code(code))
    return str(hasher.hash(None))


def _is_stored_by_name(value: Any) -> bool:
    """Return True for functions and classes of installed packages, but not for those that a function there makes."""
    if not _is_installed(value.__module__):
        return False
    try:
        return attrgetter(value.__qualname__)(sys.modules[value.__module__]) is value
    except AttributeError:
        return False


def _is_installed(module: str) -> bool:
    """Return True for modules of Python and of installed packages."""
    path = getattr(sys.modules.get(module), "__file__", None)
    return bool(_INSTALLED.match(path)) if path else module in sys.stdlib_module_names


def _list_code(value: Any) -> list[Any]:
    """Return what a function or a class consists of."""
    if isinstance(value, type):
        members = []
        for name, member in vars(value).items():
            if callable(member) or not name.startswith(("__", "_abc_impl")):
                members.append((name, member))
        return [type(value), value.__bases__, members]
    names = "code defaults kwdefaults closure dict"
    parts = [getattr(value, f"__{name}__") for name in names.split()]
    return [*parts, _find_globals(value)]


def _find_globals(function: FunctionType) -> list[tuple[str, Any]]:
    """Return the variables that code names outside it, also in modules that are not installed."""
    names = _names_in(function.__code__, "LOAD_GLOBAL", "LOAD_NAME")
    attributes = _names_in(function.__code__, "LOAD_ATTR", "LOAD_METHOD")
    scopes = [(function.__globals__, names)]
    variables: list[tuple[str, Any]] = []
    modules = set()
    for scope, searched in scopes:  # it grows
        for name in sorted(searched & scope.keys()):
            value = scope[name]
            variables.append((name, value))
            is_own = isinstance(value, ModuleType) and not _is_installed(value.__name__)
            if is_own and value not in modules:
                modules.add(value)
                scopes.append((vars(value), attributes))
    return variables


def _names_in(code: CodeType, *operations: str) -> set[str]:
    """Return the names that some operations of code have, also in the functions inside it."""
    names = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname in operations:
            names.add(instruction.argval)
        elif isinstance(instruction.argval, CodeType):
            names |= _names_in(instruction.argval, *operations)
    return names


def _list_content(value: Any) -> list[Any] | None:
    """Return what decides a value that pickle refuses, or stores in another way in each process."""
    if isinstance(value, CodeType):
        return [getattr(value, f"co_{name}") for name in _CODE_FIELDS.split()]
    if isinstance(value, set | frozenset):
        return [type(value), sorted(map(_hash_value, value))]
    if isinstance(value, ModuleType):
        return [value.__name__]
    if isinstance(value, _WRAPPERS):
        return [getattr(value, name, None) for name in _WRAPPED]
    torch = sys.modules.get("torch")
    if torch and isinstance(value, torch.Tensor):
        numbers = value.detach().cpu().flatten()
        return [value.dtype, value.shape, numbers.view(torch.uint8).numpy()]
    return None
