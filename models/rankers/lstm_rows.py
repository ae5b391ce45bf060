"""What the LSTM paragraph ranker learns from: paragraphs with their ROUGE-2 recall of the reference."""

from collections.abc import Iterator, Sequence
from typing import Any

import datasets
from transformers import PreTrainedTokenizerBase

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Example, Split, texts_to_rank
from longsumbench.modeling import tokenizer as tokenization
from longsumbench.modeling.collate import stored_rows
from longsumbench.modeling.units import QUERIES_VERSION
from longsumbench.progress import track
from longsumbench.rouge.all_pairs import number_words, rouge_n
from longsumbench.rouge.scorer import RougeScorer

TEXT_LENGTH = 500  # most tokens read of a title or paragraph; labels are for the whole paragraph
ROW_LENGTH = 2_000  # most tokens of paragraphs in a training row, unless a single paragraph has more
ROWS_VERSION = 1  # increases, with LstmRanker.version, when training rows change


class Labeller:
    """Label paragraphs with their ROUGE-2 recall of a reference, over stems (Hierarchical Transformer §4)."""

    def __init__(self) -> None:
        self._scorer = RougeScorer()

    def __call__(self, paragraphs: Sequence[str], reference: Sequence[str]) -> list[float]:
        """Return one label per paragraph, 0–1; the sentences of the reference are scored as one text."""
        words = [self._scorer.words(text) for text in paragraphs]
        texts, gold = number_words(words, [self._scorer.words(" ".join(reference))])
        labels: list[float] = rouge_n(texts, gold, 2)["recall"][0].tolist()
        return labels


def query_version(split: Split) -> dict[str, int]:
    """Return the version of queries as part of a stage's inputs, if the texts have any."""
    return {"queried": QUERIES_VERSION} if split.queried else {}


def stored_training_rows(
    split: Split, indices: range, tokenizer: PreTrainedTokenizerBase, unit: str, stages: ArtifactCache
) -> datasets.Dataset:
    """Return the training rows of the chosen examples with references, cached if they were made before."""
    label = Labeller()
    tracked = track(indices, f"reading {split.name} paragraphs for the ranker", len(indices))
    rows = (row for index in tracked for row in training_rows(split[index], tokenizer, unit, label))
    inputs = {
        "split": split.fingerprint,
        "chosen": [indices.step, len(indices)],
        "tokenizer": tokenization.tokenizer_identity(tokenizer),
        "unit": unit,
        "lengths": [TEXT_LENGTH, ROW_LENGTH],
        "version": ROWS_VERSION,
        **query_version(split),
    }
    ids = datasets.List(datasets.List(datasets.Value("int32")))
    labels = datasets.List(datasets.Value("float32"))
    features = datasets.Features({"units": ids, "labels": labels, "length": datasets.Value("int32")})
    return stored_rows("ranker-rows", inputs, features, rows, stages)


def training_rows(
    example: Example, tokenizer: PreTrainedTokenizerBase, unit: str, label: Labeller
) -> Iterator[dict[str, Any]]:
    """Yield an example's training rows: title and query, then as many paragraphs as fit in `ROW_LENGTH`."""
    paragraphs = texts_to_rank(example, unit)
    if not example.references or not paragraphs:
        return
    labels = label(paragraphs, example.references[0])
    title, *texts = token_ids(tokenizer, [example.topic or "", *paragraphs])
    labelled: list[tuple[tuple[int, ...], float]] = []
    for ids, value in zip(texts, labels, strict=True):
        if labelled and sum(len(text) for text, _ in labelled) + len(ids) > ROW_LENGTH:
            yield _training_row(title, labelled)
            labelled = []
        labelled.append((ids, value))
    yield _training_row(title, labelled)


def _training_row(title: Sequence[int], labelled: Sequence[tuple[Sequence[int], float]]) -> dict[str, Any]:
    units = [title, *(ids for ids, _ in labelled)]
    return {"units": units, "labels": [value for _, value in labelled], "length": sum(map(len, units))}


def token_ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the first `TEXT_LENGTH` tokens of each text."""
    encoded = tokenizer.backend_tokenizer.encode_batch_fast([text.strip() for text in texts], add_special_tokens=False)
    return [tuple(text.ids[:TEXT_LENGTH]) for text in encoded]
