"""The files of a checkpoint, read and checked before transformers uses them."""

from pathlib import Path
from typing import Any

from longsumbench.errors import DataError
from longsumbench.files import BadFile, read_json
from longsumbench.modeling.gguf_files import gguf_ends

FETCH_AGAIN = "fetch or save it again, or give another"  # the advice about a damaged checkpoint
CONFIG = "config.json"
SAFETENSORS = "*.safetensors"


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
    return described


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
            if Path(name).name != name:
                raise DataError(
                    f"{name!r} is not the name of a file in its folder; {FETCH_AGAIN}", path
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
