"""GGUF files: configuration, tokenizer and weights of a language model in one file of llama.cpp.

`checkpoints` loads them by transformers. Here is what transformers does not say. Begin with `read_header`.
"""

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longsumbench.cache.artifacts import hash_file
from longsumbench.errors import DataError, EnvironmentProblem, UsageError, as_suite_error
from longsumbench.interrupts import within_seconds

LLAMA_CPP = "let a llama.cpp server read it, with model.engine=api model.base_url=…"
# seconds; the library reads a large vocabulary in minutes on a busy machine, and some damaged headers without an end
LONGEST_GGUF_READING = 300.0
# architectures whose scaled positions transformers reads; of others it ignores them
_SCALED = ("gpt-oss", "gemma4")


def find_gguf(path: Path, shown_as: str) -> Path | None:
    """Return a path that is a GGUF file, or the only one in a folder without other weights; None if there is none.

    A file needs no ending, as in the cache of other programs.

    Raises:
        UsageError: there is no such file, or the folder has several.
    """
    if path.is_file():
        with path.open("rb") as file:
            return path if path.suffix == ".gguf" or file.read(4) == b"GGUF" else None
    with_ending = Path(f"{path}.gguf")
    if not path.is_dir() and (path.suffix == ".gguf" or with_ending.is_file()):
        advice = f"did you mean {with_ending}?" if with_ending.is_file() else "correct the path"
        raise UsageError(f"{shown_as}: there is no such file; {advice}")
    files = sorted(path.glob("*.gguf"))
    if not files or any(path.glob("*.safetensors")) or any(path.glob("*.bin")):
        return None
    if len(files) > 1:
        raise UsageError(
            f"{shown_as} has {len(files)} GGUF files: give the path of one, such as {files[0]}"
        )
    return files[0]


def refuse_gguf(path: Path, shown_as: str) -> None:
    """Raise UsageError if a path is a GGUF file or has only those."""
    if find_gguf(path, shown_as):
        raise UsageError(
            f"{shown_as} is a GGUF file, which only model=prompt reads: give a folder of save_pretrained, or a name on"
            " the Hugging Face hub"
        )


def read_header(path: Path) -> dict[str, Any]:
    """Return the metadata of a GGUF file ("general.architecture" → "llama"), and the names of its "tensors".

    Raises:
        UsageError: it is a part of a split file, or transformers would read it wrongly without an error.
        EnvironmentProblem: the package gguf is missing.
        DataError: it is damaged, of another version, or no GGUF file.
    """
    try:
        header = within_seconds(LONGEST_GGUF_READING, lambda: _read_header(path, hash_file(path)))
    except ImportError as error:
        problem = f"{path} needs the package gguf: pip install -e '.[checkpoints]' in the clone"
        raise EnvironmentProblem(problem) from error
    except Exception as error:  # the library's errors have no common base class
        if as_suite_error(error):
            raise
        problem = f"cannot be read as a GGUF file ({error}); fetch it again, or give another"
        raise DataError(problem, path) from error
    if header.get("split.count", 1) != 1:
        raise UsageError(
            f"{path} is a part of a model: join all parts by `llama-gguf-split --merge`, and give the result"
        )
    architecture = header.get("general.architecture")
    scaling = header.get(f"{architecture}.rope.scaling.type", "none")
    has_factors = any(name.startswith("rope_f") for name in header["tensors"])
    if (has_factors or scaling != "none") and architecture not in _SCALED:
        raise UsageError(
            f"{path} has scaled positions, which transformers does not read from GGUF files: give the model's"
            f" safetensors, or {LLAMA_CPP}"
        )
    return header


@cache  # takes seconds
def _read_header(path: Path, sha256: str) -> dict[str, Any]:
    from gguf import GGUFReader

    reader = GGUFReader(path)
    header = {key: field.contents() for key, field in reader.fields.items()}
    return {**header, "tensors": [tensor.name for tensor in reader.tensors]}


def gguf_weights(path: Path) -> str:
    """Return the format of the weights in a file, with their quantization ("GGUF Q4_1")."""
    from gguf import LlamaFileType

    number = read_header(path).get("general.file_type")
    names = [kind.name.partition("_")[2] for kind in LlamaFileType if kind.value == number]
    return " ".join(["GGUF", *names])


def gguf_title(path: Path) -> str | None:
    """Return the name that a file has for its model ("Qwen2.5-Coder-0.5B"); None without one."""
    header = read_header(path)
    parts = [header.get(f"general.{part}") for part in ("basename", "size_label", "finetune")]
    return "-".join(filter(None, parts)) if parts[0] else header.get("general.name")


def gguf_ends(path: Path) -> list[int]:
    """Return the tokens that end an answer: of the end of a text, of a turn, and of a call of a tool."""
    header = read_header(path)
    ids = [header.get(f"tokenizer.ggml.{name}_token_id") for name in ("eos", "eot", "eom")]
    return [number for number in dict.fromkeys(ids) if number is not None]


@contextmanager
def loading_arguments(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `from_pretrained` that name a checkpoint: a folder, or a GGUF file.

    The file is alone in a folder. Next to it, transformers would also read an adapter or the tokenizer of another model.
    """
    if path.is_dir():
        yield {"pretrained_model_name_or_path": path}
        return
    # The bars of transformers, which no setting of it turns off here, go to stderr.
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        (Path(folder) / "model.gguf").symlink_to(path.resolve())
        yield {"pretrained_model_name_or_path": folder, "gguf_file": "model.gguf"}


def dequantizing_options() -> dict[str, Any]:
    """Return arguments of `from_pretrained` with which no code for quantized weights is fetched from the hub."""
    import transformers

    if not hasattr(transformers, "GgufConfig"):  # versions that always dequantize
        return {}
    return {"quantization_config": transformers.GgufConfig(dequantize=True)}
