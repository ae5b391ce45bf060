"""GGUF files: configuration, tokenizer and weights of a language model in one file of llama.cpp.

transformers loads them. Their headers are read here first, because the libraries read some damaged ones without an end
or without an error. Begin with `read_header`.

Source: the format, https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import mmap
import struct
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten
from typing import Any

from longsumbench.errors import DataError, EnvironmentProblem, UsageError

_MAGIC, _VERSIONS = b"GGUF", (2, 3)
_ADVICE = "fetch it again, or give another"
_SERVER = "let a llama.cpp server read it, with model.engine=api model.base_url=…"
# kinds of values → their formats in the module struct
_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_TEXT, _ARRAY = 8, 9
# what reading a damaged header raises
_DAMAGES = (
    struct.error,
    ArithmeticError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
_ALIGNMENT = 32  # bytes, of weights in a file that names no other
# the end of a text, of a turn, of a message that calls a tool
_ENDS = ("eos", "eot", "eom")
_LONGEST_NAMES = 200  # characters, of files in a message
# architectures whose scaled positions transformers reads; of others it ignores them
_SCALED = ("gpt-oss", "gemma4")


@dataclass(frozen=True)
class GGUFHeader:
    """The header of a GGUF file.

    Attributes:
        metadata: key → value, such as "general.architecture" → "llama".
        tensors: names of the weights.
    """

    metadata: dict[str, Any]
    tensors: list[str]

    @property
    def architecture(self) -> str:
        """The model's architecture, in llama.cpp's words."""
        return str(self.metadata.get("general.architecture", "unknown"))

    @property
    def weights(self) -> str:
        """The format of the weights, with their quantization ("GGUF Q4_1")."""
        from gguf import LlamaFileType

        for kind in LlamaFileType:
            if kind.value == self.metadata.get("general.file_type"):
                return f"GGUF {kind.name.partition('_')[2]}"
        return "GGUF"

    @property
    def end_ids(self) -> list[int]:
        """The tokens that end an answer."""
        ids = []
        for name in _ENDS:
            number = self.metadata.get(f"tokenizer.ggml.{name}_token_id")
            if number is not None and number not in ids:
                ids.append(number)
        return ids

    @property
    def has_tokenizer(self) -> bool:
        """Whether the file has a vocabulary."""
        return bool(self.metadata.get("tokenizer.ggml.tokens"))


class _HeaderReader:
    """Reads the values of a header one after another; errors of any kind if they are damaged."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content, self.position = content, 0

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self.content, self.position)
        self.position += struct.calcsize(form)
        return value

    def text(self) -> str:
        length = self.number("Q")
        text = self.content[self.position : self.position + length]
        if len(text) < length:
            raise ValueError("a text ends after the file")
        self.position += length
        return text.decode()

    def value(self, kind: int) -> Any:
        if kind == _TEXT:
            return self.text()
        if kind != _ARRAY:
            return self.number(_NUMBERS[kind])
        kind, length = self.number("I"), self.number("Q")
        return [self.value(kind) for _ in range(length)]

    def tensor(self) -> tuple[str, int]:
        """Read the entry of a tensor; return its name, and where its weights end in the data."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

        name = self.text()
        sizes = [self.number("Q") for _ in range(self.number("I"))]
        kind, offset = GGMLQuantizationType(self.number("I")), self.number("Q")
        weights_of_block, bytes_of_block = GGML_QUANT_SIZES[kind]
        return name, offset + math.prod(sizes) // weights_of_block * bytes_of_block


def find_gguf(path: Path, shown_as: str) -> Path | None:
    """Return a path that is a GGUF file, or the only one in a folder without other weights; None if there is none.

    Raises:
        UsageError: there is no such file, or the folder has several.
        DataError: it is not a regular file.
    """
    if not path.is_dir():
        if path.suffix == ".gguf":
            _check_exists(path, shown_as)
            return path
        return path if _has_magic(path) else None
    files = sorted(path.glob("*.gguf"))
    if not files or any(path.glob("*.safetensors")) or any(path.glob("*.bin")):
        return None
    if len(files) > 1:
        names = shorten(", ".join(file.name for file in files), _LONGEST_NAMES, placeholder=" …")
        raise UsageError(f"{shown_as} has several GGUF files ({names}): give the path of one")
    return files[0]


def _check_exists(path: Path, shown_as: str) -> None:
    if not path.exists():
        raise UsageError(f"{shown_as}: there is no such file; correct the path")
    if not path.is_file():
        raise DataError(f"{shown_as} is not a regular file; {_ADVICE}")


def _has_magic(path: Path) -> bool:
    """Return whether a file without the suffix is a GGUF file, as those that Ollama stores."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def refuse_gguf(path: Path, shown_as: str) -> None:
    """Raise UsageError if a path is a GGUF file or has only those."""
    if find_gguf(path, shown_as):
        raise UsageError(
            f"{shown_as} is a GGUF file, which only model=prompt reads: give a folder of save_pretrained, or a name on"
            " the Hugging Face hub"
        )


def read_header(path: Path, shown_as: str) -> GGUFHeader:
    """Read the header of a GGUF file, and check that its weights are there.

    Args:
        path: the file.
        shown_as: the file in messages.

    Raises:
        UsageError: it is a part of a split file, or transformers would read it wrongly.
        EnvironmentProblem: the package gguf is missing.
        DataError: it is damaged, of another version, or no GGUF file.
    """
    try:
        import gguf  # noqa: F401
    except ImportError as error:
        raise EnvironmentProblem(
            f"{shown_as} needs the package gguf: pip install -e '.[checkpoints]' in the clone"
        ) from error
    if path.stat().st_size == 0:
        raise DataError(f"{shown_as} is empty; {_ADVICE}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        try:
            header, end = _parse_header(content, shown_as)
            _check_readable(header, shown_as)
        except _DAMAGES as error:
            problem = f"{shown_as}: its header is damaged or incomplete ({error}); {_ADVICE}"
            raise DataError(problem) from error
        if end > len(content):
            raise DataError(
                f"{shown_as} is incomplete: {len(content):,} of {end:,} bytes; {_ADVICE}"
            )
    return header


def _parse_header(content: mmap.mmap, shown_as: str) -> tuple[GGUFHeader, int]:
    """Return the header, and where the weights of the file end."""
    if content[: len(_MAGIC)] != _MAGIC:
        raise DataError(f"{shown_as} is not a GGUF file; {_ADVICE}")
    reader = _HeaderReader(content)
    reader.position = len(_MAGIC)
    version = reader.number("I")
    if version not in _VERSIONS:
        known = " and ".join(map(str, _VERSIONS))
        raise DataError(
            f"{shown_as} is a GGUF file of version {version}, not of {known}; {_ADVICE}"
        )
    num_tensors, num_values = reader.number("Q"), reader.number("Q")
    metadata = {}
    for _ in range(num_values):
        key, kind = reader.text(), reader.number("I")
        metadata[key] = reader.value(kind)
    tensors = [reader.tensor() for _ in range(num_tensors)]
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    start = math.ceil(reader.position / alignment) * alignment
    end = max((end for _, end in tensors), default=0)
    return GGUFHeader(metadata, [name for name, _ in tensors]), start + end


def _check_readable(header: GGUFHeader, shown_as: str) -> None:
    """Raise UsageError for a file that transformers would read wrongly without an error."""
    parts = header.metadata.get("split.count", 0)
    if parts > 1:
        raise UsageError(
            f"{shown_as} is one of {parts} parts of a model: join them by `llama-gguf-split --merge`, and give the result"
        )
    scaling = header.metadata.get(f"{header.architecture}.rope.scaling.type", "none")
    has_factors = any(name.startswith("rope_f") for name in header.tensors)
    if (has_factors or scaling != "none") and header.architecture not in _SCALED:
        raise UsageError(
            f"{shown_as} has scaled positions, which transformers does not read from GGUF files: give the model's"
            f" safetensors, or {_SERVER}"
        )


def unknown_architecture(header: GGUFHeader, shown_as: str, reason: str) -> UsageError:
    """Return the error about a file whose architecture transformers cannot read."""
    return UsageError(
        f"{shown_as}: transformers cannot read a GGUF file of the architecture '{header.architecture}' ({reason}):"
        f" {_SERVER}"
    )


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


def forget_quantization(network: Any) -> None:
    """Make a network whose weights are dequantized an ordinary one, which can be saved and trained."""
    network.hf_quantizer = None
    if hasattr(network.config, "quantization_config"):
        del network.config.quantization_config
