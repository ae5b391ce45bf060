"""Settings of the Hierarchical Transformer and the Flat Transformer (`model.*`)."""

from dataclasses import dataclass
from typing import Annotated

from longsumbench.api.bounds import Between, Count, Depth, Heads, OneOf, Text, TokenCount, Width
from longsumbench.api.config import check_network
from longsumbench.errors import UsageError
from longsumbench.modeling.ranked_systems import RankedConfig
from longsumbench.models.hierarchical_transformer.entities import available

_Graph = Annotated[str, OneOf("none", "similarity", "discourse")]
Entities = Annotated[str, OneOf("auto", "spacy", "capitals")]
_Fidelity = Annotated[str, OneOf("paper", "official")]
GlobalLayers = Annotated[int, Between(0, 1_000)]
_OFFICIAL_DECODER_LAYERS = 1  # default of the released code; the released checkpoint has 6, the default here


@dataclass
class TransformerConfig(RankedConfig):
    """Settings that the hierarchical and the flat encoder-decoder share."""

    d_model: Width = 256  # width (Hierarchical Transformer §4)
    d_ff: Width = 1024  # width of the feed-forward layers (Hierarchical Transformer §4)
    num_heads: Heads = 8  # heads of every attention, and of pooling
    encoder_layers: Depth = 5  # layers that encode every paragraph alone (Hierarchical Transformer §4)
    decoder_layers: Depth | None = None  # None: 6 (released checkpoint); fidelity=official: 1 (released default)
    fidelity: _Fidelity = "paper"  # paper (post-norm) | official (pre-norm, as the released code); see the card

    def __post_init__(self) -> None:
        super().__post_init__()
        check_network(self.d_model, self.num_heads, self.tokenizer, self.vocabulary_size)
        if self.decoder_layers is None:
            self.decoder_layers = _OFFICIAL_DECODER_LAYERS if self.fidelity == "official" else 6

    def dimension(self, name: Text) -> int:
        """Return the width or depth `name`."""
        size: int = getattr(self, name)
        return size


@dataclass
class HierarchicalTransformerConfig(TransformerConfig):
    """The Hierarchical Transformer: the best paragraphs read alone, then related (Liu and Lapata, 2019)."""

    name: Text = "hierarchical_transformer"
    num_paragraphs: Count = 24  # most paragraphs, without the title (L' of Hierarchical Transformer §4)
    test_num_paragraphs: Count | None = None  # for examples to summarize; None: as in training
    global_layers: GlobalLayers = 2  # layers that relate paragraphs; 0: "w/o GT" (Hierarchical Transformer, Table 3)
    pooling_heads: Heads | None = None  # heads of pooling and of paragraph attention; None: num_heads; 1: "w/o MP"
    paragraph_positions: bool = True  # positions include the paragraph's rank; false: "w/o PP"
    graph: _Graph = "none"  # none | similarity | discourse: replaces a head of every global layer (§3.2.4)
    entities: Entities = "auto"  # auto | spacy | capitals: entities of the discourse graph; auto: spaCy if installed
    spacy_model: Text = "en_core_web_sm"  # spaCy pipeline that finds entities: a package or a folder

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pooling_heads is None:
            self.pooling_heads = self.num_heads
        if self.d_model % self.pooling_heads:
            problem = f"cannot be shared equally by model.pooling_heads={self.pooling_heads}"
            raise UsageError(f"model.d_model={self.d_model} {problem}")
        if self.paragraph_positions and self.d_model % 4:
            reason = "half of it encodes the paragraph's rank, with as many sines as cosines"
            raise UsageError(f"model.d_model={self.d_model} is not a multiple of 4: {reason}")
        if self.graph != "none" and not self.global_layers:
            raise UsageError(f"model.graph={self.graph} needs a global layer, but model.global_layers=0")
        if self.entities == "auto":
            found = self.graph == "discourse" and available(self.spacy_model)
            self.entities = "spacy" if found else "capitals"


@dataclass
class FlatTransformerConfig(TransformerConfig):
    """The Flat Transformer: the best paragraphs joined and read as one text (Liu and Lapata, 2019)."""

    name: Text = "flat_transformer"
    input_length: TokenCount = 800  # most tokens read (Hierarchical Transformer, Table 2: 600, 800 and 1,200)
    encoder_layers: Depth = 6  # layers of the encoder (Hierarchical Transformer §4)
