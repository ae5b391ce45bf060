"""Vectors of texts by a pretrained sentence encoder, and the rankers that compare them.

    texts --SentenceEncoder.vectors--> vectors of length 1 --cosines--> scores

An encoder is a folder, or a name on the hub, with a network such as BERT and a tokenizer. What sentence-transformers
adds to it (pooling, longest text, prompts) is read from its JSON files, without that library. Imports no torch at first.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from longsumbench import core
from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, digest, read_json, replaced_file
from longsumbench.modeling.checkpoints import (
    FETCH_AGAIN,
    check_finite,
    is_language_model,
    load_config,
    load_encoder,
    model_digest,
    model_folder,
    read_config,
    reading_checkpoint,
)
from longsumbench.modeling.ranking import check_title, lexrank_of_vectors

if TYPE_CHECKING:
    from torch import Tensor

_log = logging.getLogger(__name__)

_Vectors = NDArray[np.float64]
_Content = TypeVar("_Content")
VECTORS_VERSION = 1  # increases when the same texts and encoder give other vectors or scores
_SETTING = "rank_checkpoint"
_BATCH_SIZE = 32  # texts, as in sentence-transformers
MOST_TOKENS = 8_192  # of a text, for a network that names no limit
_POOLING_FILES = "*_Pooling/config.json"
# What sentence-transformers calls a way of pooling → ours. The length only scales a vector, which no cosine sees.
_POOLINGS = {"mean": "mean", "mean_sqrt_len": "mean", "cls": "cls", "max": "max"}
_MODULES = ("Transformer", "Pooling", "Normalize")
_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


@dataclass
class _LengthFile:
    """`sentence_bert_config.json`."""

    max_seq_length: int | None = None
    do_lower_case: bool = False


@dataclass
class _PromptsFile:
    """`config_sentence_transformers.json`."""

    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None

    def first_of(self, *names: str) -> str:
        """Return the first prompt that has one of some names, else the default one, else an empty text."""
        for name in (*names, self.default_prompt_name):
            if name in self.prompts:
                return self.prompts[name]
        return ""


@dataclass(frozen=True)
class EncoderForm:
    """How an encoder is used.

    Attributes:
        pooling: "mean" of the states of all tokens, "max" of each dimension, or "cls", the first token's state.
        max_length: most tokens of a text, with special tokens; None: as many as the network reads.
        lower_case: True if texts are lower-cased first.
        query_prompt: starts a title or query.
        text_prompt: starts a text that is ranked.
    """

    pooling: str = "mean"
    max_length: int | None = None
    lower_case: bool = False
    query_prompt: str = ""
    text_prompt: str = ""


def read_encoder_form(folder: Path, shown_as: str) -> EncoderForm:
    """Read the files of sentence-transformers in an encoder's folder; without them, mean pooling.

    `shown_as` is the encoder in messages.

    Raises:
        UsageError: the encoder has another pooling, or further layers.
        DataError: a file is damaged.
    """
    for module in _read_optional(folder / "modules.json", list[dict[str, Any]]):
        kind = str(module.get("type")).rpartition(".")[2]
        if kind not in _MODULES:
            layers = f"a layer '{kind}', and the suite has {', '.join(_MODULES)}"
            raise UsageError(f"{shown_as} has {layers}: choose another encoder")
    lengths = _read_optional(folder / "sentence_bert_config.json", _LengthFile)
    prompts = _read_optional(folder / "config_sentence_transformers.json", _PromptsFile)
    query_prompt = prompts.first_of("query")
    text_prompt = prompts.first_of("document", "passage", "corpus")
    pooling = "mean"
    for path in folder.glob(_POOLING_FILES):
        described = _read_optional(path, dict[str, Any])
        pooling = _pooling_of(described, shown_as)
        if (query_prompt or text_prompt) and described.get("include_prompt") is False:
            raise UsageError(
                f"{shown_as} leaves prompts out of the pooling, which the suite cannot: choose another encoder"
            )
    return EncoderForm(
        pooling, lengths.max_seq_length, lengths.do_lower_case, query_prompt, text_prompt
    )


def _read_optional(path: Path, kind: type[_Content]) -> _Content:
    """Read a JSON file; the empty content of a type if there is none."""
    if not path.is_file():
        return kind()
    try:
        return read_json(path, kind)
    except BadFile as error:
        raise DataError(f"{error}; {FETCH_AGAIN}", path) from error


def _pooling_of(described: dict[str, Any], shown_as: str) -> str:
    """Return the pooling that a file of sentence-transformers describes."""
    prefix = "pooling_mode_"
    modes = []
    for key, value in described.items():
        if key.startswith(prefix) and value is True:
            modes.append(key.removeprefix(prefix).removesuffix("_tokens").removesuffix("_token"))
    if "pooling_mode" in described:  # newer files name it
        modes = [str(described["pooling_mode"])]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        shown_modes = " and ".join(modes) or "nothing"
        raise UsageError(
            f"{shown_as} pools by {shown_modes}, and the suite by one of {', '.join(_POOLINGS)}: choose another encoder"
        )
    return _POOLINGS[modes[0]]


class SentenceEncoder:
    """A pretrained encoder that turns texts into vectors. Its network is loaded when it is first used.

    Args:
        checkpoint: its folder, or its name on the hub.
        stages: the cache that keeps the vectors, by encoder and texts; None: they are not kept.

    Attributes:
        num_tokens: tokens of all texts so far, without special tokens and prompts.
        num_cut: those that were beyond the encoder's longest text.
    """

    def __init__(self, checkpoint: str | None, stages: ArtifactCache | None = None) -> None:
        self.checkpoint, self.stages = checkpoint, stages
        self.num_tokens = self.num_cut = 0

    @cached_property
    def folder(self) -> Path:
        """The folder of the encoder.

        Raises:
            UsageError: it does not exist, has no weights in safetensors, or its network writes text.
            EnvironmentProblem: it is on the hub, and cannot be fetched.
            DataError: a file is damaged.
        """
        folder = model_folder(self.checkpoint, _SETTING, more=(_POOLING_FILES,))
        described = read_config(folder)
        classes = [str(name) for name in described.get("architectures") or ()]
        writes = described.get("is_encoder_decoder") is True or described.get("is_decoder") is True
        if writes or any(name.endswith(_WRITERS) for name in classes):
            raise _not_an_encoder(folder, described["model_type"])
        return folder

    @property
    def shown_as(self) -> str:
        """The encoder in messages."""
        return f"{_SETTING}={self.folder}"

    @cached_property
    def form(self) -> EncoderForm:
        """How it is used; errors are those of `folder` and `read_encoder_form`."""
        return read_encoder_form(self.folder, self.shown_as)

    @cached_property
    def identity(self) -> str:
        """A text that differs between encoders with different vectors: digest of the files, pooling."""
        return f"{model_digest(self.folder)} {self.form.pooling}"

    @cached_property
    def _loaded(self) -> tuple[Any, Any, int]:
        """The tokenizer, the network, and the most tokens of a text, with special tokens."""
        from transformers import AutoModel

        config = load_config(AutoModel, self.folder, self.shown_as)
        if config.is_encoder_decoder or is_language_model(config):
            raise _not_an_encoder(self.folder, config.model_type)
        tokenizer, network = load_encoder(self.folder, self.shown_as)
        check_words(tokenizer, self.shown_as)
        tokenizer.padding_side = "right"
        limit = min(tokenizer.model_max_length, num_positions(network))
        if self.form.max_length is not None:
            limit = min(limit, self.form.max_length)
        if limit <= tokenizer.num_special_tokens_to_add():
            raise DataError(
                f"{self.shown_as} reads at most {limit} tokens of a text; {FETCH_AGAIN}"
            )
        return tokenizer, network.float().eval(), limit

    def query_vector(self, query: str, device: str = "auto") -> _Vectors:
        """Return the vector of a title or query: [dimensions], as in `vectors`."""
        vector: _Vectors = self._vectors([query], self.form.query_prompt, device)[0]
        return vector

    def vectors(self, texts: Sequence[str], device: str = "auto") -> _Vectors:
        """Return the vectors of texts, in their order: [texts, dimensions]; `device` is "auto", "cpu" or "cuda".

        A vector has length 1; that of a text without tokens is 0. A text's vector depends on no other text, up to
        float32 rounding, and equal texts have equal ones. Texts are cut at the longest that the encoder reads.

        Raises:
            UsageError: the checkpoint is not an encoder, or has no tokenizer.
            DataError: a file is damaged, or a number is not finite.
        """
        return self._vectors(texts, self.form.text_prompt, device)

    def _vectors(self, texts: Sequence[str], prompt: str, device: str) -> _Vectors:
        stripped = [text.strip() for text in texts]
        if self.form.lower_case:
            stripped = [text.lower() for text in stripped]
        # Sorted, so that batches do not depend on the order: rounding would.
        distinct = sorted(set(stripped))
        vectors, counts = self._stored(distinct, prompt, device)
        self._count_cut(counts)
        place = {text: index for index, text in enumerate(distinct)}
        doubled = vectors.astype(np.float64)
        norms = np.linalg.norm(doubled, axis=1, keepdims=True)
        unit_vectors: _Vectors = doubled / np.where(norms > 0, norms, 1)
        return unit_vectors[[place[text] for text in stripped]]

    def _stored(
        self, texts: Sequence[str], prompt: str, device: str
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return what `_encode` returns, from the cache if it is there.

        All vectors of an encoder are in one stage, a file for each example: encoding takes seconds, reading 1 ms.
        """
        if self.stages is None:
            return self._encode(texts, prompt, device)
        inputs = {"encoder": self.identity, "version": VECTORS_VERSION}
        folder = self.stages.get("vectors", inputs, lambda partial: None)
        path = folder / f"{digest([prompt, *texts])[:32]}.npz"
        try:
            with np.load(path) as content:
                return content["vectors"], content["counts"]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            pass  # missing or damaged: the texts are encoded again
        vectors, counts = self._encode(texts, prompt, device)
        with replaced_file(path) as file:
            np.savez(file, vectors=vectors, counts=counts)
        return vectors, counts

    def _encode(
        self, texts: Sequence[str], prompt: str, device: str
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Return the vectors of texts, of any length, and [texts, 2]: their tokens, and those that are cut."""
        import torch

        from longsumbench.modeling.nn.device import choose_device

        tokenizer, network, limit = self._loaded
        network.to(choose_device(device))
        with reading_checkpoint(self.shown_as), torch.inference_mode():
            encoded = tokenizer([prompt, *texts], add_special_tokens=False, verbose=False)
            of_prompt, *lengths = [len(ids) for ids in encoded["input_ids"]]
            room = limit - tokenizer.num_special_tokens_to_add() - of_prompt
            counts = np.array([(length, max(0, length - room)) for length in lengths], np.int64)
            vectors = np.zeros((len(texts), network.config.hidden_size), np.float32)
            # The longest first, which shows at once if they do not fit into memory; texts without tokens stay 0.
            order = [index for index in np.argsort(-counts[:, 0], kind="stable") if lengths[index]]
            for start in range(0, len(order), _BATCH_SIZE):
                indices = order[start : start + _BATCH_SIZE]
                batch = tokenizer(
                    [prompt + texts[index] for index in indices],
                    truncation=True,
                    max_length=limit,
                    padding=True,
                    return_tensors="pt",
                ).to(network.device)
                states = network(**batch).last_hidden_state
                pooled = pool_states(states, batch["attention_mask"], self.form.pooling)
                vectors[indices] = pooled.float().cpu().numpy()
        check_finite(vectors, self.shown_as)
        return vectors, counts

    def facts(self) -> dict[str, int]:
        """Return the numbers of tokens of all texts so far, and of those that were cut."""
        return {"encoder_tokens": self.num_tokens, "encoder_tokens_cut": self.num_cut}

    def _count_cut(self, counts: NDArray[np.int64]) -> None:
        tokens, cut = counts.sum(axis=0).tolist()
        if cut and not self.num_cut:
            _log.warning(
                f"{self.shown_as} does not read the ends of long texts: facts about the run count them"
            )
        self.num_tokens += tokens
        self.num_cut += cut


def _not_an_encoder(folder: Path, model_type: str) -> UsageError:
    return UsageError(
        f"{_SETTING}={folder} is a model that writes text ('{model_type}'): give an encoder of sentences"
    )


def pool_states(states: "Tensor", mask: "Tensor", pooling: str) -> "Tensor":
    """Return one vector for each text: [texts, tokens, dimensions] → [texts, dimensions].

    Args:
        states: last hidden states.
        mask: 1 where a token is real: [texts, tokens].
        pooling: "mean", "max" or "cls", as in `EncoderForm`.
    """
    if pooling == "cls":
        return states[:, 0]
    is_padding = mask.unsqueeze(-1) == 0
    if pooling == "max":
        return states.masked_fill(is_padding, -np.inf).amax(dim=1)
    return states.masked_fill(is_padding, 0).sum(dim=1) / mask.sum(dim=1, keepdim=True)


def check_words(tokenizer: Any, shown_as: str) -> None:
    """Check that a tokenizer has words; if a folder has no tokenizer, transformers makes one of special tokens.

    Raises:
        UsageError: it has none; the message names the model by `shown_as`.
    """
    if len(tokenizer) <= len(set(tokenizer.all_special_ids)):
        raise UsageError(
            f"{shown_as} has no tokenizer: add its files, as save_pretrained writes them"
        )


def num_positions(network: Any) -> int:
    """Return how many tokens a network reads; RoBERTa's first positions belong to no token."""
    for name, part in network.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            return int(part.num_embeddings - part.padding_idx - 1)
    limit: int = getattr(network.config, "max_position_embeddings", None) or 0
    return limit if limit > 0 else MOST_TOKENS  # XLNet's is -1


class _VectorRanker(core.EncoderRanker):
    """Base class of the rankers that compare vectors of a `SentenceEncoder`."""

    version: ClassVar[int] = VECTORS_VERSION

    def __init__(self, checkpoint: str | None, stages: ArtifactCache | None = None) -> None:
        self.encoder = SentenceEncoder(checkpoint, stages)

    @property
    def identity(self) -> str:
        """The version, and what identifies the encoder."""
        return f"{self.version} {self.encoder.identity}"

    def facts(self) -> dict[str, int]:
        """Return the numbers of tokens of all texts so far, and of those that were cut."""
        return self.encoder.facts()


class EmbeddingRanker(_VectorRanker):
    """Scores paragraphs by the cosine of their vectors with that of the title or query.

    Scores are from -1 to 1; a text without tokens scores 0, and so does every text if the title has none.
    """

    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> core.Scores:
        """Score paragraphs: [paragraphs].

        Raises:
            UsageError: the title is None.
        """
        topic = check_title(title)
        if not paragraphs:
            return np.zeros(0)
        vectors = self.encoder.vectors(paragraphs, self.device)
        cosines: core.Scores = vectors @ self.encoder.query_vector(topic, self.device)
        return cosines


class EmbeddingLexRank(_VectorRanker):
    """Scores paragraphs by LexRank over the cosines of their vectors, and ignores the title."""

    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> core.Scores:
        """Score paragraphs: [paragraphs], as `lexrank_of_vectors`."""
        if not paragraphs:
            return np.zeros(0)
        return lexrank_of_vectors(self.encoder.vectors(paragraphs, self.device))
