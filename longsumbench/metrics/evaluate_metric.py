"""The suite's ROUGE as a metric of the library `evaluate`: the same numbers from plain strings, without the hub.

metric = RougeMetric()
metric.compute(predictions=["…"], references=["…"])      # or references=[["…", "…"]]
"""

from collections.abc import Sequence
from typing import Any

import datasets
import evaluate

from longsumbench.core import Document, Example, Scoring
from longsumbench.metrics.aggregate import MEAN_RESAMPLES
from longsumbench.metrics.evaluate import evaluate as score_texts
from longsumbench.metrics.rouge import Rouge
from longsumbench.sentences import split_summary

_ROUGE_DESCRIPTION = """ROUGE-1, -2, -L and -Lsum with precision, recall and F1, as longsumbench reports them.

Both sides are split into sentences by the suite's splitter. Values are 0–100; `rouge1` is F1, `rouge1_p` and `rouge1_r`
precision and recall, `rouge1_lo` and `rouge1_hi` the 95 % interval of F1; the same for the other types.
"""
_UNREAD = Document(None, ())  # ROUGE does not use the source


class RougeMetric(evaluate.Metric):
    """ROUGE as an `evaluate.Metric`; works with `compute`, `add_batch` and `evaluate.combine`."""

    def _info(self) -> evaluate.MetricInfo:
        text = datasets.Value("string")
        single = datasets.Features({"predictions": text, "references": text})
        several = datasets.Features({"predictions": text, "references": datasets.Sequence(text)})
        return evaluate.MetricInfo(
            description=_ROUGE_DESCRIPTION,
            citation="",
            inputs_description="predictions: list of str; references: list of str, or of lists of str.",
            features=[single, several],
        )

    def _compute(
        self,
        predictions: Sequence[str],
        references: Sequence[str | Sequence[str]],
        stem: bool = True,
        resamples: int = MEAN_RESAMPLES,
        mode: str = "google",
        tokenizer: str = "default",
        wordnet: str | None = None,
    ) -> dict[str, Any]:
        metric = Rouge(Scoring(mode, stem, wordnet, tokenizer, resamples=resamples))
        lists = ([texts] if isinstance(texts, str) else texts for texts in references)
        examples = [
            Example(f"{number:012}", None, None, (_UNREAD,), tuple(map(split_summary, texts)))
            for number, texts in enumerate(lists)
        ]
        scored = score_texts([predictions], examples, [metric], metric.scoring)
        values: dict[str, Any] = {}
        for kind, score in scored.scores.items():
            values |= {kind: score.f, f"{kind}_p": score.p, f"{kind}_r": score.r}
            values |= {f"{kind}_lo": score.f_lo, f"{kind}_hi": score.f_hi}
        values["signature"] = scored.signature
        values["empty_references"] = [int(name) for name in scored.empty_references]
        return values
