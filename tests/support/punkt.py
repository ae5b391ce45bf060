"""A tiny model for nltk's Punkt: it knows one abbreviation."""

from pathlib import Path

import nltk
import pytest


def write_punkt(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Write nltk's data punkt_tab with the abbreviation "dr", and let nltk read them."""
    data = folder / "tokenizers" / "punkt_tab" / "english"
    data.mkdir(parents=True)
    files = {
        "abbrev_types.txt": "dr\n",
        "collocations.tab": "",
        "sent_starters.txt": "",
        "ortho_context.tab": "",
    }
    for name, text in files.items():
        (data / name).write_text(text)
    read_punkt_from(folder, patch)


def read_punkt_from(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let nltk read its data from a folder, which may have none; nltk forgets what it read before."""
    patch.setattr(nltk.data, "path", [str(folder)])
    nltk.tokenize._get_punkt_tokenizer.cache_clear()
