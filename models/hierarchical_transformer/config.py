"""Settings of the Hierarchical Transformer and the Flat Transformer (`model.*`)."""

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from longsumbench.core import (
    Between,
    Count,
    Depth,
    Heads,
    OneOf,
    Text,
    TokenCount,
    Width,
    collect_defaults,
    setting,
)
from longsumbench.core.registry import Registry
from longsumbench.errors import UsageError
from longsumbench.modeling.neural_config import NEURAL, RankedConfig

if TYPE_CHECKING:
    from longsumbench.models.hierarchical_transformer.graphs import ParagraphGraph

graphs = Registry(  # of classes that inherit `graphs.ParagraphGraph`
    "graph",
    "longsumbench.graphs",
    MappingProxyType(
        {"similarity": "longsumbench.models.hierarchical_transformer.graphs:SimilarityGraph"}
    ),
)
_Graph = Annotated[str, OneOf("none", more=lambda: graphs.targets())]
Entities = Annotated[str, OneOf("auto", "spacy", "capitals")]
_NormOrder = Annotated[str, OneOf("paper", "official")]
GlobalLayers = Annotated[int, Between(0, 1_000)]
_PAPER = "Hierarchical Transformer §4"
# Default of the released code; the released checkpoint has 6, the default here.
_OFFICIAL_DECODER_LAYERS = 1


@dataclass
class TransformerConfig(RankedConfig):
    """Settings that the hierarchical and the flat encoder-decoder share."""

    d_model: Width | None = setting(
        256, "width; null, or the default: that of a pretrained encoder", source=_PAPER
    )
    d_ff: Width = setting(1024, "width of the feed-forward layers", source=_PAPER)
    num_heads: Heads = setting(8, "heads of every attention, and of pooling", "heads")
    encoder_layers: Depth | None = setting(
        5, "depth of the encoder of single paragraphs; null as d_model", "layers", _PAPER
    )
    decoder_layers: Depth | None = setting(
        None, "null: 6 (released checkpoint), or 1 (official default)", "layers"
    )
    init: Text = setting(
        "random",
        "random, a checkpoint of this system, or an encoder of transformers (hub name or folder)",
    )
    fidelity: _NormOrder = setting(
        "paper", "paper (post-norm) | official (pre-norm), see the card", decides="units"
    )

    capabilities = replace(NEURAL, gives_attention=True)

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return whether the model is as in the released code."""
        return {"official": self.fidelity == "official"}

    def __post_init__(self) -> None:
        defaults, has_encoder = collect_defaults(type(self)), self.starts_from_encoder()
        for name in ("d_model", "encoder_layers"):
            if vars(self)[name] in (None, defaults[name]):  # not given
                setattr(self, name, None if has_encoder else defaults[name])
        super().__post_init__()
        if self.decoder_layers is None:
            self.decoder_layers = _OFFICIAL_DECODER_LAYERS if self.fidelity == "official" else 6


@dataclass
class HierarchicalTransformerConfig(TransformerConfig):
    """The Hierarchical Transformer: the best paragraphs read alone, then related (Liu and Lapata, 2019)."""

    name: Text = setting("hierarchical_transformer", "name of the system")
    num_paragraphs: Count = setting(
        24, "best paragraphs read (L')", "paragraphs", _PAPER, decides="units"
    )
    test_num_paragraphs: Count | None = setting(
        None, "num_paragraphs of examples to summarize", decides="summaries"
    )
    global_layers: GlobalLayers = setting(
        2, "number of layers that relate paragraphs; 0: w/o GT of Table 3", "layers", _PAPER
    )
    pooling_heads: Heads | None = setting(
        None, "heads of the pooling; null: num_heads; 1: w/o MP of Table 3", "heads"
    )
    paragraph_positions: bool = setting(
        True, "positions include the paragraph's rank; false: w/o PP of Table 3"
    )
    graph: _Graph = setting(
        "none",
        "none | similarity | discourse: replaces a head of global layers (§3.2.4)",
        decides="units",
    )
    entities: Entities = setting(
        "auto",
        "entities of the graph: spacy | capitals | auto: spaCy if installed",
        decides="units",
    )
    spacy_model: Text = setting(
        "en_core_web_sm", "finds entities: a package or a folder", decides="units"
    )

    encoder_lengths = ("paragraph_length",)
    # The attention to paragraphs is evidence, and chooses sentences to copy.
    capabilities = replace(TransformerConfig.capabilities, keeps_evidence=True, extracts=True)

    def reading_identity(self) -> dict[str, Any]:
        """Return the learned ranker, and what decides the graph."""
        graph = self.paragraph_graph()
        return {**super().reading_identity(), **(graph.identity() if graph else {})}

    def paragraph_graph(self) -> "ParagraphGraph | None":
        """Return the graph between paragraphs, if there is one."""
        return (
            None
            if self.graph == "none"
            else graphs.load(self.graph)(self.entities, self.spacy_model)
        )

    def __post_init__(self) -> None:
        if self.pooling_heads is None:
            self.pooling_heads = self.num_heads
        super().__post_init__()
        if self.graph != "none" and not self.global_layers:
            raise UsageError(
                f"model.graph={self.graph} needs a global layer, but model.global_layers=0"
            )
        if self.entities == "auto":
            graph = self.paragraph_graph()
            self.entities = graph.default_entities() if graph else "capitals"

    def check_width(self, width: int) -> None:
        """As NeuralConfig, also for the heads of pooling and the positions of ranks."""
        super().check_width(width)
        assert self.pooling_heads is not None
        if width % self.pooling_heads:
            problem = f"cannot be shared equally by model.pooling_heads={self.pooling_heads}"
            raise UsageError(f"model.d_model={width} {problem}")
        if self.paragraph_positions and width % 4:
            reason = "half of it encodes the paragraph's rank, with as many sines as cosines"
            raise UsageError(f"model.d_model={width} is not a multiple of 4: {reason}")


@dataclass
class FlatTransformerConfig(TransformerConfig):
    """The Flat Transformer: the best paragraphs joined and read as one text (Liu and Lapata, 2019)."""

    name: Text = setting("flat_transformer", "name of the system")
    input_length: TokenCount = setting(
        800, "longest input", "tokens", "Hierarchical Transformer, Table 2", decides="units"
    )
    encoder_layers: Depth | None = setting(
        6, "depth of the encoder; null as d_model", "layers", _PAPER
    )
    encoder_lengths = ("input_length", "test_input_length")

    def model_entries(self, multi_document: bool) -> dict[str, Any]:
        """Return that the model has no global layers, and positions of tokens alone."""
        return {
            **super().model_entries(multi_document),
            "global_layers": 0,
            "paragraph_positions": False,
        }
