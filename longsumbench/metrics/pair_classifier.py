"""A classifier of pairs of texts, which the metrics `coherence` and `support` ask."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from longsumbench.modeling.checkpoints import check_finite

_BATCH_SIZE = 32  # pairs


class Classifier(NamedTuple):
    """A loaded classifier.

    Attributes:
        label: index of the label whose probability counts.
        limit: most tokens of a pair.
        separator: what joins the texts of a pair; None if the tokenizer encodes them as a pair.
    """

    tokenizer: Any
    network: Any
    label: int
    limit: int
    separator: str | None = None

    def probabilities(self, pairs: Sequence[tuple[str, str]], shown_as: str) -> list[float]:
        """Return the probability of the label for each pair; of a pair that is too long, the longer text is cut first.

        `shown_as` is the classifier in messages.

        Raises:
            DataError: a probability is not finite.
        """
        import torch

        tokenizer, network, label, limit, separator = self
        options = {"truncation": True, "max_length": limit, "padding": True, "return_tensors": "pt"}
        # pairs of similar length are classified together, which saves padding
        order = np.argsort([-sum(map(len, pair)) for pair in pairs], kind="stable").tolist()
        values = np.zeros(len(pairs))
        for start in range(0, len(order), _BATCH_SIZE):
            batch = order[start : start + _BATCH_SIZE]
            texts: tuple[list[str], ...]
            if separator is None:
                texts = [pairs[place][0] for place in batch], [pairs[place][1] for place in batch]
            else:
                texts = ([separator.join(pairs[place]) for place in batch],)
            with torch.inference_mode():
                logits = network(**tokenizer(*texts, **options).to(network.device)).logits
            values[batch] = logits.double().softmax(dim=-1)[:, label].cpu().numpy()
        check_finite(values, shown_as)
        probabilities: list[float] = values.tolist()
        return probabilities
