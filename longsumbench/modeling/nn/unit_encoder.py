"""Encoders of separate units: Transformer layers with positions that restart in every unit, and pretrained encoders.

Letters: B examples, U units, L unit tokens, R real units of the batch, N real tokens of the batch, S memory tokens,
D width; in `PretrainedEncoder`, r units, S special tokens of a unit.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from transformers import AutoConfig, AutoModel, PegasusConfig, PreTrainedModel
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.models.pegasus.modeling_pegasus import PegasusEncoder

from longsumbench.modeling.embeddings import num_positions
from longsumbench.modeling.nn.device import on_host, to_device
from longsumbench.modeling.nn.masks import attention_mask, never_empty
from longsumbench.modeling.nn.transformer_layer import (
    SinusoidalPositions,
    TransformerLayer,
    dropout,
)


class PretrainedEncoder(nn.Module):
    """An encoder of transformers that reads every unit alone, between the special tokens that its tokenizer adds.

    Special tokens are added here, so they count in no limit of a system and in no ledger; their states are left out.

    Args:
        network: the encoder's configuration, with `model_type`.
        start: special tokens before a unit.
        end: special tokens after a unit.
        pad: the token of padding.

    Attributes:
        longest: most tokens of a unit, without special tokens.
    """

    def __init__(self, network: dict[str, Any], start: list[int], end: list[int], pad: int) -> None:
        super().__init__()
        self.network: PreTrainedModel = AutoModel.from_config(
            AutoConfig.for_model(**network), trust_remote_code=False
        )
        if hasattr(self.network, "pooler"):
            self.network.pooler = None  # not used
        self.start, self.end, self.pad = start, end, pad
        self.longest = num_positions(self.network) - len(start) - len(end)

    def forward(self, input_ids: Tensor, mask: Tensor) -> Tensor:
        """Return the states of units of at most `longest` tokens: [r, L], [r, L] → [r, L, D].

        Those of padding have no meaning.
        """
        length = input_ids.shape[1]
        before, after = len(self.start), len(self.end)
        ids = input_ids.masked_fill(~mask, self.pad)
        framed = F.pad(ids, (before, after), value=self.pad)  # [r, S + L]
        framed[:, :before] = torch.tensor(self.start, device=ids.device)
        ends = before + mask.sum(-1, keepdim=True)  # [r, 1]
        places = ends + torch.arange(after, device=ids.device)
        framed.scatter_(1, places, torch.tensor(self.end, device=ids.device).expand_as(places))
        is_real = torch.arange(framed.shape[1], device=ids.device) < ends + after
        states: Tensor = self.network(
            input_ids=framed, attention_mask=is_real.long()
        ).last_hidden_state
        return states[:, before : before + length]


# padded tokens encoded together: enough for full speed, few enough for the processor's cache
PIECE_TOKENS = 4_096
# the same on a GPU, where the calls of small pieces would take longer than their work
GPU_PIECE_TOKENS = 65_536
# smallest number of padded tokens that keeps a processor busy; a GPU needs a 16th of its pieces
ENOUGH_TOKENS = 256
# of a batch, at most, whose layers a GPU recomputes one by one: fewer calls, about the same memory
_FEW_PIECES = 4


class Memory(NamedTuple):
    """States that a decoder attends to."""

    last_hidden_state: Tensor  # [B, S, D]
    mask: Tensor  # [B, S], True where a token may be attended to, at least one a row


class TokenTable(NamedTuple):
    """Encoded units: the concatenated states of all real tokens of a batch."""

    last_hidden_state: Tensor  # [N, D]
    starts: Tensor  # [B, U], the row of a unit's first token; 0 for an absent unit
    lengths: Tensor  # [B, U], number of tokens of a unit; 0 for an absent unit
    pooled: Tensor  # [B, U, P], the output of `UnitEncoder.pool`; zero for an absent unit

    @property
    def real(self) -> Tensor:
        """[B, U], True where a unit is real."""
        return self.lengths > 0

    def memory(self) -> Memory:
        """Concatenate the states of an example's units."""
        tokens = spread_units(self.starts, self.lengths)
        return gather(self.last_hidden_state, tokens.positions, tokens.mask)


class SpreadUnits(NamedTuple):
    """Concatenated tokens of an example's units."""

    positions: Tensor  # [B, S], a token's row in a table; 0 for padding
    mask: Tensor  # [B, S], True where a token is real
    units: Tensor  # [B, S], the token's unit
    offsets: Tensor  # [B, S], the token's position in its unit, from 0


class UnitEncoder(PegasusEncoder):
    """As PegasusEncoder, except: the input is units, absent units are skipped, and an example has one memory.

    Units are sorted by length and encoded in pieces of a few thousand tokens, each padded to its longest unit. Gradient
    checkpointing recomputes piece by piece, or few large pieces on a GPU layer by layer. Self-attention does not cross
    units.

    With `norm_first`, norms precede the sub-layers, and one more follows the last layer; else norms follow sub-layers.
    A pretrained encoder can read the units in place of embeddings and layers. A new norm follows it, because its states
    have another scale than those of the layers.
    """

    main_input_name = "input_ids"
    padding: ClassVar[float] = 1.0  # approximate share of a piece that may be padding; see `pieces`
    # tokens of a piece under gradient checkpointing on a CPU; None: as without
    recomputed: ClassVar[int | None] = None

    def __init__(self, config: PegasusConfig, norm_first: bool = True) -> None:
        super().__init__(config)
        self.embed_positions = SinusoidalPositions(config.d_model)
        self.pretrained: PretrainedEncoder | None = None
        if entries := getattr(config, "pretrained_encoder", None):
            self.pretrained = PretrainedEncoder(**entries, pad=config.pad_token_id)
        own_layers = 0 if self.pretrained else config.encoder_layers
        self.layers = nn.ModuleList(TransformerLayer(config, norm_first) for _ in range(own_layers))
        if not (norm_first or self.pretrained):
            self.layer_norm = nn.Identity()

    def forward(self, input_ids: Tensor, unit_mask: Tensor, **kwargs: Any) -> Memory:
        """Encode every real unit separately, and concatenate the states of an example's units.

        Args:
            input_ids: [B, U, L].
            unit_mask: [B, U, L], True where a token is real; a unit's real tokens come first.
            **kwargs: not used; `generate` passes all its inputs.
        """
        return self.encode(input_ids, unit_mask).memory()

    def encode(self, input_ids: Tensor, unit_mask: Tensor) -> TokenTable:
        """Encode every real unit separately, piece by piece."""
        device, unit_mask = input_ids.device, on_host(unit_mask)
        real = unit_mask.any(-1)  # [B, U]
        extents = (unit_mask[real] * torch.arange(1, unit_mask.shape[2] + 1)).amax(-1)  # [R]
        order = extents.argsort(descending=True, stable=True)
        # [R], indices among all B · U units, the longest first
        units = real.flatten().nonzero()[order, 0]
        ids = input_ids.flatten(0, 1)[to_device(units, device)]  # [R, L]
        mask, places = unit_mask.flatten(0, 1)[units], units % real.shape[1]  # [R, L], [R]
        limit = piece_tokens(device)
        recomputes, on_cpu = self.gradient_checkpointing and self.training, device.type == "cpu"
        by_piece = recomputes and (on_cpu or int(extents.sum()) > _FEW_PIECES * limit)
        if recomputes and on_cpu:
            limit = self.recomputed or limit
        empty = self.embed_tokens.weight[:0, None].detach()  # [0, 1, D], for a batch without text
        encoded = [(empty[:, 0], order[:0], self.pool(empty, empty[..., 0] > 0))]
        for rows, longest in pieces(extents[order].tolist(), self.padding, limit):
            piece_mask = to_device(mask[rows, :longest], device)
            piece = ids[rows, :longest], piece_mask, to_device(places[rows], device)
            if by_piece:
                encoded.append(self._read_again(*piece))
            else:
                encoded.append(self._read(*piece, by_layer=recomputes))
        states, sizes, pooled = map(torch.cat, zip(*encoded, strict=True))
        return _token_table(real, units, states, sizes, pooled)

    def read(
        self, input_ids: Tensor, mask: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Encode a piece of units.

        Args:
            input_ids: [r, L].
            mask: [r, L], True where a token is real.
            places: [r], the index of each unit in its example, from 0, with absent units.

        Returns:
            States of the real tokens [n, D], number of tokens of each unit [r] on the CPU, pooled units [r, P].
        """
        states = self.states(input_ids, mask, places)
        return real_rows(states, mask), on_host(mask).sum(-1), self.pool(states, mask)

    def states(self, input_ids: Tensor, mask: Tensor, places: Tensor) -> Tensor:
        """Return the states of units: [r, L], [r, L], [r] → [r, L, D]."""
        if self.pretrained is None:
            return self.run_layers(self.embed(input_ids, places), mask)
        normed: Tensor = self.layer_norm(self.pretrained(input_ids, mask))
        return normed

    def pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return one vector for each unit: [r, L, D], [r, L] → [r, P]; by default P is 0."""
        return states.new_zeros(len(states), 0)

    def embed(self, input_ids: Tensor, places: Tensor) -> Tensor:
        """Return scaled embeddings with positions: [r, L], [r] → [r, L, D]; by default `places` has no effect."""
        positions = self.embed_positions.upto(input_ids.shape[1])
        placed: Tensor = self.embed_alone(input_ids) + positions
        return placed

    def embed_alone(self, input_ids: Tensor) -> Tensor:
        """Return scaled embeddings: [r, L] → [r, L, D]."""
        table = self.embed_tokens
        # there a dense gradient of the vocabulary for every piece is slow
        on_cpu = input_ids.device.type == "cpu"
        embedded = F.embedding(input_ids, table.weight, table.padding_idx, sparse=on_cpu)
        scaled: Tensor = embedded * self.embed_scale
        return scaled

    def run_layers(self, states: Tensor, mask: Tensor) -> Tensor:
        """Run dropout, the layers and the last norm: [r, L, D] → [r, L, D]."""
        states = dropout(states, self.dropout, self.training)
        full = bool(on_host(mask).all())  # attention without a mask is faster
        layer_mask = None if full else attention_mask(mask, self.config, states.dtype)
        for layer in cast(list[TransformerLayer], list(self.layers)):
            states = layer(states, layer_mask)
        output: Tensor = self.layer_norm(states)
        return output

    def _read(
        self, input_ids: Tensor, mask: Tensor, places: Tensor, by_layer: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        for layer in (self.pretrained or self.layers).modules():
            if isinstance(layer, GradientCheckpointingLayer):
                layer.gradient_checkpointing = by_layer
        return self.read(input_ids, mask, places)

    def _read_again(
        self, input_ids: Tensor, mask: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `read`, whose activations are computed again in the backward pass."""
        # Reentrant checkpointing keeps no graph of the first pass, whose small blocks would fragment glibc's memory
        # (4 GB instead of 2 at 98,304 tokens). It requires an input with a gradient, and copies all inputs.
        trigger = torch.ones((), device=input_ids.device, requires_grad=True)
        result: tuple[Tensor, Tensor, Tensor] = checkpoint(
            lambda _: self._read(input_ids, mask, places, by_layer=False),
            trigger,
            use_reentrant=True,
        )
        return result


def piece_tokens(device: torch.device) -> int:
    """Return how many padded tokens are encoded together on a device."""
    return GPU_PIECE_TOKENS if device.type == "cuda" else PIECE_TOKENS


def real_rows(states: Tensor, mask: Tensor) -> Tensor:
    """Return the states of the real tokens: [r, L, D], [r, L] → [n, D]."""
    real, flat = on_host(mask), states.flatten(0, 1)
    if real.all():
        return flat
    return F.embedding(to_device(real.flatten().nonzero()[:, 0], flat.device), flat)


def pieces(
    lengths: list[int], padding: float = 1.0, limit: int | None = None
) -> Iterator[tuple[slice, int]]:
    """Split units into pieces of at most `limit` padded tokens, at least one unit; yield (rows, longest).

    Args:
        lengths: lengths of the units, the longest first.
        padding: a unit with a larger share of padding starts a new piece, if the current piece has ENOUGH_TOKENS and
            a 16th of `limit`; 1: never.
        limit: maximum padded tokens of a piece; None: PIECE_TOKENS.
    """
    start, limit = 0, limit or PIECE_TOKENS
    while start < len(lengths):
        longest = lengths[start]
        stop = min(len(lengths), start + max(1, limit // longest))
        enough = start + -(-max(ENOUGH_TOKENS, limit // 16) // longest)
        for index in range(enough, stop):
            if lengths[index] < (1 - padding) * longest:
                stop = index
                break
        yield slice(start, stop), longest
        start = stop


def _token_table(
    real: Tensor, units: Tensor, states: Tensor, sizes: Tensor, pooled: Tensor
) -> TokenTable:
    """Undo the sorting: `units` [R], `sizes` [R] and `pooled` [R, P] are in the order of encoding; `real` is [B, U]."""
    starts, lengths = torch.zeros(2, *real.shape, dtype=torch.long)
    starts.view(-1)[units], lengths.view(-1)[units] = sizes.cumsum(0) - sizes, sizes
    device = states.device
    dense = pooled.new_zeros(real.numel(), pooled.shape[1])
    dense = dense.index_copy(0, to_device(units, device), pooled)
    dense = dense.view(*real.shape, pooled.shape[1])
    return TokenTable(states, to_device(starts, device), to_device(lengths, device), dense)


def spread_units(starts: Tensor, counts: Tensor, longest: int | None = None) -> SpreadUnits:
    """Concatenate the first tokens of every unit.

    Args:
        starts: [B, U], the row of a unit's first token in a table.
        counts: [B, U], the number of its first tokens to take.
        longest: the largest sum of a row of `counts`; None: it is computed, for which a GPU may have to wait.
    """
    ends = counts.cumsum(-1)  # [B, U]
    length = max(1, int(on_host(counts).sum(-1).max()) if longest is None else longest)
    step = torch.arange(length, device=counts.device).expand(len(counts), length).contiguous()
    units = torch.searchsorted(ends, step, right=True).clamp(max=counts.shape[1] - 1)
    mask = step < ends[:, -1:]
    offsets = step - (ends - counts).gather(1, units)
    positions = (starts.gather(1, units) + offsets).masked_fill(~mask, 0)
    return SpreadUnits(positions, mask, units, offsets)


def gather(states: Tensor, positions: Tensor, mask: Tensor) -> Memory:
    """Take rows of a table: [N, D], [B, S], [B, S] → memory. An example without tokens gets one zero vector."""
    if not len(states):
        return Memory(states.new_zeros(*positions.shape, states.shape[1]), never_empty(mask))
    gathered = F.embedding(positions, states).masked_fill(~mask.any(-1)[:, None, None], 0.0)
    return Memory(gathered, never_empty(mask))
