"""probe, a generated dataset: council reports with planted facts, so that what a system reached is known word by word.

    report(1024, seed=7, index=0) → Example, its facts attached

A report decides what becomes of six sites, in an agenda that is always the same; its summary states the decisions in
that order. Where a decision stands, from how many places it is put together, and how far these lie apart is drawn, and
can be set (`Controls`). The other sentences are drawn without looking at the decisions, and so tell nothing about them;
only those that look like a decision avoid the true one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from longsumbench.configuration import GENERATED, DatasetSettings
from longsumbench.corpora.corpus import BuiltIn, Corpus
from longsumbench.corpora.council import (
    ALIKE,
    BID,
    CHOICE,
    DECISIONS,
    FIRMS,
    HARD,
    PLAIN,
    RANKS,
    SITES,
    SUMMARIES,
    Draw,
    tokens_in,
)
from longsumbench.documents import Document, Example, Fact, Section, Sentences
from longsumbench.errors import UsageError

VERSION = 1  # rises when the same seed would make other reports
DOCUMENT_LENGTH = 1024  # tokens of a validation or test report, and of the longest training reports
SHORTEST = 32  # tokens: the longest fact and a little more
NOTE_LENGTH = 128  # tokens below which a report is a note on a few sites of the agenda …
NOTE_TOKENS_PER_SITE = 20  # … on one for every so many tokens
SPLITS = {"train": (9_000, 1), "validation": (100, 2), "test": (400, 3)}  # number of reports, seed
SINGLE, RELAYED, SILENT = SUMMARIES

_SLACK = 4  # tokens by which a section may end early: about half a sentence


@dataclass(frozen=True)
class Controls:
    """How reports are made.

    Attributes:
        kinds: what kind of fact each site of the agenda is, in the order of the agenda; twelve sites at most.
        hard: share of the distractors that name a site of the agenda and a firm.
        alike: share of the distractors that hold the words of a decision.
        near: share of the facts whose decision and bids stand in one section; the others are any distance apart.
        distance: sections from decision to bids, in either order, for all facts; None: as `near` says.
        section_length: tokens; None: an eighth of the report, at least 32.

    Raises:
        UsageError: one of them cannot be meant.
    """

    kinds: tuple[str, ...] = (SINGLE, SINGLE, SINGLE, SINGLE, RELAYED, SILENT)
    hard: float = 0.4
    alike: float = 0.1
    near: float = 0.35
    distance: int | None = None
    section_length: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.kinds) <= len(SITES) or not set(self.kinds) <= set(SUMMARIES):
            raise UsageError(f"kinds={self.kinds}: name 1 to {len(SITES)} of {', '.join(SUMMARIES)}")
        if not 0 <= self.near <= 1:
            raise UsageError(f"near={self.near} is no share")
        if self.hard < 0 or self.alike < 0 or not self.hard + self.alike <= 1:
            raise UsageError(f"hard={self.hard} and alike={self.alike} are no shares of one whole")
        if self.section_length is not None and self.section_length < SHORTEST:
            raise UsageError(f"section_length={self.section_length} is below {SHORTEST}")

    def num_sections(self, length: int) -> int:
        """Return the number of sections of a report of so many tokens.

        Raises:
            UsageError: decision and bids cannot lie `distance` apart in it.
        """
        section_length = self.section_length or max(SHORTEST, length // 8)
        number = max(1, length // section_length)
        if self.distance is not None and not 0 <= self.distance < number:
            raise UsageError(f"distance={self.distance}: a report of {length} tokens has {number} sections")
        return number


USUAL = Controls()


def report(length: int, seed: int, index: int, controls: Controls = USUAL) -> Example:
    """Make one report; the same arguments always make the same one.

    Args:
        length: tokens (words and full stops), kept to about half a sentence. Below 128 the report is a note on a part
            of the agenda; no report covers more sites than fit.
        seed: of a set of reports.
        index: of one of them.
        controls: how it is made.

    Returns:
        One document of sections, one reference, a fact for each sentence of the reference; the id is
        "seed-length-index".

    Raises:
        UsageError: it would be too short to hold a fact, or has fewer sections than `controls` ask for.
    """
    if length < SHORTEST:
        raise UsageError(f"a report of {length} tokens holds no fact: it takes {SHORTEST}")
    num_sections = controls.num_sections(length)
    draw = Draw(f"{seed} {length} {index}")
    decisions = _agenda(draw, length, controls)
    planted: list[list[Sentences]] = [[] for _ in range(num_sections)]
    distances = []
    for decision in decisions:
        places = _places(draw, len(decision.statements), num_sections, controls)
        distances.append(max(places) - min(places))
        for place, statement in zip(places, decision.statements, strict=True):
            planted[place].append(statement)
    sections = tuple(_fill(draw, planted, length, _rumours(draw, decisions, controls), controls))
    positions = _positions([decision.statements for decision in decisions], chain.from_iterable(sections))
    facts = tuple(
        Fact(decision.kind, decision.site, decision.firms[0], FIRMS, position, distance)
        for decision, position, distance in zip(decisions, positions, distances, strict=True)
    )
    named = tuple(Section(f"Session {number}", (text,)) for number, text in enumerate(sections, start=1))
    reference = tuple(decision.summary for decision in decisions)
    return Example(f"{seed}-{length}-{index}", None, None, (Document(None, named),), (reference,), facts)


def reports(lengths: Sequence[int], seed: int, number: int, controls: Controls = USUAL) -> Iterator[Example]:
    """Yield reports of the lengths in turn, so that every stretch holds all of them alike.

    Args:
        lengths: tokens.
        seed: of all of them.
        number: how many.
        controls: how they are made.

    Raises:
        UsageError: as for `report`.
    """
    return (report(lengths[index % len(lengths)], seed, index, controls) for index in range(number))


@dataclass(frozen=True)
class _Decision:
    """A decision of the council.

    Attributes:
        kind: of the fact.
        site: what was decided on.
        firms: the one it goes to, and the other bidder if there is one.
        statements: what must be known of it, each to stand in one place: the decision; the bids, if it is about them.
        summary: what is to be said of it.
    """

    kind: str
    site: str
    firms: tuple[str, ...]
    statements: tuple[Sentences, ...]
    summary: str

    def tokens(self) -> int:
        """Return how long its statements are together."""
        return sum(map(tokens_in, chain.from_iterable(self.statements)))


def _agenda(draw: Draw, length: int, controls: Controls) -> list[_Decision]:
    """Return the decisions in the order of the agenda: all of them, or as many as a note has and as fit."""
    most = len(controls.kinds) if length >= NOTE_LENGTH else max(1, length // NOTE_TOKENS_PER_SITE)
    covered: dict[int, _Decision] = {}
    for item in draw.shuffled(range(len(controls.kinds))):
        decision = _decide(draw, controls.kinds[item], SITES[item])
        room = length - sum(other.tokens() for other in covered.values())
        if len(covered) < most and decision.tokens() <= room:
            covered[item] = decision
    return [covered[item] for item in sorted(covered)]


def _decide(draw: Draw, kind: str, site: str) -> _Decision:
    """Draw a decision on a site."""
    firm = draw.one_of(FIRMS)
    if kind == SINGLE:
        told = draw.fill(draw.one_of(DECISIONS), site=site, firm=firm)
        return _Decision(kind, site, (firm,), ((told,),), draw.fill(SUMMARIES[kind], site=site, firm=firm))
    rival = draw.one_of([other for other in FIRMS if other != firm])
    rank, other_rank = draw.shuffled(RANKS)
    bids = draw.fill(BID, site=site, rank=rank, firm=firm), draw.fill(BID, site=site, rank=other_rank, firm=rival)
    statements = (draw.fill(CHOICE, site=site, rank=rank),), tuple(draw.shuffled(bids))
    return _Decision(kind, site, (firm, rival), statements, draw.fill(SUMMARIES[kind], site=site, firm=firm, rank=rank))


def _places(draw: Draw, statements: int, num_sections: int, controls: Controls) -> list[int]:
    """Draw the sections in which the one or two statements of a decision stand."""
    if statements == 1:
        return [draw.below(num_sections)]
    distance = controls.distance
    if distance is None:
        near = draw.share() < controls.near or num_sections == 1
        distance = 0 if near else 1 + draw.below(num_sections - 1)
    first = draw.below(num_sections - distance)
    return draw.shuffled((first, first + distance))


def _rumours(draw: Draw, decisions: Sequence[_Decision], controls: Controls) -> dict[str, str]:
    """Draw for every site a firm that it does not go to, and that does not bid: what look-alikes are about.

    One a site, for what is ruled out narrows down what is true: by one firm of 24, however long the report.
    """
    taken = {decision.site: decision.firms for decision in decisions}
    sites = SITES[: len(controls.kinds)]
    return {site: draw.one_of([firm for firm in FIRMS if firm not in taken.get(site, ())]) for site in sites}


def _fill(
    draw: Draw, planted: Sequence[Sequence[Sentences]], length: int, rumours: Mapping[str, str], controls: Controls
) -> Iterator[Sentences]:
    """Yield the sections: the planted statements at any place among as many distractors as there is room for."""
    agenda, written = tuple(rumours), 0
    due = [sum(map(tokens_in, chain.from_iterable(statements))) for statements in planted]
    for number, statements in enumerate(planted, start=1):
        end = min(length * number // len(planted), length - sum(due[number:]))  # what is planted later has its room
        written += due[number - 1]
        stretches: list[Sentences] = []
        while written < end - _SLACK or not (stretches or statements):
            sentence = _distractor(draw, agenda, rumours, controls)
            stretches.append((sentence,))
            written += tokens_in(sentence)
        for statement in statements:
            stretches.insert(draw.below(len(stretches) + 1), statement)
        yield tuple(chain.from_iterable(stretches))


def _distractor(draw: Draw, agenda: Sequence[str], rumours: Mapping[str, str], controls: Controls) -> str:
    """Draw a sentence that decides nothing."""
    share = draw.share()
    if share < controls.hard:
        return draw.fill(draw.one_of(HARD), site=draw.one_of(agenda), firm=draw.one_of(FIRMS))
    if share < controls.hard + controls.alike:
        site = draw.one_of(agenda)
        return draw.fill(draw.one_of(ALIKE), site=site, firm=rumours[site])
    return draw.fill(draw.one_of(PLAIN), site=draw.one_of(SITES))


def _positions(facts: Sequence[Sequence[Sentences]], text: Iterator[str]) -> list[float]:
    """Return for each fact the share of the text before the first of its statements; no planted sentence is twice."""
    before, starts = 0, {}
    for sentence in text:
        starts[sentence] = before
        before += tokens_in(sentence)
    return [min(starts[statement[0]] for statement in statements) / before for statements in facts]


def lengths_of(document_length: int | None = None, train_length: int | None = None) -> dict[str, tuple[int, ...]]:
    """Return split → the lengths of its reports: what is trained on grows from notes to whole reports.

    Args:
        document_length: tokens of a tested report; None: 1,024.
        train_length: tokens of a validation report, and of the longest that are trained on; None: as tested ones.
    """
    tested = document_length or DOCUMENT_LENGTH
    longest = train_length or tested
    doubled = (64 * 2**power for power in range(longest.bit_length()))
    shorter = (length for length in (40, *doubled) if length < longest)
    return {"train": (*shorter, longest), "validation": (longest,), "test": (tested,)}


def generate(settings: DatasetSettings) -> Iterator[tuple[str, Example]]:
    """Yield (split, report); no more of a split than the settings ask for."""
    for split, lengths in lengths_of(settings.document_length, settings.train_length).items():
        number, seed = SPLITS[split]
        for example in reports(lengths, seed, min(number, settings.limit or number)):
            yield split, example


def decided_by(settings: DatasetSettings) -> dict[str, Any]:
    """Return what decides the texts: the generator's version, and of each split the number, seed and lengths."""
    lengths = lengths_of(settings.document_length, settings.train_length)
    splits = {
        split: {"reports": number, "seed": seed, "lengths": list(lengths[split])}
        for split, (number, seed) in SPLITS.items()
    }
    return {"generator": VERSION, "generated": splits}


CORPUS = Corpus(
    name="probe",
    title="Council reports with planted facts → the decisions in the order of the agenda (built in, generated)",
    licence="that of the suite (Apache-2.0)",
    homepage="docs/probe.md",
    version=VERSION,
    built_in=BuiltIn(generate, decided_by, settings=GENERATED),
    metrics=("fact_recall",),
)
