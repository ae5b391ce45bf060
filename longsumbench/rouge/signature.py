"""The signature of a ROUGE score: all that must agree before two numbers may stand in one column."""

from longsumbench import sentences
from longsumbench.rouge.google import implementation

SCORING_VERSION = 1  # changes only when scores do


def signature(stem: bool, n: int, mode: str = "google") -> str:
    """Describe in one string how a mean ROUGE score was computed.

    Args:
        stem: whether words were stemmed.
        n: the examples in the mean.
        mode: whose ROUGE it equals.
    """
    parts = {
        "rouge": implementation(),
        "mode": mode,
        "stemmer": "porter" if stem else "none",
        "tokenizer": "default",
        "sentences": sentences.NAME,
        "L": "sentence",
        "Lsum": "union",
        "truncation": "none",
        "references": "best-f",
        "n": str(n),
        "v": str(SCORING_VERSION),
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())
