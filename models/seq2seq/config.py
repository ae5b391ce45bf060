"""Settings of seq2seq (`model.*`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from longsumbench.core import (
    Count,
    DeviceMap,
    OneOf,
    ReleaseDate,
    TargetTokens,
    Text,
    TokenCount,
    WeightType,
    setting,
)
from longsumbench.errors import UsageError
from longsumbench.modeling.card import card_decoding, card_prefix
from longsumbench.modeling.neural_config import NeuralConfig

_GlobalAttention = Annotated[str, OneOf("first", "separator", "none")]
_Share = Annotated[str, OneOf("text", "documents")]
_Init = Annotated[str, OneOf("checkpoint", "random")]


@dataclass
class Seq2SeqConfig(NeuralConfig):
    """An encoder-decoder of transformers (BART, PEGASUS, LED, LongT5 …), as its checkpoint is or trained further."""

    name: Text = setting("seq2seq", "name of the system")
    checkpoint: Text | None = setting(None, "an encoder-decoder: hub name or folder; required")
    revision: Text | None = setting(
        None, "revision of a hub name: branch, tag, commit or refs/pr/N; null: its main branch"
    )
    adapter: Text | None = setting(None, "PEFT adapter to merge into it: a hub name or folder")
    init: _Init = setting(
        "checkpoint",
        "weights that training starts from: the checkpoint's | random ones of its sizes",
    )
    input_length: TokenCount | None = setting(
        None,
        "longest input, special tokens included; null: the checkpoint's positions",
        "tokens",
        decides="units",
    )
    decode_length: TargetTokens = setting(
        512, "longest target and output", "tokens", decides="units"
    )
    prefix: Text = setting("", "starts every input, before a space (summarize:)", decides="units")
    separator: Text | None = setting(
        None, "token between documents (<doc-sep>); null: a space", decides="units"
    )
    share: _Share = setting(
        "text",
        "input_length is for: text (its start) | documents (an equal part of each, which ends with the separator)",
        decides="units",
    )
    source_language: Text | None = setting(
        None, "language of the texts, a code of its tokenizer (en_XX)", decides="units"
    )
    target_language: Text | None = setting(
        None, "language of the summaries, a code of its tokenizer", decides="units"
    )
    global_attention: _GlobalAttention | None = setting(
        None,
        "tokens of LED that see all: first | separator (and first) | none; null: first for LED",
    )
    pad_to_multiple_of: Count | None = setting(
        None, "length of a padded batch; null: as the checkpoint needs", "tokens"
    )
    dtype: WeightType = setting(
        "float32",
        "type of the weights that write: float32 | bfloat16 | float16",
        decides="summaries",
    )
    device_map: DeviceMap | None = setting(
        None,
        "shares the weights that write out over GPUs: as in transformers; null: one device",
        decides="summaries",
    )
    released: ReleaseDate | None = setting(
        None, "month or day of the checkpoint's release (2020-04), for tables", decides="nothing"
    )

    def __post_init__(self) -> None:
        if self.adapter is not None and self.init == "random":
            raise UsageError(
                "model.adapter changes weights of the checkpoint: choose model.init=checkpoint"
            )
        for name, value in (("global_attention", "separator"), ("share", "documents")):
            if getattr(self, name) == value and self.separator is None:
                raise UsageError(
                    f"model.{name}={value} needs a token: add \"model.separator='<doc-sep>'\" or so"
                )

    def usual_decoding(self) -> Mapping[str, Any] | None:
        """Return the values of `decode.*` that the checkpoint's card has; errors are those of `card_decoding`."""
        if self.init == "random":
            return None
        return card_decoding(self.checkpoint, "model.checkpoint", self.revision)

    def usual_prefix(self) -> str:
        """Return the prefix that the checkpoint's card has; errors are those of `card_decoding`."""
        return card_prefix(self.checkpoint, "model.checkpoint", self.revision)
