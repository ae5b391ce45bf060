"""A checkpoint's own generation settings as values of `decode.*`."""

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from support.json_files import write_json
from support.toys import refuses

from longsumbench.errors import DataError
from longsumbench.modeling import checkpoints
from longsumbench.modeling.generation_defaults import read_generation_defaults


def write_card(folder: Path, generation: dict[str, Any] | None = None, **config: Any) -> str:
    """Write a checkpoint's settings, without weights; return the folder's name."""
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", {"model_type": "bart", **config})
    if generation is not None:
        write_json(folder / "generation_config.json", generation)
    return str(folder)


BART = {
    "num_beams": 4,
    "length_penalty": 2.0,
    "min_length": 6,
    "max_length": 12,
    "no_repeat_ngram_size": 2,
    "early_stopping": True,
    "forced_eos_token_id": 2,
}
CARDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "of BART": (
        BART,
        {
            "num_beams": 4,
            "length_penalty": 2.0,
            "min_length": 5,
            "max_length": 11,
            "no_repeat_ngram": 2,
            "early_stopping": True,
            "forced_eos": True,
        },
    ),
    "new lengths win": (
        {"max_length": 30, "max_new_tokens": 7, "min_new_tokens": 3, "num_beams": 2},
        {"max_length": 7, "min_length": 3, "num_beams": 2},
    ),
    "token ids only": ({"pad_token_id": 1, "eos_token_id": 2}, {}),
}


@pytest.mark.parametrize("kind", CARDS)
def test_a_card_in_our_settings(kind: str, tmp_path: Path) -> None:
    """The library's names become ours, lengths lose the start token, and what a card lacks is absent."""
    generation, expected = CARDS[kind]
    assert read_generation_defaults(write_card(tmp_path, generation), None) == expected
    assert read_generation_defaults(write_card(tmp_path / "older", **generation), None) == expected


def test_where_a_card_has_its_settings(tmp_path: Path) -> None:
    """generation_config.json goes before config.json, and that before its settings of summarization."""
    task = {
        "summarization": {"num_beams": 3, "max_length": 40, "length_penalty": 0.5},
        "translation": {"num_beams": 9},
    }
    name = write_card(
        tmp_path, {"num_beams": 5, "length_penalty": None}, max_length=50, task_specific_params=task
    )
    expected = {"num_beams": 5, "max_length": 49, "length_penalty": 0.5}
    assert read_generation_defaults(name, None) == expected
    assert read_generation_defaults(None, None) == {}


def test_settings_that_the_suite_lacks_are_named_once(tmp_path: Path, log_lines: list[str]) -> None:
    """What a card has beyond `decode.*` is a warning; values without effect are not."""
    unused = {"num_beam_groups": 1, "diversity_penalty": 0.0, "bad_words_ids": None}
    lacking = {"do_sample": True, "guidance_scale": 2.0}
    card = {**lacking, "num_beams": 2, "early_stopping": "never", "use_cache": True, **unused}
    name = write_card(tmp_path, card)
    for _ in range(2):
        assert read_generation_defaults(name, None) == {"num_beams": 2}
    names = "guidance_scale, do_sample, early_stopping=never"
    assert [line for line in log_lines if "card" in line] == [
        f"the card of {name} also has {names}, which this suite does not have: not used"
    ]


@pytest.mark.parametrize(
    ("generation", "message"),
    [
        ({"num_beams": "five"}, "num_beams='five' is not of type int"),
        ({"max_length": "long"}, "generation settings are invalid"),
        ({"max_length": 5, "min_length": 9}, "max_length=4 is below decode.min_length=8"),
    ],
)
def test_invalid_values_of_a_card(generation: dict[str, Any], message: str, tmp_path: Path) -> None:
    """An invalid value is bad data, with the folder and the name."""
    with refuses(message, DataError) as refused:
        read_generation_defaults(write_card(tmp_path, generation), None)
    assert str(tmp_path) in str(refused.value)


def test_only_the_files_of_the_card_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a name on the hub the two JSON files are fetched, at the revision, and nothing else."""
    asked: list[Any] = []

    def snapshot(name: str, revision: str, allow_patterns: list[str], **_: Any) -> str:
        asked.append((name, revision, allow_patterns))
        return write_card(tmp_path, {"num_beams": 5})

    monkeypatch.setattr(checkpoints, "unreachable", lambda: None)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    for _ in range(2):
        assert read_generation_defaults("somebody/with-a-card", "refs/pr/3") == {"num_beams": 5}
    assert asked == [
        ("somebody/with-a-card", "refs/pr/3", ["config.json", "generation_config.json"])
    ]
