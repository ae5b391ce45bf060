"""Report an unexpected error in one line and write its traceback to a log."""

import os
import time
import traceback

from longsumbench.cache.artifacts import cache_folder
from longsumbench.core import registry
from longsumbench.errors import BrokenPlugin, Bug, SuiteError, as_suite_error
from longsumbench.redaction import redact


def as_reported_error(error: Exception) -> SuiteError:
    """Return the error to show; for a bug or a broken plug-in, write a log and name it."""
    suite_error = as_suite_error(error)
    if suite_error is not None and not isinstance(suite_error, BrokenPlugin):
        return suite_error
    log_note = _log(error)
    if suite_error is not None:
        return BrokenPlugin(f"{suite_error}; {log_note}")
    plugin = _plugin_in(error)
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


def _plugin_in(error: Exception) -> str:
    """Return the plug-in in a traceback ("model 'mine' (package.module:Mine)"), or an empty text."""
    # The modules that the error passed through
    modules = set()
    for frame, _ in traceback.walk_tb(error.__traceback__):
        modules.add(frame.f_globals.get("__name__", ""))
    tables = (
        registry.systems,
        registry.corpora,
        registry.metrics,
        registry.rankers,
        registry.engines,
    )
    for table in tables:
        for name, target in table.targets().items():
            if name not in table.built_in and target.partition(":")[0] in modules:
                return f"the plug-in of {table.kind} '{name}' ({target})"
    return ""
