"""ETADS's network: a post-norm Transformer with focus attention (encoder) and saliency selection (decoder).

    encoder (§3.2)  self-attention + a Gaussian bias around a centre of every token and head
    decoder (§3.3)  cross-attention ⊗ the saliency of every source token for this step and head

Letters: B examples, K beams, Q = B·K rows, U units, L unit tokens, S memory tokens, T target tokens, D width,
V vocabulary.
"""

from typing import cast

from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import BartConfig
from transformers.models.bart import modeling_bart

from longsumbench.modeling.nn.encoder_decoder import UnitsToText, fold_cross_attention
from longsumbench.modeling.nn.initialization import InitializesModules
from longsumbench.modeling.nn.transformer_layer import TransformerLayer
from longsumbench.modeling.nn.unit_encoder import UnitEncoder
from longsumbench.models.etads.attention import FocusAttention, SaliencyAttention


@strict
class EtadsModelConfig(BartConfig):
    """As BartConfig, plus the layers that focus and select, counted from 1, and the label smoothing."""

    model_type = "longsumbench-etads"

    activation_function: str = "relu"
    focus_layers: list[int] | tuple[int, ...] = ()
    saliency_layers: list[int] | tuple[int, ...] = ()
    label_smoothing: float = 0.0


class FocusEncoder(InitializesModules, UnitEncoder):
    """As UnitEncoder (post-norm), except: its positions are learned, and some of its layers focus (ETADS §3.2)."""

    def __init__(self, config: EtadsModelConfig) -> None:
        super().__init__(config, norm_first=False)
        self.embed_positions = modeling_bart.BartLearnedPositionalEmbedding(
            config.max_position_embeddings, config.d_model
        )
        for number in config.focus_layers:
            layer = cast(TransformerLayer, self.layers[number - 1])
            layer.self_attn = FocusAttention(config)

    def embed(self, input_ids: Tensor, places: Tensor) -> Tensor:
        """Return scaled embeddings with positions: [r, L] → [r, L, D]."""
        placed: Tensor = self.embed_alone(input_ids) + self.embed_positions(input_ids)
        return placed


class SelectingDecoder(InitializesModules, modeling_bart.BartDecoder):
    """As modeling_bart.BartDecoder, except: the embeddings have no norm, and some of its layers select (ETADS §3.3)."""

    def __init__(self, config: EtadsModelConfig) -> None:
        super().__init__(config)
        self.layernorm_embedding = nn.Identity()
        fold_cross_attention(
            self, config, {number - 1: SaliencyAttention for number in config.saliency_layers}
        )


class EtadsForConditionalGeneration(UnitsToText, modeling_bart.BartForConditionalGeneration):
    """As BART, except: it reads units, its encoder focuses, its decoder selects, and its output has a bias (Eq. 4).

    Source, target and output share the embeddings, which are scaled by √D at the inputs.
    """

    config_class = EtadsModelConfig
    config: EtadsModelConfig

    def __init__(self, config: EtadsModelConfig) -> None:
        super().__init__(config)
        self.model.encoder, self.model.decoder = FocusEncoder(config), SelectingDecoder(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size)
        self.post_init()
