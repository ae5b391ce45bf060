"""The LSTM ranker: its equations, what changes no score, what it learns from, and its stage."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.language_models import text_example
from support.toys import WORDS, ToySplit, refuses
from transformers import PreTrainedTokenizerBase

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import Example, Ranker, RankerSettings, Scoring, texts_to_rank
from longsumbench.errors import DataError
from longsumbench.modeling.ranking import find_ranker, rank, tfidf_with_title
from longsumbench.modeling.tokenizer import trained_tokenizer
from longsumbench.models.rankers.lstm import (
    ROW_LENGTH,
    TEXT_LENGTH,
    Labeller,
    LstmRanker,
    training_rows,
)
from longsumbench.models.rankers.lstm_network import (
    LstmRankerConfig,
    LstmRankerModel,
    ParagraphCollator,
)

pytestmark = pytest.mark.usefixtures("float64")

QUICK = RankerSettings(dimension=16, steps=6, batch_size=4, vocabulary_size=300, device="cpu")
FILLER = WORDS[:16]


def example(number: int, title: str | None, paragraphs: list[str], reference: str) -> Example:
    text = text_example([[paragraph] for paragraph in paragraphs], name=f"x-{number}")
    return replace(text, title=title, references=((reference,),))


def told_apart(number: int) -> Example:
    """Return a text whose summary is in a paragraph that begins with "notably" and never names the title."""
    chance = random.Random(number)
    name = f"town{number}"
    useful = " ".join(chance.sample(FILLER, 6))
    others = [f"{name} {' '.join(chance.sample(FILLER, 3))} {name}" for _ in range(4)]
    paragraphs = [*others, f"notably {useful}"]
    chance.shuffle(paragraphs)
    return example(number, name, paragraphs, useful)


def split_of(name: str, size: int, start: int = 0) -> ToySplit:
    return ToySplit(name, [told_apart(start + number) for number in range(size)])


def by_hand(model: LstmRankerModel, title: list[int], paragraph: list[int]) -> torch.Tensor:
    """Eqs. 1–6 for one paragraph, a token at a time."""

    def states(lstm: torch.nn.LSTM, ids: list[int]) -> list[torch.Tensor]:
        found, state = [], None
        for token in ids:
            output, state = lstm(model.embeddings.weight[token][None, None], state)
            found.append(output[0, 0])
        return found

    pooled = (
        torch.stack(states(model.title_lstm, title)).max(0).values
        if title
        else torch.zeros(model.config.d_model)
    )
    features = []
    for state in states(model.paragraph_lstm, paragraph):
        joined = torch.cat([state, pooled])
        features.append(torch.tanh(model.features.weight @ joined + model.features.bias))
    return (model.score.weight @ torch.stack(features).max(0).values + model.score.bias)[0]


def test_the_network_is_the_papers_equations() -> None:
    """Logits equal Eqs. 1–6 written down a token at a time, with a title and without one, with any lengths."""
    torch.manual_seed(0)
    model = LstmRankerModel(LstmRankerConfig(vocab_size=50, d_model=12)).eval()
    draw = random.Random(1)
    rows = [
        [[draw.randrange(50) for _ in range(n)] for n in lengths]
        for lengths in ((3, 1, 9, 4, 17), (0, 5, 2))
    ]
    batch = ParagraphCollator(0)([{"units": row, "labels": [0.0] * len(row[1:])} for row in rows])
    with torch.no_grad():
        logits = model(**batch).logits
        for of_row, (title, *paragraphs) in zip(logits, rows, strict=True):
            for value, ids in zip(of_row[1:], paragraphs, strict=False):
                torch.testing.assert_close(value, by_hand(model, title, ids))


def test_worked_labels() -> None:
    """Of "A red fox ran home." the bigrams are a-red, red-fox, fox-ran, ran-home; plural foxes are the same stem."""
    found = Labeller(Scoring())(
        ["The red foxes ran.", "home", "ran home ran home", ""], ["A red fox ran", "home."]
    )
    assert found == [0.5, 0.0, 0.25, 0.0]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerBase:
    return trained_tokenizer(
        split_of("train", 20), 300, ArtifactCache(tmp_path_factory.mktemp("stages"))
    )


def test_many_paragraphs_become_several_rows(tokenizer: PreTrainedTokenizerBase) -> None:
    """Each row has the title and whole paragraphs, together every paragraph once with its own label, long ones cut."""
    texts = [
        " ".join(FILLER[index : index + 4] * (200 if index == 3 else 25)) for index in range(12)
    ] * 2
    one = example(1, "a town", texts, " ".join(FILLER[2:9]))
    rows = list(training_rows(one, tokenizer, "paragraph", Labeller(Scoring())))
    assert len(rows) > 1
    assert len({tuple(row["units"][0]) for row in rows}) == 1
    labels = [value for row in rows for value in row["labels"]]
    assert labels == Labeller(Scoring())(texts, one.references[0])
    lengths = [[len(ids) for ids in row["units"][1:]] for row in rows]
    assert all(sum(of_row) <= ROW_LENGTH for of_row in lengths)
    assert max(map(max, lengths)) == TEXT_LENGTH


def test_sentences_can_be_learned_from(tokenizer: PreTrainedTokenizerBase) -> None:
    """With unit=sentence, each sentence of a paragraph has its own tokens and its own label."""
    text = text_example([["kadan lofel.", "mihit nugor."], ["kahit."]])
    one = replace(text, title="a town", references=(("mihit nugor",),))
    (row,) = training_rows(one, tokenizer, "sentence", Labeller(Scoring()))
    assert row["labels"] == [0.0, 1.0, 0.0]
    assert len(row["units"]) == 4


def useful_first(ranker: Ranker, one: Example) -> bool:
    """Tell whether the best paragraph of a text made by `told_apart` is the one that its summary is in."""
    texts = texts_to_rank(one)
    return texts[rank(ranker(one.title, texts))[0]].startswith("notably")


def test_it_learns_what_a_title_cannot_tell(tmp_path: Path) -> None:
    """Where the useful paragraph never names the title, tf-idf puts it last, and the ranker first."""
    settings = replace(QUICK, steps=60, batch_size=8)
    train, validation = split_of("train", 80), split_of("validation", 10, 500)
    ranker = find_ranker("lstm", train, validation, settings, ArtifactCache(tmp_path))
    tests = [told_apart(900 + number) for number in range(20)]
    found = {
        ranker: [useful_first(ranker, one) for one in tests]
        for ranker in (ranker, tfidf_with_title)
    }
    assert sum(found[ranker]) >= 18
    assert sum(found[tfidf_with_title]) == 0


def test_the_finished_stage_is_found(tmp_path: Path) -> None:
    """The same texts and settings train once, on any device; another width, seed or unit is another ranker."""
    train, cache = split_of("train", 12), ArtifactCache(tmp_path)
    first = LstmRanker.fitted(train, None, QUICK, cache)
    assert (
        LstmRanker.fitted(train, None, replace(QUICK, device="auto"), cache).identity
        == first.identity
    )
    assert len(list(tmp_path.glob("ranker/*/inputs.json"))) == 1
    assert not (cache.folders["ranker"] / "trainer").exists()
    changes = ({"dimension": 8}, {"seed": 2}, {"unit": "section"})
    others = [LstmRanker.fitted(train, None, replace(QUICK, **one), cache) for one in changes]
    assert len({one.identity for one in (first, *others)}) == 4


def test_it_survives_saving(tmp_path: Path) -> None:
    """Saved and loaded, it is known by the same identity; a damaged one is an error."""
    ranker = LstmRanker.fitted(
        split_of("train", 12), None, QUICK, ArtifactCache(tmp_path / "stages")
    )
    (tmp_path / "kept").mkdir()
    ranker.save(tmp_path / "kept")
    again = LstmRanker.load(tmp_path / "kept")
    assert again.identity == ranker.identity
    (tmp_path / "kept" / "model.safetensors").write_bytes(b"torn")
    with refuses("kept", DataError):
        LstmRanker.load(tmp_path / "kept")


def test_without_texts_to_learn_from_it_says_so(cache: ArtifactCache) -> None:
    """No training split, an empty one, or none with paragraphs and references is bad data, in one line."""
    for nothing in (None, ToySplit("train", [])):
        with refuses("learns from a training split, and the dataset has none", DataError):
            LstmRanker.fitted(nothing, None, QUICK, cache)
    blank = ToySplit("train", [replace(told_apart(number), references=()) for number in range(3)])
    with refuses("no paragraph", DataError):
        LstmRanker.fitted(blank, None, QUICK, cache)
