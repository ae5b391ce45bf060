"""The generation settings of a checkpoint ("its card") as values of `decode.*`.

The library stores them in `generation_config.json`; older checkpoints have them in `config.json`. transformers before 5
also applied those under `task_specific_params` of `config.json` to summarization.
"""

import logging
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from longsumbench.core import Decoding, build_settings
from longsumbench.errors import DataError, UsageError
from longsumbench.modeling.checkpoint_files import FETCH_AGAIN, read_object
from longsumbench.modeling.checkpoints import fetch_files

_log = logging.getLogger(__name__)

_CONFIG, _GENERATION = "config.json", "generation_config.json"
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
# without effect if 1
_ONES = {
    "encoder_repetition_penalty",
    "guidance_scale",
    "num_beam_groups",
    "num_return_sequences",
}
# settings of the library that the suite does not have; each is without effect if it is empty, false or 0
_UNUSED = {
    *_ONES,
    "constraints",
    "diversity_penalty",
    "do_sample",
    "dola_layers",
    "exponential_decay_length_penalty",
    "force_words_ids",
    "max_time",
    "penalty_alpha",
    "remove_invalid_values",
    "renormalize_logits",
    "sequence_bias",
    "stop_strings",
    "token_healing",
    "watermarking_config",
}
_NO_WARNING = re.compile(  # token ids, which are used; notes; values of sampling; what changes speed or memory only
    r".*_token_id|bad_words_ids|(begin_)?suppress_tokens|_.*|.*version|temperature|top_.|min_p|typical_p|.*_cutoff"
    r"|.*cache.*|.*compile.*|output_.*|return_.*|use_mtp|low_memory|.*assistant.*|.*lookup.*|.*lookbehind|.*_matching_.*"
    r"|speculation_type|prefill_.*|continuous_.*"
)


@cache  # fetch and report once
def card_decoding(name: str | None, setting: str, revision: str | None = None) -> Mapping[str, Any]:
    """Return the values of `decode.*` that a checkpoint's own generation settings have.

    Settings that it lacks are absent. A warning names all others that change outputs, such as sampling. Arguments are
    those of `model_folder`; without a name there are no values.

    Raises:
        UsageError: there is no such checkpoint.
        EnvironmentProblem: it is on the hub, its settings have no local copy, and they cannot be fetched.
        DataError: a file is damaged, or a value is invalid.
    """
    if not name:
        return {}
    folder = _card_folder(name, setting, revision)
    try:
        values, ignored = _translate(_read_card(folder / _CONFIG), _read_card(folder / _GENERATION))
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
    task = (config.get("task_specific_params") or {}).get("summarization") or {}
    card: dict[str, Any] = {}
    for layer in (task, config, generation):  # a later one decides
        card |= {key: value for key, value in layer.items() if value is not None}
    values = {name: card[name] - 1 for name in _WITH_START if card.get(name)}
    values |= {name: card[key] for key, name in _SAME_MEANING.items() if key in card}
    values |= {"forced_eos": True} if "forced_eos_token_id" in card else {}
    unused = {*_UNUSED, *(key for key in generation if not _NO_WARNING.fullmatch(key))}
    unused -= {*_SAME_MEANING, *_WITH_START}
    ignored = []
    for key, value in card.items():
        if key in unused and value and not (key in _ONES and value == 1):
            ignored.append(key)
    if values.get("early_stopping") == "never":
        del values["early_stopping"]
        ignored.append("early_stopping=never")
    return values, ignored


def card_prefix(name: str | None, setting: str, revision: str | None = None) -> str:
    """Return the text with which inputs of summarization begin by a card ("summarize: " of T5); else an empty one.

    Arguments and errors are those of `card_decoding`.
    """
    config = _read_card(_card_folder(name, setting, revision) / _CONFIG) if name else {}
    task = (config.get("task_specific_params") or {}).get("summarization") or {}
    return str(task.get("prefix") or config.get("prefix") or "").strip()


def _read_card(path: Path) -> dict[str, Any]:
    try:
        return read_object(path)
    except FileNotFoundError:
        return {}


@cache
def _card_folder(name: str, setting: str, revision: str | None) -> Path:
    folder = Path(name).expanduser()
    return (
        folder if folder.is_dir() else fetch_files(name, setting, (_CONFIG, _GENERATION), revision)
    )
