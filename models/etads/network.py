"""ETADS's network, with random weights."""

from typing import Any

from longsumbench.modeling.network import Network
from longsumbench.models.etads.config import EtadsConfig
from longsumbench.models.etads.model import EtadsForConditionalGeneration


class EtadsNetwork(Network):
    """The network; its positions start as sinusoids (ETADS §3.1)."""

    Model = EtadsForConditionalGeneration
    config: EtadsConfig

    def own_settings(self, multi_document: bool) -> dict[str, Any]:
        """Return the number of positions."""
        return {"max_position_embeddings": max(self.config.input_length, self.config.decode_length)}
