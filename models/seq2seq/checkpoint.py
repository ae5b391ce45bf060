"""What a checkpoint of an encoder-decoder is: its configuration, its positions, the folder of its adapter."""

from pathlib import Path

from transformers import AutoModelForSeq2SeqLM, PreTrainedConfig
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES

from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints

_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")


def read_described(folder: Path, shown_as: str) -> PreTrainedConfig:
    """Return the configuration of the model in a folder; `shown_as` names it in messages.

    Raises:
        UsageError: it is no encoder-decoder.
    """
    config: PreTrainedConfig = checkpoints.load_config(AutoModelForSeq2SeqLM, folder, shown_as)
    kind = config.model_type
    if kind not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES or not config.is_encoder_decoder:
        advice = f"choose model=prompt {shown_as}"
        if not checkpoints.is_language_model(config):
            advice = "give an encoder-decoder, or a language model with model=prompt"
        raise UsageError(
            f"{shown_as} is a checkpoint of '{kind}', not of an encoder-decoder: {advice}"
        )
    return config


def stack_config(described: PreTrainedConfig, stack: str) -> PreTrainedConfig:
    """Return the configuration of the encoder or decoder, where each has its own (BERT2BERT, T5Gemma)."""
    part = getattr(described, stack, described)
    return part.get_text_config() if isinstance(part, PreTrainedConfig) else described


def stack_positions(described: PreTrainedConfig, stack: str) -> int | None:
    """Return the number of positions of a stack; None if they have no limit. LED's are whole windows of attention."""
    shared = getattr(stack_config(described, stack), "max_position_embeddings", None)
    positions: int | None = getattr(described, f"max_{stack}_position_embeddings", shared)
    if described.model_type == "led" and stack == "encoder" and positions is not None:
        window = described.attention_window
        positions -= positions % (window if isinstance(window, int) else max(window))
    return positions


def adapter_folder(name: str | None) -> Path | None:
    """Return the folder of an adapter, fetched from the hub if it is there; None without one."""
    if name is None:
        return None
    folder = Path(name).expanduser()
    folder = folder if folder.is_dir() else checkpoints.fetch_files(name, "model.adapter", _ADAPTER)
    if missing := [file for file in _ADAPTER if not (folder / file).is_file()]:
        raise UsageError(
            f"model.adapter={name}: no {' and no '.join(missing)} in its folder; save it with PEFT"
        )
    return folder
