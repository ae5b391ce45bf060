"""The systems Trunc, CA, EA and SEAL, and their evidence. Choice: weights start as `xavier` sets them."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from longsumbench.core import Decoding, Evidence, Example, TrainConfig
from longsumbench.modeling.checkpoints import check_finite
from longsumbench.modeling.extraction import ScoredSpans, score_spans
from longsumbench.modeling.generation import GeneratedText, ranked_search, text_batch
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.neural_system import NeuralSystem
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.training.trainer import Objective
from longsumbench.modeling.unit_reader import UnitReader, collate_units
from longsumbench.modeling.units import Units
from longsumbench.models.seal import model as networks
from longsumbench.models.seal.config import CAConfig, EAConfig, SealConfig, TruncConfig
from longsumbench.models.seal.readers import CAReader, EAReader, TruncReader


class Trunc(NeuralSystem):
    """Trunc: the leading snippets, joined and cut at `input_length` (SEAL §3.2)."""

    Config, Reader, Model = TruncConfig, TruncReader, networks.TruncForConditionalGeneration


class CA(NeuralSystem):
    """CA: groups of snippets, each compressed to a few vectors (SEAL §3.3)."""

    Config, Reader, Model = CAConfig, CAReader, networks.CAForConditionalGeneration


class ScorerBuilder(ModelBuilder):
    """As ModelBuilder, except: with a pretrained encoder, all scores start at 0.

    A pretrained encoder learns at a small rate, at which random scores would take hundreds of steps to disappear.
    """

    def initial_model(self, reader: UnitReader) -> PreTrainedModel:
        """Return the model that training starts from; errors are those of ModelBuilder."""
        model = super().initial_model(reader)
        if self.config.starts_from_encoder():
            nn.init.zeros_(model.model.encoder.scorer.score.weight)
        return model


class EA(NeuralSystem):
    """EA: snippets encoded alone and scored; the decoder attends to the best ones (SEAL §3.4)."""

    Config, Reader, Model = EAConfig, EAReader, networks.EAForConditionalGeneration
    Builder = ScorerBuilder

    def objective(self, recipe: TrainConfig) -> Objective | None:
        """Return the loss l_e if the scorer is trained alone, with the encoder; the decoder then stays as it is."""
        if recipe.only == "all":
            return None
        self.model.requires_grad_(False)
        encoder = self.model.model.encoder
        encoder.requires_grad_(True)
        # with a pretrained encoder, which has its own, only the decoder uses these
        encoder.embed_tokens.requires_grad_(encoder.pretrained is None)
        draw = partial(networks.draw_units, share=recipe.scored_share)
        return Objective(self.model.score_alone, mean_over="num_proxy_labels", draw=draw)

    def score_source(
        self, examples: Sequence[Example], decoding: Decoding
    ) -> Iterator[ScoredSpans]:
        """Yield the scores of the snippets, each a span of sentences."""
        units_of_examples = [self.reader.units(example) for example in examples]
        model, batch = self._ready_to_score(units_of_examples, decoding)
        with torch.inference_mode(), ranked_search(model, decoding):
            reading = model.model.encoder(**batch)
            scores = model.scores_to_extract(reading, batch["input_ids"]).cpu().double().numpy()
        for units, row in zip(units_of_examples, scores, strict=True):
            yield score_spans(units.spans, row[: len(units.spans), None], units.truncation)

    def _ready_to_score(
        self, units_of_examples: Sequence[Units], decoding: Decoding
    ) -> tuple[Any, dict[str, Tensor]]:
        """Return the model and the batch of some units, both on the device; not in inference mode, as in `decode`."""
        model = self.model.to(choose_device(decoding.device)).eval()
        batch = collate_units(self.reader, units_of_examples)
        return model, {name: value.to(model.device) for name, value in batch.items()}

    @torch.inference_mode()
    def evidence(self, output: GeneratedText) -> Evidence:
        """Score and select again, given the output: beam search does not keep the selections."""
        model, output_ids = self.model, output.ids
        # The end token is written, too.
        length = max(1, len(output_ids) + output.complete)
        start = model.config.decoder_start_token_id
        history = torch.tensor([[start, *output_ids][:length]], device=model.device)
        scores, selection = model.select(
            model.model.encoder(**text_batch(model, self.reader, output)), history
        )
        count, size = model.count_segments(length)
        segments = [output_ids[begin : begin + size] for begin in range(0, count * size, size)]
        selected, units = selection.counts.to(torch.int32), output.units.ids
        arrays = {
            "scores": scores[0, :, : len(units)].float().cpu().numpy(),
            "selected_tokens": selected[:, : len(units)].cpu().numpy(),
        }
        return Evidence(
            arrays,
            axes=dict.fromkeys(arrays, ("segment", "unit")),
            texts={
                "unit": self.decode_texts(units),
                "segment": self.decode_texts(segments, skip_special_tokens=True),
            },
        )


class Seal(EA):
    """SEAL: as EA, with a new selection for every segment of the output (SEAL §3.5)."""

    Config, Reader, Model = SealConfig, EAReader, networks.SealForConditionalGeneration
    looks_back = True

    def score_next(self, example: Example, written: str, decoding: Decoding) -> ScoredSpans:
        """Return the scores of the snippets for the next segment; the last segment that is written may be shorter."""
        units = self.reader.units(example)
        model, batch = self._ready_to_score([units], decoding)
        ids = self.reader.encode_target(written).ids
        padding = [model.config.pad_token_id] * (-len(ids) % model.config.segment_length)
        start = model.config.decoder_start_token_id
        history = torch.tensor([[start, *ids, *padding]], device=model.device)
        with torch.inference_mode(), ranked_search(model, decoding):
            scores = model.unit_scores(model.model.encoder(**batch), history)[0, -1]
        values = scores[: len(units.spans)].cpu().double().numpy()
        check_finite(values, f"the checkpoint {model.name_or_path}")
        return score_spans(units.spans, values[:, None], units.truncation)
