"""Semantic coherence: how probably each sentence of a summary follows the previous one (PageSum, Eq. 12)."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from longsumbench import sentences
from longsumbench.core import Example, Metric, Scoring
from longsumbench.metrics.support import Classifier
from longsumbench.modeling.checkpoints import reading_checkpoint
from longsumbench.modeling.pretrained import Pretrained
from longsumbench.sentences import split_summary

_MODEL_SETTING = "score.coherence_model"
# Longer than a BERT reads: some damaged weights show only in use
_TEST_PAIR = "a sentence", "another one " * 300
_IS_NEXT = 0  # BERT's label for a sentence that follows


class Coherence(Metric):
    """The mean probability that a sentence of the summary follows the previous one (PageSum, Eq. 12).

    The probability comes from a BERT trained on next-sentence prediction, `score.coherence_model`. The paper uses
    bert-large-uncased. The metric does not apply to a summary of fewer than two sentences. If a pair is too long for
    the model, the longer sentence is cut first.
    """

    needs_source: ClassVar[bool] = False
    name: ClassVar[str] = "coherence"
    columns: ClassVar[tuple[str, ...]] = (name,)
    setting: ClassVar[str] = _MODEL_SETTING  # names the model in messages

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        self._loaded: Classifier | None = None

    def check(self) -> None:
        """Load the model and score a long pair."""
        with reading_checkpoint(self._model.shown_as):
            self._probabilities([_TEST_PAIR])

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `coherence` → 0–1 or NaN."""
        probabilities = self._probabilities(list(pairwise(split_summary(prediction))))
        return {self.name: float(np.mean(probabilities)) if probabilities else np.nan}

    def signature(self, n: int) -> str:
        """Name the metric, its version, the model and the sentence splitter."""
        model = self._model.signature()
        return f"{self.name}:{self.version}|model:{model}|sentences:{sentences.SPLITTER_NAME}"

    @cached_property
    def _model(self) -> Pretrained:
        return Pretrained.find(self.scoring.coherence_model, self.setting)

    def _probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return for each pair the probability that the second sentence follows the first."""
        if self._loaded is None:
            from transformers import AutoModelForNextSentencePrediction

            from longsumbench.modeling.nn.device import choose_device

            kind = AutoModelForNextSentencePrediction
            tokenizer, network = self._model.network_with_tokenizer(kind)
            longest = min(tokenizer.model_max_length, network.config.max_position_embeddings)
            network = network.to(choose_device(self.scoring.device)).eval()
            self._loaded = Classifier(tokenizer, network, _IS_NEXT, longest)
        return self._loaded.probabilities(pairs, self._model.shown_as)
