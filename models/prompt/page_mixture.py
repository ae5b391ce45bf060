"""The mixture of the distributions of pages, which one summary is decoded from (PageSum, §3, Eq. 5).

PageSum mixes the decoder's hidden states of all pages; a language model's pages are mixed as distributions:

    log p(w) = logsumexp over pages of (log c_p + log p_p(w)),  Σ c = 1

A confidence c_p is the same for all pages, or grows as the page's distribution is surer: the softmax of −H(p_p).

Letters: R rows (pages of all examples), P pages of one example, K beams, L prompt tokens, T output tokens, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from torch import Tensor


def sureness(log_probabilities: Tensor, kind: str) -> Tensor:
    """Return what the confidences of pages are the softmax of: […, V] → […].

    `kind` is "uniform" (0 for all) or "entropy" (minus the entropy, in nats).
    """
    if kind == "uniform":
        return log_probabilities.new_zeros(log_probabilities.shape[:-1])
    probabilities = log_probabilities.exp()
    # An impossible token adds nothing: 0 · log 0 = 0.
    return torch.xlogy(probabilities, probabilities).sum(-1)


def log_page_weights(log_probabilities: Tensor, kind: str) -> Tensor:
    """Return the logarithms of the pages' weights, whose sum over pages is 1: [P, …, V] → [P, …]."""
    return sureness(log_probabilities, kind).log_softmax(0)


def mix_pages(log_probabilities: Tensor, kind: str) -> Tensor:
    """Return the logarithms of the mixture of pages: [P, …, V] → […, V]."""
    weights = log_page_weights(log_probabilities, kind)
    return torch.logsumexp(weights.unsqueeze(-1) + log_probabilities, 0)


def page_weights(
    network: Any, prompts: Sequence[list[int]], ids: Sequence[int], kind: str
) -> NDArray[np.float32]:
    """Return the weight of each page at each token of an answer, [P, T], from one more pass over each page."""
    of_pages = []
    for prompt in prompts:
        row = torch.tensor([[*prompt, *ids[:-1]]], device=network.device)
        logits = network(input_ids=row, logits_to_keep=max(1, len(ids))).logits[0]  # [T, V]
        of_pages.append(sureness(logits.float().log_softmax(-1), kind))
    weights: NDArray[np.float32] = torch.stack(of_pages).softmax(0).cpu().numpy()
    return weights[:, : len(ids)]


class PageMixture(transformers.LogitsProcessor):
    """Gives all pages of an example the mixture of their distributions, so that all are continued with the same token.

    A search then makes the same choices for all pages of an example, because its rows have equal scores. An example
    with one page keeps its scores.
    """

    def __init__(
        self,
        num_pages: list[int],
        kind: str,
        processors: Sequence[transformers.LogitsProcessor],
        draws: bool = False,
    ) -> None:
        """Take the settings of a batch.

        Args:
            num_pages: of each example.
            kind: of the confidences.
            processors: of each example; they change its mixture.
            draws: the last processor's scores are those of a token to draw. `generate` would draw one for each page.
        """
        self.num_pages, self.kind = num_pages, kind
        self.processors, self.draws = processors, draws

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Change the scores of the next token: [R·K, L + T], [R·K, V] → [R·K, V]."""
        num_rows = sum(self.num_pages)
        beams = len(scores) // num_rows
        ids_of_examples = torch.split(input_ids.reshape(num_rows, beams, -1), self.num_pages)
        pages_of_examples = torch.split(scores.reshape(num_rows, beams, -1), self.num_pages)
        mixtures = []
        for ids, pages, processors in zip(
            ids_of_examples, pages_of_examples, self.processors, strict=True
        ):
            mixture = pages[0]
            if len(pages) > 1:
                mixture = mix_pages(pages.log_softmax(-1), self.kind)
            mixture = processors(ids[0], mixture)  # [K, V]
            if self.draws:
                mixture = _only(torch.multinomial(mixture.softmax(-1), 1), mixture)
            mixtures.append(mixture.expand(len(pages), -1, -1))
        return torch.cat(mixtures).flatten(0, 1)


def _only(tokens: Tensor, scores: Tensor) -> Tensor:
    """Forbid all but one token of each row: [K, 1], [K, V] → [K, V]."""
    return torch.full_like(scores, -torch.inf).scatter(-1, tokens, 0.0)
