"""Language models of transformers, in this process."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any

import torch
import transformers
from torch import Tensor

from longsumbench.core import Answer, Decoding, Message, Request
from longsumbench.core.answer_text import known_marks
from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.checkpoint_files import read_config
from longsumbench.modeling.generation import (
    SourceNgrams,
    TokenProgress,
    checked_logits,
    generate_arguments,
    ranked_search,
    without_defaults,
)
from longsumbench.modeling.nn.device import choose_device
from longsumbench.models.prompt.chat import chat_ids
from longsumbench.models.prompt.config import PromptConfig

_IN_ANSWERS = {"no_repeat_ngram_size": 0, "repetition_penalty": 1.0}  # done by AnswerProcessor


class AnswerProcessor(transformers.LogitsProcessor):
    """Applies the settings against repetition and copies to answers.

    As for other systems, repetitions are those of the output. The library's `generate` would also count the prompt, so
    that a summary could repeat no phrase of its source. `ids` are the prompts, [B, L]; `mask` is 1 where a token is
    real.
    """

    def __init__(self, decoding: Decoding, ids: Tensor, mask: Tensor) -> None:
        self.prompt_length, self.processors = ids.shape[1], transformers.LogitsProcessorList()
        add = self.processors.append
        if decoding.repetition_penalty != 1:
            add(transformers.RepetitionPenaltyLogitsProcessor(decoding.repetition_penalty))
        if decoding.no_repeat_ngram:
            add(transformers.NoRepeatNGramLogitsProcessor(decoding.no_repeat_ngram))
        if decoding.encoder_no_repeat_ngram:
            add(SourceNgrams(decoding.encoder_no_repeat_ngram, ids, mask))

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Change the scores of the next token: [B·K, L + T], [B·K, V] → [B·K, V]."""
        changed: Tensor = self.processors(input_ids[:, self.prompt_length :], scores)
        return changed


class TransformersEngine:
    """A causal language model of transformers; see `LanguageModel`.

    Raises:
        UsageError: the checkpoint or its revision does not exist, or it is of another kind.
        EnvironmentProblem: it is on the hub, and cannot be fetched.
    """

    def __init__(self, config: PromptConfig) -> None:
        self.config = config
        self.shown_as = f"model.checkpoint={config.checkpoint}"
        self.folder = checkpoints.model_folder(
            config.checkpoint, "model.checkpoint", revision=config.revision, reads_gguf=True
        )
        self.described = checkpoints.load_config(
            transformers.AutoModelForCausalLM, self.folder, self.shown_as
        )
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
        tokenizer = checkpoints.read_tokenizer(self.folder, self.shown_as)
        if not tokenizer.is_fast or not tokenizer("a text", add_special_tokens=False)["input_ids"]:
            raise UsageError(
                f"{self.shown_as} has no fast tokenizer: choose a checkpoint with a tokenizer.json"
            )
        return tokenizer

    @cached_property
    def network(self) -> Any:
        """The network; loaded when the first request is answered.

        Raises:
            DataError: weights are missing.
            EnvironmentProblem: it does not fit into memory.
        """
        name = self.config.dtype
        options: dict[str, Any] = {
            "dtype": getattr(torch, name) if name else self.described.dtype or torch.float32
        }
        if self.config.device_map:
            options["device_map"] = self.config.device_map
        network = checkpoints.load_network(
            transformers.AutoModelForCausalLM, self.folder, self.shown_as, self.described, **options
        )
        with checkpoints.reading_checkpoint(self.shown_as):
            checkpoints.check_vocabulary(
                self.tokenizer, network.get_input_embeddings().num_embeddings, self.shown_as
            )
        return network.eval()

    @cached_property
    def ends(self) -> list[int]:
        """The tokens that end an answer: those on the checkpoint's card, else the tokenizer's."""
        end_ids = self.network.generation_config.eos_token_id
        stored_ids = read_config(self.folder).get("eos_token_id")
        if self.folder.is_file():
            # A GGUF file has no card.
            end_ids = stored_ids
        if end_ids is None:
            end_ids = self.tokenizer.eos_token_id
        entries = len(self.network.get_output_embeddings().weight)
        for ids in (end_ids, stored_ids):
            checkpoints.check_token_ids("eos_token_id", ids, entries, self.shown_as)
        if end_ids is None:
            return []
        return end_ids if isinstance(end_ids, list) else [end_ids]

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
        """Return the digest of the checkpoint's files and its commit, in place of its name."""
        return checkpoints.checkpoint_identity(self.folder)

    def facts(self) -> dict[str, Any]:
        """Return name, commit and size of the model."""
        facts = checkpoints.checkpoint_facts(self.config.checkpoint, self.folder)
        return {"engine": "transformers", **facts, "parameters": self.parameters}

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Yield the answers in order, `decoding.batch_size` at once; one at a time if they are sampled."""
        if not self.config.device_map:
            self.network.to(choose_device(decoding.device))
        size = 1 if decoding.temperature else decoding.batch_size
        for start in range(0, len(requests), size):
            yield from self._answer_batch(requests[start : start + size], decoding)

    @torch.inference_mode()
    def _answer_batch(self, requests: Sequence[Request], decoding: Decoding) -> list[Answer]:
        """Answer requests together; their prompts are padded on the left, so that all end where the answers begin."""
        prompts = [chat_ids(self.tokenizer, request.messages, self.config) for request in requests]
        # On the left: all prompts end where the answers begin.
        longest = max(map(len, prompts))
        padding = self.ends[0] if self.ends else 0  # nothing attends to it
        padded, real = [], []
        for prompt in prompts:
            num_missing = longest - len(prompt)
            padded.append([padding] * num_missing + prompt)
            real.append([0] * num_missing + [1] * len(prompt))
        ids = torch.tensor(padded, device=self.network.device)
        mask = torch.tensor(real, device=self.network.device)
        most_tokens = max(request.max_tokens for request in requests)
        settings = transformers.GenerationConfig(
            **{**generate_arguments(decoding, most_tokens), **_IN_ANSWERS},
            forced_eos_token_id=self.ends if decoding.forced_eos else None,
            eos_token_id=self.ends or None,
            pad_token_id=padding,
        )
        processors = [
            AnswerProcessor(decoding, ids, mask),
            TokenProgress(settings.max_new_tokens, prompt_length=longest),
        ]
        # Sampled requests come one at a time, each with its own seed.
        if decoding.temperature:
            torch.manual_seed(requests[0].seed)
        checked = checked_logits(self.network, decoding.temperature > 0)
        with checked, ranked_search(self.network, decoding), without_defaults(self.network):
            outputs = self.network.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=settings,
                logits_processor=transformers.LogitsProcessorList(processors),
            )
        # Where the end comes by force.
        forced = settings.max_new_tokens - 1 if decoding.forced_eos else None
        answers = []
        for prompt, written in zip(prompts, outputs[:, longest:].tolist(), strict=True):
            text_ids = list(takewhile(lambda token: token not in self.ends, written))
            length = len(text_ids)
            complete = length < len(written) and length != forced
            answers.append(Answer(self._text(text_ids), complete, False, len(prompt), length))
        return answers

    def _text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens without special ones, except for marks that divide an answer ("<think>")."""
        hidden = set()
        # Also those without a role: "<|im_end|>".
        for place, token in self.tokenizer.added_tokens_decoder.items():
            mark = known_marks(self.config.thinking_end).fullmatch(token.content)
            if token.special and (mark is None or mark.lastgroup == "special"):
                hidden.add(place)
        text: str = self.tokenizer.decode([token for token in ids if token not in hidden])
        return text
