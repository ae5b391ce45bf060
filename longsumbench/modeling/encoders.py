"""Encoders of transformers, such as BERT, that a system may start from (`model.init`)."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# of the configuration of a model with such an encoder; without one it is null
ENTRY = "pretrained_encoder"
# entries of an encoder's configuration that say where it is from
_ORIGIN = ("_name_or_path", "transformers_version", "architectures", "dtype")


def encoder_config(folder: Path, shown_as: str) -> "PreTrainedConfig":
    """Load the configuration of an encoder of texts.

    Raises:
        UsageError: the folder has another kind of model.
        DataError: a file is damaged.
    """
    from transformers import AutoModel

    config: PreTrainedConfig = checkpoints.load_config(AutoModel, folder, shown_as)
    if config.is_encoder_decoder or checkpoints.is_language_model(config):
        kind = f"a model that writes text ('{config.model_type}')"
        raise UsageError(f"{shown_as} is {kind}: give an encoder, such as BERT")
    if not hasattr(config, "hidden_size") or not hasattr(config, "vocab_size"):
        raise UsageError(f"{shown_as} is no encoder of texts ('{config.model_type}')")
    return config


def stored_entries(config: "PreTrainedConfig") -> dict[str, Any]:
    """Return an encoder's configuration as JSON values that `AutoConfig.for_model` takes."""
    entries: dict[str, Any] = json.loads(config.to_json_string())
    for name in _ORIGIN:
        entries.pop(name, None)
    return entries
