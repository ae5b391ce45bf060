"""NeuralSystem, the base of systems that are transformers models.

A subclass defines the units and the model. Tokenizer, cached stages, training, decoding and checkpoints are here.
"""

import json
import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import datasets
import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase, set_seed

from longsumbench.api.config import TRAINED_TOKENIZERS, Decoding, Recipe
from longsumbench.api.documents import Cut, Document, Example, Section, Truncation
from longsumbench.api.settings import names_deciding, outcome_settings, settings_deciding
from longsumbench.api.system import Evidence, FitReport, Split, Summary, System, read_checkpoint
from longsumbench.cache.artifacts import ArtifactCache, reading_artifact
from longsumbench.errors import DataError, EnvironmentProblem, UsageError
from longsumbench.files import write_atomically
from longsumbench.modeling import tokenizer as tokenization
from longsumbench.modeling.checkpoints import (
    FETCH_AGAIN,
    check_files,
    check_memory,
    check_vocabulary,
    load_network,
    model_digest,
    model_folder,
    read_config,
    reading_checkpoint,
)
from longsumbench.modeling.collate import UnitCollator, row_of_units, stored_rows
from longsumbench.modeling.generation import decode
from longsumbench.modeling.nn.device import choose_device
from longsumbench.modeling.training.callbacks import weights_folder
from longsumbench.modeling.training.trainer import parameters, train
from longsumbench.modeling.units import QUERIES_VERSION, EncodedSentence, Query, Units
from longsumbench.progress import track

Encode = Callable[[Sequence[str]], list[EncodedSentence]]
Rows: TypeAlias = datasets.Dataset

_UNITS_VERSION = 2  # rises when rows of units change
_FIT_VERSION = 2  # rises when the outcome of training changes
_SHORT_TEXT = Example("short", "a title", None, (Document(None, (Section(None, (("a text.",),)),)),), (("a text.",),))


class NeuralSystem(System):
    """A system that is a transformers model.

    Attributes:
        Model: a `PreTrainedModel` with `generate` that takes `input_ids` and `unit_mask` [B, U, L].
        adopts: model types of transformers whose checkpoints it can start from (`adopt`).
        tokenizer, model: set by `fit` and `load`.
        checkpoint: the folder of tokenizer and model; set by `fit`.
        state["multi_document"]: True if the training texts have several documents each; set by `fit`.
        state["queried"]: set by `fit` if the training texts have queries.
    """

    decided_by = frozenset({"seed", "train", "decode"})
    shares_work = True
    Model: ClassVar[type[PreTrainedModel]]
    adopts: ClassVar[tuple[str, ...]] = ()
    tokenizer: PreTrainedTokenizerBase
    model: PreTrainedModel
    checkpoint: Path

    @abstractmethod
    def units(self, example: Example, encode: Encode) -> Units:
        """Split an example into units, each with the example's `query` before its text.

        `encode` tokenizes consecutive sentences without special tokens.
        """

    @abstractmethod
    def build_model(self, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
        """Build the network with random weights; the caller has set the seed."""

    def fit(
        self, train: Split | None, validation: Split | None, recipe: Recipe, workdir: Path, stages: ArtifactCache
    ) -> FitReport:
        """Train on the training split, or load the cached checkpoint of the same training.

        Raises:
            DataError: there is no training split, or it is empty; the recipe keeps or averages the best checkpoints,
                and there is no validation split.
        """
        _check_best(recipe, validation)
        self.ready_to_read(train, validation, recipe, stages)
        assert train is not None
        rows = self._rows(train, len(train), stages)
        rows = self.add_columns(rows, self._units_inputs(train, len(train)), stages)
        watched = min(len(validation), recipe.eval_examples or len(validation)) if validation is not None else 0
        validation_rows = self._rows(validation, watched, stages) if validation is not None and watched else None
        not_trained = names_deciding(self.config, "summaries")
        inputs = {
            "config": {key: value for key, value in self.identity().items() if key not in not_trained},
            "recipe": outcome_settings(recipe),
            "train": train.fingerprint,
            "validation": [validation.fingerprint, watched] if validation is not None else None,
            "tokenizer": tokenization.tokenizer_identity(self.tokenizer),
            "multi_document": self.multi_document,
            "queried": self.state.get("queried"),
            **self.units_also_decided_by(),
            "version": [_FIT_VERSION, _UNITS_VERSION, self.version],
        }
        build = partial(self._train, rows=rows, validation=validation_rows, recipe=recipe, stages=stages)
        self.checkpoint = stages.get("checkpoint", inputs, build)
        with reading_artifact(self.checkpoint):
            self.tokenizer, self.model = self._open(self.checkpoint)
            return read_report(self.checkpoint)

    def ready_to_read(
        self, train: Split | None, validation: Split | None, recipe: Recipe, stages: ArtifactCache
    ) -> None:
        """Train or load the tokenizer, then `prepare`.

        Raises:
            DataError: there is no training split, or it is empty.
        """
        if train is None or not len(train):
            problem = f"model={self.config.name} learns from a training split, and the dataset has none"
            raise DataError(f"{problem}; add one, or choose model=oracle, or model=lead model.length=<words>")
        self.state["multi_document"] = train.multi_document
        if train.queried:
            self.state["queried"] = QUERIES_VERSION
        self.tokenizer = self._find_tokenizer(train, stages)
        self.prepare(train, validation, recipe, stages)

    def source_ledger(self, example: Example) -> Truncation:
        """Return the ledger of an example's units."""
        return self.units(example, self.encode).truncation

    def reference_ledger(self, example: Example) -> Truncation:
        """Return the ledger of an example's first reference, which is cut at `decode_length`."""
        whole = self.encode([" ".join(example.references[0])])[0]
        kept = self.target_head(whole)
        tokens, words = len(whole.ids) - len(kept.ids), whole.words - kept.words
        cuts = (Cut("decode_length", tokens, words),) if tokens else ()
        return Truncation(len(whole.ids), whole.words, cuts)

    def use_kept(self, number: int) -> None:
        """Load the n-th best checkpoint; 1 is the best."""
        with reading_artifact(self.checkpoint):
            self.model = self._open(kept_folder(self.checkpoint, number))[1]

    def prepare(self, train: Split, validation: Split | None, recipe: Recipe, stages: ArtifactCache) -> None:
        """Fit what `units` needs besides the tokenizer; by default nothing."""

    def _train(self, folder: Path, rows: Any, validation: Any, recipe: Recipe, stages: ArtifactCache) -> None:
        """Build the stage "checkpoint"; an interrupted training continues from its newest complete checkpoint.

        With `stages.finished_only`, this process shares the training of another one and saves nothing.
        """
        trainer_folder = folder / "trainer"
        if not (folder / "fit.json").is_file():
            set_seed(recipe.seed)
            self.model = self._initial_model()
            if self.start():
                self.try_out("cpu", f"model.init={self.config.init}")
            self.model.config.label_smoothing = recipe.label_smoothing
            report = FitReport(parameters=parameters(self.model), ended_by="max_steps")
            if recipe.max_steps > 0:
                with stages.together(folder):
                    report = train(self.model, rows, validation, self.collator(), recipe, trainer_folder)
            if stages.finished_only:
                return
            self._save_ready(folder)
            for number, (step, _) in enumerate(report.kept[1:], start=2):
                kept = weights_folder(trainer_folder, step)
                self.model = load_network(self.Model, kept, f"the checkpoint {kept}").network
                self._save_ready(kept_folder(folder, number))
            content = {**asdict(report), **_target_ledger(rows, len(self.target([])))}
            write_atomically(folder / "fit.json", json.dumps(content))
        shutil.rmtree(trainer_folder, ignore_errors=True)

    def _save_ready(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.model.config.use_cache = True  # the Trainer disables it
        self.save(folder)

    def _initial_model(self) -> PreTrainedModel:
        folder = self.start()
        if self.adopts and folder:
            with reading_checkpoint(f"model.init={folder}"):
                return self.adopt(folder)
        check_memory(lambda: self.build_model(self.tokenizer), f"model={self.config.name}")
        model = self.build_model(self.tokenizer)
        if folder:
            initial = self._open(folder)[1]
            free = names_deciding(self.config, "labels", "use")
            if difference := _first_difference(model.config.to_dict(), initial.config.to_dict(), free):
                raise UsageError(f"model.init={self.config.init} does not fit the other settings: {difference}")
            model.load_state_dict(initial.state_dict())
        return model

    def start(self) -> Path | None:
        """Return the folder of the initial checkpoint; None if the weights are initialized at random.

        Raises:
            UsageError: the checkpoint does not exist, or is of another system or architecture.
            EnvironmentProblem: it is on the hub, has no local copy, and cannot be fetched.
        """
        if self.config.init == "random":
            return None
        if not self.adopts:
            folder = Path(self.config.init)
            read_checkpoint(folder, self.Config)
            check_files(folder)
            return folder
        try:
            folder = model_folder(self.config.init, "model.init")
        except EnvironmentProblem as problem:
            raise EnvironmentProblem(f"{problem}, or start at random: model.init=random") from problem
        described = read_config(folder)
        with reading_checkpoint(f"model.init={folder}"):
            if (found := described["model_type"]) not in self.adopts:
                wanted = " or ".join(self.adopts)
                raise UsageError(f"model.init={self.config.init} is a checkpoint of '{found}', not of {wanted}")
            self.check_start(described)
        return folder

    def check_start(self, described: dict[str, Any]) -> None:
        """Check that the settings fit the initial checkpoint, whose `config.json` is `described`.

        Raises:
            UsageError: they do not fit.
        """

    def adopt(self, folder: Path) -> PreTrainedModel:
        """Return the network with the weights of a checkpoint of one of the types in `adopts`."""
        raise NotImplementedError(f"{type(self).__name__} adopts no checkpoint")

    def identity(self) -> dict[str, Any]:
        """Return the settings; hashes of the content replace the paths of checkpoint and tokenizer.

        Raises:
            UsageError: the checkpoint or tokenizer does not exist.
            EnvironmentProblem: it is on the hub, and cannot be fetched.
        """
        settings = super().identity()
        if folder := self.start():
            settings["init"] = model_digest(folder)
            settings["tokenizer"] = "the checkpoint's"
        elif self.config.tokenizer not in TRAINED_TOKENIZERS:
            settings["tokenizer"] = tokenization.tokenizer_identity(tokenization.load_tokenizer(self.config.tokenizer))
        elif self.config.tokenizer == "words":
            settings["tokenizer"] = f"words {tokenization.WORDS_VERSION}"
        return settings

    @classmethod
    def versions(cls) -> dict[str, int]:
        """Return the version numbers of all steps."""
        steps = {"fit": _FIT_VERSION, "units": _UNITS_VERSION, "tokenizer": tokenization.TOKENIZER_VERSION}
        return {**super().versions(), **steps}

    def _find_tokenizer(self, train: Split, stages: ArtifactCache) -> PreTrainedTokenizerBase:
        kind, size = self.config.tokenizer, self.config.vocabulary_size
        if folder := self.start():
            return tokenization.load_tokenizer(folder) if self.adopts else self._open(folder)[0]
        if kind not in TRAINED_TOKENIZERS:
            tokenizer = tokenization.load_tokenizer(kind)
            check_vocabulary(tokenizer, len(tokenizer), f"model.tokenizer={kind}")
            return tokenizer
        return tokenization.trained_tokenizer(train, size, stages, kind)

    def _rows(self, split: Split, examples: int, stages: ArtifactCache) -> Rows:
        inputs = self._units_inputs(split, examples)
        rows = (self.row(split[index]) for index in track(range(examples), f"tokenizing {split.name}", examples))
        return stored_rows("units", inputs, self.features(), rows, stages)

    def _units_inputs(self, split: Split, examples: int) -> dict[str, Any]:
        return {
            "system": self.config.name,
            "settings": settings_deciding(self.config, "units"),
            "tokenizer": tokenization.tokenizer_identity(self.tokenizer),
            "split": split.fingerprint,
            "examples": examples,
            "multi_document": self.multi_document,
            "version": [_UNITS_VERSION, self.version],
            "queried": self.state.get("queried"),
            **self.units_also_decided_by(),
        }

    def query(self, example: Example, encode: Encode, unit_length: int) -> Query:
        """Return the query that starts every unit of an example; empty if the example has none.

        Choice, not in the papers: the query is the first sentence of every unit, and counts in `unit_length`.
        """
        return Query.within(encode([example.query])[0], unit_length) if example.query else Query()

    def units_also_decided_by(self) -> dict[str, Any]:
        """Return JSON values on which `units` depends besides settings, tokenizer and texts; by default none."""
        return {}

    def add_columns(self, rows: Rows, inputs: dict[str, Any], stages: ArtifactCache) -> Rows:
        """Add columns to the rows of the training split, whose cache inputs are `inputs`; by default none."""
        return rows

    def features(self) -> datasets.Features:
        """Return the columns of a training row; a system with more columns overrides this and `row`."""
        ids = datasets.List(datasets.Value("int32"))
        names = ("length", "source_words", "target_tokens", "target_words", "target_words_cut")
        counts = dict.fromkeys((*names, *self._queried_columns()), datasets.Value("int32"))
        return datasets.Features({"units": datasets.List(ids), "unit_documents": ids, "labels": ids, **counts})

    def row(self, example: Example) -> dict[str, Any]:
        """Return an example as a training row; the target is its first reference."""
        whole = self.encode([" ".join(example.references[0])])[0]
        kept = self.target_head(whole)
        counts = {
            "source_words": example.source_words(),
            "target_tokens": len(whole.ids),
            "target_words": whole.words,
            "target_words_cut": whole.words - kept.words,
        }
        units = self.training_units(example, self.encode)
        counts |= dict.fromkeys(self._queried_columns(), units.query_length)
        return {**self.values(units, self.target(kept.ids)), **counts}

    def _queried_columns(self) -> tuple[str, ...]:
        return ("query_length",) if "queried" in self.state else ()

    def values(self, units: Units, labels: Sequence[int] = ()) -> dict[str, Any]:
        """Return the values from which a batch is collated; a system whose collator needs more overrides this."""
        return row_of_units(units, labels)

    def training_units(self, example: Example, encode: Encode) -> Units:
        """Split an example of the training or validation split into units; by default as `units`."""
        return self.units(example, encode)

    def target(self, ids: Sequence[int]) -> list[int]:
        """Add the special tokens to a target."""
        return [*ids, self.tokenizer.eos_token_id]

    def target_head(self, whole: EncodedSentence) -> EncodedSentence:
        """Cut a reference to the tokens that fit into a target."""
        return whole.head(self.config.decode_length - len(self.target([])))

    @property
    def multi_document(self) -> bool:
        """True if the training texts have several documents each."""
        return bool(self.state.get("multi_document", False))

    def collator(self) -> UnitCollator:
        """Return the collator of rows; a system with more columns overrides this."""
        return UnitCollator(self.tokenizer.pad_token_id)

    def encode(self, sentences: Sequence[str]) -> list[EncodedSentence]:
        """Tokenize consecutive sentences."""
        return tokenization.encode_sentences(self.tokenizer, sentences)

    def summarize(self, examples: Sequence[Example], decoding: Decoding) -> Iterator[Summary]:
        """Decode one batch."""
        self.model.to(choose_device(decoding.device))
        read = [self.units(example, self.encode) for example in examples]
        batch = self.collator()([self.values(units) for units in read])
        outputs, complete = decode(self.model, batch, decoding, self.config.decode_length)
        texts = self.tokenizer.batch_decode(outputs, skip_special_tokens=True)
        evidences: Sequence[Evidence | None] = [None] * len(read)
        if self.keeps_evidence and decoding.evidence != "none":
            references = [self._reference(example) if decoding.reference_evidence else None for example in examples]
            evidences = self.evidence(read, outputs, complete, references)
        results = zip(examples, read, outputs, texts, complete, evidences, strict=True)
        for example, units, ids, text, ended, evidence in results:
            yield Summary(example.id, text.strip(), units.truncation, ended, len(ids), evidence)

    def try_out(self, device: str, named: str) -> None:
        """Check that the loaded system can summarize; some damage shows only in use.

        `named` is the checkpoint in messages.

        Raises:
            DataError: the checkpoint is damaged.
        """
        with reading_checkpoint(named):
            list(self.summarize([_SHORT_TEXT], Decoding(max_length=2, evidence="none", device=device)))

    def _reference(self, example: Example) -> list[int]:
        whole = self.encode([" ".join(example.references[0])])[0] if example.references else EncodedSentence([], 0)
        return list(self.target_head(whole).ids)

    def fed_once_more(self, units: Units, output: Sequence[int]) -> dict[str, Tensor]:
        """Return a batch of one text and its output, with which a forward pass repeats the decoding.

        It has `decoder_input_ids` [1, T] for the T tokens of the output, and is on the model's device.
        """
        batch = self.collator()([self.values(units)])
        batch["decoder_input_ids"] = torch.tensor([[self.model.config.decoder_start_token_id, *output[:-1]]])
        return {name: value.to(self.model.device) for name, value in batch.items()}

    def evidence(
        self,
        read: Sequence[Units],
        outputs: Sequence[Sequence[int]],
        complete: Sequence[bool],
        references: Sequence[Sequence[int] | None],
    ) -> Sequence[Evidence | None]:
        """Return the evidence of each output; systems with `keeps_evidence` override this.

        Args:
            read: the units of each example.
            outputs: the token ids of each summary, without start and end.
            complete: True for each summary with an end token.
            references: the text tokens of each reference under `decode.reference_evidence`, else None; used by systems
                with `keeps_reference_evidence`.
        """
        raise NotImplementedError(f"{type(self).__name__} keeps no evidence")

    def save(self, folder: Path) -> None:
        """Save model and tokenizer by `save_pretrained`, and the settings."""
        self.model.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        super().save(folder)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Load what `save` wrote.

        Raises:
            UsageError: the folder is not a checkpoint of this system.
        """
        system = super().load(folder)
        system.tokenizer, system.model = system._open(folder)
        return system

    def _open(self, folder: Path) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        read_checkpoint(folder, self.Config)
        named = f"the checkpoint {folder}"
        model, missing, unexpected = load_network(self.Model, folder, named)
        if different := missing | unexpected:
            names = ", ".join(sorted(different)[:3])
            raise UsageError(f"the weights in {folder} are not those of the network in its config.json: {names} …")
        if model.config.decoder_start_token_id is None:
            raise DataError(f"{named}: its config.json lacks decoder_start_token_id; {FETCH_AGAIN}")
        tokenizer = tokenization.load_tokenizer(folder)
        check_vocabulary(tokenizer, model.config.vocab_size, named)
        return tokenizer, model


def kept_folder(checkpoint: Path, number: int) -> Path:
    """Return the folder of the n-th best weights of a checkpoint stage; the best are in the stage's folder."""
    return checkpoint if number == 1 else checkpoint / "kept" / str(number)


def _check_best(recipe: Recipe, validation: Split | None) -> None:
    settings = [name for name in ("keep_best", "average_weights") if getattr(recipe, name) > 1 and recipe.max_steps]
    if settings and not (validation is not None and len(validation)):
        name = f"train.{settings[0]}"
        problem = "chooses checkpoints by their validation loss, and the dataset has no validation split"
        raise DataError(f"{name}={getattr(recipe, settings[0])} {problem}; add one, or choose {name}=1")


def special_ids(tokenizer: PreTrainedTokenizerBase) -> tuple[int, int | None, int]:
    """Return the ids of the padding, start and end token; the start token may be None."""
    return tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id


def network_sizes(
    dimension: Callable[[str], int], dropout: float, vocabulary: int, special: tuple[int, int | None, int]
) -> dict[str, Any]:
    """Return arguments of transformers' configuration of an encoder-decoder with shared, scaled embeddings.

    Args:
        dimension: returns the setting d_model, d_ff, num_heads, encoder_layers or decoder_layers.
        dropout: probability.
        vocabulary: number of entries of the tokenizer.
        special: its `special_ids`; without a start token, decoding starts with the padding token, as in T5.
    """
    pad, start, end = special
    return {
        "vocab_size": vocabulary,
        "d_model": dimension("d_model"),
        **{f"{stack}_ffn_dim": dimension("d_ff") for stack in ("encoder", "decoder")},
        **{f"{stack}_layers": dimension(f"{stack}_layers") for stack in ("encoder", "decoder")},
        **{f"{stack}_attention_heads": dimension("num_heads") for stack in ("encoder", "decoder")},
        "dropout": dropout,
        "scale_embedding": True,
        "pad_token_id": pad,
        "decoder_start_token_id": pad if start is None else start,
        "bos_token_id": start,
        "eos_token_id": end,
        "forced_eos_token_id": None,
    }


def _first_difference(wanted: dict[str, Any], initial: dict[str, Any], free: frozenset[str]) -> str:
    """Describe the first setting that differs between two networks; empty if none does."""
    always_free = {"dropout", "label_smoothing", "use_cache", "dtype", "architectures", "transformers_version"}
    for key in sorted((set(wanted) & set(initial)) - free - always_free - {"_name_or_path"}):
        if wanted[key] != initial[key]:
            return f"{key} is {initial[key]} there and {wanted[key]} here"
    return ""


def _target_ledger(rows: datasets.Dataset, special: int) -> dict[str, Any]:
    """Return the ledger of the training targets, with `special` special tokens each, and how many were cut."""
    whole = rows["target_tokens"]
    kept = [len(labels) - special for labels in rows["labels"]]
    tokens_cut = sum(whole) - sum(kept)
    cuts = (Cut("decode_length", tokens_cut, sum(rows["target_words_cut"])),) if tokens_cut else ()
    ledger = Truncation(sum(whole), sum(rows["target_words"]), cuts)
    num_cut = sum(before > after for before, after in zip(whole, kept, strict=True))
    return {"targets": asdict(ledger), "targets_cut": num_cut}


def read_report(folder: Path) -> FitReport:
    """Read the `fit.json` of a checkpoint stage."""
    content = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
    ledger = content.pop("targets")
    cuts = tuple(Cut(**cut) for cut in ledger.pop("cuts"))
    for name in ("validation_losses", "kept", "averaged"):  # missing in files of earlier versions
        content[name] = tuple((step, loss) for step, loss in content.get(name, ()))
    return FitReport(**content, targets=Truncation(**ledger, cuts=cuts))
