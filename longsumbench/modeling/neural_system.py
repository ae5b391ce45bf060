"""NeuralSystem: a unit reader and a model, trained, decoded and saved.

examples --UnitReader--> rows, batches --Model--> training.train (fit), generation.generate_texts (summarize)
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from longsumbench import core
from longsumbench.cache.artifacts import reading_artifact
from longsumbench.core.versions import DECODING_VERSION, READING_VERSION
from longsumbench.errors import DataError, MissingSplit
from longsumbench.files import read_json, write_atomically
from longsumbench.modeling import processes
from longsumbench.modeling.checkpoints import check_finite, load_network
from longsumbench.modeling.collate import check_rows
from longsumbench.modeling.extraction import ScoredSpans, extracts, mean_target_words
from longsumbench.modeling.generation import GeneratedText, generate_texts
from longsumbench.modeling.model_builder import ModelBuilder
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.training.state import weights_folder
from longsumbench.modeling.training.trainer import Objective, parameters, train
from longsumbench.modeling.unit_reader import Rows, UnitReader, reference_ledger

# Of a stage "checkpoint", written last.
_REPORT = "fit.json"


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
            self.state.queried = READING_VERSION
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
        train, validation, recipe, stages = (
            context.train,
            context.validation,
            context.recipe,
            context.stages,
        )
        with processes.first_process_first():
            _check_best(recipe, validation)
            self.prepare(context)
            assert train is not None
            if recipe.only != "all":
                self.state.trained_only = recipe.only
            rows = self.reader.rows(train, len(train), stages, with_labels=True)
            watched = (
                min(len(validation), recipe.eval_examples or len(validation))
                if validation is not None
                else 0
            )
            validation_rows = None
            if validation is not None and watched:
                validation_rows = self.reader.rows(
                    validation, watched, stages, with_labels=recipe.only != "all"
                )
        not_trained = core.names_deciding(self.config, "summaries")
        inputs = {
            "config": {
                key: value
                for key, value in self.config.identity().items()
                if key not in not_trained
            },
            "recipe": core.outcome_settings(recipe),
            "train": train.fingerprint,
            "validation": [validation.fingerprint, watched] if validation is not None else None,
            "units": self.reader.inputs(),
            "version": self.config.version,
            "decoding": DECODING_VERSION,
        }
        build = partial(self._train, rows=rows, validation=validation_rows, recipe=recipe)
        with processes.build_together(build):
            self.checkpoint = stages.get("checkpoint", inputs, build)
        self.load_checkpoint(1)
        with reading_artifact(self.checkpoint):
            return read_json(self.checkpoint / _REPORT, core.FitReport)

    def _train(
        self, folder: Path, rows: Rows, validation: Rows | None, recipe: core.Recipe
    ) -> None:
        """Build the stage "checkpoint"; an interrupted training continues from its newest complete checkpoint.

        Processes that train together all call this; the first one saves.
        """
        processes.announce_build(folder)
        trainer_folder = folder / "trainer"
        if not processes.from_first_process((folder / _REPORT).is_file()):
            with processes.first_process_first():
                set_seed(recipe.seed)
                self.model = self.builder.initial_model(self.reader)
            self.model.config.label_smoothing = recipe.label_smoothing
            report = core.FitReport(parameters=parameters(self.model), ended_by="max_steps")
            if recipe.max_steps > 0:
                check_rows(*([rows] if validation is None else [rows, validation]))
                collator, objective = self.reader.collator(), self.objective(recipe)
                report = train(
                    self.model,
                    rows,
                    validation,
                    collator,
                    recipe,
                    trainer_folder,
                    objective=objective,
                )
            if processes.process_index():
                return
            self.save(folder)
            for number, (step, _) in enumerate(report.kept[1:], start=2):
                step_folder = weights_folder(trainer_folder, step)
                self.model = load_network(self.Model, step_folder, f"the checkpoint {step_folder}")
                kept_folder(folder, number).mkdir(parents=True, exist_ok=True)
                self.save(kept_folder(folder, number))
            report = _with_targets(report, rows, special=len(self.reader.target([])))
            write_atomically(folder / _REPORT, json.dumps(asdict(report)))
        shutil.rmtree(trainer_folder, ignore_errors=True)

    def load_checkpoint(self, number: int) -> None:
        """Load the n-th best checkpoint of `FitReport.kept`; 1 is the best."""
        with reading_artifact(self.checkpoint):
            self.reader.tokenizer, self.model = self.builder.open(
                kept_folder(self.checkpoint, number)
            )

    def ledgers(self, example: core.Example) -> tuple[core.Truncation, core.Truncation]:
        """Return the ledgers of an example's units and of its first reference, which is cut at `decode_length`."""
        return self.reader.units(example).truncation, reference_ledger(self.reader, example)

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
        """Yield the scores of every example's sentences; systems with the capability `extracts` override this."""
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

    def objective(self, recipe: core.Recipe) -> Objective | None:
        """Return what trains only a part of the model, as `train.only` says; None for the whole model.

        Systems with the capability `trains_scorer` override this.
        """
        return None

    def evidence(self, output: GeneratedText) -> core.Evidence:
        """Return what the model looked at for a summary; systems with the capability `keeps_evidence` override this."""
        raise NotImplementedError(f"{type(self).__name__} keeps no evidence")

    def texts_of(
        self, ids_of_texts: Sequence[Sequence[int]], skip_special_tokens: bool = False
    ) -> tuple[str, ...]:
        """Return the texts of some token ids, without blanks around them."""
        texts = self.tokenizer.batch_decode(ids_of_texts, skip_special_tokens=skip_special_tokens)
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


def kept_folder(checkpoint: Path, number: int) -> Path:
    """Return the folder of the n-th best weights of a checkpoint stage; the best are in the stage's folder."""
    return checkpoint if number == 1 else checkpoint / "kept" / str(number)


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


def _with_targets(report: core.FitReport, rows: Rows, special: int) -> core.FitReport:
    """Return a report with the ledger of the training targets, which have `special` special tokens each."""
    lengths = rows["target_tokens"]
    cut_lengths = [len(labels) - special for labels in rows["labels"]]
    tokens_cut = sum(lengths) - sum(cut_lengths)
    cuts = (
        (core.Cut("decode_length", tokens_cut, sum(rows["target_words_cut"])),)
        if tokens_cut
        else ()
    )
    ledger = core.Truncation(sum(lengths), sum(rows["target_words"]), cuts)
    num_cut = sum(
        length > cut_length for length, cut_length in zip(lengths, cut_lengths, strict=True)
    )
    return replace(report, targets=ledger, targets_cut=num_cut)


def _check_best(recipe: core.Recipe, validation: core.Split | None) -> None:
    number, name = recipe.keep_best, "train.keep_best"
    if number == 1:
        number, name = recipe.average_weights, "train.average_weights"
    if number > 1 and recipe.max_steps and not validation:
        problem = (
            "chooses checkpoints by their validation loss, and the dataset has no validation split"
        )
        raise DataError(f"{name}={number} {problem}; add one, or choose {name}=1")
