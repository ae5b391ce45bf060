"""The language models that `recommend` compares: their ways of reading, and what these cost, before they start.

checkpoint or address --list_readings--> settings of each way --> launches --find_affordable--> how many texts
"""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from longsumbench.core import Example, new_system, registry
from longsumbench.errors import SuiteError, UsageError
from longsumbench.formatting import format_count, format_duration
from longsumbench.runs.estimate import estimate_point
from longsumbench.runs.overrides import format_overrides
from longsumbench.sweeps.run import plan_launch
from longsumbench.sweeps.sweep import Launch

_log = logging.getLogger(__name__)

# Of any text, the cheapest first.
_READINGS = (
    {"model.reading": "beginning"},
    {"model.reading": "ends"},
    {"model.reading": "select"},
    {"model.reading": "stages"},
    {"model.reading": "stages", "model.merge_with": "passages"},
    {"model.reading": "refine"},
)
_MEASURED = 4  # texts; batches and servers are faster than one request alone
_PROMPT_LENGTH, _ANSWER_LENGTH = 1_500, 512  # tokens
_OF_SMALL_MODELS = {"decode.no_repeat_ngram": 4}  # they repeat themselves; servers lack the setting


def list_readings(checkpoint: str, words: Sequence[str]) -> list[list[str]]:
    """Return the settings of a language model, as it is, for each way of reading that its context may allow.

    Args:
        checkpoint: a GGUF file, a folder, a name on the hub, or the address of a server.
        words: `model.*` settings as typed, which go first.

    Raises:
        SuiteError: a server cannot be reached, or does not say what is needed.
    """
    overrides = dict(word.partition("=")[::2] for word in words)
    model: dict[str, Any] = {"model.checkpoint": checkpoint, **_OF_SMALL_MODELS, "context": None}
    if "://" in checkpoint:
        model = registry.engines.load("api").find_settings(checkpoint, overrides)
    context = model.pop("context")
    settings = {"model": "prompt", "model.decode_length": _ANSWER_LENGTH, **model, **overrides}
    room = context - int(settings["model.decode_length"]) if context else None
    prompt_length = min(_PROMPT_LENGTH, room or _PROMPT_LENGTH)
    ways = [{"model.input_length": prompt_length, **settings, **reading} for reading in _READINGS]
    if room or "model.engine" not in settings:
        ways.append({**settings, "model.input_length": room, "model.reading": "whole"})
    return [format_overrides(way) for way in ways]


def fits(launch: Launch, examples: Iterable[Example]) -> bool:
    """Return whether the prompts of a launch have room for all texts; say so if they have not."""
    model: Any = launch.points[0].config.model
    try:
        new_system(model).check_examples(examples)
    except UsageError as problem:
        _log.info(f"Without {_name_way(launch)}: {problem}")
        return False
    return True


def _name_way(launch: Launch) -> str:
    model: Any = launch.points[0].config.model
    return f"{model.reading} with {model.merge_with}" if model.merge_with else str(model.reading)


class Way(NamedTuple):
    """What a way of reading costs with all texts.

    Attributes:
        launch: index of its launch.
        seconds, tokens, price: estimated; the price in US dollars.
    """

    launch: int
    seconds: float
    tokens: float
    price: float


class Affordable(NamedTuple):
    """What language models can do in some time.

    Attributes:
        number: of texts.
        seconds: index of a launch → about what it takes with so many texts.
    """

    number: int
    seconds: Mapping[int, float]


def find_affordable(
    launches: Sequence[Launch], number: int, minutes: float, fewest: int
) -> Affordable:
    """Return how many of some texts fit into the time, and which ways of reading; say what they cost.

    To measure the speed of each model, its first way of reading summarizes four texts. The slowest ways are left out until
    `fewest` texts fit. 0 minutes are no limit.
    """
    ways = _estimate_ways(launches)
    available = 60 * minutes or math.inf
    slow = []
    while len(ways) > 1 and _count_fitting(ways, number, available) < min(number, fewest):
        slow.append(max(ways, key=lambda way: (way.seconds, way.launch)))
        ways.remove(slow[-1])
    num_texts = max(1, _count_fitting(ways, number, available))
    share = num_texts / number
    seconds, tokens, price = (share * sum(values) for values in list(zip(*ways, strict=True))[1:])
    dollars = f", US$ {price:,.2g}" if price else ""
    line = (
        f"{format_count(len(ways), 'way')} of reading {format_count(num_texts, 'text')}: {tokens / 1e6:,.2g} million tokens,"
        f" about {format_duration(seconds)}{dollars}."
    )
    if num_texts < number:
        line += f" Of {number} texts, so many fit into --minutes {minutes:g}"
        names = ", ".join(_name_way(launches[way.launch]) for way in slow)
        line += f", without {names}." if names else "."
    _log.info(line)
    return Affordable(num_texts, {way.launch: share * way.seconds for way in ways})


def _count_fitting(ways: Sequence[Way], number: int, available: float) -> int:
    seconds = sum(way.seconds for way in ways)
    return number if seconds <= available else int(number * available / seconds)


def _estimate_ways(launches: Sequence[Launch]) -> list[Way]:
    speeds: dict[tuple[str, str], float] = {}
    ways = []
    for index, launch in enumerate(launches):
        config = launch.points[0].config
        model: Any = config.model
        name = str(model.checkpoint), str(model.base_url)
        if name not in speeds:
            speeds[name] = _measure_speed(launch)
        cost = estimate_point(config)
        ways.append(Way(index, cost.tokens * speeds[name], cost.tokens, cost.price or 0.0))
    return ways


def set_words(words: Iterable[str], *chosen: str) -> list[str]:
    """Return settings with some of them chosen anew."""
    names = {word.partition("=")[0] for word in chosen}
    return [*(word for word in words if word.partition("=")[0] not in names), *chosen]


def _measure_speed(launch: Launch) -> float:
    """Return the seconds for each token that is estimated; 0 if the model fails, which its runs will say."""
    with TemporaryDirectory() as folder:
        words = set_words(launch.words, f"decode.limit={_MEASURED}", f"results_dir={folder}")
        try:
            measured = plan_launch(words, False, None, launch.command)
            measured.start()
        except SuiteError:
            return 0.0
        (run,) = measured.finished
        return run.costs.timings.summarize / estimate_point(measured.points[0].config).tokens
