"""The LSTM paragraph ranker (Hierarchical Transformer §3.1): predicts how much of the summary a paragraph contains.

It learns from paragraphs with their ROUGE-2 recall of the reference.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

import datasets
import numpy as np
import torch
from transformers import PreTrainedTokenizerBase, set_seed

from longsumbench.cache.artifacts import ArtifactCache, reading_artifact
from longsumbench.core import (
    Example,
    LearnedRanker,
    RankerSettings,
    Scores,
    Scoring,
    Split,
    TrainConfig,
    outcome_settings,
    texts_to_rank,
)
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.errors import DataError, MissingSplit
from longsumbench.modeling.checkpoints import check_finite
from longsumbench.modeling.collate import check_rows, stored_rows
from longsumbench.modeling.nn.device import check_memory, choose_device
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.pretrained import Pretrained
from longsumbench.modeling.tokenizer import tokenizer_identity, trained_tokenizer
from longsumbench.modeling.training.trainer import train as train_network
from longsumbench.models.rankers.lstm_network import (
    LstmRankerConfig,
    LstmRankerModel,
    ParagraphCollator,
)
from longsumbench.progress import track
from longsumbench.rouge.all_pairs import number_words, rouge_n
from longsumbench.rouge.scorer import SuiteScorer

_BATCH_TOKENS = 16_384  # of paragraphs in a batch, with padding, when scoring
_VALIDATION_EXAMPLES = 500  # most validation examples for the choice of the best weights
_VALIDATIONS = 10  # per training
TEXT_LENGTH = 500  # most tokens read of a title or paragraph; labels are for the whole paragraph
ROW_LENGTH = (
    2_000  # most tokens of paragraphs in a training row, unless a single paragraph has more
)
_FITTED = "fit.json"  # written last; an artifact with this file is trained
_TRAINER = "trainer"  # the folder of the training's checkpoints


class LstmRanker(LearnedRanker):
    """Ranker of two LSTMs that predict the ROUGE-2 recall of paragraphs (Hierarchical Transformer, Eqs. 1–6)."""

    version: ClassVar[int] = 1

    def __init__(self, model: LstmRankerModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer

    @property
    def identity(self) -> str:
        """The ranker's name, its version, and a hash of weights and tokenizer."""
        digest = hashlib.sha256(tokenizer_identity(self.tokenizer).encode())
        for name, weights in sorted(self.model.state_dict().items()):
            digest.update(name.encode() + weights.cpu().numpy().tobytes())
        return f"lstm {self.version} {digest.hexdigest()[:16]}"

    @classmethod
    def fitted(
        cls,
        train: Split | None,
        validation: Split | None,
        settings: RankerSettings,
        cache: ArtifactCache,
    ) -> Self:
        """Return the ranker trained on a training split, from the artifact cache if it is there.

        Args:
            train: its paragraphs and first references; as many examples as the steps can see, evenly spaced.
            validation: at most `_VALIDATION_EXAMPLES` of it choose the best weights; None: the last weights are used.
            settings: of the training.
            cache: the artifact cache; a training that was killed continues.

        Raises:
            DataError: there is no training split, or no paragraph in it.
        """
        if train is None or not len(train):
            problem = "the ranker 'lstm' learns from a training split, and the dataset has none"
            raise MissingSplit(
                f"{problem}; add one, or choose another ranker (longsumbench list rankers), or none"
            )
        # No more examples than the training can see are read.
        tokenizer = trained_tokenizer(train, settings.vocabulary_size, cache)
        splits = [_chosen_rows(train, settings.steps * settings.batch_size)]
        if validation is not None and len(validation):
            splits.append(_chosen_rows(validation, _VALIDATION_EXAMPLES))
        # What decides the weights; other rankers with the same are this one.
        inputs = {
            "ranker": "lstm",
            "settings": outcome_settings(settings),
            "texts": [[split.fingerprint, len(indices)] for split, indices in splits],
            "tokenizer": tokenizer_identity(tokenizer),
            "version": cls.version,
            "reading": LOADING_VERSION,
            **query_version(train),
        }

        def build(folder: Path) -> None:
            if not (folder / _FITTED).is_file():
                rows = [
                    stored_training_rows(*chosen, tokenizer, settings, cache) for chosen in splits
                ]
                cls._train(folder, tokenizer, rows, settings)
            shutil.rmtree(folder / _TRAINER, ignore_errors=True)

        folder = cache.get("ranker", inputs, build)
        with reading_artifact(folder):
            ranker = cls.load(folder)
        ranker.device = settings.device
        return ranker

    @classmethod
    def _train(
        cls,
        folder: Path,
        tokenizer: PreTrainedTokenizerBase,
        rows: Sequence[datasets.Dataset],
        settings: RankerSettings,
    ) -> None:
        """Train, and save the ranker; a killed training continues from its newest complete checkpoint.

        `rows` are those of the training split and of the validation split, if there is one.
        """
        training, *validation = rows
        if not len(training):
            raise DataError(
                "the ranker 'lstm' finds no paragraph in the training split: choose another ranker"
            )
        check_rows(*rows)
        set_seed(settings.seed)
        sizes = LstmRankerConfig(vocab_size=len(tokenizer), d_model=settings.dimension)
        check_memory(lambda: LstmRankerModel(sizes), "the ranker 'lstm'")
        model = LstmRankerModel(sizes)
        xavier(model, width=1)  # of embeddings: N(0, 1)
        report = train_network(
            model,
            training,
            validation[0] if validation and len(validation[0]) else None,
            ParagraphCollator(tokenizer.pad_token_id),
            _recipe(settings),
            folder / _TRAINER,
            "training the ranker",
        )
        cls(model, tokenizer).save(folder)
        (folder / _FITTED).write_text(json.dumps(asdict(report)), encoding="utf-8")

    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> Scores:
        """Score paragraphs: [paragraphs], 0–1; equal ones have equal scores, empty ones 0."""
        self.model.to(choose_device(self.device))
        first, *texts = token_ids(self.tokenizer, [title or "", *paragraphs])
        scores: dict[tuple[int, ...], float] = {(): 0.0}
        for batch in similar_lengths(texts):
            scores.update(zip(batch, self._scores(first, batch), strict=True))
        return np.array([scores[ids] for ids in texts], np.float64)

    @torch.inference_mode()
    def _scores(self, title: Sequence[int], paragraphs: Sequence[Sequence[int]]) -> list[float]:
        batch = ParagraphCollator(self.tokenizer.pad_token_id)(
            [{"units": [title, *paragraphs], "labels": ()}]
        )
        moved = {name: batch[name].to(self.model.device) for name in ("input_ids", "unit_mask")}
        scores: list[float] = self.model(**moved).logits[0, 1:].cpu().double().sigmoid().tolist()
        check_finite(scores, f"the ranker {self.model.name_or_path}")
        return scores

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as `save_pretrained` does."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote."""
        saved = Pretrained(folder, f"the ranker {folder}")
        tokenizer, model = saved.network_with_tokenizer(LstmRankerModel)
        return cls(model, tokenizer)


def _recipe(settings: RankerSettings) -> TrainConfig:
    """Return the training recipe: Adagrad, constant learning rate 0.15 (Hierarchical Transformer §4), float32."""
    return TrainConfig(
        optimizer="adagrad",
        learning_rate=0.15,
        schedule="constant",
        warmup_steps=0,
        batch_size=settings.batch_size,
        accumulation=1,
        max_steps=settings.steps,
        eval_steps=max(1, settings.steps // _VALIDATIONS),
        bf16=False,
        seed=settings.seed,
        device=settings.device,
    )


def _chosen_rows(split: Split, limit: int) -> tuple[Split, range]:
    """Return a split with the indices of at most `limit` examples, evenly spaced."""
    step = -(-len(split) // limit)
    return split, range(0, len(split), step)


def similar_lengths(texts: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield batches of the distinct texts, sorted by length, with at most `_BATCH_TOKENS` tokens each."""
    batch: list[tuple[int, ...]] = []
    for ids in sorted(set(texts) - {()}, key=lambda ids: (len(ids), ids)):
        if batch and (len(batch) + 1) * len(ids) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(ids)
    if batch:
        yield batch


class Labeller:
    """Label paragraphs with their ROUGE-2 recall of a reference, over stems (Hierarchical Transformer §4)."""

    def __init__(self, scoring: Scoring) -> None:
        self._scorer = SuiteScorer(scoring)

    def __call__(self, paragraphs: Sequence[str], reference: Sequence[str]) -> list[float]:
        """Return one label per paragraph, 0–1; the sentences of the reference are scored as one text."""
        words = [self._scorer.words(text) for text in paragraphs]
        texts, gold = number_words(words, [self._scorer.words(" ".join(reference))])
        labels: list[float] = rouge_n(texts, gold, 2)["recall"][0].tolist()
        return labels


def query_version(split: Split) -> dict[str, int]:
    """Return the version of queries as part of a stage's inputs, if the texts have any."""
    return {"queried": LOADING_VERSION} if split.queried else {}


def stored_training_rows(
    split: Split,
    indices: range,
    tokenizer: PreTrainedTokenizerBase,
    settings: RankerSettings,
    cache: ArtifactCache,
) -> datasets.Dataset:
    """Return the training rows of the chosen examples with references, cached if they were made before."""
    label = Labeller(Scoring(**settings.score))
    tracked = track(indices, f"reading {split.name} paragraphs for the ranker", len(indices))
    rows = chain.from_iterable(
        training_rows(split[index], tokenizer, settings.unit, label) for index in tracked
    )
    inputs = {
        "split": split.fingerprint,
        "chosen": [indices.step, len(indices)],
        "tokenizer": tokenizer_identity(tokenizer),
        "unit": settings.unit,
        "lengths": [TEXT_LENGTH, ROW_LENGTH],
        "reading": LOADING_VERSION,
        **query_version(split),
    }
    if settings.score:
        inputs["words"] = settings.score
    ids = datasets.List(datasets.List(datasets.Value("int32")))
    labels = datasets.List(datasets.Value("float32"))
    features = datasets.Features(
        {"units": ids, "labels": labels, "length": datasets.Value("int32")}
    )
    return stored_rows("ranker-rows", inputs, features, rows, cache)


def training_rows(
    example: Example, tokenizer: PreTrainedTokenizerBase, unit: str, label: Labeller
) -> Iterator[dict[str, Any]]:
    """Yield an example's training rows: title and query, then as many paragraphs as fit in `ROW_LENGTH`."""
    paragraphs = texts_to_rank(example, unit)
    if not example.references or not paragraphs:
        return
    labels = label(paragraphs, example.references[0])
    title, *texts = token_ids(tokenizer, [example.topic or "", *paragraphs])
    row = _empty_row(title)
    for ids, value in zip(texts, labels, strict=True):
        if row["labels"] and row["length"] - len(title) + len(ids) > ROW_LENGTH:
            yield row
            row = _empty_row(title)
        row["units"].append(ids)
        row["labels"].append(value)
        row["length"] += len(ids)
    yield row


def _empty_row(title: Sequence[int]) -> dict[str, Any]:
    return {"units": [title], "labels": [], "length": len(title)}


def token_ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the first `TEXT_LENGTH` tokens of each text."""
    encoded = tokenizer.backend_tokenizer.encode_batch_fast(
        [text.strip() for text in texts], add_special_tokens=False
    )
    return [tuple(text.ids[:TEXT_LENGTH]) for text in encoded]
