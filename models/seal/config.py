"""Settings of the SEAL family (`model.*`)."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

from longsumbench import core
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
_SealSize = Annotated[str, core.OneOf(*_SIZES)]
_NormPosition = Annotated[str, core.OneOf("pre", "post")]
Documents = Annotated[int, core.Between(1, 10**6)]
Order = Annotated[int, core.Between(1, 2)]  # n of ROUGE-n
_Measure = Annotated[str, core.OneOf(*PAIR_MEASURES)]


@dataclass
class FamilyConfig(NeuralConfig):
    """Settings that the systems of the family share."""

    name: core.Text = core.setting("", "name of the system")
    snippet_length: core.TokenCount = core.setting(
        128, "longest snippet", "tokens", "SEAL, Table 4", decides="units"
    )
    num_snippets: core.Count = core.setting(
        224, "most snippets", source="SEAL, Table 4: arXiv", decides="units"
    )
    decode_length: core.TargetTokens = core.setting(
        768, "longest target and output", "tokens", "SEAL, Table 4: arXiv", decides="units"
    )
    size: _SealSize = core.setting(
        "stated", "stated | 223m: readings of SEAL §4; a width or depth given below has priority"
    )
    d_model: core.Width | None = core.setting(None, "width")
    d_ff: core.Width | None = core.setting(None, "width of the feed-forward layers")
    num_heads: core.Heads | None = core.setting(None, "heads of every attention", "heads")
    encoder_layers: core.Depth | None = core.setting(None, "depth of the encoder", "layers")
    decoder_layers: core.Depth | None = core.setting(None, "depth of the decoder", "layers")
    dropout: core.FractionBelowOne = core.setting(0.1, "dropout probability", source="SEAL §4")
    norm: _NormPosition = core.setting(
        "pre", "pre | post: position of LayerNorm; unstated in the paper"
    )
    tokenizer: core.Text = core.setting(
        "trained", "trained (byte-level BPE) | words (word level) | hub name or folder"
    )
    vocabulary_size: core.VocabularySize = core.setting(
        32_776, "size of a trained tokenizer's vocabulary", "entries", "SEAL §3"
    )
    init: core.Text = core.setting("random", "random, or the folder of a checkpoint of this system")
    sizes = _SIZES
    free_entries = frozenset({"max_position_embeddings"})  # sinusoids are computed
    capabilities = replace(NEURAL, gives_attention=True)

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions."""
        return {"max_position_embeddings": self.decode_length}


@dataclass
class TruncConfig(FamilyConfig):
    """Trunc: the leading snippets, truncated, through an ordinary Transformer (SEAL, 2020, §3.2)."""

    name: core.Text = core.setting("trunc", "name of the system")
    input_length: core.TokenCount = core.setting(
        1024, "longest input", "tokens", "SEAL, Table 4: L_ext", decides="units"
    )
    rank: core.RankerName = core.setting(
        "none", "none, or the ranker of snippets (longsumbench list rankers)", decides="units"
    )


@dataclass
class CAConfig(FamilyConfig):
    """CA: groups of snippets, each compressed to a few vectors (SEAL, 2020, §3.3)."""

    name: core.Text = core.setting("ca", "name of the system")
    extractive_length: core.TokenCount = core.setting(
        1024, "approximate number of all groups", "vectors", "SEAL, Table 4: L_ext"
    )
    group_size: core.Count = core.setting(
        4,
        "size of a group (k) of single documents; unstated in the paper",
        "snippets",
        decides="units",
    )
    compressed_length: core.TokenCount | None = core.setting(
        None, "length of a compressed group (c); null: extractive_length / most groups", "vectors"
    )
    max_documents: Documents = core.setting(
        128, "most groups of several documents; the rest joins the last", decides="units"
    )

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions, and of vectors of a group."""
        return {
            **super().model_entries(multi_document),
            "compressed_length": self.vectors_of_a_group(multi_document),
        }

    def vectors_of_a_group(self, multi_document: bool) -> int:
        """Return c: `compressed_length` if it is given, else max(1, ⌊extractive_length / the most groups possible⌋)."""
        groups = self.max_documents if multi_document else -(-self.num_snippets // self.group_size)
        return self.compressed_length or max(1, self.extractive_length // groups)


@dataclass
class EAConfig(FamilyConfig):
    """EA: snippets encoded alone and scored; the decoder attends to the best ones (SEAL, 2020, §3.4)."""

    name: core.Text = core.setting("ea", "name of the system")
    extractive_length: core.TokenCount = core.setting(
        1024,
        "total length of the selected snippets",
        "tokens",
        "SEAL, Table 4: L_ext",
        decides="use",
    )
    scorer_layers: core.Depth = core.setting(1, "depth of the scorer", "layers", "SEAL §5")
    max_documents: Documents = core.setting(
        128, "document embeddings; the rest shares the last", decides="units"
    )
    proxy_ngram: Order = core.setting(
        2, "1 | 2: n of the ROUGE-n of the proxy labels", source="SEAL, Table 3", decides="labels"
    )
    proxy_measure: _Measure = core.setting(
        "f1", "f1 | precision | recall, of it", source="SEAL, Table 3", decides="labels"
    )
    proxy_sequential: bool = core.setting(
        False, "label a greedily selected set 1", source="SEAL, Table 3", decides="labels"
    )

    capabilities = replace(
        FamilyConfig.capabilities, keeps_evidence=True, extracts=True, trains_scorer=True
    )

    def segment_of_target(self, target_length: int) -> int:
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

    def without_effect(self, train: core.Recipe, decode: core.Decoding) -> set[str]:
        """Return the settings that change nothing: extracts of a scorer that is trained alone select no snippets."""
        return (
            {"extractive_length"} if train.only == "scorer" and decode.mode == "extract" else set()
        )


@dataclass
class SealConfig(EAConfig):
    """SEAL: as EA, with a new selection of snippets for every segment of the output (SEAL, 2020, §3.5)."""

    name: core.Text = core.setting("seal", "name of the system")
    segment_length: core.TokenCount = core.setting(
        96, "length of a segment of the output", "tokens", "SEAL, Table 4: arXiv", decides="labels"
    )

    # Every segment has another memory.
    capabilities = replace(EAConfig.capabilities, gives_attention=False)

    def segment_of_target(self, target_length: int) -> int:
        """Return the length of a segment."""
        return self.segment_length

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.segment_length > self.decode_length:
            raise UsageError(
                f"model.segment_length={self.segment_length} is above model.decode_length={self.decode_length}:"
                " a segment is at most the whole summary (which makes SEAL EA)"
            )
