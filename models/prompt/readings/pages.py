"""`pages`: each page alone; the next token is from the mixture of the pages' distributions (PageSum, §3, Eq. 5).

The engine mixes them: `page_mixture.py` has the equation.
"""

from math import ceil

import numpy as np

from longsumbench.core import Evidence, Example
from longsumbench.models.prompt.config import PromptConfig, RequestSizes
from longsumbench.models.prompt.readings.reading import Ask, Prompting, Reading, Reply, Rounds
from longsumbench.models.prompt.source_text import Span


class Pages(Reading):
    """Pages of neighbouring text, of one section or of one document, which the model reads side by side."""

    settings = frozenset({"page_length", "pages", "confidence"})
    unit_setting = "page_length"
    reads_all = True
    mixes_pages = True
    keeps_evidence = True

    @classmethod
    def request_lengths(cls, config: PromptConfig, sizes: RequestSizes) -> tuple[float, float]:
        """Every page has a prompt."""
        num_pages = ceil(sizes.source / (config.page_length or sizes.room))
        return sizes.source + num_pages * sizes.instructions, sizes.answer

    def __init__(self, system: Prompting, example: Example, limit: int) -> None:
        super().__init__(system, example, limit)
        self.reply = Reply("")

    def rounds(self) -> Rounds:
        """Ask once, with a prompt for each page.

        Raises:
            UsageError: there is no room for a page.
        """
        self.spans = self._divide()
        prompts = [self.messages(text) for text in self.texts_of(self.spans)]
        [self.reply] = yield [Ask(tuple(prompts))]
        return self.reply

    def _divide(self) -> list[Span]:
        borders_of_kind: dict[str, tuple[int, ...]] = {
            "spatial": (),
            "discourse": self.passage.sections,
            "document": self.passage.documents,
        }
        borders = borders_of_kind[self.system.config.pages]
        spans = self.text.parts(self.room, borders, self.system.config.page_length)
        if not spans:
            raise self.no_room(self.room)
        return spans

    def evidence(self) -> Evidence:
        """Return the weight of each page at each token of the summary; one page has all of it."""
        tokenizer = self.system.engine.tokenizer
        weights = self.reply.confidences
        if weights is None:
            weights = np.ones((len(self.spans), len(self.reply.ids)), np.float32)
        return Evidence(
            {"confidences": weights},
            {"confidences": ("unit", "step")},
            {
                "unit": self.texts_of(self.spans),
                "step": tuple(tokenizer.decode([token]) for token in self.reply.ids),
            },
        )
