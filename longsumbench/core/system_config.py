"""What is known of a system before it is made, by its settings alone: planning, run ids and tables ask for it.

`SystemConfig` is the base of every system's `Config`. The functions below it check that a run's other settings fit.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from longsumbench.core import registry
from longsumbench.core.run_settings import Decoding, TrainConfig
from longsumbench.core.settings import Settings, outcome_settings
from longsumbench.errors import UsageError

# No ranker: texts keep their order.
UNRANKED = "none"


@dataclass(frozen=True)
class Capabilities:
    """What a system can do with its settings.

    Attributes:
        oracle: it looks at the reference; tables mark it.
        keeps_evidence: its summaries have evidence when `decoding.evidence` requests it.
        keeps_reference_evidence: it can also give evidence for the reference under teacher forcing.
        gives_attention: its decoder attends to one memory per text, the same at all steps. A search can then rank by
            coverage (`decode.coverage`).
        supports_length_norms: its beam search can rank by every `decode.length_norm`.
        shares_work: several processes can train it, and write its summaries, together.
        extracts: it scores sentences of the source, so that `decode.mode=extract` can copy the best ones.
        runs_untrained: it summarizes with `train.max_steps=0`, by the weights of a checkpoint.
        trains_scorer: what scores the source can be trained alone (`train.only=scorer`).
        counts_overlap: its summaries depend on which words count as equal (`score.tokenizer`, `score.stem`).
        prompts: it asks a language model, whose tokens have a price.
        writes_reference: it writes one of the references, and is scored against the others.
        reads_layout: it reads texts with their line breaks and blanks, not only their sentences.
    """

    oracle: bool = False
    keeps_evidence: bool = False
    keeps_reference_evidence: bool = False
    gives_attention: bool = False
    supports_length_norms: bool = False
    shares_work: bool = False
    extracts: bool = False
    runs_untrained: bool = False
    trains_scorer: bool = False
    counts_overlap: bool = False
    prompts: bool = False
    writes_reference: bool = False
    reads_layout: bool = False


class SystemConfig(Settings):
    """Base class of the settings of a system (`model.*`). A subclass is a dataclass and declares its settings.

    An attribute below has its value here unless the subclass declares a setting of this name. Its module imports no
    torch, so planning takes no seconds.

    Attributes:
        version: increases when the same settings give another outcome.
        former_settings: names of settings that there were → what to choose instead.
        checkpoint, revision: of a pretrained model; tables name them.
        prefix: starts every input.
        rank: the ranker that orders the texts, or "none".
        rank_checkpoint: the sentence encoder of such a ranker.
        length: words of a summary: a number, "train" (the mean target) or "reference".
        decode_length: longest output in tokens; None: no limit.
        input_price, output_price: of a million tokens, in US dollars.
    """

    name: str
    version: ClassVar[int] = 1
    former_settings: ClassVar[Mapping[str, str]] = {}
    checkpoint: str | None = None
    revision: str | None = None
    prefix: str = ""
    rank: str = UNRANKED
    rank_checkpoint: str | None = None
    length: str | None = None
    decode_length: int | None = None
    input_price: float | None = None
    output_price: float | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the system can do."""
        return Capabilities()

    @property
    def decided_by(self) -> frozenset[str]:
        """Further parts of the configuration that decide the outcome: "seed", "train", "decode".

        `model`, `dataset` and `score` always do. Runs that differ only in other parts have the same id.
        """
        return frozenset()

    @property
    def decided_untrained(self) -> frozenset[str]:
        """The same for a checkpoint that is used as it is, where `runs_untrained` allows it."""
        return frozenset({"decode"})

    def identity(self) -> dict[str, Any]:
        """Return the settings that decide the outcome as JSON values; part of the run id."""
        return outcome_settings(self)

    def name_used_runs(self, find_run: Callable[[str], "tuple[str, SystemConfig]"]) -> None:
        """Replace the names of finished runs in the settings by their full names, and check their systems.

        `find_run` returns the full name of a run and the settings of its model. The default uses no runs.

        Raises:
            UsageError: there is no such run, or its system cannot be used.
        """

    def without_effect(self, train: TrainConfig, decode: Decoding) -> set[str]:
        """Return the names of the settings that change nothing, given the others."""
        return set()

    def usual_decoding(self) -> Mapping[str, Any] | None:
        """Return the values of `decode.*` on the checkpoint's card; None without a card."""
        return None

    def usual_prefix(self) -> str:
        """Return the prefix that the checkpoint's card has for every input."""
        return ""

    def request_lengths(
        self, source: float, target: float, context: int | None
    ) -> tuple[float, float]:
        """Return the tokens of a prompt and of its answer, given those of text, target and the model's context."""
        return source, target


def deciding_parts(model: SystemConfig, train: TrainConfig, decode: Decoding) -> frozenset[str]:
    """Return the parts of the configuration that decide a run's outcome, as in `SystemConfig.decided_by`.

    A checkpoint that is used as it is does not depend on the training, and no search without samples on the seed.
    """
    parts = model.decided_by
    if model.capabilities.runs_untrained and not train.max_steps:
        parts = model.decided_untrained
    return parts | {"seed"} if "decode" in parts and decode.temperature > 0 else parts


def sees_reference(model: SystemConfig, decode: Decoding) -> bool:
    """Return True if summaries depend on the references: of an oracle, and of extracts as long as the reference."""
    extracts = decode.mode == "extract" and "decode" in model.decided_by
    return model.capabilities.oracle or (extracts and decode.extract_length == "reference")


def check_trained_part(model: SystemConfig, recipe: TrainConfig, decode: Decoding) -> None:
    """Check that the part of the network that `train.only` names can be trained alone, and is enough to summarize.

    Raises:
        UsageError: the system has no such part; or the summaries need the decoder.
    """
    if recipe.only == "all" or "train" not in model.decided_by:
        return
    only = f"train.only={recipe.only}"
    if not model.capabilities.trains_scorer:
        raise UsageError(
            f"{only}: model={model.name} has no scorer that trains alone: choose train.only=all"
        )
    if decode.mode != "extract":
        raise UsageError(
            f"{only} leaves the decoder untrained: add decode.mode=extract, or choose train.only=all"
        )


def check_search(model: SystemConfig, decode: Decoding) -> None:
    """Check that a system supports the decoding settings.

    Raises:
        UsageError: a length is above `model.decode_length`; `decode.coverage` is set, but the decoder gives no
            attention; `decode.length_norm` is set, but the search has the library's only; `decode.mode=extract`, but
            the system scores nothing; `decode.reference_evidence`, but it keeps none.
    """
    limit = model.decode_length
    for name, length in (("min_length", decode.min_length), ("max_length", decode.max_length)):
        if limit is not None and length is not None and length > limit:
            raise UsageError(
                f"decode.{name}={length} is above model.decode_length={limit}, the longest it can write"
            )
    capabilities = model.capabilities
    keeps_both = capabilities.keeps_evidence and capabilities.keeps_reference_evidence
    subject = f"model={model.name}, at least with these settings,"
    if decode.reference_evidence and not keeps_both:
        raise UsageError(
            f"decode.reference_evidence=true: {subject} keeps no evidence of the reference"
        )
    if "decode" not in model.decided_by:
        return
    searches = decode.num_beams > 1 and decode.length_norm != "power"
    if searches and not capabilities.supports_length_norms:
        problem = f"model={model.name} searches with the library's length norm"
        raise UsageError(
            f"decode.length_norm={decode.length_norm}: {problem}: choose decode.length_norm=power"
        )
    if decode.mode == "extract" and not capabilities.extracts:
        names = registry.systems.shipped()
        extracting = [
            name for name in names if registry.load_config_class(name)().capabilities.extracts
        ]
        advice = f"choose decode.mode=write, or another model ({', '.join(extracting)})"
        raise UsageError(
            f"decode.mode=extract: {subject} scores no sentences of the source: {advice}"
        )
    if decode.coverage != "none" and not capabilities.gives_attention:
        problem = f"{subject} cannot give the search its attention"
        raise UsageError(
            f"decode.coverage={decode.coverage}: {problem}: choose decode.coverage=none"
        )
