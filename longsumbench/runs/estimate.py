"""What runs cost, before they run: hours, tokens, price. Nothing is trained, and no model is asked.

settings and lengths of texts --estimate_cost--> RunCost --hours--> time on one device

The counts leave out validation and the training of a ranker. How far they are right: docs/how-to/estimate.md.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import Recipe, RunConfig, deciding_parts, new_system, registry
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import UnknownName
from longsumbench.formatting import format_rough_time
from longsumbench.runs.plan import Point

if TYPE_CHECKING:
    from longsumbench.modeling.flops import ForwardCount  # it needs torch

A100 = 312e12  # FLOP/s of dense bfloat16 products on an A100 with 80 GB
GPUS = {
    "A100": A100,
    "H100": 989e12,
    "L4": 121e12,
    "T4": 65e12,
    "V100": 125e12,
    "RTX3090": 71e12,
    "RTX4090": 165e12,
}
UTILIZATION = 0.4  # of that rate
_STEP_SECONDS = (
    0.001  # of one decoder layer for one token: starting its kernels takes that long on any GPU
)
_PASSES = 3  # forward, and twice its products backward; with gradient checkpointing one more
_WORD_TOKENS = 1.3  # of subword tokenizers, about
_LAYERS = 32  # of a language model, about
_PRODUCTS = 10  # that measure the speed of this machine


class TextSizes(NamedTuple):
    """Sizes of a dataset: tokens of a source and of a target, and examples to train and to test."""

    source: int
    target: int
    train: int
    test: int


class RunCost(NamedTuple):
    """What a run costs.

    Attributes:
        training: FLOPs of all optimizer steps.
        decoding: FLOPs of writing all summaries.
        layer_steps: decoder layers × tokens that are computed one after the other.
        minutes: limit of the training's time; None: no limit.
        source_length: tokens of a text.
        tokens: to train on, or of all requests to a language model and its answers.
        price: of these, in US dollars; None without prices.
    """

    training: float = 0.0
    decoding: float = 0.0
    layer_steps: float = 0.0
    minutes: float | None = None
    source_length: float = 0.0
    tokens: float = 0.0
    price: float | None = None

    def hours(self, rate: float = A100) -> float:
        """Return the hours on one device with `rate` FLOP/s, of which it reaches `UTILIZATION`."""
        training, decoding = (
            flops / (rate * UTILIZATION) for flops in (self.training, self.decoding)
        )
        training = training if self.minutes is None else min(training, 60 * self.minutes)
        return (training + decoding + self.layer_steps * _STEP_SECONDS) / 3_600


def describe_costs(points: Sequence[Point], gpu: str | None) -> str:
    """Return a table of what points cost: tokens, time here and on a GPU (None: an A100), price.

    Raises:
        UnknownName: the GPU's rate is unknown.
        SuiteError: the texts or a checkpoint cannot be read.
    """
    gpu = gpu or "A100"
    if gpu not in GPUS:
        raise UnknownName("GPU", gpu, GPUS)
    lines = []
    for config, variant in {
        point.identity: (point.config, point.variant) for point in points
    }.values():
        cost = estimate_point(config)
        line = [f"{config.model.name} {variant} on {config.dataset.name}", *[""] * 5]
        if cost.source_length:
            line[1:3] = f"{cost.source_length:,.0f}", f"{cost.tokens / 1e6:,.1f}"
        if cost.training or cost.decoding:
            seconds = [3_600 * cost.hours(rate) for rate in (measured_rate(), GPUS[gpu])]
            line[3:5] = [format_rough_time(time) if time >= 60 else "< 1 min" for time in seconds]
        if cost.price is not None:
            line[5] = f"{cost.price:,.4g}"
        lines.append(line)
    headings = ["", "reads\n(tokens)", "tokens in all\n(millions)", "here", f"one {gpu}", "US$"]
    table = tabulate(lines, headings, disable_numparse=True, colalign=["left"] + ["right"] * 5)
    return f"{table}\nWithout a time: no network runs here. How far the others are right: docs/how-to/estimate.md"


def estimate_point(config: RunConfig) -> RunCost:
    """Estimate a run on its own texts, of mean length.

    Raises:
        SuiteError: the texts or a checkpoint cannot be read.
    """
    texts = load_texts(config.dataset, user_cache())
    test = texts.splits[config.dataset.split]
    train = texts.splits.get("train", test)
    source = round(_WORD_TOKENS * fmean(train.source_words))
    target = round(_WORD_TOKENS * fmean(train.reference_words))
    return estimate_cost(
        config, TextSizes(source, target, len(train), len(test)), texts.multi_document
    )


def estimate_cost(config: RunConfig, sizes: TextSizes, multi_document: bool) -> RunCost:
    """Estimate a run on texts of some size. Baselines without a network cost nothing.

    Beams multiply the whole pass, though the encoder runs once: writing is a small part of a run.
    """
    settings, recipe, decode = config.model, config.train, config.decode
    tested = (
        min(sizes.test, config.dataset.limit or sizes.test, decode.limit or sizes.test)
        * recipe.keep_best
    )
    if settings.capabilities.prompts:
        return _cost_of_prompts(config, sizes, tested)
    if "train" not in settings.decided_by:
        return RunCost()
    count = count_text(settings, sizes, multi_document)
    batch = examples_in_batch(recipe, count.source_tokens, round(sizes.source / _WORD_TOKENS))
    batch *= recipe.scored_share if recipe.only == "scorer" else 1.0
    examples = recipe.max_steps * recipe.accumulation * batch
    steps = (decode.max_length or settings.decode_length or sizes.target) * (decode.mode == "write")
    return RunCost(
        training=examples * count.flops * (_PASSES + bool(recipe.gradient_checkpointing)),
        decoding=tested * count.flops * decode.num_beams,
        layer_steps=tested / decode.batch_size * steps * count.decoder_layers,
        minutes=recipe.max_minutes,
        source_length=count.source_tokens,
        tokens=examples * (count.source_tokens + count.target_tokens),
    )


def _cost_of_prompts(config: RunConfig, sizes: TextSizes, tested: int) -> RunCost:
    """Estimate the requests to a language model; prompts are as long as the texts, up to the model's limit."""
    settings, target = config.model, float(sizes.target)
    if settings.length not in (None, "train"):
        target = _WORD_TOKENS * int(settings.length)
    facts = new_system(settings).facts()
    prompt, answer = settings.request_lengths(sizes.source, target, facts.get("context"))
    parameters = facts.get("parameters") or 0
    price = None
    if settings.input_price is not None and settings.output_price is not None:
        dollars = prompt * settings.input_price + answer * settings.output_price
        price = tested * dollars / 1e6
    recipe = config.train
    examples = 0.0
    if "train" in deciding_parts(settings, recipe, config.decode):
        batch = examples_in_batch(recipe, round(prompt), round(sizes.source / _WORD_TOKENS))
        examples = recipe.max_steps * recipe.accumulation * batch
    trained = examples * (prompt + sizes.target)
    return RunCost(
        training=2 * parameters * trained * (_PASSES + bool(recipe.gradient_checkpointing)),
        minutes=recipe.max_minutes,
        decoding=2 * parameters * tested * (prompt + answer),
        layer_steps=tested / config.decode.batch_size * answer * _LAYERS,
        source_length=prompt,
        tokens=trained + tested * (prompt + answer),
        price=price,
    )


def examples_in_batch(recipe: Recipe, source_tokens: int, source_words: int) -> float:
    """Return the mean number of examples in a forward pass of training; of their words, some may not be read."""
    if recipe.batch_tokens is not None:
        return max(1.0, recipe.batch_tokens / source_tokens)
    if recipe.batch_words is not None:
        return min(64.0, max(4.0, recipe.batch_words / source_words))
    return recipe.batch_size


@cache
def measured_rate() -> float:
    """Return the FLOP/s of large products on this machine: on its GPU in bfloat16, or else on its processor."""
    import torch

    on_gpu = torch.cuda.is_available()
    matrix = (
        torch.ones(8_192, 8_192, device="cuda").bfloat16() if on_gpu else torch.ones(1_024, 1_024)
    )
    matrix.mm(matrix)[0, 0].item()  # loads the library
    started = time.perf_counter()
    for _ in range(_PRODUCTS):
        matrix.mm(matrix)[0, 0].item()
    return _PRODUCTS * 2 * len(matrix) ** 3 / (time.perf_counter() - started)


def count_text(settings: Any, sizes: TextSizes, multi_document: bool) -> "ForwardCount":
    """Count a forward pass of a system's network on a text of some size."""
    return _count_once(json.dumps(asdict(settings)), sizes, multi_document)


@lru_cache(maxsize=256)
def _count_once(settings: str, sizes: TextSizes, multi_document: bool) -> "ForwardCount":
    from longsumbench.modeling.flops import count_forward

    values = json.loads(settings)
    return count_forward(
        registry.config_of(values["name"])(**values), sizes.source, sizes.target, multi_document
    )
