"""Oracle recall: the share of the oracle's sentences that a summary copies, and where in the source it copies from."""

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from longsumbench.core import Example, Metric, Scoring, settings_deciding, word_pattern
from longsumbench.rouge.scorer import SuiteScorer
from longsumbench.rouge.selection import oracle_sentences
from longsumbench.sentences import SPLITTER_NAME, sentence_key, split_sentences

_TENTHS_OF_SOURCE = range(10)


class OracleRecall(Metric):
    """The share of the oracle's sentences that the summary copies whole, and the tenths of the source it copies from.

    The oracle's sentences are those that the system `oracle` writes. A sentence is copied if it is a line or a sentence
    of the summary; case and blanks are ignored. A sentence that was cut is not copied. The place of a sentence is the
    tenth of the source's words in which it begins. Equal sentences of the source are one, at the place of the first.

    * `oracle_recall`: share of the oracle's sentences that are copied, NaN if there are none;
      `oracle_recall_position_<0…9>`: of those in one tenth of the source, NaN if there are none;
    * `extracted_position_<0…9>`: share of the copied sentences that are in this tenth, NaN if none is copied. These are
      all copied sentences, also those that the oracle does not choose.
    """

    name: ClassVar[str] = "oracle_recall"
    columns: ClassVar[tuple[str, ...]] = (
        name,
        *(f"oracle_recall_position_{tenth}" for tenth in _TENTHS_OF_SOURCE),
        *(f"extracted_position_{tenth}" for tenth in _TENTHS_OF_SOURCE),
    )

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        self._rouge = SuiteScorer(scoring)

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `columns` → 0–1 or NaN."""
        sentences, places = list(example.sentences()), _sentence_tenths(example)
        copied = list(_copied(prediction, places))
        oracle_keys = {
            sentence_key(sentences[index]) for index in oracle_sentences(example, self._rouge)
        }
        scores = {self.name: _share([key in copied for key in oracle_keys])}
        for tenth in _TENTHS_OF_SOURCE:
            in_tenth = [key in copied for key in oracle_keys if places[key] == tenth]
            scores[f"oracle_recall_position_{tenth}"] = _share(in_tenth)
            scores[f"extracted_position_{tenth}"] = _share([places[key] == tenth for key in copied])
        return scores

    def signature(self, n: int) -> str:
        """Name the metric, its version, the sentence splitter, and what decides the oracle's words except defaults."""
        words = settings_deciding(self.scoring, "words")
        parts = {self.name: self.version, "sentences": SPLITTER_NAME, **words}
        return "|".join(f"{name}:{value}" for name, value in parts.items())


def _sentence_tenths(example: Example) -> dict[str, int]:
    """Return the key of each source sentence → the tenth of the source in which it begins."""
    pattern = word_pattern(example.source_text())
    total, words_before = example.source_words(), 0
    places: dict[str, int] = {}
    for sentence in example.sentences():
        if words := len(pattern.findall(sentence)):
            places.setdefault(
                sentence_key(sentence), len(_TENTHS_OF_SOURCE) * words_before // total
            )
            words_before += words
    return places


def _copied(prediction: str, places: Mapping[str, int]) -> Iterator[str]:
    """Yield the keys of the source sentences that are lines of a prediction, or sentences of its other lines."""
    for line in prediction.splitlines():
        keys = [sentence_key(line)]
        # an extract has a source sentence on each line, which the splitter might divide
        if keys[0] not in places:
            keys = [sentence_key(sentence) for sentence in split_sentences(line)]
        yield from (key for key in keys if key in places)


def _share(values: Sequence[bool]) -> float:
    return float(np.mean(values)) if values else np.nan
