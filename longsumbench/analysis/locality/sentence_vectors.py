"""Computes sentence vectors of length 1, by tf-idf or a sentence encoder; their dot products are cosines."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import normalize

from longsumbench.errors import UsageError
from longsumbench.modeling.checkpoints import (
    check_finite,
    load_encoder,
    model_folder,
    model_signature,
    reading_checkpoint,
)
from longsumbench.modeling.ranking import tfidf

_ENCODER_SETTING = "encoder"
POOLINGS = ("mean", "cls", "max")
_ENCODER_MODULES = {"Transformer", "Pooling", "Normalize"}  # of sentence-transformers; others change the vectors
_POOLING_FILES = "*_Pooling/config.json"  # in addition to the files that every model has


class SentenceVectors(Protocol):
    """Computes vectors of the sentences of one text.

    Attributes:
        name: for titles.
        signature: how the vectors are computed.
        num_cut: number of truncated sentences so far.
    """

    name: str
    signature: str
    num_cut: int

    def __call__(self, sentences: Sequence[str]) -> Any:
        """Return an array or a sparse matrix, [sentences, width], with rows of length 1 or of zeros."""


class TfIdf:
    """tf-idf vectors, with the sentences of the text as documents; a sentence without terms is a row of zeros."""

    name = "tf-idf"
    signature = "tfidf"
    num_cut = 0

    def __call__(self, sentences: Sequence[str]) -> Any:
        """Return a sparse matrix."""
        vectors = tfidf(sentences)
        return normalize(vectors) if vectors.nnz else vectors  # the library refuses a matrix without columns


class Encoder:
    """A pretrained encoder, with its states pooled over a sentence's tokens.

    Args:
        model: folder, or name on the hub.
        pooling: "mean", "cls" or "max"; "auto": from its sentence-transformers configuration, "mean" without one.
        batch_size: number of sentences per batch.
        device: "auto", "cpu" or "cuda".

    Raises:
        UsageError: there is no such model, it cannot be read, or its configuration is not supported.
        EnvironmentProblem: the model cannot be downloaded, or there is no GPU for device "cuda".
    """

    def __init__(self, model: str, pooling: str = "auto", batch_size: int = 64, device: str = "auto") -> None:
        from longsumbench.modeling.nn.device import choose_device

        folder = model_folder(model, _ENCODER_SETTING, (_POOLING_FILES,))
        override = f"{_ENCODER_SETTING}={folder}"
        self._batch_size, self.num_cut = batch_size, 0
        self._tokenizer, network = load_encoder(folder, override)
        with reading_checkpoint(override):
            self._pooling = _pooling(folder) if pooling == "auto" else pooling
            encoder = network.get_encoder() if network.config.is_encoder_decoder else network
            self._network: Any = encoder.to(choose_device(device)).eval()
            limits = [self._tokenizer.model_max_length, getattr(network.config, "max_position_embeddings", None)]
            reading = _read_model_json(folder / "sentence_bert_config.json")
            self._longest = min(limit for limit in (*limits, reading.get("max_seq_length")) if limit)
            self._lower = bool(reading.get("do_lower_case"))
            # a text longer than most encoders read: some damaged weights show only in use
            check_finite(self._encode(["a sentence " * 300])[0], override)
        self.num_cut = 0  # do not count the test text
        self.name = Path(model).name
        self.signature = f"{model_signature(model, _ENCODER_SETTING)}|pooling:{self._pooling}"

    def __call__(self, sentences: Sequence[str]) -> Any:
        """Return an array; sentences of similar length are encoded together to reduce padding."""
        texts = [sentence.lower() if self._lower else sentence for sentence in sentences]
        order = sorted(range(len(texts)), key=lambda place: (-len(texts[place]), place))
        vectors: list[Any] = [None] * len(texts)
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            for place, vector in zip(batch, self._encode([texts[place] for place in batch]), strict=True):
                vectors[place] = vector
        return normalize(np.array(vectors, np.float64)) if vectors else np.zeros((0, 1))

    def _encode(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Return [texts, width]."""
        import torch

        cut = {"truncation": True, "max_length": self._longest, "padding": True, "return_tensors": "pt"}
        tokens = self._tokenizer(list(texts), **cut).to(self._network.device)
        real = tokens["attention_mask"].bool()
        full = [text for text, length in zip(texts, real.sum(dim=1).tolist(), strict=True) if length == self._longest]
        token_ids = self._tokenizer(full, verbose=False)["input_ids"] if full else []
        self.num_cut += sum(len(ids) > self._longest for ids in token_ids)
        with torch.inference_mode():
            states = self._network(**tokens).last_hidden_state.double()  # [texts, tokens, width]
            if self._pooling == "cls":
                pooled = states[:, 0]
            elif self._pooling == "max":
                pooled = states.masked_fill(~real[..., None], -torch.inf).amax(dim=1)
            else:
                pooled = (states * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        vectors: NDArray[np.float64] = pooled.cpu().numpy()
        return vectors


def _pooling(folder: Path) -> str:
    """Return the pooling of a model's sentence-transformers configuration; "mean" without one."""
    path = folder / "modules.json"
    if not path.is_file():
        return "mean"
    advice = "use another encoder, or pooling=mean to ignore its configuration"
    modules = _read_model_json(path)
    names = {str(module.get("type")).rpartition(".")[2]: str(module.get("path")) for module in modules}
    if more := sorted(names.keys() - _ENCODER_MODULES):
        raise UsageError(f"{_ENCODER_SETTING}={folder} has unsupported layers ({', '.join(more)}): {advice}")
    if prompt := _read_model_json(folder / "config_sentence_transformers.json").get("default_prompt_name"):
        raise UsageError(
            f"{_ENCODER_SETTING}={folder} puts a prompt before each text ('{prompt}'), which is not supported: {advice}"
        )
    if "Pooling" not in names:
        return "mean"
    config = _read_model_json(folder / names["Pooling"] / "config.json")
    modes = config.get("pooling_mode") or [key for key, value in config.items() if "pooling_mode_" in key and value]
    ways = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max"}
    pooling_modes = [ways.get(mode, mode) for mode in ([modes] if isinstance(modes, str) else modes)]
    if len(pooling_modes) != 1 or pooling_modes[0] not in POOLINGS:
        mode = " and ".join(pooling_modes) or "an unnamed mode"
        raise UsageError(f"{_ENCODER_SETTING}={folder} pools by {mode}; supported: {', '.join(POOLINGS)}: {advice}")
    return pooling_modes[0]


def _read_model_json(path: Path) -> Any:
    """Return the content of a JSON file; empty if there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise UsageError(f"{_ENCODER_SETTING}: {path} is not valid JSON ({error}); download the model again") from error
