"""probe: reports whose facts can be found in them, once, by whoever reads everything."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from longsumbench.configuration import DatasetSettings
from longsumbench.corpora import council, probe
from longsumbench.corpora.loading import load
from longsumbench.corpora.probe import Controls, lengths_of, report, reports
from longsumbench.documents import Example
from longsumbench.errors import UsageError
from longsumbench.metrics.fact_recall import FactRecall
from longsumbench.sentences import split_sentences
from longsumbench.stages import StageStore
from longsumbench.tokenization import train_tokenizer

PAGE = Path(__file__).parents[2] / "docs" / "probe.md"
Found = dict[str, tuple[str, str | None]]  # site → firm, and rank if it was decided by rank
TYPE_NAMES = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "rougeLsum": "ROUGE-Lsum"}
LADDER = (40, 64, 128, 256, 512, 1024)
USUAL_SPLITS = {  # sha256 of the splits of dataset=probe
    "train": "e7695ee69cbfcb36208cc4daf4ee650b355a37d73ea6483356fe2d9cb6535255",
    "validation": "5557b9f27a4ec62ac68a59cbccb81a228b9fe4ae6adda7c285fb564442f03f68",
    "test": "550e566ac6e63abbb38a4a8cee63545d40db961bee14b60ec0d1fb2fe9b1aadb",
}
GENERATED = {
    "usual": Controls(),
    "many silent facts": Controls(kinds=("silent", "relayed") * 6),
    "only look-alikes": Controls(hard=0, alike=1),
    "only hard distractors": Controls(hard=1, alike=0),
    "small sections": Controls(section_length=32),
    "no distance": Controls(distance=0),
}


def found_in(text: str) -> Found:
    """What a reader of the whole text knows: written without the generator, from the three forms of a decision.

    Fails where a site is decided twice, where bids are not the two of a decision, and where a decision lacks its bids.
    """
    opening = r"(?:The council decided that|It was agreed that|After a vote) the (\w+) goes to "
    decided = re.findall(opening + r"([A-Z]\w+)\.", text)
    chosen = re.findall(opening + r"the (\w+) bid\.", text)
    bids = re.findall(r"The (\w+) has a (\w+) bid from ([A-Z]\w+)\.", text)
    sites = [site for site, _ in decided + chosen]
    assert len(set(sites)) == len(sites)
    assert sorted(bid[:2] for bid in bids) == sorted((site, rank) for site, _ in chosen for rank in ("higher", "lower"))
    firms = {(site, rank): firm for site, rank, firm in bids}
    by_rank = {site: (firms[site, rank], rank) for site, rank in chosen}
    return {**{site: (firm, None) for site, firm in decided}, **by_rank}


def summary_of(found: Found, kinds: dict[str, str]) -> tuple[str, ...]:
    """The summary of what was found, in the order of the alphabet, which is the agenda's."""
    forms = {
        "single": "The {} goes to {}.",
        "relayed": "The {0} goes to the {2} bid from {1}.",
        "silent": "The {} goes to {} with the {} bid.",
    }
    return tuple(forms[kinds[site]].format(site, *found[site]) for site in sorted(found))


def length_of(sentences: Iterable[str]) -> int:
    """Words and full stops, counted one by one."""
    return sum(len(re.findall(r"\w+|\.", sentence)) for sentence in sentences)


def sections_of(example: Example) -> list[tuple[str, ...]]:
    return [tuple(section.sentences()) for section in example.documents[0].sections]


def digest(examples: Iterable[Example]) -> str:
    return hashlib.sha256(json.dumps([example.to_dict() for example in examples]).encode()).hexdigest()


@pytest.fixture(scope="module")
def tested() -> list[Example]:
    """The test split."""
    return list(reports([1024], seed=3, number=400))


@pytest.mark.parametrize("name", GENERATED)
def test_every_answer_is_in_the_source_and_is_the_only_one(name: str) -> None:
    """A plain reader of the text finds all facts, no others, and with them writes the reference, word by word."""
    for example in reports(LADDER, seed=11, number=600, controls=GENERATED[name]):
        found = found_in(" ".join(example.sentences()))
        assert {fact.subject: fact.value for fact in example.facts} == {site: firm for site, (firm, _) in found.items()}
        assert example.references == (summary_of(found, {fact.subject: fact.kind for fact in example.facts}),)


def test_the_reference_states_every_fact(tested: list[Example]) -> None:
    """As the metric reads it, a reference is all right, and the summary of another report hardly."""
    metric = FactRecall(None)  # type: ignore[arg-type] # it looks at no setting
    own = [metric.score(" ".join(example.references[0]), example)["fact_recall"] for example in tested]
    others = zip(tested[1:], tested, strict=False)
    blind = [metric.score(" ".join(other.references[0]), example)["fact_recall"] for other, example in others]
    assert set(own) == {1.0}
    assert sum(blind) / len(blind) == pytest.approx(1 / 24, abs=0.02)


def test_the_agenda(tested: list[Example]) -> None:
    """Six sites in one order, four facts in one place, one relayed, one silent; every firm could be the answer."""
    for example in tested:
        assert [fact.subject for fact in example.facts] == ["bridge", "canal", "harbour", "library", "market", "mill"]
        assert [fact.kind for fact in example.facts] == [*["single"] * 4, "relayed", "silent"]
        assert all(len(set(fact.values)) == 24 and fact.value in fact.values for fact in example.facts)
        assert 40 <= length_of(example.references[0]) <= 50
    values = Counter(fact.value for example in tested for fact in example.facts)
    assert len(values) == 24
    assert max(values.values()) < 1.5 * 2400 / 24


def test_notes_cover_a_part_of_the_agenda() -> None:
    """Below 128 tokens one site for every 20, any of the six; never more than fit."""
    for length, most in ((32, 1), (40, 2), (64, 3), (100, 5)):
        notes = list(reports([length], seed=5, number=300))
        assert {fact.subject for note in notes for fact in note.facts} == set(council.SITES[:6])
        assert max(len(note.facts) for note in notes) == most
        for note in notes:
            assert [fact.subject for fact in note.facts] == sorted(fact.subject for fact in note.facts)


def test_where_a_fact_stands(tested: list[Example]) -> None:
    """Its first sentence is found at its position; decision and bids in sections that lie its distance apart."""
    for example in [*tested[:100], *reports(LADDER, seed=4, number=300)]:
        sections = sections_of(example)
        sentences = list(chain.from_iterable(sections))
        for fact in example.facts:
            told = re.compile(rf"(The council decided that|It was agreed that|After a vote) the {fact.subject} goes")
            bid = re.compile(rf"The {fact.subject} has a")
            first = next(n for n, one in enumerate(sentences) if told.match(one) or bid.match(one))
            assert fact.position == length_of(sentences[:first]) / length_of(sentences)
            (decided,) = [n for n, one in enumerate(sections) for sentence in one if told.match(sentence)]
            bids = [(n, at) for n, one in enumerate(sections) for at, sentence in enumerate(one) if bid.match(sentence)]
            assert len(bids) == (0 if fact.kind == "single" else 2)
            if bids:
                assert bids[1] == (bids[0][0], bids[0][1] + 1)
            assert fact.distance == (abs(decided - bids[0][0]) if bids else 0)


def test_the_distances() -> None:
    """35 % of the facts are in one section, the others uniformly one to seven apart; either half comes first."""
    made = list(reports([1024], seed=6, number=1_500))
    apart = Counter(fact.distance for example in made for fact in example.facts if fact.kind != "single")
    shares = {distance: count / 3_000 for distance, count in apart.items()}
    assert shares.pop(0) == pytest.approx(0.35, abs=0.03)
    assert shares == pytest.approx(dict.fromkeys(range(1, 8), 0.65 / 7), abs=0.02)
    texts = [" ".join(example.sentences()) for example in made]
    first = [text.index("the market goes to the") < text.index("The market has a") for text in texts]
    assert sum(first) / len(first) == pytest.approx(0.5, abs=0.05)


def test_facts_stand_everywhere(tested: list[Example]) -> None:
    """Facts in one place are spread evenly over the tenths of the source."""
    tenths = Counter(int(fact.position * 10) for example in tested for fact in example.facts if fact.kind == "single")
    assert {tenth: count / 1600 for tenth, count in tenths.items()} == pytest.approx(
        dict.fromkeys(range(10), 0.1), abs=0.03
    )


def test_lengths() -> None:
    """A report has the tokens it was asked for, to half a sentence in the mean; sections are an eighth, at least 32."""
    for length, sections in ((32, 1), (40, 1), (64, 2), (128, 4), (256, 8), (1024, 8), (3000, 8)):
        made = list(reports([length], seed=7, number=100))
        lengths = [length_of(example.sentences()) for example in made]
        assert sum(lengths) / len(lengths) == pytest.approx(length, abs=2)
        assert max(abs(one - length) for one in lengths) <= 20
        assert {len(example.documents[0].sections) for example in made} == {sections}
    (example,) = reports([1024], seed=7, number=1)
    assert [length_of(section) for section in sections_of(example)] == pytest.approx([128] * 8, abs=10)
    assert [section.name for section in example.documents[0].sections][::7] == ["Session 1", "Session 8"]


def distractors(examples: Iterable[Example]) -> Iterator[tuple[str, str | None, str | None, Example]]:
    """(what it is, site, firm, example) for every sentence that is neither decision nor bid."""
    firms, sites = "|".join(council.FIRMS), "|".join(council.SITES)
    for example in examples:
        for sentence in example.sentences():
            if not re.search(r"^(The council decided|It was agreed|After a vote)| bid from ", sentence):
                site, firm = re.search(rf"\b({sites})\b", sentence), re.search(rf"\b({firms})\b", sentence)
                kind = "alike" if "goes to" in sentence else "hard" if site and firm else "plain"
                yield kind, site and site[0], firm and firm[0], example


def test_the_shares_of_distractors(tested: list[Example]) -> None:
    """40 % name a site of the agenda and a firm, 10 % look like a decision; other shares come as they are asked for."""

    def shares(examples: Iterable[Example]) -> dict[str, float]:
        counts = Counter(kind for kind, _, _, _ in distractors(examples))
        return {kind: count / counts.total() for kind, count in counts.items()}

    assert shares(tested) == pytest.approx({"hard": 0.4, "alike": 0.1, "plain": 0.5}, abs=0.01)
    assert shares(reports([256], 8, 20, Controls(hard=0, alike=0))) == {"plain": 1}
    assert shares(reports([256], 8, 20, Controls(hard=0, alike=1))) == {"alike": 1}
    named = {site for kind, site, _, _ in distractors(tested) if kind != "plain"}
    assert named == set(council.SITES[:6])
    assert all(firm is None for kind, _, firm, _ in distractors(tested) if kind == "plain")


def test_distractors_tell_nothing(tested: list[Example]) -> None:
    """A hard one names the true firm as often as any; look-alikes rule out one firm a site, never the true one."""
    pairs: dict[str, list[bool]] = defaultdict(list)
    rumours = defaultdict(set)
    for kind, site, firm, example in distractors(tested):
        truth = {fact.subject: fact.value for fact in example.facts}
        if kind != "plain" and site is not None and firm is not None:
            pairs[kind].append(truth[site] == firm)
            if kind == "alike":
                rumours[example.id, site].add(firm)
    assert sum(pairs["hard"]) / len(pairs["hard"]) == pytest.approx(1 / 24, abs=0.005)
    assert not any(pairs["alike"])
    assert {len(firms) for firms in rumours.values()} == {1}
    for example in tested:
        bidders = re.findall(r"The (\w+) has a \w+ bid from (\w+)\.", " ".join(example.sentences()))
        assert not any(firm in rumours[example.id, site] for site, firm in bidders)


def test_the_bids_alone_tell_nothing() -> None:
    """The lower bid wins as often as the higher, the first as often as the second, of either kind of fact."""
    wins = defaultdict(list)
    for example in reports([256], seed=12, number=1_000):
        bids = re.findall(r"The (\w+) has a (\w+) bid from (\w+)\.", " ".join(example.sentences()))
        won = {(fact.subject, fact.value): fact.kind for fact in example.facts}
        for number, (site, rank, firm) in enumerate(bids):
            if kind := won.get((site, firm)):
                wins[kind].append((rank == "lower", number % 2 == 0))
    for kind in ("relayed", "silent"):
        lower, first = zip(*wins[kind], strict=True)
        assert len(lower) == 1_000
        assert sum(lower) / 1_000 == pytest.approx(0.5, abs=0.05)
        assert sum(first) / 1_000 == pytest.approx(0.5, abs=0.05)


def test_the_language_is_closed(tested: list[Example]) -> None:
    """About 120 words, a full stop at every end, and the suite splits running text into the same sentences."""
    sentences = [one for example in tested for one in (*example.sentences(), *example.references[0])]
    words = {word.removesuffix(".") for sentence in sentences for word in sentence.split()}
    assert 100 <= len(words) <= 130
    assert all(word.isalpha() for word in words)
    assert all(re.fullmatch(r"[A-Z][A-Za-z ]*\.", sentence) for sentence in set(sentences))
    for example in tested[:20]:
        assert split_sentences(" ".join(example.sentences())) == tuple(example.sentences())
        assert split_sentences(" ".join(example.references[0])) == example.references[0]


def test_a_token_is_a_word_or_a_full_stop() -> None:
    """The suite's own tokenizer, trained on few reports, cuts no word."""
    made = list(reports(LADDER, seed=1, number=300))
    tokenizer = train_tokenizer(made, 1_000)
    for example in made[:30]:
        assert len(tokenizer(" ".join(example.sentences()))["input_ids"]) == length_of(example.sentences())


def test_the_same_report_whatever_was_made_before() -> None:
    """Its arguments alone decide: not the order of asking, not Python's hash seed, not the process."""
    forwards = [report(length, 9, index) for index, length in enumerate(LADDER)]
    backwards = [report(length, 9, index) for index, length in reversed(list(enumerate(LADDER)))]
    assert forwards == backwards[::-1] == list(reports(LADDER, 9, 6))
    code = (
        "import hashlib, json\nfrom longsumbench.corpora.probe import reports\n"
        f"made = [example.to_dict() for example in reports({LADDER}, 9, 6)]\n"
        "print(hashlib.sha256(json.dumps(made).encode()).hexdigest())"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        assert told.stdout.strip() == digest(forwards)
    assert len({tuple(report(256, seed, index).sentences()) for seed in range(3) for index in range(3)}) == 9


def test_a_note_worked_out_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where chance always says 0, every list gives its first word, and each statement stands before those so far."""
    monkeypatch.setattr(council.random, "Random", lambda key: type("Zero", (), {"random": lambda self: 0.0})())
    example = report(40, 0, 0, Controls(kinds=("silent",)))
    bids = ("The bridge has a lower bid from Adler.", "The bridge has a higher bid from Brandt.")  # 9 tokens each
    decision = "The council decided that the bridge goes to the lower bid."  # 12
    distractor = "Residents hoped that Adler would get the bridge."  # 9, so that one is enough
    assert sections_of(example) == [(*bids, decision, distractor)]
    assert example.references == (("The bridge goes to Adler with the lower bid.",),)
    (fact,) = example.facts
    assert (fact.kind, fact.subject, fact.value, fact.position, fact.distance) == ("silent", "bridge", "Adler", 0.0, 0)
    other = report(40, 0, 0, Controls(kinds=("single",), hard=0, alike=1))
    assert sections_of(other)[0][0] == "The council decided that the bridge goes to Adler."
    assert set(sections_of(other)[0][1:]) == {"Residents asked whether the bridge goes to Brandt."}


def test_a_distance_that_is_asked_for() -> None:
    """All facts of two places get it; one that a report has no room for is an error, as is a share above one."""
    made = list(reports([512], 10, 50, Controls(kinds=("relayed", "silent"), distance=5)))
    assert {fact.distance for example in made for fact in example.facts} == {5}
    assert {len(example.documents[0].sections) for example in reports([512], 10, 9, Controls(section_length=50))} == {
        10
    }
    with pytest.raises(UsageError, match="distance=8: a report of 512 tokens has 8 sections"):
        report(512, 10, 0, Controls(distance=8))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kinds": ()},
        {"kinds": ("single", "loud")},
        {"kinds": ("single",) * 13},
        {"hard": 0.7, "alike": 0.4},
        {"alike": -0.1},
        {"near": 1.5},
        {"section_length": 31},
    ],
)
def test_controls_that_cannot_be_meant(wrong: dict[str, Any]) -> None:
    """A control outside what it can be is an error that names it."""
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Controls(**wrong)


def test_a_report_holds_a_fact() -> None:
    """32 tokens are enough for any fact; fewer are an error, in a setting as in a call."""
    for kind in ("single", "relayed", "silent"):
        assert all(len(note.facts) == 1 for note in reports([32], 1, 50, Controls(kinds=(kind,))))
    with pytest.raises(UsageError, match="31 tokens"):
        report(31, 1, 0)
    with pytest.raises(UsageError, match=r"dataset\.document_length=31"):
        DatasetSettings(document_length=31)


def test_the_ladder() -> None:
    """Training lengths double up to the length that is tested."""
    assert lengths_of(1024) == {"train": LADDER, "validation": (1024,), "test": (1024,)}
    assert lengths_of(1000)["train"] == (40, 64, 128, 256, 512, 1000)
    assert lengths_of(65)["train"] == (40, 64, 65)
    assert lengths_of(64)["train"] == (40, 64)
    assert lengths_of(32)["train"] == (32,)


def test_trained_short_and_tested_long(stages: StageStore) -> None:
    """`train_length` leaves training and validation what they are for tests of that length, byte for byte."""
    assert lengths_of(65536, 1024) == {"train": LADDER, "validation": (1024,), "test": (65536,)}
    assert lengths_of(None, 64) == {"train": (40, 64), "validation": (64,), "test": (1024,)}
    usual = load(DatasetSettings(name="probe", limit=6), stages)
    longer = load(DatasetSettings(name="probe", limit=6, document_length=2048, train_length=1024), stages)
    for split in ("train", "validation"):
        assert longer.splits[split].fingerprint == usual.splits[split].fingerprint
    assert list(longer.splits["test"]) == list(reports([2048], 3, 6))
    same = load(DatasetSettings(name="probe", limit=6, document_length=1024, train_length=1024), stages)
    assert same.fingerprint == usual.fingerprint != longer.fingerprint


def test_the_texts_stay_what_they_were() -> None:
    """The usual splits are byte for byte those of the first version, which the stored fingerprints are of."""
    hashes = {split: hashlib.sha256() for split in USUAL_SPLITS}
    for split, example in probe.generate(DatasetSettings(name="probe")):
        hashes[split].update(json.dumps(example.to_dict(), sort_keys=True).encode() + b"\n")
    assert {split: found.hexdigest() for split, found in hashes.items()} == USUAL_SPLITS


def test_a_million_tokens() -> None:
    """Time grows as the length does: a report of a million tokens takes a second or so, and lists each fact."""
    started = time.perf_counter()
    example = report(2**20, 3, 0)
    assert time.perf_counter() - started < 20
    assert length_of(example.sentences()) == pytest.approx(2**20, abs=20)
    assert len(example.documents[0].sections) == 8
    assert len(example.facts) == 6


def test_the_dataset_through_the_loader(stages: StageStore) -> None:
    """Read like any other, facts and all; the record says version, numbers and lengths."""
    texts = load(DatasetSettings(name="probe", limit=12), stages)
    assert list(texts.splits["train"]) == list(reports(LADDER, 1, 12))
    assert texts.splits["test"][5] == report(1024, 3, 5)
    assert texts.splits["test"][5].facts
    assert texts.splits["validation"].ids == [f"2-1024-{index}" for index in range(12)]
    assert texts.facts["generator"] == probe.VERSION
    assert texts.facts["generated"]["train"] == {"reports": 9_000, "seed": 1, "lengths": list(LADDER)}
    assert not texts.multi_document
    short = load(DatasetSettings(name="probe", limit=12, document_length=64), stages)
    assert short.fingerprint != texts.fingerprint
    assert {example.documents[0].sections[-1].name for example in short.splits["test"]} == {"Session 2"}
    same = load(DatasetSettings(name="probe", limit=12, document_length=1024), stages)
    assert same.fingerprint == texts.fingerprint


def test_the_whole_dataset(stages: StageStore) -> None:
    """9,000, 100 and 400 reports, no training text among those tested, within seconds."""
    texts = load(DatasetSettings(name="probe", document_length=64), stages)
    assert {name: len(split) for name, split in texts.splits.items()} == {
        "train": 9_000,
        "validation": 100,
        "test": 400,
    }
    trained = {tuple(example.sentences()) for example in texts.splits["train"]}
    assert not trained & {tuple(example.sentences()) for example in texts.splits["test"]}


def test_the_page_shows_what_is() -> None:
    """The excerpt of the documentation is a report's own text, and its example of use runs as it stands."""
    page = PAGE.read_text(encoding="utf-8")
    excerpt, code = re.findall(r"```(?:text|python)\n(.*?)```", page, re.DOTALL)[:2]
    example = report(128, seed=3, index=0)
    shown = [" ".join(section) for section in sections_of(example)] + [" ".join(example.references[0])]
    told = [" ".join(paragraph.split()) for paragraph in re.split(r"Session \d: |Summary: ", excerpt)[1:]]
    assert told == shown
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - it is the project's own
    assert names["example"] == report(1024, seed=3, index=0)
    assert all(f"{kind} {names['guessed'][key]}" in " ".join(page.split()) for key, kind in TYPE_NAMES.items())
