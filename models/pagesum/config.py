"""Settings of PageSum (`model.*`)."""

from dataclasses import dataclass
from typing import Annotated

from longsumbench.api.bounds import (
    Between,
    Count,
    Depth,
    FractionBelowOne,
    Heads,
    OneOf,
    Text,
    TokenCount,
    VocabularySize,
    Width,
    check_settings,
)
from longsumbench.api.config import check_network
from longsumbench.errors import UsageError

SIZES = {  # of BART (PageSum §5.1 starts from the large one)
    "base": {"d_model": 768, "d_ff": 3072, "num_heads": 12, "encoder_layers": 6, "decoder_layers": 6},
    "large": {"d_model": 1024, "d_ff": 4096, "num_heads": 16, "encoder_layers": 12, "decoder_layers": 12},
}
_NUM_PAGES = 7  # PageSum §5.2
_PAGE_SIZE = 1_024  # PageSum §5.2
_MAX_INPUT_TOKENS = 4_096  # PageSum, Table 6
SPECIAL_TOKENS = 2  # of a page: where it starts and ends
_Locality = Annotated[str, OneOf("spatial", "discourse", "document")]
Decoder = Annotated[str, OneOf("page", "global")]
_Split = Annotated[str, OneOf("sentences", "tokens")]
_Fidelity = Annotated[str, OneOf("default", "official")]
_Size = Annotated[str, OneOf(*SIZES)]
PageTokens = Annotated[int, Between(SPECIAL_TOKENS + 1, 10**7)]


@dataclass
class PageSumConfig:
    """PageSum: pages read and decoded apart, mixed by their confidence; starts from BART (Liu et al., 2022)."""

    name: Text = "pagesum"  # as it is registered
    locality: _Locality = (
        "spatial"  # spatial: pages of neighbouring sentences | discourse: of a section | document (§3)
    )
    decoding: Decoder = "page"  # page: every page predicts, and is weighed | global: one decoder reads all (Table 7)
    split: _Split | None = None  # spatial pages: of sentences | tokens (Table 6); null: tokens if only sizes are set
    num_pages: Count | None = None  # spatial pages of sentences; null: 7 (§5.2)
    page_size: PageTokens | None = None  # tokens of a page at most, two special ones among them; null: 1,024 (§5.2)
    max_pages: Count = 8  # sections or documents at most; later ones are left out (§5.3)
    max_input_tokens: TokenCount | None = None  # of split=tokens, so many / page_size pages; null: 4,096 (Table 6)
    decode_length: PageTokens = 400  # target and output tokens at most
    fidelity: _Fidelity = "default"  # default | official: as the release does it, see the card
    init: Text = "facebook/bart-large-cnn"  # a BART checkpoint: its name on the hub, or a folder; or random
    size: _Size = "large"  # base | large, of init=random; a width or depth below, when given, goes before it
    d_model: Width | None = None  # width
    d_ff: Width | None = None  # width of the feed-forward layers
    num_heads: Heads | None = None  # of every attention
    encoder_layers: Depth | None = None  # depth of the encoder
    decoder_layers: Depth | None = None  # depth of the decoder
    dropout: FractionBelowOne = 0.1  # as BART
    tokenizer: Text = "trained"  # of init=random: trained (byte-level BPE) | words | a Hugging Face name or folder
    vocabulary_size: VocabularySize = 32_776  # of a trained tokenizer

    def __post_init__(self) -> None:
        check_settings(self, "model.")
        sizes_alone = self.num_pages is None and not (self.page_size is None and self.max_input_tokens is None)
        if self.split is None:
            self.split = "tokens" if self.locality == "spatial" and sizes_alone else "sentences"
        self.page_size = self.page_size or _PAGE_SIZE
        if self.split == "tokens":
            self._settle_tokens(self.page_size)
        else:
            self._settle_sentences()
        if self.init == "random":
            width, heads = self.dimension("d_model"), self.dimension("num_heads")
            check_network(width, heads, self.tokenizer, self.vocabulary_size)
        elif self.size != "large":
            raise UsageError(f"model.size={self.size} goes with model.init=random: a checkpoint has a size of its own")

    def _settle_tokens(self, page_size: int) -> None:
        if self.locality != "spatial":
            raise UsageError(f"model.split=tokens goes with locality=spatial, not with {self.locality}")
        if self.num_pages is not None:
            told = "max_input_tokens / page_size pages; where a scale or recipe gives it, model.num_pages=null"
            raise UsageError(f"model.num_pages goes with split=sentences: of tokens, {told}")
        self.max_input_tokens = self.max_input_tokens or _MAX_INPUT_TOKENS
        if self.max_input_tokens < page_size:
            given = f"model.max_input_tokens={self.max_input_tokens} is below model.page_size={page_size}"
            raise UsageError(f"{given}: not even one page would fit; give a smaller model.page_size")

    def _settle_sentences(self) -> None:
        if self.max_input_tokens is not None:
            given = f"model.max_input_tokens={self.max_input_tokens} goes with split=tokens"
            raise UsageError(f"{given}: here page_size and num_pages (or max_pages) say how much is read")
        self.num_pages = (self.num_pages or _NUM_PAGES) if self.locality == "spatial" else None

    @property
    def text_length(self) -> int:
        """Tokens of text that a page holds at most."""
        return (self.page_size or _PAGE_SIZE) - SPECIAL_TOKENS

    @property
    def most_pages(self) -> int:
        """How many pages a text has at most."""
        if self.split == "tokens":
            return (self.max_input_tokens or _MAX_INPUT_TOKENS) // (self.page_size or _PAGE_SIZE)
        return self.max_pages if self.num_pages is None else self.num_pages

    def dimension(self, name: str) -> int:
        """Return a width or depth of a network that starts at random: the field when given, else what `size` says."""
        given: int | None = getattr(self, name)
        return SIZES[self.size][name] if given is None else given
