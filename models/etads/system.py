"""The system ETADS: what it reads, and its evidence."""

from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from longsumbench.core import WINDOW_AXIS, Evidence, Example, Span
from longsumbench.modeling.generation import GeneratedText, decode_again
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.folded_attention import recorded
from longsumbench.modeling.tokenizer import token_texts
from longsumbench.modeling.unit_reader import UnitReader
from longsumbench.modeling.units import (
    EncodedSentence,
    Units,
    join_units,
    prepend_query,
    split_snippets,
    tokens_and_words,
)
from longsumbench.models.etads.attention import Focus, Gate
from longsumbench.models.etads.config import EtadsConfig
from longsumbench.models.etads.model import EtadsForConditionalGeneration


class EtadsReader(UnitReader):
    """Reads the leading tokens of the title and the text as one unit."""

    config: EtadsConfig

    def units(self, example: Example) -> Units:
        """Return one unit: the query and the title, if any, and the text, cut at `input_length`."""
        encoded = self._encoded(example)
        # A document is one snippet, however long; the joined unit is what is cut.
        longest, _ = tokens_and_words(chain.from_iterable(encoded))
        units = split_snippets(encoded, longest, len(encoded))
        query = self.query(example, self.config.input_length)
        return prepend_query(join_units(units, self.config.input_length - len(query)), query)

    def sentence_tokens(self, example: Example) -> list[tuple[int, int]]:
        """Return the tokens of each sentence of the source in the unit before it is cut: first and last + 1."""
        query = len(self.query(example, self.config.input_length))
        sentences = chain.from_iterable(self._encoded(example))
        ends = accumulate((len(sentence.ids) for sentence in sentences), initial=query)
        return list(pairwise(ends))[bool(example.title) :]

    def _encoded(self, example: Example) -> list[list[EncodedSentence]]:
        """Return the sentences of each document; the title is the first."""
        sentences = [list(document.sentences()) for document in example.documents]
        if example.title and sentences:
            sentences[0].insert(0, example.title)
        return [self.encode(document) for document in sentences]


class Etads(NeuralSystem):
    """ETADS: a Transformer over the leading tokens, with focus in the encoder and selection in the decoder."""

    Config, Reader, Model = EtadsConfig, EtadsReader, EtadsForConditionalGeneration
    reader: EtadsReader
    config: EtadsConfig

    def weigh_spans(self, output: GeneratedText) -> tuple[Sequence[Span], NDArray[Any]]:
        """Return the mean saliency of the sentences that were read, over their tokens, at each step."""
        saliency = self.evidence(output).arrays["saliency"]  # [T, S]
        steps, length = saliency.shape
        spans, means = [], []
        for index, (first, end) in enumerate(self.reader.sentence_tokens(output.example)):
            if first < min(end, length):
                spans.append((index, index + 1))
                means.append(saliency[:, first:end].mean(1))
        return spans, np.reshape(means, (len(spans), steps))

    def evidence(self, output: GeneratedText) -> Evidence:
        """Return every token's foci, and its saliency for every token of the output."""
        with recorded(self.model, Focus) as windows, recorded(self.model, Gate) as saliencies:
            decode_again(self.model, self.reader, output)
        units, output_ids = output.units, output.ids
        arrays: dict[str, Any] = {}
        axes: dict[str, tuple[str, ...]] = {}
        # The decoder's batch may be padded: only the tokens of this text count.
        ids = units.ids[0] if units.ids else []
        if windows:
            foci = torch.stack([torch.stack([*layer], -1)[0] for layer in windows])
            arrays["focus"] = foci[:, :, : len(ids)]  # [layers, H, S, 2]
            axes["focus"] = ("layer", "head", "source_token", WINDOW_AXIS)
        if saliencies:
            mean = torch.stack([layer[0] for layer in saliencies]).float().mean((0, 1))  # [T, S]
            arrays["saliency"] = mean[: len(output_ids), : len(ids)]
            axes["saliency"] = ("step", "source_token")
        texts = {
            "unit": self.decode_texts(units.ids),
            "source_token": tuple(token_texts(self.tokenizer, ids, skip_special_tokens=False)),
            "step": tuple(token_texts(self.tokenizer, output_ids)),
            "layer": tuple(f"encoder layer {number}" for number in self.config.focus_layers or []),
        }
        return Evidence({name: array.cpu().numpy() for name, array in arrays.items()}, axes, texts)
