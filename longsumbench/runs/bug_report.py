"""Report an unexpected error in one line and write its traceback to a log."""

import os
import re
import time
import traceback

from longsumbench.cache.artifacts import cache_folder
from longsumbench.core import registry
from longsumbench.errors import BrokenPlugin, Bug, SuiteError, as_suite_error
from longsumbench.formatting import redact


def as_reported_error(error: Exception) -> SuiteError:
    """Return the error to show; for a bug or a broken plug-in, write a log and name it."""
    suite_error = as_suite_error(error)
    if suite_error is not None and not isinstance(suite_error, BrokenPlugin):
        return suite_error
    log_note = _log(error)
    if suite_error is not None:
        return BrokenPlugin(f"{suite_error}; {log_note}")
    plugin, is_inside = _find_plugin(error)
    if plugin and not is_inside:
        return BrokenPlugin(f"{plugin} {_describe_misfit(error)}; see CONTRIBUTING.md; {log_note}")
    reader = "the authors of that plug-in" if plugin else "the project"
    message = f"unexpected error in {plugin or 'longsumbench'}: {type(error).__name__}: {error}"
    return Bug(f"{message}; {log_note}; please report it, with that file, to {reader}")


def _log(error: Exception) -> str:
    """Write a traceback to the cache; return a clause that names the file."""
    text = redact("".join(traceback.format_exception(error)))
    folder = cache_folder() / "logs"
    log = folder / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{os.getpid()}.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"{text}\n")
    except (OSError, ValueError) as problem:
        return (
            f"its traceback, which cannot be written to {folder} ({problem}), is shown by --verbose"
        )
    return f"its traceback is in {log}"


def _find_plugin(error: Exception) -> tuple[str, bool]:
    """Return the plug-in of an error ("the plug-in of model 'mine' (package.module:Mine)"), or an empty text.

    The second value is True if the error is from its own code, False if its caller expects what it lacks.
    """
    # The modules that the error passed through
    modules = set()
    for frame, _ in traceback.walk_tb(error.__traceback__):
        modules.add(frame.f_globals.get("__name__", ""))
    is_misuse = isinstance(error, AttributeError | TypeError)
    message = f"{error} {getattr(error, 'obj', '')}" if is_misuse else ""
    for table in registry.REGISTRIES:
        for name, target in table.targets().items():
            module, _, attribute = target.partition(":")
            is_named = re.search(rf"\b{attribute}\b", message) is not None
            if name not in table.shipped() and (module in modules or is_named):
                return f"the plug-in of {table.kind} '{name}' ({target})", module in modules
    return "", False


def _describe_misfit(error: Exception) -> str:
    """Say what a plug-in lacks, or why its caller cannot use it."""
    lack = re.search(r"attribute '(\w+)'|abstract methods? (.+)", f"{error}")
    return f"lacks `{lack[1] or lack[2]}`" if lack else f"does not fit: {error}"
