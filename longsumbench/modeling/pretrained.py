"""A pretrained model, as settings name it: its files, configuration, tokenizer, network and identity."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.adapters import find_adapter, merge_adapter
from longsumbench.modeling.gguf_files import gguf_title

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from longsumbench.modeling.checkpoints import NetworkClass

# of the configuration of a model with a pretrained encoder; without one it is null
ENTRY = "pretrained_encoder"
# entries of an encoder's configuration that say where it is from
_ORIGIN = ("_name_or_path", "transformers_version", "architectures", "dtype")


@dataclass(frozen=True)
class Pretrained:
    """A model of transformers in a folder or a GGUF file. Errors are those of `checkpoints`.

    Attributes:
        folder: the folder, or the GGUF file.
        shown_as: the model in messages ("model.checkpoint=facebook/bart-large-cnn").
        name: as a setting has it; None: the suite saved the model.
        adapter: a folder or hub name of an adapter that is merged into the network; None: there is none.
    """

    folder: Path
    shown_as: str
    name: str | None = None
    adapter: str | None = None

    @classmethod
    def find(
        cls, name: str | None, setting: str, adapter: str | None = None, **options: Any
    ) -> Self:
        """Return the model with a name, fetched from the hub if it is there; arguments as in `model_folder`."""
        folder = checkpoints.model_folder(name, setting, **options)
        return cls(folder, f"{setting}={name}", name, adapter)

    @classmethod
    def saved(cls, folder: Path) -> Self:
        """Return a model that the suite saved."""
        return cls(folder, f"the checkpoint {folder}")

    def config(self, kind: "NetworkClass") -> Any:
        """Load the configuration of the network; `kind` is its class, or an Auto class of transformers."""
        return checkpoints.load_config(kind, self.folder, self.shown_as)

    def encoder_config(self) -> "PreTrainedConfig":
        """Load the configuration of an encoder of texts.

        Raises:
            UsageError: it is another kind of model.
        """
        from transformers import AutoModel

        config: PreTrainedConfig = self.config(AutoModel)
        if config.is_encoder_decoder or checkpoints.is_language_model(config):
            kind = f"a model that writes text ('{config.model_type}')"
            raise UsageError(f"{self.shown_as} is {kind}: give an encoder, such as BERT")
        if not hasattr(config, "hidden_size") or not hasattr(config, "vocab_size"):
            raise UsageError(f"{self.shown_as} is no encoder of texts ('{config.model_type}')")
        return config

    def network(self, kind: "NetworkClass", **options: Any) -> "PreTrainedModel":
        """Load the network with the weights of the adapter; arguments as in `load_network`."""
        # Pickles are read only where there is nothing else.
        safe = checkpoints.weights_format(self.folder) != "bin"
        network = checkpoints.load_network(
            kind, self.folder, self.shown_as, use_safetensors=safe, **options
        )
        folder = find_adapter(self.adapter, self.folder)
        return (
            merge_adapter(network, folder, f"model.adapter={self.adapter}") if folder else network
        )

    def network_with_tokenizer(self, kind: "NetworkClass", **options: Any) -> tuple[Any, Any]:
        """Load the tokenizer and the network; weights of heads for other tasks are ignored. Arguments as in `network`."""
        tokenizer = checkpoints.read_tokenizer(self.folder, self.shown_as)
        network = self.network(kind, other_heads=True, **options)
        with checkpoints.reading_checkpoint(self.shown_as):
            self.check_vocabulary(tokenizer, network.config.vocab_size)
        return tokenizer, network

    def check_vocabulary(self, tokenizer: "PreTrainedTokenizerBase", entries: int) -> None:
        """Check that every token of a tokenizer has one of the network's embeddings."""
        checkpoints.check_vocabulary(tokenizer, entries, self.shown_as)

    def signature(self) -> str:
        """Return the last part of the name and the digest of the files ("bert-large-uncased@0a1b2c3d")."""
        return f"{Path(self.name or '').name}@{checkpoints.model_digest(self.folder)}"

    def identity(self) -> dict[str, Any]:
        """Return the digest of the model's files and its commit on the hub; also the digest of the adapter."""
        identity: dict[str, Any] = {
            "checkpoint": checkpoints.model_digest(self.folder),
            "revision": checkpoints.resolved_revision(self.folder),
        }
        if folder := find_adapter(self.adapter, self.folder):
            identity["adapter"] = checkpoints.model_digest(folder)
        return identity

    def metadata(self) -> dict[str, Any]:
        """Return metadata for the record: the names of model and adapter, the commit, and the format of the weights."""
        names = [_last_name(name) for name in (self.name, self.adapter) if name is not None]
        title = gguf_title(self.folder) if self.folder.is_file() else None
        return {
            **({"title": title} if title else {}),
            "checkpoint": " + ".join(names),
            "revision": checkpoints.resolved_revision(self.folder),
            "weights": checkpoints.weights_format(self.folder),
        }


def _last_name(name: str) -> str:
    """Return a hub name, or the name of a folder or file without other folders."""
    path = Path(name).expanduser()
    return path.resolve().name if path.exists() else name


def stored_entries(config: "PreTrainedConfig") -> dict[str, Any]:
    """Return an encoder's configuration as JSON values that `AutoConfig.for_model` takes."""
    entries: dict[str, Any] = json.loads(config.to_json_string())
    for name in _ORIGIN:
        entries.pop(name, None)
    return entries
