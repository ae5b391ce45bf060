"""The settings of the Hierarchical Transformer, the Flat Transformer and T-DMCA: what they mean, what is refused."""

from typing import Any

import pytest

from longsumbench.core import build_settings
from longsumbench.errors import UsageError
from longsumbench.models.hierarchical_transformer.config import HierarchicalTransformerConfig
from longsumbench_reproduction.models.tdmca.config import TdmcaConfig


def test_the_release_has_one_decoder_layer() -> None:
    """With fidelity=official the decoder is as shallow as the release's default, unless a depth is given."""
    assert HierarchicalTransformerConfig(fidelity="official").decoder_layers == 1
    assert HierarchicalTransformerConfig(fidelity="official", decoder_layers=4).decoder_layers == 4


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a graph without global layers": (
        {"graph": "similarity", "global_layers": 0},
        "but model.global_layers=0",
    ),
    "pooling heads that do not fit": (
        {"pooling_heads": 7},
        "cannot be shared equally by model.pooling_heads=7",
    ),
    "no halves of even width": (
        {"d_model": 250, "num_heads": 5, "pooling_heads": 5},
        "is not a multiple of 4",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused(case: str) -> None:
    """One line names the setting, what is wrong, and what there is."""
    values, message = REFUSED[case]
    with pytest.raises(UsageError, match=message):
        build_settings(HierarchicalTransformerConfig, values, "model.")


def test_a_single_layer_of_tdmca_is_refused() -> None:
    """Its first layer sees the summary alone."""
    with pytest.raises(UsageError, match=r"model\.num_layers=1 is below 2"):
        build_settings(TdmcaConfig, {"num_layers": 1}, "model.")
