"""ROUGE-1, -2, -L and -Lsum as one metric."""

from typing import ClassVar

from longsumbench.core import Example, Metric, Scoring
from longsumbench.rouge.scorer import ROUGE_TYPES, RougeScorer, signature
from longsumbench.sentences import split_summary


class Rouge(Metric):
    """ROUGE of a prediction, split into sentences by the suite, against the corpus's reference sentences."""

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
        """Return True if a reference has a word; with `score.empty_references=zero`, if there is a reference."""
        if self.scoring.empty_references == "zero":
            return bool(example.references)
        return any(self._rouge.has_words(reference) for reference in example.references)

    def signature(self, n: int) -> str:
        """Describe how a mean over `n` examples is computed."""
        return signature(self._rouge, n, zero_for_empty=self.scoring.empty_references == "zero")
