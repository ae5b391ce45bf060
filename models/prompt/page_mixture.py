"""The mixture of the distributions of pages, which one summary is decoded from (PageSum, §3, Eq. 5).

PageSum mixes the decoder's hidden states of all pages; a language model's pages are mixed as distributions:

    log p(w) = logsumexp over pages of (log c_p + log p_p(w)),  Σ c = 1

A confidence c_p is the same for all pages (uniform), grows as the page's distribution is surer (entropy: the softmax of
−H(p_p)), or is the softmax of a linear layer on the page's last hidden state (learned, as in PageSum).

Letters: E examples, R rows (pages of all examples), P pages of one example, K beams, L prompt tokens, T output tokens,
V vocabulary.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from safetensors.torch import load_model, save_model
from torch import Tensor, nn

# Returns what confidences are the softmax of, for log-probabilities that the network has just given: […, V] → […].
ConfidenceFunction: TypeAlias = Callable[[Tensor], Tensor]
# The name of the layer of learned confidences in a network.
_LAYER = "page_confidence"
_LAYER_FILE = "page_confidence.safetensors"
PAGE_WEIGHT = f"{_LAYER}.weight"


class LearnedConfidence:
    """A linear layer on the last hidden states of a network; it sees what the network computed last.

    At first all its weights are 0, so that pages have equal confidences.
    """

    def __init__(self, network: Any) -> None:
        self._states: Tensor | None = None
        output = network.get_output_embeddings()
        width, device = output.weight.shape[1], output.weight.device
        self.layer = nn.Linear(width, 1, bias=False, device=device)
        nn.init.zeros_(self.layer.weight)
        # As a part of the network, it is moved and trained with it.
        setattr(network, _LAYER, self.layer)
        output.register_forward_pre_hook(self._see)

    def _see(self, output: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        self._states = inputs[0]

    def __call__(self, log_probabilities: Tensor) -> Tensor:
        """Return what the confidences are the softmax of: [R, T, V] → [R, T]; log-probabilities count for nothing."""
        assert self._states is not None
        values: Tensor = self.layer(self._states.to(self.layer.weight.dtype)).squeeze(-1)
        return values.float()

    def save(self, folder: Path) -> None:
        """Write the layer into a folder."""
        save_model(self.layer, str(folder / _LAYER_FILE))

    def load(self, folder: Path) -> None:
        """Read the layer from a folder, if it is there."""
        if (folder / _LAYER_FILE).is_file():
            load_model(self.layer, str(folder / _LAYER_FILE))


def compute_confidence(log_probabilities: Tensor, kind: str) -> Tensor:
    """Return what the confidences of pages are the softmax of, unless they are learned: […, V] → […].

    `kind` is "uniform" (0 for all) or "entropy" (minus the entropy, in nats).
    """
    if kind == "uniform":
        return log_probabilities.new_zeros(log_probabilities.shape[:-1])
    probabilities = log_probabilities.exp()
    # An impossible token adds nothing: 0 · log 0 = 0.
    return torch.xlogy(probabilities, probabilities).sum(-1)


def mix_pages(log_probabilities: Tensor, sure: Tensor) -> Tensor:
    """Return the logarithms of the mixture of pages: [P, …, V], what their weights are the softmax of [P, …] → […, V]."""
    weights = sure.log_softmax(0)
    return torch.logsumexp(weights.unsqueeze(-1) + log_probabilities, 0)


def page_weights(
    network: Any,
    prompts: Sequence[list[int]],
    ids: Sequence[int],
    confidence_function: ConfidenceFunction,
) -> NDArray[np.float32]:
    """Return the weight of each page at each token of an answer, [P, T], from one more pass over each page."""
    of_pages = []
    for prompt in prompts:
        row = torch.tensor([[*prompt, *ids[:-1]]], device=network.device)
        logits = network(input_ids=row, logits_to_keep=max(1, len(ids))).logits  # [1, T, V]
        of_pages.append(confidence_function(logits.float().log_softmax(-1))[0])
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
        confidence_function: ConfidenceFunction,
        processor: transformers.LogitsProcessor,
        device: torch.device,
        draws: bool = False,
    ) -> None:
        """Take the settings of a batch.

        Args:
            num_pages: of each example.
            confidence_function: what the confidences are the softmax of.
            processor: changes the mixtures, [E·K, V], of all examples at once.
            device: of the scores.
            draws: the processor's scores are those of a token to draw. `generate` would draw one for each page.
        """
        self.num_pages, self.confidence_function = num_pages, confidence_function
        self.processor, self.draws = processor, draws
        # On the device once, so that no token waits for it.
        self.repeats = torch.tensor(num_pages, device=device)  # [E]
        self.first = self.repeats.cumsum(0) - self.repeats  # the row of each example's first page

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Change the scores of the next token: [R·K, L + T], [R·K, V] → [R·K, V]."""
        num_rows = sum(self.num_pages)
        beams = len(scores) // num_rows
        ids = input_ids.reshape(num_rows, beams, -1)[self.first].flatten(0, 1)
        mixture: Tensor = self.processor(ids, self._mixtures(scores, num_rows))  # [E·K, V]
        if self.draws:
            mixture = _only(torch.multinomial(mixture.softmax(-1), 1), mixture)
        of_examples = mixture.reshape(len(self.num_pages), beams, -1)
        of_rows = of_examples.repeat_interleave(self.repeats, 0, output_size=num_rows)
        return of_rows.flatten(0, 1)

    def _mixtures(self, scores: Tensor, num_rows: int) -> Tensor:
        """Return the mixture of each example's pages; the scores of a single page are kept: [R·K, V] → [E·K, V]."""
        if max(self.num_pages) == 1:
            return scores
        sure = self.confidence_function(scores.log_softmax(-1)[:, None])[:, -1]  # [R·K]
        pages_of_examples = torch.split(
            scores.reshape(num_rows, -1, scores.shape[-1]), self.num_pages
        )
        sure_of_examples = torch.split(sure.reshape(num_rows, -1), self.num_pages)
        mixtures = []
        for pages, weights in zip(pages_of_examples, sure_of_examples, strict=True):
            is_one = len(pages) == 1
            mixtures.append(pages[0] if is_one else mix_pages(pages.log_softmax(-1), weights))
        return torch.cat(mixtures)


def _only(tokens: Tensor, scores: Tensor) -> Tensor:
    """Forbid all but one token of each row: [K, 1], [K, V] → [K, V]."""
    return torch.full_like(scores, -torch.inf).scatter(-1, tokens, 0.0)
