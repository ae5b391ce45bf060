"""Tokens and price of runs, before they run. Nothing is trained, and no model is asked.

settings and lengths of texts --estimate_point--> RunCost

The counts leave out validation and the training of a ranker. What else they leave out: docs/how-to/estimate.md.
"""

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

from longsumbench.cache.artifacts import user_cache
from longsumbench.core import RunConfig, Split, System, TrainConfig, deciding_parts, new_system
from longsumbench.corpora.loading.load import load_texts

if TYPE_CHECKING:
    # It composes settings, which scoring does not need.
    from longsumbench.runs.plan import PlannedRun

_WORD_TOKENS = 1.3  # of subword tokenizers, about


class RunCost(NamedTuple):
    """What a run costs.

    Attributes:
        source_length: tokens of a text.
        tokens: to train on, or of all requests to a language model and its answers.
        price: of these, in US dollars; None without prices.
    """

    source_length: float = 0.0
    tokens: float = 0.0
    price: float | None = None


def describe_costs(points: "Sequence[PlannedRun]") -> str:
    """Return a table of what points cost: tokens and price.

    Raises:
        SuiteError: the texts or a checkpoint cannot be read.
    """
    lines = []
    for config, variant in {
        point.settings_hash: (point.config, point.variant) for point in points
    }.values():
        cost = estimate_point(config)
        line = [f"{config.model.name} {variant} on {config.dataset.name}", *[""] * 3]
        if cost.source_length:
            line[1:3] = f"{cost.source_length:,.0f}", f"{cost.tokens / 1e6:,.1f}"
        if cost.price is not None:
            line[3] = f"{cost.price:,.4g}"
        lines.append(line)
    headings = ["", "reads\n(tokens)", "tokens in all\n(millions)", "US$"]
    table = tabulate(lines, headings, disable_numparse=True, colalign=["left"] + ["right"] * 3)
    return f"{table}\nWithout tokens: no network runs here. What counts: docs/how-to/estimate.md"


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
    if config.model.capabilities.prompts:
        return _estimate_prompts(config, source, target, len(test))
    if "train" not in config.model.decided_by:
        return RunCost()
    from longsumbench.modeling.sizes import count_tokens  # it needs torch

    count = count_tokens(config.model, source, target, texts.multi_document)
    recipe = config.train
    batch = examples_in_batch(recipe, count.source, round(source / _WORD_TOKENS))
    batch *= recipe.scored_share if recipe.only == "scorer" else 1.0
    examples = recipe.max_steps * recipe.accumulation * batch
    return RunCost(count.source, examples * (count.source + count.target))


def _estimate_prompts(config: RunConfig, source: int, target: int, num_examples: int) -> RunCost:
    """Estimate the requests to a language model about test examples whose source and target have so many tokens."""
    settings, recipe = config.model, config.train
    context = new_system(settings).metadata().get("context")
    prompt, answer = _estimate_requests(settings, source, target, context)
    limits = config.dataset.limit or num_examples, config.decode.limit or num_examples
    tested = min(num_examples, *limits) * recipe.keep_best
    price = None
    if settings.input_price is not None and settings.output_price is not None:
        dollars = prompt * settings.input_price + answer * settings.output_price
        price = tested * dollars / 1e6
    examples = 0.0
    if "train" in deciding_parts(settings, recipe, config.decode):
        batch = examples_in_batch(recipe, round(prompt), round(source / _WORD_TOKENS))
        examples = recipe.max_steps * recipe.accumulation * batch
    trained = examples * (prompt + target)
    return RunCost(prompt, trained + tested * (prompt + answer), price)


def estimate_tokens(system: System, split: Split, indices: Iterable[int]) -> float:
    """Return the tokens of all prompts and answers about some examples, about; 0 if no language model is asked."""
    if not system.config.capabilities.prompts:
        return 0.0
    total, context = 0.0, system.metadata().get("context")
    for index in indices:
        source = _WORD_TOKENS * split.source_words[index]
        target = _WORD_TOKENS * split.reference_words[index]
        total += sum(_estimate_requests(system.config, source, target, context))
    return total


def _estimate_requests(
    settings: Any, source: float, target: float, context: int | None
) -> tuple[float, float]:
    """Return the tokens of all prompts about a text, and of all answers."""
    if settings.length not in (None, "train"):
        target = _WORD_TOKENS * int(settings.length)
    lengths: tuple[float, float] = settings.request_lengths(source, target, context)
    return lengths


def examples_in_batch(recipe: TrainConfig, source_tokens: int, source_words: int) -> float:
    """Return the mean number of examples in a batch of training; of their words, some may not be read."""
    if recipe.batch_tokens is not None:
        return max(1.0, recipe.batch_tokens / source_tokens)
    if recipe.batch_words is not None:
        return min(64.0, max(4.0, recipe.batch_words / source_words))
    return recipe.batch_size
