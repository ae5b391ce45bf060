"""BERTScore (Zhang et al. 2020), computed by the library `bert-score` (extra `bertscore`)."""

import math
from functools import cached_property
from importlib.metadata import version
from typing import Any

from longsumbench.core import Example, Metric, Scoring
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.modeling.checkpoints import check_finite, reading_checkpoint
from longsumbench.modeling.embeddings import num_positions
from longsumbench.modeling.pretrained import Pretrained

_OPTION, _LAYER_OPTION = "score.bertscore_model", "score.bertscore_layer"
# Longer than most encoders read: some damaged weights show only in use
_LONG = "a sentence " * 300


class BertScore(Metric):
    """F, precision and recall of BERTScore: similarity of the words of summary and reference in an encoder.

    There are no idf weights and no rescaling. The layer is `score.bertscore_layer`, or the library's choice for the
    name in `score.bertscore_model`. Of several references, the best value of each column counts, as in the library.
    Texts are cut at the encoder's maximum length.
    """

    needs_source = False
    name = "bertscore"
    columns = ("bertscore_f", "bertscore_p", "bertscore_r")

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        self._scorer: Any = None

    def check(self) -> None:
        """Load the model and compare a long text with itself."""
        _library()
        with reading_checkpoint(self._model.shown_as):
            self._similarities(_LONG, [_LONG])

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; each column → a mean of cosines, at most 1; NaN if all references are empty."""
        # the library fails at an empty text
        if not prediction.strip():
            return dict.fromkeys(self.columns, 0.0)
        references = stripped_references(example)
        if not references:
            return dict.fromkeys(self.columns, math.nan)
        precision, recall, f = self._similarities(prediction, references)
        return dict(zip(self.columns, (f, precision, recall), strict=True))

    def _similarities(self, prediction: str, references: list[str]) -> list[float]:
        parts = self._library_scorer().score([prediction], [references])
        values = [part.item() for part in parts]
        check_finite(values, self._model.shown_as)
        return values

    @cached_property
    def _model(self) -> Pretrained:
        return Pretrained.find(self.scoring.bertscore_model, _OPTION)

    def signature(self, n: int) -> str:
        """Name the metric, its version, the library's version, the model and the layer."""
        _library()
        parts = {
            self.name: self.version,
            "bert_score": version("bert-score"),
            "model": self._model.signature(),
            "layer": self._layer(),
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    def _library_scorer(self) -> Any:
        if self._scorer is None:
            from transformers import AutoModel

            from longsumbench.modeling.nn.device import choose_device

            bert_score, layer = _library(), self._layer()
            # for its checks; the library loads the model again without any
            _, network = self._model.network_with_tokenizer(AutoModel, may_lack="pooler")
            device = str(choose_device(self.scoring.device))
            with reading_checkpoint(self._model.shown_as):
                scorer = bert_score.BERTScorer(
                    model_type=str(self._model.folder), num_layers=layer, device=device
                )
            # a tokenizer without a limit has a number here that is too large for the library
            tokenizer = scorer._tokenizer
            tokenizer.model_max_length = min(tokenizer.model_max_length, num_positions(network))
            self._scorer = scorer
        return self._scorer

    def _layer(self) -> int:
        """Return the layer to compare.

        Raises:
            UsageError: the library knows none for the model, and the setting gives none, or one that does not exist.
        """
        from bert_score.utils import model2layers
        from transformers import AutoModel

        name = self.scoring.bertscore_model
        config = self._model.config(AutoModel)
        with reading_checkpoint(self._model.shown_as):
            num_layers = int(config.num_hidden_layers)
        layer = self.scoring.bertscore_layer or model2layers.get(name)
        if layer is None or layer > num_layers:
            problem = "is not in bert-score's table" if layer is None else f"has no layer {layer}"
            raise UsageError(f"{_OPTION}={name} {problem}: set {_LAYER_OPTION}=1 to {num_layers}")
        return int(layer)


def stripped_references(example: Example) -> list[str]:
    """Return the references of an example that are not blank, each as one line."""
    texts = (" ".join(reference).strip() for reference in example.references)
    return [text for text in texts if text]


def _library() -> Any:
    try:
        import bert_score
    except ImportError as error:
        raise EnvironmentProblem(
            f"the metric bertscore needs the package bert-score ({error}): pip install -e '.[bertscore]' in the clone"
        ) from error
    return bert_score
