"""All settings as dataclasses: each default is defined here once, with its unit and its source.

YAML files under `conf/` contain only departures from these defaults. `resolve_config` merges them into the dataclasses
and raises an error for unknown keys, wrong types and invalid values.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from functools import cache, partial
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

# Tokenizers trained on the training split → their smallest vocabulary, with four special entries.
# trained: byte-level BPE, which needs all 256 bytes; words: word level, which needs one word.
TRAINED_TOKENIZERS = {"trained": 260, "words": 5}
# Settings of train, decode and score added after the first release → the earlier behaviour.
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
# Settings of `dataset` for generated datasets only.
GENERATED_SETTINGS = ("document_length", "train_length", "sources", "redundancy", "contradiction", "agenda")


RankerName = Annotated[str, OneOf("none", more=lambda: registry.rankers.targets())]  # orders a system's units
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
    """Which dataset, and which of its examples."""

    name: Text = "pydoc"
    path: Text | None = None  # file or folder of the original release or of jsonl; None: download or built-in
    tokenizer: Text | None = None  # SentencePiece model of a release that has token ids instead of text (wikisum)
    split: SplitName = "test"  # the split that is summarized and scored
    limit: Count | None = None  # maximum number of examples of each split; None: all
    strict: bool | None = None  # False: skip and count unusable rows; True: overlapping splits are an error too
    workers: Processes | None = None  # processes that read a large dataset; None: one per core
    split_by_hash: bool = False  # split a single jsonl file into train, validation and test (80/10/10) by id
    document_length: Length | None = None  # generated datasets: tokens of a test document; None: the dataset's default
    train_length: Length | None = None  # generated: tokens of a training or validation document; None: as for test
    sources: Count | None = None  # generated datasets: documents per example; None: the dataset's default
    redundancy: Fraction | None = None  # generated datasets: share of facts that are stated twice, in other words
    contradiction: Fraction | None = None  # generated datasets: share of facts that correct an earlier statement
    agenda: Agenda | None = None  # generated: topics are fixed | told (random, in the text) | asked (random, as query)

    def __post_init__(self) -> None:
        check_settings(self, "dataset.")


@dataclass
class Recipe:
    """How a system is trained. Defaults are those of SEAL §5, as far as it states them."""

    optimizer: Optimizer = "adafactor"  # adafactor (with parameter scaling, as in its paper) | adam | adagrad
    learning_rate: Positive = 0.01  # peak of sqrt_decay, linear, constant and hold; factor of noam and pagesum
    schedule: ScheduleName = "sqrt_decay"  # sqrt_decay | noam | pagesum | linear | constant | hold (decays from half)
    warmup_steps: NonNegative = 10_000  # optimizer steps; sqrt_decay decays after them
    adam_beta1: FractionBelowOne = 0.9  # decay of the mean gradient
    adam_beta2: FractionBelowOne = 0.999  # decay of the mean squared gradient
    adam_epsilon: Positive = 1e-8  # added to Adam's denominator
    weight_decay: Weight = 0.0  # weight decay, per unit of learning rate
    max_grad_norm: Weight = 0.0  # gradients are clipped to this norm; 0: no clipping
    label_smoothing: FractionBelowOne = 0.0  # ε, spread as ε/V over the vocabulary
    batch_size: BatchSize = 16  # examples per forward pass
    batch_words: Count | None = None  # source words per forward pass (4 to 64 examples); replaces batch_size
    batch_tokens: Count | None = None  # source tokens per forward pass, padding included; replaces batch_size
    unlock: FractionBelowOne = 0.0  # share of max_steps over which longer examples are added; 0: all from the start
    accumulation: Count = 16  # forward passes per optimizer step
    max_steps: NonNegative = 200_000  # optimizer steps; training ends at the first of the three budgets
    max_tokens: _Budget | None = None  # source and target tokens used for training
    max_minutes: Minutes | None = None  # training time without validation; such a run is not reproducible
    eval_steps: Count = 1_000  # optimizer steps between validations (and checkpoints)
    eval_examples: Count | None = 1_000  # maximum number of validation examples; None: all
    patience: Count | None = None  # validations without improvement before training ends; None: no limit
    keep_best: Best = 1  # checkpoints of lowest validation loss that all write summaries; their scores are averaged
    average_weights: Best = 1  # checkpoints of lowest validation loss whose weights are averaged into one model
    bf16: bool | None = None  # None: on GPUs that support it; a CPU uses float32
    gradient_checkpointing: bool = False  # recompute activations to save memory
    workers: Helpers = 0  # processes that collate training batches; 0: the training process
    seed: Seed = 1  # default: the top-level seed
    device: Device = "auto"  # default: the top-level device

    def __post_init__(self) -> None:
        check_settings(self, "train.")
        if self.batch_tokens is not None and (self.batch_words is not None or self.unlock):
            other = "unlock=0" if self.batch_words is None else "batch_words=null"
            raise UsageError(
                f"train.batch_tokens={self.batch_tokens} counts the tokens that are read, train.batch_words and"
                f" train.unlock the texts' words: choose train.batch_tokens=null or train.{other}"
            )
        if self.keep_best > 1 and self.average_weights > 1:
            both = f"train.keep_best={self.keep_best} and train.average_weights={self.average_weights}"
            raise UsageError(f"{both}: one averages scores, the other weights; set one of them to 1")


@dataclass
class Decoding:
    """How summaries are written. Defaults are SEAL's greedy search (SEAL §5)."""

    num_beams: Beams = 1  # beam size; 1: greedy search
    length_penalty: Exponent = 1.0  # exponent of the length that divides a hypothesis's log-probability
    length_norm: _Norm = "power"  # of beams: power: |Y|^length_penalty | wu: ((5+|Y|)/6)^length_penalty (Wu 2016)
    coverage: Coverage = "none"  # of beams: none | summary (penalizes rereading) | wu (penalizes unread text, Wu 2016)
    coverage_penalty: Weight = 5.0  # β of coverage
    min_length: TokenLimit = 0  # tokens
    max_length: TokenLimit | None = None  # tokens; None: the system's limit
    no_repeat_ngram: TokenLimit = 0  # n-grams of this size occur once at most; 0: no limit
    batch_size: BatchSize = 16  # examples decoded together
    limit: Count | None = None  # number of examples, from the first; None: all
    evidence: _Kept = "20"  # examples, from the first, whose evidence is stored: all | a number | none
    reference_evidence: bool = False  # also store evidence for the reference, under teacher forcing (PageSum, Figure 3)
    seed: Seed = 1  # default: the top-level seed
    device: Device = "auto"  # default: the top-level device

    def __post_init__(self) -> None:
        check_settings(self, "decode.")
        if self.coverage != "none" and self.num_beams == 1:
            advice = "choose decode.num_beams=4 or so, or decode.coverage=none"
            raise UsageError(f"decode.coverage={self.coverage} ranks beams, and decode.num_beams=1 has none: {advice}")
        if self.max_length is not None and self.max_length < max(1, self.min_length):
            raise UsageError(f"decode.max_length={self.max_length} is below decode.min_length={self.min_length}")


@dataclass
class Scoring:
    """How summaries are scored (`score.*`)."""

    mode: Mode = "google"  # google: equals rouge_score 0.1.2; perl: equals ROUGE-1.5.5 for one reference
    stem: bool = True  # Porter stemming of words longer than three letters
    wordnet: Text | None = None  # perl mode: folder of WordNet's exception lists; "none": no lists; None: search
    tokenizer: _Words = "default"  # default: a–z and 0–9, as ROUGE; unicode: letters and digits of every script
    references: Rule | None = None  # several: best (F) | jackknife; None: best in google mode, jackknife in perl mode
    empty_references: Empty = "skip"  # if no reference has a word: skip | zero (score 0, as in rouge_score)
    resamples: Resamples = 1_000  # bootstrap resamples of the 95 % interval
    resampling: Resampling = "percentile"  # percentile | perl (as ROUGE-1.5.5; perl mode only)
    metrics: list[Text] = field(default_factory=list)  # metrics in addition to ROUGE; longsumbench list metrics
    coherence_model: Text | None = None  # of coherence: a next-sentence BERT, a folder or a name on the hub
    bertscore_model: Text | None = None  # of bertscore: an encoder, a folder or a name on the hub
    device: Device = "auto"  # default: the top-level device

    def __post_init__(self) -> None:
        check_settings(self, "score.")
        if self.resampling == "perl" and self.mode != "perl":
            raise UsageError("score.resampling=perl needs score.mode=perl: both compute what ROUGE-1.5.5 prints")


@dataclass
class RunConfig:
    """The complete configuration of a run; `model` is an instance of the system's `Config`."""

    model: Any
    dataset: DatasetSettings = field(default_factory=DatasetSettings)
    train: Recipe = field(default_factory=Recipe)
    decode: Decoding = field(default_factory=Decoding)
    score: Scoring = field(default_factory=Scoring)
    scale: Text = "paper"  # name of the sizes and budgets; longsumbench list scales
    seed: Seed = 1
    device: Device = "auto"  # auto (a GPU if there is one) | cpu | cuda
    results_dir: Text = "results"
    overwrite: bool = False  # delete a finished run and repeat it
    baselines: bool = True  # score lead, random and oracle with the first run on a dataset
    timeout_minutes: Timeout | None = None  # stops a point of a sweep, which then counts as failed; None: no limit

    def __post_init__(self) -> None:
        check_settings(self, "")


SECTIONS = {"dataset": DatasetSettings, "train": Recipe, "decode": Decoding, "score": Scoring}


def resolve_config(composed: DictConfig, model_config: type) -> RunConfig:
    """Merge what Hydra composed from YAML files and the command line into the dataclasses.

    Raises:
        UsageError: a key is unknown, or a value has the wrong type or is invalid; the message has the full key.
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
    build_settings(RunConfig, top, prefix="", given=dict.fromkeys(sections))  # check what the sections inherit
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
    """Return the settings without later ones that have the earlier behaviour, so that earlier runs keep their ids."""
    return {key: value for key, value in settings.items() if key not in LATER_SETTINGS or value != LATER_SETTINGS[key]}


def check_lengths(model: Any, decode: Decoding) -> None:
    """Check that `decode` does not request longer outputs than a system can write.

    Raises:
        UsageError: a length is above `model.decode_length`.
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
        prefix: of a field's name on the command line ("train.").
        given: fields that are built already and not checked again.

    Raises:
        UsageError: a name is unknown, or a value has the wrong type or is not finite.
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
            raise UsageError(f"{prefix}{key} has no default: set it")
    checked = OmegaConf.structured(_typed(schema, tuple(types)))
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
    """Parse a list that was quoted on the command line, "[1,2]"; return any other value unchanged."""
    if not (isinstance(value, str) and value.startswith("[") and value.endswith("]")):
        return value
    return [_number(item.strip()) for item in value[1:-1].split(",") if item.strip()]


def _number(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text


def _is_list(kind: Any) -> bool:
    return list in (get_origin(part) for part in (kind, *get_args(kind)))


@cache
def _typed(schema: type, names: tuple[str, ...]) -> type:
    """Copy the dataclass with types and defaults only: OmegaConf must not run the checks on a half-built instance."""
    columns, types = [], get_type_hints(schema)
    for item in fields(schema):
        if item.name not in names:
            continue
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        columns.append((item.name, types[item.name], field(default_factory=partial(_same, default))))
    return make_dataclass(schema.__name__, columns)


def _same(value: Any) -> Any:
    return value


def _type_name(kind: Any) -> str:
    if type(None) in get_args(kind):
        return " | ".join(_type_name(part) for part in get_args(kind))
    return {type(None): "None"}.get(kind) or (str(kind) if get_args(kind) else kind.__name__)


def check_network(width: int, heads: int, tokenizer: str, vocabulary_size: int) -> None:
    """Check the settings of a network that is trained from scratch, with sinusoidal positions.

    Raises:
        UsageError: a value is invalid.
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
        UsageError: it is not; the message lists the choices and suggests the nearest.
    """
    if value not in choices:
        raise UsageError(f"{key}={value}{did_you_mean(str(value), choices)}; allowed: {', '.join(choices)}")


def check_minimum(key: str, value: float | None, least: float) -> None:
    """Check that a number, if given, is not below `least`.

    Raises:
        UsageError: the number is below `least`, or NaN.
    """
    if value is not None and not value >= least:
        raise UsageError(f"{key}={value} is below {least}")
