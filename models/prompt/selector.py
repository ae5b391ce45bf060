"""The selector of a prompted language model: it divides a text into snippets, and scores them (`model.selector`).

It is a ranker, or the system of a finished run that scores its source (EA, SEAL). `Selector.scores` is the door.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from longsumbench import core
from longsumbench.core import Decoding, Example, FitContext, Scores, Span
from longsumbench.modeling.extraction import scaled_scores
from longsumbench.modeling.ranking import Ranking, similarities
from longsumbench.models.prompt.config import PromptConfig
from longsumbench.models.prompt.source_text import LongText
from longsumbench.sentences import split_sentences

if TYPE_CHECKING:
    from longsumbench.modeling.neural_system import NeuralSystem  # it needs torch

_FOLDER = "selector"  # of a checkpoint
# Without a choice: a ranker for examples with a query, and one for others.
_WITH_QUERY, _WITHOUT_QUERY = "bm25", "lexrank"


class Selector:
    """Snippets and their scores.

    Attributes:
        decoding: where and at which precision the system of a run works.
    """

    def __init__(self, config: PromptConfig) -> None:
        self.config = config
        self.decoding = Decoding()
        # The system of a finished run; set by `prepare` and `load`.
        self._system: NeuralSystem | None = None

    @cached_property
    def _rankings(self) -> dict[str, Ranking]:
        """The rankers in use, by name."""
        if self.config.selects_by_run or not self.config.reading_class.selects:
            return {}
        names = [self.config.selector] if self.config.selector else [_WITH_QUERY, _WITHOUT_QUERY]
        return {
            name: Ranking(name, self.config.ranker_settings, "model.selector") for name in names
        }

    def _choose_ranking(self, example: Example) -> Ranking:
        usual = _WITH_QUERY if example.query else _WITHOUT_QUERY
        return self._rankings[self.config.selector or usual]

    def check_example(self, example: Example) -> None:
        """Check that an example has the title or query that its ranker needs, if there is one.

        Raises:
            UsageError: it has neither.
        """
        if self._rankings:
            self._choose_ranking(example).check_examples([example])

    def prepare(self, context: FitContext) -> None:
        """Fit a ranker that learns, or open the run.

        Raises:
            UsageError: there is no such run, or its checkpoint is gone.
            DataError: its checkpoint is damaged.
        """
        for ranking in self._rankings.values():
            ranking.prepare(context)
        if self.config.selects_by_run:
            self._system = cast("NeuralSystem", context.open_run(str(self.config.selector)))

    def fitted_identity(self) -> list[dict[str, Any]]:
        """Return the identities of rankers with a network that are ready."""
        return [ranking.fitted_identity() for ranking in self._rankings.values()]

    def save(self, folder: Path) -> None:
        """Save a ranker that learned, or the system of the run, in a checkpoint."""
        for ranking in self._rankings.values():
            ranking.save(folder)
        if self._system is not None:
            (folder / _FOLDER).mkdir(exist_ok=True)
            self._system.save(folder / _FOLDER)

    def load(self, folder: Path) -> None:
        """Load what `save` wrote.

        Raises:
            DataError: a file is damaged or missing.
        """
        for ranking in self._rankings.values():
            ranking.load(folder)
        if self.config.selects_by_run:
            name = core.read_saved(folder / _FOLDER)["system"]
            self._system = core.registry.systems.load(name).load(folder / _FOLDER)

    def snippets(self, example: Example, text: LongText) -> list[Span]:
        """Return the characters of each snippet: those of the run's system, or whole sentences."""
        if self._system is None:
            return text.snippets(self.config.snippet_length)
        scored = self._system.score_next(example, "", self.decoding)
        # A snippet ends where the next sentence begins: blanks between two snippets are sent with them.
        starts = [start for start, _ in text.passage.sentences]
        starts.append(len(text.passage.text))
        return [(starts[first], starts[end]) for first, end in scored.spans]

    def scores(self, example: Example, snippets: Sequence[str], written: str) -> Scores:
        """Return the scores of an example's snippets for what comes after a text: [snippets], higher is better.

        The scorer of SEAL reads what is written. For `segments`, other scores are scaled to 0–1, and lowered by the
        largest tf-idf cosine with a written sentence (Carbonell & Goldstein 1998): (1 − λ) · score − λ · cosine, λ:
        `redundancy`.
        """
        if self._system is None:
            scores = self._choose_ranking(example).scores(example, snippets)
        else:
            scores = np.asarray(self._system.score_next(example, written, self.decoding).scores)
            if self._system.looks_back:
                return scores
        if "redundancy" not in self.config.reading_class.settings or not snippets:
            return scores
        sentences = split_sentences(written)
        cosines = similarities([*snippets, *sentences])[: len(snippets), len(snippets) :]
        redundancy = self.config.redundancy
        relevance = scaled_scores(scores, 1 - redundancy)
        values: Scores = relevance - redundancy * cosines.max(axis=1, initial=0.0)
        return values
