"""The fixture that runs a command."""

from support.commands import typed

__all__ = ["typed"]
