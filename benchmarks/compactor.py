"""Compacts a session without a model.

    python benchmarks/compactor.py last|instructions WORDS FILE

`last` keeps the last words. `instructions` keeps what users wrote, from the end until there are enough words. FILE is a
session as `model=command` gives it: a turn begins with its role.
"""

import re
import sys
from pathlib import Path

_ROLE = re.compile(r"(?:system|developer|user|assistant|tool)", re.IGNORECASE)


def keep_last(text: str, words: int) -> str:
    """Return the last words of a text."""
    return " ".join(text.split()[-words:])


def keep_instructions(text: str, words: int) -> str:
    """Return the last paragraphs of users, in the order of the text."""
    role = ""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text):
        first, _, rest = paragraph.partition("\n")
        if _ROLE.fullmatch(first.strip()):
            role, paragraph = first.strip().lower(), rest
        if role == "user" and paragraph.strip():
            paragraphs.append(paragraph.strip())
    last_paragraphs: list[str] = []
    for paragraph in reversed(paragraphs):
        words -= len(paragraph.split())
        if words < 0:
            break
        last_paragraphs.insert(0, paragraph)
    return "\n".join(last_paragraphs)


if __name__ == "__main__":
    method, number, file = sys.argv[1:]
    compact = {"last": keep_last, "instructions": keep_instructions}[method]
    print(compact(Path(file).read_text(encoding="utf-8"), int(number)))
