"""What runs cost, before they run: hours, memory, tokens, price. Nothing is trained, and no model is asked.

settings and lengths of texts --estimate_cost--> RunCost --hours--> time on one device

The counts leave out validation and the training of a ranker. How far they are right: docs/how-to/estimate.md.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

from longsumbench.api import Recipe, RunConfig, registry
from longsumbench.cache.artifacts import user_cache
from longsumbench.corpora.reading.load import Texts, load_texts
from longsumbench.errors import UnknownName
from longsumbench.formatting import format_bytes, format_rough_time
from longsumbench.runs.plan import Planned

if TYPE_CHECKING:
    from longsumbench.modeling.flops import ForwardCount  # it needs torch

A100 = 312e12  # FLOP/s of dense bfloat16 products on an A100 with 80 GB
GPUS = {"A100": A100, "H100": 989e12, "L4": 121e12, "T4": 65e12, "V100": 125e12, "RTX3090": 71e12, "RTX4090": 165e12}
UTILIZATION = 0.4  # of that rate
_STEP_SECONDS = 0.001  # of one decoder layer for one token: starting its kernels takes that long on any GPU
_PASSES = 3  # forward, and twice its products backward; with gradient checkpointing one more
_TOKENS_PER_WORD = 1.3  # of subword tokenizers, about
_PROCESS_BYTES = 0.7e9  # of the libraries
_LAYERS = 32  # of a language model, about
_MEASURED_SECONDS, _MEASURED_WIDTH = 0.2, 1_024  # of the products that measure this machine


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
        memory: bytes at the peak of training; of a language model, of its weights.
        read: source tokens of a text.
        tokens: to train on, or of all requests to a language model and its answers.
        price: of these, in US dollars; None without prices.
        elsewhere: True if a server computes, so that the time is unknown.
    """

    training: float = 0.0
    decoding: float = 0.0
    layer_steps: float = 0.0
    minutes: float | None = None
    memory: float = 0.0
    read: float = 0.0
    tokens: float = 0.0
    price: float | None = None
    elsewhere: bool = False

    def hours(self, rate: float = A100) -> float:
        """Return the hours on one device with `rate` FLOP/s, of which it reaches `UTILIZATION`."""
        training, decoding = (flops / (rate * UTILIZATION) for flops in (self.training, self.decoding))
        training = training if self.minutes is None else min(training, 60 * self.minutes)
        return (training + decoding + self.layer_steps * _STEP_SECONDS) / 3_600


def describe_costs(points: Sequence[Planned], gpu: str) -> str:
    """Return a table of what points cost: memory, tokens, time here and on a GPU, price.

    Raises:
        UnknownName: the GPU's rate is unknown.
        SuiteError: the texts or a checkpoint cannot be read.
    """
    if gpu not in GPUS:
        raise UnknownName("GPU", gpu, GPUS)
    lines = []
    for point in {point.identity: point for point in points}.values():
        config, cost = point.config, estimate_point(point.config)
        label = " ".join(filter(None, [config.model.name, point.variant, f"on {config.dataset.name}"]))
        times = [format_rough_time(3_600 * cost.hours(rate)) for rate in (measured_rate(), GPUS[gpu])]
        cells = [f"{cost.read:,.0f}", f"{cost.tokens / 1e6:,.1f}", format_bytes(cost.memory)]
        price = "" if cost.price is None else f"{cost.price:,.2f}"
        computed = cost.training or cost.decoding
        lines.append([label, *(cells if cost.read else ["", "", ""]), *(times if computed else ["", ""]), price])
        lines[-1][4:6] = ["by the server"] * 2 if cost.elsewhere else lines[-1][4:6]
    headings = ["", "reads\n(tokens)", "tokens in all\n(millions)", "memory", "here", f"one {gpu}", "US$"]
    note = "Times are right within a factor of about three, memory within a third: docs/how-to/estimate.md."
    empty = "\nWithout numbers: no network; seconds to minutes." if not all(line[1] for line in lines) else ""
    return f"{tabulate(lines, headings, disable_numparse=True, colalign=['left'] + ['right'] * 6)}\n{note}{empty}"


def estimate_point(config: RunConfig) -> RunCost:
    """Estimate a run on its own texts; `memory` is that of the longest ones.

    Raises:
        SuiteError: the texts or a checkpoint cannot be read.
    """
    texts = load_texts(config.dataset, user_cache())
    mean, longest = (_sizes_of(texts, config, largest) for largest in (False, True))
    cost = estimate_cost(config, mean, texts.multi_document)
    return cost._replace(memory=estimate_cost(config, longest, texts.multi_document).memory)


def _sizes_of(texts: Texts, config: RunConfig, largest: bool) -> TextSizes:
    """Return the mean or the largest sizes of the texts to train on; without any, of those to summarize."""
    test = texts.splits[config.dataset.split]
    train = texts.splits.get("train", test)
    words = (train.source_words, train.reference_words)
    source, target = (max(each) if largest else sum(each) / len(each) for each in words)
    return TextSizes(round(_TOKENS_PER_WORD * source), round(_TOKENS_PER_WORD * target), len(train), len(test))


def estimate_cost(config: RunConfig, sizes: TextSizes, multi_document: bool) -> RunCost:
    """Estimate a run on texts of some size. Baselines without a network cost nothing.

    Beams multiply the whole pass, though the encoder runs once: writing is a small part of a run.
    """
    settings, recipe, decode = config.model, config.train, config.decode
    tested = min(sizes.test, config.dataset.limit or sizes.test, decode.limit or sizes.test) * recipe.keep_best
    if hasattr(settings, "input_price"):  # a language model
        return _cost_of_prompts(config, sizes, tested)
    if "train" not in registry.systems.load(settings.name).decided_by:
        return RunCost()
    count = count_text(settings, sizes, multi_document)
    batch = examples_in_batch(recipe, count.source_tokens, round(sizes.source / _TOKENS_PER_WORD))
    share = recipe.scored_share if recipe.only == "scorer" else 1.0
    examples = recipe.max_steps * recipe.accumulation * batch
    weights, writes = 4.0 * count.parameters, decode.mode == "write"
    steps = decode.max_length or settings.decode_length or sizes.target
    return RunCost(
        training=share * examples * count.flops * (_PASSES + recipe.gradient_checkpointing),
        decoding=tested * count.flops * decode.num_beams,
        layer_steps=tested / decode.batch_size * steps * count.decoder_layers * writes,
        minutes=recipe.max_minutes,
        memory=_PROCESS_BYTES + weights + _training_bytes(config, share * batch * count.saved_bytes, weights),
        read=count.source_tokens,
        tokens=examples * (count.source_tokens + count.target_tokens),
    )


def _training_bytes(config: RunConfig, saved: float, weights: float) -> float:
    from longsumbench.modeling.training.optimization import training_bytes

    return training_bytes(saved, weights, config.train.optimizer) if config.train.max_steps else 0.0


def _cost_of_prompts(config: RunConfig, sizes: TextSizes, tested: int) -> RunCost:
    """Estimate one request per text, or one for every part with `truncate=stages`; prompts are as long as the texts."""
    settings: Any = config.model
    facts = registry.systems.load(settings.name)(settings).facts()
    longest = settings.input_length or (facts.get("context") or sys.maxsize) - settings.decode_length
    prompt = sizes.source if settings.truncate == "stages" else min(sizes.source, longest)
    asked = sizes.target if settings.length == "train" else _TOKENS_PER_WORD * int(settings.length)
    answer, parameters = min(asked, settings.decode_length), facts.get("parameters") or 0
    prices = settings.input_price, settings.output_price
    dollars = None if None in prices else tested * (prompt * prices[0] + answer * prices[1]) / 1e6
    return RunCost(
        decoding=2 * parameters * tested * (prompt + answer),
        layer_steps=tested / config.decode.batch_size * answer * _LAYERS,
        memory=_PROCESS_BYTES + 2 * parameters,
        read=prompt,
        tokens=tested * (prompt + answer),
        price=dollars,
        elsewhere=settings.engine == "api",
    )


def examples_in_batch(recipe: Recipe, source_tokens: int, source_words: int) -> float:
    """Return the mean number of examples in a forward pass of training.

    Args:
        recipe: has the size of a batch.
        source_tokens: tokens that are read of each.
        source_words: words of each source, of which more may be cut.
    """
    if recipe.batch_tokens is not None:
        return max(1.0, recipe.batch_tokens / source_tokens)
    if recipe.batch_words is not None:
        return min(64.0, max(4.0, recipe.batch_words / source_words))
    return recipe.batch_size


@cache
def measured_rate() -> float:
    """Return the FLOP/s of this machine's GPU, in bfloat16, or of its processor: those of large products."""
    import torch

    on_gpu = torch.cuda.is_available()
    device, dtype, width = ("cuda", torch.bfloat16, 8) if on_gpu else ("cpu", torch.float32, 1)
    matrix = torch.ones(width * _MEASURED_WIDTH, width * _MEASURED_WIDTH, device=device, dtype=dtype)
    products, started = 0, 0.0
    while products < 2 or time.perf_counter() - started < _MEASURED_SECONDS:
        started = time.perf_counter() if products == 1 else started  # the first one also loads the library
        matrix.mm(matrix)[0, 0].item()
        products += 1
    return (products - 1) * 2 * len(matrix) ** 3 / (time.perf_counter() - started)


def count_text(settings: Any, sizes: TextSizes, multi_document: bool) -> "ForwardCount":
    """Count a forward pass of a system's network on a text of some size."""
    return _count_once(json.dumps(asdict(settings)), sizes, multi_document)


@lru_cache(maxsize=256)
def _count_once(settings: str, sizes: TextSizes, multi_document: bool) -> "ForwardCount":
    """Count a forward pass; `settings` are the system's as JSON."""
    from longsumbench.modeling.flops import count_forward

    values = json.loads(settings)
    return count_forward(registry.config_of(values["name"])(**values), sizes.source, sizes.target, multi_document)
