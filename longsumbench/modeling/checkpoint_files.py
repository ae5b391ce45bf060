"""The files of a checkpoint, read and checked before transformers uses them."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longsumbench.errors import DataError
from longsumbench.files import BadFile, read_json
from longsumbench.modeling.gguf_files import gguf_ends

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FETCH_AGAIN = "fetch or save it again, or give another"  # the advice about a damaged checkpoint
CONFIG = "config.json"
SAFETENSORS = "*.safetensors"
_SHARD = re.compile(r"[^/\\]+\.(safetensors|bin)")
_MOST_LAYERS = 1_000  # the deepest language models have a few hundred
# names of entries of a configuration → their least and largest values
_ENTRY_BOUNDS = (
    (re.compile("drop"), 0, 1),  # probabilities
    (re.compile("layers?$|blocks$|depth"), 0, _MOST_LAYERS),
    (
        re.compile("(heads?|head_dim|d_model|^vocab_size|hidden_size|position_embeddings)$"),
        0,
        10**9,
    ),
)


def read_config(folder: Path) -> dict[str, Any]:
    """Read a checkpoint's `config.json`; of a GGUF file, the tokens that end an answer.

    Raises:
        DataError: the file is missing or damaged, or names code to run.
    """
    if folder.is_file():
        return {"eos_token_id": gguf_ends(folder) or None}
    path = folder / CONFIG
    if not path.is_file():
        raise DataError(f"this checkpoint has no {CONFIG}; {FETCH_AGAIN}", folder)
    described = read_object(path)
    if not isinstance(described.get("model_type"), str):
        raise DataError(f"model_type is missing or not a text; {FETCH_AGAIN}", path)
    for key, value in described.items():
        # transformers would fetch and run a kernel's code
        if "_implementation" in key and "/" in str(value):
            raise DataError(
                f"{key}={value} names code on the hub, which is never run; {FETCH_AGAIN}", path
            )
    check_entries(described, path)
    return described


def check_entries(described: Mapping[str, Any], path: Path) -> None:
    """Check sizes and probabilities before the library builds layers by them; also those of parts of the model."""
    for key, value in described.items():
        if isinstance(value, dict) and "model_type" in value:
            check_entries(value, path)
        for names, least, largest in _ENTRY_BOUNDS if isinstance(value, int | float) else ():
            if names.search(key) and not least <= value <= largest:
                raise DataError(
                    f"{key}={value} is not from {least} to {largest:,}; {FETCH_AGAIN}", path
                )


def check_files(folder: Path) -> None:
    """Check the files of a checkpoint before a library opens them.

    Raises:
        DataError: one is a pipe or a device, which would never end, or an index names weights outside of the folder,
            which no digest covers.
    """
    for path in folder.iterdir() if folder.is_dir() else [folder]:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise DataError(f"not a regular file; {FETCH_AGAIN}", path)
    for path in folder.glob("*.index.json"):
        shards = read_object(path).get("weight_map")
        for name in set(map(str, shards.values())) if isinstance(shards, dict) else ():
            if not _SHARD.fullmatch(name):
                raise DataError(
                    f"{name!r} is not the name of weights in its folder; {FETCH_AGAIN}", path
                )


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file of a checkpoint.

    Raises:
        FileNotFoundError: the file does not exist.
        DataError: it is not a JSON object.
    """
    try:
        return read_json(path, dict[str, Any])
    except BadFile as error:
        raise DataError(f"not a JSON object ({error}); {FETCH_AGAIN}", path) from error


def check_types(folder: Path, network: "PreTrainedModel", shown_as: str) -> None:
    """Raise DataError if a file has integers for a weight that is a real number; the library would convert them."""
    from safetensors import safe_open

    real = {name for name, weight in network.named_parameters() if weight.is_floating_point()}
    for path in folder.glob(SAFETENSORS):
        with safe_open(path, "pt") as stored:
            for name in sorted(real.intersection(stored.keys())):
                kind = stored.get_slice(name).get_dtype()
                if kind.startswith(("I", "U", "BOOL")):
                    raise DataError(
                        f"{shown_as}: the weights {name} are of type {kind}; {FETCH_AGAIN}"
                    )
