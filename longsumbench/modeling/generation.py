"""Decoding: greedy or beam search through transformers' `generate`, the same for every system.

Letters: B examples, T output tokens.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedModel

from longsumbench.api import Decoding
from longsumbench.errors import UsageError
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.nn.penalties import Penalties, RankedGeneration
from longsumbench.modeling.units import Units


@dataclass(frozen=True)
class Written:
    """A decoded summary, from which evidence is computed.

    Attributes:
        units: what was read.
        ids: the tokens, without start and end.
        complete: True if the end token was written.
        reference: the tokens of the first reference under `decode.reference_evidence`, else None.
    """

    units: Units
    ids: Sequence[int]
    complete: bool = True
    reference: Sequence[int] | None = None


def generation_config(model: PreTrainedModel, decoding: Decoding, limit: int) -> GenerationConfig:
    """Translate decoding settings into those of transformers; `limit` is the system's maximum of output tokens."""
    longest = min(limit, decoding.max_length or limit)
    return GenerationConfig(
        num_beams=decoding.num_beams,
        length_penalty=decoding.length_penalty if decoding.num_beams > 1 else None,
        max_new_tokens=longest,
        min_new_tokens=min(decoding.min_length, longest) or None,
        no_repeat_ngram_size=decoding.no_repeat_ngram or None,
        do_sample=False,
        use_cache=True,
        pad_token_id=model.config.pad_token_id,
        bos_token_id=model.config.bos_token_id,
        eos_token_id=model.config.eos_token_id,
        decoder_start_token_id=getattr(model.config, "decoder_start_token_id", None),  # causal models have none
        forced_bos_token_id=model.generation_config.forced_bos_token_id,
    )


def ranked_search(model: PreTrainedModel, decoding: Decoding) -> AbstractContextManager[None]:
    """Return the context in which beam search ranks hypotheses by the settings' penalties.

    Raises:
        UsageError: the model's search supports the library's length penalty only.
    """
    penalties = Penalties(decoding.length_norm, decoding.length_penalty, decoding.coverage, decoding.coverage_penalty)
    if decoding.num_beams == 1 or penalties.of_the_library:
        return nullcontext()
    if not isinstance(model, RankedGeneration):
        wanted = f"decode.length_norm={decoding.length_norm} decode.coverage={decoding.coverage}"
        raise UsageError(f"{wanted}: {type(model).__name__} supports length_norm=power coverage=none only")
    return model.ranked_by(penalties)


@torch.inference_mode()
def decode(
    model: PreTrainedModel, batch: Mapping[str, Tensor], decoding: Decoding, limit: int
) -> tuple[list[list[int]], list[bool]]:
    """Decode a batch of summaries on the device of the settings.

    Returns:
        Token ids of each summary without start and end token; whether each summary has an end token.
    """
    model.to(choose_device(decoding.device)).eval()
    inputs = {name: value.to(model.device) for name, value in batch.items() if name != "labels"}
    with ranked_search(model, decoding):
        outputs = model.generate(**inputs, generation_config=generation_config(model, decoding, limit))
    end = model.config.eos_token_id
    rows = [ids[1:] for ids in outputs.tolist()]  # without the start token
    texts = [ids[: ids.index(end)] if end in ids else ids for ids in rows]
    return texts, [end in ids for ids in rows]
