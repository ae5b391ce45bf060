"""Settings of prompted language models (`model.*`)."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from longsumbench import core
from longsumbench.errors import UsageError
from longsumbench.models.prompt.prompts import Prompt, read_prompt

_Engine = Annotated[str, core.OneOf(more=lambda: core.registry.engines.targets())]
_Template = Annotated[str, core.OneOf("model", "none")]
_AskedWords = Annotated[str, core.OneOf("train", number_of="words")]
_Truncate = Annotated[str, core.OneOf("end", "start", "middle", "none", "stages")]
_Shots = Annotated[int, core.Between(0, 100)]
_Retries = Annotated[int, core.Between(0, 1_000)]
_Parallel = Annotated[int, core.Between(1, 10_000)]
_Seconds = Annotated[float, core.Between(0, 10**6, open_low=True)]
_Variable = Annotated[str, core.VariableName()]
_Price = Annotated[float, core.Between(0, 10**6)]
_KeyHeader = Annotated[str, core.OneOf("Authorization", "api-key")]
_BUILT_IN = ("document", "documents", "query")  # prompts, one of which fits a dataset
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
_OF_OTHER_ENGINE = {  # engine → settings that it does not have, and which engine has them
    "transformers": (_OF_API, "api: add that, or leave it out"),
    "api": (("revision", "dtype", "device_map"), "transformers: leave it out"),
}


@dataclass
class PromptConfig(core.SystemConfig):
    """A language model that is prompted: by transformers, or behind an OpenAI-compatible server."""

    name: core.Text = core.setting("prompt", "name of the system")
    engine: _Engine = core.setting(
        "transformers", "transformers (in this process) | api (an OpenAI-compatible server)"
    )
    checkpoint: core.Text | None = core.setting(
        None, "folder or hub name; of engine=api: the model's name at the server"
    )
    revision: core.Text | None = core.setting(
        None, "branch, tag, commit or refs/pr/N on the hub; null: main"
    )
    dtype: core.WeightType | None = core.setting(
        None, "float32 | bfloat16 | float16; null: the checkpoint's", decides="summaries"
    )
    device_map: core.DeviceMap | None = core.setting(
        None,
        "shares the weights out over GPUs: as in transformers; null: one device",
        decides="summaries",
    )
    tokenizer: core.Text | None = core.setting(
        None, "tokenizer with engine=api, folder or hub name; without it only truncate=none"
    )
    chat_template: _Template = core.setting(
        "model", "model: its own | none: the messages, joined by blank lines"
    )
    thinking: bool | None = core.setting(
        None, "enable_thinking of the chat template; null: the template's default"
    )
    thinking_end: core.Text = core.setting(
        "</think>", "mark that ends the thinking, next to the known ones"
    )
    prompt: core.Text | None = core.setting(
        None,
        "name in conf/prompt, or a YAML file; null: document, documents or query, as the dataset is",
    )
    length: _AskedWords = core.setting(
        "train", "length to ask for: a number | train: mean length of the training targets", "words"
    )
    shots: _Shots = core.setting(0, "number of training examples before the text")
    truncate: _Truncate = core.setting(
        "end",
        "what is cut from a long text: end | middle | start | none (refuse) | stages (summarize parts first)",
    )
    input_length: core.TokenCount | None = core.setting(
        None,
        "longest prompt, with the chat template; null: the model's positions less decode_length",
        "tokens",
    )
    decode_length: core.TargetTokens = core.setting(
        2_048, "longest answer, thinking included", "tokens"
    )
    base_url: core.Text | None = core.setting(
        None, "address of the server of engine=api (http://localhost:8000/v1)"
    )
    key_variable: _Variable = core.setting(
        "OPENAI_API_KEY", "environment variable that has the key of engine=api", decides="nothing"
    )
    key_header: _KeyHeader = core.setting(
        "Authorization",
        "header that has the key of engine=api: Authorization, or api-key (Azure)",
        decides="nothing",
    )
    api_version: core.Text | None = core.setting(
        None, "version of the server's API, sent as ?api-version= (Azure)"
    )
    extra_body: dict[core.Text, Any] | None = core.setting(
        None, "further fields of every request of engine=api"
    )
    parallel_requests: _Parallel = core.setting(
        8, "requests of engine=api at once", "requests", decides="nothing"
    )
    timeout_seconds: _Seconds = core.setting(
        600.0, "longest time for one whole answer of engine=api", "seconds", decides="nothing"
    )
    retries: _Retries = core.setting(
        6, "repetitions of a request of engine=api that failed", decides="nothing"
    )
    input_price: _Price | None = core.setting(
        None, "price of a million prompt tokens of engine=api", "US dollars", decides="nothing"
    )
    output_price: _Price | None = core.setting(
        None, "price of a million answered tokens of engine=api", "US dollars", decides="nothing"
    )
    released: core.ReleaseDate | None = core.setting(
        None, "month or day of the model's release (2025-04), for tables", decides="nothing"
    )

    version = 3  # 2 left marks of chat formats ("<|channel|>"), all but one kind of thinking, and fences in summaries
    capabilities = core.Capabilities(prompts=True)

    @property
    def decided_by(self) -> frozenset[str]:
        """Decoding, and the seed if examples are drawn."""
        return frozenset({"decode", "seed"} if self.shots else {"decode"})

    def prompts(self) -> dict[str, Prompt]:
        """Return the prompts in use, by name: one that was chosen, or those of the suite."""
        names = [self.prompt] if self.prompt else _BUILT_IN
        return {name: read_prompt(name) for name in names}

    def open_engine(self) -> core.LanguageModel:
        """Return the language model; its class is imported here.

        Raises:
            UsageError: the model or its tokenizer does not exist, or is of another kind.
            EnvironmentProblem: it is not on this machine and cannot be fetched, or a package is missing.
        """
        engine: core.LanguageModel = core.registry.engines.load(self.engine)(self)
        return engine

    def identity(self) -> dict[str, Any]:
        """Return the settings, with the hashes of the prompts and what identifies the model."""
        hashes = {Path(name).stem: prompt.hash for name, prompt in self.prompts().items()}
        return {**super().identity(), **self.open_engine().identity(), "prompt": hashes}

    def request_lengths(
        self, source: float, target: float, context: int | None
    ) -> tuple[float, float]:
        """Return the tokens of a prompt, which is as long as the text up to the model's limit, and of its answer."""
        longest = self.input_length or (context or sys.maxsize) - self.decode_length
        prompt = source if self.truncate == "stages" else min(source, longest)
        return prompt, min(target, self.decode_length)

    def __post_init__(self) -> None:
        if not self.thinking_end:
            raise UsageError(
                "model.thinking_end is empty: give the mark that ends the thinking, such as </think>"
            )
        foreign_names, advice = _OF_OTHER_ENGINE.get(self.engine, ((), ""))
        for name in foreign_names:
            if (value := vars(self)[name]) is not None:
                raise UsageError(f"model.{name}={value} is a setting of model.engine={advice}")
        if self.engine == "api" and self.chat_template == "none":
            raise UsageError(
                "model.chat_template=none is a setting of model.engine=transformers: leave it out"
            )
        own_fields = (
            (*_OWN_FIELDS, "chat_template_kwargs") if self.thinking is not None else _OWN_FIELDS
        )
        if reserved := [name for name in self.extra_body or () if name in own_fields]:
            raise UsageError(
                f"model.extra_body sets '{reserved[0]}', which other settings decide: leave it out"
            )
        if (self.input_price is None) != (self.output_price is None):
            raise UsageError(
                "model.input_price and model.output_price go together: give both, or none"
            )
        if (
            self.engine == "api"
            and self.tokenizer is None
            and (self.truncate != "none" or self.shots)
        ):
            counted = (
                f"model.truncate={self.truncate}"
                if self.truncate != "none"
                else f"model.shots={self.shots}"
            )
            raise UsageError(
                f"{counted} counts tokens: add model.tokenizer=<folder or hub name of the model's tokenizer>, or choose"
                " model.truncate=none model.shots=0"
            )
        if self.engine == "api" and self.tokenizer is None and self.input_length is not None:
            raise UsageError(
                f"model.input_length={self.input_length} counts tokens: add model.tokenizer=<folder or hub name of the"
                " model's tokenizer>, or leave it out"
            )
