"""ETADS's settings: what the layer lists mean, and what is refused."""

from typing import Any

import pytest

from longsumbench.core import build_settings
from longsumbench.errors import UsageError
from longsumbench.models.etads.config import EtadsConfig


def settled(**values: Any) -> EtadsConfig:
    """Return the settings as the command line would give them."""
    config: EtadsConfig = build_settings(EtadsConfig, values, "model.")
    return config


def test_null_means_all_layers_whatever_their_number() -> None:
    """Null follows the depth, an empty list stays empty, and the order of a list does not matter."""
    config = settled(encoder_layers=6, decoder_layers=2, focus_layers=None, saliency_layers=[])
    assert config.focus_layers == [1, 2, 3, 4, 5, 6]
    assert config.saliency_layers == []
    assert settled(focus_layers=[3, 1]) == settled(focus_layers=[1, 3])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a layer that is not there": (
        {"focus_layers": [1, 5]},
        r"model.focus_layers=\[1,5\] names layer 5, but .* 4 layers",
    ),
    "layers counted from 0": (
        {"saliency_layers": [0]},
        r"model.saliency_layers=\[0\] names layer 0, but the decoder",
    ),
    "a layer twice": ({"focus_layers": [2, 2]}, "names a layer twice"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused(case: str) -> None:
    """One line names the setting, what is wrong, and what there is."""
    values, message = REFUSED[case]
    with pytest.raises(UsageError, match=message):
        settled(**values)
