"""Pretrained sentence encoders, and rankers that compare their vectors.

    texts --SentenceEncoder--> vectors of length 1 --cosines--> scores

An encoder is a folder, or a name on the hub, with a network such as BERT and a tokenizer. What sentence-transformers
adds to it (pooling, longest text, prompts) is read from its JSON files, without that library. Torch is imported when
the first text is encoded.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from longsumbench import core
from longsumbench.cache.artifacts import user_cache
from longsumbench.errors import DataError, UsageError
from longsumbench.files import BadFile, as_type, digest, read_json, replaced_file
from longsumbench.modeling import checkpoints
from longsumbench.modeling.pretrained import Pretrained
from longsumbench.modeling.ranking import check_title, score_vectors_by_lexrank

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

_log = logging.getLogger(__name__)

ENCODING_VERSION = 1  # increases when an encoder gives other vectors
MOST_TOKENS = 8_192  # of a text, for a network that names no limit
_BATCH_SIZE = 32  # texts, as in sentence-transformers
_POOLING_FILE = "1_Pooling/config.json"
_FORM_FILES = ("sentence_bert_config.json", "config_sentence_transformers.json", _POOLING_FILE)
_MODULES = ("Transformer", "Pooling", "Normalize")
POOLINGS = ("mean", "cls", "max")
_TEXT_PROMPTS = ("document", "passage")
_WORD_CHARACTER = re.compile(r"\w")


@dataclass(frozen=True)
class EncoderForm:
    """How texts become vectors; the names are those in the files of sentence-transformers.

    Attributes:
        pooling_mode: "mean" of the states of all tokens, "max" of each dimension, or "cls", the first token's state.
        max_seq_length: most tokens of a text, with special tokens; None: as many as the network reads.
        do_lower_case: True to read lower-cased texts.
        prompts: name → beginning of a text: "query" of titles and queries, "document" or "passage" of other texts.
        default_prompt_name: the prompt of texts without their own.
    """

    pooling_mode: str = "mean"
    max_seq_length: int | None = None
    do_lower_case: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None

    def first_prompt(self, *names: str) -> str:
        """Return the first prompt that has one of some names, else the default one, else an empty text."""
        for name in (*names, self.default_prompt_name):
            if name in self.prompts:
                return self.prompts[name]
        return ""


def read_encoder_form(folder: Path, shown_as: str, pooling: str | None = None) -> EncoderForm:
    """Read the files of sentence-transformers in an encoder's folder; without them, pooling is by the mean.

    Args:
        folder: of the encoder.
        shown_as: the encoder in messages.
        pooling: the pooling to use instead of that of the files.

    Raises:
        UsageError: the encoder has another pooling, or further layers.
        DataError: a file is damaged.
    """
    described: dict[str, Any] = {}
    modules: list[dict[str, Any]] = []
    try:
        for name in _FORM_FILES:
            if (folder / name).is_file():
                described |= read_json(folder / name, dict[str, Any])
        if (folder / "modules.json").is_file():
            modules = read_json(folder / "modules.json", list[dict[str, Any]])
        form = as_type({"pooling_mode": _named_modes(described), **described}, EncoderForm)
        form = replace(form, pooling_mode=pooling or form.pooling_mode)
    except BadFile as error:
        raise DataError(
            f"{shown_as}: a file of sentence-transformers is damaged ({error})"
        ) from error
    others = {str(module.get("type")).rpartition(".")[2] for module in modules}.difference(_MODULES)
    if others or form.pooling_mode not in POOLINGS:
        part = " and ".join(sorted(others)) or f"pooling by {form.pooling_mode}"
        choices = f"{' and '.join(_MODULES)}, by {', '.join(POOLINGS)}"
        raise UsageError(
            f"{shown_as} has {part}, and the suite has {choices}: choose another encoder"
        )
    return form


def _named_modes(described: dict[str, Any]) -> str:
    """Return the pooling of older files, which have one entry for each mode."""
    modes = []
    for key, value in described.items():
        if key.startswith("pooling_mode_") and value is True:
            modes.append(key.removeprefix("pooling_mode_").partition("_token")[0])
    return " and ".join(modes) or "mean"


class SentenceEncoder:
    """A pretrained encoder: texts → vectors. The network is loaded when a text is encoded that is not in the cache.

    Args:
        name: folder, or name on the hub.
        setting: the setting with this value, for messages ("rank_checkpoint").
        pooling: as in `EncoderForm`; None: as its files say.

    Attributes:
        name: of the model, without other folders.
        device: where it runs ("auto", "cpu", "cuda").
        signature: what decides the vectors: the digest of its files, and the pooling.
        num_cut: number of texts so far that were longer than it reads.
        tokens_cut: number of tokens of these that it did not read.

    Raises:
        UsageError: the encoder does not exist, or the suite cannot use it.
        EnvironmentProblem: it is on the hub, and cannot be fetched.
        DataError: a file is damaged.
    """

    def __init__(
        self, name: str | None, setting: str, device: str = "auto", pooling: str | None = None
    ) -> None:
        self.model = Pretrained.find(name, setting, more=(_POOLING_FILE,))
        self.shown_as = self.model.shown_as
        self.form = read_encoder_form(self.model.folder, self.shown_as, pooling)
        self.name, self.device = Path(str(name)).name, device
        self.num_cut = self.tokens_cut = 0
        # The file of the pooling is in a folder below, which the digest leaves out.
        self.signature = (
            f"{checkpoints.model_digest(self.model.folder)}|pooling:{self.form.pooling_mode}"
        )

    @cached_property
    def _network(self) -> tuple[Any, Any, int]:
        """The tokenizer, the network, and the most tokens of a text, with special tokens."""
        from transformers import AutoModel

        self.model.encoder_config()
        # The encoder's own pooler is not used.
        tokenizer, network = self.model.network_with_tokenizer(AutoModel, may_lack="pooler")
        tokenizer.padding_side = "right"
        limit = min(tokenizer.model_max_length, num_positions(network))
        return tokenizer, network.float().eval(), min(limit, self.form.max_seq_length or limit)

    def __call__(self, texts: Sequence[str], *prompt_names: str) -> NDArray[np.float64]:
        """Return the vectors of texts, in their order: [texts, dimensions].

        A vector has length 1; that of a text without words is 0. It depends on no other text, up to the rounding of
        float32. Equal texts have equal vectors. Texts are cut at the longest that the encoder reads.

        Args:
            texts: at least one.
            prompt_names: the encoder's first prompt of these names starts each text.

        Raises:
            UsageError: the checkpoint is not an encoder, or has no tokenizer.
            DataError: a file is damaged, or a number is not finite.
        """
        prompt = self.form.first_prompt(*prompt_names)
        stripped = [text.strip() for text in texts]
        # Sorted, so that batches, and so rounding, do not depend on the order; the longest first, which shows at once
        # if they do not fit into memory.
        distinct = sorted(set(stripped), key=lambda text: (-len(text), text))
        vectors, tokens_cut = self._stored(prompt, distinct)
        if tokens_cut.any() and not self.num_cut:
            _log.warning(
                f"{self.shown_as} reads only the beginning of some texts: they are too long"
            )
        self.num_cut += int(np.count_nonzero(tokens_cut))
        self.tokens_cut += int(tokens_cut.sum())
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit_vectors = dict(zip(distinct, vectors / np.where(norms > 0, norms, 1), strict=True))
        return np.stack([unit_vectors[text] for text in stripped])

    def _stored(
        self, prompt: str, texts: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return what `_encode` returns, from the cache if it is there.

        All vectors of an encoder are in one stage, a file for each example: to encode takes seconds, to read 1 ms.
        """
        inputs = {"encoder": self.signature, "version": ENCODING_VERSION}
        folder = user_cache().get("vectors", inputs, lambda partial: None)
        path = folder / f"{digest([prompt, *texts])[:32]}.npz"
        try:
            with path.open("rb") as file, np.load(file) as content:
                return content["vectors"], content["tokens_cut"]
        except (OSError, ValueError, KeyError, EOFError, BadZipFile):
            pass  # missing or damaged: the texts are encoded again
        vectors, tokens_cut = self._encode(prompt, texts)
        with replaced_file(path) as new_file:
            np.savez(new_file, vectors=vectors, tokens_cut=tokens_cut)
        return vectors, tokens_cut

    def _encode(
        self, prompt: str, texts: Sequence[str]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the vectors of texts, of any length, and how many tokens of each text were cut."""
        import torch

        from longsumbench.modeling.nn.device import choose_device

        tokenizer, network, limit = self._network
        network.to(choose_device(self.device))
        begun = [prompt + text for text in texts]
        if self.form.do_lower_case:
            begun = [text.lower() for text in begun]
        pooled = []
        with checkpoints.reading_checkpoint(self.shown_as), torch.inference_mode():
            lengths = [len(ids) for ids in tokenizer(begun, verbose=False)["input_ids"]]
            for start in range(0, len(begun), _BATCH_SIZE):
                batch = tokenizer(
                    begun[start : start + _BATCH_SIZE],
                    truncation=True,
                    max_length=limit,
                    padding=True,
                    return_tensors="pt",
                ).to(network.device)
                states = network(**batch).last_hidden_state
                mode = self.form.pooling_mode
                pooled.append(pool_states(states, batch["attention_mask"], mode).cpu().numpy())
        vectors: NDArray[np.float64] = np.concatenate(pooled).astype(np.float64)
        checkpoints.check_finite(vectors, self.shown_as)
        vectors[[_WORD_CHARACTER.search(text) is None for text in texts]] = 0
        return vectors, np.maximum(np.array(lengths) - limit, 0)


class VectorRanker(core.EncoderRanker):
    """Base class of the rankers that compare vectors of a `SentenceEncoder`; errors are those of it."""

    version: ClassVar[int] = ENCODING_VERSION

    def __init__(self, settings: core.RankerSettings) -> None:
        self.device = settings.device
        self.encoder = SentenceEncoder(settings.rank_checkpoint, "rank_checkpoint")

    @property
    def identity(self) -> str:
        """The version, and what decides the vectors."""
        return f"{self.version} {self.encoder.signature}"

    def metadata(self) -> dict[str, int]:
        """Return the number of tokens that were cut."""
        return {"encoder_tokens_cut": self.encoder.tokens_cut}

    def vectors(self, texts: Sequence[str], *prompt_names: str) -> NDArray[np.float64]:
        """Return the vectors of texts, as the encoder does, on the ranker's device."""
        self.encoder.device = self.device
        return self.encoder(texts, *prompt_names)


class EmbeddingRanker(VectorRanker):
    """Scores paragraphs by the cosine of their vectors with that of the title or query.

    Scores are from -1 to 1; a text without words scores 0, and so does every text if the title has none.
    """

    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> core.Scores:
        """Score paragraphs: [paragraphs].

        Raises:
            UsageError: the title is None.
        """
        (topic,) = self.vectors([check_title(title)], "query")
        if not paragraphs:
            return np.zeros(0)
        cosines: core.Scores = self.vectors(paragraphs, *_TEXT_PROMPTS) @ topic
        return cosines


class EmbeddingLexRank(VectorRanker):
    """Scores paragraphs by LexRank over the cosines of their vectors, and ignores the title."""

    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> core.Scores:
        """Score paragraphs: [paragraphs], as `score_vectors_by_lexrank`."""
        if not paragraphs:
            return np.zeros(0)
        return score_vectors_by_lexrank(self.vectors(paragraphs, *_TEXT_PROMPTS))


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


def num_positions(network: "PreTrainedModel") -> int:
    """Return how many tokens a network reads; RoBERTa's first positions belong to no token."""
    for name, part in network.named_modules():
        if name.endswith("position_embeddings") and getattr(part, "padding_idx", None) is not None:
            return int(part.num_embeddings - part.padding_idx - 1)
    limit: int = getattr(network.config, "max_position_embeddings", None) or 0
    return limit if limit > 0 else MOST_TOKENS  # XLNet's is -1
