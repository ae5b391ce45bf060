"""Loading and checking of transformers' checkpoints and tokenizers, from a folder, a GGUF file or the hub.

Where an argument is a folder, it may be a GGUF file that `model_folder` returned (`reads_gguf`). Code in a checkpoint
is never run: weights are safetensors or, where a caller permits it, pickles of tensors. Errors of the libraries become
one line that says what is wrong, where, and what to do.
"""

import copy
import hashlib
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import cache, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from longsumbench.cache.artifacts import check_content, hash_file
from longsumbench.cache.hub import unreachable
from longsumbench.errors import DataError, EnvironmentProblem, UsageError, as_suite_error
from longsumbench.modeling.checkpoint_files import (
    CONFIG,
    FETCH_AGAIN,
    SAFETENSORS,
    check_files,
    read_config,
)
from longsumbench.modeling.gguf_files import (
    LLAMA_CPP,
    dequantizing_options,
    find_gguf,
    gguf_weights,
    loading_arguments,
    read_header,
    refuse_gguf,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import nn
    from transformers import AutoModel, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    # or another of the library's Auto classes
    NetworkClass: TypeAlias = type[PreTrainedModel | AutoModel]

# settings, tokenizer and weights of a model
_MODEL_FILES = ("*.json", "*.txt", "*.model", "*.jinja", "*.safetensors")
# arguments of `from_pretrained`
SAFE_LOADING = MappingProxyType({"local_files_only": True, "trust_remote_code": False})
_PICKLES = "pytorch_model*.bin"
# entries that older versions of the library stored; networks compute them or do not use them
_HARMLESS_KEYS = re.compile(
    r"(position_ids|inv_freq|masked_bias|(attn|attention)\.bias|version|positions\.weights)$"
)


@cache  # look up a model on the hub once
def model_folder(
    name: str | None,
    setting: str,
    more: tuple[str, ...] = (),
    revision: str | None = None,
    pickled: bool = False,
    reads_gguf: bool = False,
) -> Path:
    """Return the folder of a model, or its GGUF file; a model on the hub without a local copy is fetched.

    Args:
        name: the folder, or the model's name on the hub.
        setting: the setting with this value, for messages ("score.coherence_model").
        more: patterns of files in subfolders to fetch too.
        revision: a branch, tag, commit or pull request ("refs/pr/3") on the hub; None: its main branch.
        pickled: True to accept weights in PyTorch's format where there are no safetensors.
        reads_gguf: True to accept a GGUF file, or a folder with one.

    Raises:
        UsageError: the name or revision is missing or unknown, or the weights have another format.
        EnvironmentProblem: the model is on the hub, has no local copy, and cannot be fetched.
        DataError: a file in the folder is damaged.
    """
    if not name:
        raise UsageError(f"{setting} is missing: give a folder, or a name on the Hugging Face hub")
    folder = Path(name).expanduser()
    gguf_file = find_gguf(folder, f"{setting}={name}") if reads_gguf else None
    if not folder.is_dir() and not gguf_file:
        folder = fetch_files(name, setting, _MODEL_FILES, revision, more)
        if pickled and weights_format(folder) is None:
            folder = fetch_files(name, setting, _MODEL_FILES, revision, (_PICKLES,))
    elif revision is not None:
        revision_setting = f"{setting.rpartition('.')[0]}.revision={revision}"
        raise UsageError(
            f"{revision_setting} goes with a name on the Hugging Face hub; {setting}={name} is a"
            f" {'file' if folder.is_file() else 'folder'}"
        )
    if gguf_file:
        return gguf_file
    refuse_gguf(folder, f"{setting}={name}")
    if not (folder / CONFIG).is_file():
        gguf_advice = ", or download a GGUF file and give its path" if reads_gguf else ""
        raise UsageError(
            f"{setting}={name}: no {CONFIG} in the model's folder; save it with save_pretrained{gguf_advice}"
        )
    if weights_format(folder) not in ("safetensors", "bin" if pickled else "safetensors"):
        raise UsageError(
            f"{setting}={name}: no {SAFETENSORS} in the model's folder; save it with save_pretrained"
        )
    return folder


def split_revision(name: str) -> tuple[str, str | None]:
    """Split "NAME@REVISION" of the hub; a folder, or a name that begins or ends with @, has no revision."""
    base, _, revision = name.partition("@")
    if not base or not revision:
        return name, None
    is_folder = any(Path(path).expanduser().is_dir() for path in (name, base))
    return (name, None) if is_folder else (base, revision)


def weights_format(folder: Path) -> str | None:
    """Return "safetensors", "bin" (a pickle, where there are no safetensors), "GGUF Q4_1" or None (no weights)."""
    if folder.is_file():
        return gguf_weights(folder)
    if any(folder.glob(SAFETENSORS)):
        return "safetensors"
    return "bin" if any(folder.glob(_PICKLES)) else None


def resolved_revision(folder: Path) -> str | None:
    """Return the commit of a folder that `model_folder` fetched from the hub; None for another folder."""
    fetched = folder.parent.name == "snapshots" and re.fullmatch("[0-9a-f]{40}", folder.name)
    return folder.name if fetched else None


def model_digest(folder: Path) -> str:
    """Return eight hexadecimal digits of the SHA-256 of a model's files."""
    check_files(folder)
    if folder.is_file():
        return hash_file(folder)[:8]
    patterns = [*_MODEL_FILES]
    if weights_format(folder) == "bin":
        patterns.append(_PICKLES)
    paths = chain.from_iterable(map(folder.glob, patterns))
    sha256 = hashlib.sha256()
    for path in sorted(paths):
        sha256.update(path.name.encode() + bytes.fromhex(hash_file(path)))
    return sha256.hexdigest()[:8]


def load_network(
    kind: "NetworkClass",
    folder: Path,
    shown_as: str,
    config: "PreTrainedConfig | None" = None,
    may_lack: str | None = None,
    other_heads: bool = False,
    **options: Any,
) -> "PreTrainedModel":
    """Load a network from the folder of a checkpoint, whose weights are those of the network.

    Args:
        kind: a model class of transformers, or one of its Auto classes.
        folder: a folder written by `save_pretrained`.
        shown_as: the checkpoint in messages ("model.init=some/folder").
        config: the network's configuration; None: the checkpoint's.
        may_lack: a part of the names of weights that may be missing.
        other_heads: True to ignore the weights of heads for other tasks.
        **options: more arguments of `from_pretrained`.

    Raises:
        UsageError: the checkpoint is of another model type.
        DataError: a file is damaged or missing; a weight is infinite or NaN, missing, of another shape, or has no place
            in the network.
        EnvironmentProblem: the network does not fit into memory, or a package is missing.
    """
    from transformers.utils import is_accelerate_available

    from longsumbench.modeling.nn.device import check_memory

    if "device_map" in options and not is_accelerate_available():
        raise EnvironmentProblem(
            "model.device_map needs the package accelerate: pip install accelerate"
        )
    check_files(folder)
    check_content(folder)
    config = config or load_config(kind, folder, shown_as)
    with reading_checkpoint(shown_as):
        build = getattr(kind, "from_config", kind)  # Auto classes are not called
        if "device_map" not in options:  # else it may use the memory of several devices
            check_memory(lambda: build(deepcopy(config)).to(dtype=options.get("dtype")), shown_as)
        if folder.is_file():
            options |= dequantizing_options()
        with loading_arguments(folder) as arguments:
            network, info = kind.from_pretrained(
                config=config,
                weights_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # `check_complete` reports them
                **{"use_safetensors": True, **options, **arguments, **SAFE_LOADING},
            )
    missing = {*info["missing_keys"], *(key for key, *_ in info["mismatched_keys"])}
    # sinusoidal positions, which the library computes and does not store
    missing -= {
        f"{name}.weight" for name, part in network.named_modules() if hasattr(part, "create_weight")
    }
    if may_lack:
        missing = {name for name in missing if may_lack not in name}
    unexpected = {name for name in info["unexpected_keys"] if not _HARMLESS_KEYS.search(name)}
    if other_heads:
        unexpected = {name for name in unexpected if _is_inside(network, name)}
    check_complete(missing, unexpected, shown_as)
    check_weights(network, shown_as)
    if folder.is_file():
        # The weights are dequantized: it is an ordinary network, which can be saved and trained.
        network.hf_quantizer = None
        vars(network.config).pop("quantization_config", None)
    return network


def _is_inside(network: "PreTrainedModel", name: str) -> bool:
    """Return whether a weight belongs to the network without its head."""
    base = network.base_model
    first = name.removeprefix(f"{network.base_model_prefix}.")
    if first == name and base is not network:
        return False
    return first.partition(".")[0] in dict(base.named_children())


def load_config(kind: "NetworkClass", folder: Path, shown_as: str) -> Any:
    """Load the configuration of a checkpoint's network; arguments and errors as in `load_network`."""
    from transformers import CONFIG_MAPPING, AutoConfig

    if folder.is_file():
        return _load_gguf_config(folder, hash_file(folder), shown_as)
    model_type = read_config(folder)["model_type"]
    config_class: Any = getattr(kind, "config_class", None)  # None: an Auto class
    if config_class is not None and model_type != config_class.model_type:
        raise UsageError(
            f"{shown_as} is a checkpoint of '{model_type}', not of '{config_class.model_type}'"
        )
    if config_class is None and model_type not in CONFIG_MAPPING:
        raise UsageError(
            f"{shown_as} cannot be read: transformers has no model of type '{model_type}'; give another"
        )
    check_files(folder)
    with reading_checkpoint(shown_as):
        return (config_class or AutoConfig).from_pretrained(folder, **SAFE_LOADING)


@cache  # takes seconds
def _load_gguf_config(path: Path, sha256: str, shown_as: str) -> Any:
    """Load the configuration in a GGUF file; the hash is part of the cache's key."""
    from transformers import AutoConfig

    check_content(path)
    architecture = read_header(path).get("general.architecture")
    with reading_checkpoint(shown_as), loading_arguments(path) as arguments:
        try:
            config = AutoConfig.from_pretrained(**arguments, **SAFE_LOADING)
        except (ValueError, KeyError) as error:
            raise UsageError(
                f"{shown_as}: transformers cannot read a GGUF file of the architecture '{architecture}'"
                f" ({describe_error(error)}): {LLAMA_CPP}"
            ) from error
    return config


def is_language_model(config: "PreTrainedConfig") -> bool:
    """Return whether a configuration is of a causal language model; encoders such as BERT have a class of them, too."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    kind = type(config)
    is_encoder = kind in MODEL_FOR_MASKED_LM_MAPPING and not config.to_dict().get("is_decoder")
    return kind in MODEL_FOR_CAUSAL_LM_MAPPING and not is_encoder


def read_tokenizer(folder: Path, shown_as: str) -> Any:
    """Load the tokenizer in a folder.

    Raises:
        UsageError: the folder has no tokenizer.
        EnvironmentProblem: the tokenizer needs a package that is not installed.
        DataError: a file is damaged.
    """
    check_files(folder)
    if folder.is_file():
        # whoever asks may change its own
        return copy.deepcopy(_load_gguf_tokenizer(folder, hash_file(folder), shown_as))
    return _load_tokenizer(folder, shown_as)


@cache  # takes seconds
def _load_gguf_tokenizer(path: Path, sha256: str, shown_as: str) -> Any:
    """Load the tokenizer in a GGUF file; the hash is part of the cache's key."""
    return _load_tokenizer(path, shown_as)


def _load_tokenizer(folder: Path, shown_as: str) -> Any:
    from transformers import AutoTokenizer
    from transformers.utils import is_protobuf_available, is_sentencepiece_available

    check_content(folder)
    with reading_checkpoint(shown_as):
        try:
            with loading_arguments(folder) as arguments:
                tokenizer = AutoTokenizer.from_pretrained(**arguments, **SAFE_LOADING)
        except (OSError, ValueError, ImportError) as error:
            can_read_pieces = is_protobuf_available() and is_sentencepiece_available()
            for path in () if can_read_pieces else folder.glob("*.model"):
                raise EnvironmentProblem(
                    f"the tokenizer of {shown_as} is {path.name}, which is read with the packages"
                    " sentencepiece and protobuf: install them"
                ) from error
            raise
    tokenizer.name_or_path = str(folder)
    # If a folder has no tokenizer, transformers makes one of special tokens.
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):
        raise UsageError(
            f"{shown_as} has no tokenizer: add its files, as save_pretrained writes them"
        )
    return tokenizer


def check_complete(missing: Collection[str], unexpected: Collection[str], shown_as: str) -> None:
    """Check that a checkpoint has the weights of its network, and no others.

    Raises:
        DataError: there are missing or unexpected weights.
    """
    if missing:
        problem = "weights are missing or have another shape"
    elif unexpected:
        problem = f"{len(unexpected)} weights have no place in the model of its configuration"
    else:
        return
    names = ", ".join(sorted(missing or unexpected)[:3])
    raise DataError(f"{shown_as}: {problem}: {names}; {FETCH_AGAIN}")


def check_vocabulary(tokenizer: "PreTrainedTokenizerBase", entries: int, shown_as: str) -> None:
    """Check that a network has an embedding for every token of a tokenizer that texts use.

    Mask and additional special tokens may lack one, because texts rarely contain them.

    Raises:
        DataError: an embedding is missing.
    """
    ids = tokenizer.get_vocab()
    special = tokenizer.special_tokens_map
    unused = set(tokenizer.all_special_tokens)
    unused -= {special.get(f"{name}_token") for name in ("pad", "bos", "eos", "unk", "cls", "sep")}
    largest = max((ids[token] for token in ids.keys() - unused), default=-1)
    if largest >= entries:
        raise DataError(
            f"{shown_as}: its tokenizer has token {largest:,}, its network {entries:,} embeddings; {FETCH_AGAIN}"
        )


def check_finite(values: "ArrayLike", shown_as: str) -> None:
    """Check the numbers that a model returned.

    Raises:
        DataError: a number is infinite or NaN.
    """
    if not np.isfinite(values).all():
        raise DataError(f"{shown_as}: the model returns numbers that are not finite; {FETCH_AGAIN}")


def check_weights(network: "nn.Module", shown_as: str) -> None:
    """Check that the weights of a network are finite.

    Raises:
        DataError: a weight is infinite or NaN.
    """
    for name, weight in network.named_parameters():
        if not weight.is_floating_point() or weight.element_size() == 1 or weight.is_meta:
            continue  # quantized, or not loaded
        if not weight.isfinite().all():
            raise DataError(
                f"{shown_as}: the weights {name} have numbers that are not finite; {FETCH_AGAIN}"
            )


@contextmanager
def reading_checkpoint(shown_as: str) -> Iterator[None]:
    """Turn errors of the libraries while a checkpoint is read or tried into one line; silence their logs.

    `shown_as` is the checkpoint in messages.

    Raises:
        UsageError: the checkpoint is of another model type, or needs a package that is not installed.
        DataError: it is damaged.
    """
    try:
        with _quiet():
            yield
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"  # of Rust; it is not an Exception
        if not (is_panic or isinstance(error, Exception)) or as_suite_error(error):
            raise  # an interrupt, or a problem of the machine
        other_type = "Unrecognized configuration class" in str(error)
        kind = UsageError if other_type or isinstance(error, ImportError) else DataError
        raise kind(f"{shown_as} cannot be read ({describe_error(error)}); {FETCH_AGAIN}") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence transformers' logs, progress bars and warnings."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def fetch_files(
    name: str,
    setting: str,
    patterns: Sequence[str],
    revision: str | None = None,
    more: Sequence[str] = (),
) -> Path:
    """Fetch files of a model on the hub; return the local folder. Files that the model lacks are no error.

    Arguments are those of `model_folder`; `patterns` are of files in the model's own folder.

    Raises:
        UsageError: the hub has no such model or revision.
        EnvironmentProblem: there is no local copy, and the files cannot be fetched.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    refuse_gguf(Path(name).expanduser(), f"{setting}={name}")
    problem = unreachable()
    try:
        download = partial(
            snapshot_download, name, revision=revision, local_files_only=problem is not None
        )
        folder = download(allow_patterns=list(patterns), ignore_patterns="*/*")
        if more:
            download(allow_patterns=list(more))
    except RevisionNotFoundError as error:
        raise UsageError(
            f"{setting}={name} has no revision '{revision}' on the Hugging Face hub"
        ) from error
    except (HFValidationError, RepositoryNotFoundError) as error:
        raise UsageError(
            f"{setting}={name} is neither a folder nor a model on the Hugging Face hub"
        ) from error
    except Exception as error:  # the library's errors have no common base class
        raise EnvironmentProblem(
            f"{setting}={name} is not a folder, no copy of it is on this machine, and the Hugging Face hub cannot be"
            f" reached ({problem or describe_error(error)}): give a folder that has the model"
        ) from error
    return Path(folder)


def describe_error(error: BaseException) -> str:
    """Return the class and the message of an error on one line of at most 300 characters, without unsafe advice."""
    if any(advice in str(error) for advice in ("trust_remote_code", "weights_only")):
        return f"{type(error).__name__}: its files need code of their own, which is never run"
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
