"""probe: reports whose facts can be found in them, once, by whoever reads everything."""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from support.waiting import assert_linear

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Example, Fact
from longsumbench.corpora.loading.load import load_texts
from longsumbench.corpora.probe import language as council, probe
from longsumbench.corpora.probe.probe import Controls, choose_report_lengths, report, reports
from longsumbench.errors import UsageError
from longsumbench.metrics.fact_recall import FactRecall

FORMS = {
    "single": "The {} goes to {}.",
    "relayed": "The {0} goes to the {2} bid from {1}.",
    "silent": "The {} goes to {} with the {} bid.",
}
# the fingerprint of the runs with dataset.document_length=128
STORED = "33bebc260e9730e0732aa6638f646a08ee461517f1e69d2cfabc605823c8088d"
LADDER = (40, 64, 128, 256, 512, 1024)


CONTROLS = {
    "usual": Controls(),
    "several sources": Controls(sources=4),
    "an agenda in the query": Controls(agenda="asked"),
    "both": Controls(sources=3, agenda="asked"),
}
DECISION = re.compile(
    r"(?:The council decided that|It was agreed that|After a vote) the (\w+) goes to (?:the )?(\w+)(?: bid)?\."
)
BID = re.compile(r"The (\w+) has a (\w+) bid from ([A-Z]\w+)\.")


def decisions_in(example: Example) -> dict[str, tuple[str, int]]:
    """Return site → firm or rank, and the section of the decision. Fails if a site is decided twice."""
    decisions: dict[str, tuple[str, int]] = {}
    for number, section in enumerate(all_sections(example)):
        for sentence in section:
            if decision := DECISION.fullmatch(sentence):
                assert decision[1] not in decisions
                decisions[decision[1]] = decision[2], number
    return decisions


def all_sections(example: Example) -> list[tuple[str, ...]]:
    return [tuple(section.sentences()) for section in example.sections()]


def read_facts(example: Example) -> dict[str, tuple[str, str | None]]:
    """Return site → firm, and the rank if it was decided by rank, as a reader of the whole text knows them."""
    bids = {
        match.groups()[:2]: match[3] for match in map(BID.fullmatch, example.sentences()) if match
    }
    decisions = {site: choice for site, (choice, _) in decisions_in(example).items()}
    by_rank = {site: rank for site, rank in decisions.items() if rank in council.RANKS}
    assert set(bids) == {(site, rank) for site in by_rank for rank in council.RANKS}
    firms = {site: (bids[site, rank], rank) for site, rank in by_rank.items()}
    return {site: firms.get(site, (choice, None)) for site, choice in decisions.items()}


def length_of(sentences: Iterable[str]) -> int:
    """Words and full stops, counted one by one."""
    return sum(len(re.findall(r"\w+|\.", sentence)) for sentence in sentences)


def digest(examples: Iterable[Example]) -> str:
    return hashlib.sha256(
        json.dumps([example.to_dict() for example in examples]).encode()
    ).hexdigest()


@pytest.fixture(scope="module")
def tested() -> list[Example]:
    """The test split."""
    return list(reports([1024], seed=3, number=400))


def test_the_reference_states_every_fact(tested: list[Example]) -> None:
    """As the metric reads it, a reference is all right, and the summary of another report hardly."""
    metric = FactRecall(None)  # type: ignore[arg-type] # it looks at no setting
    own, blind = set(), 0.0
    for example, other in pairwise(tested):
        summaries = (" ".join(report.references[0]) for report in (example, other))
        right, guessed = (metric.score(text, example)["fact_recall"] for text in summaries)
        own.add(right)
        blind += guessed / len(tested)
    assert own == {1.0}
    assert blind == pytest.approx(1 / 24, abs=0.02)


def test_facts_are_in_one_section_or_uniformly_apart() -> None:
    """35 % of the facts are in one section, the others uniformly one to seven apart."""
    made = list(reports([1024], seed=6, number=1_500))
    apart = Counter(
        fact.distance for example in made for fact in example.facts if fact.kind != "single"
    )
    shares = {distance: count / 3_000 for distance, count in apart.items()}
    assert shares.pop(0) == pytest.approx(0.35, abs=0.03)
    assert shares == pytest.approx(dict.fromkeys(range(1, 8), 0.65 / 7), abs=0.02)


@pytest.mark.parametrize("name", CONTROLS)
def test_every_answer_is_in_the_source_and_is_the_only_one(name: str) -> None:
    """A reader of the whole text writes the reference in the agenda's order; a fact's kind follows from its site."""
    controls = CONTROLS[name]
    kinds: dict[str, str] = {}
    for example in reports((*LADDER, 2048), seed=21, number=140, controls=controls):
        facts = read_facts(example)
        assert {fact.subject: fact.value for fact in example.facts} == {
            site: firm for site, (firm, _) in facts.items()
        }
        agenda = sorted(facts)
        if controls.agenda == "asked":
            query = re.fullmatch(r"What of ([a-z ]+)\?", example.query or "")
            assert query is not None
            agenda = query[1].split()
        for fact in example.facts:
            assert kinds.setdefault(fact.subject, fact.kind) == fact.kind
        summary = tuple(FORMS[kinds[site]].format(site, *facts[site]) for site in agenda)
        assert example.references == (summary,)
    assert len(kinds) == (12 if controls.agenda == "asked" else 6)


@pytest.mark.parametrize("name", CONTROLS)
def test_positions_and_distances_of_facts(name: str) -> None:
    """A position is that of the first sentence of a fact; a distance is in sections, from the decision to the bids."""
    for example in reports((*LADDER, 2048), seed=22, number=70, controls=CONTROLS[name]):
        decisions, sections = decisions_in(example), all_sections(example)
        sentences = [(text, number) for number, section in enumerate(sections) for text in section]
        for fact in example.facts:
            places = [
                (place, number)
                for place, (text, number) in enumerate(sentences)
                if text.startswith(f"The {fact.subject} has a")
                or (DECISION.match(text) and f" {fact.subject} goes" in text)
            ]
            before = length_of(text for text, _ in sentences[: places[0][0]])
            assert fact.position == before / length_of(text for text, _ in sentences)
            decided_in = decisions[fact.subject][1]
            assert fact.distance == max(abs(number - decided_in) for _, number in places)


def test_options_through_the_loader(cache: ArtifactCache) -> None:
    """The settings make what the controls do; the record has those that differ, and the usual values change nothing."""
    same = DatasetSettings(name="probe", limit=4, sources=1, agenda="fixed")
    assert probe.probe_inputs(same) == probe.probe_inputs(DatasetSettings(name="probe"))
    usual = load_texts(same, cache)
    options: dict[str, Any] = {"sources": 3, "agenda": "asked"}
    texts = load_texts(DatasetSettings(name="probe", limit=4, **options), cache)
    assert texts.metadata["options"] == options
    assert "options" not in usual.metadata
    assert list(texts.splits["test"]) == list(reports([1024], 3, 4, Controls(**options)))
    assert (texts.multi_document, usual.multi_document) == (True, False)


def test_the_texts_of_stored_runs_stay_the_same(cache: ArtifactCache) -> None:
    """The fingerprints are those of published runs; the digests were computed with their version of the generator."""
    texts = load_texts(DatasetSettings(name="probe", document_length=128), cache)
    assert texts.fingerprint == STORED
    assert set(probe.probe_inputs(DatasetSettings("probe"))) == {"generator", "generated"}
    prose = tuple(f"In {number} we saw the small cells." for number in range(300))
    digests = {
        "6076c911f2648156": Controls(),
        "2edbafe943c59260": Controls(sources=4),
        "4d39c6fe08f49f33": Controls(agenda="asked"),
        "445ca9e82d1cf6d5": Controls(prose=prose),
    }
    for expected, controls in digests.items():
        assert digest(reports((32, 100, 128, 1024), 5, 12, controls))[:16] == expected


def test_reports_and_sections_have_their_lengths() -> None:
    """A report has the tokens it was asked for, to half a sentence in the mean; sections are an eighth, at least 32."""
    numbers = {32: 1, 40: 1, 64: 2, 128: 4, 256: 8, 1024: 8, 3000: 8}
    for length, sections in numbers.items():
        made = list(reports([length], seed=7, number=100))
        lengths = [length_of(example.sentences()) for example in made]
        assert sum(lengths) / len(lengths) == pytest.approx(length, abs=2)
        assert max(abs(one - length) for one in lengths) <= 20
        assert {len(example.documents[0].sections) for example in made} == {sections}
    sections_of_one = map(length_of, all_sections(report(1024, 7, 0)))
    assert list(sections_of_one) == pytest.approx([128] * 8, abs=10)


def distractors(
    examples: Iterable[Example],
) -> Iterator[tuple[str, str | None, str | None, Example]]:
    """(what it is, site, firm, example) for every sentence that is neither decision nor bid."""
    firms, sites = "|".join(council.FIRMS), "|".join(council.SITES)
    for example in examples:
        for sentence in example.sentences():
            if not BID.fullmatch(sentence) and not DECISION.fullmatch(sentence):
                site = re.search(rf"\b({sites})\b", sentence)
                firm = re.search(rf"\b({firms})\b", sentence)
                kind = "alike" if "goes to" in sentence else "hard" if site and firm else "plain"
                yield kind, site and site[0], firm and firm[0], example


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


def test_a_note_worked_out_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where chance always says 0, every list gives its first word, and each statement is before those so far."""
    monkeypatch.setattr(
        "random.Random", lambda key: type("Zero", (), {"random": lambda self: 0.0})()
    )
    example = report(40, 0, 0, Controls(agenda="asked"))
    assert example.query == "What of bridge canal?"
    decisions = (
        "The council decided that the canal goes to Adler.",
        "The council decided that the bridge goes to Adler.",
    )
    distractor = "Residents hoped that Adler would get the bridge."
    assert all_sections(example) == [(*decisions, distractor, distractor)]
    assert example.references == (("The bridge goes to Adler.", "The canal goes to Adler."),)
    assert example.facts[0] == Fact("single", "bridge", "Adler", council.FIRMS, 10 / 38, 0)


def test_a_report_holds_a_fact() -> None:
    """32 tokens are enough for any fact; fewer are an error, in a call."""
    notes = list(reports([32], 1, 50))
    assert all(len(note.facts) == 1 for note in notes)
    assert {note.facts[0].kind for note in notes} == {"single", "relayed", "silent"}
    with pytest.raises(UsageError, match="31 tokens"):
        report(31, 1, 0)


def test_trained_short_and_tested_long() -> None:
    """Training lengths double; `train_length` leaves training and validation what they are without it."""
    assert choose_report_lengths(1000)["train"] == (40, 64, 128, 256, 512, 1000)
    long, usual = choose_report_lengths(65536, 1024), choose_report_lengths(None, 64)
    assert long == {"train": LADDER, "validation": (1024,), "test": (65536,)}
    assert usual == {"train": (40, 64), "validation": (64,), "test": (1024,)}


def test_time_grows_as_the_length_of_a_report() -> None:
    """Time grows as the length does, up to 262,144 tokens."""
    assert_linear(lambda length: report(length, 3, 0), 2**18)
