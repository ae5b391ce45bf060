"""probe: reports whose facts can be found in them, once, by whoever reads everything."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import Any

import pytest
from support.paths import ROOT
from support.waiting import assert_linear

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Example, build_settings
from longsumbench.corpora.probe import language as council, probe
from longsumbench.corpora.probe.probe import Controls, lengths_of, report, reports
from longsumbench.corpora.reading.load import load_texts
from longsumbench.errors import UsageError
from longsumbench.metrics.fact_recall import FactRecall
from longsumbench.sentences import split_sentences

PAGE = ROOT / "docs" / "probe.md"
Found = dict[str, tuple[str, str | None]]  # site → firm, and rank if it was decided by rank
TYPE_NAMES = {
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "rougeLsum": "ROUGE-Lsum",
}
LADDER = (40, 64, 128, 256, 512, 1024)


CONTROLS = {
    "usual": Controls(),
    "many silent facts": Controls(kinds=("silent", "relayed") * 6),
    "only look-alikes": Controls(hard=0, alike=1),
    "only hard distractors": Controls(hard=1, alike=0),
    "small sections": Controls(section_length=32),
    "no distance": Controls(distance=0),
    "several sources": Controls(sources=4),
    "repeated": Controls(redundancy=0.5),
    "all repeated, by several sources": Controls(redundancy=1, sources=3),
    "overruled": Controls(contradiction=0.5),
    "an agenda in the text": Controls(agenda="told"),
    "an agenda in the query": Controls(agenda="asked", kinds=("silent", "single")),
    "all of it": Controls(sources=3, redundancy=1, contradiction=1, agenda="told"),
    "all of it, in few sections": Controls(redundancy=0.7, contradiction=0.7, section_length=400),
}
TELLING = {  # what tells of a decision, in the forms of a site and of a firm or a rank
    "decided": r"(?:The council decided that|It was agreed that|After a vote) "
    r"the (\w+) goes to (?:the )?(\w+)(?: bid)?\.",
    "revised": r"(?:The council changed its mind and|After an appeal|The first decision was withdrawn and) "
    r"the (\w+) goes to (?:the )?(\w+)(?: bid)?\.",
    "repeated": r"The council gave the (\w+) to (?:the )?(\w+)(?: bid)?\.",
    "repeated, the other way round": r"(?:The minutes say that|The clerk confirmed) (?:the )?(\w+) (?:bid )?"
    r"(?:won|for) the (\w+)\.",
}


def told_in(example: Example) -> Iterator[tuple[str, str, str, int, int]]:
    """(how, site, firm or rank, number of the sentence, number of the section) of all that tells of a decision."""
    numbered = [(n, one) for n, section in enumerate(all_sections(example)) for one in section]
    for at, (section, sentence) in enumerate(numbered):
        for how, form in TELLING.items():
            if found := re.fullmatch(form, sentence):
                site, what = found.groups() if "round" not in how else found.groups()[::-1]
                yield how.partition(",")[0], site, what, at, section


def all_sections(example: Example) -> list[tuple[str, ...]]:
    return [
        tuple(section.sentences())
        for document in example.documents
        for section in document.sections
    ]


def what_holds(example: Example) -> Found:
    """What a reader of the whole text knows at its end, who takes the last decision on a site as the one that holds.

    Fails where something is said that is not so.
    """
    decided: dict[str, list[str]] = defaultdict(list)
    for how, site, what, _, _ in told_in(example):
        if how != "repeated":
            assert how == ("revised" if decided[site] else "decided") or how == "revised"
            decided[site].append(what)
    for how, site, what, _, _ in told_in(example):
        if how == "repeated":
            assert what == decided[site][-1]
        if how == "revised":
            assert len(decided[site]) == 2
            assert decided[site][0] != decided[site][1] == what
    bids = re.findall(r"The (\w+) has a (\w+) bid from ([A-Z]\w+)\.", " ".join(example.sentences()))
    firms = {(site, rank): firm for site, rank, firm in bids}
    chosen = {site: all_told[-1] for site, all_told in decided.items()}
    assert set(firms) == {
        (site, rank) for site, what in chosen.items() if what.islower() for rank in council.RANKS
    }
    return {
        site: (firms[site, what], what) if what.islower() else (what, None)
        for site, what in chosen.items()
    }


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
    own = [
        metric.score(" ".join(example.references[0]), example)["fact_recall"] for example in tested
    ]
    others = zip(tested[1:], tested, strict=False)
    blind = [
        metric.score(" ".join(other.references[0]), example)["fact_recall"]
        for other, example in others
    ]
    assert set(own) == {1.0}
    assert sum(blind) / len(blind) == pytest.approx(1 / 24, abs=0.02)


def test_six_sites_come_in_one_order_with_facts_of_three_kinds(tested: list[Example]) -> None:
    """Six sites in one order, four facts in one place, one relayed, one silent; every firm could be the answer."""
    for example in tested:
        assert [fact.subject for fact in example.facts] == [
            "bridge",
            "canal",
            "harbour",
            "library",
            "market",
            "mill",
        ]
        assert [fact.kind for fact in example.facts] == [*["single"] * 4, "relayed", "silent"]
        assert all(
            len(set(fact.values)) == 24 and fact.value in fact.values for fact in example.facts
        )
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
            assert [fact.subject for fact in note.facts] == sorted(
                fact.subject for fact in note.facts
            )


def test_facts_are_in_one_section_or_uniformly_apart() -> None:
    """35 % of the facts are in one section, the others uniformly one to seven apart; either half comes first."""
    made = list(reports([1024], seed=6, number=1_500))
    apart = Counter(
        fact.distance for example in made for fact in example.facts if fact.kind != "single"
    )
    shares = {distance: count / 3_000 for distance, count in apart.items()}
    assert shares.pop(0) == pytest.approx(0.35, abs=0.03)
    assert shares == pytest.approx(dict.fromkeys(range(1, 8), 0.65 / 7), abs=0.02)
    texts = [" ".join(example.sentences()) for example in made]
    first = [
        text.index("the market goes to the") < text.index("The market has a") for text in texts
    ]
    assert sum(first) / len(first) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("name", CONTROLS)
def test_every_answer_is_in_the_source_and_is_the_only_one(name: str) -> None:
    """Whoever reads to the end, and takes the last decision for true, writes the reference in the agenda's order.

    What a fact is follows from its site alone, as a reader of many reports knows.
    """
    controls, kinds = CONTROLS[name], defaultdict(set)
    for example in reports((*LADDER, 2048), seed=21, number=140, controls=controls):
        found = what_holds(example)
        assert {fact.subject: fact.value for fact in example.facts} == {
            site: firm for site, (firm, _) in found.items()
        }
        agenda = [site for site in council.SITES if site in found]
        first, opening = next(example.sentences()), re.compile(r"The agenda is ([a-z ]+)\.")
        if controls.agenda != "fixed":
            asked = re.fullmatch(r"What of ([a-z ]+)\?", example.query or "")
            message = asked if controls.agenda == "asked" else opening.fullmatch(first)
            assert message is not None
            agenda = message[1].replace(" then ", " ").split()
        assert sum(1 for sentence in example.sentences() if opening.match(sentence)) == (
            controls.agenda == "told"
        )
        forms = {fact.subject: fact.kind.split()[0] for fact in example.facts}
        for site, form in forms.items():
            kinds[site].add(form)
        assert example.references == (
            tuple(summary_of({site: found[site]}, forms)[0] for site in agenda),
        )
    assert all(len(forms) == 1 for forms in kinds.values())
    assert len(kinds) == (len(controls.kinds) if controls.agenda == "fixed" else 12)


@pytest.mark.parametrize("name", CONTROLS)
def test_what_is_said_of_facts_is_true(name: str) -> None:
    """Position: of the first sentence of what holds; distance: of the nearest places of it; traits: as they occur."""
    for example in reports((*LADDER, 2048), seed=22, number=70, controls=CONTROLS[name]):
        sections, message = all_sections(example), list(told_in(example))
        sentences = list(chain.from_iterable(sections))
        section_of = [n for n, section in enumerate(sections) for _ in section]
        for fact in example.facts:
            own = [one for one in message if one[1] == fact.subject]
            revised = any(how == "revised" for how, *_ in own)
            holds = [(at, n) for how, _, _, at, n in own if not (revised and how == "decided")]
            bids = [
                at
                for at, one in enumerate(sentences)
                if one.startswith(f"The {fact.subject} has a")
            ]
            first = min(at for at in (*bids, *(at for at, _ in holds)))
            assert fact.position == length_of(sentences[:first]) / length_of(sentences)
            apart = [abs(n - section_of[bids[0]]) for _, n in holds] if bids else [0]
            assert fact.distance == min(apart)
            traits = {"overruled": revised, "repeated": any(how == "repeated" for how, *_ in own)}
            expected = [trait for trait, occurs in traits.items() if occurs]
            asked_for = CONTROLS[name].redundancy or CONTROLS[name].contradiction
            assert fact.kind.split()[1:] == (expected or ["plain"] * bool(asked_for))


def test_overruled_decisions_tell_nothing() -> None:
    """They are older than what holds and lie anywhere before it; they name any other firm alike, the other rank."""
    made = list(reports([512], 24, 1_000, Controls(contradiction=1)))
    before, ranks, distances = Counter[str](), Counter[bool](), Counter[int]()
    for example in made:
        message = {
            (how, site): (what, at, section) for how, site, what, at, section in told_in(example)
        }
        for fact in example.facts:
            old, new = message["decided", fact.subject], message["revised", fact.subject]
            assert old[1] < new[1]
            distances[new[2] - old[2]] += 1
            if old[0].islower():
                ranks[new[0] == "lower"] += 1
                assert {old[0], new[0]} == set(council.RANKS)
            else:
                before[old[0]] += 1
                assert old[0] != new[0] == fact.value
    assert len(before) == 24
    assert max(before.values()) < 1.3 * 4_000 / 24
    assert ranks[True] / 2_000 == pytest.approx(0.5, abs=0.04)
    assert set(distances) == set(range(8))
    named = Counter(
        kind
        for kind, site, firm, example in distractors(made)
        for fact in example.facts
        if kind == "hard" and fact.subject == site and fact.value == firm
    )
    hard = sum(1 for kind, *_ in distractors(made) if kind == "hard")
    assert named["hard"] / hard == pytest.approx(1 / 24, abs=0.01)
    for kind, site, firm, example in distractors(made):
        if kind == "alike":
            bids = re.findall(
                rf"The {site} has a \w+ bid from (\w+)\.", " ".join(example.sentences())
            )
            assert firm not in [what for _, of, what, _, _ in told_in(example) if of == site] + bids


def test_sources_share_the_sections() -> None:
    """Documents have as many sections, or one more; all places of a fact may be in different ones; notes have fewer."""
    for sources, shares in ((3, [3, 3, 2]), (4, [2, 2, 2, 2]), (12, [1] * 12)):
        (example,) = reports([1024], 26, 1, Controls(sources=sources))
        assert (
            sorted((len(document.sections) for document in example.documents), reverse=True)
            == shares
        )
        assert [document.source for document in example.documents][-1] == f"Source {sources}"
        names = [section.name for document in example.documents for section in document.sections]
        assert names == [f"Session {number}" for number in range(1, len(names) + 1)]
    plain, shared = report(1024, 27, 0), report(1024, 27, 0, Controls(sources=4))
    assert all_sections(plain) == all_sections(shared)
    assert plain.facts == shared.facts
    assert len(report(64, 27, 0, Controls(sources=4)).documents) == 2


def test_varying_agendas() -> None:
    """Four to eight of the twelve sites, each as often as any other, in any order; a note has as many as ever."""
    made = list(reports([1024], 28, 600, Controls(agenda="asked")))
    assert {len(example.facts) for example in made} == {4, 5, 6, 7, 8}
    counts = Counter(fact.subject for example in made for fact in example.facts)
    assert {site: count / 3_600 for site, count in counts.items()} == pytest.approx(
        dict.fromkeys(council.SITES, 1 / 12), abs=0.015
    )
    ordered = [example.facts[0].subject < example.facts[1].subject for example in made]
    assert sum(ordered) / 600 == pytest.approx(0.5, abs=0.06)
    assert max(len(note.facts) for note in reports([64], 28, 100, Controls(agenda="asked"))) == 3
    for example in made[:50]:
        named = {site for kind, site, _, _ in distractors([example]) if kind != "plain"}
        assert named <= {fact.subject for fact in example.facts}


def test_reports_have_the_length_that_was_asked_for() -> None:
    """Whatever is planted has its room: a report has the tokens it was asked for, sections stay sections."""
    for name, length in product([*CONTROLS][6:], (40, 128, 256, 1024)):
        lengths = [
            length_of(example.sentences()) for example in reports([length], 29, 30, CONTROLS[name])
        ]
        assert sum(lengths) / len(lengths) == pytest.approx(length, abs=3)
        assert max(abs(one - length) for one in lengths) <= 20


def test_an_overruled_and_repeated_fact_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where chance always says 0: decided and revised in the first of two documents, repeated in the second."""
    monkeypatch.setattr(
        "random.Random", lambda key: type("Zero", (), {"random": lambda self: 0.0})()
    )
    example = report(
        64, 0, 0, Controls(kinds=("single",), redundancy=1, contradiction=1, sources=2)
    )
    distractor = "Residents hoped that Adler would get the bridge."  # 9 tokens
    first = (
        "The council decided that the bridge goes to Brandt.",  # 10
        "The council changed its mind and the bridge goes to Adler.",  # 12, so that 32 have one more
        distractor,
    )
    assert all_sections(example) == [
        first,
        ("The council gave the bridge to Adler.", *[distractor] * 3),
    ]
    assert [len(document.sections) for document in example.documents] == [1, 1]
    assert example.references == (("The bridge goes to Adler.",),)
    (fact,) = example.facts
    assert (fact.kind, fact.value, fact.distance) == ("single overruled repeated", "Adler", 0)
    assert fact.position == 10 / (10 + 12 + 9 + 8 + 27)
    message = report(32, 0, 0, Controls(kinds=("single",), agenda="told"))
    assert all_sections(message) == [
        (
            "The agenda is bridge.",
            "The council decided that the bridge goes to Adler.",
            *[distractor] * 2,
        )
    ]
    asked = report(40, 0, 0, Controls(kinds=("single",), agenda="asked"))
    assert asked.query == "What of bridge canal?"
    assert len(asked.references[0]) == 2


def test_options_through_the_loader(stages: ArtifactCache) -> None:
    """The settings make what the controls do; what departs is in the record, and the usual values change nothing."""
    usual = load_texts(DatasetSettings(name="probe", limit=4), stages)
    same = DatasetSettings(
        name="probe", limit=4, sources=1, redundancy=0.0, contradiction=0.0, agenda="fixed"
    )
    assert probe.probe_inputs(same) == probe.probe_inputs(DatasetSettings(name="probe"))
    assert load_texts(same, stages).fingerprint == usual.fingerprint
    chosen: dict[str, Any] = {
        "sources": 3,
        "redundancy": 0.5,
        "contradiction": 1.0,
        "agenda": "asked",
    }
    texts = load_texts(DatasetSettings(name="probe", limit=4, **chosen), stages)
    assert texts.facts["options"] == chosen
    assert "options" not in usual.facts
    assert list(texts.splits["test"]) == list(reports([1024], 3, 4, Controls(**chosen)))
    assert texts.multi_document
    assert not usual.multi_document


def test_reports_and_sections_have_their_lengths() -> None:
    """A report has the tokens it was asked for, to half a sentence in the mean; sections are an eighth, at least 32."""
    for length, sections in ((32, 1), (40, 1), (64, 2), (128, 4), (256, 8), (1024, 8), (3000, 8)):
        made = list(reports([length], seed=7, number=100))
        lengths = [length_of(example.sentences()) for example in made]
        assert sum(lengths) / len(lengths) == pytest.approx(length, abs=2)
        assert max(abs(one - length) for one in lengths) <= 20
        assert {len(example.documents[0].sections) for example in made} == {sections}
    (example,) = reports([1024], seed=7, number=1)
    assert [length_of(section) for section in sections_of(example)] == pytest.approx(
        [128] * 8, abs=10
    )
    assert [section.name for section in example.documents[0].sections][::7] == [
        "Session 1",
        "Session 8",
    ]


def distractors(
    examples: Iterable[Example],
) -> Iterator[tuple[str, str | None, str | None, Example]]:
    """(what it is, site, firm, example) for every sentence that is neither decision nor bid."""
    firms, sites = "|".join(council.FIRMS), "|".join(council.SITES)
    for example in examples:
        for sentence in example.sentences():
            if " bid from " not in sentence and not any(
                re.fullmatch(form, sentence) for form in TELLING.values()
            ):
                site, firm = (
                    re.search(rf"\b({sites})\b", sentence),
                    re.search(rf"\b({firms})\b", sentence),
                )
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
    sentences = [
        one for example in tested for one in (*example.sentences(), *example.references[0])
    ]
    words = {word.removesuffix(".") for sentence in sentences for word in sentence.split()}
    assert 100 <= len(words) <= 130
    assert all(word.isalpha() for word in words)
    assert all(re.fullmatch(r"[A-Z][A-Za-z ]*\.", sentence) for sentence in set(sentences))
    for example in tested[:20]:
        assert split_sentences(" ".join(example.sentences())) == tuple(example.sentences())
        assert split_sentences(" ".join(example.references[0])) == example.references[0]


def test_the_same_report_whatever_was_made_before() -> None:
    """Its arguments alone decide: not the order of asking, not Python's hash seed, not the process."""
    forwards = [report(length, 9, index) for index, length in enumerate(LADDER)]
    backwards = [report(length, 9, index) for index, length in reversed(list(enumerate(LADDER)))]
    assert forwards == backwards[::-1] == list(reports(LADDER, 9, 6))
    code = (
        "import hashlib, json\nfrom longsumbench.corpora.probe.probe import reports\n"
        f"made = [example.to_dict() for example in reports({LADDER}, 9, 6)]\n"
        "print(hashlib.sha256(json.dumps(made).encode()).hexdigest())"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    message = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert message.stdout.strip() == digest(forwards)
    assert (
        len(
            {tuple(report(256, seed, index).sentences()) for seed in range(3) for index in range(3)}
        )
        == 9
    )


def test_a_note_worked_out_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where chance always says 0, every list gives its first word, and each statement is before those so far."""
    monkeypatch.setattr(
        "random.Random", lambda key: type("Zero", (), {"random": lambda self: 0.0})()
    )
    example = report(40, 0, 0, Controls(kinds=("silent",)))
    bids = (
        "The bridge has a lower bid from Adler.",
        "The bridge has a higher bid from Brandt.",
    )  # 9 tokens each
    decision = "The council decided that the bridge goes to the lower bid."  # 12
    distractor = "Residents hoped that Adler would get the bridge."  # 9, so that one is enough
    assert sections_of(example) == [(*bids, decision, distractor)]
    assert example.references == (("The bridge goes to Adler with the lower bid.",),)
    (fact,) = example.facts
    assert (fact.kind, fact.subject, fact.value, fact.position, fact.distance) == (
        "silent",
        "bridge",
        "Adler",
        0.0,
        0,
    )
    other = report(40, 0, 0, Controls(kinds=("single",), hard=0, alike=1))
    assert sections_of(other)[0][0] == "The council decided that the bridge goes to Adler."
    assert set(sections_of(other)[0][1:]) == {"Residents asked whether the bridge goes to Brandt."}


@pytest.mark.parametrize(
    "wrong",
    [
        {"kinds": ("single", "loud")},
        {"hard": 0.7, "alike": 0.4},
        {"near": 1.5},
        {"section_length": 31},
        {"sources": 0},
        {"redundancy": 1.1},
        {"agenda": "loud"},
        {"distance": 2, "redundancy": 0.5},
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
    for key, value in {"document_length": 31, "contradiction": 2, "agenda": "tld"}.items():
        with pytest.raises(UsageError, match=rf"dataset\.{key}={value}"):
            build_settings(DatasetSettings, {key: value}, "dataset.")
    with pytest.raises(UsageError, match="32 tokens is too short for a fact and the agenda"):
        report(32, 1, 0, Controls(kinds=("silent",), agenda="told"))


def test_training_lengths_double_up_to_the_tested_length() -> None:
    """Training lengths double up to the length that is tested."""
    assert lengths_of(1024) == {"train": LADDER, "validation": (1024,), "test": (1024,)}
    assert lengths_of(1000)["train"] == (40, 64, 128, 256, 512, 1000)
    assert lengths_of(65)["train"] == (40, 64, 65)
    assert lengths_of(64)["train"] == (40, 64)
    assert lengths_of(32)["train"] == (32,)


def test_trained_short_and_tested_long(stages: ArtifactCache) -> None:
    """`train_length` leaves training and validation what they are for tests of that length, byte for byte."""
    assert lengths_of(65536, 1024) == {"train": LADDER, "validation": (1024,), "test": (65536,)}
    assert lengths_of(None, 64) == {"train": (40, 64), "validation": (64,), "test": (1024,)}
    usual = load_texts(DatasetSettings(name="probe", limit=6), stages)
    longer = load_texts(
        DatasetSettings(name="probe", limit=6, document_length=2048, train_length=1024), stages
    )
    for split in ("train", "validation"):
        assert longer.splits[split].fingerprint == usual.splits[split].fingerprint
    assert list(longer.splits["test"]) == list(reports([2048], 3, 6))
    same = load_texts(
        DatasetSettings(name="probe", limit=6, document_length=1024, train_length=1024), stages
    )
    assert same.fingerprint == usual.fingerprint != longer.fingerprint


def test_time_grows_as_the_length_of_a_report() -> None:
    """Time grows as the length does: a report of 262,144 tokens is written, and lists each fact."""
    assert_linear(lambda length: report(length, 3, 0), 2**18)
    example = report(2**18, 3, 0)
    assert length_of(example.sentences()) == pytest.approx(2**18, abs=20)
    assert len(example.documents[0].sections) == 8
    assert len(example.facts) == 6


def test_the_page_shows_what_is() -> None:
    """The excerpts of the documentation are reports' own texts, and its example of use runs unchanged."""
    page = PAGE.read_text(encoding="utf-8")
    excerpt, code, grown = re.findall(r"```(?:text|python)\n(.*?)```", page, re.DOTALL)
    options = Controls(sources=2, redundancy=0.5, contradiction=0.5, agenda="told")
    for text, example in ((excerpt, report(128, 3, 0)), (grown, report(128, 3, 1, options))):
        shown = [" ".join(section) for section in all_sections(example)] + [
            " ".join(example.references[0])
        ]
        message = [
            " ".join(paragraph.split())
            for paragraph in re.split(r"Session \d: |Summary: ", text)[1:]
        ]
        assert message == shown
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 - it is the project's own
    assert names["example"] == report(1024, seed=3, index=0)
    assert all(
        f"{kind} {names['guessed'][key]}" in " ".join(page.split())
        for key, kind in TYPE_NAMES.items()
    )
