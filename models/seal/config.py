"""Settings of the SEAL family (`model.*`)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from longsumbench.core import (
    Between,
    Count,
    Decoding,
    Depth,
    FractionBelowOne,
    Heads,
    OneOf,
    RankerName,
    TargetTokens,
    Text,
    TokenCount,
    TrainConfig,
    VocabularySize,
    Width,
    setting,
)
from longsumbench.errors import UsageError
from longsumbench.modeling.neural_config import NEURAL, NeuralConfig
from longsumbench.rouge.all_pairs import PAIR_MEASURES

# SEAL §4: "stated" is as in the text (35.7M parameters with tied embeddings, about 39M with SEAL's scorer); "223m" is
# the reading that explains its count of 223M (12 + 12 layers, d 768, d_ff 3072).
_SIZES = {
    "stated": {
        "d_model": 512,
        "d_ff": 512,
        "num_heads": 8,
        "encoder_layers": 2,
        "decoder_layers": 6,
    },
    "223m": {
        "d_model": 768,
        "d_ff": 3072,
        "num_heads": 12,
        "encoder_layers": 12,
        "decoder_layers": 12,
    },
}
_SealSize = Annotated[str, OneOf(*_SIZES)]
_NormPosition = Annotated[str, OneOf("pre", "post")]
Documents = Annotated[int, Between(1, 10**6)]
Order = Annotated[int, Between(1, 2)]  # n of ROUGE-n
_Measure = Annotated[str, OneOf(*PAIR_MEASURES)]


@dataclass
class FamilyConfig(NeuralConfig):
    """Settings that the systems of the family share."""

    name: Text = setting("", "name of the system")
    snippet_length: TokenCount = setting(
        128, "longest snippet", "tokens", "SEAL, Table 4", decides="units"
    )
    num_snippets: Count = setting(
        224, "most snippets", source="SEAL, Table 4: arXiv", decides="units"
    )
    decode_length: TargetTokens = setting(
        768, "longest target and output", "tokens", "SEAL, Table 4: arXiv", decides="units"
    )
    size: _SealSize = setting(
        "stated", "stated | 223m: readings of SEAL §4; a width or depth given below has priority"
    )
    d_model: Width | None = setting(None, "width")
    d_ff: Width | None = setting(None, "width of the feed-forward layers")
    num_heads: Heads | None = setting(None, "heads of every attention", "heads")
    encoder_layers: Depth | None = setting(None, "depth of the encoder", "layers")
    decoder_layers: Depth | None = setting(None, "depth of the decoder", "layers")
    dropout: FractionBelowOne = setting(0.1, "dropout probability", source="SEAL §4")
    norm: _NormPosition = setting("pre", "pre | post: position of LayerNorm; unstated in the paper")
    tokenizer: Text = setting(
        "trained", "trained (byte-level BPE) | words (word level) | hub name or folder"
    )
    vocabulary_size: VocabularySize = setting(
        32_776, "size of a trained tokenizer's vocabulary", "entries", "SEAL §3"
    )
    init: Text = setting(
        "random",
        "random, a checkpoint of this system, or an encoder of transformers (hub name or folder)",
    )
    sizes = _SIZES
    free_entries = frozenset({"max_position_embeddings"})  # sinusoids are computed
    encoder_lengths: ClassVar[tuple[str, ...]] = ("snippet_length",)
    capabilities = replace(NEURAL, gives_attention=True)

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions."""
        return {"max_position_embeddings": self.decode_length}


@dataclass
class TruncConfig(FamilyConfig):
    """Trunc: the leading snippets, truncated, through an ordinary Transformer (SEAL, 2020, §3.2)."""

    name: Text = setting("trunc", "name of the system")
    input_length: TokenCount = setting(
        1024, "longest input", "tokens", "SEAL, Table 4: L_ext", decides="units"
    )
    rank: RankerName = setting(
        "none", "none, or the ranker of snippets (longsumbench list rankers)", decides="units"
    )
    rank_checkpoint: Text | None = setting(
        None, "sentence encoder of an embedding ranker: folder or hub name", decides="units"
    )
    encoder_lengths = ("input_length",)


@dataclass
class CAConfig(FamilyConfig):
    """CA: groups of snippets, each compressed to a few vectors (SEAL, 2020, §3.3)."""

    name: Text = setting("ca", "name of the system")
    extractive_length: TokenCount = setting(
        1024, "approximate number of all groups", "vectors", "SEAL, Table 4: L_ext"
    )
    group_size: Count = setting(
        4,
        "size of a group (k) of single documents; unstated in the paper",
        "snippets",
        decides="units",
    )
    compressed_length: TokenCount | None = setting(
        None, "length of a compressed group (c); null: extractive_length / most groups", "vectors"
    )
    max_documents: Documents = setting(
        128, "most groups of several documents; the rest joins the last", decides="units"
    )
    encoder_lengths = ()  # its learned vectors go through the layers with the tokens

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions, and of vectors of a group."""
        return {
            **super().model_entries(multi_document),
            "compressed_length": self.count_group_vectors(multi_document),
        }

    def count_group_vectors(self, multi_document: bool) -> int:
        """Return c: `compressed_length` if it is given, else max(1, ⌊extractive_length / the most groups possible⌋)."""
        groups = self.max_documents if multi_document else -(-self.num_snippets // self.group_size)
        return self.compressed_length or max(1, self.extractive_length // groups)


@dataclass
class EAConfig(FamilyConfig):
    """EA: snippets encoded alone and scored; the decoder attends to the best ones (SEAL, 2020, §3.4)."""

    name: Text = setting("ea", "name of the system")
    extractive_length: TokenCount = setting(
        1024,
        "total length of the selected snippets",
        "tokens",
        "SEAL, Table 4: L_ext",
        decides="use",
    )
    scorer_layers: Depth = setting(1, "depth of the scorer", "layers", "SEAL §5")
    max_documents: Documents = setting(
        128, "document embeddings; the rest shares the last", decides="units"
    )
    proxy_ngram: Order = setting(
        2, "1 | 2: n of the ROUGE-n of the proxy labels", source="SEAL, Table 3", decides="labels"
    )
    proxy_measure: _Measure = setting(
        "f1", "f1 | precision | recall, of it", source="SEAL, Table 3", decides="labels"
    )
    proxy_sequential: bool = setting(
        False, "label a greedily selected set 1", source="SEAL, Table 3", decides="labels"
    )

    capabilities = replace(
        FamilyConfig.capabilities, keeps_evidence=True, extracts=True, trains_scorer=True
    )

    def choose_segment_length(self, target_length: int) -> int:
        """Return the length of a segment of a target; EA's is the whole target."""
        return target_length

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.extractive_length < self.snippet_length:
            raise UsageError(
                f"model.extractive_length={self.extractive_length} is below model.snippet_length={self.snippet_length}:"
                " no snippet would fit"
            )

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions, and of embedded documents if texts have several."""
        return {
            **super().model_entries(multi_document),
            "max_documents": self.max_documents if multi_document else 0,
        }

    def without_effect(self, train: TrainConfig, decode: Decoding) -> set[str]:
        """Return the settings that change nothing: extracts of a scorer that is trained alone select no snippets."""
        if train.only == "scorer" and decode.mode == "extract":
            return {"extractive_length"}
        return set()


@dataclass
class SealConfig(EAConfig):
    """SEAL: as EA, with a new selection of snippets for every segment of the output (SEAL, 2020, §3.5)."""

    name: Text = setting("seal", "name of the system")
    segment_length: TokenCount = setting(
        96, "length of a segment of the output", "tokens", "SEAL, Table 4: arXiv", decides="labels"
    )

    encoder_lengths = ("snippet_length", "segment_length")
    # Every segment has another memory.
    capabilities = replace(EAConfig.capabilities, gives_attention=False)

    def choose_segment_length(self, target_length: int) -> int:
        """Return the length of a segment."""
        return self.segment_length

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.segment_length > self.decode_length:
            raise UsageError(
                f"model.segment_length={self.segment_length} is above model.decode_length={self.decode_length}:"
                " a segment is at most the whole summary (which makes SEAL EA)"
            )
