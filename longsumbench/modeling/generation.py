"""Decoding: greedy search, beam search or sampling through transformers' `generate`, the same for every system.

Letters: B examples, K beams, U units, L unit tokens, T output tokens, V vocabulary.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import GenerationConfig, LogitsProcessor, LogitsProcessorList, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

from longsumbench.core import Decoding, Example
from longsumbench.errors import DataError
from longsumbench.modeling.checkpoint_files import FETCH_AGAIN
from longsumbench.modeling.checkpoints import reading_checkpoint
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.nn.penalties import Penalties
from longsumbench.modeling.unit_reader import UnitReader, collate_units
from longsumbench.modeling.units import Units
from longsumbench.progress import note_progress

_HASH_FACTOR = 6_364_136_223_846_793_005  # odd and large; its powers weight the tokens of an n-gram
# of checkpoints
TOKEN_RULES = ("forced_bos_token_id", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens")


@dataclass(frozen=True)
class GeneratedText:
    """A decoded summary, from which evidence is computed."""

    example: Example  # the source
    units: Units  # what was read
    ids: Sequence[int]  # the tokens, without start and end
    complete: bool = True  # True if the end token was written
    # the tokens of the first reference under `decode.reference_evidence`, else None
    reference: Sequence[int] | None = None


def generate_texts(
    model: PreTrainedModel, reader: UnitReader, examples: Sequence[Example], decoding: Decoding
) -> list[GeneratedText]:
    """Decode one batch; summaries are sampled one by one, so that they depend on no other text."""
    texts: list[GeneratedText] = []
    if decoding.temperature and len(examples) > 1:
        for example in examples:
            texts += generate_texts(model, reader, [example], decoding)
        return texts
    units = [reader.units(example) for example in examples]
    seeded = replace(decoding, seed=decoding.derive_seed(examples[0].id))
    batch = collate_units(reader, units)
    outputs, complete = decode(model, batch, seeded, reader.config.decode_length)
    for example, read, ids, is_complete in zip(examples, units, outputs, complete, strict=True):
        reference = None
        if decoding.reference_evidence and decoding.evidence != "none":
            reference = reader.reference(example)[1].ids
        texts.append(GeneratedText(example, read, ids, is_complete, reference))
    return texts


def text_batch(
    model: PreTrainedModel, reader: UnitReader, text: GeneratedText
) -> dict[str, Tensor]:
    """Return the batch of one text's units on the model's device."""
    batch = collate_units(reader, [text.units])
    return {name: value.to(model.device) for name, value in batch.items()}


@torch.inference_mode()
def decode_again(model: PreTrainedModel, reader: UnitReader, text: GeneratedText) -> None:
    """Run the model over a text and its output, with all steps in one pass; hooks see what decoding saw."""
    fed = torch.tensor([[model.config.decoder_start_token_id, *text.ids[:-1]]])
    model.eval()(**text_batch(model, reader, text), decoder_input_ids=fed.to(model.device))


def generate_arguments(decoding: Decoding, longest: int) -> dict[str, Any]:
    """Translate decoding settings into arguments of `generate`; `longest` is the limit of output tokens.

    Two are missing, which depend on more than the settings: `decode.forced_eos` on the end token, and
    `decode.encoder_no_repeat_ngram` on the source (`SourceNgrams`). Use them `without_defaults` of the model.
    """
    has_beams = decoding.num_beams > 1
    sampling: dict[str, Any] = {"do_sample": decoding.temperature > 0}
    if decoding.temperature:
        sampling |= {"temperature": decoding.temperature, "top_p": decoding.top_p, "top_k": 0}
    return {
        "num_beams": decoding.num_beams,
        "length_penalty": decoding.length_penalty if has_beams else None,
        "early_stopping": decoding.early_stopping and has_beams,
        "max_new_tokens": longest,
        "min_new_tokens": min(decoding.min_length, longest) or None,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
        "repetition_penalty": decoding.repetition_penalty,
        "use_cache": True,
        **sampling,
    }


def generation_config(model: PreTrainedModel, decoding: Decoding, limit: int) -> GenerationConfig:
    """Translate decoding settings into those of transformers; `limit` is the system's maximum of output tokens."""
    return GenerationConfig(
        **generate_arguments(decoding, longest_output(decoding, limit)),
        pad_token_id=model.config.pad_token_id,
        bos_token_id=model.config.bos_token_id,
        eos_token_id=model.config.eos_token_id,
        decoder_start_token_id=model.config.decoder_start_token_id,
        **_token_rules(model),
        forced_eos_token_id=model.config.eos_token_id if decoding.forced_eos else None,
    )


def _token_rules(model: PreTrainedModel) -> dict[str, Any]:
    """Return which tokens a checkpoint forces or forbids; None for a rule that it lacks."""
    rules = model.generation_config.to_dict()
    return {name: rules.get(name) for name in TOKEN_RULES}


def longest_output(decoding: Decoding, limit: int) -> int:
    """Return the largest number of output tokens, with the end token; `limit` is the system's."""
    return min(limit, decoding.max_length or limit)


class TokenProgress(LogitsProcessor):
    """Shows how many tokens the outputs of a batch have; it changes no scores."""

    def __init__(self, longest: int, prompt_length: int = 0) -> None:
        self.longest, self.prompt_length = longest, prompt_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores: [B·K, L + T], [B·K, V] → [B·K, V]."""
        note_progress(f"token {input_ids.shape[1] - self.prompt_length + 1:,} of {self.longest:,}")
        return scores


class SourceNgrams(LogitsProcessor):
    """As EncoderNoRepeatNGramLogitsProcessor, except: the source may have units, whose borders are in no n-gram.

    So an output does not depend on the other texts of its batch. A token that must come (the forced first or last one)
    is never forbidden, as in the library, which forces tokens after this.

    The n-grams are sorted by a hash of all but their last token. A step looks its tokens up without waiting for a GPU.
    """

    def __init__(self, size: int, ids: Tensor, mask: Tensor) -> None:
        """Find the n-grams of every source.

        `ids` and `mask` are [B, U, L] or [B, L]; the mask is True where a token is real.
        """
        self.size, self.num_sources = size, len(ids)
        windows = F.pad(ids, (0, size - 1)).unfold(-1, size, 1)
        complete = F.pad(mask.bool(), (0, size - 1)).unfold(-1, size, 1).all(-1)
        ngrams = torch.cat(
            [complete.nonzero()[:, :1], windows[complete]], 1
        )  # each with its source
        ngrams = F.pad(ngrams, (0, 0, 0, 1), value=-1)  # [G, 1 + n], G > 0
        self.factors = torch.full((size,), _HASH_FACTOR, device=ids.device).cumprod(0)
        hashes, order = (ngrams[:, :-1] * self.factors).sum(-1).sort()
        self.ngrams, self.hashes = ngrams[order], hashes
        last = torch.searchsorted(hashes, hashes, right=True)
        self.most = int((last - torch.searchsorted(hashes, hashes)).max())  # n-grams with one hash

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Forbid the tokens that would complete an n-gram of the source: [B·K, T], [B·K, V] → [B·K, V]."""
        if input_ids.shape[1] < self.size - 1:
            return scores
        num_rows, vocabulary = scores.shape
        beams = num_rows // self.num_sources
        rows = torch.arange(num_rows, device=scores.device)[:, None] // beams
        begun = torch.cat([rows, input_ids[:, input_ids.shape[1] - self.size + 1 :]], 1)  # [B·K, n]
        first = torch.searchsorted(self.hashes, (begun * self.factors).sum(-1))
        places = first[:, None] + torch.arange(self.most, device=scores.device)
        candidates = self.ngrams[places.clamp(max=len(self.ngrams) - 1)]  # [B·K, most, 1 + n]
        matches = (candidates[..., :-1] == begun[:, None]).all(-1)
        # tokens of other n-grams go to a column that is not read
        tokens = candidates[..., -1].where(matches, vocabulary)
        forbidden = scores.new_zeros(num_rows, vocabulary + 1, dtype=torch.bool)
        forbidden.scatter_(1, tokens, True)
        allowed = scores.masked_fill(forbidden[:, :-1], -torch.inf)
        return torch.where(allowed.isneginf().all(-1, keepdim=True), scores, allowed)


@contextmanager
def ranked_search(model: PreTrainedModel, decoding: Decoding) -> Iterator[None]:
    """Search at the settings' precision within the context, and rank hypotheses by their penalties (`check_search`)."""
    penalties = Penalties(
        decoding.length_norm, decoding.length_penalty, decoding.coverage, decoding.coverage_penalty
    )
    is_plain = decoding.num_beams == 1 or penalties.of_the_library
    device, usual_precision = model.device.type, torch.get_float32_matmul_precision()
    if decoding.precision == "tf32" and device == "cuda":
        torch.set_float32_matmul_precision("high")
    autocast = torch.autocast(device, torch.bfloat16, enabled=decoding.precision == "bf16")
    try:
        with autocast, nullcontext() if is_plain else model.ranked_by(penalties):
            yield
    finally:
        torch.set_float32_matmul_precision(usual_precision)


@contextmanager
def checked_logits(model: PreTrainedModel, sampled: bool) -> Iterator[None]:
    """Check the logits of all steps within the context, and turn errors of the network into one line.

    The check is at the end, so that no step waits for a GPU; if outputs are `sampled`, it is at every step, because
    the library cannot draw from logits that are not finite.

    Raises:
        DataError: the logits of a step are not finite, or the network cannot be used.
    """
    shown_as = f"the checkpoint {model.name_or_path or model.config.model_type}"
    largest: list[
        Tensor
    ] = []  # of each step, the largest logit of each output; NaN if one logit is

    def check() -> None:
        if largest and not torch.cat(largest).isfinite().all():
            kind = str(model.dtype).removeprefix("torch.")
            raise DataError(f"{shown_as}: its logits are not finite in {kind}; {FETCH_AGAIN}")
        largest.clear()

    def keep_largest(
        module: torch.nn.Module, inputs: tuple[Tensor, ...], output: CausalLMOutput
    ) -> None:
        largest.append(output.logits[:, -1].amax(dim=-1))
        if sampled:
            check()

    hook = model.register_forward_hook(keep_largest)
    try:
        with reading_checkpoint(shown_as):
            yield
            check()
    finally:
        hook.remove()


@contextmanager
def without_defaults(model: PreTrainedModel) -> Iterator[None]:
    """Hide a checkpoint's generation settings within the context: `generate` would use them where ours are None."""
    usual_config = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = usual_config


def decode(
    model: PreTrainedModel, batch: Mapping[str, Tensor], decoding: Decoding, limit: int
) -> tuple[list[list[int]], list[bool]]:
    """Decode a batch of summaries on the device of the settings, or where `device_map` placed the model.

    Sampling draws under `decoding.seed`. The draws of a batch depend on all of it, so callers sample one example at a
    time, each with a seed of its own (`Decoding.derive_seed`).

    Returns:
        Token ids of each summary without start and end token; whether the model ended the summary itself.
    """
    if "hf_device_map" not in vars(model):  # else its weights are where `device_map` says
        # not in inference mode: weights that are moved in it cannot be trained
        model.to(choose_device(decoding.device))
    model.eval()
    inputs = {name: value.to(model.device) for name, value in batch.items() if name != "labels"}
    config = generation_config(model, decoding, limit)
    longest = longest_output(decoding, limit)
    processors = LogitsProcessorList([TokenProgress(longest)])
    if decoding.encoder_no_repeat_ngram:
        ids = inputs["input_ids"]
        mask = inputs["unit_mask" if "unit_mask" in inputs else "attention_mask"].reshape(ids.shape)
        processors.append(SourceNgrams(decoding.encoder_no_repeat_ngram, ids, mask))
    if config.do_sample:
        torch.manual_seed(decoding.seed)
    checked = checked_logits(model, config.do_sample)
    with torch.inference_mode(), checked, ranked_search(model, decoding), without_defaults(model):
        outputs = model.generate(**inputs, generation_config=config, logits_processor=processors)
    ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    texts = []
    for _, *ids in outputs.tolist():  # the first is the start token
        texts.append(list(takewhile(lambda token: token not in ends, ids)))
    last = longest - decoding.forced_eos  # the place where an end token is forced
    return texts, [len(ids) < last for ids in texts]
