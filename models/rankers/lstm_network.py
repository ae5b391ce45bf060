"""The network of the LSTM paragraph ranker (Hierarchical Transformer §3.1).

Letters: B rows, U units (the title, then paragraphs), L unit tokens, P real paragraphs of the batch, p texts of similar
length, l tokens of the longest of them, D width.

Deviation: a text without a title has a vector of zeros for it; the paper has no such texts.
Choice, where the paper is silent: title and paragraphs share word embeddings, which are as wide as the LSTMs and start
as N(0, 1); the features of Eq. 4 have the same width; the linear layers have biases.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

from longsumbench.modeling.collate import IGNORED, UnitCollator


class LstmRankerConfig(PreTrainedConfig):
    """The network's sizes."""

    model_type = "lstm_ranker"

    vocab_size: int = 32_000
    d_model: int = 256
    dropout: float = 0.2


@dataclass
class RankerOutput(ModelOutput):
    """Output of `LstmRankerModel`."""

    loss: Tensor | None = None  # binary cross-entropy in nats per paragraph, if labels are given
    # [B, U], Eq. 6 before its sigmoid; −∞ for the title and for absent paragraphs.
    logits: Tensor | None = None


class LstmRankerModel(PreTrainedModel):
    """Two LSTMs; the pooled title is joined to every state of a paragraph (Hierarchical Transformer, Eqs. 1–6).

    A paragraph's score depends only on its title and itself. Absent paragraphs are skipped.
    """

    config_class = LstmRankerConfig
    base_model_prefix = "ranker"
    main_input_name = "input_ids"

    def __init__(self, config: LstmRankerConfig) -> None:
        super().__init__(config)
        width = config.d_model
        self.embeddings = nn.Embedding(config.vocab_size, width)
        self.title_lstm = nn.LSTM(width, width, batch_first=True)
        self.paragraph_lstm = nn.LSTM(width, width, batch_first=True)
        self.features = nn.Linear(2 * width, width)  # W1
        self.score = nn.Linear(width, 1)  # W2
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        unit_mask: Tensor,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> RankerOutput:
        """Score every paragraph.

        Args:
            input_ids: [B, U, L]; unit 0 is the title.
            unit_mask: [B, U, L], True where a token is real; a unit without real tokens is absent.
            labels: [B, U], 0–1; -100 for the title and for absent paragraphs.
            num_items_in_batch: divisor of the summed losses; None: the number of paragraphs with labels.
            **_: not used; the trainer passes more arguments.
        """
        lengths = unit_mask.sum(-1)  # [B, U]
        real = lengths > 0
        real[:, 0] = False
        # Real paragraphs of all rows are scored together; absent ones cost nothing.
        logits = torch.full(real.shape, -torch.inf, device=input_ids.device)
        if real.any():
            titles = self._titles(input_ids[:, 0], lengths[:, 0])  # [B, D]
            title_of_each = titles[real.nonzero()[:, 0]]
            logits[real] = self._scores(input_ids[real], lengths[real], title_of_each)
        loss = None
        if labels is not None:
            is_labelled = labels.ne(IGNORED) & real
            sums = F.binary_cross_entropy_with_logits(
                logits[is_labelled], labels[is_labelled], reduction="sum"
            )
            if num_items_in_batch is None:
                num_items_in_batch = is_labelled.sum().clamp(min=1)
            loss = sums / num_items_in_batch
        return RankerOutput(loss=loss, logits=logits)

    def _titles(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Encode and pool titles (Eqs. 1, 3): [B, L] → [B, D]; zeros for an absent title."""
        pooled = torch.zeros(len(ids), self.config.d_model, device=ids.device)
        for group, mask in similar_length_groups(lengths):
            states, _ = self.title_lstm(self.embeddings(ids[group, : mask.shape[1]]))
            pooled[group] = _largest(states, mask)
        return pooled

    def _scores(self, ids: Tensor, lengths: Tensor, titles: Tensor) -> Tensor:
        """Encode and score paragraphs (Eqs. 2, 4–6): [P, L], the title of each [P, D] → [P]."""
        pooled = titles.new_zeros(len(ids), self.config.d_model)
        for group, mask in similar_length_groups(lengths):
            embedded = self.embeddings(ids[group, : mask.shape[1]])
            states, _ = self.paragraph_lstm(embedded)  # [p, l, D]
            joined = torch.cat([states, titles[group, None].expand_as(states)], -1)  # [p, l, 2D]
            pooled[group] = _largest(torch.tanh(self.features(self.dropout(joined))), mask)
        scores: Tensor = self.score(self.dropout(pooled))[:, 0]
        return scores


def similar_length_groups(lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield groups of texts in which none is more than twice as long as another, to reduce padding.

    A packed sequence needs no padding, but a training step on a CPU took twenty times as long with one. Lengths are
    [P], in tokens; empty texts are in no group. Yields the indices of p texts, and [p, l], True where a token is real.
    """
    groups: dict[int, list[int]] = {}
    for index, length in enumerate(lengths.tolist()):
        if length:
            groups.setdefault((length - 1).bit_length(), []).append(index)
    for group in groups.values():
        indices = torch.tensor(group, device=lengths.device)
        group_lengths = lengths[indices, None]
        yield indices, torch.arange(int(group_lengths.max()), device=lengths.device) < group_lengths


def _largest(states: Tensor, mask: Tensor) -> Tensor:
    """Pool the states of each text by their maximum over its real tokens: [p, l, D] → [p, D]."""
    return states.masked_fill(~mask[..., None], -torch.inf).amax(1)


@dataclass(frozen=True)
class ParagraphCollator(UnitCollator):
    """As UnitCollator, except: labels are one number per unit, [B, U], -100 for the title and absent paragraphs."""

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch."""
        batch = super().__call__(
            [{"units": item["units"], "unit_documents": (), "labels": ()} for item in rows]
        )
        del batch["unit_documents"]
        labels = torch.full(batch["unit_mask"].shape[:2], float(IGNORED))
        for row_labels, item in zip(labels, rows, strict=True):
            row_labels[1 : len(item["labels"]) + 1] = torch.as_tensor(item["labels"])
        return {**batch, "labels": labels}
