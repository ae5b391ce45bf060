import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from support import hand_texts
from support.toys import ToySplit, example, refuses
from transformers import BartConfig, BertConfig, PreTrainedConfig

from longsumbench.core import Example
from longsumbench.errors import EnvironmentProblem
from longsumbench.modeling import checkpoints
from longsumbench.modeling.tokenizer import (
    encode_sentences,
    load_tokenizer,
    tokenizer_identity,
    train_tokenizer,
)

TOKENIZER = train_tokenizer(ToySplit.of("train", 30), 300)
PROSE = (
    "the u.s. envoy's plane, a well-known 1990s model, cost $3.5 million (about 40% more); it doesn't fly. "
    '"it\'s 10:30," she said: "we do not know \'what\' it was... and/or why!" größe, naïve, café — 1,000 of '
    "the dogs' tails [sic]. 'tis so? yes."
)


def text_of(*sentences: str) -> Example:
    """Return an example whose summary is its first sentence."""
    return replace(hand_texts.text_of(sentences), references=(sentences[:1],))


WORDS = train_tokenizer([text_of(PROSE)], 64, "words")


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


def test_sentences_encode_as_running_text() -> None:
    """Sentence by sentence gives the ids of the sentences joined by spaces."""
    sentences = list(example(3).sentences())
    encoded = encode_sentences(TOKENIZER, sentences)
    whole = TOKENIZER(" ".join(sentences), add_special_tokens=False).input_ids
    assert [token for one in encoded for token in one.ids] == whole
    assert [one.words for one in encoded] == [len(sentence.split()) for sentence in sentences]


@pytest.mark.parametrize("config", [BartConfig, BertConfig])
def test_a_tokenizer_without_its_vocabulary(tmp_path: Path, config: type[PreTrainedConfig]) -> None:
    """A model's folder without tokenizer files is refused, for which the library makes one up that knows no text."""
    config().save_pretrained(tmp_path)
    with refuses("has no tokenizer: add its files"):
        load_tokenizer(tmp_path)


def test_no_network_for_a_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name on the hub, when that cannot be reached, is a problem of the machine, reported at once in one line."""
    monkeypatch.setattr(checkpoints, "unreachable", lambda: "no cable")
    with refuses(r"model.tokenizer=nobody/nothing is not a folder.*no cable", EnvironmentProblem):
        load_tokenizer("nobody/nothing")


def test_words_and_signs() -> None:
    """What is one word and what is split, worked out by hand."""
    text = """The U.S. said: "Apple's dogs' don't", 3.5% of $1,000 (e.g. 10:30) well-known... a_b Größe</s>"""
    words = "the|u.s.|said|:|“|apple|'s|dogs|'|don't|”|,|3.5|%|of|$|1,000|(|e.g.|10:30|)|well-known|...|a_b|größe|<|/|s|>"
    tokenizer = WORDS.backend_tokenizer
    normalized = tokenizer.normalizer.normalize_str(text)
    assert [
        word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(normalized)
    ] == words.split("|")


@pytest.mark.parametrize("size", [9, 20, 24])
def test_the_most_frequent_words_are_kept(size: int) -> None:
    """A vocabulary is the special entries and the most frequent words, equally frequent ones by the alphabet."""
    split = ToySplit.of("train", 30)
    texts = [sentence for one in split for sentence in (*one.sentences(), *one.references[0])]
    counts = Counter(word for text in texts for word in text.replace(".", " .").split())
    expected = sorted(counts, key=lambda word: (-counts[word], word))[: size - 4]
    vocabulary = train_tokenizer(split, size, "words").get_vocab()
    assert sorted(vocabulary, key=lambda word: vocabulary[word]) == [
        "<pad>",
        "<s>",
        "</s>",
        "<unk>",
        *expected,
    ]


def test_a_vocabulary_larger_than_the_words() -> None:
    """More entries than there are words is refused with both numbers; exactly as many are given."""
    split = [text_of("One two, two."), text_of("Three two.")]  # and the signs "," and "."
    assert len(train_tokenizer(split, 9, "words")) == 9
    with refuses(r"vocabulary_size=10 .* has 5 different words, .* give 9 or less"):
        train_tokenizer(split, 10, "words")


def test_what_reads_like_a_special_token_is_text(tmp_path: Path) -> None:
    """Neither "</s>" nor "<unk>" in a text becomes the special token, also of a tokenizer that was saved and loaded."""
    tokenizer = train_tokenizer([text_of("a </s> b <unk> c <pad>")], 13, "words")
    tokenizer.save_pretrained(tmp_path)
    for one in (tokenizer, load_tokenizer(tmp_path)):
        ids = encode_sentences(one, ["a </s>", "<unk> <pad>"])
        assert [one.convert_ids_to_tokens(sentence.ids) for sentence in ids] == [
            ["a", "<", "/", "s", ">"],
            ["<", "unk", ">", "<", "pad", ">"],
        ]
        assert min(token for sentence in ids for token in sentence.ids) > one.unk_token_id
        assert [sentence.words for sentence in ids] == [2, 2]
    assert tokenizer_identity(load_tokenizer(tmp_path)) == tokenizer_identity(tokenizer)
