"""Checkpoints and tokenizers of transformers, from a folder or the hub: the one place that checks and loads them.

Safetensors only, never code of their own. Files and sizes are checked before anything is allocated. Whatever the
libraries raise becomes one line that says what is wrong, where, and what to do.
"""

import hashlib
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple

from longsumbench.cache.hub import unreachable
from longsumbench.errors import DataError, EnvironmentProblem, SuiteError, UsageError, as_suite_error
from longsumbench.files import BadFile, read_json

_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")  # of a model on the hub: settings, tokenizer, weights
SAFE_LOADING = MappingProxyType(
    {"local_files_only": True, "trust_remote_code": False}
)  # how transformers reads a folder
FETCH_AGAIN = "fetch or save it again, or give another"  # what to do about a damaged checkpoint
_CONFIG, _WEIGHTS, _SHARDS = "config.json", "model.safetensors", "model.safetensors.index.json"
_TEMPLATES = "additional_chat_templates"  # of a tokenizer; a folder
_VOCABULARIES = ("tokenizer.json", "vocab.*", "*.model")  # of which a folder with a tokenizer has one

# Bounds of the numbers in a config.json. They refuse nonsense only; whether a network fits is asked of the memory.
_MOST_LAYERS = 1_000
_MOST = 100_000_000
_AT_LEAST_ONE = frozenset(
    {"d_model", "hidden_size", "vocab_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings"}
)
_NO_SIZES = ("_id", "_ids", "theta")
_LARGEST_CONFIG = 16_000_000  # bytes


class LoadedNetwork(NamedTuple):
    """A network and how its weights fit.

    Attributes:
        network: ready to use.
        missing: weights that the network has and the files do not, or in another shape.
        unexpected: weights that the files have and the network does not.
    """

    network: Any
    missing: frozenset[str]
    unexpected: frozenset[str]


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
        DataError: a file in the folder is damaged.
    """
    if not name:
        raise UsageError(f"{setting} is missing: give a folder, or a name on the Hugging Face hub")
    folder = Path(name).expanduser()
    if not folder.is_dir():
        folder = _fetched(name, setting, more)
    for needed in (_CONFIG, "*.safetensors"):
        if not any(folder.glob(needed)):
            raise UsageError(f"{setting}={name}: no {needed} in that model's folder; save it with save_pretrained")
    check_files(folder)
    return folder


def model_digest(folder: Path) -> str:
    """Return eight hexadecimal digits that tell what is in a model's files.

    Raises:
        DataError: one of them is no regular file, or the list of shards is wrong.
    """
    check_files(folder)
    whole = hashlib.sha256()
    for path in sorted({path for pattern in _FILES for path in folder.glob(pattern)}):
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


def load_network(kind: Any, folder: Path, named: str, config: Any = None, **options: Any) -> LoadedNetwork:
    """Load a network from the folder of a checkpoint.

    Args:
        kind: a class of transformers with `from_pretrained`; its own kind of checkpoint, or one of the Auto classes.
        folder: as `save_pretrained` wrote it.
        named: the checkpoint in messages ("model.init=some/folder").
        config: the network's configuration; None: the checkpoint's.
        **options: more for `from_pretrained`.

    Raises:
        UsageError: it is a checkpoint of another kind.
        DataError: a file is damaged or missing.
        EnvironmentProblem: the network does not fit into memory.
    """
    check_files(folder)
    described = read_config(folder)
    with reading_checkpoint(named):
        if config is None:
            config = _config_of(kind, folder, described["model_type"], named)
        build = getattr(kind, "from_config", kind)
        check_memory(lambda: build(deepcopy(config)), named)
        told = {"output_loading_info": True, "ignore_mismatched_sizes": True}  # the caller says what does not fit
        network, info = kind.from_pretrained(
            folder, config=config, use_safetensors=True, **told, **options, **SAFE_LOADING
        )
    missing = {*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])}
    return LoadedNetwork(network, frozenset(missing), frozenset(info["unexpected_keys"]))


def _config_of(kind: Any, folder: Path, model_type: str, named: str) -> Any:
    """Return the configuration that a checkpoint describes, if it is of the right kind."""
    from transformers import CONFIG_MAPPING, AutoConfig

    own = getattr(kind, "config_class", None)
    if own is not None and model_type != own.model_type:
        raise UsageError(f"{named} is a checkpoint of '{model_type}', not of '{own.model_type}'")
    if own is None and model_type not in CONFIG_MAPPING:
        raise UsageError(f"{named} cannot be read: transformers has no model of type '{model_type}'; give another")
    return (own or AutoConfig).from_pretrained(folder, **SAFE_LOADING)


def read_tokenizer(folder: Path, named: str) -> Any:
    """Load the tokenizer in a folder.

    Raises:
        UsageError: there is none.
        DataError: a file of it is damaged.
    """
    from transformers import AutoTokenizer

    check_files(folder)
    with reading_checkpoint(named):
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, **SAFE_LOADING)
            tokenizer("a text")  # some damages show in use only
        except (OSError, ValueError) as error:
            if any(any(folder.glob(pattern)) for pattern in _VOCABULARIES):
                raise
            raise UsageError(f"{named} has no tokenizer ({describe_error(error)})") from error
    return tokenizer


def load_encoder(folder: Path, named: str) -> tuple[Any, Any]:
    """Load tokenizer and network of an encoder; only the weights of its pooler, which is unused, may be missing.

    Raises:
        UsageError: there is no tokenizer, or the network is of an unknown kind.
        DataError: a file is damaged, or weights are missing.
        EnvironmentProblem: the network does not fit into memory.
    """
    from transformers import AutoModel

    tokenizer = read_tokenizer(folder, named)
    network, missing, _ = load_network(AutoModel, folder, named)
    if lacking := sorted(name for name in missing if "pooler" not in name):
        raise DataError(
            f"{named}: the weights lack {', '.join(lacking[:3])}, or have it in another shape; {FETCH_AGAIN}"
        )
    with reading_checkpoint(named):
        check_vocabulary(tokenizer, network.config.vocab_size, named)
    return tokenizer, network


def check_vocabulary(tokenizer: Any, entries: int, named: str) -> None:
    """Check that a network has an embedding for every piece of a tokenizer, and for its special tokens in use.

    A mask or other additional tokens may lack one: a text has none of them, as a rule.

    Raises:
        DataError: one is missing.
    """
    pieces = tokenizer.get_vocab()
    special = [getattr(tokenizer, f"{name}_token") for name in ("pad", "bos", "eos", "unk", "cls", "sep")]
    used = (pieces.keys() - set(tokenizer.all_special_tokens)) | {one for one in special if one in pieces}
    if used and (largest := max(pieces[one] for one in used)) >= entries:
        raise DataError(
            f"{named}: its tokenizer has token {largest:,}, its network {entries:,} embeddings; {FETCH_AGAIN}"
        )


def check_finite(values: Iterable[float], named: str) -> None:
    """Check the numbers that a model returned when it was tried out.

    Raises:
        DataError: one is infinite or not a number.
    """
    if not all(map(math.isfinite, values)):
        raise DataError(f"{named}: the model returns numbers that are not finite; {FETCH_AGAIN}")


def check_memory(build: Callable[[], Any], named: str) -> None:
    """Check that a network fits into the memory that is free; it is built without its weights to count them.

    Raises:
        EnvironmentProblem: it does not.
    """
    import psutil
    import torch

    try:
        with torch.device("meta"):
            network = build()
    except Exception as error:
        if as_suite_error(error):  # a number of bytes that has more than 64 bits
            raise EnvironmentProblem(f"the weights of {named} fit into no memory: choose smaller ones") from error
        return  # it is raised again where the network is built with its weights
    tensors = {id(one): one for one in (*network.parameters(), *network.buffers())}
    needed = sum(one.numel() * one.element_size() for one in tensors.values())
    if needed > (free := psutil.virtual_memory().available):
        sizes = f"{needed / 1e9:,.1f} GB of memory, {free / 1e9:,.1f} GB are free"
        raise EnvironmentProblem(f"the weights of {named} need {sizes}: choose smaller ones, or free some memory")


@contextmanager
def reading_checkpoint(named: str) -> Iterator[None]:
    """Turn what the libraries raise while a checkpoint is read or tried out into one line; silence their logs.

    Args:
        named: the checkpoint in messages.

    Raises:
        UsageError: the checkpoint is of another kind, or needs a package that is not installed.
        DataError: it is damaged.
    """
    try:
        with _quiet():
            yield
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"  # of the libraries in Rust; no Exception
        if isinstance(error, SuiteError) or not (panic or isinstance(error, Exception)):
            raise
        if as_suite_error(error) or (isinstance(error, OSError) and error.errno):
            raise  # the machine's problem; transformers' own errors have no number
        other = isinstance(error, ImportError) or "Unrecognized configuration class" in str(error)
        kind = UsageError if other else DataError
        raise kind(f"{named} cannot be read ({describe_error(error)}); {FETCH_AGAIN}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' logs, progress bars and warnings, and what libraries in Rust write to stderr."""
    from transformers.utils import logging

    sys.stderr.flush()
    stderr, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def check_files(folder: Path) -> None:
    """Check that the files in a checkpoint's folder are regular files, and that its shards are in it.

    Raises:
        DataError: one is a pipe, a device, a folder or a broken link; the list of shards is wrong.
    """
    if not folder.is_dir():
        raise DataError(f"no such folder; {FETCH_AGAIN}", folder)
    for path in (*folder.iterdir(), *folder.glob(f"{_TEMPLATES}/*")):
        is_folder = path.is_dir() and not any(path.match(pattern) for pattern in _FILES)
        if not (path.is_file() or is_folder):
            raise DataError(f"not a regular file; {FETCH_AGAIN}", path)
    if (folder / _SHARDS).is_file() and not (folder / _WEIGHTS).is_file():
        _check_shards(folder)


def _check_shards(folder: Path) -> None:
    """Check the list of a checkpoint's shards, before one outside its folder is opened."""
    path = folder / _SHARDS
    shards = _read_object(path).get("weight_map")
    if not isinstance(shards, dict) or not shards or not all(isinstance(name, str) for name in shards.values()):
        raise DataError(f"names no shard for each weight; {FETCH_AGAIN}", path)
    for name in sorted(set(shards.values())):
        shard = PurePosixPath(name)
        if shard.is_absolute() or ".." in shard.parts:
            raise DataError(f"names the shard {name!r}, which is outside the checkpoint's folder; {FETCH_AGAIN}", path)
        if not (folder / shard).is_file():
            raise DataError(f"names the shard {name!r}, which is missing; {FETCH_AGAIN}", path)


def read_config(folder: Path) -> dict[str, Any]:
    """Read a checkpoint's `config.json`, and check its model type and its sizes.

    Raises:
        DataError: it is missing or damaged, or its numbers are not those of a network.
    """
    path = folder / _CONFIG
    if not path.is_file():
        raise DataError(f"this checkpoint has no {_CONFIG}; {FETCH_AGAIN}", folder)
    described = _read_object(path)
    if not isinstance(described.get("model_type"), str):
        raise DataError(f"model_type is missing, or no text; {FETCH_AGAIN}", path)
    _check_values(described, path)
    return described


def _check_values(described: dict[str, Any], path: Path) -> None:
    for key, value in described.items():
        if isinstance(value, dict):
            _check_values(value, path)
        if "_implementation" in key and "/" in str(value):  # a kernel, whose code transformers would fetch and run
            raise DataError(f"{key}={value} names code on the hub, which is not run here; {FETCH_AGAIN}", path)
        if not isinstance(value, int) or isinstance(value, bool) or key.endswith(_NO_SIZES):
            continue
        least, most = (1 if key in _AT_LEAST_ONE else -_MOST), (_MOST_LAYERS if "layer" in key else _MOST)
        if not least <= value <= most:
            raise DataError(f"{key}={value} is not between {least:,} and {most:,}; {FETCH_AGAIN}", path)


def _read_object(path: Path) -> dict[str, Any]:
    """Read a JSON object of a sane size."""
    if path.stat().st_size > _LARGEST_CONFIG:
        raise DataError(f"larger than {_LARGEST_CONFIG:,} bytes; {FETCH_AGAIN}", path)
    try:
        content: dict[str, Any] = read_json(path, {})
    except BadFile as error:
        raise DataError(f"not a JSON object ({error}); {FETCH_AGAIN}", path) from error
    return content


def _fetched(name: str, setting: str, more: tuple[str, ...]) -> Path:
    """Return the folder of a model on the hub, as it is there now or, without a network, as it was kept."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    problem = unreachable()
    try:
        offline = problem is not None
        kept = snapshot_download(name, allow_patterns=list(_FILES), ignore_patterns="*/*", local_files_only=offline)
        if more:
            snapshot_download(name, allow_patterns=list(more), local_files_only=offline)
    except (HFValidationError, RepositoryNotFoundError) as error:
        raise UsageError(f"{setting}={name} is neither a folder nor a model on the Hugging Face hub") from error
    except LocalEntryNotFoundError as error:
        reason = f"({problem or describe_error(error)})"
        raise EnvironmentProblem(
            f"{setting}={name} is no folder, no copy of it is on this machine, and the Hugging Face hub cannot be"
            f" reached {reason}: give a folder that has the model"
        ) from error
    except Exception as error:  # the library's errors have no class in common; each means the same to the user
        raise EnvironmentProblem(
            f"{setting}={name} could not be fetched from the Hugging Face hub ({describe_error(error)}); try again, or"
            " give a folder that has the model"
        ) from error
    return Path(kept)


def describe_error(error: BaseException) -> str:
    """Return the class and the message of a library's error, on one line of at most 300 characters."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
