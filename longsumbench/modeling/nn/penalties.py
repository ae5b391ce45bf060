"""What ranks the hypotheses of a beam search: their length, and how much of the source they attend to.

    score(Y) = log p(Y) / lp(Y) + cp(X; Y), when a hypothesis ends

It is the library's search, whose rule for the length is one of those to choose from.

Letters: B examples, K beams, Q = B·K query rows, R memory rows, T target tokens, S memory tokens.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from longsumbench.modeling.nn.folded_attention import FoldedCache, FoldedGeneration, recorded_attention

_LEAST = 1e-9  # of the attention that a token got, under wu's logarithm: what got less counts as this, -20.7 β


@dataclass(frozen=True)
class Penalties:
    """How hypotheses are ranked.

    Attributes:
        length_norm: lp; power: |Y|^length_penalty, as the library has it; wu: ((5 + |Y|) / 6)^length_penalty (Wu et
            al. 2016). |Y| counts the tokens that were written, the end token among them.
        length_penalty: the exponent.
        coverage: cp, over the attention Σ_t a_tj that each source token j got; none; summary: -β·Σ_j max(0, Σ_t a_tj
            - 1), for what is read twice; wu: β·Σ_j log min(Σ_t a_tj, 1), for what is not read.
        coverage_penalty: β, not negative.
    """

    length_norm: str = "power"
    length_penalty: float = 1.0
    coverage: str = "none"
    coverage_penalty: float = 5.0

    @property
    def covers(self) -> bool:
        """Whether attention is followed."""
        return self.coverage != "none"

    @property
    def of_the_library(self) -> bool:
        """Whether the library's search ranks so by itself."""
        return self.length_norm == "power" and not self.covers

    def divisor(self, length: int) -> float:
        """Return lp of a hypothesis of so many tokens."""
        return float((length if self.length_norm == "power" else (5 + length) / 6) ** self.length_penalty)

    def of_coverage(self, attention: Tensor, real: Tensor) -> Tensor:
        """Return cp, never positive: [Q, S] → [Q].

        Args:
            attention: [Q, S], what each token got, over all steps.
            real: [Q, S], True where a token is real.
        """
        summary = self.coverage == "summary"
        of_tokens = (1 - attention).clamp(max=0) if summary else attention.clamp(_LEAST, 1).log()
        return self.coverage_penalty * of_tokens.masked_fill(~real, 0).sum(-1)

    def at_best(self, of_coverage: Tensor) -> Tensor:
        """Return the most that cp can become while a hypothesis goes on: summary's only falls, wu's may rise to 0."""
        return of_coverage if self.coverage == "summary" else torch.zeros_like(of_coverage)


class BeamRanking:
    """A search on its way.

    Attributes:
        penalties: how it ranks.
        of_coverage: [Q], cp of every hypothesis that the last step extended, that step included; None before.
        parents: [B, K], which of them each running hypothesis extends; None before there are any.
    """

    def __init__(self, penalties: Penalties) -> None:
        self.penalties = penalties
        self.of_coverage: Tensor | None = None
        self.parents: Tensor | None = None

    def of(self, rows: Tensor) -> Tensor | float:
        """Return cp of hypotheses that extend some rows; any shape."""
        if not self.penalties.covers:
            return 0.0
        assert self.of_coverage is not None
        return self.of_coverage[rows.long()]


class RankedGeneration(FoldedGeneration):
    """For models with `generate` and folded cross-attention: a search that ranks by penalties."""

    model: Any
    _ranking: BeamRanking | None = None

    @contextmanager
    def ranked_by(self, penalties: Penalties) -> Iterator[None]:
        """Let `generate` rank by penalties as long as the context lasts, instead of by its own length penalty.

        A search ends by the library's rule, with the lp and the most that cp can become: when no running hypothesis
        could, at its length, overtake the finished ones.

        Args:
            penalties: with coverage, of a model whose decoder reads one memory for each example, the same at all steps.
        """
        self._ranking = BeamRanking(penalties)
        try:
            yield
        finally:
            self._ranking = None

    @contextmanager
    def following(self, ids: Tensor, mask: Tensor | None, cache: FoldedCache | None) -> Iterator[None]:
        """Follow the coverage while the decoder runs, if the search on its way asks for it.

        Without a cache it is that of the whole prefix; with one, earlier steps' stands there.

        Args:
            ids: [Q, T], fed to the decoder.
            mask: [R or Q, S], True where a memory token is real; None: everywhere.
            cache: the decoder's.
        """
        if self._ranking is None or not self._ranking.penalties.covers:
            yield
            return
        with recorded_attention(self.model.decoder.layers[-1].encoder_attn) as weights:
            yield
        of_heads = weights[-1].mean(1)  # [R, K·T, S]
        attention = of_heads.reshape(*ids.shape, -1).sum(1)  # [Q, S]
        if cache is not None:
            attention = cache.cover(attention)
        real = torch.ones_like(attention, dtype=torch.bool)
        if mask is not None:
            real = mask.repeat_interleave(len(ids) // len(mask), 0)
        self._ranking.of_coverage = self._ranking.penalties.of_coverage(attention, real)

    def _get_running_beams_for_next_iteration(self, **step: Any) -> tuple[Tensor, Tensor, Tensor]:
        """As the library's, and note which hypotheses go on."""
        found: tuple[Tensor, Tensor, Tensor] = super()._get_running_beams_for_next_iteration(**step)  # type: ignore[misc]  # the library's class stands behind this one
        if self._ranking is not None:
            indices = found[2]  # [B, K, all steps], a row for each step so far, and -1 behind them
            self._ranking.parents = indices[..., int((indices[0, 0] >= 0).sum()) - 1]
        return found

    def _update_finished_beams(self, **step: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """As the library's, except: what ends is scored by the penalties."""
        if self._ranking is not None:
            length = step["cur_len"] + 1 - step["decoder_prompt_len"]
            scores = step["topk_log_probs"] / self._ranking.penalties.divisor(length)  # [B, 2·K]
            scores = scores + self._ranking.of(step["topk_running_beam_indices"][..., length - 1])
            step |= {"topk_log_probs": scores, "length_penalty": 0.0}
        finished: tuple[Tensor, Tensor, Tensor, Tensor] = super()._update_finished_beams(**step)  # type: ignore[misc]
        return finished

    def _check_early_stop_heuristic(self, **step: Any) -> Tensor:
        """As the library's, except: what running hypotheses may reach is by the penalties."""
        if self._ranking is not None:
            penalties = self._ranking.penalties
            longest = step["early_stopping"] == "never" and penalties.length_penalty > 0
            length = step["max_length" if longest else "cur_len"] - step["decoder_prompt_len"]
            best = step["running_beam_scores"] / penalties.divisor(length)  # [B, K]
            if penalties.covers:
                assert self._ranking.parents is not None
                best = best + penalties.at_best(torch.as_tensor(self._ranking.of(self._ranking.parents)))
            step |= {"running_beam_scores": best.amax(1, keepdim=True), "length_penalty": 0.0}
        unsatisfied: Tensor = super()._check_early_stop_heuristic(**step)  # type: ignore[misc]
        return unsatisfied
