"""Settings of prompted language models (`model.*`)."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Annotated, Any, ClassVar

from longsumbench.core import (
    AskedWords,
    Between,
    Capabilities,
    Decoding,
    DeviceMap,
    Fraction,
    LanguageModel,
    OneOf,
    RankerSettings,
    ReleaseDate,
    Seconds,
    SystemConfig,
    TargetTokens,
    Text,
    TokenCount,
    TrainConfig,
    VariableName,
    WeightType,
    learned_ranker,
    ranker_identity,
    registry,
    setting,
)
from longsumbench.errors import UsageError, did_you_mean
from longsumbench.models.prompt.prompts import Prompt, read_prompt
from longsumbench.models.prompt.readings import readings

_Engine = Annotated[str, OneOf(more=lambda: registry.engines.targets())]
_Template = Annotated[str, OneOf("model", "none")]
# As other tools call ways of reading, in lower case without signs.
_ELSEWHERE = {
    "stuff": "whole",
    "stuffing": "whole",
    "full": "whole",
    "truncate": "beginning",
    "lead": "beginning",
    "rag": "select",
    "retrieve": "select",
    "retrieval": "select",
    "mapreduce": "stages",
    "hierarchical": "stages",
    "treesummarize": "stages",
    "merge": "stages",
    "rolling": "refine",
    "incremental": "refine",
}
_Reading = Annotated[str, OneOf(more=lambda: readings.targets(), elsewhere=_ELSEWHERE)]
_Pages = Annotated[str, OneOf("spatial", "discourse", "document")]
_Confidence = Annotated[str, OneOf("uniform", "entropy", "learned")]
_MergeWith = Annotated[str, OneOf("previous", "passages", "passages_only")]
_Share = Annotated[float, Between(0.05, 1)]
_Rank = Annotated[int, Between(0, 4_096)]
_Shots = Annotated[int, Between(0, 100)]
_Retries = Annotated[int, Between(0, 1_000)]
_Parallel = Annotated[int, Between(1, 10_000)]
_Variable = Annotated[str, VariableName()]
_Price = Annotated[float, Between(0, 10**6)]
_KeyHeader = Annotated[str, OneOf("Authorization", "api-key")]
_PASSAGES = 1_000  # tokens of the passages of a summary, about
INSTRUCTIONS = 70.0  # tokens of a prompt without its text, about
# Prompts, one of which fits a dataset.
_BUILT_IN = ("document", "documents", "query")
_OWN_FIELDS = (
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "stream",
)


_OF_API = ("tokenizer", "base_url", "api_version", "extra_body", "input_price", "output_price")
# Engine → settings that it does not have, and which engine has them.
_OF_TRANSFORMERS = ("revision", "dtype", "device_map", "adapter", "lora_rank", "lora_targets")
_OF_OTHER_ENGINE = {
    "transformers": (_OF_API, "api: add that, or leave it out"),
    "api": (_OF_TRANSFORMERS, "transformers: leave it out"),
}


@dataclass
class PromptConfig(SystemConfig):
    """A language model that is prompted: by transformers, or behind an OpenAI-compatible server."""

    name: Text = setting("prompt", "name of the system")
    engine: _Engine = setting(
        "transformers", "transformers (in this process) | api (an OpenAI-compatible server)"
    )
    checkpoint: Text | None = setting(
        None,
        "folder, GGUF file or hub name; of engine=api: the model's name at the server",
    )
    revision: Text | None = setting(None, "branch, tag, commit or refs/pr/N on the hub; null: main")
    dtype: WeightType | None = setting(
        None,
        "float32 | bfloat16 | float16; null: the checkpoint's; of a GGUF file: float32",
        decides="summaries",
    )
    device_map: DeviceMap | None = setting(
        None,
        "shares the weights out over GPUs: as in transformers; null: one device",
        decides="summaries",
    )
    adapter: Text | None = setting(None, "PEFT adapter to merge into it: a hub name or folder")
    lora_rank: _Rank | None = setting(
        None,
        "with train.max_steps: rank of a LoRA adapter that is trained; null or 0: no adapter",
    )
    lora_targets: list[Text] | None = setting(
        None,
        "layers that the adapter changes ([q_proj,v_proj], [all-linear]); null: as peft knows",
    )
    tune_all: bool = setting(
        False, "with train.max_steps: all weights are trained, without an adapter"
    )
    tokenizer: Text | None = setting(
        None,
        "tokenizer with engine=api: folder, GGUF file or hub name; without it only reading=whole",
    )
    chat_template: _Template = setting(
        "model", "model: its own | none: the messages, joined by blank lines"
    )
    thinking: bool | None = setting(
        None, "enable_thinking of the chat template; null: the template's default"
    )
    thinking_end: Text = setting("</think>", "mark that ends the thinking, next to the known ones")
    prompt: Text | None = setting(
        None,
        "name in conf/prompt, or a YAML file; null: document, documents or query, as each example is",
    )
    length: AskedWords = setting(
        "train",
        "length to ask for: a number | train: mean length of the training targets",
        "words",
        phrase="asked for {} words",
    )
    shots: _Shots = setting(0, "number of training examples before the text")
    reading: _Reading = setting(
        "beginning",
        "how a long text is read: beginning | ending | ends | whole (or refuse) | select (best snippets) | segments"
        " (anew for each) | pages (mixed) | stages (parts first) | refine (part by part)",
        phrase="{}",
    )
    input_length: TokenCount | None = setting(
        None,
        "longest prompt, with the chat template; null: the model's positions less decode_length",
        "tokens",
        phrase="prompts of {} tokens",
    )
    decode_length: TargetTokens = setting(2_048, "longest answer, thinking included", "tokens")
    selector: Text | None = setting(
        None,
        "of select, segments: a ranker (longsumbench list rankers), or a finished run that scores snippets; null: bm25"
        " with a query, else lexrank",
    )
    rank_checkpoint: Text | None = setting(
        None, "sentence encoder of selector=embedding or embedding_lexrank: folder or hub name"
    )
    snippet_length: TokenCount = setting(
        64, "of select, segments: longest snippet of a ranker, in whole sentences", "tokens"
    )
    segment_length: TokenCount = setting(
        64, "of segments: part of the summary that is written with one selection", "tokens"
    )
    redundancy: Fraction = setting(
        0.5, "of segments: weight of the similarity to what is written (MMR)"
    )
    pages: _Pages = setting(
        "spatial", "of pages: spatial (neighbours) | discourse (section) | document"
    )
    page_length: TokenCount | None = setting(
        None,
        "of pages, and of stages with passages: longest page; null: what fits into a prompt",
        "tokens",
    )
    merge_with: _MergeWith | None = setting(
        None,
        "of stages: what a request that joins summaries has besides them: previous (what was written before) | passages"
        " (of the text, that support them) | passages_only; null: nothing",
        phrase="merged with {}",
    )
    shrink: _Share = setting(
        1.0, "of stages with merge_with: words of a level of summaries, as share of the next one"
    )
    compress: bool = setting(
        False,
        "of refine: an answer that is too long is asked again after the one before is shortened",
    )
    final: bool = setting(
        False,
        "of refine: notes are carried from part to part, and the summary is written of the last",
    )
    confidence: _Confidence = setting(
        "entropy",
        "of pages: weight of a page, uniform | entropy (more if it is surer) | learned (with training)",
    )
    base_url: Text | None = setting(
        None,
        "address of the server of engine=api (http://localhost:8000/v1)",
        decides="nothing",
    )
    key_variable: _Variable = setting(
        "OPENAI_API_KEY", "environment variable that has the key of engine=api", decides="nothing"
    )
    key_header: _KeyHeader = setting(
        "Authorization",
        "header that has the key of engine=api: Authorization, or api-key (Azure)",
        decides="nothing",
    )
    api_version: Text | None = setting(
        None, "version of the server's API, sent as ?api-version= (Azure)"
    )
    extra_body: dict[Text, Any] | None = setting(
        None, "further fields of every request of engine=api"
    )
    parallel_requests: _Parallel = setting(
        8, "requests of engine=api at once", "requests", decides="nothing"
    )
    timeout_seconds: Seconds = setting(
        600.0, "longest time for one whole answer of engine=api", "seconds", decides="nothing"
    )
    retries: _Retries = setting(
        6, "repetitions of a request of engine=api that failed", decides="nothing"
    )
    input_price: _Price | None = setting(
        None, "price of a million prompt tokens of engine=api", "US dollars", decides="nothing"
    )
    output_price: _Price | None = setting(
        None, "price of a million answered tokens of engine=api", "US dollars", decides="nothing"
    )
    released: ReleaseDate | None = setting(
        None, "month or day of the model's release (2025-04), for tables", decides="nothing"
    )

    # 2 left marks of chat formats ("<|channel|>"), all but one kind of thinking, and fences in summaries; 3 cut texts by
    # `truncate`; 4 sent sentences on one line and one prompt to a dataset, and selected up to the first snippet that did
    # not fit.
    version = 5
    # Describes the ways of reading.
    described_by: ClassVar[str] = "longsumbench.models.prompt.readings.strategies:describe"
    former_settings: ClassVar[Mapping[str, str]] = {
        "truncate": "model.reading (end is now beginning; start, ending; middle, ends; none, whole; stages, stages)"
    }

    @property
    def reading_class(self) -> Any:
        """The class of `model.reading`, a `Reading`."""
        return readings.load(self.reading)

    @property
    def capabilities(self) -> Capabilities:
        """It asks a language model, which may be trained before; some readings say what they read."""
        return Capabilities(
            prompts=True,
            reads_layout=True,
            keeps_evidence=bool(self.reading_class.evidence_row),
            runs_untrained=self.tunes,
            shares_work=self.tunes,
        )

    @property
    def tunes(self) -> bool:
        """True if weights are trained, with `train.max_steps` above 0."""
        return bool(self.lora_rank) or self.tune_all

    @property
    def selects_by_ranker(self) -> bool:
        """True if snippets are selected by a ranker that was chosen."""
        return self.reading_class.selects and self.selector in registry.rankers.targets()

    @property
    def selects_by_run(self) -> bool:
        """True if snippets are selected by a finished run."""
        has_choice = self.reading_class.selects and self.selector is not None
        return has_choice and not self.selects_by_ranker

    @property
    def decided_by(self) -> frozenset[str]:
        """Decoding, and what decides a training or a draw."""
        return self.decided_untrained | (frozenset({"seed", "train"}) if self.tunes else set())

    @property
    def decided_untrained(self) -> frozenset[str]:
        """Decoding, and the seed if examples are drawn or a ranker learns."""
        learns = self.selects_by_ranker and learned_ranker(str(self.selector))
        return frozenset({"decode", "seed"} if self.shots or learns else {"decode"})

    def name_used_runs(self, find_run: Callable[[str], tuple[str, SystemConfig]]) -> None:
        """Replace the selector, if it is a run, by the run's full name.

        Raises:
            UsageError: there is no such run, or its system scores no snippets.
        """
        if not self.selects_by_run:
            return
        try:
            name, model = find_run(str(self.selector))
        except UsageError as problem:
            suggestion = did_you_mean(str(self.selector), registry.rankers.targets())
            raise UsageError(
                f"model.selector={self.selector}{suggestion} is neither a ranker (longsumbench list rankers) nor a run:"
                f" {problem}"
            ) from None
        if not model.capabilities.extracts:
            raise UsageError(
                f"model.selector={self.selector} is a run of '{model.name}', which scores no snippets: choose a run of"
                " EA or SEAL, or a ranker (longsumbench list rankers)"
            )
        self.selector = name

    def without_effect(self, train: TrainConfig, decode: Decoding) -> set[str]:
        """Return the settings of other readings; the snippets of a run have the run's own length."""
        of_readings: set[str] = set()
        for name in readings.built_in:
            of_readings.update(readings.load(name).settings)
        idle = of_readings.difference(self.reading_class.settings_for(self))
        if not (self.tunes and train.max_steps):
            idle |= {"lora_rank", "tune_all"}
        if not (self.lora_rank and train.max_steps):
            idle.add("lora_targets")
        return idle | {"snippet_length"} if self.selects_by_run else idle

    def ranker_settings(self) -> RankerSettings:
        """Return the settings of the selector: the defaults of a ranker that learns, and the encoder."""
        return RankerSettings(rank_checkpoint=self.rank_checkpoint)

    def prompts(self, engine: LanguageModel) -> dict[str, Prompt]:
        """Return the prompts in use, by name: one that was chosen, or those of the suite.

        Raises:
            UsageError: a prompt does not exist, is invalid, or lacks a text that the reading needs with this engine.
        """
        reading = self.reading_class
        entry, steps = reading.entry_for(engine), reading.steps_for(self)
        prompts = {}
        for name in [self.prompt] if self.prompt else _BUILT_IN:
            prompt = read_prompt(name).with_steps(steps)
            prompts[name] = prompt.only_for(entry, *steps, *reading.own_steps)
            if entry not in prompts[name].texts_in_use():
                raise UsageError(
                    f"model.reading={self.reading} needs a text '{entry}' in the prompt, and model.prompt={name} has"
                    " none: add it, or choose another prompt"
                )
            merge = prompts[name].merge
            if self.merge_with and merge and "{written}" not in merge:
                raise UsageError(
                    f"model.merge_with={self.merge_with} needs a place {{written}} in the text 'merge', in a paragraph"
                    f" of its own, and that of model.prompt={name} has none: add it, or choose another prompt"
                )
        return prompts

    def open_engine(self) -> LanguageModel:
        """Return the language model; its class is imported here.

        Raises:
            UsageError: the model or its tokenizer does not exist, or is of another kind.
            EnvironmentProblem: it is not on this machine and cannot be fetched, or a package is missing.
        """
        engine: LanguageModel = registry.engines.load(self.engine)(self)
        return engine

    def identity(self) -> dict[str, Any]:
        """Return the settings, with the hashes of the prompts and what identifies the model."""
        engine = self.open_engine()
        hashes = {Path(name).stem: prompt.hash for name, prompt in self.prompts(engine).items()}
        identity = {**super().identity(), **engine.identity(), "prompt": hashes}
        if self.selects_by_ranker:
            identity |= ranker_identity(str(self.selector), self.rank_checkpoint)
        elif self.selects_by_run:  # by its id, wherever its folder is
            identity["selector"] = Path(str(self.selector)).name
        return identity

    def request_lengths(
        self, source: float, target: float, context: int | None
    ) -> tuple[float, float]:
        """Return the tokens of all prompts about a text, and of all answers, about.

        Of `stages` and `refine`, each part has an answer, which is in a further prompt.
        """
        reading = self.reading_class
        longest = self.input_length or (context or sys.maxsize) - self.decode_length
        room = max(1.0, longest - INSTRUCTIONS)
        answer = min(target, self.decode_length)
        read = min(source, room)
        num_prompts = num_answers = 1
        if reading.reads_all:
            read = source
            part = reading.usual_part or vars(self).get(reading.unit_setting) or room
            num_prompts = ceil(source / min(room, part))
        if "segment_length" in reading.settings:
            num_prompts = ceil(answer / self.segment_length)
            read *= num_prompts
        if reading.answers_parts:
            num_answers = num_prompts
            # A merge has the passages of each summary.
            with_passages = self.merge_with not in (None, "previous")
            read += num_answers * (answer + (_PASSAGES if with_passages else 0))
            num_answers += self.final
            num_prompts += self.final
        if reading.usual_part:  # where to pause, and the gist
            num_prompts, read = 2 * num_prompts + 2, read + source
        return num_prompts * INSTRUCTIONS + read, num_answers * answer

    def __post_init__(self) -> None:
        if not self.thinking_end:
            raise UsageError(
                "model.thinking_end is empty: give the mark that ends the thinking, such as </think>"
            )
        foreign_names, advice = _OF_OTHER_ENGINE.get(self.engine, ((), ""))
        for name in foreign_names:
            if vars(self)[name] is not None:
                raise UsageError(f"model.{name} is a setting of model.engine={advice}")
        if self.engine == "api" and self.chat_template == "none":
            raise UsageError(
                "model.chat_template=none is a setting of model.engine=transformers: leave it out"
            )
        thinking_field = () if self.thinking is None else ("chat_template_kwargs",)
        for name in self.extra_body or ():
            if name in _OWN_FIELDS + thinking_field:
                raise UsageError(
                    f"model.extra_body sets '{name}', which other settings decide: leave it out"
                )
        if (self.input_price is None) != (self.output_price is None):
            raise UsageError(
                "model.input_price and model.output_price go together: give both, or none"
            )
        if self.reading_class.mixes_pages and self.engine == "api":
            raise UsageError(
                f"model.reading={self.reading} mixes distributions, which a server does not give: choose"
                " model.engine=transformers, or model.reading=stages, refine or select"
            )
        self._check_tuning()
        if self.rank_checkpoint is not None and not self.selects_by_ranker:
            raise UsageError(
                "model.rank_checkpoint is a sentence encoder: choose model.selector=embedding or embedding_lexrank, with"
                " model.reading=select or segments, or leave it out"
            )
        if self.engine == "api" and self.tokenizer is None:
            self._check_uncounted()

    def _check_tuning(self) -> None:
        """Check that what is to be trained can be."""
        tuning = "model.tune_all=true" if self.tune_all else f"model.lora_rank={self.lora_rank}"
        problem = None
        if self.tunes and self.engine != "transformers":
            problem = f"{tuning} needs a model of transformers: choose model.engine=transformers"
        elif self.tunes and not self.reading_class.answers_once:
            able = [name for name in readings.targets() if readings.load(name).answers_once]
            problem = (
                f"{tuning}: model.reading={self.reading} has several answers for one summary, and only one answer can be"
                f" trained: choose model.reading={', '.join(able)}"
            )
        elif self.tune_all and self.lora_rank:
            problem = f"{tuning} and model.lora_rank={self.lora_rank}: choose one of them"
        elif self.tunes and self.adapter is not None:
            problem = f"{tuning} trains the checkpoint without model.adapter={self.adapter}: merge it first, or leave it out"
        elif self.tunes and self.device_map:
            problem = f"{tuning} trains on one device: leave out model.device_map"
        elif self.confidence == "learned" and not self.tunes:
            problem = (
                "model.confidence=learned is learned in a training: add model.lora_rank=16 train.max_steps=100, or choose"
                " model.confidence=entropy"
            )
        if problem:
            raise UsageError(problem)

    def _check_uncounted(self) -> None:
        """Check that nothing counts tokens, without a tokenizer."""
        counting, remedy = None, "choose model.reading=whole model.shots=0"
        if self.reading != "whole":
            counting = f"reading={self.reading}"
        elif self.shots:
            counting = f"shots={self.shots}"
        elif self.input_length is not None:
            counting, remedy = f"input_length={self.input_length}", "leave it out"
        if counting:
            raise UsageError(
                f"model.{counting} counts tokens: add model.tokenizer=<folder or hub name of the model's tokenizer>, or"
                f" {remedy}"
            )
