"""The checkpoint of a causal language model: its tokenizer, its network, and what was trained."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
import transformers

from longsumbench.core import Message
from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.adapters import has_adapter, merge_adapter
from longsumbench.modeling.checkpoint_files import read_config
from longsumbench.modeling.pretrained import Pretrained
from longsumbench.modeling.tokenizer import load_tokenizer
from longsumbench.models.prompt.chat import chat_ids, chat_text
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.page_mixture import (
    ConfidenceFunction,
    LearnedConfidence,
    compute_confidence,
)

# Of an adapter, or of a whole model with its tokenizer.
_TUNED_FILES = ("*.safetensors", "*config.json", "*.index.json", "tokenizer.json", "*.jinja")


class CausalCheckpoint:
    """A folder, GGUF file or name on the hub, as the settings name it; its weights are loaded when they are needed.

    Attributes:
        folder: the folder, or the GGUF file.
        tuned: the folder of what was trained further; None: the weights are the checkpoint's.
        context: the most tokens of a prompt with its answer; None if it is unknown.

    Raises:
        UsageError: the checkpoint or its revision does not exist, or it is of another kind.
        EnvironmentProblem: it is on the hub, and cannot be fetched.
    """

    def __init__(self, config: PromptConfig) -> None:
        self.config = config
        self.tuned: Path | None = None
        pretrained = Pretrained.find(
            config.checkpoint,
            "model.checkpoint",
            config.adapter,
            revision=config.revision,
            reads_gguf=True,
        )
        self.pretrained = pretrained
        self.folder, self.shown_as = pretrained.folder, pretrained.shown_as
        self.described = pretrained.config(transformers.AutoModelForCausalLM)
        problem = None
        if self.described.is_encoder_decoder and self.folder.is_file():
            problem = "an encoder-decoder: choose model=seq2seq, with its safetensors"
        elif self.described.is_encoder_decoder:
            problem = f"an encoder-decoder: choose model=seq2seq {self.shown_as}"
        elif not checkpoints.is_language_model(self.described):
            problem = (
                "which is no causal language model and writes no text: give a causal language model, or an"
                " encoder-decoder with model=seq2seq"
            )
        if problem:
            kind = f"a checkpoint of '{self.described.model_type}'"
            raise UsageError(f"{self.shown_as} is {kind}, {problem}")
        self.context: int | None = getattr(
            self.described.get_text_config(), "max_position_embeddings", None
        )

    @cached_property
    def tokenizer(self) -> Any:
        """The model's fast tokenizer.

        Raises:
            UsageError: the checkpoint has none.
        """
        return load_tokenizer(self.folder, of_system=False)

    @cached_property
    def network(self) -> Any:
        """The network with what was trained; loaded when the first request is answered.

        Errors are those of `load_network` and `merge_adapter`.
        """
        network = self.load_network(self.weight_type)
        if self.tuned and has_adapter(self.tuned):
            network = merge_adapter(network, self.tuned, f"the adapter in {self.tuned}")
        return network.eval()

    @property
    def weight_type(self) -> torch.dtype:
        """The type of the weights that write."""
        if self.config.dtype:
            chosen: torch.dtype = getattr(torch, self.config.dtype)
            return chosen
        return self.described.dtype or torch.float32

    def load_network(self, dtype: torch.dtype) -> Any:
        """Return the network of the checkpoint, with the adapter of the settings, or of a training of all weights.

        Raises:
            DataError: weights are missing.
            EnvironmentProblem: it does not fit into memory.
        """
        options: dict[str, Any] = {"dtype": dtype}
        if self.config.device_map:
            options["device_map"] = self.config.device_map
        model = self.pretrained
        if self.tuned and not has_adapter(self.tuned):
            model = replace(model, folder=self.tuned)
        network: Any = model.network(
            transformers.AutoModelForCausalLM, config=self.described, **options
        )
        with checkpoints.reading_checkpoint(self.shown_as):
            model.check_vocabulary(self.tokenizer, network.get_input_embeddings().num_embeddings)
        return network

    def use(self, tuned: Path) -> None:
        """Write with the weights that a training saved in a folder, from now on."""
        self.tuned = tuned
        for loaded in ("network", "compute_confidence"):
            vars(self).pop(loaded, None)

    def save(self, folder: Path) -> None:
        """Copy what a training saved, if there was one, into a folder."""
        if self.tuned is None:
            return
        for pattern in _TUNED_FILES:
            for path in self.tuned.glob(pattern):
                shutil.copy(path, folder)

    @cached_property
    def compute_confidence(self) -> ConfidenceFunction:
        """What the confidences of pages are the softmax of."""
        if self.config.confidence != "learned":
            return partial(compute_confidence, kind=self.config.confidence)
        learned = LearnedConfidence(self.network)
        if self.tuned:
            learned.load(self.tuned)
        return learned

    @cached_property
    def answer_end(self) -> int:
        """The token that ends an answer: that of the chat template, else the first one.

        Raises:
            UsageError: no token ends an answer.
        """
        if not self.ends:
            raise UsageError(
                f"{self.shown_as} has no end token, and answers could not learn to end: add eos_token_id to its config.json"
            )
        return self.ends[0] if self._turn_end is None else self._turn_end

    @cached_property
    def _turn_end(self) -> int | None:
        """The first added token that the chat template writes after an answer; None if there is none."""
        turns: list[Message] = [
            {"role": "user", "content": "a text"},
            {"role": "assistant", "content": "a summary"},
        ]
        try:
            text = chat_text(self.tokenizer, turns, self.config, goes_on=False)
        except UsageError:  # the template takes no answers
            return None
        _, answer, end = text.rpartition("a summary")
        ids = self.tokenizer(end, add_special_tokens=False)["input_ids"] if answer else []
        added = self.tokenizer.added_tokens_decoder
        return next((token for token in ids if token in added), None)

    @cached_property
    def ends(self) -> list[int]:
        """The tokens that end an answer: those on the checkpoint's card, else the tokenizer's; and the chat template's."""
        end_ids = self.network.generation_config.eos_token_id
        stored_ids = read_config(self.folder).get("eos_token_id")
        if self.folder.is_file():
            # A GGUF file has no card.
            end_ids = stored_ids
        if end_ids is None:
            end_ids = self.tokenizer.eos_token_id
        ends = end_ids if isinstance(end_ids, list) else [end_ids]
        return [end for end in dict.fromkeys([*ends, self._turn_end]) if end is not None]

    @cached_property
    def parameters(self) -> int:
        """The number of weights; shared ones are counted once."""
        with checkpoints.reading_checkpoint(self.shown_as), torch.device("meta"):
            return int(
                transformers.AutoModelForCausalLM.from_config(self.described).num_parameters()
            )

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens of a prompt with the chat template."""
        return len(chat_ids(self.tokenizer, messages, self.config))

    def identity(self) -> dict[str, Any]:
        """Return the digest of the checkpoint's files and its commit, in place of its name; also of the adapter."""
        return self.pretrained.identity()

    def metadata(self) -> dict[str, Any]:
        """Return name, commit and size of the model."""
        return {
            "engine": "transformers",
            **self.pretrained.metadata(),
            "parameters": self.parameters,
        }
