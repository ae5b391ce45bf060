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
part, merge, carry, final, compress, pause, gist, look_up: |   # of readings with several steps, see docs/how-to/readings.md
  …

What a step needs and a prompt lacks is in conf/prompt/steps/. A paragraph with {written} is left out of `merge` and `carry`
as long as nothing is written. {facts} asks to keep planted facts (dataset.plant); without any, it is nothing.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml  # type: ignore[import-untyped] # not annotated

from longsumbench.conf import CONF, user_config_folder
from longsumbench.core import Message
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.files import digest, read_text

_PROMPT_PLACE = re.compile(r"\{(\w+)\}")
_OF_TEXT = {"document", "query", "words", "facts"}
_AFTER_OTHERS = {*_OF_TEXT, "written"}
_FILLED = {
    "system": {"query", "words", "facts"},
    "user": _OF_TEXT,
    "label": {"number"},
    "refine": _AFTER_OTHERS,
    "segment": _AFTER_OTHERS,
    "part": _OF_TEXT,
    "merge": _AFTER_OTHERS,
    "carry": _AFTER_OTHERS,
    "final": _OF_TEXT,
    "compress": _OF_TEXT,
    "pause": _OF_TEXT,
    "gist": _OF_TEXT,
    "look_up": _OF_TEXT,
}
# Texts that only some readings use.
_OF_READINGS = _FILLED.keys() - {"system", "user", "label"}
# What a text must have a place for.
_REQUIRED = {name: {"document"} for name in ("user", *_OF_READINGS)}
_REQUIRED |= {name: {"document", "written"} for name in ("refine", "segment", "carry")}
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
    # The messages of steps; see `conf/prompt/steps`. None: not used.
    part: str | None = None
    merge: str | None = None
    carry: str | None = None
    final: str | None = None
    compress: str | None = None
    pause: str | None = None
    gist: str | None = None
    look_up: str | None = None

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

    def only_for(self, *entries: str) -> "Prompt":
        """Return the prompt without the texts that a reading does not use; see `Reading.entry_for`."""
        unused: dict[str, Any] = dict.fromkeys(_OF_READINGS - {*entries})
        return replace(self, **unused)

    def with_steps(self, steps: Iterable[str]) -> "Prompt":
        """Return the prompt with the suite's texts for the steps that it lacks."""
        missing = {step for step in steps if getattr(self, step) is None}
        if not missing:
            return self
        texts: dict[str, str] = {}
        # The steps of a question are for all prompts if there are no others.
        for name in ("query",) if self.asks_query else ("query", "document"):
            texts |= _read_steps(name)
        if "{facts}" not in self.user:
            texts = {step: _NO_FACTS.sub("", text) for step, text in texts.items()}
        return replace(self, **{step: texts[step] for step in missing})

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
        that asks, "user" if the prompt has no other; some also have what was written before, `written`.
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
        question = texts.get(entry) or self.user
        if entry in ("merge", "carry") and not written:
            paragraphs = question.split("\n\n")
            question = "\n\n".join(text for text in paragraphs if "{written}" not in text)
        for role, text in (("system", self.system), ("user", question)):
            if not has_facts:
                text = _NO_FACTS.sub("", text)
            if text:
                messages.append({"role": role, "content": fill_places(text, values)})
        return messages


@cache
def _read_steps(name: str) -> dict[str, str]:
    texts: dict[str, str] = yaml.safe_load(read_text(CONF / "prompt" / "steps" / f"{name}.yaml"))
    return texts


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
