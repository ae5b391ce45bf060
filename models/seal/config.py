"""Settings of the SEAL family (`model.*`)."""

from dataclasses import dataclass
from typing import Annotated

from longsumbench.api.bounds import (
    Between,
    Count,
    Depth,
    FractionBelowOne,
    Heads,
    OneOf,
    TargetTokens,
    Text,
    TokenCount,
    VocabularySize,
    Width,
    check_settings,
)
from longsumbench.api.config import RankerName, check_network
from longsumbench.errors import UsageError
from longsumbench.rouge.all_pairs import PAIR_MEASURES

# SEAL §4: "stated" is as in the text (35.7M parameters with tied embeddings, about 39M with SEAL's scorer); "223m" is
# the reading that explains its count of 223M (12 + 12 layers, d 768, d_ff 3072).
_SIZES = {
    "stated": {"d_model": 512, "d_ff": 512, "num_heads": 8, "encoder_layers": 2, "decoder_layers": 6},
    "223m": {"d_model": 768, "d_ff": 3072, "num_heads": 12, "encoder_layers": 12, "decoder_layers": 12},
}
_Size = Annotated[str, OneOf(*_SIZES)]
_Norm = Annotated[str, OneOf("pre", "post")]
Documents = Annotated[int, Between(1, 10**6)]
Order = Annotated[int, Between(1, 2)]  # n of ROUGE-n
_Measure = Annotated[str, OneOf(*PAIR_MEASURES)]


@dataclass
class FamilyConfig:
    """Settings that the systems of the family share."""

    name: Text = ""  # name of the system
    snippet_length: TokenCount = 128  # most tokens of a snippet (SEAL, Table 4)
    num_snippets: Count = 224  # most snippets (SEAL, Table 4: arXiv)
    decode_length: TargetTokens = 768  # most tokens of a target and of an output (SEAL, Table 4: arXiv)
    size: _Size = "stated"  # stated | 223m: two readings of SEAL §4; a width or depth given below has priority
    d_model: Width | None = None  # width
    d_ff: Width | None = None  # width of the feed-forward layers
    num_heads: Heads | None = None  # heads of every attention
    encoder_layers: Depth | None = None  # depth of the encoder
    decoder_layers: Depth | None = None  # depth of the decoder
    dropout: FractionBelowOne = 0.1  # dropout probability (SEAL §4)
    norm: _Norm = "pre"  # pre | post: position of LayerNorm; unstated in the paper
    tokenizer: Text = "trained"  # trained (byte-level BPE) | words (word level) | a Hugging Face name or folder
    vocabulary_size: VocabularySize = 32_776  # entries of a trained tokenizer (SEAL §3)
    init: Text = "random"  # random, or the folder of a checkpoint of this system

    def __post_init__(self) -> None:
        check_settings(self, "model.")
        width, heads = self.dimension("d_model"), self.dimension("num_heads")
        check_network(width, heads, self.tokenizer, self.vocabulary_size)

    def dimension(self, name: Text) -> int:
        """Return a width or depth: the field if it is given, else that of `size`."""
        given: int | None = getattr(self, name)
        return _SIZES[self.size][name] if given is None else given


@dataclass
class TruncConfig(FamilyConfig):
    """Trunc: the leading snippets, truncated, through an ordinary Transformer (SEAL, 2020, §3.2)."""

    name: Text = "trunc"
    input_length: TokenCount = 1024  # most tokens the encoder reads (SEAL, Table 4: L_ext of the others)
    rank: RankerName = "none"  # none | tfidf | title | lexrank | lstm: ranks snippets (longsumbench list rankers)


@dataclass
class CAConfig(FamilyConfig):
    """CA: groups of snippets, each compressed to a few vectors (SEAL, 2020, §3.3)."""

    name: Text = "ca"
    extractive_length: TokenCount = 1024  # approximate number of vectors of all groups (SEAL, Table 4: L_ext)
    group_size: Count = 4  # snippets of a group, of single documents (k; unstated in the paper)
    compressed_length: TokenCount | None = None  # vectors of a group (c); None: extractive_length / most groups
    max_documents: Documents = 128  # most groups of a multi-document example; the rest joins the last group

    def vectors_of_a_group(self, multi_document: bool) -> int:
        """Return c: `compressed_length` if it is given, else max(1, ⌊extractive_length / the most groups possible⌋)."""
        groups = self.max_documents if multi_document else -(-self.num_snippets // self.group_size)
        return self.compressed_length or max(1, self.extractive_length // groups)


@dataclass
class EAConfig(FamilyConfig):
    """EA: snippets encoded alone and scored; the decoder attends to the best ones (SEAL, 2020, §3.4)."""

    name: Text = "ea"
    extractive_length: TokenCount = 1024  # most tokens of the selected snippets (SEAL, Table 4: L_ext)
    scorer_layers: Depth = 1  # depth of the scorer (SEAL §5)
    max_documents: Documents = 128  # document embeddings of multi-document examples; the rest share the last
    proxy_ngram: Order = 2  # 1 | 2: n of the ROUGE-n of the proxy labels (SEAL, Table 3)
    proxy_measure: _Measure = "f1"  # f1 | precision | recall: measure of that ROUGE-n (SEAL, Table 3)
    proxy_sequential: bool = False  # True: label a greedily selected set of snippets 1, the rest 0 (SEAL, Table 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.extractive_length < self.snippet_length:
            raise UsageError(
                f"model.extractive_length={self.extractive_length} is below model.snippet_length={self.snippet_length}:"
                " no snippet would fit"
            )


@dataclass
class SealConfig(EAConfig):
    """SEAL: as EA, with a new selection of snippets for every segment of the output (SEAL, 2020, §3.5)."""

    name: Text = "seal"
    segment_length: TokenCount = 96  # tokens of a segment of the output (SEAL, Table 4: arXiv)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.segment_length > self.decode_length:
            raise UsageError(
                f"model.segment_length={self.segment_length} is above model.decode_length={self.decode_length}:"
                " a segment is at most the whole summary (which makes SEAL EA)"
            )
