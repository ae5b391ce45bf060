"""Language models of transformers, in this process."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig, AutoModelForCausalLM, GenerationConfig

from longsumbench.api import Decoding
from longsumbench.errors import DataError, UsageError
from longsumbench.modeling.checkpoints import (
    FETCH_AGAIN,
    SAFE_LOADING,
    check_vocabulary,
    load_network,
    model_digest,
    model_folder,
    read_config,
    read_tokenizer,
    reading_checkpoint,
)
from longsumbench.modeling.generation import generation_config
from longsumbench.modeling.nn.device import choose_device
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.engine import Answer, Message, Request, chat_ids


class TransformersEngine:
    """A causal language model of transformers; see `Engine`.

    Raises:
        UsageError: the checkpoint does not exist, or is of another kind.
        EnvironmentProblem: it is on the hub, and cannot be fetched.
    """

    def __init__(self, config: PromptConfig) -> None:
        self.config = config
        self.named = f"model.checkpoint={config.checkpoint}"
        self.folder = model_folder(config.checkpoint, "model.checkpoint")
        described = read_config(self.folder)
        with reading_checkpoint(self.named):
            self.model_config = AutoConfig.from_pretrained(self.folder, **SAFE_LOADING)
        if described.get("is_encoder_decoder"):
            kind = f"an encoder-decoder ('{described['model_type']}'), not a language model"
            raise UsageError(f"{self.named} is {kind}: choose model=seq2seq model.checkpoint={config.checkpoint}")
        if type(self.model_config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
            raise UsageError(f"{self.named} is of type '{described['model_type']}', not a causal language model")
        self.context: int | None = getattr(self.model_config.get_text_config(), "max_position_embeddings", None)

    @cached_property
    def tokenizer(self) -> Any:
        """The model's fast tokenizer.

        Raises:
            UsageError: the checkpoint has none.
        """
        tokenizer = read_tokenizer(self.folder, self.named)
        if not tokenizer.is_fast:
            raise UsageError(f"{self.named} has no fast tokenizer, whose places in the text tell where to cut it")
        return tokenizer

    @cached_property
    def network(self) -> Any:
        """The network in evaluation mode; loaded when the first request is answered.

        Raises:
            DataError: weights are missing.
            EnvironmentProblem: it does not fit into memory.
        """
        options = {"device_map": self.config.device_map} if self.config.device_map else {}
        network, missing, _ = load_network(AutoModelForCausalLM, self.folder, self.named, dtype=self._dtype, **options)
        if missing:
            raise DataError(f"{self.named}: weights are missing: {', '.join(sorted(missing)[:3])}; {FETCH_AGAIN}")
        with reading_checkpoint(self.named):
            check_vocabulary(self.tokenizer, network.get_input_embeddings().num_embeddings, self.named)
        ends = network.generation_config.eos_token_id
        ends = self.tokenizer.eos_token_id if ends is None else ends
        # The library would use the checkpoint's other settings as defaults of `decode.*`.
        network.generation_config = GenerationConfig(eos_token_id=ends, pad_token_id=self._padding(ends))
        return network.eval()

    @property
    def _dtype(self) -> torch.dtype:
        """The type of the weights: the checkpoint's, unless the settings name one."""
        own: torch.dtype | None = self.model_config.dtype
        return getattr(torch, self.config.dtype) if self.config.dtype else own or torch.float32  # type: ignore[no-any-return]

    def _padding(self, ends: int | list[int] | None) -> int:
        """Return the token that fills batches; it is never attended to."""
        found = self.tokenizer.pad_token_id
        return int(next((one for one in (found, *_as_list(ends)) if one is not None), 0))

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of a prompt with the chat template."""
        return len(chat_ids(self.tokenizer, messages, self.config))

    def identity(self) -> dict[str, Any]:
        """Return the hash of the checkpoint's files instead of its name."""
        return {"checkpoint": model_digest(self.folder), "revision": None}

    def facts(self) -> dict[str, Any]:
        """Return name, size and context of the model."""
        return {
            "engine": "transformers",
            "checkpoint": Path(self.config.checkpoint or "").name,
            "revision": self.config.revision,
            "weights": "safetensors",
            "parameters": self.parameters,
            "context": self.context,
        }

    @cached_property
    def parameters(self) -> int:
        """The number of weights; shared ones are counted once."""
        with torch.device("meta"):
            network = AutoModelForCausalLM.from_config(self.model_config, **{"trust_remote_code": False})
        return int(network.num_parameters())

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Yield the answers in order, `decoding.batch_size` at once; one at a time if they are sampled."""
        if not self.config.device_map:
            self.network.to(choose_device(decoding.device))
        size = 1 if decoding.temperature else decoding.batch_size
        for start in range(0, len(requests), size):
            yield from self._answer_batch(requests[start : start + size], decoding)

    @torch.inference_mode()
    def _answer_batch(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Answer some requests together; prompts are padded on the left, so that all end where the answers begin."""
        network, prompts = self.network, [chat_ids(self.tokenizer, one.messages, self.config) for one in requests]
        settings = generation_config(network, decoding, max(one.max_tokens for one in requests))
        settings.eos_token_id = network.generation_config.eos_token_id
        settings.pad_token_id = network.generation_config.pad_token_id
        longest = max(map(len, prompts))
        padded = [[settings.pad_token_id] * (longest - len(ids)) + ids for ids in prompts]
        mask = [[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts]
        inputs = {"input_ids": torch.tensor(padded), "attention_mask": torch.tensor(mask)}
        inputs = {name: value.to(network.device) for name, value in inputs.items()}
        with torch.random.fork_rng():
            torch.manual_seed(requests[0].seed)
            outputs = network.generate(**inputs, generation_config=settings)
        ends = set(_as_list(settings.eos_token_id))
        for ids, prompt in zip(outputs[:, longest:].tolist(), prompts, strict=True):
            length = next((place for place, token in enumerate(ids) if token in ends), len(ids))
            text = self.tokenizer.decode(self._shown(ids[:length]))
            yield Answer(text, length < len(ids), False, len(prompt), length)

    def _shown(self, ids: Sequence[int]) -> list[int]:
        """Return tokens without special ones, except for the marks of thinking."""
        marks = self.tokenizer.convert_tokens_to_ids([self.config.thinking_end])
        hidden = set(self.tokenizer.all_special_ids) - set(marks)
        return [token for token in ids if token not in hidden]


def _as_list(value: int | list[int] | None) -> list[int]:
    return [] if value is None else value if isinstance(value, list) else [value]
