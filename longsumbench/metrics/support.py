"""Support: the probability that the source supports each sentence of a summary, by an entailment classifier.

A language model can say it, too: by the probability of "yes" (`score.support_by=language_model`).

`Classifier` is for other metrics, too.

source --premises--> sentences or chunks --most similar--> pairs with a summary sentence --classifier--> maximum, mean
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from longsumbench.core import Example, Metric, Scoring, SentenceScore
from longsumbench.errors import UsageError
from longsumbench.metrics.judge_model import JudgeModel, does_it_say
from longsumbench.metrics.statistics import Numbers
from longsumbench.modeling.checkpoints import (
    check_finite,
    reading_checkpoint,
    resolved_revision,
    split_revision,
)
from longsumbench.modeling.embeddings import MOST_TOKENS, num_positions
from longsumbench.modeling.pretrained import Pretrained
from longsumbench.modeling.ranking import rank
from longsumbench.rouge.tokenizer import named_tokenizer
from longsumbench.sentences import SPLITTER_NAME, split_summary

_BATCH_SIZE = 32  # pairs


class Classifier(NamedTuple):
    """A loaded classifier.

    Attributes:
        label: index of the label whose probability counts.
        limit: most tokens of a pair.
        separator: what joins the texts of a pair; None if the tokenizer encodes them as a pair.
    """

    tokenizer: Any
    network: Any
    label: int
    limit: int
    separator: str | None = None

    def probabilities(self, pairs: Sequence[tuple[str, str]], shown_as: str) -> list[float]:
        """Return the probability of the label for each pair; of a pair that is too long, the longer text is cut first.

        `shown_as` is the classifier in messages.

        Raises:
            DataError: a probability is not finite.
        """
        import torch

        tokenizer, network, label, limit, separator = self
        options = {"truncation": True, "max_length": limit, "padding": True, "return_tensors": "pt"}
        # pairs of similar length are classified together, which saves padding
        order = np.argsort([-sum(map(len, pair)) for pair in pairs], kind="stable").tolist()
        values = np.zeros(len(pairs))
        for start in range(0, len(order), _BATCH_SIZE):
            batch = order[start : start + _BATCH_SIZE]
            texts: tuple[list[str], ...]
            if separator is None:
                texts = [pairs[index][0] for index in batch], [pairs[index][1] for index in batch]
            else:
                texts = ([separator.join(pairs[index]) for index in batch],)
            with torch.inference_mode():
                logits = network(**tokenizer(*texts, **options).to(network.device)).logits
            values[batch] = logits.double().softmax(dim=-1)[:, label].cpu().numpy()
        check_finite(values, shown_as)
        probabilities: list[float] = values.tolist()
        return probabilities


_MODEL_SETTING, _LABEL_SETTING = "score.support_model", "score.support_label"
_LABELS = frozenset(("entailment", "entails", "entailed", "support", "supports", "supported"))
_TOP_SENTENCES = 3  # LongDocFACTScore
_TEST_PAIR = "a sentence " * 300, "another one"  # longer than most classifiers read

_TokenCounter = Callable[[Sequence[str]], list[int]]


class Premise(NamedTuple):
    """A part of a source that is compared as a whole.

    Attributes:
        text: a sentence, a part of a long one, or a chunk of neighbouring ones.
        source: index of the sentence in which it begins.
        tokens: its length.
    """

    text: str
    source: int
    tokens: int


# Begin to read here, with `score`.
class Support(Metric):
    """The mean over the summary's sentences of the probability that the source supports them, by a classifier.

    A sentence is compared with sentences of the source (SummaC's zero-shot scheme, Laban et al. 2022) or with chunks
    of whole sentences (MiniCheck, Tang et al. 2024), and the largest probability counts. Only the most similar ones are
    compared (LongDocFACTScore, Bishop et al. 2024). The similarity is the sum of the idf weights of shared words.
    A language model is asked whether a passage says the sentence: the most similar sentences together, or a chunk.

    The metric does not apply to an empty summary or an empty source.

    Deviation: SummaC's package subtracts the probability of a contradiction, and LongDocFACTScore finds similar
    sentences with an encoder and adds their neighbours.
    """

    name = "support"
    columns = (name,)

    def __init__(self, scoring: Scoring) -> None:
        super().__init__(scoring)
        self._loaded: Classifier | None = None
        # Summary and id of its example → its pairs, between `prepare` and `score`.
        self._prepared: dict[tuple[str, str], list[tuple[Premise, int]]] = {}

    def check(self) -> None:
        """Load the classifier, find its label, and score a long pair; or open the language model."""
        if self._reader:
            return
        with reading_checkpoint(self._model.shown_as):
            self.probabilities([_TEST_PAIR])

    def prepare(self, items: Iterable[tuple[str, Example]]) -> None:
        """Ask a language model about all summaries together, which is faster."""
        if self._reader:
            texts = []
            for prediction, example in items:
                sentences = split_summary(prediction)
                pairs = self._prepared[prediction, example.id] = self._pairs(sentences, example)
                for premise, index in pairs:
                    texts.append((premise.text, sentences[index]))
            self.probabilities(texts)

    def score(self, prediction: str, example: Example) -> dict[str, float]:
        """Score one prediction; `support` → 0–1, or NaN for an empty summary or source, or without an answer."""
        return self.score_sentences(prediction, example)[0]

    def score_sentences(
        self, prediction: str, example: Example
    ) -> tuple[dict[str, float], Sequence[SentenceScore]]:
        """Score one prediction; the score of a sentence is its probability."""
        sentences = split_summary(prediction)
        pairs = self._prepared.pop((prediction, example.id), None)
        if pairs is None:
            pairs = self._pairs(sentences, example)
        if not pairs:
            return {self.name: math.nan}, ()
        values = self.probabilities([(premise.text, sentences[index]) for premise, index in pairs])
        if any(map(math.isnan, values)):
            return {self.name: math.nan}, ()
        best = [SentenceScore(-1.0, 0)] * len(sentences)
        for (premise, index), value in zip(pairs, values, strict=True):
            if value > best[index].score:
                best[index] = SentenceScore(value, premise.source)
        return {self.name: float(np.mean([sentence.score for sentence in best]))}, best

    def signature(self, n: int) -> str:
        """Name the metric, its version, the classifier with its commit and label, the scheme and the splitter."""
        scoring = self.scoring
        parts = {self.name: self.version, **self._describe_model()}
        parts |= {
            "scheme": scoring.support_scheme,
            "top": self._top or "all",
            "length": scoring.support_length,
            "tokenizer": scoring.tokenizer,
            "sentences": SPLITTER_NAME,
        }
        return "|".join(f"{name}:{value}" for name, value in parts.items())

    def _describe_model(self) -> dict[str, str]:
        if self._reader:
            name = Path(split_revision(self._reader.name)[0]).name
            return {"language_model": f"{name}@{self._reader.key[:8]}"}
        model = self._model
        labels = model.config(_network_class()).id2label
        label = labels[entailment_label(labels, self.scoring.support_label, model.shown_as)]
        described = {"model": model.signature()}
        if revision := resolved_revision(model.folder):
            described["revision"] = revision
        return {**described, "label": label}

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return for each pair of a premise and a sentence the probability that the premise supports the sentence.

        It is NaN if a language model gives none.
        """
        if self._reader:
            questions = [does_it_say(*pair) for pair in pairs]
            self._reader.ask(questions, self.scoring.device)
            self._reader.check_any_answer()
            answers = self._reader.find_answers(questions)
            return [math.nan if answer is None else answer for answer in answers]
        return self._classifier().probabilities(pairs, self._model.shown_as)

    @property
    def _top(self) -> int | None:
        chunks = self.scoring.support_scheme == "chunks"
        return self.scoring.support_top or (None if chunks else _TOP_SENTENCES)

    def _pairs(self, sentences: Sequence[str], example: Example) -> list[tuple[Premise, int]]:
        """Return what each sentence of a summary is compared with, and the index of that sentence."""
        source = list(example.sentences())
        if not sentences or not any(map(str.strip, source)):
            return []
        compared = self._premises(source, sentences)
        pairs = []
        are_read_together = self._reader and self.scoring.support_scheme == "sentences"
        for index, nearest in enumerate(self._most_similar(compared, sentences)):
            passages = [_join(nearest)] if are_read_together else nearest
            pairs += [(premise, index) for premise in passages]
        return pairs

    def _premises(self, source: Sequence[str], sentences: Sequence[str]) -> list[Premise]:
        """Return what is compared; each fits into the classifier with the longest of the sentences."""
        if self._reader:
            count, longest = self._reader.count, self.scoring.support_length
            chunks = self.scoring.support_scheme == "chunks"
            return premises(source, lambda texts: list(map(count, texts)), longest, chunks)
        tokenizer, _, _, limit, _ = self._classifier()
        room = limit - tokenizer.num_special_tokens_to_add(pair=True)

        def count_tokens(texts: Sequence[str]) -> list[int]:
            spaced = [f" {text}" for text in texts]  # as inside a chunk
            encoded = tokenizer(spaced, add_special_tokens=False, verbose=False)
            return [len(ids) for ids in encoded["input_ids"]]

        # a long sentence leaves at least half of the room to the source
        longest_sentence = min(max(count_tokens(sentences)), room // 2)
        longest = max(1, min(self.scoring.support_length, room - longest_sentence))
        return premises(source, count_tokens, longest, self.scoring.support_scheme == "chunks")

    def _most_similar(
        self, compared: Sequence[Premise], sentences: Sequence[str]
    ) -> Iterator[list[Premise]]:
        """Yield for each sentence the premises to compare it with, in the order of the source."""
        if self._top is None or self._top >= len(compared):
            yield from [list(compared)] * len(sentences)
            return
        split = named_tokenizer(self.scoring.tokenizer, "google")
        words = [frozenset(split([premise.text])) for premise in compared]
        of_sentences = [frozenset(split([sentence])) for sentence in sentences]
        for similarity in overlaps(words, of_sentences):
            yield [compared[index] for index in sorted(rank(similarity)[: self._top])]

    @cached_property
    def _reader(self) -> JudgeModel | None:
        """The language model, if one is asked."""
        scoring, name = self.scoring, self.scoring.support_model
        if scoring.support_by != "language_model" or not name:
            return None
        return JudgeModel(name, scoring.judge_settings, self.version, _MODEL_SETTING)

    @cached_property
    def _model(self) -> Pretrained:
        name, revision = split_revision(self.scoring.support_model or "")
        return Pretrained.find(name, _MODEL_SETTING, revision=revision, pickled=True)

    def _classifier(self) -> Classifier:
        if self._loaded is None:
            from longsumbench.modeling.nn.device import choose_device

            model, kind = self._model, _network_class()
            config = model.config(kind)
            label = entailment_label(config.id2label, self.scoring.support_label, model.shown_as)
            tokenizer, network = model.network_with_tokenizer(kind, config=config)
            limit = min(tokenizer.model_max_length, num_positions(network), MOST_TOKENS)
            # MiniCheck-RoBERTa was trained on texts that its end token joins; for other tokenizers that is a pair
            joined = config.num_labels == 2 and "token_type_ids" not in tokenizer.model_input_names
            separator = tokenizer.eos_token if joined else None
            network = network.to(choose_device(self.scoring.device)).eval()
            self._loaded = Classifier(tokenizer, network, label, limit, separator)
        return self._loaded


def _join(passages: Sequence[Premise]) -> Premise:
    """Return passages as one, which begins where the first one does."""
    text = " ".join(premise.text for premise in passages)
    return Premise(text, passages[0].source, sum(premise.tokens for premise in passages))


def entailment_label(labels: Mapping[int, str], label: str | None, shown_as: str) -> int:
    """Return the index of the label for a supported sentence, in any order and case.

    Args:
        labels: the classifier's `id2label`.
        label: `score.support_label`; None: the label whose name says so.
        shown_as: the classifier in messages.

    Raises:
        UsageError: there is no such label, or several, or the classifier has fewer than two labels.
    """
    names = ", ".join(labels.values())
    if len(labels) < 2:
        raise UsageError(
            f"{shown_as} has one label ({names}), and support needs two or more: give another classifier"
        )
    accepted = _LABELS if label is None else {label.casefold()}
    indices = [index for index, name in labels.items() if name.casefold() in accepted]
    if len(indices) != 1:
        problem = (
            "no single label says that a text supports another"
            if label is None
            else f"no label {label}"
        )
        advice = f"set {_LABEL_SETTING} to the one that does (MiniCheck: LABEL_1)"
        raise UsageError(f"{shown_as}: {problem}; its labels are {names}: {advice}")
    return indices[0]


def premises(
    source: Sequence[str], count_tokens: _TokenCounter, longest: int, chunks: bool
) -> list[Premise]:
    """Divide a source into its sentences, or into chunks of whole sentences; no word is lost.

    Args:
        source: its sentences; blank ones are skipped.
        count_tokens: returns the lengths of some texts.
        longest: most tokens of a premise; a longer sentence is cut between words, or within a long word.
        chunks: True to join neighbouring sentences as long as they fit.
    """
    parts: list[Premise] = []
    for index, (text, tokens) in enumerate(zip(source, count_tokens(source), strict=True)):
        for part in _cut(Premise(text.strip(), index, tokens), count_tokens, longest):
            # a part joins the chunk before it if it fits
            if chunks and parts and parts[-1].tokens + part.tokens <= longest:
                last = parts.pop()
                part = Premise(f"{last.text} {part.text}", last.source, last.tokens + part.tokens)
            parts.append(part)
    return parts


def _cut(premise: Premise, count_tokens: _TokenCounter, longest: int) -> Iterator[Premise]:
    text, source, tokens = premise
    if tokens > longest and len(text) > 1:
        middle = len(text) // 2
        blank = text.rfind(" ", 1, middle)
        cut = blank if blank > 0 else middle
        halves = text[:cut].strip(), text[cut:].strip()
        for half, number in zip(halves, count_tokens(halves), strict=True):
            yield from _cut(Premise(half, source, number), count_tokens, longest)
    elif text:
        yield premise


def overlaps(
    texts: Sequence[frozenset[str]], sentences: Sequence[frozenset[str]]
) -> Iterator[Numbers]:
    """Yield for each sentence its similarity to each of some texts: the sum of ln(N / N_w) over shared words w.

    N is the number of texts, N_w the number of those with the word.
    """
    num_texts = Counter(chain.from_iterable(texts))
    idf = {word: math.log(len(texts) / number) for word, number in num_texts.items()}
    for sentence in sentences:
        shared = [[idf[word] for word in sentence & words] for words in texts]
        yield np.array([math.fsum(weights) for weights in shared])


def _network_class() -> Any:
    from transformers import AutoModelForSequenceClassification

    return AutoModelForSequenceClassification
