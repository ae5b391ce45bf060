"""Settings of the SEAL family (`model.*`)."""

from dataclasses import dataclass

from longsumbench import registry
from longsumbench.configuration import allowed, at_least, share
from longsumbench.errors import UsageError

# SEAL §4: "stated" is what the text says (35.7M parameters with tied embeddings, about 39M with SEAL's scorer); "223m"
# is the reading under which its count of 223M works out (12 + 12 layers, d 768, d_ff 3072).
SIZES = {
    "stated": {"d_model": 512, "d_ff": 512, "num_heads": 8, "encoder_layers": 2, "decoder_layers": 6},
    "223m": {"d_model": 768, "d_ff": 3072, "num_heads": 12, "encoder_layers": 12, "decoder_layers": 12},
}


SMALLEST_VOCABULARY = 260  # 256 bytes and four special entries: below it a trained tokenizer cannot spell every text


@dataclass
class TruncConfig:
    """Trunc (SEAL §3.2): the leading snippets, joined, cut, and read by an ordinary Transformer."""

    name: str = "trunc"
    input_length: int = 1024  # tokens the encoder reads (SEAL, Table 4: L_ext of the others)
    snippet_length: int = 128  # tokens of a snippet at most (SEAL, Table 4)
    num_snippets: int = 224  # snippets at most (SEAL, Table 4: arXiv)
    decode_length: int = 768  # target and output tokens at most (SEAL, Table 4: arXiv)
    rank: str = "none"  # none | tfidf | title: snippets ranked by similarity with the title, for search results
    size: str = "stated"  # stated | 223m: see SIZES; a width or depth below, when given, goes before it
    d_model: int | None = None  # width
    d_ff: int | None = None  # width of the feed-forward layers
    num_heads: int | None = None  # of every attention
    encoder_layers: int | None = None  # depth of the encoder
    decoder_layers: int | None = None  # depth of the decoder
    dropout: float = 0.1  # SEAL §4
    norm: str = "pre"  # pre | post: where LayerNorm stands; unstated in the paper
    tokenizer: str = "trained"  # trained: byte-level BPE of the training split; else a Hugging Face name or folder
    vocabulary_size: int = 32_776  # of a trained tokenizer (SEAL §3)
    init: str = "random"  # random, or the folder of a checkpoint of this system

    def __post_init__(self) -> None:
        allowed("model.size", self.size, tuple(SIZES))
        allowed("model.norm", self.norm, ("pre", "post"))
        allowed("model.rank", self.rank, ("none", *registry.rankers.targets()))
        for name in ("input_length", "snippet_length", "num_snippets", *SIZES[self.size]):
            at_least(f"model.{name}", getattr(self, name), 1)
        at_least("model.decode_length", self.decode_length, 2)
        share("model.dropout", self.dropout)
        if self.tokenizer == "trained":
            at_least("model.vocabulary_size", self.vocabulary_size, SMALLEST_VOCABULARY)
        width, heads = self.dimension("d_model"), self.dimension("num_heads")
        if width % heads:
            raise UsageError(f"model.d_model={width} cannot be shared equally by model.num_heads={heads}")

    def dimension(self, name: str) -> int:
        """Return a width or depth: the field when given, else what `size` says."""
        given: int | None = getattr(self, name)
        return SIZES[self.size][name] if given is None else given
