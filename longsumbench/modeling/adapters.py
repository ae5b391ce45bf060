"""LoRA adapters of networks, by peft: added to train, merged to write.

A folder with an adapter is what peft saves: `adapter_config.json` and `adapter_model.safetensors`.
"""

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.core.system import SAVED_SYSTEM, read_saved
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.modeling import checkpoints

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedModel

ADAPTER_FILES = ("adapter_config.json", "adapter_model.safetensors")


def has_adapter(folder: Path) -> bool:
    """Return True if a folder has the weights of an adapter."""
    return (folder / ADAPTER_FILES[1]).is_file()


def find_adapter(name: str | None, checkpoint: Path) -> Path | None:
    """Return the folder of an adapter of a checkpoint, fetched from the hub if it is there; None without one.

    Raises:
        UsageError: there is no such adapter, or it was trained here from other weights.
        EnvironmentProblem: it is on the hub, and cannot be fetched.
    """
    if name is None:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = checkpoints.fetch_files(name, "model.adapter", (*ADAPTER_FILES, SAVED_SYSTEM))
    missing = [file for file in ADAPTER_FILES if not (folder / file).is_file()]
    if missing:
        raise UsageError(
            f"model.adapter={name}: no {' and no '.join(missing)} in its folder; save it with PEFT"
        )
    if (folder / SAVED_SYSTEM).is_file():
        check_base(read_saved(folder)["state"].get("base"), checkpoint, f"model.adapter={name}")
    return folder


def check_base(base: str | None, checkpoint: Path, shown_as: str) -> None:
    """Raise UsageError if what was trained from weights with the digest `base` is used on those of another checkpoint."""
    if base not in (None, checkpoints.model_digest(checkpoint)):
        raise UsageError(
            f"{shown_as} was trained from other weights than those of model.checkpoint: give the checkpoint that it was"
            " trained from"
        )


def merge_adapter(network: "PreTrainedModel", folder: Path, shown_as: str) -> "PreTrainedModel":
    """Return a network with the weights of an adapter, all of which must fit, merged into its own.

    `shown_as` is the adapter in messages.

    Raises:
        UsageError: the adapter is of a kind that cannot be merged, such as prompt tuning.
        DataError: a weight is missing, has no place in the network, or is not finite.
        EnvironmentProblem: peft is not installed.
    """
    with _needing_peft(shown_as):
        from peft import PeftModel, get_peft_model_state_dict, load_peft_weights
    with checkpoints.reading_checkpoint(shown_as):
        adapted = PeftModel.from_pretrained(network, folder, local_files_only=True)
        names = get_peft_model_state_dict(adapted, save_embedding_layers=False).keys()
        stored_names = load_peft_weights(str(folder), device="cpu").keys()
        unexpected = stored_names - names - adapted.state_dict().keys()
        checkpoints.check_complete(names - stored_names, unexpected, shown_as)
        _untie_changed_weights(adapted)
        try:
            merged: PreTrainedModel = adapted.merge_and_unload()
        except (AttributeError, NotImplementedError) as error:
            settings = adapted.peft_config["default"]
            is_alora = settings.to_dict().get("alora_invocation_tokens")
            kind = "aLoRA" if is_alora else settings.peft_type.value
            raise UsageError(
                f"{shown_as} is an adapter of the kind {kind}, which cannot be merged into weights: give a plain LoRA adapter"
            ) from error
    checkpoints.check_weights(merged, shown_as)
    return merged


def _untie_changed_weights(adapted: "PeftModel") -> None:
    """Give all owners of a shared weight copies of it, if the adapter changes one: merging must not change the others.

    `config.tie_word_embeddings` stays. Some networks scale their output by it, and `from_pretrained` ties no weights
    that differ.
    """
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils import AuxiliaryTrainingWrapper
    from torch.nn import Parameter

    owners = Counter(weight for _, weight in adapted.named_parameters(remove_duplicate=False))
    changed: set[Parameter] = set()
    for layer in adapted.modules():
        if isinstance(layer, BaseTunerLayer | AuxiliaryTrainingWrapper):
            changed.update(layer.parameters())
    for layer in adapted.modules():
        for name, weight in layer.named_parameters(recurse=False):
            if weight in changed and owners[weight] > 1:
                setattr(layer, name, Parameter(weight.detach().clone(), weight.requires_grad))


def add_adapter(
    network: "PreTrainedModel", rank: int, targets: Sequence[str] | None, base: str
) -> "PeftModel":
    """Return a network with a new adapter, whose weights alone are trained; it changes nothing before.

    Its scale α / r is 2 for every rank, so that the best learning rate depends little on it (Hu et al. 2021, §4.1).

    Args:
        network: its weights become frozen.
        rank: of the adapter's matrices.
        targets: names of the layers, or "all-linear"; None: those that peft knows for the architecture.
        base: the network's name on the hub, for the adapter's files; of a folder or file, only its name is kept.

    Raises:
        UsageError: the network has no such layers, or peft knows none.
        EnvironmentProblem: peft is not installed.
    """
    with _needing_peft(f"model.lora_rank={rank}"):
        from peft import LoraConfig, get_peft_model
    # Peft reads this as a text only; in a list it would be the name of a layer.
    chosen: Any = "all-linear" if targets == ["all-linear"] else targets
    settings = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=chosen, task_type="CAUSAL_LM")
    try:
        # Peft's warnings are about names of transformers, and layers that it settles itself.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            adapted: PeftModel = get_peft_model(network, settings)
    except ValueError as error:
        kind = network.config.model_type
        raise UsageError(
            f"model.lora_rank={rank} model.lora_targets={chosen or 'null'} does not fit a network of '{kind}'"
            f" ({checkpoints.describe_error(error)}): give the names of its layers, as in"
            " model.lora_targets=[q_proj,v_proj], or [all-linear]"
        ) from error
    path = Path(base).expanduser()
    adapted.peft_config["default"].base_model_name_or_path = path.name if path.exists() else base
    return adapted


@contextmanager
def _needing_peft(shown_as: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise EnvironmentProblem(f"{shown_as} needs the package peft: pip install peft") from error
