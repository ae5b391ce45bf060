"""Settings of PageSum (`model.*`)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from longsumbench import core
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.neural_config import NEURAL, NeuralConfig

SIZES = {  # sizes of BART (PageSum §5.1 starts from the large one)
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
_ADOPTED = ("bart", "longsumbench-pagesum")  # model types whose checkpoints it can start from
_NUM_PAGES = 7  # PageSum §5.2
_PAGE_SIZE = 1_024  # PageSum §5.2
_MAX_INPUT_TOKENS = 4_096  # PageSum, Table 6
SPECIAL_TOKENS = 2  # of a page: its start and its end
_Locality = Annotated[str, core.OneOf("spatial", "discourse", "document")]
Decoder = Annotated[str, core.OneOf("page", "global")]
_Split = Annotated[str, core.OneOf("sentences", "tokens")]
_Released = Annotated[str, core.OneOf("default", "official")]
_BartSize = Annotated[str, core.OneOf(*SIZES)]
PageTokens = Annotated[int, core.Between(SPECIAL_TOKENS + 1, 10**7)]


@dataclass
class PageSumConfig(NeuralConfig):
    """PageSum: pages read and decoded separately, mixed by confidence; starts from BART (Liu et al., 2022)."""

    name: core.Text = core.setting("pagesum", "name of the system")
    locality: _Locality = core.setting(
        "spatial",
        "what a page holds: spatial (neighbours) | discourse (section) | document",
        decides="units",
    )
    decoding: Decoder = core.setting(
        "page", "page: each page predicts and has a weight | global: one decoder reads all"
    )
    split: _Split | None = core.setting(
        None,
        "spatial pages of: sentences | tokens; null: tokens if only sizes are set",
        decides="units",
    )
    num_pages: core.Count | None = core.setting(
        None,
        "number of pages with split=sentences; null: 7",
        "pages",
        "PageSum §5.2",
        decides="units",
    )
    page_size: PageTokens | None = core.setting(
        None,
        "longest page, with start and end; null: 1,024",
        "tokens",
        "PageSum §5.2",
        decides="units",
    )
    max_pages: core.Count = core.setting(
        8,
        "most pages (sections or documents) that are read",
        "pages",
        "PageSum §5.3",
        decides="units",
    )
    max_input_tokens: core.TokenCount | None = core.setting(
        None,
        "longest input with split=tokens; null: 4,096",
        "tokens",
        "PageSum, Table 6",
        decides="units",
    )
    decode_length: PageTokens = core.setting(
        400, "longest target and output", "tokens", decides="units"
    )
    fidelity: _Released = core.setting(
        "default",
        "variant: default | official (as the released code, see the card)",
        decides="units",
    )
    init: core.Text = core.setting(
        "facebook/bart-large-cnn",
        "initial weights: a BART checkpoint (hub name or folder), or random",
    )
    size: _BartSize = core.setting(
        "large", "base | large, of init=random; a width or depth given below has priority"
    )
    d_model: core.Width | None = core.setting(None, "width")
    d_ff: core.Width | None = core.setting(None, "width of the feed-forward layers")
    num_heads: core.Heads | None = core.setting(None, "heads of every attention", "heads")
    encoder_layers: core.Depth | None = core.setting(None, "depth of the encoder", "layers")
    decoder_layers: core.Depth | None = core.setting(None, "depth of the decoder", "layers")
    dropout: core.FractionBelowOne = core.setting(0.1, "dropout probability", source="BART")
    tokenizer: core.Text = core.setting(
        "trained",
        "tokenizer with init=random: trained (byte-level BPE) | words | hub name or folder",
    )
    vocabulary_size: core.VocabularySize = core.setting(
        32_776, "size of a trained tokenizer's vocabulary", "entries"
    )
    sizes = SIZES

    def __post_init__(self) -> None:
        sizes_alone = self.num_pages is None and not (
            self.page_size is None and self.max_input_tokens is None
        )
        if self.split is None:
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
            pages = "max_input_tokens / page_size pages; if a scale or recipe sets num_pages, add model.num_pages=null"
            raise UsageError(
                f"model.num_pages goes with split=sentences; split=tokens makes {pages}"
            )
        self.max_input_tokens = self.max_input_tokens or _MAX_INPUT_TOKENS
        if self.max_input_tokens < page_size:
            limit = f"model.max_input_tokens={self.max_input_tokens} is below model.page_size={page_size}"
            raise UsageError(f"{limit}: no page would fit; choose a smaller model.page_size")

    def _settle_sentences(self) -> None:
        if self.max_input_tokens is not None:
            limit = f"model.max_input_tokens={self.max_input_tokens} goes with split=tokens"
            raise UsageError(
                f"{limit}; here page_size and num_pages (or max_pages) limit the input"
            )
        self.num_pages = (self.num_pages or _NUM_PAGES) if self.locality == "spatial" else None

    @property
    def capabilities(self) -> core.Capabilities:
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
        described = checkpoints.read_config(folder)
        with checkpoints.reading_checkpoint(f"model.init={folder}"):
            if (kind := described["model_type"]) not in _ADOPTED:
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
        sizes = {name: settings[name] for name in SIZES["large"] if settings[name] is not None}
        stored = {name: described[_LIBRARY_NAMES.get(name, name)] for name in sizes}
        if unlike := [name for name, size in sizes.items() if size != stored[name]]:
            name, nulls = unlike[0], " ".join(f"model.{name}=null" for name in unlike)
            remedy = f"leave it out, or, if a scale sets it, add {nulls}"
            raise UsageError(
                f"model.{name}={sizes[name]}, but model.init={self.init} has {stored[name]}: {remedy}"
            )

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
