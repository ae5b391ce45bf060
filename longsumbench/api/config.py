"""What can be set, as dataclasses: a field's default stands here once, with its unit and its source.

YAML files under `conf/` list only departures from these defaults. `resolve_config` merges them into the dataclasses.
Before any work, it refuses unknown keys, wrong types and values that are not allowed.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from functools import partial
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from longsumbench.api import registry
from longsumbench.api.bounds import (
    BatchSize,
    Between,
    Count,
    Device,
    Fraction,
    FractionBelowOne,
    Minutes,
    NonNegative,
    OneOf,
    Positive,
    Processes,
    Resamples,
    Seed,
    Text,
    Weight,
    check_settings,
    shorten,
)
from longsumbench.errors import UsageError, did_you_mean

# The tokenizers that are trained on the training split, and the fewest entries they can have, four special ones
# included. trained: byte-level BPE, which below 256 bytes cannot spell every text; words: word level, a word or more.
TRAINED_TOKENIZERS = {"trained": 260, "words": 5}
# Settings of train, decode and score that came later, with what was done before: see `without_later_settings`.
LATER_SETTINGS = {
    "wordnet": None,
    "tokenizer": "default",
    "references": None,
    "empty_references": "skip",
    "resampling": "percentile",
    "batch_tokens": None,
    "length_norm": "power",
    "coverage": "none",
    "coverage_penalty": 5.0,
    "keep_best": 1,
    "average_weights": 1,
}
# Of dataset: those that only generated datasets know.
GENERATED_SETTINGS = ("document_length", "train_length", "sources", "redundancy", "contradiction", "agenda")


RankerName = Annotated[str, OneOf("none", more=lambda: registry.rankers.targets())]  # by what a system orders its units
SplitName = Annotated[str, OneOf("train", "validation", "test")]
Length = Annotated[int, Between(32, 10**7)]  # tokens of a generated document
Agenda = Annotated[str, OneOf("fixed", "told", "asked")]
Optimizer = Annotated[str, OneOf("adafactor", "adam", "adagrad")]
ScheduleName = Annotated[str, OneOf("sqrt_decay", "noam", "pagesum", "linear", "constant", "hold")]
_Budget = Annotated[int, Between(0, 10**15)]  # tokens
Best = Annotated[int, Between(1, 1_000)]  # checkpoints
Helpers = Annotated[int, Between(0, 1_024)]
Timeout = Annotated[float, Between(0, 10**7, open_low=True)]  # minutes, up to 19 years
Beams = Annotated[int, Between(1, 1_000)]
Exponent = Annotated[float, Between(-20, 20)]  # of a length
_Norm = Annotated[str, OneOf("power", "wu")]
Coverage = Annotated[str, OneOf("none", "summary", "wu")]
TokenLimit = Annotated[int, Between(0, 10**7)]
_Kept = Annotated[str, OneOf("all", "none", number_of="examples", least=0)]
Mode = Annotated[str, OneOf("google", "perl")]
_Words = Annotated[str, OneOf("default", "unicode")]
Rule = Annotated[str, OneOf("best", "jackknife")]
Empty = Annotated[str, OneOf("skip", "zero")]
Resampling = Annotated[str, OneOf("percentile", "perl")]


@dataclass
class DatasetSettings:
    """Which texts, and which of them."""

    name: Text = "pydoc"
    path: Text | None = None  # folder or file of the original release, or of jsonl; None: the hub, or built in
    tokenizer: Text | None = None  # of releases that hold numbers instead of text (wikisum): their SentencePiece model
    split: SplitName = "test"  # the split that is summarized and scored
    limit: Count | None = None  # the most examples read from each split; None: all
    strict: bool | None = None  # False: unusable rows are left out, counted; True: splits that overlap are errors, too
    workers: Processes | None = None  # processes that read a large dataset; None: one a core
    split_by_hash: bool = False  # jsonl of one file: deal it into train, validation and test (80/10/10) by id
    document_length: Length | None = None  # tokens of a tested document, of generated datasets; None: as they say
    train_length: Length | None = None  # tokens of a training or validation document; None: as long as those tested
    sources: Count | None = None  # documents of a generated example; None: as the dataset says, as for all below
    redundancy: Fraction | None = None  # share of the planted facts that are stated twice, in other words
    contradiction: Fraction | None = None  # share of the planted facts that overrule what was stated before
    agenda: Agenda | None = None  # what a summary is about: fixed | told (drawn, in the text) | asked (drawn, as query)

    def __post_init__(self) -> None:
        check_settings(self, "dataset.")


@dataclass
class Recipe:
    """How a system is trained. Defaults are SEAL's where it states them (papers: SEAL §5)."""

    optimizer: Optimizer = "adafactor"  # adafactor (with parameter scaling, as its paper) | adam | adagrad
    learning_rate: Positive = 0.01  # peak of sqrt_decay, linear, constant and hold; the factor of noam and pagesum
    schedule: ScheduleName = (
        "sqrt_decay"  # sqrt_decay | noam | pagesum | linear | constant | hold (falls in the second half)
    )
    warmup_steps: NonNegative = 10_000  # optimizer steps; the step from which sqrt_decay falls
    adam_beta1: FractionBelowOne = 0.9  # decay of the mean gradient
    adam_beta2: FractionBelowOne = 0.999  # decay of the mean squared gradient
    adam_epsilon: Positive = 1e-8  # added to Adam's denominator
    weight_decay: Weight = 0.0  # pull towards zero, per unit of learning rate
    max_grad_norm: Weight = 0.0  # gradients are clipped to this norm; 0: not at all
    label_smoothing: FractionBelowOne = 0.0  # ε, spread as ε/V over every column
    batch_size: BatchSize = 16  # examples a forward pass
    batch_words: Count | None = None  # source words a forward pass, 4 to 64 examples; training then has no batch_size
    batch_tokens: Count | None = None  # source tokens a forward pass, padding counted; training then has no batch_size
    unlock: FractionBelowOne = (
        0.0  # share of max_steps over which longer and longer examples are let in; 0: all at once
    )
    accumulation: Count = 16  # forward passes an optimizer step
    max_steps: NonNegative = 200_000  # optimizer steps; the budget ends with whichever of the three comes first
    max_tokens: _Budget | None = None  # source + target tokens the model was trained on
    max_minutes: Minutes | None = None  # of training, validation not counted; makes a run not repeatable
    eval_steps: Count = 1_000  # optimizer steps between validations (and checkpoints)
    eval_examples: Count | None = 1_000  # the most validation examples looked at; None: all
    patience: Count | None = None  # validations without a better one before training ends; None: never
    keep_best: Best = 1  # checkpoints, of the lowest validation losses, that all summarize: their scores are averaged
    average_weights: Best = 1  # checkpoints, of the lowest validation losses, whose weights are averaged: one model
    bf16: bool | None = None  # None: on GPUs that have it; the CPU computes in float32 unless asked
    gradient_checkpointing: bool = False  # computes activations twice to save memory
    workers: Helpers = 0  # processes that collate batches beside training
    seed: Seed = 1  # follows the top-level seed
    device: Device = "auto"  # follows the top-level device

    def __post_init__(self) -> None:
        check_settings(self, "train.")
        if self.batch_tokens is not None and (self.batch_words is not None or self.unlock):
            other = "unlock=0" if self.batch_words is None else "batch_words=null"
            raise UsageError(
                f"train.batch_tokens={self.batch_tokens} goes by what is read, train.batch_words and train.unlock"
                f" by the texts' words: choose train.batch_tokens=null or train.{other}"
            )
        if self.keep_best > 1 and self.average_weights > 1:
            both = f"train.keep_best={self.keep_best} and train.average_weights={self.average_weights}"
            raise UsageError(f"{both}: one averages scores, the other weights; set one of them to 1")


@dataclass
class Decoding:
    """How summaries are written. Defaults are SEAL's greedy search (papers: SEAL §5)."""

    num_beams: Beams = 1  # hypotheses searched side by side; 1: greedy
    length_penalty: Exponent = 1.0  # exponent of the length that divides a hypothesis's log-probability
    length_norm: _Norm = "power"  # of beams: power: |Y|^length_penalty | wu: ((5+|Y|)/6)^length_penalty (Wu 2016)
    coverage: Coverage = (
        "none"  # of beams: none | summary (read twice costs) | wu (not read costs): docs/how-to/decode.md
    )
    coverage_penalty: Weight = 5.0  # β of coverage
    min_length: TokenLimit = 0  # tokens
    max_length: TokenLimit | None = None  # tokens; None: the system's own limit
    no_repeat_ngram: TokenLimit = 0  # n-grams of this size never repeat; 0: they may
    batch_size: BatchSize = 16  # examples decoded together
    limit: Count | None = None  # the first examples of the split; None: all
    evidence: _Kept = "20"  # all | a number | none: of how many examples, from the first, what was looked at is kept
    reference_evidence: bool = False  # also what is looked at for the reference, fed token by token (PageSum, Figure 3)
    seed: Seed = 1  # follows the top-level seed
    device: Device = "auto"  # follows the top-level device

    def __post_init__(self) -> None:
        check_settings(self, "decode.")
        if self.coverage != "none" and self.num_beams == 1:
            told = "choose decode.num_beams=4 or so, or decode.coverage=none"
            raise UsageError(f"decode.coverage={self.coverage} ranks beams, and decode.num_beams=1 has none: {told}")
        if self.max_length is not None and self.max_length < max(1, self.min_length):
            raise UsageError(f"decode.max_length={self.max_length} is below decode.min_length={self.min_length}")


@dataclass
class Scoring:
    """How summaries are scored (`score.*`)."""

    mode: Mode = "google"  # google: equals rouge_score 0.1.2; perl: ROUGE-1.5.5, with one reference
    stem: bool = True  # Porter stemming of words longer than three letters
    wordnet: Text | None = None  # folder of WordNet's exception lists, for perl's stemmer; "none": without; None: found
    tokenizer: _Words = "default"  # default: a–z and 0–9, as ROUGE has it; unicode: letters, digits of every script
    references: Rule | None = None  # of several: best (F) | jackknife; None: best in google, jackknife in perl mode
    empty_references: Empty = "skip"  # examples whose references hold no word: skip | zero (score 0, as in rouge_score)
    resamples: Resamples = 1_000  # of the bootstrap behind the 95 % interval
    resampling: Resampling = "percentile"  # of that interval; perl (perl mode alone): as ROUGE-1.5.5 draws it
    metrics: list[Text] = field(default_factory=list)  # what is measured beside ROUGE: see longsumbench list metrics
    coherence_model: Text | None = None  # of coherence: a next-sentence BERT, its folder or its name on the hub
    bertscore_model: Text | None = None  # of bertscore: an encoder, its folder or its name on the hub
    device: Device = "auto"  # follows the top-level device

    def __post_init__(self) -> None:
        check_settings(self, "score.")
        if self.resampling == "perl" and self.mode != "perl":
            raise UsageError("score.resampling=perl goes with score.mode=perl: they are ROUGE-1.5.5's own intervals")


@dataclass
class RunConfig:
    """One point: everything that is settled before the first step.

    `model` is an instance of the system's own `Config`.
    """

    model: Any
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    train: Recipe = field(default_factory=Recipe)
    decode: Decoding = field(default_factory=Decoding)
    score: Scoring = field(default_factory=Scoring)
    scale: Text = "paper"  # the name of the sizes that were chosen; every record says it
    seed: Seed = 1
    device: Device = "auto"  # auto: a GPU when there is one; cpu; cuda
    results_dir: Text = "results"
    overwrite: bool = False  # True: a finished run is thrown away and done again
    baselines: bool = True  # lead, random and oracle are scored with the first run on a dataset
    timeout_minutes: Timeout | None = None  # a point of a sweep that takes longer is stopped, and failed; None: never

    def __post_init__(self) -> None:
        check_settings(self, "")


SECTIONS = {"dataset": DatasetSettings, "train": Recipe, "decode": Decoding, "score": Scoring}


def resolve_config(composed: DictConfig, model_config: type) -> RunConfig:
    """Lay a composed configuration over the dataclasses.

    Args:
        composed: what Hydra composed from the YAML files and the command line: departures only.
        model_config: the system's own `Config` dataclass.

    Raises:
        UsageError: an unknown key, a wrong type or a value that is not allowed, with its full key.
    """
    try:
        plain = OmegaConf.to_container(composed, resolve=True)
    except OmegaConfBaseException as error:
        raise UsageError(f"{error.full_key}: {str(error).splitlines()[0]}") from error
    assert isinstance(plain, dict)
    sections = {"model": model_config, **SECTIONS}
    scalars = {item.name for item in fields(RunConfig)} - set(sections)
    for key in plain:
        if key not in sections and key not in scalars:
            raise UsageError(f"unknown setting '{key!s}'{did_you_mean(str(key), [*sections, *scalars])}")
    top = {str(key): value for key, value in plain.items() if key in scalars}
    build_settings(
        RunConfig, top, prefix="", given=dict.fromkeys(sections)
    )  # before the sections that inherit some of them
    shared: dict[str, Any] = {name: top[name] for name in ("seed", "device") if name in top}
    settled = {}
    for name, schema in sections.items():
        section = plain.get(name) or {}
        if not isinstance(section, dict):
            raise UsageError(f"{name}={section!r} is not a group of settings; set {name}.<setting>=<value>")
        given = {str(key): value for key, value in section.items()}
        known = {item.name for item in fields(schema)}
        inherited = {key: value for key, value in shared.items() if key in known and name != "model"}
        settled[name] = build_settings(schema, {**inherited, **given}, prefix=f"{name}.")
    config: RunConfig = build_settings(RunConfig, top, prefix="", given=settled)
    return config


def without_later_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without those that came later and say what was done before, so that earlier runs keep ids."""
    return {key: value for key, value in settings.items() if key not in LATER_SETTINGS or value != LATER_SETTINGS[key]}


def check_lengths(model: Any, decode: Decoding) -> None:
    """Check that a system is not asked for longer outputs than it can write.

    Args:
        model: the system's settings.
        decode: how it is to write.

    Raises:
        UsageError: it is; they would be cut at its own limit.
    """
    limit = getattr(model, "decode_length", None)
    for name in ("min_length", "max_length"):
        asked = getattr(decode, name)
        if limit is not None and asked is not None and asked > limit:
            raise UsageError(f"decode.{name}={asked} is above model.decode_length={limit}, the longest it can write")


def build_settings(schema: type, values: Mapping[str, Any], prefix: str, given: Mapping[str, Any] | None = None) -> Any:
    """Build the dataclass `schema` from plain values, checking names and types.

    Args:
        schema: a dataclass.
        values: field name → plain value, for the fields that depart from their defaults.
        prefix: what stands before a field's name on the command line ("train.").
        given: fields that are already built and not checked again.

    Raises:
        UsageError: an unknown name, a wrong type, or a number that is not finite.
    """
    given = given or {}
    hints = get_type_hints(schema)
    types = {item.name: hints[item.name] for item in fields(schema) if item.name not in given}
    for key in values:
        if key not in types:
            near = did_you_mean(key, types)
            place = prefix.rstrip(".") or "the top level"
            raise UsageError(f"unknown setting '{prefix}{key}'{near}; {place} has: {', '.join(types)}")
        if values[key] == "???":
            raise UsageError(f"{prefix}{key} has no default: it must be given")
    checked = OmegaConf.structured(_typed(schema, types))
    for key, value in values.items():
        try:
            checked[key] = _listed(value) if _is_list(types[key]) else value
        except OmegaConfBaseException as error:
            form = ": write a list in brackets" if _is_list(types[key]) else ""
            raise UsageError(
                f"{prefix}{key}={shorten(repr(value))} is not of type {_type_name(types[key])}{form}"
            ) from error
    chosen = {key: OmegaConf.to_container(checked)[key] for key in values}  # type: ignore[index, call-overload]
    for key, value in chosen.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise UsageError(f"{prefix}{key}={value} is not a finite number")
    return schema(**chosen, **given)


def _listed(value: Any) -> Any:
    """Return a list that was quoted on the command line, "[1,2]", as the list it means; anything else as it is."""
    if not (isinstance(value, str) and value.startswith("[") and value.endswith("]")):
        return value
    return [_number(item.strip()) for item in value[1:-1].split(",") if item.strip()]


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text


def _is_list(kind: Any) -> bool:
    return list in (get_origin(one) for one in (kind, *get_args(kind)))


def _typed(schema: type, types: Mapping[str, Any]) -> type:
    """A copy of the dataclass with types and defaults only, so that OmegaConf never runs its checks half-built."""
    columns = []
    for item in fields(schema):
        if item.name not in types:
            continue
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        columns.append((item.name, types[item.name], field(default_factory=partial(_same, default))))
    return make_dataclass(schema.__name__, columns)


def _same(value: Any) -> Any:
    return value


def _type_name(kind: Any) -> str:
    if type(None) in get_args(kind):
        return " | ".join(_type_name(one) for one in get_args(kind))
    return {type(None): "None"}.get(kind) or (str(kind) if get_args(kind) else kind.__name__)


def check_network(width: int, heads: int, tokenizer: str, vocabulary_size: int) -> None:
    """Check the settings of a network that starts at random, with positions that start as sinusoids.

    Args:
        width: d (`model.d_model`).
        heads: of every attention (`model.num_heads`).
        tokenizer: one of `TRAINED_TOKENIZERS`, or one that is there.
        vocabulary_size: of a trained one.

    Raises:
        UsageError: they cannot be meant.
    """
    if tokenizer in TRAINED_TOKENIZERS:
        check_minimum("model.vocabulary_size", vocabulary_size, TRAINED_TOKENIZERS[tokenizer])
    if width % heads:
        raise UsageError(f"model.d_model={width} cannot be shared equally by model.num_heads={heads}")
    if width % 2:
        raise UsageError(f"model.d_model={width} is odd: half of it holds the sines of the positions, half the cosines")


def check_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Check that a setting is one of its choices.

    Raises:
        UsageError: it is not; the message lists them and names the nearest.
    """
    if value not in choices:
        raise UsageError(f"{key}={value}{did_you_mean(str(value), choices)}; allowed: {', '.join(choices)}")


def check_minimum(key: str, value: float | None, least: float) -> None:
    """Check that a number, if given, is not below `least`.

    Raises:
        UsageError: it is.
    """
    if value is not None and not value >= least:  # so that "not a number" is refused, too
        raise UsageError(f"{key}={value} is below {least}")
