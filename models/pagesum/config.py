"""Settings of PageSum (`model.*`)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from longsumbench.core import (
    Between,
    Capabilities,
    Count,
    Depth,
    FractionBelowOne,
    Heads,
    OneOf,
    Text,
    TokenCount,
    VocabularySize,
    Width,
    setting,
)
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.checkpoint_files import read_config
from longsumbench.modeling.neural_config import NEURAL, NeuralConfig

# Sizes of BART (PageSum §5.1 starts from the large one).
SIZES = {
    "base": {
        "d_model": 768,
        "d_ff": 3072,
        "num_heads": 12,
        "encoder_layers": 6,
        "decoder_layers": 6,
    },
    "large": {
        "d_model": 1024,
        "d_ff": 4096,
        "num_heads": 16,
        "encoder_layers": 12,
        "decoder_layers": 12,
    },
}
_LIBRARY_NAMES = {"d_ff": "encoder_ffn_dim", "num_heads": "encoder_attention_heads"}
# Model types whose checkpoints it can start from.
_ADOPTED = ("bart", "longsumbench-pagesum")
_NUM_PAGES = 7  # PageSum §5.2
_PAGE_SIZE = 1_024  # PageSum §5.2
_MAX_INPUT_TOKENS = 4_096  # PageSum, Table 6
# Of a page: its start and its end.
SPECIAL_TOKENS = 2
_Locality = Annotated[str, OneOf("spatial", "discourse", "document")]
Decoder = Annotated[str, OneOf("page", "global")]
_Split = Annotated[str, OneOf("sentences", "tokens")]
_Released = Annotated[str, OneOf("default", "official")]
_BartSize = Annotated[str, OneOf(*SIZES)]
PageTokens = Annotated[int, Between(SPECIAL_TOKENS + 1, 10**7)]


@dataclass
class PageSumConfig(NeuralConfig):
    """PageSum: pages read and decoded separately, mixed by confidence; starts from BART (Liu et al., 2022)."""

    name: Text = setting("pagesum", "name of the system")
    locality: _Locality = setting(
        "spatial",
        "what a page holds: spatial (neighbours) | discourse (section) | document",
        decides="units",
    )
    decoding: Decoder = setting(
        "page", "page: each page predicts and has a weight | global: one decoder reads all"
    )
    split: _Split | None = setting(
        None,
        "spatial pages of: sentences | tokens; null: tokens if only sizes are set",
        decides="units",
    )
    num_pages: Count | None = setting(
        None,
        "number of pages with split=sentences; null: 7",
        "pages",
        "PageSum §5.2",
        decides="units",
    )
    page_size: PageTokens | None = setting(
        None,
        "longest page, with start and end; null: 1,024",
        "tokens",
        "PageSum §5.2",
        decides="units",
    )
    max_pages: Count = setting(
        8,
        "most pages (sections or documents) that are read",
        "pages",
        "PageSum §5.3",
        decides="units",
    )
    max_input_tokens: TokenCount | None = setting(
        None,
        "longest input with split=tokens; null: 4,096",
        "tokens",
        "PageSum, Table 6",
        decides="units",
    )
    decode_length: PageTokens = setting(400, "longest target and output", "tokens", decides="units")
    fidelity: _Released = setting(
        "default",
        "variant: default | official (as the released code, see the card)",
        decides="units",
    )
    init: Text = setting(
        "facebook/bart-large-cnn",
        "initial weights: a BART checkpoint (hub name or folder), or random",
    )
    size: _BartSize = setting(
        "large", "base | large, of init=random; a width or depth given below has priority"
    )
    d_model: Width | None = setting(None, "width")
    d_ff: Width | None = setting(None, "width of the feed-forward layers")
    num_heads: Heads | None = setting(None, "heads of every attention", "heads")
    encoder_layers: Depth | None = setting(None, "depth of the encoder", "layers")
    decoder_layers: Depth | None = setting(None, "depth of the decoder", "layers")
    dropout: FractionBelowOne = setting(0.1, "dropout probability", source="BART")
    tokenizer: Text = setting(
        "trained",
        "tokenizer with init=random: trained (byte-level BPE) | words | hub name or folder",
    )
    vocabulary_size: VocabularySize = setting(
        32_776, "size of a trained tokenizer's vocabulary", "entries"
    )
    sizes = SIZES

    def __post_init__(self) -> None:
        if self.split is None:
            sizes_alone = self.num_pages is None and (self.page_size or self.max_input_tokens)
            self.split = "tokens" if self.locality == "spatial" and sizes_alone else "sentences"
        self.page_size = self.page_size or _PAGE_SIZE
        if self.split == "tokens":
            self._settle_tokens(self.page_size)
        else:
            self._settle_sentences()
        if self.init == "random":
            super().__post_init__()
        elif self.size != "large":
            raise UsageError(
                f"model.size={self.size} goes with model.init=random: a checkpoint fixes the size"
            )

    def _settle_tokens(self, page_size: int) -> None:
        if self.locality != "spatial":
            raise UsageError(
                f"model.split=tokens goes with locality=spatial, not with {self.locality}"
            )
        if self.num_pages is not None:
            raise UsageError(
                "model.num_pages goes with split=sentences; split=tokens makes max_input_tokens / page_size pages; if a"
                " scale or recipe sets num_pages, add model.num_pages=null"
            )
        self.max_input_tokens = self.max_input_tokens or _MAX_INPUT_TOKENS
        if self.max_input_tokens < page_size:
            raise UsageError(
                f"model.max_input_tokens={self.max_input_tokens} is below model.page_size={page_size}: no page would fit;"
                " choose a smaller model.page_size"
            )

    def _settle_sentences(self) -> None:
        if self.max_input_tokens is not None:
            raise UsageError(
                f"model.max_input_tokens={self.max_input_tokens} goes with split=tokens; here page_size and num_pages"
                " (or max_pages) limit the input"
            )
        self.num_pages = (self.num_pages or _NUM_PAGES) if self.locality == "spatial" else None

    @property
    def capabilities(self) -> Capabilities:
        """Pages that are decoded alone have confidences, which are evidence; a global decoder has one memory."""
        by_page = self.decoding == "page"
        return replace(
            NEURAL,
            keeps_evidence=by_page,
            keeps_reference_evidence=True,
            extracts=by_page,
            gives_attention=not by_page,
        )

    def initial_folder(self) -> Path | None:
        """Return the folder of the initial checkpoint, fetched from the hub if it is there; None: random weights."""
        if self.init == "random":
            return None
        try:
            folder = checkpoints.model_folder(self.init, "model.init")
        except EnvironmentProblem as problem:
            raise EnvironmentProblem(
                f"{problem}, or start at random: model.init=random"
            ) from problem
        described = read_config(folder)
        with checkpoints.reading_checkpoint(f"model.init={folder}"):
            kind = described["model_type"]
            if kind not in _ADOPTED:
                adopted = " or ".join(_ADOPTED)
                raise UsageError(
                    f"model.init={self.init} is a checkpoint of '{kind}', not of {adopted}"
                )
            self._check_start(described)
        return folder

    def _check_start(self, described: dict[str, Any]) -> None:
        """Check page size, target length and the given widths and depths against a checkpoint."""
        positions = described["max_position_embeddings"]
        if described.get("tie_word_embeddings") is False:
            raise UsageError(
                f"model.init={self.init} has untied embeddings, but PageSum needs tied ones"
            )
        settings = vars(self)
        for name in ("page_size", "decode_length"):
            if settings[name] > positions:
                raise UsageError(
                    f"model.{name}={settings[name]}: model.init={self.init} has only {positions} positions"
                )
        names = {name: _LIBRARY_NAMES.get(name, name) for name in SIZES["large"]}
        self.check_given_sizes({name: described[stored] for name, stored in names.items()})

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions, and whether training is as in the released code."""
        positions = max(self.page_size or 0, self.decode_length)
        return {"max_position_embeddings": positions, "official": self.fidelity == "official"}

    @property
    def text_length(self) -> int:
        """The most tokens of text on a page."""
        return (self.page_size or _PAGE_SIZE) - SPECIAL_TOKENS

    @property
    def most_pages(self) -> int:
        """The most pages of a text."""
        if self.split == "tokens":
            return (self.max_input_tokens or _MAX_INPUT_TOKENS) // (self.page_size or _PAGE_SIZE)
        return self.max_pages if self.num_pages is None else self.num_pages
