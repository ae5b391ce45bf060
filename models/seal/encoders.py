"""The encoders of CA, EA and SEAL: CA compresses groups of snippets; EA and SEAL keep snippets separate for selection.

Letters: B examples, U units, r a few units, L unit tokens, N real tokens of the batch, D width.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PegasusConfig

from longsumbench.modeling.nn.unit_encoder import TokenTable, UnitEncoder
from longsumbench.models.seal.scorer import Scorer


class Compressor(UnitEncoder):
    """As UnitEncoder, except: it keeps only `compressed_length` vectors of every group of snippets (SEAL §3.3).

    As many learned vectors precede the group's tokens, without positions. The vectors and the tokens attend to each
    other; the final states of the vectors are the group's memory.
    """

    def __init__(self, config: PegasusConfig) -> None:
        super().__init__(config, config.norm == "pre")
        self.vectors = nn.Embedding(config.compressed_length, config.d_model)

    def read(self, input_ids: Tensor, mask: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Compress a few groups: [r, L] → [r · compressed_length, D]."""
        count = self.vectors.num_embeddings
        learned = (self.vectors.weight * self.embed_scale).expand(len(input_ids), -1, -1)
        states = torch.cat([learned, self.embed(input_ids, places)], 1)  # [r, c + L, D]
        states = self.run_layers(states, F.pad(mask, (count, 0), value=True))
        vectors, sizes = states[:, :count].flatten(0, 1), torch.full((len(mask),), count, device=mask.device)
        return vectors, sizes, self.pool(states[:, count:], mask)


class Extractor(UnitEncoder):
    """As UnitEncoder, except: it has the scorer and pools every snippet; decoding selects the snippets."""

    def __init__(self, config: PegasusConfig, looks_back: bool = False) -> None:
        super().__init__(config, config.norm == "pre")
        self.scorer = Scorer(config, looks_back)

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """Pool a unit: [r, L, D] → [r, D]."""
        pooled: Tensor = self.scorer.pooling(states, mask)
        return pooled

    def forward(  # type: ignore[override]  # it selects no memory yet
        self, input_ids: Tensor, unit_mask: Tensor, unit_documents: Tensor, **kwargs: Any
    ) -> TokenTable:
        """Encode and pool every snippet, and relate the snippets in the scorer.

        Args:
            input_ids: [B, U, L].
            unit_mask: [B, U, L], True where a token is real.
            unit_documents: [B, U], the index of a snippet's document.
            **kwargs: not used; `generate` passes all its arguments.

        Returns:
            The snippets; `pooled` [B, U, D] is the output of `Scorer.place`.
        """
        table = self.encode(input_ids, unit_mask)
        return table._replace(pooled=self.scorer.place(table.pooled, unit_documents, table.real))
