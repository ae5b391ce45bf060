"""Fine-tuning of a language model on pairs of prompt and reference. Begin with `fine_tune`.

    Example --Reading--> prompts --rows--> packed batch --network--> logits of the answer --pages mixed--> loss

The loss is on the reference alone. A prompt of several pages has the reference after each page.

Letters: B examples, P pages of an example, S sequences (a page with the reference), R rows of packed sequences, L tokens
of a row, K places of a row whose logits are needed, T tokens of a reference, D width, V vocabulary.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from transformers.modeling_outputs import CausalLMOutput

from longsumbench.core import Example, FitContext, Split, count_words
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.errors import UsageError
from longsumbench.modeling import processes
from longsumbench.modeling.adapters import add_adapter
from longsumbench.modeling.collate import IGNORED, stored_rows
from longsumbench.modeling.nn.encoder_decoder import token_cross_entropy
from longsumbench.modeling.training.fitting import (
    Fitting,
    num_validated,
    training_inputs,
)
from longsumbench.modeling.training.trainer import Batch, Objective
from longsumbench.modeling.unit_reader import UNIT_COLUMNS
from longsumbench.modeling.units import EncodedSentence
from longsumbench.models.prompt.causal_checkpoint import CausalCheckpoint
from longsumbench.models.prompt.chat import chat_ids, starts_thinking
from longsumbench.models.prompt.page_mixture import (
    PAGE_WEIGHT,
    ConfidenceFunction,
    LearnedConfidence,
    mix_pages,
)
from longsumbench.models.prompt.prompt_builder import PromptBuilder
from longsumbench.progress import track

_log = logging.getLogger(__name__)

# Tokens of each of the two texts of `can_pack`.
_TRIAL = 6


def fine_tune(builder: PromptBuilder, context: FitContext, save: Callable[[Path], None]) -> Path:
    """Train the model of a builder, or find the cached checkpoint; return its folder.

    Args:
        builder: makes the prompts; its engine has the model.
        context: has the splits and the recipe.
        save: writes settings and state of the system into a folder, next to the weights.

    Raises:
        UsageError: a prompt has no room for text, or begins thinking; peft knows no layers for the architecture.
        EnvironmentProblem: peft is not installed, or the network does not fit into memory.
    """
    engine, recipe = builder.engine, context.recipe
    assert isinstance(engine, CausalCheckpoint)
    assert context.train is not None
    if starts_thinking(engine.tokenizer, builder.config):
        raise UsageError(
            f"the chat template of {engine.shown_as} begins with thinking, which references have not: choose"
            " model.thinking=false or model.chat_template=none"
        )
    with processes.first_process_first():
        watched = num_validated(context)
        inputs = {**training_inputs(builder.config, context), "units": _reading_inputs(builder)}
        splits = filter(None, (context.train, context.validation))
        inputs["layouts"] = [split.layout for split in splits]
        rows = _rows(builder, context, context.train, len(context.train))
        validation = None
        if context.validation is not None and watched:
            validation = _rows(builder, context, context.validation, watched)
    tuning = Tuning(engine)

    def save_all(folder: Path) -> None:
        tuning.save(folder)
        save(folder)

    fitting = Fitting(
        recipe,
        rows,
        validation,
        num_special=1,
        start=partial(tuning.start, recipe.gradient_checkpointing),
        collator=lambda: PromptCollator(can_pack(tuning.network)),
        objective=lambda: Objective(partial(tuning.output, recipe.label_smoothing)),
        save=save_all,
    )
    with processes.build_together(fitting.build):
        return context.cache.get("checkpoint", inputs, fitting.build)


def _reading_inputs(builder: PromptBuilder) -> dict[str, Any]:
    """Return the JSON values, besides settings, that decide what prompts have of a text."""
    return {
        "system": builder.config.name,
        "state": builder.state.learned(),
        "rankers": builder.selector.fitted_identity(),
        "version": builder.config.version,
        "reading": LOADING_VERSION,
    }


def _rows(
    builder: PromptBuilder, context: FitContext, split: Split, examples: int
) -> datasets.Dataset:
    """Return the first examples of a split as rows, from the stage "units"; warn of references that are cut."""
    config = builder.config
    inputs = {
        **_reading_inputs(builder),
        "settings": config.identity(),
        "split": split.layout,
        "examples": examples,
    }

    def rows() -> Iterator[dict[str, Any]]:
        indices = track(range(examples), f"reading {split.name}", examples)
        for index in indices:
            example = split[index]
            if any(example.references[:1]) and builder.passage(example).text:
                yield training_row(builder, example)

    features = datasets.Features(UNIT_COLUMNS)
    stored = stored_rows("units", inputs, features, rows(), context.cache)
    cut = sum(length >= config.decode_length for length in stored["target_tokens"])
    if cut:
        _log.warning(
            f"{cut} of {len(stored):,} references in {split.name} are longer than"
            f" model.decode_length={config.decode_length}, and are cut for the training: choose more"
        )
    return stored


def training_row(builder: PromptBuilder, example: Example) -> dict[str, Any]:
    """Return a row: a prompt for each page, and the reference with its end, which is cut to `model.decode_length`."""
    config, engine = builder.config, builder.engine
    assert isinstance(engine, CausalCheckpoint)
    reading = config.reading_class(builder, example, config.decode_length)
    [ask] = next(reading.rounds())
    prompts = [chat_ids(engine.tokenizer, prompt, config) for prompt in ask.prompts]
    text = " ".join(example.references[0])
    encoded = engine.tokenizer(
        text, add_special_tokens=False, split_special_tokens=True, verbose=False
    )
    target = EncodedSentence(encoded["input_ids"], count_words([text]))
    head = target.head(config.decode_length - 1)
    return {
        "units": prompts,
        "unit_documents": [0] * len(prompts),
        "labels": [*head.ids, engine.answer_end],
        "length": sum(map(len, prompts)) + len(prompts) * len(head.ids),
        "source_words": example.source_words(),
        "target_tokens": len(target.ids),
        "target_words": target.words,
        "target_words_cut": target.words - head.words,
        "query_length": 0,
    }


@dataclass(frozen=True)
class PromptCollator:
    """Collates rows into a batch without attention mask: tokens after a sequence are not seen by it.

    With `packs`, a row of the batch has several sequences, each with positions from 0.
    """

    packs: bool

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> Batch:
        """Collate examples.

        Returns:
            `input_ids`, `position_ids` [R, L]; `unit_mask` [R, L], True where a token is of a prompt; `labels` [B, T],
            -100 after the end; `pages` [B], the sequences of each example; `rows` [S], where a sequence is; `kept`
            [K], places of all rows; `steps` [S, T], which of `kept` predicts a label.
        """
        sequences, prompt_lengths = [], []
        for row in rows:
            for prompt in row["units"]:
                sequences.append([*prompt, *row["labels"][:-1]])
                prompt_lengths.append(len(prompt))
        lengths = list(map(len, sequences))
        width = max(lengths)
        slots = pack_sequences(lengths, width if self.packs else 0)
        labels = pad_sequence([torch.tensor(row["labels"]) for row in rows], True, IGNORED)
        input_ids = torch.zeros(1 + max(place for place, _ in slots), width, dtype=torch.long)
        # A position that does not follow the one before begins another sequence: each token of the padding is one.
        position_ids = torch.zeros_like(input_ids)
        unit_mask = torch.zeros_like(input_ids, dtype=torch.bool)
        begins = []
        for (place, begin), ids, length in zip(slots, sequences, prompt_lengths, strict=True):
            end = begin + len(ids)
            input_ids[place, begin:end] = torch.tensor(ids)
            position_ids[place, begin:end] = torch.arange(len(ids))
            unit_mask[place, begin : begin + length] = True
            begins.append(begin + length - 1)
        steps = torch.tensor(begins)[:, None] + torch.arange(labels.shape[1])
        # Steps after the end, which count for nothing, may be beyond the row.
        kept, steps = torch.unique(steps.clamp(max=width - 1), return_inverse=True)
        return {
            "input_ids": input_ids,
            "position_ids": position_ids,
            "unit_mask": unit_mask,
            "labels": labels,
            "pages": torch.tensor([len(row["units"]) for row in rows]),
            "rows": torch.tensor([place for place, _ in slots]),
            "kept": kept,
            "steps": steps,
        }


def pack_sequences(lengths: Sequence[int], width: int) -> list[tuple[int, int]]:
    """Place sequences into rows of at most `width` tokens, the longest first, each into the first row with room.

    Returns:
        Of each sequence its row, and its place in the row. One that is longer than `width` is alone in a row.
    """
    used: list[int] = []
    slots = [(0, 0)] * len(lengths)
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        length = lengths[index]
        fitting = (row for row, tokens in enumerate(used) if tokens + length <= width)
        row = next(fitting, len(used))
        if row == len(used):
            used.append(0)
        slots[index] = row, used[row]
        used[row] += length
    return slots


@torch.no_grad()
def can_pack(network: Any) -> bool:
    """Return True if two texts in a row, with positions from 0 each, do not see each other in a network.

    Some architectures ignore positions, or have states that run on.
    """
    network.eval()
    entries = len(network.get_input_embeddings().weight)
    ids = torch.arange(2 * _TRIAL, device=network.device)[None] % entries
    positions = torch.arange(_TRIAL, device=network.device).repeat(1, 2)
    second = slice(_TRIAL, None)
    alone = network(ids[:, second], position_ids=positions[:, second], use_cache=False).logits
    packed = network(ids, position_ids=positions, use_cache=False).logits[:, second]
    tolerance = 2e-2 if alone.element_size() == 2 else 1e-4
    return bool((packed - alone).abs().max() < tolerance * alone.float().std())


class Tuning:
    """The network in training, with an adapter or without.

    Attributes:
        engine: it has the checkpoint.
        network: what is trained; set by `start`.
    """

    def __init__(self, engine: CausalCheckpoint) -> None:
        self.engine = engine
        self.network: Any = None
        # What the confidences of pages are the softmax of; set by `start`.
        self.confidence_function: ConfidenceFunction

    def start(self, recomputes: bool | None = False) -> Any:
        """Take the network of the checkpoint, add what is trained, and return it.

        `recomputes`: as `train.gradient_checkpointing`.
        """
        engine, config = self.engine, self.engine.config
        if config.tune_all and engine.weight_type != torch.float32:
            # Small steps would be lost in weights of fewer bits.
            engine.network = engine.load_network(torch.float32)
        base = self.network = engine.network
        if config.lora_rank:
            self.network = add_adapter(
                base, config.lora_rank, config.lora_targets, str(config.checkpoint)
            )
            if recomputes:
                # Activations that are computed again need a gradient at the input.
                base.enable_input_require_grads()
        self.confidence_function = engine.compute_confidence
        return self.network

    def output(
        self,
        smoothing: float,
        input_ids: Tensor,
        position_ids: Tensor,
        labels: Tensor,
        pages: Tensor,
        rows: Tensor,
        kept: Tensor,
        steps: Tensor,
        unit_mask: Tensor,
        num_items_in_batch: Tensor | int,
    ) -> CausalLMOutput:
        """Return the loss of a batch of `PromptCollator`, in nats per token of the references."""
        logits = self.network(
            input_ids=input_ids, position_ids=position_ids, use_cache=False, logits_to_keep=kept
        ).logits
        if logits.shape[1] > len(kept):
            # A network that computes all logits, such as xLSTM.
            steps = kept[steps]
        if len(rows) == len(labels):
            mixtures = logits[rows[:, None], steps]  # [B, T, V]
        else:
            mixtures = self._mixtures(logits, pages, rows, steps)
        loss = token_cross_entropy(
            mixtures, labels, num_items_in_batch, smoothing if self.network.training else 0.0
        )
        return CausalLMOutput(loss=loss)

    def _mixtures(self, logits: Tensor, pages: Tensor, rows: Tensor, steps: Tensor) -> Tensor:
        """Return the mixtures of the pages of each example, logarithms of distributions: [R, K, V] → [B, T, V]."""
        log_probabilities = logits.float().log_softmax(-1)
        sure = self.confidence_function(log_probabilities)  # [R, K]
        numbers = pages.tolist()
        of_pages = torch.split(log_probabilities[rows[:, None], steps], numbers)  # [P, T, V] each
        sure_of_pages = torch.split(sure[rows[:, None], steps], numbers)
        mixtures = []
        for values, weights in zip(of_pages, sure_of_pages, strict=True):
            mixtures.append(mix_pages(values, weights))
        return torch.stack(mixtures)

    def save(self, folder: Path) -> None:
        """Write the adapter, or all weights and the tokenizer, into a folder; also the layer of learned confidences."""
        if isinstance(self.confidence_function, LearnedConfidence):
            self.confidence_function.save(folder)
        if self.engine.config.tune_all:
            # In training they have more bits than those that write.
            weights = self.network.to(self.engine.weight_type).state_dict()
            weights.pop(PAGE_WEIGHT, None)
            self.network.save_pretrained(folder, state_dict=weights)
            self.engine.tokenizer.save_pretrained(folder)
        else:
            # It would ask the hub whether the vocabulary has changed.
            self.network.save_pretrained(folder, save_embedding_layers=False)
            # Peft's page has the path of the checkpoint.
            (folder / "README.md").unlink(missing_ok=True)
