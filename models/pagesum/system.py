"""The system PageSum and its evidence."""

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from longsumbench.core import REFERENCE_AXIS, Evidence, Example
from longsumbench.modeling.generation import Written
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.unit_encoder import TokenTable
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.models.pagesum.config import PageSumConfig
from longsumbench.models.pagesum.network import PageSumNetwork
from longsumbench.models.pagesum.reader import PageReader


class PageSum(NeuralSystem):
    """PageSum: encode and decode every page separately; mix the hidden states at every step by learned confidences."""

    Config, Reader, Network = PageSumConfig, PageReader, PageSumNetwork
    keeps_reference_evidence = True
    extracts = True
    config: PageSumConfig

    def __init__(self, config: PageSumConfig) -> None:
        super().__init__(config)
        self.keeps_evidence = self.extracts = config.decoding == "page"
        self.gives_attention = config.decoding == "global"

    def span_weights(self, example: Example, output: Written) -> tuple[Sequence[tuple[int, int]], NDArray[Any]]:
        """Return the sentences of each page, and its confidence in every step: [P, T]."""
        return output.units.spans, self.evidence(output).arrays["confidence"]

    @torch.inference_mode()
    def evidence(self, output: Written) -> Evidence:
        """Return the confidences of the pages at every token of the output, and of a given reference.

        They are computed again, given the output: beam search does not keep them.
        """
        units, output_ids, reference = output.units, output.ids, output.reference
        pages = self.model.model.encoder(**self.batch(output))
        start, begin = self.model.config.decoder_start_token_id, self.tokenizer.bos_token_id
        text = output_ids[1:] if output_ids[:1] == [begin] else output_ids  # the start token is forced, and is not text
        arrays = {"confidence": self._confidences(pages, [start, begin], text)}
        axes = {"confidence": ("unit", "step")}
        texts = {
            "unit": tuple(text.strip() for text in self.tokenizer.batch_decode(units.ids, skip_special_tokens=True))
        }
        texts["step"] = tuple(token_texts(self.tokenizer, text))
        if reference is not None:
            fed = [begin] if self.config.fidelity == "official" else [start, begin]  # as in training
            arrays["reference_confidence"] = self._confidences(pages, fed, reference)
            axes["reference_confidence"] = ("unit", REFERENCE_AXIS)
            texts[REFERENCE_AXIS] = tuple(token_texts(self.tokenizer, reference))
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)

    def _confidences(self, pages: TokenTable, prefix: Sequence[int], ids: Sequence[int]) -> Tensor:
        """Return the confidences with which the tokens `ids` are predicted after the tokens `before`: [P, T]."""
        fed = torch.tensor([[*prefix, *ids[:-1]]], device=self.model.device)
        weights: Tensor = self.model.decode(pages, fed).unit_scores
        return weights[0, :, 0, len(prefix) - 1 :][:, : len(ids)]
