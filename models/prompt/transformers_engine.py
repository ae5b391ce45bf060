"""Language models of transformers, in this process."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from longsumbench.core import Answer, Decoding, Message, Request
from longsumbench.core.answer_text import known_marks
from longsumbench.errors import UsageError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.adapters import adapter_folder, has_adapter, merge_adapter
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
from longsumbench.models.prompt.page_mixture import (
    LearnedSureness,
    PageMixture,
    SurenessOf,
    page_weights,
    sureness,
)

# Of an adapter, or of a whole model with its tokenizer.
_TUNED_FILES = ("*.safetensors", "*config.json", "*.index.json", "tokenizer.json", "*.jinja")
# Done by AnswerProcessor.
_IN_ANSWERS = {"no_repeat_ngram_size": 0, "repetition_penalty": 1.0, "min_new_tokens": None}


class AnswerProcessor(transformers.LogitsProcessor):
    """Applies the settings against repetition and copies, and those of the length, to one answer.

    As for other systems, repetitions are those of the output. The library's `generate` would also count the prompt, so
    that a summary could repeat no phrase of its source. It would also change the distributions of pages before they are
    mixed.
    """

    def __init__(
        self,
        decoding: Decoding,
        limit: int,
        ends: list[int],
        ids: Tensor,
        mask: Tensor,
        begins: int,
        draws: bool,
    ) -> None:
        """Take the settings.

        Args:
            decoding: the settings.
            limit: the most tokens of the answer.
            ends: the tokens that end it.
            ids: the prompts of its pages, [P, L].
            mask: 1 where a token is real.
            begins: the place of a row where the answer begins.
            draws: change the scores to those of a token to draw.
        """
        self.begins, self.processors = begins, transformers.LogitsProcessorList()
        add = self.processors.append
        if decoding.repetition_penalty != 1:
            add(transformers.RepetitionPenaltyLogitsProcessor(decoding.repetition_penalty))
        if decoding.no_repeat_ngram:
            add(transformers.NoRepeatNGramLogitsProcessor(decoding.no_repeat_ngram))
        if decoding.encoder_no_repeat_ngram:
            add(SourceNgrams(decoding.encoder_no_repeat_ngram, ids[None], mask[None]))
        if decoding.min_length and ends:
            add(
                transformers.MinNewTokensLengthLogitsProcessor(
                    0, decoding.min_length, ends, device=str(ids.device)
                )
            )
        if decoding.forced_eos and ends:
            add(transformers.ForcedEOSTokenLogitsProcessor(limit, ends, device=str(ids.device)))
        if draws:
            add(transformers.TemperatureLogitsWarper(decoding.temperature))
            add(transformers.TopPLogitsWarper(decoding.top_p))

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Change the scores of the next token: [K, L + T], [K, V] → [K, V]."""
        changed: Tensor = self.processors(input_ids[:, self.begins :], scores)
        return changed


class TransformersEngine:
    """A causal language model of transformers; see `LanguageModel`.

    Raises:
        UsageError: the checkpoint or its revision does not exist, or it is of another kind.
        EnvironmentProblem: it is on the hub, and cannot be fetched.
    """

    gives_tokens = True

    def __init__(self, config: PromptConfig) -> None:
        self.config = config
        # The folder of what was trained.
        self.tuned: Path | None = None
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
        folder = self.folder
        if self.tuned and not has_adapter(self.tuned):
            folder = self.tuned
        network: Any = checkpoints.load_network(
            transformers.AutoModelForCausalLM, folder, self.shown_as, self.described, **options
        )
        with checkpoints.reading_checkpoint(self.shown_as):
            checkpoints.check_vocabulary(
                self.tokenizer, network.get_input_embeddings().num_embeddings, self.shown_as
            )
        adapter = adapter_folder(self.config.adapter)
        if adapter:
            network = merge_adapter(network, adapter, f"model.adapter={self.config.adapter}")
        return network

    def use(self, tuned: Path) -> None:
        """Write with the weights that a training saved in a folder, from now on."""
        self.tuned = tuned
        for loaded in ("network", "sureness"):
            self.__dict__.pop(loaded, None)

    def save(self, folder: Path) -> None:
        """Copy what a training saved, if there was one, into a folder."""
        if self.tuned is None:
            return
        for pattern in _TUNED_FILES:
            for path in self.tuned.glob(pattern):
                shutil.copy(path, folder)

    @cached_property
    def sureness(self) -> SurenessOf:
        """What the confidences of pages are the softmax of."""
        if self.config.confidence != "learned":
            return partial(sureness, kind=self.config.confidence)
        learned = LearnedSureness(self.network)
        if self.tuned:
            learned.load(self.tuned)
        return learned

    @cached_property
    def answer_end(self) -> int:
        """The token that ends an answer: of several, the first that the chat template writes after one.

        Raises:
            UsageError: no token ends an answer.
        """
        if not self.ends:
            raise UsageError(
                f"{self.shown_as} has no end token, and answers could not learn to end: add eos_token_id to its config.json"
            )
        tokens = self.tokenizer.convert_ids_to_tokens(self.ends)
        if len(tokens) == 1 or self.config.chat_template == "none":
            return self.ends[0]
        turns = [
            {"role": "user", "content": "a text"},
            {"role": "assistant", "content": "a summary"},
        ]
        text: str = self.tokenizer.apply_chat_template(turns, tokenize=False)
        after = text.rpartition("a summary")[2]
        places = {after.find(token): end for token, end in zip(tokens, self.ends, strict=True)}
        places.pop(-1, None)
        return places[min(places)] if places else self.ends[0]

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
        """Return the digest of the checkpoint's files and its commit, in place of its name; also of the adapter."""
        identity = checkpoints.checkpoint_identity(self.folder)
        adapter = adapter_folder(self.config.adapter)
        if adapter:
            identity["adapter"] = checkpoints.model_digest(adapter)
        return identity

    def facts(self) -> dict[str, Any]:
        """Return name, commit and size of the model."""
        facts = checkpoints.checkpoint_facts(self.config.checkpoint, self.folder)
        adapter = adapter_folder(self.config.adapter)
        if adapter:
            added = checkpoints.checkpoint_facts(self.config.adapter, adapter)["checkpoint"]
            facts["checkpoint"] += f" + {added}"
        return {"engine": "transformers", **facts, "parameters": self.parameters}

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Yield the answers in order, about `decoding.batch_size` prompts at once; one answer if they are sampled."""
        if not self.config.device_map:
            self.network.to(choose_device(decoding.device))
        size = 1 if decoding.temperature else decoding.batch_size
        for batch in _batches(requests, size):
            yield from self._answer_batch(batch, decoding)

    @torch.inference_mode()
    def _answer_batch(self, requests: Sequence[Request], decoding: Decoding) -> list[Answer]:
        """Answer requests together that have the same limits."""
        rows = self._rows_of(requests)
        new_tokens = torch.split(self._generate(rows, requests[0], decoding), rows.num_pages)
        answers = []
        for request, prompts, pages in zip(requests, rows.prompts, new_tokens, strict=True):
            # All pages are continued with the same tokens.
            answers.append(self._answer_of(request, prompts, pages[0].tolist(), decoding))
        return answers

    def _generate(self, rows: "_Rows", limits: Request, decoding: Decoding) -> Tensor:
        """Return the new tokens of each row, [R, T], within the limits of a request."""
        remaining = limits.max_tokens - len(limits.written)
        most_tokens = min(remaining, limits.stop_after or remaining)
        settings = transformers.GenerationConfig(
            **{**generate_arguments(decoding, most_tokens), **_IN_ANSWERS},
            eos_token_id=self.ends or None,
            pad_token_id=self._padding,
        )
        processors: list[transformers.LogitsProcessor] = [
            rows.page_mixture(decoding, limits.max_tokens, self.ends, self.sureness),
            TokenProgress(most_tokens, prompt_length=rows.ids.shape[1]),
        ]
        # Sampled requests come one at a time, each with its own seed.
        if decoding.temperature:
            torch.manual_seed(limits.seed)
            settings.do_sample = max(rows.num_pages) == 1
        checked = checked_logits(self.network, decoding.temperature > 0)
        with checked, ranked_search(self.network, decoding), without_defaults(self.network):
            outputs: Tensor = self.network.generate(
                input_ids=rows.ids,
                attention_mask=rows.mask,
                generation_config=settings,
                logits_processor=transformers.LogitsProcessorList(processors),
            )
        return outputs[:, rows.ids.shape[1] :]

    def _answer_of(
        self,
        request: Request,
        prompts: Sequence[list[int]],
        tokens: Sequence[int],
        decoding: Decoding,
    ) -> Answer:
        """Return the answer of some new tokens to a request with a prompt for each page."""
        num_written = len(request.written)
        ids = tuple(takewhile(lambda token: token not in self.ends, tokens))
        # The end comes by force where the answer may have only one more token.
        is_forced = decoding.forced_eos and num_written + len(ids) == request.max_tokens - 1
        weights = None
        if len(prompts) > 1 and decoding.evidence != "none":
            weights = page_weights(self.network, prompts, ids, self.sureness)
        return Answer(
            text=self._text([*request.written, *ids]),
            complete=len(ids) < len(tokens) and not is_forced,
            refused=False,
            prompt_tokens=sum(map(len, prompts)) + num_written * len(prompts),
            output_tokens=len(ids),
            ids=ids,
            confidences=weights,
        )

    def _rows_of(self, requests: Sequence[Request]) -> "_Rows":
        """Return the rows of a batch: a page each, padded on the left so that all end where the answers go on."""
        prompts = []
        rows = []
        for request in requests:
            pages = (request.messages, *request.more_pages)
            prompts.append([chat_ids(self.tokenizer, page, self.config) for page in pages])
            for prompt in prompts[-1]:
                rows.append(torch.tensor([*prompt, *request.written], device=self.network.device))
        ids = pad_sequence(rows, True, self._padding, "left")
        mask = pad_sequence([torch.ones_like(row) for row in rows], True, 0, "left")
        return _Rows(ids, mask, prompts, ids.shape[1] - len(requests[0].written))

    @property
    def _padding(self) -> int:
        """A token that nothing attends to."""
        return self.ends[0] if self.ends else 0

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


@dataclass(frozen=True)
class _Rows:
    """What `generate` gets for some requests; R rows, one for each page of each request."""

    ids: Tensor  # [R, L]
    mask: Tensor  # [R, L], 1 where a token is real
    prompts: Sequence[Sequence[list[int]]]  # of each request, of each of its pages
    begins: int  # the place where the answers begin, written tokens included

    @property
    def num_pages(self) -> list[int]:
        """The number of pages of each request."""
        return list(map(len, self.prompts))

    def page_mixture(
        self, decoding: Decoding, limit: int, ends: list[int], sureness_of: SurenessOf
    ) -> PageMixture:
        """Return what changes the scores: the mixture of pages, and then what each answer's settings ask for."""
        draws = decoding.temperature > 0 and max(self.num_pages) > 1
        prompts = torch.split(self.ids[:, : self.begins], self.num_pages)
        masks = torch.split(self.mask[:, : self.begins], self.num_pages)
        processors = []
        for ids, mask in zip(prompts, masks, strict=True):
            processors.append(AnswerProcessor(decoding, limit, ends, ids, mask, self.begins, draws))
        return PageMixture(self.num_pages, sureness_of, processors, draws)


def _batches(requests: Sequence[Request], size: int) -> Iterator[list[Request]]:
    """Yield requests that can be answered together, of about `size` prompts, in their order."""
    for _, alike in groupby(requests, _limits_of):
        batch: list[Request] = []
        num_prompts = 0
        for request in alike:
            num_pages = 1 + len(request.more_pages)
            if batch and num_prompts + num_pages > size:
                yield batch
                batch, num_prompts = [], 0
            batch.append(request)
            num_prompts += num_pages
        yield batch


def _limits_of(request: Request) -> tuple[int, int, int | None]:
    """Return what all requests of a batch have in common."""
    return len(request.written), request.max_tokens, request.stop_after
