"""Windows: an encoder reads parts of a long text, and the decoder attends to all of them (SLED, Ivgi et al. 2023).

Begin with `read_in_windows`. Letters: B examples, L input tokens, R windows that are encoded together, C tokens of a
window, D width.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

_MARKS = "global_attention_mask"  # of LED


@dataclass(frozen=True)
class Window:
    """Positions of the tokens that are encoded together, and of those whose states are kept."""

    read: list[int]
    kept: range


def split_windows(head: int, end: int, length: int, overlap: int) -> Iterator[Window]:
    """Yield the windows of the tokens from `head` to before `end`, of which each is kept once (SLED, §3).

    Neighbours share `overlap` tokens, and each of the two keeps the states of its half of them. All windows have
    `length` tokens: the last one ends with the text, shares more, and keeps only what the window before it does not. A
    shorter text is one window. The tokens before `head` precede each window.
    """
    before = list(range(head))
    last = max(head, end - length)
    kept_start = head
    for start in (*range(head, last, length - overlap), last):
        stop = min(start + length, end)
        kept_end = stop if start == last else stop - overlap // 2
        yield Window([*before, *range(start, stop)], range(kept_start, kept_end))
        kept_start = kept_end


def read_in_windows(model: PreTrainedModel, length: int, overlap: int) -> None:
    """Let `forward` and `generate` of a model encode every input in windows, and join the states that are kept.

    Both then need the entry `head_length` [B] of a batch: the number of tokens that start an input and precede each
    of its windows. If an input has several windows, its head is also encoded alone, and the decoder attends to that, as in
    SLED. An input that fits into one window is encoded as without windows.

    With gradient checkpointing, the backward pass computes a window's activations again, one window after the other. So
    only the joined states are kept, and they collect the gradients (CachED). Weights, their names and what is saved
    stay as they are.

    Args:
        model: an encoder-decoder of transformers.
        length: tokens of a window, its head included.
        overlap: tokens that neighbouring windows share.
    """
    plain_forward, plain_generate = model.forward, model.generate
    encoded = partial(_with_encoder_outputs, model, length, overlap)

    @wraps(plain_forward)
    def forward(head_length: Tensor | None = None, **inputs: Any) -> Any:
        # a step of `generate` has the states of the encoder
        return plain_forward(**inputs if head_length is None else encoded(head_length, inputs))

    @wraps(plain_generate)
    def generate(head_length: Tensor, **inputs: Any) -> Any:
        return plain_generate(**encoded(head_length, inputs))

    model.forward = forward
    model.generate = generate


def _with_encoder_outputs(
    model: PreTrainedModel, length: int, overlap: int, head_length: Tensor, inputs: dict[str, Any]
) -> dict[str, Any]:
    """Return the inputs with the states of the encoder instead of tokens; the mask is the decoder's, too."""
    tokens = {name: inputs.pop(name) for name in ("input_ids", _MARKS) if name in inputs}
    sizes = zip(inputs["attention_mask"].sum(1).tolist(), head_length.tolist(), strict=True)
    windows = [_divide_input(size, head, length, overlap) for size, head in sizes]
    states = _encode_windows(model, tokens, windows)
    return {**inputs, "encoder_outputs": BaseModelOutput(last_hidden_state=states)}


def _divide_input(size: int, head: int, length: int, overlap: int) -> list[Window]:
    """Return the windows of an input with `size` tokens; a window of its head alone is the first."""
    if size <= length:
        return [Window(list(range(size)), range(size))]
    windows = [Window(list(range(head)), range(head))] if head else []
    return [*windows, *split_windows(head, size, length - head, overlap)]


def _encode_windows(
    model: PreTrainedModel, tokens: Mapping[str, Tensor], windows: list[list[Window]]
) -> Tensor:
    """Encode the windows of each example, and join their states: [B, L, D], 0 where an input is padded.

    The first windows of all examples are encoded together, then the second ones, and so on.
    """
    encoder = model.get_encoder()
    encode = partial(_encode_kept, encoder, tokens, model.config.pad_token_id)
    recomputes = any(vars(part).get("gradient_checkpointing") for part in model.modules())
    if model.training and recomputes:
        # a window is computed again as a whole, so its layers need not be
        for module in encoder.modules():
            if "gradient_checkpointing" in vars(module):
                module.gradient_checkpointing = False
        encode = partial(checkpoint, encode, use_reentrant=False)
    states: list[list[Tensor]] = [[] for _ in windows]
    for numbered in zip_longest(*windows):
        together = {row: window for row, window in enumerate(numbered) if window is not None}
        for row, kept in zip(together, encode(together), strict=True):
            states[row].append(kept)
    joined = pad_sequence([torch.cat(kept) for kept in states], batch_first=True)
    return F.pad(joined, (0, 0, 0, tokens["input_ids"].shape[1] - joined.shape[1]))


def _encode_kept(
    encoder: torch.nn.Module,
    tokens: Mapping[str, Tensor],
    padding: int,
    windows: Mapping[int, Window],
) -> list[Tensor]:
    """Encode one window of each of some examples; return the states of each that are kept: [n, D]."""
    device = tokens["input_ids"].device
    rows = torch.tensor(list(windows), device=device)[:, None]
    read = [torch.tensor(window.read) for window in windows.values()]
    places = pad_sequence(read, batch_first=True, padding_value=-1).to(device)  # [R, C]
    real = places >= 0
    inputs = {"attention_mask": real.long()}
    for name, value in tokens.items():
        fill = padding if name == "input_ids" else 0
        inputs[name] = value[rows, places.clamp(min=0)].where(real, fill)
    if _MARKS in inputs:
        # as the first token of a text, that of a window sees all
        inputs[_MARKS][:, 0] = tokens[_MARKS][rows[:, 0], 0]
    states: Tensor = encoder(**inputs, return_dict=True).last_hidden_state
    kept = []
    for row, window in zip(states, windows.values(), strict=True):
        begin = window.read.index(window.kept.start)
        kept.append(row[begin : begin + len(window.kept)].clone())
    return kept
