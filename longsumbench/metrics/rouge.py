"""ROUGE-1, -2, -L and -Lsum as one metric: the suite's currency."""

from typing import ClassVar

from longsumbench.api.config import Scoring
from longsumbench.api.documents import Example
from longsumbench.api.metric import Metric
from longsumbench.rouge.scorer import ROUGE_TYPES, RougeScorer
from longsumbench.rouge.signature import signature
from longsumbench.sentences import split_summary


class Rouge(Metric):
    """ROUGE over the sentences of the references as they were read and of the prediction as the suite splits it.

    Args:
        scoring: the mode, the tokenizer, how words are stemmed, and what several references count for.
    """

    name: ClassVar[str] = "rouge"
    columns: ClassVar[tuple[str, ...]] = tuple(f"{kind}_{part}" for kind in ROUGE_TYPES for part in "prf")

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        self._rouge = RougeScorer(
            scoring.mode, scoring.stem, scoring.tokenizer, wordnet=scoring.wordnet, references=scoring.references
        )

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `rouge1_p` … `rougeLsum_f` → 0–1."""
        scores = self._rouge.score(split_summary(prediction), example.references)
        return {f"{kind}_{part}": value for kind in ROUGE_TYPES for part, value in scores[kind]._asdict().items()}

    def can_score(self, example: Example) -> bool:
        """Return whether any reference holds a word; with `score.empty_references=zero`, whether there is one."""
        if self.scoring.empty_references == "zero":
            return bool(example.references)
        return any(self._rouge.has_words(reference) for reference in example.references)

    def signature(self, n: int) -> str:
        """Describe how a mean over `n` examples is computed."""
        return signature(self._rouge, n, zero_for_empty=self.scoring.empty_references == "zero")
