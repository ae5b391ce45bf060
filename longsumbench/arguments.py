"""What users give to the public functions: checked here, so that a wrong argument is one line."""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, signature
from numbers import Integral
from typing import Any, ParamSpec, TypeVar, get_args

from longsumbench.errors import UsageError, suite_errors

_P = ParamSpec("_P")
_R = TypeVar("_R")


def public_function(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Check the arguments by their annotations, and raise each error that a user can fix as a SuiteError.

    An argument that is a sequence of text gets a list, also of a single text.
    """
    described = signature(function)

    @wraps(function)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            bound = described.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.__name__}: {error}") from None
        for name, value in bound.arguments.items():
            parameter = described.parameters[name]
            if get_args(parameter.annotation) == (str,):
                names = [value] if isinstance(value, str) else value
                bound.arguments[name] = as_list(names, name)
            is_several = parameter.kind is Parameter.VAR_POSITIONAL
            for item in value if is_several else [value]:
                _check_kind(item, parameter)
        with suite_errors():
            return function(*bound.args, **bound.kwargs)

    return checked


def _check_kind(value: object, parameter: Parameter) -> None:
    hint = parameter.annotation
    try:
        fits = isinstance(value, hint) or (isinstance(value, Integral) and isinstance(0, hint))
    except TypeError:  # Sequence[str] and the like
        return
    if not fits and hint is not bool:
        expected = getattr(hint, "__name__", hint)
        raise UsageError(f"{parameter.name}: expected {expected}, not {type(value).__name__}")


def as_list(values: Any, argument: str) -> list[Any]:
    """Return the items of a list, a Series, an array, a column or a generator.

    Raises:
        UsageError: it is a table, a dictionary, a single text or no collection with an order.
    """
    columns = getattr(values, "column_names", getattr(values, "columns", None))
    if columns is not None:
        names = ", ".join(map(str, columns))
        raise UsageError(f"{argument} is a table of {names}: give one column, as table['NAME']")
    items = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(items, str | bytes | set | Mapping) or not isinstance(items, Iterable):
        raise UsageError(
            f"{argument} must be a list, not {type(values).__name__}: put a single text into a list"
        )
    return list(items)


def as_texts(texts: Any, argument: str) -> Any:
    """Return a dictionary unchanged, a Series as label → text, and what `as_list` takes as a list.

    Raises:
        UsageError: as `as_list`; or a Series has a label twice.
    """
    if isinstance(texts, Mapping) and not hasattr(texts, "column_names"):
        return texts
    listed = as_list(texts, argument)
    labels = getattr(texts, "index", None)  # of a list, it is a method
    if labels is None or callable(labels):
        return listed
    if not labels.is_unique:
        twice = labels[labels.duplicated()].tolist()[0]
        raise UsageError(
            f"{argument} has the label {twice!r} twice: reset_index(drop=True) numbers"
        )
    return dict(zip(labels.tolist(), listed, strict=True))
