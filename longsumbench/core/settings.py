"""A setting describes itself: its dataclass field holds its default, help, unit, source and what it decides.

    num_beams: Beams = setting(1, "beam size; 1: greedy search")
    snippet_length: TokenCount = setting(128, "longest snippet", "tokens", "SEAL, Table 4", decides="units")

The bounds are in the type (`longsumbench.core.bounds`). What a setting decides is one of:

    run        the outcome: another value is another run and another training (default of `setting`)
    units      the outcome, and how texts are tokenized and cut into units (fields of plug-ins without `setting`)
    words      the outcome, and which words count as equal wherever texts are compared by ROUGE
    labels     the outcome, and the proxy labels; weights trained with another value can be loaded
    use        the outcome, by another use of the same weights; weights trained with another value can be loaded
    budget     how much a system is trained
    seed       random draws
    speed      how fast summaries are written, and the last digits of the computation
    summaries  the summaries, but not the training
    examples   which examples are summarized
    texts      the texts of a generated dataset
    measures   which measures a run has in addition to ROUGE
    evidence   what is stored with the summaries
    nothing    none of these
"""

from dataclasses import MISSING, Field, asdict, field, fields
from typing import Any, ClassVar, Literal, Protocol, get_args

_Outcome = Literal[
    "run",
    "units",
    "words",
    "labels",
    "use",
    "budget",
    "seed",
    "speed",
    "summaries",
    "examples",
    "texts",
]
Decides = _Outcome | Literal["measures", "evidence", "nothing"]
# Settings that leave each summary as it is.
SAME_SYSTEM: tuple[Decides, ...] = (
    "examples",
    "measures",
    "evidence",
    "nothing",
)
_OUTCOMES: tuple[Decides, ...] = get_args(_Outcome)
# Settings that leave summaries and ROUGE as they are.
SAME_RUN: tuple[Decides, ...] = (
    "measures",
    "evidence",
    "nothing",
)


class Settings(Protocol):
    """A dataclass of settings, such as `System.Config`."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


def setting(
    default: object,
    help: str,
    unit: str = "",
    source: str = "",
    decides: Decides = "run",
    phrase: str = "",
) -> Any:
    """Return a dataclass field that describes itself.

    Args:
        default: its default; a list or a dictionary is copied.
        help: what it means; of several choices, what each means.
        unit: of a number ("tokens").
        source: where the default comes from ("SEAL, Table 4").
        decides: what changes with its value.
        phrase: how names of runs have it ("prompts of {} tokens"); "{}" if its value alone says what the system is.
    """
    metadata = {
        "help": help,
        "unit": unit,
        "source": source,
        "decides": decides,
        "phrase": phrase,
    }
    if isinstance(default, list | dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def names_deciding(settings: Settings | type[Settings], *outcomes: Decides) -> frozenset[str]:
    """Return the names of the settings of a dataclass, or of an instance, that decide one of `outcomes`."""
    return frozenset(
        item.name for item in fields(settings) if item.metadata.get("decides", "units") in outcomes
    )


def collect_defaults(settings: Settings | type[Settings]) -> dict[str, Any]:
    """Return name → default of the settings that have one."""
    built = {
        item.name: item.default_factory()
        for item in fields(settings)
        if item.default_factory is not MISSING
    }
    return {
        item.name: item.default for item in fields(settings) if item.default is not MISSING
    } | built


def settings_deciding(settings: Settings, *outcomes: Decides) -> dict[str, Any]:
    """Return name → plain value of the settings that decide one of `outcomes` and differ from their default.

    A setting that is added later changes no id that is made of these values. The name of a system is always there.
    """
    names, defaults = names_deciding(settings, *outcomes), collect_defaults(settings)
    return {
        name: value
        for name, value in asdict(settings).items()
        if name in names and (name == "name" or name not in defaults or value != defaults[name])
    }


def outcome_settings(settings: Settings) -> dict[str, Any]:
    """Return the values of `settings_deciding` that decide the outcome of a run; part of its id."""
    return settings_deciding(settings, *_OUTCOMES)
