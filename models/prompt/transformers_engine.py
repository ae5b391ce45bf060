"""Language models of transformers, in this process."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from itertools import groupby, takewhile
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from longsumbench.core import Answer, Decoding, Request
from longsumbench.core.answer_text import known_marks
from longsumbench.core.language_model import sum_choices
from longsumbench.core.unfinished_work import UnfinishedWork
from longsumbench.files import digest
from longsumbench.modeling.generation import (
    SourceNgrams,
    TokenProgress,
    checked_logits,
    generate_arguments,
    ranked_search,
    without_defaults,
)
from longsumbench.modeling.nn.device import choose_device
from longsumbench.models.prompt.causal_checkpoint import CausalCheckpoint
from longsumbench.models.prompt.chat import chat_ids
from longsumbench.models.prompt.page_mixture import (
    ConfidenceFunction,
    PageMixture,
    page_weights,
)

# Done by AnswerProcessor.
_IN_ANSWERS = {"no_repeat_ngram_size": 0, "repetition_penalty": 1.0, "min_new_tokens": None}


class AnswerProcessor(transformers.LogitsProcessor):
    """Applies the settings against repetition and copies, and those of the length, to the answers of a batch.

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
            limit: the most tokens of an answer.
            ends: the tokens that end one.
            ids: the prompts of each answer's pages, [E, P, L].
            mask: 1 where a token is real.
            begins: the place of a row where its answer begins.
            draws: change the scores to those of a token to draw.
        """
        self.begins, self.processors = begins, transformers.LogitsProcessorList()
        add = self.processors.append
        if decoding.repetition_penalty != 1:
            add(transformers.RepetitionPenaltyLogitsProcessor(decoding.repetition_penalty))
        if decoding.no_repeat_ngram:
            add(transformers.NoRepeatNGramLogitsProcessor(decoding.no_repeat_ngram))
        if decoding.encoder_no_repeat_ngram:
            add(SourceNgrams(decoding.encoder_no_repeat_ngram, ids, mask))
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
        """Change the scores of the next token: [E·K, L + T], [E·K, V] → [E·K, V]."""
        changed: Tensor = self.processors(input_ids[:, self.begins :], scores)
        return changed


class TransformersEngine(CausalCheckpoint):
    """A causal language model of transformers that answers; see `LanguageModel`."""

    gives_tokens = True
    # Of the run, where finished answers are kept; see `System`.
    unfinished: UnfinishedWork | None = None

    def answer(self, requests: Sequence[Request], decoding: Decoding) -> Iterator[Answer]:
        """Yield the answers in order, about `decoding.batch_size` prompts at once; one answer if they are sampled."""
        if not self.config.device_map:
            self.network.to(choose_device(decoding.device))
        size = 1 if decoding.temperature else decoding.batch_size
        for batch in _batches(requests, size):
            if self.unfinished is None:
                yield from self._answer_batch(batch, decoding)
                continue
            # With other companions, an answer may differ in its last digits: a batch is kept as a whole.
            key = digest([decoding.evidence, *map(asdict, batch)])
            answer = partial(self._answer_in_json, batch, decoding)
            yield from map(_from_json, self.unfinished.reuse(key, answer))

    def _answer_in_json(
        self, requests: Sequence[Request], decoding: Decoding
    ) -> list[dict[str, Any]]:
        return list(map(_to_json, self._answer_batch(requests, decoding)))

    @torch.inference_mode()
    def _answer_batch(self, requests: Sequence[Request], decoding: Decoding) -> list[Answer]:
        """Answer requests together that have the same limits."""
        rows = self._make_rows(requests)
        if choices := requests[0].choices:
            return self._weigh_choices([pages[0] for pages in rows.prompts], choices)
        new_tokens = torch.split(self._generate(rows, requests[0], decoding), rows.num_pages)
        answers = []
        for request, prompts, pages in zip(requests, rows.prompts, new_tokens, strict=True):
            # All pages are continued with the same tokens.
            answers.append(self._make_answer(request, prompts, pages[0].tolist(), decoding))
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
            rows.page_mixture(decoding, limits.max_tokens, self.ends, self.compute_confidence),
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

    def _weigh_choices(
        self, prompts: Sequence[list[int]], choices: tuple[str, ...]
    ) -> list[Answer]:
        """Return the probabilities of choices after some prompts; what all prompts begin with is read once."""
        # The padding after what is shared would count in a window, and a state is no list of tokens.
        window = self.described.get_text_config().to_dict().get("sliding_window") or math.inf
        is_plain = not self.network._is_stateful and max(map(len, prompts)) <= window
        shared = _count_shared(prompts) if is_plain else 0
        rows = [torch.tensor(prompt, device=self.network.device) for prompt in prompts]
        beginnings = torch.stack([row[:shared] for row in rows])
        ends = [row[shared:] for row in rows]
        ids = pad_sequence(ends, True, self._padding, "left")
        mask = pad_sequence([torch.ones_like(end) for end in ends], True, 0, "left")
        options: dict[str, Any] = {}
        settings = transformers.GenerationConfig(
            max_new_tokens=1,
            do_sample=False,
            eos_token_id=self.ends or None,
            pad_token_id=self._padding,
            output_logits=True,
            return_dict_in_generate=True,
        )
        with checked_logits(self.network, sampled=False), without_defaults(self.network):
            if shared:
                # Nobody needs the scores of the next token here.
                reader = self.network.base_model
                options["past_key_values"] = reader(beginnings[:1]).past_key_values
                options["past_key_values"].batch_repeat_interleave(len(prompts))
            outputs = self.network.generate(
                input_ids=torch.cat([beginnings, ids], dim=1),
                attention_mask=torch.cat([torch.ones_like(beginnings), mask], dim=1),
                generation_config=settings,
                **options,
            )
        texts = _find_texts_of_choices(self.tokenizer, choices)
        probabilities = outputs.logits[0].float().softmax(dim=-1)[:, list(texts)].tolist()
        answers = []
        for prompt, values in zip(prompts, probabilities, strict=True):
            weighed = sum_choices(zip(texts.values(), values, strict=True), choices)
            answers.append(Answer("", True, False, len(prompt), 0, probabilities=weighed))
        return answers

    def _make_answer(
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
            weights = page_weights(self.network, prompts, ids, self.compute_confidence)
        return Answer(
            text=self._text([*request.written, *ids]),
            complete=len(ids) < len(tokens) and not is_forced,
            refused=False,
            prompt_tokens=sum(map(len, prompts)) + num_written * len(prompts),
            output_tokens=len(ids),
            ids=ids,
            confidences=weights,
        )

    def _make_rows(self, requests: Sequence[Request]) -> "_Rows":
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


def _to_json(answer: Answer) -> dict[str, Any]:
    weights = answer.confidences
    values = asdict(replace(answer, confidences=None))
    return {**values, "confidences": None if weights is None else weights.tolist()}


def _from_json(values: dict[str, Any]) -> Answer:
    weights = values["confidences"]
    if weights is not None:
        weights = np.array(weights, np.float32)
    return Answer(**{**values, "ids": tuple(values["ids"]), "confidences": weights})


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
        self,
        decoding: Decoding,
        limit: int,
        ends: list[int],
        confidence_function: ConfidenceFunction,
    ) -> PageMixture:
        """Return what changes the scores: the mixture of pages, and then what the settings ask of answers."""
        draws = decoding.temperature > 0 and max(self.num_pages) > 1
        ids = pad_sequence(list(torch.split(self.ids[:, : self.begins], self.num_pages)), True)
        mask = pad_sequence(list(torch.split(self.mask[:, : self.begins], self.num_pages)), True)
        processor = AnswerProcessor(decoding, limit, ends, ids, mask, self.begins, draws)
        return PageMixture(self.num_pages, confidence_function, processor, self.ids.device, draws)


@lru_cache(8)  # a large vocabulary takes a second
def _find_texts_of_choices(tokenizer: Any, choices: tuple[str, ...]) -> dict[int, str]:
    """Return the tokens that may be one of the choices → their texts."""
    texts = {}
    for token, place in tokenizer.get_vocab().items():
        if any(choice in token.casefold() for choice in choices):
            texts[place] = tokenizer.decode([place])
    return texts


def _count_shared(prompts: Sequence[Sequence[int]]) -> int:
    """Return the number of first tokens that all prompts have in common, without the last of any; 0 for one prompt."""
    if len(prompts) == 1:
        return 0
    columns = zip(*(prompt[:-1] for prompt in prompts), strict=False)
    return sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, columns))


def _batches(requests: Sequence[Request], size: int) -> Iterator[list[Request]]:
    """Yield requests that can be answered together, of about `size` prompts, in their order."""
    for _, alike in groupby(requests, _request_limits):
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


def _request_limits(request: Request) -> tuple[Any, ...]:
    """Return what all requests of a batch have in common; if choices are weighed, all but the last paragraph."""
    limits = len(request.written), request.max_tokens, request.stop_after
    if not request.choices:
        return limits
    return *limits, request.choices, request.messages[-1]["content"].rpartition("\n\n")[0]
