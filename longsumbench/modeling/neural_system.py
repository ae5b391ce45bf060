"""NeuralSystem: a unit reader and a network, trained, decoded and saved.

examples --UnitReader--> rows, batches --Network.Model--> training.train (fit), generation.decode (summarize)
"""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from longsumbench.cache.artifacts import reading_artifact
from longsumbench.core import (
    Decoding,
    Document,
    Evidence,
    Example,
    FitContext,
    FitReport,
    Recipe,
    Section,
    Split,
    Summary,
    System,
    Truncation,
    names_deciding,
    outcome_settings,
)
from longsumbench.errors import DataError
from longsumbench.modeling.checkpoints import load_network, reading_checkpoint
from longsumbench.modeling.extraction import ScoredSpans, extracts, mean_target_words, score_spans
from longsumbench.modeling.fit_report import is_trained, kept_folder, read_report, write_report
from longsumbench.modeling.generation import Written, decode, supports_penalties
from longsumbench.modeling.network import Network
from longsumbench.modeling.neural_config import NeuralConfig
from longsumbench.modeling.processes import (
    announce_build,
    build_together,
    first_process_first,
    from_first_process,
    process_index,
)
from longsumbench.modeling.training.state import weights_folder
from longsumbench.modeling.training.trainer import Objective, parameters, train
from longsumbench.modeling.unit_reader import READER_VERSIONS, Rows, UnitReader

FIT_VERSION = 2  # rises when the outcome of training changes
_SHORT_TEXT = Example("short", "a title", None, (Document(None, (Section(None, (("a text.",),)),)),), (("a text.",),))


class NeuralSystem(System):
    """A system made of a unit reader and a network. A subclass names both, and may add `evidence`.

    Attributes:
        Reader, Network: their classes.
        reader, network: made from the settings.
        model: set by `fit` and `load`.
        checkpoint: the folder of tokenizer and model; set by `fit`.
        state: "multi_document": True if the training texts have several documents each; "queried": the version of
            queries, if the training texts have any; "target_words": the mean length of a training target;
            "trained_only": the part of the network that was trained, if not all of it. Set by `fit`.
    """

    decided_by = frozenset({"seed", "train", "decode"})
    shares_work = True
    Reader: ClassVar[type[UnitReader]]
    Network: ClassVar[type[Network]]
    model: PreTrainedModel
    checkpoint: Path

    def __init__(self, config: NeuralConfig) -> None:
        super().__init__(config)
        self.reader, self.network = self.Reader(config, self.version), self.Network(config)
        self.supports_length_norms = supports_penalties(self.Network.Model)

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The reader's tokenizer; set by `ready_to_read` and `load`."""
        return self.reader.tokenizer

    def check_examples(self, examples: Iterable[Example]) -> None:
        """Check that every example has the title or query that its ranker needs, if there is one."""
        self.reader.ranking.check_examples(examples)

    def fit(self, context: FitContext) -> FitReport:
        """Train on the training split, or load the cached checkpoint of the same training.

        Raises:
            DataError: there is no training split, or it is empty; the recipe keeps or averages the best checkpoints,
                and there is no validation split.
        """
        train, validation, recipe, stages = context.train, context.validation, context.recipe, context.stages
        with first_process_first():
            _check_best(recipe, validation)
            self.ready_to_read(context)
            assert train is not None
            if recipe.only != "all":
                self.state["trained_only"] = recipe.only
            rows = self.reader.labelled_rows(train, len(train), stages)
            watched = min(len(validation), recipe.eval_examples or len(validation)) if validation is not None else 0
            read_rows = self.reader.rows if recipe.only == "all" else self.reader.labelled_rows
            validation_rows = read_rows(validation, watched, stages) if validation and watched else None
        not_trained = names_deciding(self.config, "summaries")
        inputs = {
            "config": {key: value for key, value in self.identity().items() if key not in not_trained},
            "recipe": outcome_settings(recipe),
            "train": train.fingerprint,
            "validation": [validation.fingerprint, watched] if validation is not None else None,
            "units": self.reader.inputs(),
            "version": [FIT_VERSION, self.version],
        }
        build = partial(self._train, rows=rows, validation=validation_rows, recipe=recipe)
        with build_together(build):
            self.checkpoint = stages.get("checkpoint", inputs, build)
        with reading_artifact(self.checkpoint):
            self._open(self.checkpoint)
            return read_report(self.checkpoint)

    def ready_to_read(self, context: FitContext) -> None:
        """Prepare the reader; then train or load the tokenizer.

        Raises:
            UsageError: the reader cannot read such texts.
            DataError: there is no training split, or it is empty.
        """
        if context.train is None or not len(context.train):
            problem = f"model={self.config.name} learns from a training split, and the dataset has none"
            raise DataError(f"{problem}; add one, or choose model=oracle, or model=lead model.length=<words>")
        self.state["multi_document"] = context.train.multi_document
        if context.train.queried:
            self.state["queried"] = READER_VERSIONS["queries"]
        self.state["target_words"] = mean_target_words(context.train)
        self.reader.state = self._facts_of_texts()
        self.reader.prepare(context)
        self.reader.tokenizer = self.network.tokenizer(context)

    def source_ledger(self, example: Example) -> Truncation:
        """Return the ledger of an example's units."""
        return self.reader.units(example).truncation

    def reference_ledger(self, example: Example) -> Truncation:
        """Return the ledger of an example's first reference, which is cut at `decode_length`."""
        return self.reader.reference_ledger(example)

    def use_kept(self, number: int) -> None:
        """Load the n-th best checkpoint; 1 is the best."""
        with reading_artifact(self.checkpoint):
            self._open(kept_folder(self.checkpoint, number))

    def _train(self, folder: Path, rows: Rows, validation: Rows | None, recipe: Recipe) -> None:
        """Build the stage "checkpoint"; an interrupted training continues from its newest complete checkpoint.

        Processes that train together all call this; the first one saves.
        """
        announce_build(folder)
        trainer_folder = folder / "trainer"
        if not from_first_process(is_trained(folder)):
            with first_process_first():
                set_seed(recipe.seed)
                self.model = self.network.initial_model(self.reader)
                if self.network.initial_folder():
                    self.try_out("cpu", self.network.shown_as)
            self.model.config.label_smoothing = recipe.label_smoothing
            report = FitReport(parameters=parameters(self.model), ended_by="max_steps")
            if recipe.max_steps > 0:
                collator, objective = self.reader.collator(), self.objective(recipe)
                report = train(self.model, rows, validation, collator, recipe, trainer_folder, objective=objective)
            if process_index():
                return
            self._save_ready(folder)
            for number, (step, _) in enumerate(report.kept[1:], start=2):
                step_folder = weights_folder(trainer_folder, step)
                self.model = load_network(self.network.Model, step_folder, f"the checkpoint {step_folder}").network
                self._save_ready(kept_folder(folder, number))
            write_report(folder, report, rows, special=len(self.reader.target([])))
        shutil.rmtree(trainer_folder, ignore_errors=True)

    def _save_ready(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.save(folder)

    def identity(self) -> dict[str, Any]:
        """Return the settings; hashes of the content replace the paths of checkpoint and tokenizer.

        Raises:
            UsageError: the checkpoint or tokenizer does not exist.
            EnvironmentProblem: it is on the hub, and cannot be fetched.
        """
        return {**super().identity(), **self.network.identity(), **self.reader.identity()}

    @classmethod
    def versions(cls) -> dict[str, int]:
        """Return the version numbers of all steps."""
        steps = {"fit": FIT_VERSION, **{step: READER_VERSIONS[step] for step in ("units", "tokenizer")}}
        return {**super().versions(), **steps}

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Decode or extract one batch; a learned ranker runs on the same device."""
        self.reader.ranking.use_device(decoding.device)
        if decoding.mode == "extract":
            scored = self.score_source(examples, decoding)
            summaries = extracts(examples, scored, self.state.get("target_words"), decoding, self.keeps_evidence)
        else:
            summaries = self._write_summaries(examples, decoding)
        for example, summary in zip(examples, summaries, strict=True):
            text_read = None if decoding.keep_inputs == "none" else self._text_read(example)
            yield replace(summary, read=text_read)

    def _text_read(self, example: Example) -> str:
        """Return the text of an example's units with special tokens; a line before each of several units names it."""
        units = self.reader.units(example).ids
        texts = self.tokenizer.batch_decode(units, skip_special_tokens=False)
        if len(texts) == 1:
            return str(texts[0])
        return "\n".join(f"── unit {number} of {len(texts)}\n{text}" for number, text in enumerate(texts, start=1))

    def _write_summaries(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        summaries = self.write_batch(examples, decoding)
        texts = self.tokenizer.batch_decode([output.ids for output in summaries], skip_special_tokens=True)
        shows = self.keeps_evidence and decoding.evidence != "none"
        for example, output, text in zip(examples, summaries, texts, strict=True):
            evidence = None
            if shows:
                reference = self.reader.reference(example)[1].ids if decoding.reference_evidence else None
                evidence = self.evidence(replace(output, reference=reference))
            cut = output.units.truncation
            yield Summary(example.id, text.strip(), cut, output.complete, len(output.ids), evidence)

    def write_batch(self, examples: Sequence[Example], decoding: Decoding) -> list[Written]:
        """Decode one batch; summaries are sampled one by one, so that they depend on no other text."""
        if decoding.temperature and len(examples) > 1:
            return [output for example in examples for output in self.write_batch([example], decoding)]
        units = [self.reader.units(example) for example in examples]
        seeded = replace(decoding, seed=decoding.seed_of(examples[0].id))
        outputs, complete = decode(self.model, self.reader.collate(units), seeded, self.config.decode_length)
        return [Written(*parts) for parts in zip(units, outputs, complete, strict=True)]

    def score_source(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[ScoredSpans]:
        """Yield the scores of every example's sentences: the mean `span_weights` of a summary that is written first.

        Systems that score sentences without writing override this.
        """
        for example, output in zip(examples, self.write_batch(examples, decoding), strict=True):
            yield score_spans(*self.span_weights(example, output), output.units.truncation)

    def span_weights(self, example: Example, output: Written) -> tuple[Sequence[tuple[int, int]], NDArray[Any]]:
        """Return parts of the source, and how much the network looked at each in every step.

        Systems with `extracts` override this or `score_source`.

        Returns:
            (first, last + 1) of each part, as indices of all sentences; [parts, steps].
        """
        raise NotImplementedError(f"{type(self).__name__} scores no sentences")

    def objective(self, recipe: Recipe) -> Objective | None:
        """Return what trains only a part of the network, as `train.only` says; None for the whole network.

        Systems with `trains_scorer` override this.
        """
        return None

    def evidence(self, output: Written) -> Evidence:
        """Return what the network looked at while it wrote a summary; systems with `keeps_evidence` override this."""
        raise NotImplementedError(f"{type(self).__name__} keeps no evidence")

    def batch(self, output: Written) -> dict[str, Tensor]:
        """Return the batch of one text on the model's device."""
        return {name: value.to(self.model.device) for name, value in self.reader.collate([output.units]).items()}

    @torch.inference_mode()
    def decode_again(self, output: Written) -> None:
        """Run the network over a text and its output, with all steps in one pass; hooks see what decoding saw."""
        fed = torch.tensor([[self.model.config.decoder_start_token_id, *output.ids[:-1]]])
        self.model.eval()(**self.batch(output), decoder_input_ids=fed.to(self.model.device))

    def try_out(self, device: str, shown_as: str) -> None:
        """Check that the loaded system can summarize; some damage shows only in use.

        `shown_as` is the checkpoint in messages.

        Raises:
            DataError: the checkpoint is damaged.
        """
        with reading_checkpoint(shown_as):
            list(self.summarize([_SHORT_TEXT], Decoding(max_length=2, evidence="none", device=device)))

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
        system._open(folder)
        system.reader.ranking.load(folder)
        return system

    def _open(self, folder: Path) -> None:
        self.reader.state = self._facts_of_texts()
        self.reader.tokenizer, self.model = self.network.open(folder)

    def _facts_of_texts(self) -> dict[str, Any]:
        """Return the entries of the state that decide how texts are read."""
        return {name: self.state[name] for name in ("multi_document", "queried") if name in self.state}


def _check_best(recipe: Recipe, validation: Split | None) -> None:
    settings = [name for name in ("keep_best", "average_weights") if getattr(recipe, name) > 1 and recipe.max_steps]
    if settings and not (validation is not None and len(validation)):
        name = f"train.{settings[0]}"
        problem = "chooses checkpoints by their validation loss, and the dataset has no validation split"
        raise DataError(f"{name}={getattr(recipe, settings[0])} {problem}; add one, or choose {name}=1")
