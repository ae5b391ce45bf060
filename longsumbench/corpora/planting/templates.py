"""The sentences that state planted facts, and the names and values that fill them: those of `templates.yaml`.

A template has one sentence, or two for different places ("first | second"). Its places:

    {name}         the subject: an invented name, the same in all sentences
    {reference}    what links two sentences ("K-4127"), the same in both
    {not:…}        a denial, in the template's own words
    others         the answer, drawn anew for each sentence; the last sentence has the one that is true

Each kind has templates for train and validation, and others for test, so no system can learn those of the test split.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

# Raise it if the same texts get other facts.
PLANTING_VERSION = 1
# Kinds whose first sentence is revoked by the second.
REVOKED_KINDS = ("correction", "revocation")
# Slots that are the same in all sentences.
SHARED_SLOTS = ("name", "reference")


@dataclass(frozen=True)
class Slot:
    """What fills a place of a template.

    Attributes:
        kind: of the `FactPart`.
        number: how many values there are.
        forms: how a value can be written.
        refused: what a text with planted facts must not have either.
    """

    kind: str
    number: int
    forms: tuple[str, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Templates:
    """The content of `templates.yaml`.

    Attributes:
        choices: name → what values are made of.
        slots: name → its values.
        registers: "prose", "meeting" or "session" → kind → "train" or "test" → templates.
    """

    choices: Mapping[str, str | tuple[str, ...]]
    slots: Mapping[str, Slot]
    registers: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]


@cache
def read_templates() -> Templates:
    """Return the templates."""
    content = (Path(__file__).parent / "templates.yaml").read_bytes()
    return msgspec.yaml.decode(content, type=Templates)
