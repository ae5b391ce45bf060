"""What the settings of all neural systems have in common. Imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from longsumbench import core
from longsumbench.errors import UsageError

NEURAL = core.Capabilities(shares_work=True, supports_length_norms=True)
_PAPER = "Hierarchical Transformer §4"  # source of defaults
UnitToRank = Annotated[str, core.OneOf("paragraph", "section", "snippet")]


class NeuralConfig(core.SystemConfig):
    """Base class of the settings of a neural system; a dataclass that inherits it declares them, in its own order.

    What has a value here and is not declared keeps that value. A system whose sizes are those of a checkpoint declares
    no sizes; it overrides `__post_init__` and `initial_folder`, and `build`, `blank_model` and `tokenizer` of
    `ModelBuilder`.
    """

    name: str
    # Longest target and output, in tokens.
    decode_length: int
    # Or a checkpoint that training starts from.
    init: str = "random"
    # None: that of `size`.
    d_model: int | None
    d_ff: int | None
    num_heads: int | None
    encoder_layers: int | None
    decoder_layers: int | None
    dropout: float = 0.0
    tokenizer: str = (
        # Or "words", made from the training split, too; or a hub name or folder.
        "trained"
    )
    # Of a trained tokenizer.
    vocabulary_size: int
    # A key of `sizes`, for systems whose sizes may be None.
    size: str
    # Size → name → width or depth.
    sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {}
    # entries of the model's configuration that the weights do not depend on, besides settings that say so
    free_entries: ClassVar[frozenset[str]] = frozenset()
    # settings that limit what a pretrained encoder reads at once; empty: the system cannot start from one
    encoder_lengths: ClassVar[tuple[str, ...]] = ()
    decided_by = frozenset({"seed", "train", "decode"})

    @property
    def capabilities(self) -> core.Capabilities:
        """What every model of `UnitsToText` can do."""
        return NEURAL

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the outcome; hashes of content replace paths of checkpoint and tokenizer.

        Raises:
            UsageError: the checkpoint or tokenizer does not exist.
            EnvironmentProblem: it is on the hub, and cannot be fetched.
        """
        return {**super().identity(), **self.weights_identity(), **self.reading_identity()}

    def weights_identity(self) -> dict[str, Any]:
        """Return JSON values that stand for the initial checkpoint and the tokenizer; errors are those of `identity`."""
        if folder := self.initial_folder():
            from longsumbench.modeling.checkpoints import model_digest

            return {"init": model_digest(folder), "tokenizer": "the checkpoint's"}
        if self.tokenizer in core.TRAINED_TOKENIZERS:
            return {}
        from longsumbench.modeling.tokenizer import load_tokenizer, tokenizer_identity

        return {"tokenizer": tokenizer_identity(load_tokenizer(self.tokenizer))}

    def reading_identity(self) -> dict[str, Any]:
        """Return JSON values, known before fitting, on which units depend besides settings, tokenizer and texts."""
        return core.ranker_identity(self.rank, self.rank_checkpoint)

    def initial_folder(self) -> Path | None:
        """Return the folder of the initial checkpoint; None if the weights are initialized at random.

        Raises:
            UsageError: the checkpoint does not exist, or is of another system or architecture.
            EnvironmentProblem: it is on the hub, has no local copy, and cannot be fetched.
        """
        if self.init == "random":
            return None
        if self.starts_from_encoder():
            from longsumbench.modeling.pretrained import Pretrained

            model = Pretrained.find(self.init, "model.init")
            encoder = model.encoder_config()
            self.check_given_sizes(
                {"d_model": encoder.hidden_size, "encoder_layers": encoder.num_hidden_layers}
            )
            self.check_width(encoder.hidden_size)
            return model.folder
        core.read_checkpoint(Path(self.init), type(self))
        return Path(self.init)

    def starts_from_encoder(self) -> bool:
        """Return True if `init` names an encoder of transformers, not a checkpoint of the suite."""
        if self.init == "random" or not self.encoder_lengths:
            return False
        try:
            core.read_saved(Path(self.init))
        except UsageError:
            return True
        return False

    def check_given_sizes(self, sizes: Mapping[str, int]) -> None:
        """Check that the settings give no other widths and depths than those of the initial checkpoint."""
        given = vars(self)
        unlike = [name for name, size in sizes.items() if given[name] not in (None, size)]
        if unlike:
            name, nulls = unlike[0], " ".join(f"model.{name}=null" for name in unlike)
            remedy = f"leave it out, or, if a scale sets it, add {nulls}"
            raise UsageError(
                f"model.{name}={given[name]}, but model.init={self.init} has {sizes[name]}: {remedy}"
            )

    def __post_init__(self) -> None:
        """Check the settings of a network that is trained from scratch, with sinusoidal positions.

        Raises:
            UsageError: a value is invalid.
        """
        if self.tokenizer in core.TRAINED_TOKENIZERS:
            core.check_minimum(
                "model.vocabulary_size",
                self.vocabulary_size,
                core.TRAINED_TOKENIZERS[self.tokenizer],
            )
        if not self.starts_from_encoder():
            self.check_width(self.dimension("d_model"))

    def check_width(self, width: int) -> None:
        """Check that heads and sinusoidal positions can share the width of the network.

        Raises:
            UsageError: they cannot.
        """
        heads = self.dimension("num_heads")
        if width % heads:
            raise UsageError(
                f"model.d_model={width} cannot be shared equally by model.num_heads={heads}"
            )
        if width % 2:
            halves = "half of it holds the sines of the positions, half the cosines"
            raise UsageError(f"model.d_model={width} is odd: {halves}")

    def dimension(self, name: str) -> int:
        """Return a width or depth of a network that is trained from scratch: the setting, or that of `size`."""
        dimension: int | None = vars(self)[name]
        return self.sizes[self.size][name] if dimension is None else dimension

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return entries of the model's configuration that no setting has by name; by default none.

        `multi_document` is True if the training texts have several documents each.
        """
        return {}

    def ranker_settings(self) -> core.RankerSettings:
        """Return the settings of a learned ranker, whose trained tokenizer is as large as the system's."""
        trained = self.tokenizer == "trained"
        return core.RankerSettings(
            vocabulary_size=self.vocabulary_size
            if trained
            else core.RankerSettings.vocabulary_size,
            rank_checkpoint=self.rank_checkpoint,
        )


@dataclass
class RankedConfig(NeuralConfig):
    """Settings of the systems that read ranked paragraphs."""

    name: core.Text = core.setting("", "name of the system")
    rank: core.RankerName = core.setting(
        "lstm", "none, or a ranker (longsumbench list rankers)", decides="units"
    )
    rank_checkpoint: core.Text | None = core.setting(
        None, "sentence encoder of an embedding ranker: folder or hub name", decides="units"
    )
    ranker_dimension: core.Width = core.setting(
        256, "width of the LSTM ranker", source=_PAPER, decides="units"
    )
    ranker_steps: core.Count = core.setting(
        5_000, "length of the ranker's training; unstated", "optimizer steps", decides="units"
    )
    ranker_batch_size: core.BatchSize = core.setting(
        8, "batch size of the ranker's training; unstated in the paper", "titles", decides="units"
    )
    unit: UnitToRank = core.setting(
        "paragraph", "paragraph | section | snippet (sentences packed)", decides="units"
    )
    paragraph_length: core.TokenCount = core.setting(
        500, "longest paragraph", "tokens", "released code", decides="units"
    )
    input_length: core.TokenCount = core.setting(
        1600, "longest input, with the title", "tokens", _PAPER, decides="units"
    )
    test_input_length: core.TokenCount | None = core.setting(
        None,
        "longest input of examples to summarize; null: as in training",
        "tokens",
        decides="summaries",
    )
    decode_length: core.TargetTokens = core.setting(
        400, "longest target and output", "tokens", "released code", decides="units"
    )
    dropout: core.FractionBelowOne = core.setting(0.1, "dropout probability", source=_PAPER)
    tokenizer: core.Text = core.setting(
        "trained", "trained (byte-level BPE) | words (word level) | hub name or folder"
    )
    vocabulary_size: core.VocabularySize = core.setting(
        32_000, "size of a trained tokenizer's vocabulary", "entries", _PAPER
    )
    init: core.Text = core.setting("random", "random, or the folder of a checkpoint of this system")

    def without_effect(self, train: core.TrainConfig, decode: core.Decoding) -> set[str]:
        """Return the settings that change nothing: those of a learned ranker, without one."""
        if core.learned_ranker(self.rank):
            return set()
        return {"ranker_dimension", "ranker_steps", "ranker_batch_size"}

    def ranker_settings(self) -> core.RankerSettings:
        """Return the settings of a learned ranker; one of snippets learns from paragraphs."""
        unit = self.unit if self.unit in core.RANKABLE_UNITS else "paragraph"
        return replace(
            super().ranker_settings(),
            dimension=self.ranker_dimension,
            steps=self.ranker_steps,
            batch_size=self.ranker_batch_size,
            unit=unit,
        )
