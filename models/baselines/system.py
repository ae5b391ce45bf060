"""The systems lead, random, LexRank, ranker, oracle, person and highlights: points of comparison for other summarizers."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Self

from longsumbench.core import (
    UNRANKED,
    Cut,
    Decoding,
    Example,
    FitContext,
    Fitted,
    Scoring,
    Summary,
    System,
    Truncation,
    count_words,
    settings_deciding,
    texts_to_rank,
)
from longsumbench.errors import UsageError
from longsumbench.modeling.extraction import (
    ScoredSpans,
    chosen_sentences,
    extract_length,
    leading_sentences,
    mean_target_words,
)
from longsumbench.modeling.ranking import Ranking, lexrank, rank
from longsumbench.modeling.units import split_paragraphs
from longsumbench.models.baselines import config as settings
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import oracle_sentences


class FixedLength(System):
    """Base class of systems that write `model.length` words."""

    config: settings.LengthConfig

    def prepare(self, context: FitContext) -> None:
        """Learn the mean length of the training targets if `model.length=train`."""
        if self.config.length == "train":
            self.state.target_words = mean_target_words(context.train, " or =reference")

    def length(self, example: Example) -> int:
        """Return the number of words to write for an example.

        Raises:
            UsageError: `model.length=train`, and `fit` was not called.
        """
        return extract_length(self.config.length, example, self.state.target_words, "model.length")


class RankedBaseline(FixedLength):
    """Base class of baselines with a ranker (`model.rank`), which `fit` trains if it learns."""

    config: settings.RankedExtractorConfig

    def __init__(self, config: settings.RankedExtractorConfig) -> None:
        super().__init__(config)
        self.ranking = Ranking(config.rank, config.ranker_settings)

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that every example has the title or query that its ranker needs, if there is one."""
        self.ranking.check_examples(examples)

    def prepare(self, context: FitContext) -> None:
        """Learn the length, and fit the ranker."""
        super().prepare(context)
        self.ranking.prepare(context)

    def metadata(self) -> dict[str, Any]:
        """Return how much of the texts the ranker's encoder did not read, if there is one."""
        return self.ranking.metadata()

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

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield the first words of every example, one sentence per line; the ledger counts words."""
        self.ranking.use_device(decoding.device)
        for example in examples:
            title = [example.title] if self.config.title and example.title else []
            sentences = [*title, *self._sentences(example)]
            lines = leading_sentences(sentences, self.length(example))
            # The title is not part of the source, whose words alone are counted.
            ledger = _all_read(example)
            cut = ledger.words - max(0, count_words(lines) - count_words(title))
            if cut > 0:
                ledger = replace(ledger, cuts=(Cut("length", cut, cut),))
            yield _extract(example, lines, ledger)

    def _sentences(self, example: Example) -> list[str]:
        """Return the source's sentences, in the order of the ranked paragraphs if there is a ranker."""
        if self.config.rank == UNRANKED:
            return list(example.sentences())
        paragraphs = list(example.texts("paragraph"))
        order = self.ranking.order(example, texts_to_rank(example))
        return list(chain.from_iterable(paragraphs[index] for index in order))


class RankedExtract(RankedBaseline):
    """The sentences, or the paragraphs, that a ranker scores highest, in the order of the source.

    The text chosen last is cut at the length. Copies of a chosen sentence are skipped.
    """

    Config = settings.RankedExtractConfig
    config: settings.RankedExtractConfig

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield an extract of every example, one sentence per line."""
        self.ranking.use_device(decoding.device)
        for example in examples:
            parts = split_paragraphs(example, self.config.unit)
            scores = self.ranking.scores(example, [part.text for part in parts])
            scored = ScoredSpans([part.span for part in parts], scores)
            sentences = chosen_sentences(
                example, scored, self.length(example), self.config.redundancy
            )
            yield _extract(example, sentences.values(), _all_read(example))


class LexRank(FixedLength):
    """The sentences that are most similar to all others, in the order of the source; the text chosen last is cut.

    Ranks the sentences of all documents together (`longsumbench.modeling.ranking.lexrank`), and chooses as `ranker`
    does. Paragraphs and sections are copied best first, with copies of each other, as in the Hierarchical Transformer's
    paper (§4). A text of one paragraph is then summarized as Lead does.
    """

    Config = settings.LexRankConfig
    config: settings.LexRankConfig

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield an extract of every example, one sentence per line."""
        for example in examples:
            length, parts = self.length(example), split_paragraphs(example, self.config.unit)
            scores = lexrank([part.text for part in parts], self.config.damping)
            # Sentences keep the order of the source; paragraphs are copied best first, as in the paper.
            if self.config.unit == "sentence":
                scored = ScoredSpans([part.span for part in parts], scores)
                lines = list(chosen_sentences(example, scored, length).values())
            else:
                ranked = list(chain.from_iterable(parts[index].sentences for index in rank(scores)))
                lines = leading_sentences(ranked, length)
            yield _extract(example, lines, _all_read(example))


class Random(FixedLength):
    """Sentences drawn without replacement up to the length, in the order of the source.

    The last one drawn is cut, so summaries are as long as Lead's. The draw depends only on the seed and the example's
    id, never on the other examples of a batch.
    """

    Config = settings.RandomConfig

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield a random extract of every example, one sentence per line."""
        for example in examples:
            sentences = list(example.sentences())
            order = list(range(len(sentences)))
            random.Random(f"{decoding.seed} {example.id}").shuffle(order)  # noqa: S311 - not used for secrets
            yield _extract(example, leading_sentences(sentences, self.length(example), order))


@dataclass
class OracleFitted(Fitted):
    """What Oracle keeps: the settings that decide which words count as equal, except defaults."""

    words: dict[str, Any] | None = None


class Oracle(System):
    """The sentences that a greedy search finds closest to the references (Nallapati et al., 2017)."""

    Config, State = settings.OracleConfig, OracleFitted
    state: OracleFitted

    def prepare(self, context: FitContext) -> None:
        """Keep the settings that decide which words count as equal, except defaults."""
        self.state.words = settings_deciding(context.scoring, "words")

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield the selected sentences in the order of the source, one per line."""
        rouge = SuiteScorer(Scoring(**(self.state.words or {})))
        for example in examples:
            sentences = list(example.sentences())
            chosen = oracle_sentences(example, rouge)
            yield _extract(example, [sentences[index] for index in chosen])


class Person(System):
    """A reference, drawn by the seed and the example's id. It is not scored against itself."""

    Config = settings.PersonConfig

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that every example has two different references."""
        for example in examples:
            if len(set(example.references)) < 2:
                raise UsageError(
                    "model=person scores one reference against the others, and example"
                    f" '{example.id}' has no two different ones: choose another dataset or model"
                )

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield a reference of every example, one sentence per line."""
        for example in examples:
            draw = random.Random(f"{decoding.seed} {example.id}")  # noqa: S311 - not used for secrets
            yield _extract(example, draw.choice(example.references))


class Highlights(System):
    """What people highlighted in the source, in its order."""

    Config = settings.HighlightsConfig

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that people highlighted something in every example."""
        for example in examples:
            if not example.highlights:
                raise UsageError(
                    f"model=highlights needs texts with highlights, and example '{example.id}' has none:"
                    " choose another model, or dataset=aclsum or aclsum_aspects"
                )

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Yield the highlights of every example, one per line."""
        for example in examples:
            yield _extract(example, example.highlights)


def _extract(
    example: Example, sentences: Iterable[str], ledger: Truncation | None = None
) -> Summary:
    """Return a summary of one sentence a line."""
    return Summary(example.id, "\n".join(sentences), ledger)


def _all_read(example: Example) -> Truncation:
    """Return the ledger of a system that reads the whole source, in words."""
    words = example.source_words()
    return Truncation(words, words)
