import random
from pathlib import Path

import pytest
from toys import ToySplit, example
from transformers import BartConfig

from longsumbench import tokenization
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.tokenization import encode_sentences, identity, load_tokenizer, sample, train_tokenizer

TOKENIZER = train_tokenizer(ToySplit.of("train", 30), 300)


def test_lossless() -> None:
    """Byte-level: whatever is encoded comes back to the letter, unknown scripts and signs included."""
    chance = random.Random(0)
    for text in (
        "kadan lofel.",
        "Größe 3 × 4 — naïve",
        "日本語のテキスト",
        "".join(map(chr, chance.choices(range(33, 900), k=80))),
    ):
        ids = TOKENIZER(text, add_special_tokens=False).input_ids
        assert TOKENIZER.decode(ids).strip() == text


def test_vocabulary_size_is_kept() -> None:
    """No more entries than asked for, the special ones included and first."""
    assert len(TOKENIZER) <= 300
    assert TOKENIZER.convert_tokens_to_ids(["<pad>", "<s>", "</s>"]) == [0, 1, 2]


def test_sentences_encode_as_running_text() -> None:
    """Sentence by sentence gives the ids of the sentences joined by spaces."""
    sentences = list(example(3).sentences())
    encoded = encode_sentences(TOKENIZER, sentences)
    whole = TOKENIZER(" ".join(sentences), add_special_tokens=False).input_ids
    assert [token for one in encoded for token in one.ids] == whole
    assert [one.words for one in encoded] == [len(sentence.split()) for sentence in sentences]


def test_the_same_texts_give_the_same_tokenizer(tmp_path: Path) -> None:
    """Training is repeatable, and saving keeps the identity; other texts give another."""
    again = train_tokenizer(ToySplit.of("train", 30), 300)
    assert identity(again) == identity(TOKENIZER)
    TOKENIZER.save_pretrained(tmp_path)
    assert identity(load_tokenizer(tmp_path)) == identity(TOKENIZER)
    assert identity(train_tokenizer(ToySplit.of("train", 10, start=500), 280)) != identity(TOKENIZER)


def test_no_such_tokenizer(tmp_path: Path) -> None:
    """A folder without a tokenizer ends in one line that says what to give."""
    with pytest.raises(UsageError, match="no tokenizer") as raised:
        load_tokenizer(tmp_path)
    assert "\n" not in str(raised.value)


def test_a_tokenizer_without_its_vocabulary(tmp_path: Path) -> None:
    """A model's folder without tokenizer files is refused, for which the library makes one up that knows no text."""
    BartConfig().save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="makes no token of any text"):
        load_tokenizer(tmp_path)


def test_no_network_for_a_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name on the hub, when that cannot be reached, is a problem of the machine, told at once in one line."""
    monkeypatch.setattr(tokenization, "unreachable", lambda: "no cable")
    with pytest.raises(EnvironmentProblem, match=r"tokenizer 'nobody/nothing' is no folder.*no cable") as raised:
        load_tokenizer("nobody/nothing")
    assert "\n" not in str(raised.value)


def test_a_large_split_is_sampled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit every n-th example is taken, from the whole split; below it all of them."""
    split = ToySplit.of("train", 20)
    assert sample(split) == list(range(20))
    monkeypatch.setattr(tokenization, "TRAINING_WORDS", sum(split.source_words) // 4)
    assert sample(split) in ([0, 4, 8, 12, 16], [0, 5, 10, 15])
