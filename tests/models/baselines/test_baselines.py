"""Lead, random, LexRank and oracle as systems."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.language_models import text_example
from support.toys import ToySplit, build_tiny, fit_context, refuses, settings_of

from longsumbench.core import (
    Cut,
    Decoding,
    Document,
    Example,
    Fitted,
    Section,
    Sentences,
    System,
    Truncation,
    count_words,
)
from longsumbench.errors import DataError

NAMES = ("lead", "random", "lexrank", "ranker")
SOURCE = ("One two three.", "Four five six seven.", "Eight.", "Nine ten eleven.", "Twelve.")


def example(
    id: str = "a", source: Sentences = SOURCE, references: Sequence[Sentences] = (("One two.",),)
) -> Example:
    document = Document(None, (Section(None, (source,)),))
    return Example(id, None, None, (document,), tuple(references))


def texts(system: System, *examples: Example, seed: int = 1) -> list[str]:
    return [summary.text for summary in system.summarize(examples, Decoding(seed=seed))]


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        ("3", "One two three."),
        ("5", "One two three.\nFour five"),
        ("1", "One"),
        ("99", "\n".join(SOURCE)),
        ("reference", "One two"),
    ],
)
def test_lead_cuts_at_the_word(length: str, expected: str) -> None:
    """Lead writes exactly the first words up to the length, or the whole source where it is shorter."""
    assert texts(build_tiny("lead", length=length), example()) == [expected]


def ranked_example(title: str | None = "Red dogs") -> Example:
    """Return three paragraphs: of the first none of the title's words, of the second one, of the third both."""
    paragraphs = (
        ("Cats sleep.", "They purr."),
        ("Dogs bark at cats.",),
        ("Red dogs bark.", "They run."),
    )
    return replace(text_example(paragraphs), title=title)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", "Cats sleep.\nThey purr.\nDogs"),
        ("rank=title", "Red dogs bark.\nThey run."),
        ("title=true rank=title", "Red dogs\nRed dogs bark."),
    ],
)
def test_lead_may_begin_with_the_title_and_rank_paragraphs(settings: str, expected: str) -> None:
    """Five words of: the source; the title and the source; the best paragraph first; the title, then that."""
    assert texts(build_tiny("lead", length="5", **settings_of(settings)), ranked_example()) == [
        expected
    ]


def test_the_ledger_of_lead_counts_no_word_of_the_title() -> None:
    """Of five words two are the title's: three of the source's thirteen were seen."""
    for length, cut in (("5", 10), ("1", 13)):
        lead = build_tiny("lead", length=length, title=True)
        (summary,) = lead.summarize([ranked_example()], Decoding())
        assert summary.truncation == Truncation(13, 13, (Cut("length", cut, cut),))


@pytest.mark.parametrize("name", ["lead", "ranker"])
def test_a_ranker_that_learns_makes_a_baseline_depend_on_the_seed(name: str) -> None:
    """The version of a learned ranker is part of what decides the outcome, as is the seed of its training."""
    plain, learned = build_tiny(name, rank="tfidf"), build_tiny(name, rank="lstm")
    assert (plain.config.identity()["ranker"], plain.config.decided_by) == (None, frozenset())
    assert (learned.config.identity()["ranker"], learned.config.decided_by) == (1, {"seed"})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # the sentence with both words, and a part of that with one
        ("", "Dogs bark at\nRed dogs bark."),
        ("unit=paragraph", "Dogs\nRed dogs bark.\nThey run."),
        # the only one
        ("redundancy=0.9", "Cats sleep.\nThey\nRed dogs bark."),  # others share nothing with it
        ("rank=lexrank length=reference", "Dogs bark"),  # like both others
    ],
)
def test_ranker_extracts_what_scores_best(settings: str, expected: str) -> None:
    """Six words of the sentences or paragraphs that share most with the title, in the order of the source."""
    system = build_tiny("ranker", **{"rank": "title", "length": "6", **settings_of(settings)})
    assert texts(system, ranked_example()) == [expected]


def test_highlights_are_copied() -> None:
    """What people highlighted is written line by line; a text without highlights is refused before the run."""
    system = build_tiny("highlights")
    highlighted = replace(example("b"), highlights=("One two three.", "Twelve."))
    assert texts(system, highlighted) == ["One two three.\nTwelve."]
    system.check_examples([highlighted])
    with refuses("example 'a' has none: choose another model, or dataset="):
        system.check_examples([highlighted, example("a")])


def test_random_draws_the_same_everywhere() -> None:
    """What a seed draws for an id is fixed, so that a record can be repeated; another seed or id draws anew."""
    source = tuple(f"S{number}" for number in range(20))
    random = build_tiny("random", length="5")
    one, other = texts(random, example("x", source), example("y", source))
    assert one == "S1\nS12\nS14\nS16\nS19"
    assert len({one, other, *texts(random, example("x", source), seed=2)}) == 3


CLUSTER = text_example(
    [("Rain fell.", "Hens hid."), ("Foxes dug a den.", "Snow fell.")],
    [(), ("Foxes left the den.", "Nobody saw."), ("Cars passed.",)],
)  # the two of foxes share two words; fell is in two paragraphs, too


def test_lexrank_chooses_sentences_in_the_order_of_the_source() -> None:
    """In one paragraph, the best are the sentence like two others and the one like none; it is not Lead."""
    source = ("Red.", "Red dogs.", "Dogs.", "Cats.", "Cats.")  # the copy is skipped
    system = build_tiny("lexrank", length="3")
    assert texts(system, example(source=source[:4])) == ["Red dogs.\nCats."]
    assert texts(build_tiny("lexrank", length="99"), example(source=source)) == [
        "\n".join(source[:4])
    ]
    (summary,) = system.summarize([example(source=source[:4])], Decoding())
    assert summary.truncation == Truncation(5, 5)


def test_worked_lexrank_of_paragraphs() -> None:
    """Best first is the paragraph like two others, then the one like none (1/4, the mean), then those two."""
    (summary,) = build_tiny("lexrank", unit="paragraph", length="99").summarize(
        [CLUSTER], Decoding()
    )
    ranked = [
        "Foxes dug a den.",
        "Snow fell.",
        "Cars passed.",
        "Foxes left the den.",
        "Nobody saw.",
        "Rain fell.",
    ]
    assert summary.text.split("\n") == [*ranked, "Hens hid."]
    assert summary.truncation == Truncation(18, 18)


@pytest.mark.parametrize("name", NAMES)
def test_the_length_is_learned_and_kept(name: str, tmp_path: Path) -> None:
    """`length=train` is the mean of the training targets (2 and 4 words: 3), and survives save and load."""
    train = ToySplit(
        "train",
        [
            example(references=[("One two.",)]),
            example(references=[("One two", "three four."), ("x",)]),
        ],
    )
    system = build_tiny(name)
    system.fit(fit_context(tmp_path, train))
    system.save(tmp_path)
    loaded = type(system).load(tmp_path)
    assert loaded.state == Fitted(target_words=3)
    assert texts(loaded, example()) == texts(system, example())
    assert len(texts(loaded, example())[0].split()) == 3


CHINESE = (
    "会议于周一上午九点在市政厅开始。",
    "市长首先介绍了今年的预算情况！",
    "GPT-4 很好。",
    "下次会议定于下个月举行。",
)


@pytest.mark.parametrize("length", [1, 9, 17, 30])
def test_a_length_counts_letters_where_a_script_has_no_blanks(length: int) -> None:
    """Every baseline writes as many letters of a Chinese text as it is asked for."""
    for name in NAMES:
        (written,) = texts(build_tiny(name, length=length), example(source=CHINESE))
        assert count_words([written]) == length
    assert texts(build_tiny("lead", length="17"), example(source=CHINESE)) == [
        f"{CHINESE[0]}\n市长"
    ]


def test_lexrank_compares_letters_where_a_script_has_no_blanks() -> None:
    """Of Chinese sentences, that which shares letters with two others is best; as words, none would share any."""
    source = ("红狐狸。", "红狗跑。", "狗叫了。", "天上有云彩。")
    assert texts(build_tiny("lexrank", length="3"), example(source=source)) == ["红狗跑。"]


@pytest.mark.parametrize("train", [None, ToySplit("train", [])])
def test_no_training_split_names_the_other_choices(train: ToySplit | None, tmp_path: Path) -> None:
    """Without training targets `length=train` is a data error that names both other choices."""
    with refuses(r"model.length=<words> or =reference", DataError):
        build_tiny("lead").fit(fit_context(tmp_path, train))
    build_tiny("lead", length="7").fit(fit_context(tmp_path, train))


def test_another_person_is_a_reference_of_the_example() -> None:
    """The draw depends on the seed and the id: over seeds each person is drawn; one person alone is refused."""
    people = (("It rained.", "She left."), ("She left.",), ("Rain.",))
    story, system = example("s", references=people), build_tiny("person")
    seeds = [texts(system, story, seed=seed)[0] for seed in range(1, 30)]
    assert set(seeds) == {"It rained.\nShe left.", "She left.", "Rain."}
    assert texts(system, example("a"), story, seed=7)[1] == seeds[6]
    system.check_examples([story])
    for references in ((("One.",),), (("One.",), ("One.",))):
        with refuses("example 'a' has no two different ones: choose another"):
            system.check_examples([story, example(references=references)])
