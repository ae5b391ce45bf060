"""`pages`: each page alone; the next token is from the mixture of the pages' distributions (PageSum, §3, Eq. 5).

The engine mixes them: `page_mixture.py` has the equation.
"""

import numpy as np

from longsumbench.core import Evidence, Example
from longsumbench.models.prompt.prompt_builder import PromptBuilder
from longsumbench.models.prompt.readings.reading import PartialSummary, PromptRound, Reading, Rounds


class MixedPages(Reading):
    """Pages of neighbouring text, of one section or of one document, which the model reads side by side."""

    settings = frozenset({"page_length", "pages", "confidence"})
    unit_setting = "page_length"
    reads_all = True
    mixes_pages = True
    evidence_row = "step"

    def __init__(self, builder: PromptBuilder, example: Example, limit: int) -> None:
        super().__init__(builder, example, limit)
        self.draft = PartialSummary("")

    def rounds(self) -> Rounds:
        """Ask once, with a prompt for each page."""
        borders: dict[str, tuple[int, ...]] = {
            "spatial": (),
            "discourse": self.passage.sections,
            "document": self.passage.documents,
        }
        config = self.builder.config
        prompts = self.prompt_parts(self.text, borders[config.pages], config.page_length)
        [self.draft] = yield [PromptRound(prompts)]
        return self.draft

    def evidence(self) -> Evidence:
        """Return the weight of each page at each token of the summary; one page has all of it."""
        ids, weights = self.draft.ids, self.draft.confidences
        if weights is None:
            weights = np.ones((len(self.units), len(ids)), np.float32)
        steps = tuple(self.builder.engine.tokenizer.decode([token]) for token in ids)
        return Evidence(
            {"confidences": weights},
            {"confidences": ("unit", "step")},
            {"unit": self.quote_spans(self.units), "step": steps},
        )
