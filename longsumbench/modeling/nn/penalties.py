"""Length and coverage penalties, which rank the hypotheses of a beam search.

    score(Y) = log p(Y) / lp(Y) + cp(X; Y), when a hypothesis ends

The search is that of transformers; its length penalty is one of the choices.

Letters: B examples, K beams, Q = B·K query rows, R memory rows, T target tokens, S memory tokens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from longsumbench.modeling.nn.folded_attention import (
    FoldedCache,
    FoldedGeneration,
    recorded_attention,
)

_LEAST = 1e-9  # smallest attention sum under wu's logarithm: smaller sums count as this, -20.7 β


@dataclass(frozen=True)
class Penalties:
    """The penalties that rank hypotheses."""

    # lp. power: |Y|^length_penalty, as in transformers. wu: ((5 + |Y|) / 6)^length_penalty (Wu et al. 2016). |Y| counts
    # the output tokens with the end token.
    length_norm: str = "power"
    length_penalty: float = 1.0  # the exponent
    # cp, from the attention sum Σ_t a_tj of each source token j. none: 0. summary: -β·Σ_j max(0, Σ_t a_tj - 1), against
    # repeated attention. wu: β·Σ_j log min(Σ_t a_tj, 1), against missing attention.
    coverage: str = "none"
    coverage_penalty: float = 5.0  # β, not negative

    @property
    def covers(self) -> bool:
        """True if cp depends on attention."""
        return self.coverage != "none"

    @property
    def of_the_library(self) -> bool:
        """True if transformers' search supports these penalties."""
        return self.length_norm == "power" and not self.covers

    def divisor(self, length: int) -> float:
        """Return lp of a hypothesis of `length` tokens."""
        base = length if self.length_norm == "power" else (5 + length) / 6
        return float(base**self.length_penalty)

    def of_coverage(self, attention: Tensor, real: Tensor) -> Tensor:
        """Return cp, never positive: [Q, S] → [Q].

        Args:
            attention: [Q, S], the sum over all steps.
            real: [Q, S], True where a token is real.
        """
        if self.coverage == "summary":
            token_penalties = (1 - attention).clamp(max=0)
        else:
            token_penalties = attention.clamp(_LEAST, 1).log()
        return self.coverage_penalty * token_penalties.masked_fill(~real, 0).sum(-1)

    def at_best(self, of_coverage: Tensor) -> Tensor:
        """Return the highest cp that a running hypothesis can reach: summary's only falls, wu's may rise to 0."""
        return of_coverage if self.coverage == "summary" else torch.zeros_like(of_coverage)


@dataclass
class BeamRanking:
    """State of a running search."""

    penalties: Penalties
    # [Q], cp of every hypothesis that the last step extended, with that step; None before the first
    of_coverage: Tensor | None = None
    # [B, K, all steps], the row that each running hypothesis extended at each step; None before the first step
    rows: Tensor | None = None

    def of(self, rows: Tensor) -> Tensor | float:
        """Return cp of hypotheses that extend some rows; any shape."""
        if not self.penalties.covers:
            return 0.0
        assert self.of_coverage is not None
        return self.of_coverage[rows.long()]


class RankedGeneration(FoldedGeneration):
    """Mixin for models with `generate` and folded cross-attention: beam search with `Penalties`."""

    model: Any
    _ranking: BeamRanking | None = None

    @contextmanager
    def ranked_by(self, penalties: Penalties) -> Iterator[None]:
        """Rank by penalties within the context, instead of by transformers' length penalty.

        A search ends by transformers' rule, with lp and the highest possible cp: no running hypothesis could, at its
        length, exceed the finished ones.

        Args:
            penalties: coverage requires a decoder with one memory per example, the same at all steps.
        """
        self._ranking = BeamRanking(penalties)
        try:
            yield
        finally:
            self._ranking = None

    @contextmanager
    def following(
        self, ids: Tensor, mask: Tensor | None, cache: FoldedCache | None
    ) -> Iterator[None]:
        """Update the coverage while the decoder runs, if the running search uses it.

        Args:
            ids: [Q, T], the input of the decoder.
            mask: [R or Q, S], True where a memory token is real; None: everywhere.
            cache: the decoder's cache, with the coverage of earlier steps; None: `ids` is the whole prefix.
        """
        if self._ranking is None or not self._ranking.penalties.covers:
            yield
            return
        with recorded_attention(self.model.decoder.layers[-1].encoder_attn) as weights:
            yield
        head_mean = weights[-1].mean(1)  # [R, K·T, S]
        attention = head_mean.reshape(*ids.shape, -1).sum(1)  # [Q, S]
        if cache is not None:
            attention = cache.cover(attention)
        real = torch.ones_like(attention, dtype=torch.bool)
        if mask is not None:
            real = mask.repeat_interleave(len(ids) // len(mask), 0)
        self._ranking.of_coverage = self._ranking.penalties.of_coverage(attention, real)

    def _get_running_beams_for_next_iteration(self, **step: Any) -> tuple[Tensor, Tensor, Tensor]:
        """As in transformers; also store the rows that the running hypotheses extend."""
        library = super()
        running: tuple[Tensor, Tensor, Tensor]
        running = library._get_running_beams_for_next_iteration(**step)  # type: ignore[attr-defined] # of transformers
        if self._ranking is not None:
            self._ranking.rows = running[2]
        return running

    def _update_finished_beams(self, **step: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As in transformers, except: finished hypotheses are scored with the penalties."""
        if self._ranking is not None:
            length = step["cur_len"] + 1 - step["decoder_prompt_len"]
            scores = step["topk_log_probs"] / self._ranking.penalties.divisor(length)  # [B, 2·K]
            scores = scores + self._ranking.of(step["topk_running_beam_indices"][..., length - 1])
            step |= {"topk_log_probs": scores, "length_penalty": 0.0}
        finished: tuple[Tensor, Tensor, Tensor, Tensor] = super()._update_finished_beams(**step)  # type: ignore[misc]
        return finished

    def _check_early_stop_heuristic(self, **step: Any) -> Tensor:
        """As in transformers, except: the best possible scores of running hypotheses include the penalties."""
        if self._ranking is not None:
            penalties = self._ranking.penalties
            longest = step["early_stopping"] == "never" and penalties.length_penalty > 0
            length = step["max_length" if longest else "cur_len"] - step["decoder_prompt_len"]
            best = step["running_beam_scores"] / penalties.divisor(length)  # [B, K]
            if penalties.covers:
                assert self._ranking.rows is not None
                parents = self._ranking.rows[..., step["cur_len"] - step["decoder_prompt_len"] - 1]
                best = best + penalties.at_best(torch.as_tensor(self._ranking.of(parents)))
            step |= {"running_beam_scores": best.amax(1, keepdim=True), "length_penalty": 0.0}
        unsatisfied: Tensor = super()._check_early_stop_heuristic(**step)  # type: ignore[misc]
        return unsatisfied
