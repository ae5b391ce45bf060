"""The signature of a ROUGE score: everything that must agree before two numbers are compared."""

from longsumbench import sentences
from longsumbench.rouge.scorer import RougeScorer

SCORING_VERSION = 1  # increases when scores change
IMPLEMENTATION = f"longsumbench-{SCORING_VERSION}"


def signature(
    scorer: RougeScorer, n: int, splitting: str = sentences.SPLITTER_NAME, zero_for_empty: bool = False
) -> str:
    """Describe in one string how a mean ROUGE score was computed.

    Args:
        scorer: of the scores.
        n: number of examples in the mean.
        splitting: name of the sentence splitter.
        zero_for_empty: True if an example without words in its references scored 0; False if it was skipped.
    """
    parts = {
        "rouge": IMPLEMENTATION,
        "mode": scorer.mode,
        "stemmer": scorer.stemmer,
        "tokenizer": scorer.tokenizer,
        "sentences": splitting,
        "L": "sentence",
        "Lsum": "union",
        "truncation": "none",
        "references": f"{scorer.references}-f",
        "n": str(n),
        "v": str(SCORING_VERSION),
    }
    if zero_for_empty:
        parts["empty_references"] = "zero"
    return "|".join(f"{name}:{value}" for name, value in parts.items())
