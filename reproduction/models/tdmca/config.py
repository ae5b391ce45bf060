"""Settings of T-DMCA (`model.*`)."""

from dataclasses import dataclass
from typing import Annotated

from longsumbench.core import Between, Heads, Text, TokenCount, Width, setting
from longsumbench.modeling.neural_config import RankedConfig

# The second layer is the first that attends to the source.
StackDepth = Annotated[int, Between(2, 1_000)]


@dataclass
class TdmcaConfig(RankedConfig):
    """T-DMCA: decoder-only, memory-compressed attention, over the best paragraphs (Liu et al., 2018)."""

    name: Text = setting("tdmca", "name of the system")
    input_length: TokenCount = setting(
        3000, "longest input", "tokens", "as in Liu and Lapata 2019", decides="units"
    )
    d_model: Width = setting(512, "width", source="Hierarchical Transformer §4")
    d_ff: Width = setting(
        2048, "width of the feed-forward layers", source="Hierarchical Transformer §4"
    )
    num_heads: Heads = setting(8, "heads of every attention", "heads")
    num_layers: StackDepth = setting(
        5, "alternately local and memory-compressed", "layers", "Liu et al. 2018"
    )
    block_length: TokenCount = setting(
        256, "width of a block of local attention", "tokens", "Liu et al. 2018"
    )
    compression: TokenCount = setting(
        3, "number of tokens that compressed attention merges into one", "tokens", "Liu et al. 2018"
    )
    source_loss: bool = setting(
        True, "also train to predict the source", source="Liu et al. 2018", decides="use"
    )

    def dimension(self, name: Text) -> int:
        """Return the width or depth `name`; encoder and decoder are one stack."""
        return self.num_layers if name.endswith("_layers") else super().dimension(name)
