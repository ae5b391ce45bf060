"""The generation settings of a checkpoint (on its card) as values of `decode.*`.

The library stores them in `generation_config.json`; older checkpoints have them in `config.json`. transformers before 5
also applied those under `task_specific_params` of `config.json` to summarization.
"""

import logging
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from longsumbench.core import Decoding, build_settings
from longsumbench.errors import DataError, UsageError
from longsumbench.modeling.checkpoint_files import CONFIG, FETCH_AGAIN, read_object
from longsumbench.modeling.checkpoints import fetch_files

_log = logging.getLogger(__name__)

_GENERATION = "generation_config.json"
_SAME_MEANING = {  # the library's name → ours
    "num_beams": "num_beams",
    "length_penalty": "length_penalty",
    "early_stopping": "early_stopping",
    "no_repeat_ngram_size": "no_repeat_ngram",
    "encoder_no_repeat_ngram_size": "encoder_no_repeat_ngram",
    "repetition_penalty": "repetition_penalty",
    "min_new_tokens": "min_length",
    "max_new_tokens": "max_length",
}
_WITH_START = ("min_length", "max_length")  # the library counts the start token in these
# Settings of the library that the suite does not have → the value without effect, besides an empty or false one.
_UNUSED = {
    "encoder_repetition_penalty": 1,
    "guidance_scale": 1,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "constraints": None,
    "diversity_penalty": None,
    "do_sample": None,
    "dola_layers": None,
    "exponential_decay_length_penalty": None,
    "force_words_ids": None,
    "max_time": None,
    "penalty_alpha": None,
    "remove_invalid_values": None,
    "renormalize_logits": None,
    "sequence_bias": None,
    "stop_strings": None,
    "token_healing": None,
    "watermarking_config": None,
}


@cache  # fetch and report once
def read_generation_defaults(name: str | None, revision: str | None) -> Mapping[str, Any]:
    """Return the values of `decode.*` that the generation settings of a checkpoint (`model.checkpoint`) have.

    Settings that it lacks are absent. A warning names all others that change outputs, such as sampling. Without a name
    there are no values.

    Raises:
        UsageError: there is no such checkpoint.
        EnvironmentProblem: it is on the hub, its settings have no local copy, and they cannot be fetched.
        DataError: a file is damaged, or a value is invalid.
    """
    if not name:
        return {}
    folder = _settings_folder(name, revision)
    try:
        values, ignored = _translate(
            _read_stored(folder / CONFIG), _read_stored(folder / _GENERATION)
        )
        build_settings(Decoding, values, "")
    except (UsageError, TypeError, AttributeError) as problem:
        raise DataError(
            f"its generation settings are invalid ({problem}); {FETCH_AGAIN}", folder
        ) from problem
    if ignored:
        _log.warning(
            f"the card of {name} also has {', '.join(ignored)}, which this suite does not have: not used"
        )
    return values


def _translate(
    config: Mapping[str, Any], generation: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of `decode.*`, and the names of settings that are not used."""
    stored: dict[str, Any] = {}
    for layer in (_summarization_entries(config), config, generation):  # a later one decides
        stored |= {key: value for key, value in layer.items() if value is not None}
    values = {name: stored[name] - 1 for name in _WITH_START if stored.get(name)}
    values |= {name: stored[key] for key, name in _SAME_MEANING.items() if key in stored}
    values |= {"forced_eos": True} if "forced_eos_token_id" in stored else {}
    ignored = []
    for name, plain in _UNUSED.items():
        if stored.get(name) and stored[name] != plain:
            ignored.append(name)
    if values.get("early_stopping") == "never":
        del values["early_stopping"]
        ignored.append("early_stopping=never")
    return values, ignored


def _summarization_entries(config: Mapping[str, Any]) -> dict[str, Any]:
    return (config.get("task_specific_params") or {}).get("summarization") or {}


def read_default_prefix(name: str | None, revision: str | None) -> str:
    """Return the text with which inputs of summarization begin ("summarize: " of T5); an empty one if there is none.

    Arguments and errors are those of `read_generation_defaults`.
    """
    config = _read_stored(_settings_folder(name, revision) / CONFIG) if name else {}
    prefix = _summarization_entries(config).get("prefix") or config.get("prefix")
    return str(prefix or "").strip()


def _read_stored(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except FileNotFoundError:
        return {}


@cache
def _settings_folder(name: str, revision: str | None) -> Path:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    return fetch_files(name, "model.checkpoint", (CONFIG, _GENERATION), revision)
