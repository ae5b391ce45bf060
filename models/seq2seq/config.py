"""Settings of seq2seq (`model.*`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from longsumbench.core import (
    Capabilities,
    Count,
    DeviceMap,
    NonNegative,
    OneOf,
    ReleaseDate,
    TargetTokens,
    Text,
    TokenCount,
    WeightType,
    setting,
)
from longsumbench.errors import UsageError
from longsumbench.modeling.generation_defaults import read_default_prefix, read_generation_defaults
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.pretrained import Pretrained

if TYPE_CHECKING:
    from longsumbench.models.seq2seq.checkpoint import Family

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
    window_length: TokenCount | None = setting(
        None,
        "longest part of the input that is encoded alone, with special tokens, prefix and query; null: the whole",
        "tokens",
        decides="units",
    )
    window_overlap: NonNegative = setting(
        0,
        "tokens that neighbouring windows share; each keeps the states of its half of them",
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
        for name, needing in (("global_attention", "separator"), ("share", "documents")):
            if self.separator is None and vars(self)[name] == needing:
                raise UsageError(
                    f"model.{name}={needing} needs a token: add \"model.separator='<doc-sep>'\" or so"
                )

        if self.window_overlap >= (self.window_length or 1):
            raise UsageError(
                f"model.window_overlap={self.window_overlap} needs longer windows: model.window_length is"
                f" {self.window_length or 'null'}"
            )

    # It searches with the library's length norm.
    capabilities = Capabilities(shares_work=True, runs_untrained=True)

    @property
    def pretrained(self) -> Pretrained:
        """The checkpoint, fetched from the hub if it is there, with its adapter."""
        return Pretrained.find(
            self.checkpoint,
            "model.checkpoint",
            self.adapter,
            revision=self.revision,
            pickled=True,
        )

    def initial_folder(self) -> Path:
        """Return the folder of the checkpoint."""
        return self.pretrained.folder

    def read_family(self) -> "Family":
        """Return what the checkpoint's model is.

        Raises:
            UsageError: it is no encoder-decoder, or the settings exceed its positions.
        """
        from longsumbench.models.seq2seq import checkpoint

        family = checkpoint.read_family(self.pretrained)
        self._check_lengths(family)
        return family

    def longest_input(self, family: "Family") -> int:
        """Return the longest input with its special tokens: the setting, or the checkpoint's positions."""
        length = self.input_length or family.encoder_positions
        assert length is not None
        return length

    def weights_identity(self) -> dict[str, Any]:
        """Return the digest of the checkpoint's files and its commit, in place of its name; also of the adapter."""
        return self.pretrained.identity()

    def reading_identity(self) -> dict[str, Any]:
        """Return also the longest input, which the checkpoint decides if no setting does."""
        longest = self.longest_input(self.read_family())
        return {**super().reading_identity(), "input_length": longest}

    def _check_lengths(self, family: "Family") -> None:
        encoder, shown_as = family.encoder_positions, self.pretrained.shown_as
        if self.input_length is None and encoder is None:
            raise UsageError(
                f"model.input_length is missing, and {shown_as} ('{family.kind}') has no number of positions:"
                " give the longest input in tokens"
            )
        # with windows, only one of them must fit
        read_at_once = "input_length" if self.window_length is None else "window_length"
        limits = (
            (read_at_once, vars(self)[read_at_once], encoder),
            ("decode_length", self.decode_length, family.decoder_positions),
        )
        for name, length, positions in limits:
            if length is not None and positions is not None and length > positions:
                raise UsageError(
                    f"model.{name}={length}: {shown_as} has only {positions} positions: choose less"
                )
        if family.block and self.window_length is not None:
            raise UsageError(
                f"model.window_length={self.window_length} does not go with '{family.kind}', whose last block sees the"
                " whole input: leave it out"
            )
        if encoder is not None and self.window_length is None:
            multiple, length = self.pad_to_multiple_of or 1, self.input_length or encoder
            if -(-length // multiple) * multiple > encoder:
                raise UsageError(
                    f"model.pad_to_multiple_of={multiple} pads inputs of {length} tokens beyond the {encoder} positions"
                    f" of {shown_as}: choose a shorter model.input_length"
                )
        if self.global_attention not in (None, "none") and family.kind != "led":
            raise UsageError(
                f"model.global_attention={self.global_attention} goes with LED, not with '{family.kind}': leave it out"
            )

    def usual_decoding(self) -> Mapping[str, Any] | None:
        """Return the values of `decode.*` that the checkpoint's card has; errors are those of `read_generation_defaults`."""
        if self.init == "random":
            return None
        return read_generation_defaults(self.checkpoint, self.revision)

    def usual_prefix(self) -> str:
        """Return the prefix that the checkpoint's card has; errors are those of `read_generation_defaults`."""
        return read_default_prefix(self.checkpoint, self.revision)
