"""The signature of a ROUGE score: all that must agree before two numbers may stand in one column."""

from longsumbench import sentences
from longsumbench.rouge.scorer import RougeScorer

SCORING_VERSION = 1  # changes only when scores do
IMPLEMENTATION = f"longsumbench-{SCORING_VERSION}"


def signature(
    scorer: RougeScorer, n: int, splitting: str = sentences.SPLITTER_NAME, zero_for_empty: bool = False
) -> str:
    """Describe in one string how a mean ROUGE score was computed.

    Args:
        scorer: what scored.
        n: the examples in the mean.
        splitting: who found the sentences.
        zero_for_empty: whether an example whose references hold no word scored 0; False: it is not in the mean.
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
