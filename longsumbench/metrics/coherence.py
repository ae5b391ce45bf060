"""Semantic coherence: how probably each sentence of a summary follows the previous one (PageSum, Eq. 12)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from longsumbench import sentences
from longsumbench.core import Example, Metric, Scoring
from longsumbench.modeling.checkpoints import (
    check_finite,
    load_with_tokenizer,
    model_folder,
    model_signature,
    reading_checkpoint,
)
from longsumbench.sentences import split_summary

_MODEL_SETTING = "score.coherence_model"
_BATCH_SIZE = 32  # pairs of sentences
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
        self._loaded: tuple[Any, Any] | None = None

    def check(self) -> None:
        """Load the model and score a long pair."""
        with reading_checkpoint(self._option()):
            self._probabilities([_TEST_PAIR])

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `coherence` → 0–1 or NaN."""
        pairs = list(pairwise(split_summary(prediction)))
        probabilities: list[float] = []
        for start in range(0, len(pairs), _BATCH_SIZE):
            probabilities += self._probabilities(pairs[start : start + _BATCH_SIZE])
        return {self.name: float(np.mean(probabilities)) if probabilities else np.nan}

    def signature(self, n: int) -> str:
        """Name the metric, its version, the model and the sentence splitter."""
        model = model_signature(self.scoring.coherence_model, self.setting)
        return f"{self.name}:{self.version}|model:{model}|sentences:{sentences.SPLITTER_NAME}"

    def _option(self) -> str:
        return f"{self.setting}={model_folder(self.scoring.coherence_model, self.setting)}"

    def _probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return for each pair the probability that the second sentence follows the first."""
        import torch

        tokenizer, model = self._model()
        first, second = zip(*pairs, strict=True)
        longest = min(tokenizer.model_max_length, model.config.max_position_embeddings)
        texts = tokenizer(
            list(first),
            list(second),
            truncation=True,
            max_length=longest,
            padding=True,
            return_tensors="pt",
        )
        with torch.inference_mode():
            logits = model(**texts.to(model.device)).logits
        probabilities: list[float] = logits.double().softmax(dim=-1)[:, _IS_NEXT].tolist()
        check_finite(probabilities, f"{self.setting}={model.name_or_path}")
        return probabilities

    def _model(self) -> tuple[Any, Any]:
        if self._loaded is None:
            from transformers import AutoModelForNextSentencePrediction

            from longsumbench.modeling.nn.device import choose_device

            folder = model_folder(self.scoring.coherence_model, self.setting)
            tokenizer, model = load_with_tokenizer(
                AutoModelForNextSentencePrediction, folder, self._option()
            )
            self._loaded = tokenizer, model.to(choose_device(self.scoring.device)).eval()
        return self._loaded
