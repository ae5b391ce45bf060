"""NeuralSystem: a unit reader and a model, trained, decoded and saved.

examples --UnitReader--> rows, batches --Model--> training.train (fit), generation.generate_texts (summarize)
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from longsumbench import core
from longsumbench.cache.artifacts import reading_artifact
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.errors import MissingSplit
from longsumbench.modeling import processes
from longsumbench.modeling.checkpoints import check_finite
from longsumbench.modeling.extraction import ScoredSpans, extracts, mean_target_words, score_spans
from longsumbench.modeling.generation import GeneratedText, generate_texts
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.training.fitting import (
    Fitting,
    checkpoint_folder,
    num_validated,
    read_report,
    training_inputs,
)
from longsumbench.modeling.training.trainer import Objective
from longsumbench.modeling.unit_reader import UnitReader


class NeuralSystem(core.System):
    """A system made of a unit reader and a model. A subclass names both, and may add `evidence`."""

    Reader: ClassVar[type[UnitReader]]
    # A class of models of transformers.
    Model: ClassVar[Any]
    Builder: ClassVar[type[ModelBuilder]] = ModelBuilder  # makes the model
    looks_back: ClassVar[bool] = False  # its scores depend on what is written
    config: NeuralConfig
    # Set by `fit` and `load`.
    model: PreTrainedModel
    # The folder of tokenizer and model; set by `fit`.
    checkpoint: Path

    def __init__(self, config: NeuralConfig) -> None:
        super().__init__(config)
        self.reader, self.builder = self.Reader(config), self.Builder(config, self.Model)

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The reader's tokenizer; set by `prepare` and `load`."""
        return self.reader.tokenizer

    def check_examples(self, examples: Iterable[core.Example]) -> None:
        """Check that every example has the title or query that its ranker needs, if there is one."""
        self.reader.ranking.check_examples(examples)

    def prepare(self, context: core.FitContext) -> None:
        """Prepare the reader; then train or load the tokenizer.

        Raises:
            UsageError: the reader cannot read such texts.
            MissingSplit: there is no training split, or it is empty.
        """
        if context.train is None or not len(context.train):
            problem = (
                f"model={self.config.name} learns from a training split, and the dataset has none"
            )
            raise MissingSplit(
                f"{problem}; add one, or choose model=oracle, or model=lead model.length=<words>"
            )
        self.state.multi_document = context.train.multi_document
        if context.train.queried:
            self.state.queried = LOADING_VERSION
        self.state.target_words = mean_target_words(context.train)
        _describe_texts(self.reader, self.state)
        self.reader.prepare(context)
        self.reader.tokenizer = self.builder.tokenizer(context)

    def fit(self, context: core.FitContext) -> core.FitReport:
        """Train on the training split, or load the cached checkpoint of the same training.

        Raises:
            DataError: there is no training split, or it is empty; the recipe keeps or averages the best checkpoints,
                and there is no validation split.
        """
        train, validation, recipe, cache = (
            context.train,
            context.validation,
            context.recipe,
            context.cache,
        )
        with processes.first_process_first():
            watched = num_validated(context)
            self.prepare(context)
            assert train is not None
            if recipe.only != "all":
                self.state.trained_only = recipe.only
            rows = self.reader.rows(train, len(train), cache, with_labels=True)
            validation_rows = None
            if validation is not None and watched:
                validation_rows = self.reader.rows(
                    validation, watched, cache, with_labels=recipe.only != "all"
                )
        fitting = Fitting(
            recipe,
            rows,
            validation_rows,
            num_special=len(self.reader.target([])),
            start=partial(self._start, recipe),
            collator=self.reader.collator,
            objective=partial(self.objective, recipe),
            save=self.save,
        )
        inputs = {**training_inputs(self.config, context), "units": self.reader.inputs()}
        with processes.build_together(fitting.build):
            self.checkpoint = cache.get("checkpoint", inputs, fitting.build)
        self.load_checkpoint(1)
        return read_report(self.checkpoint)

    def _start(self, recipe: core.TrainConfig) -> PreTrainedModel:
        """Make the model that training starts from, and return it."""
        self.model = self.builder.initial_model(self.reader)
        self.model.config.label_smoothing = recipe.label_smoothing
        return self.model

    def load_checkpoint(self, number: int) -> None:
        """Load the n-th best checkpoint of `FitReport.kept`; 1 is the best."""
        with reading_artifact(self.checkpoint):
            self.reader.tokenizer, self.model = self.builder.open(
                checkpoint_folder(self.checkpoint, number)
            )

    def summarize(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[core.Summary]:
        """Decode or extract one batch; a learned ranker runs on the same device."""
        self.reader.ranking.use_device(decoding.device)
        shows = self.config.capabilities.keeps_evidence and decoding.evidence != "none"
        if decoding.mode == "extract":
            scored = list(self.score_source(examples, decoding))
            for spans in scored:
                check_finite(spans.scores, f"the checkpoint {self.model.name_or_path}")
            summaries = extracts(examples, scored, self.state.target_words, decoding, shows)
        else:
            outputs = generate_texts(self.model, self.reader, examples, decoding)
            texts = self.tokenizer.batch_decode(
                [output.ids for output in outputs], skip_special_tokens=True
            )
            summaries = (
                core.Summary(
                    output.example.id,
                    text.strip(),
                    output.units.truncation,
                    output.complete,
                    len(output.ids),
                    self.evidence(output) if shows else None,
                )
                for output, text in zip(outputs, texts, strict=True)
            )
        for example, summary in zip(examples, summaries, strict=True):
            text_read = None if decoding.keep_inputs == "none" else _text_read(self.reader, example)
            yield replace(summary, read=text_read)

    def score_source(
        self, examples: Sequence[core.Example], decoding: core.Decoding
    ) -> Iterator[ScoredSpans]:
        """Yield the scores of every example's sentences, by the weights of its spans while a summary is written."""
        for output in generate_texts(self.model, self.reader, examples, decoding):
            spans, weights = self.weigh_spans(output)
            yield score_spans(spans, weights, output.units.truncation)

    def weigh_spans(self, output: GeneratedText) -> tuple[Sequence[core.Span], NDArray[Any]]:
        """Return spans of sentences, and the weight of each at every token of the output: [spans, steps].

        Systems with the capability `extracts` override this, or `score_source`.
        """
        raise NotImplementedError(f"{type(self).__name__} scores no sentences")

    def score_next(
        self, example: core.Example, written: str, decoding: core.Decoding
    ) -> ScoredSpans:
        """Return the scores of an example's sentences for what comes after a text; see `looks_back`.

        Raises:
            DataError: a score is not finite.
        """
        scored = next(iter(self.score_source([example], decoding)))
        check_finite(scored.scores, f"the checkpoint {self.model.name_or_path}")
        return scored

    def objective(self, recipe: core.TrainConfig) -> Objective | None:
        """Return what trains only a part of the model, as `train.only` says; None for the whole model.

        Systems with the capability `trains_scorer` override this.
        """
        return None

    def evidence(self, output: GeneratedText) -> core.Evidence:
        """Return what the model looked at for a summary; systems with the capability `keeps_evidence` override this."""
        raise NotImplementedError(f"{type(self).__name__} keeps no evidence")

    def decode_texts(
        self, token_ids: Sequence[Sequence[int]], skip_special_tokens: bool = False
    ) -> tuple[str, ...]:
        """Return the texts of some token ids, without blanks around them."""
        texts = self.tokenizer.batch_decode(token_ids, skip_special_tokens=skip_special_tokens)
        return tuple(text.strip() for text in texts)

    def save(self, folder: Path) -> None:
        """Save model, tokenizer and learned ranker by `save_pretrained`, and the settings."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        super().save(folder)
        self.reader.ranking.save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote.

        Raises:
            UsageError: the folder is not a checkpoint of this system.
        """
        system = super().load(folder)
        _describe_texts(system.reader, system.state)
        system.reader.tokenizer, system.model = system.builder.open(folder)
        system.reader.ranking.load(folder)
        return system


def _describe_texts(reader: UnitReader, state: core.Fitted) -> None:
    """Tell the reader what the training texts are."""
    reader.multi_document = bool(state.multi_document)
    reader.queries_version = state.queried


def _text_read(reader: UnitReader, example: core.Example) -> str:
    """Return the text of an example's units with special tokens; a line before each of several units names it."""
    texts = reader.tokenizer.batch_decode(reader.units(example).ids, skip_special_tokens=False)
    if len(texts) == 1:
        return str(texts[0])
    return "\n".join(
        f"── unit {number} of {len(texts)}\n{text}" for number, text in enumerate(texts, start=1)
    )
