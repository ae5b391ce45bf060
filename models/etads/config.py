"""Settings of ETADS (`model.*`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from longsumbench.core import (
    Capabilities,
    Depth,
    FractionBelowOne,
    Heads,
    NonNegative,
    TargetTokens,
    Text,
    TokenCount,
    VocabularySize,
    Width,
    setting,
)
from longsumbench.errors import UsageError
from longsumbench.modeling.neural_config import NEURAL, NeuralConfig


@dataclass
class EtadsConfig(NeuralConfig):
    """ETADS: focus attention and saliency selection over the leading 400 words (You et al., 2019)."""

    name: Text = setting("etads", "name of the system")
    focus_layers: list[NonNegative] | None = setting(
        None, "encoder layers with focus, from 1; null: all; []: none"
    )
    saliency_layers: list[NonNegative] | None = setting(
        None, "decoder layers with selection; null: all; []: none"
    )
    input_length: TokenCount = setting(
        400, "longest title and text", "tokens", "ETADS §4.1", decides="units"
    )
    decode_length: TargetTokens = setting(
        100, "longest target and output", "tokens", "ETADS §4.1", decides="units"
    )
    d_model: Width = setting(512, "width", source="ETADS §4.1")
    d_ff: Width = setting(2048, "width of the feed-forward layers", source="ETADS §4.1")
    num_heads: Heads = setting(8, "heads of every attention", "heads", "ETADS §4.1")
    encoder_layers: Depth = setting(4, "depth of the encoder", "layers", "ETADS §4.1")
    decoder_layers: Depth = setting(4, "depth of the decoder", "layers", "ETADS §4.1")
    dropout: FractionBelowOne = setting(
        0.2, "dropout probability", source="ETADS §4.1: 0.8 is kept"
    )
    tokenizer: Text = setting(
        "words", "words: of the training split | trained: byte-level BPE | hub name or folder"
    )
    vocabulary_size: VocabularySize = setting(
        50_000, "size of a trained tokenizer's vocabulary", "entries", "ETADS §4.1"
    )
    init: Text = setting("random", "random, or the folder of a checkpoint of this system")

    @property
    def capabilities(self) -> Capabilities:
        """Evidence needs focus or selection, and an extract the saliency of selection."""
        return replace(
            NEURAL,
            gives_attention=True,
            keeps_evidence=bool(self.focus_layers or self.saliency_layers),
            extracts=bool(self.saliency_layers),
        )

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions; they start as sinusoids (ETADS §3.1)."""
        return {"max_position_embeddings": max(self.input_length, self.decode_length)}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.focus_layers = _layer_numbers(
            "model.focus_layers", self.focus_layers, "encoder", self.encoder_layers
        )
        self.saliency_layers = _layer_numbers(
            "model.saliency_layers", self.saliency_layers, "decoder", self.decoder_layers
        )


def _layer_numbers(key: str, layers: Sequence[int] | None, stack: str, depth: int) -> list[int]:
    """Return sorted layer numbers of a stack, counted from 1; None means all."""
    if layers is None:
        return list(range(1, depth + 1))
    listed = f"{key}=[{','.join(map(str, layers))}]"
    for layer in layers:
        if not 1 <= layer <= depth:
            has = f"the {stack} has {depth} layers, counted from 1 (model.{stack}_layers)"
            raise UsageError(f"{listed} names layer {layer}, but {has}")
    if len(set(layers)) < len(layers):
        raise UsageError(f"{listed} names a layer twice")
    return sorted(layers)
