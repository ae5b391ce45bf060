"""ROUGE-1, -2, -L and -Lsum as one metric."""

from collections.abc import Sequence
from itertools import chain

from longsumbench.core import Example, Metric, Scoring, Sentences, word_pattern
from longsumbench.core.versions import SCORING_VERSION
from longsumbench.rouge.scorer import IMPLEMENTATION, ROUGE_TYPES, SuiteScorer
from longsumbench.sentences import RULE_NAMES, split_for_rouge


class Rouge(Metric):
    """ROUGE of a prediction against its references, both split into sentences as `score.sentences` says.

    Attributes:
        splitting: name of the sentence splitter, for the signature.
    """

    needs_source = False
    name = "rouge"
    columns = tuple(
        f"{rouge_type}_{statistic}" for rouge_type in ROUGE_TYPES for statistic in "prf"
    )

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        self.splitting = RULE_NAMES[scoring.sentences]
        self._rouge = SuiteScorer(scoring)

    def score(self, prediction: str | Sentences, example: Example) -> dict[str, float]:
        """Score one prediction, a text or its sentences; `rouge1_p` … `rougeLsum_f` → 0–1."""
        rule = self.scoring.sentences
        references = [split_for_rouge(text, rule) for text in example.references]
        sentences = split_for_rouge(prediction, rule)
        if self.scoring.max_words:
            sentences = _first_words(sentences, self.scoring.max_words)
        scores = self._rouge.score(sentences, references)
        values = chain.from_iterable(scores[kind] for kind in ROUGE_TYPES)
        return dict(zip(self.columns, values, strict=True))

    def check(self) -> None:
        """Raise EnvironmentProblem if nltk's data are needed and missing."""
        split_for_rouge("", self.scoring.sentences)

    def can_score(self, example: Example) -> bool:
        """Return True if a reference has a word; with `score.empty_references=zero`, if there is a reference."""
        if self.scoring.empty_references == "zero":
            return bool(example.references)
        return any(self._rouge.has_words(reference) for reference in example.references)

    def signature(self, n: int) -> str:
        """Describe how a mean over `n` examples is computed."""
        scorer, limit = self._rouge, self.scoring.max_words
        parts: dict[str, object] = {
            "rouge": IMPLEMENTATION,
            "mode": scorer.mode,
            "stemmer": scorer.stemmer,
            "tokenizer": scorer.tokenizer,
            "sentences": self.splitting,
            "L": "sentence",
            "Lsum": "union",
            "truncation": f"outputs-{limit}-words" if limit else "none",
            "references": f"{scorer.references}-f",
            "n": n,
            "v": SCORING_VERSION,
        }
        if self.scoring.empty_references == "zero":
            parts["empty_references"] = "zero"
        return "|".join(f"{name}:{value}" for name, value in parts.items())


def _first_words(sentences: Sequence[str], limit: int) -> list[str]:
    """Return the first words of a text, as many as `limit`, between blanks as with `-l` of ROUGE-1.5.5."""
    pattern = word_pattern(" ".join(sentences))
    beginning: list[str] = []
    for sentence in sentences:
        starts = [word.start() for word in pattern.finditer(sentence)]
        if len(starts) > limit:
            return [*beginning, sentence[: starts[limit]]]
        beginning.append(sentence)
        limit -= len(starts)
    return beginning
