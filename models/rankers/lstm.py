"""The LSTM paragraph ranker (Hierarchical Transformer §3.1): predicts how much of the summary a paragraph contains.

Letters: B rows, U units (the title, then paragraphs), L unit tokens, P real paragraphs of the batch, p texts of similar
length, l tokens of the longest of them, D width.

Deviation: a text without a title has a vector of zeros for it; the paper has no such texts.
Choice, where the paper is silent: title and paragraphs share word embeddings, which are as wide as the LSTMs and start
as N(0, 1); the features of Eq. 4 have the same width; the linear layers have biases.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import datasets
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase, set_seed
from transformers.utils import ModelOutput

from longsumbench.api.config import Recipe
from longsumbench.api.documents import Example
from longsumbench.api.ranker import LearnedRanker, RankerSettings, Scores, texts_to_rank
from longsumbench.api.settings import outcome_settings
from longsumbench.api.system import Split
from longsumbench.cache.artifacts import ArtifactCache, reading_artifact
from longsumbench.errors import DataError
from longsumbench.modeling import tokenizer as tokenization
from longsumbench.modeling.checkpoints import check_memory, check_vocabulary, load_network
from longsumbench.modeling.collate import IGNORED, UnitCollator, stored_rows
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.nn.initialization import xavier
from longsumbench.modeling.tokenizer import load_tokenizer, trained_tokenizer
from longsumbench.modeling.training.trainer import train as train_network
from longsumbench.modeling.units import QUERIES_VERSION
from longsumbench.progress import track
from longsumbench.rouge.all_pairs import number_words, rouge_n
from longsumbench.rouge.scorer import RougeScorer

TEXT_LENGTH = 500  # most tokens read of a title or paragraph; labels are for the whole paragraph
ROW_LENGTH = 2_000  # most tokens of paragraphs in a training row, unless a single paragraph has more
_BATCH_TOKENS = 16_384  # of paragraphs in a batch, with padding, when scoring
_VALIDATION_EXAMPLES = 500  # most validation examples for the choice of the best weights
_VALIDATIONS = 10  # per training
_ROWS_VERSION = 1  # increases, with LstmRanker.version, when training rows change
_FITTED = "fit.json"  # written last; an artifact with this file is trained


class LstmRankerConfig(PreTrainedConfig):
    """The network's sizes.

    Args:
        vocab_size: entries of the tokenizer.
        d_model: width of embeddings, LSTMs and features.
        dropout: probability, before both linear layers (Hierarchical Transformer §4).
    """

    model_type = "lstm_ranker"

    vocab_size: int = 32_000
    d_model: int = 256
    dropout: float = 0.2


@dataclass
class RankerOutput(ModelOutput):
    """Output of `LstmRankerModel`.

    Attributes:
        loss: binary cross-entropy in nats per paragraph, if labels are given.
        logits: [B, U], Eq. 6 before its sigmoid; −∞ for the title and for absent paragraphs.
    """

    loss: Tensor | None = None
    logits: Tensor | None = None


class LstmRankerModel(PreTrainedModel):
    """Two LSTMs; the pooled title is joined to every state of a paragraph (Hierarchical Transformer, Eqs. 1–6).

    A paragraph's score depends only on its title and itself. Absent paragraphs are skipped.
    """

    config_class = LstmRankerConfig
    base_model_prefix = "ranker"
    main_input_name = "input_ids"

    def __init__(self, config: LstmRankerConfig) -> None:
        super().__init__(config)
        width = config.d_model
        self.embeddings = nn.Embedding(config.vocab_size, width)
        self.title_lstm = nn.LSTM(width, width, batch_first=True)
        self.paragraph_lstm = nn.LSTM(width, width, batch_first=True)
        self.features = nn.Linear(2 * width, width)  # W1
        self.score = nn.Linear(width, 1)  # W2
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        unit_mask: Tensor,
        labels: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        **_: Any,
    ) -> RankerOutput:
        """Score every paragraph.

        Args:
            input_ids: [B, U, L]; unit 0 is the title.
            unit_mask: [B, U, L], True where a token is real; a unit without real tokens is absent.
            labels: [B, U], 0–1; -100 for the title and for absent paragraphs.
            num_items_in_batch: divisor of the summed losses; None: the number of paragraphs with labels.
            **_: not used; the trainer passes more arguments.
        """
        lengths = unit_mask.sum(-1)  # [B, U]
        real = lengths > 0
        real[:, 0] = False
        logits = torch.full(real.shape, -torch.inf, device=input_ids.device)
        if real.any():
            titles = self._titles(input_ids[:, 0], lengths[:, 0])  # [B, D]
            logits[real] = self._scores(input_ids[real], lengths[real], titles[real.nonzero()[:, 0]])
        loss = None
        if labels is not None:
            chosen = labels.ne(IGNORED) & real
            sums = F.binary_cross_entropy_with_logits(logits[chosen], labels[chosen], reduction="sum")
            loss = sums / (chosen.sum().clamp(min=1) if num_items_in_batch is None else num_items_in_batch)
        return RankerOutput(loss=loss, logits=logits)

    def _titles(self, ids: Tensor, lengths: Tensor) -> Tensor:
        """Encode and pool titles (Eqs. 1, 3): [B, L] → [B, D]; zeros for an absent title."""
        pooled = torch.zeros(len(ids), self.config.d_model, device=ids.device)
        for group, mask in similar_length_groups(lengths):
            states, _ = self.title_lstm(self.embeddings(ids[group, : mask.shape[1]]))
            pooled[group] = _largest(states, mask)
        return pooled

    def _scores(self, ids: Tensor, lengths: Tensor, titles: Tensor) -> Tensor:
        """Encode and score paragraphs (Eqs. 2, 4–6): [P, L], the title of each [P, D] → [P]."""
        pooled = titles.new_zeros(len(ids), self.config.d_model)
        for group, mask in similar_length_groups(lengths):
            states, _ = self.paragraph_lstm(self.embeddings(ids[group, : mask.shape[1]]))  # [p, l, D]
            joined = torch.cat([states, titles[group, None].expand_as(states)], -1)  # [p, l, 2D]
            pooled[group] = _largest(torch.tanh(self.features(self.dropout(joined))), mask)
        scores: Tensor = self.score(self.dropout(pooled))[:, 0]
        return scores


def similar_length_groups(lengths: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield groups of texts in which none is more than twice as long as another, to reduce padding.

    A packed sequence needs no padding, but a training step on a CPU took twenty times as long with one.

    Args:
        lengths: [P], in tokens; empty texts are in no group.

    Yields:
        The indices of p texts; [p, l], True where a token is real.
    """
    groups: dict[int, list[int]] = {}
    for index, length in enumerate(lengths.tolist()):
        if length:
            groups.setdefault((length - 1).bit_length(), []).append(index)
    for group in groups.values():
        chosen = torch.tensor(group, device=lengths.device)
        group_lengths = lengths[chosen, None]
        yield chosen, torch.arange(int(group_lengths.max()), device=lengths.device) < group_lengths


def _largest(states: Tensor, mask: Tensor) -> Tensor:
    """Pool the states of each text by their maximum over its real tokens: [p, l, D] → [p, D]."""
    return states.masked_fill(~mask[..., None], -torch.inf).amax(1)


@dataclass(frozen=True)
class ParagraphCollator(UnitCollator):
    """As UnitCollator, except: labels are one number per unit, [B, U], -100 for the title and absent paragraphs."""

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch."""
        batch = super().__call__([{"units": item["units"], "unit_documents": (), "labels": ()} for item in rows])
        del batch["unit_documents"]
        labels = torch.full(batch["unit_mask"].shape[:2], float(IGNORED))
        for row_labels, item in zip(labels, rows, strict=True):
            row_labels[1 : len(item["labels"]) + 1] = torch.as_tensor(item["labels"])
        return {**batch, "labels": labels}


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


class LstmRanker(LearnedRanker):
    """Ranker of two LSTMs that predict the ROUGE-2 recall of paragraphs (Hierarchical Transformer, Eqs. 1–6)."""

    version: ClassVar[int] = 1

    def __init__(self, model: LstmRankerModel, tokenizer: PreTrainedTokenizerBase) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer

    @property
    def identity(self) -> str:
        """The ranker's name, its version, and a hash of weights and tokenizer."""
        digest = hashlib.sha256(tokenization.tokenizer_identity(self.tokenizer).encode())
        for name, weights in sorted(self.model.state_dict().items()):
            digest.update(name.encode() + weights.cpu().numpy().tobytes())
        return f"lstm {self.version} {digest.hexdigest()[:16]}"

    @classmethod
    def fitted(
        cls, train: Split | None, validation: Split | None, settings: RankerSettings, stages: ArtifactCache
    ) -> Self:
        """Return the ranker trained on a training split, from the artifact cache if it is there.

        Args:
            train: its paragraphs and first references; as many examples as the steps can see, evenly spaced.
            validation: at most `_VALIDATION_EXAMPLES` of it choose the best weights; None: the last weights are used.
            settings: of the training.
            stages: the artifact cache; a training that was killed continues.

        Raises:
            DataError: there is no training split, or no paragraph in it.
        """
        if train is None or not len(train):
            problem = "the ranker 'lstm' learns from a training split, and the dataset has none"
            raise DataError(f"{problem}; add one, or choose another ranker (longsumbench list rankers), or none")
        tokenizer = trained_tokenizer(train, settings.vocabulary_size, stages)
        splits = [_chosen_rows(train, settings.steps * settings.batch_size)]
        if validation is not None and len(validation):
            splits.append(_chosen_rows(validation, _VALIDATION_EXAMPLES))
        inputs = {
            "ranker": "lstm",
            "settings": outcome_settings(settings),
            "texts": [[split.fingerprint, len(chosen)] for split, chosen in splits],
            "tokenizer": tokenization.tokenizer_identity(tokenizer),
            "version": [cls.version, _ROWS_VERSION],
            "queried": QUERIES_VERSION if train.queried else None,
        }
        build = partial(cls._train, tokenizer=tokenizer, splits=splits, settings=settings, stages=stages)
        folder = stages.get("ranker", inputs, build)
        with reading_artifact(folder):
            ranker = cls.load(folder)
        ranker.device = settings.device
        return ranker

    @classmethod
    def _train(
        cls,
        folder: Path,
        tokenizer: PreTrainedTokenizerBase,
        splits: Sequence[tuple[Split, range]],
        settings: RankerSettings,
        stages: ArtifactCache,
    ) -> None:
        """Build the artifact; a killed training continues from its newest complete checkpoint."""
        trainer_folder = folder / "trainer"
        if not (folder / _FITTED).is_file():
            rows = [_training_rows(split, chosen, tokenizer, settings.unit, stages) for split, chosen in splits]
            if not len(rows[0]):
                raise DataError("the ranker 'lstm' finds no paragraph in the training split: choose another ranker")
            set_seed(settings.seed)
            sizes = LstmRankerConfig(vocab_size=len(tokenizer), d_model=settings.dimension)
            check_memory(lambda: LstmRankerModel(sizes), "the ranker 'lstm'")
            model = LstmRankerModel(sizes)
            xavier(model, width=1)  # of embeddings: N(0, 1)
            validation = rows[1] if rows[1:] and len(rows[1]) else None
            collator = ParagraphCollator(tokenizer.pad_token_id)
            report = train_network(
                model, rows[0], validation, collator, _recipe(settings), trainer_folder, "training the ranker"
            )
            cls(model, tokenizer).save(folder)
            (folder / _FITTED).write_text(json.dumps(asdict(report)), encoding="utf-8")
        shutil.rmtree(trainer_folder, ignore_errors=True)

    @torch.inference_mode()
    def __call__(self, title: str | None, paragraphs: Sequence[str]) -> Scores:
        """Score paragraphs: [paragraphs], 0–1; equal ones have equal scores, empty ones 0."""
        self.model.to(choose_device(self.device))
        first, *read = _token_ids(self.tokenizer, [title or "", *paragraphs])
        scores: dict[tuple[int, ...], float] = {(): 0.0}
        for batch in similar_lengths(read):
            values = self._scores(first, batch)
            scores |= dict(zip(batch, values, strict=True))
        return np.array([scores[ids] for ids in read], np.float64)

    def _scores(self, title: Sequence[int], paragraphs: Sequence[Sequence[int]]) -> list[float]:
        batch = ParagraphCollator(self.tokenizer.pad_token_id)([{"units": [title, *paragraphs], "labels": ()}])
        moved = {name: batch[name].to(self.model.device) for name in ("input_ids", "unit_mask")}
        scores: list[float] = self.model(**moved).logits[0, 1:].double().sigmoid().tolist()
        return scores

    def save(self, folder: Path) -> None:
        """Write model and tokenizer as `save_pretrained` does."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote.

        Raises:
            DataError: a file is damaged or missing, or is not of an LSTM ranker.
        """
        named = f"the ranker {folder}"
        model, missing, unexpected = load_network(LstmRankerModel, folder, named)
        if missing or unexpected:
            raise DataError("the weights are not those of an LSTM ranker", folder)
        tokenizer = load_tokenizer(folder)
        check_vocabulary(tokenizer, model.config.vocab_size, named)
        return cls(model, tokenizer)


def _recipe(settings: RankerSettings) -> Recipe:
    """Return the training recipe: Adagrad, constant learning rate 0.15 (Hierarchical Transformer §4), float32."""
    return Recipe(
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


def _chosen_rows(split: Split, most: int) -> tuple[Split, range]:
    """Return a split with the indices of at most `most` examples, evenly spaced."""
    step = -(-len(split) // most)
    return split, range(0, len(split), step)


def _training_rows(
    split: Split, chosen: range, tokenizer: PreTrainedTokenizerBase, unit: str, stages: ArtifactCache
) -> datasets.Dataset:
    """Return the training rows of the chosen examples with references, cached if they were made before."""
    label = Labeller()
    shown = track(chosen, f"reading {split.name} paragraphs for the ranker", len(chosen))
    made = (row for index in shown for row in training_rows(split[index], tokenizer, unit, label))
    inputs = {
        "split": split.fingerprint,
        "chosen": [chosen.step, len(chosen)],
        "tokenizer": tokenization.tokenizer_identity(tokenizer),
        "unit": unit,
        "lengths": [TEXT_LENGTH, ROW_LENGTH],
        "version": _ROWS_VERSION,
        "queried": QUERIES_VERSION if split.queried else None,
    }
    ids = datasets.List(datasets.List(datasets.Value("int32")))
    labels = datasets.List(datasets.Value("float32"))
    features = datasets.Features({"units": ids, "labels": labels, "length": datasets.Value("int32")})
    return stored_rows("ranker-rows", inputs, features, made, stages)


def training_rows(
    example: Example, tokenizer: PreTrainedTokenizerBase, unit: str, label: Labeller
) -> Iterator[dict[str, Any]]:
    """Yield an example's training rows: title and query, then as many paragraphs as fit in `ROW_LENGTH`."""
    paragraphs = texts_to_rank(example, unit)
    if not example.references or not paragraphs:
        return
    labels = label(paragraphs, example.references[0])
    title, *read = _token_ids(tokenizer, [example.topic or "", *paragraphs])
    kept: list[tuple[tuple[int, ...], float]] = []
    for ids, value in zip(read, labels, strict=True):
        if kept and sum(len(other) for other, _ in kept) + len(ids) > ROW_LENGTH:
            yield _row(title, kept)
            kept = []
        kept.append((ids, value))
    yield _row(title, kept)


def _row(title: Sequence[int], kept: Sequence[tuple[Sequence[int], float]]) -> dict[str, Any]:
    units = [title, *(ids for ids, _ in kept)]
    return {"units": units, "labels": [value for _, value in kept], "length": sum(map(len, units))}


def _token_ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the first `TEXT_LENGTH` tokens of each text."""
    encoded = tokenizer.backend_tokenizer.encode_batch_fast([text.strip() for text in texts], add_special_tokens=False)
    return [tuple(text.ids[:TEXT_LENGTH]) for text in encoded]


def similar_lengths(texts: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield batches of the distinct texts, sorted by length, with at most `_BATCH_TOKENS` tokens each."""
    batch: list[tuple[int, ...]] = []
    for ids in sorted({ids for ids in texts if ids}, key=lambda ids: (len(ids), ids)):
        if batch and (len(batch) + 1) * len(ids) > _BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(ids)
    if batch:
        yield batch
