"""Whether the systems of a table learned to summarize: only those that did are compared.

rows of comparable runs, per-example scores --judge_learning--> a Learned for each row
"""

from collections.abc import Sequence
from typing import NamedTuple

from longsumbench.leaderboards.seed_groups import ScoresOfRuns, SeedGroup

LEARNED, STILL_LEARNING, NOT_LEARNED, UNKNOWN = "learned", "still learning", "not learned", "not known"


class Learned(NamedTuple):
    """Whether a row's system learned to summarize.

    Attributes:
        word: `LEARNED`, `STILL_LEARNING`, `NOT_LEARNED`, `UNKNOWN`; empty for a system that learns nothing here, such
            as Lead.
        reason: why it is not `LEARNED`: "lift of 8 % in 1 of 3 seeds"; otherwise empty.
        floor: what its outputs score without their sources, in the unit of the ranking score; None if unknown.
        lift: gain over the floor, as percent of the gain that is possible; None if unknown.
    """

    word: str = ""
    reason: str = ""
    floor: float | None = None
    lift: float | None = None

    @property
    def comparable(self) -> bool:
        """True if conclusions about the row can be drawn."""
        return self.word in ("", LEARNED)


def judge_learning(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> dict[str, Learned]:
    """Return key of a row → whether its system learned.

    Args:
        rows: comparable rows.
        scores: run id → per-example scores, 0–1, of the runs that have them.
    """
    raise NotImplementedError
