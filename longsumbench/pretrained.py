"""Pretrained models that metrics ask and systems start from: a folder, or a name on the hub.

Safetensors only, never code of their own.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType

from longsumbench.corpora.hub import unreachable
from longsumbench.errors import EnvironmentProblem, UsageError

FILES = ("*.json", "*.txt", "*.model", "*.safetensors")  # of a model on the hub: settings, tokenizer, weights
SAFELY = MappingProxyType({"local_files_only": True, "trust_remote_code": False})  # how transformers reads a folder


@cache  # so that a model on the hub is looked up once
def model_folder(name: str | None, setting: str, more: tuple[str, ...] = ()) -> Path:
    """Return the folder of a model; one on the hub is fetched where there is no copy.

    Args:
        name: the folder, or the model's name on the hub.
        setting: the one that gives it ("score.coherence_model").
        more: patterns of files in its subfolders that are fetched too, where it has any.

    Raises:
        UsageError: no model is named, there is none of that name, or its weights are not safetensors.
        EnvironmentProblem: it is on the hub, no copy is here, and it cannot be fetched.
    """
    if not name:
        raise UsageError(f"{setting} is missing: give a folder, or a name on the Hugging Face hub")
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _fetched(name, setting, more)
    for needed in ("config.json", "*.safetensors"):
        if not any(folder.glob(needed)):
            raise UsageError(f"{setting}={name}: no {needed} in that model's folder; save it with save_pretrained")
    return folder


def model_digest(folder: Path) -> str:
    """Return eight hexadecimal digits that tell what is in a model's files."""
    whole = hashlib.sha256()
    for path in sorted({path for pattern in FILES for path in folder.glob(pattern)}):
        state = path.stat()
        whole.update(path.name.encode() + _file_digest(path, state.st_size, state.st_mtime_ns))
    return whole.hexdigest()[:8]


@cache  # gigabytes are read once, as long as they stay as they are
def _file_digest(path: Path, size: int, modified: int) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def model_signature(name: str | None, setting: str) -> str:
    """Name a model and what is in its files ("bert-large-uncased@0a1b2c3d")."""
    return f"{Path(name or '').name}@{model_digest(model_folder(name, setting))}"


@contextmanager
def reading(folder: Path, setting: str) -> Iterator[None]:
    """Say of a model that cannot be read what is wrong with it.

    Raises:
        UsageError: it cannot be read.
    """
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, StrictDataclassError, OSError, ValueError, KeyError, ImportError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # the machine's problem; transformers' own have no number
        raise UsageError(f"{setting}={folder} cannot be read: {_first_line(error)}") from error


def _fetched(name: str, setting: str, more: tuple[str, ...]) -> Path:
    """Return the folder of a model on the hub, as it is there now or, without a network, as it was kept."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    problem = unreachable()
    try:
        offline = problem is not None
        kept = snapshot_download(name, allow_patterns=list(FILES), ignore_patterns="*/*", local_files_only=offline)
        if more:
            snapshot_download(name, allow_patterns=list(more), local_files_only=offline)
    except (HFValidationError, RepositoryNotFoundError) as error:
        raise UsageError(f"{setting}={name} is neither a folder nor a model on the Hugging Face hub") from error
    except LocalEntryNotFoundError as error:
        reason = f"({problem or _first_line(error)})"
        raise EnvironmentProblem(
            f"{setting}={name} is no folder, no copy of it is on this machine, and the Hugging Face hub cannot be"
            f" reached {reason}: give a folder that has the model"
        ) from error
    except Exception as error:  # the library's errors have no class in common; each means the same to the user
        raise EnvironmentProblem(
            f"{setting}={name} could not be fetched from the Hugging Face hub ({_first_line(error)}); try again, or"
            " give a folder that has the model"
        ) from error
    return Path(kept)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]
