"""A sample of a run's ROUGE, computed again by `rouge_score`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from longsumbench.core import Split
from longsumbench.metrics.aggregate import BOOTSTRAP_SEED
from longsumbench.metrics.rouge import Rouge
from longsumbench.rouge.scorer import ROUGE_TYPES

if TYPE_CHECKING:
    import pandas as pd

MOST_CHECKED = 20
_WORD_PAIRS = 100_000  # of all checked examples; rouge_score takes about half a microsecond for each
TOLERANCE = 1e-9  # of a score, 0–1


@dataclass(frozen=True)
class CrossCheck:
    """How many examples were checked, and the largest difference of a precision, recall or F1, 0–1, with its id."""

    examples: int
    largest_difference: float
    example: str


def check_rouge(rouge: Rouge, predictions: Sequence[str], split: Split, scores: "pd.DataFrame") -> CrossCheck | None:
    """Compare the scores of a random sample with `rouge_score`: 20 examples, of long ones fewer, at least one.

    The predictions are those of the split's first examples. None if `rouge_score` does not compute such scores.
    """
    scoring = rouge.scoring
    if (scoring.mode, scoring.tokenizer) != ("google", "default") or scoring.references == "jackknife" or scores.empty:
        return None
    from rouge_score.rouge_scorer import RougeScorer as Library  # imports nltk

    library = Library(ROUGE_TYPES, scoring.stem)
    scored = [place for place, name in zip(range(len(predictions)), split.ids, strict=False) if name in scores.index]
    checked: dict[str, float] = {}
    word_pairs = 0
    for place in np.random.default_rng(BOOTSTRAP_SEED).permutation(scored)[:MOST_CHECKED].tolist():
        example = split[place]
        sentences, references = rouge.split_sides(predictions[place], example)
        output, *targets = ("\n".join(" ".join(text.split()) for text in side) for side in (sentences, *references))
        word_pairs += len(output.split()) * sum(len(target.split()) for target in targets)
        if checked and word_pairs > _WORD_PAIRS:
            break
        expected = library.score_multi(targets, output)
        row = scores.loc[example.id, list(Rouge.columns)].to_numpy()
        checked[example.id] = float(np.abs(row - np.concatenate([expected[kind] for kind in ROUGE_TYPES])).max())
    worst = max(checked, key=checked.__getitem__)
    return CrossCheck(len(checked), checked[worst], worst)
