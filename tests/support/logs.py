"""What the suite logs."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Listener(logging.Handler):
    def __init__(self, listen: Callable[[str], object]) -> None:
        super().__init__()
        self._listen = listen

    def emit(self, record: logging.LogRecord) -> None:
        self._listen(record.getMessage())


@contextmanager
def listening(listen: Callable[[str], object]) -> Iterator[None]:
    """Call a function with each line that the suite logs."""
    logger, listener = logging.getLogger("longsumbench"), _Listener(listen)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(listener)
    try:
        yield
    finally:
        logger.removeHandler(listener)
        logger.setLevel(level)
