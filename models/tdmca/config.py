"""Settings of T-DMCA (`model.*`)."""

from dataclasses import dataclass
from typing import Annotated

from longsumbench.api.bounds import Between, Heads, Text, TokenCount, Width
from longsumbench.api.config import check_network
from longsumbench.modeling.ranked_systems import RankedConfig

StackDepth = Annotated[int, Between(2, 1_000)]  # the second layer is the first that attends to the source


@dataclass
class TdmcaConfig(RankedConfig):
    """T-DMCA: decoder-only, memory-compressed attention, over the best paragraphs (Liu et al., 2018)."""

    name: Text = "tdmca"
    input_length: TokenCount = 3000  # most tokens read (Hierarchical Transformer, Table 2)
    d_model: Width = 512  # width (Hierarchical Transformer §4)
    d_ff: Width = 2048  # width of the feed-forward layers (Hierarchical Transformer §4)
    num_heads: Heads = 8  # heads of every attention
    num_layers: StackDepth = 5  # layers, alternately local and memory-compressed (Liu et al. 2018)
    block_length: TokenCount = 256  # most tokens that local attention sees (Liu et al. 2018)
    compression: TokenCount = 3  # tokens that memory-compressed attention merges into one (Liu et al. 2018)
    source_loss: bool = True  # also train to predict the source (Liu et al. 2018)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_network(self.d_model, self.num_heads, self.tokenizer, self.vocabulary_size)

    def dimension(self, name: Text) -> int:
        """Return the width or depth `name`; encoder and decoder are one stack."""
        size: int = self.num_layers if name.endswith("_layers") else getattr(self, name)
        return size
