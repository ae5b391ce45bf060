"""The systems lead, random, LexRank, ranker and oracle: points of comparison for other summarizers."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Self

from longsumbench import core
from longsumbench.errors import MissingSplit
from longsumbench.modeling import extraction
from longsumbench.modeling.ranking import Ranking, lexrank, rank
from longsumbench.modeling.units import paragraphs_of
from longsumbench.models.baselines import config as settings
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import oracle_sentences


class FixedLength(core.System):
    """Base class of systems that write `model.length` words."""

    config: settings.LengthConfig

    def prepare(self, context: core.FitContext) -> None:
        """Learn the mean length of the training targets if `model.length=train`."""
        if self.config.length == "train":
            train = context.train
            if train is None or len(train) == 0:
                raise MissingSplit(
                    "model.length=train needs a train split: choose model.length=<words> or =reference"
                )
            self.state.target_words = extraction.mean_target_words(train)

    def ledgers(self, example: core.Example) -> tuple[core.Truncation | None, None]:
        """Return the ledger of the example's summary, which is cheap to make."""
        (summary,) = self.summarize([example], core.Decoding())
        return summary.truncation, None

    def length(self, example: core.Example) -> int:
        """Return the number of words to write for an example.

        Raises:
            UsageError: `model.length=train`, and `fit` was not called.
        """
        return extraction.extract_length(
            self.config.length, example, self.state.target_words, "model.length"
        )


class RankedBaseline(FixedLength):
    """Base class of baselines with a ranker (`model.rank`), which `fit` trains if it learns."""

    config: settings.RankedExtractorConfig

    def __init__(self, config: settings.RankedExtractorConfig) -> None:
        super().__init__(config)
        self.ranking = Ranking(config.rank, config.ranker_settings)

    def check_examples(self, examples: Iterable[core.Example]) -> None:
        """Check that every example has the title or query that its ranker needs, if there is one."""
        self.ranking.check_examples(examples)

    def prepare(self, context: core.FitContext) -> None:
        """Learn the length, and fit the ranker."""
        super().prepare(context)
        self.ranking.prepare(context)

    def save(self, folder: Path) -> None:
        """Save the settings, the length and a learned ranker."""
        super().save(folder)
        self.ranking.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote."""
        system = super().load(folder)
        system.ranking.load(folder)
        return system


class Lead(RankedBaseline):
    """The first words of the source; the last sentence is cut at the length (Hierarchical Transformer, §4).

    With `title` and `rank`: the first words of the title and the ranked paragraphs, as in that paper.
    """

    Config = settings.LeadConfig
    config: settings.LeadConfig

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Yield the first words of every example, one sentence per line; the ledger counts words."""
        self.ranking.use_device(decoding.device)
        for example in examples:
            title = [example.title] if self.config.title and example.title else []
            sentences = [*title, *self._sentences(example)]
            lines = extraction.leading_sentences(sentences, self.length(example))
            source = example.source_words()
            cut = source - max(0, core.count_words(lines) - core.count_words(title))
            cuts = (core.Cut("length", cut, cut),) if cut > 0 else ()
            yield core.Summary(example.id, "\n".join(lines), core.Truncation(source, source, cuts))

    def _sentences(self, example: core.Example) -> list[str]:
        """Return the source's sentences, in the order of the ranked paragraphs if there is a ranker."""
        if self.config.rank == core.UNRANKED:
            return list(example.sentences())
        paragraphs = list(example.texts("paragraph"))
        order = self.ranking.order(example, core.texts_to_rank(example))
        return list(chain.from_iterable(paragraphs[index] for index in order))


class RankedExtract(RankedBaseline):
    """The sentences, or the paragraphs, that a ranker scores highest, in the order of the source.

    The text chosen last is cut at the length. Copies of a chosen sentence are skipped.
    """

    Config = settings.RankedExtractConfig
    config: settings.RankedExtractConfig

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Yield an extract of every example, one sentence per line."""
        self.ranking.use_device(decoding.device)
        for example in examples:
            parts = paragraphs_of(example, self.config.unit)
            scores = self.ranking.scores(example, [part.text for part in parts])
            scored = extraction.ScoredSpans([part.span for part in parts], scores)
            sentences = extraction.chosen_sentences(
                example, scored, self.length(example), self.config.redundancy
            )
            yield core.Summary(example.id, "\n".join(sentences.values()), _all_read(example))


class LexRank(FixedLength):
    """The sentences that are most similar to all others, in the order of the source; the text chosen last is cut.

    Ranks the sentences of all documents together (`longsumbench.modeling.ranking.lexrank`), and chooses as `ranker`
    does. Paragraphs and sections are copied best first, with copies of each other, as in the Hierarchical Transformer's
    paper (§4). A text of one paragraph is then summarized as Lead does.
    """

    Config = settings.LexRankConfig
    config: settings.LexRankConfig

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Yield an extract of every example, one sentence per line."""
        for example in examples:
            length, parts = self.length(example), paragraphs_of(example, self.config.unit)
            scores = lexrank([part.text for part in parts], self.config.damping)
            if self.config.unit == "sentence":
                scored = extraction.ScoredSpans([part.span for part in parts], scores)
                lines = list(extraction.chosen_sentences(example, scored, length).values())
            else:
                ranked = list(chain.from_iterable(parts[index].sentences for index in rank(scores)))
                lines = extraction.leading_sentences(ranked, length)
            yield core.Summary(example.id, "\n".join(lines), _all_read(example))


class Random(FixedLength):
    """Sentences drawn without replacement up to the length, in the order of the source.

    The last one drawn is cut, so summaries are as long as Lead's. The draw depends only on the seed and the example's
    id, never on the other examples of a batch.
    """

    Config = settings.RandomConfig

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Yield a random extract of every example, one sentence per line."""
        for example in examples:
            sentences = list(example.sentences())
            order = list(range(len(sentences)))
            random.Random(f"{decoding.seed} {example.id}").shuffle(order)  # noqa: S311 - not used for secrets
            yield core.Summary(
                example.id,
                "\n".join(extraction.leading_sentences(sentences, self.length(example), order)),
            )


@dataclass
class OracleFitted(core.Fitted):
    """What Oracle keeps: the settings that decide which words count as equal, except defaults."""

    words: dict[str, Any] | None = None


class Oracle(core.System):
    """The sentences that a greedy search finds closest to the references (Nallapati et al., 2017)."""

    Config, State = settings.OracleConfig, OracleFitted
    state: OracleFitted

    def prepare(self, context: core.FitContext) -> None:
        """Keep the settings that decide which words count as equal, except defaults."""
        self.state.words = core.settings_deciding(context.scoring, "words")

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Yield the selected sentences in the order of the source, one per line."""
        rouge = SuiteScorer(core.Scoring(**(self.state.words or {})))
        for example in examples:
            sentences = list(example.sentences())
            yield core.Summary(
                example.id,
                "\n".join(sentences[index] for index in oracle_sentences(example, rouge)),
            )


def _all_read(example: core.Example) -> core.Truncation:
    """Return the ledger of a system that reads the whole source, in words."""
    return core.Truncation(example.source_words(), example.source_words())
