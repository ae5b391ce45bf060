"""PromptSystem: a language model that is asked for a summary."""

from collections.abc import Iterator, Sequence

from longsumbench.api import Decoding, Example, Summary, System
from longsumbench.models.prompt.config import PromptConfig


class PromptSystem(System):
    """A prompted language model."""

    Config = PromptConfig
    decided_by = frozenset({"decode"})

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield one summary per example."""
        raise NotImplementedError
