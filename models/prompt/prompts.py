"""Prompts: their texts in YAML files, and the chat messages that are made of them.

# conf/prompt/document.yaml
system: ""          # optional: the system's message
user: |             # the places {document}, {query}, {words}, {facts} are filled; {document} is required
  Summarize the text in about {words} words.

  {document}
label: "Document {number}:"   # optional: the line before each of several documents
refine: |           # of model.reading=refine: {written} is the summary of the parts before {document}
  …
segment: |          # of model.reading=segments on a server: {written} is the summary so far, which it continues
  …

{facts} asks to keep facts if the text has planted ones (dataset.plant); otherwise it is nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import yaml  # type: ignore[import-untyped] # not annotated

from longsumbench.conf import CONF, user_config_folder
from longsumbench.core import Message
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.files import digest, read_text

_PROMPT_PLACE = re.compile(r"\{(\w+)\}")
_FILLED = {
    "system": {"query", "words", "facts"},
    "user": {"document", "query", "words", "facts"},
    "label": {"number"},
    "refine": {"document", "query", "words", "facts", "written"},
    "segment": {"document", "query", "words", "facts", "written"},
}
# What a text must have a place for.
_REQUIRED = {
    "user": {"document"},
    "refine": {"document", "written"},
    "segment": {"document", "written"},
}
# Texts that only some readings use.
_OF_READINGS = {"refine", "segment"}
# Takes the place {facts} of a text with planted facts.
_KEEP_FACTS = (
    "Keep all decisions, amounts, numbers, names and dates, also what was denied or corrected."
)
# Without planted facts, the place goes with the blanks before it.
_NO_FACTS = re.compile(r"\s*\{facts\}")


@dataclass(frozen=True)
class Prompt:
    """The texts of a prompt, with places to fill."""

    user: str  # the message with the text to summarize
    system: str = ""  # the system's message; empty: none
    label: str = "Document {number}:"  # the line before each of several documents
    # The message with the next part of a text, and the summary of the parts before; None: not used.
    refine: str | None = None
    # The message with the best snippets, and the summary so far; None: not used.
    segment: str | None = None

    @property
    def hash(self) -> str:
        """Eight hexadecimal digits of the SHA-256 of the texts."""
        return digest(self.texts_in_use())[:8]

    @property
    def asks_query(self) -> bool:
        """True if the prompt has a place for the query."""
        return any("{query}" in text for text in self.texts_in_use().values())

    def texts_in_use(self) -> dict[str, str]:
        """Return the texts by their names."""
        return {name: text for name, text in asdict(self).items() if text is not None}

    def only_for(self, entry: str) -> "Prompt":
        """Return the prompt without the texts that a reading does not use; see `Reading.entry_for`."""
        unused: dict[str, Any] = dict.fromkeys(_OF_READINGS - {entry})
        return replace(self, **unused)

    def messages(
        self,
        document: str,
        query: str | None,
        words: int,
        entry: str = "user",
        written: str = "",
        has_facts: bool = False,
    ) -> list[Message]:
        """Return the messages that ask for a summary of a text.

        Without a query, its place is empty; with `has_facts`, {facts} asks to keep the text's facts. `entry` is the text
        that asks: "user", "refine" or "segment"; the last two also have the summary so far, `written`.
        """
        values = {
            "document": document,
            "query": query or "",
            "words": str(words),
            "written": written,
            "facts": _KEEP_FACTS,
        }
        messages: list[Message] = []
        texts = self.texts_in_use()
        for role, text in (("system", self.system), ("user", texts[entry])):
            if not has_facts:
                text = _NO_FACTS.sub("", text)
            if text:
                messages.append({"role": role, "content": fill_places(text, values)})
        return messages


def fill_places(template: str, values: Mapping[str, str]) -> str:
    """Replace the places `{name}` of a template; other braces, also those in the values, stay."""
    return _PROMPT_PLACE.sub(lambda place: values.get(place[1], place[0]), template)


def _prompt_file(name: str) -> Path:
    """Return the file of a prompt: one in `prompt/` of the suite's or the user's configuration folder, or a path."""
    folders = (CONF / "prompt", user_config_folder() / "prompt")
    names: set[str] = set()
    for folder in folders:
        files = {path.stem: path for path in folder.glob("*.yaml")}
        if name in files:
            return files[name]
        names.update(files)
    path = Path(name).expanduser()
    if not path.is_file():
        known = sorted(names)
        raise UsageError(
            f"model.prompt={name} is no file{did_you_mean(name, known)}; prompts: {', '.join(known)}"
        )
    return path


def read_prompt(name: str) -> Prompt:
    """Read a prompt by its name or the path of its file.

    Raises:
        UsageError: the file cannot be read, is no prompt, has no place for the document, or an unknown place; the
            message names the file.
    """
    path = _prompt_file(name)
    try:
        content: Any = yaml.safe_load(read_text(path))
        unknown = content.keys() - _FILLED.keys() if isinstance(content, dict) else ()
        if unknown:
            raise UsageError(
                f"unknown entry '{min(map(str, unknown))}'; a prompt has: {', '.join(_FILLED)}"
            )
        prompt = msgspec.convert(content, Prompt)
        _check_places(prompt)
    except (ValueError, yaml.YAMLError, UsageError) as error:  # msgspec's errors are ValueErrors
        problem = " ".join(str(error).split())
        raise UsageError(
            f"{path} is not a prompt: {problem}; correct the file, or choose another model.prompt"
        ) from error
    return prompt


def _check_places(prompt: Prompt) -> None:
    for entry, text in prompt.texts_in_use().items():
        places = set(_PROMPT_PLACE.findall(text))
        missing = _REQUIRED.get(entry, set()) - places
        if missing:
            raise UsageError(f"its text '{entry}' has no place {{{min(missing)}}}")
        unknown = places - _FILLED[entry]
        if unknown:
            known = ", ".join(f"{{{name}}}" for name in sorted(_FILLED[entry]))
            raise UsageError(
                f"its text '{entry}' has the unknown place {{{min(unknown)}}}; known: {known}"
            )
