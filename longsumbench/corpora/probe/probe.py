"""`probe`, a generated dataset: council reports with planted facts, so each fact that a system found can be checked.

    report(1024, seed=7, index=0) → Example with its facts

A report decides on six sites, by default in a fixed order; its summary states the decisions in that order. The place of
a decision, the number of places that it is spread over, and their distance are random or set by `Controls`. Other
controls add several documents, repeated decisions, overruled decisions and a random agenda. All other sentences are
drawn without looking at the decisions, so they reveal nothing about them. Only look-alikes avoid the true decision.
Sentences that name no site and no firm can be those of another dataset (`filler.py`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby
from typing import Any

from longsumbench import core
from longsumbench.core.versions import READING_VERSION
from longsumbench.corpora.probe import language
from longsumbench.corpora.probe.filler import NO_PROSE, find_prose, load_filler
from longsumbench.errors import UsageError

_DOCUMENT_LENGTH = (
    1024  # tokens of a validation or test report, and of the longest training reports
)
_MIN_LENGTH = 32  # tokens: the longest fact and a little more
_NOTE_LENGTH = 128  # tokens; shorter reports cover only a few sites of the agenda
_NOTE_TOKENS_PER_SITE = 20  # in such a short report
_REPORT_SPLITS = {
    "train": (9_000, 1),
    "validation": (100, 2),
    "test": (400, 3),
}  # number of reports, seed
_SINGLE, _RELAYED, _SILENT = language.SUMMARIES
_NEITHER, _REPEATED, _OVERRULED = (
    "plain",
    "repeated",
    "overruled",
)  # the words that can follow in a fact's kind
_FIXED, _TOLD, _ASKED = _AGENDAS = ("fixed", "told", "asked")
_AGENDA_SITES = range(4, 9)  # sites of a random agenda
_CONTROLS = (
    "sources",
    "redundancy",
    "contradiction",
    "agenda",
)  # the `Controls` that `dataset.*` can set

_SPARE = 64  # tokens that must be free to repeat or overrule a fact: more than such a fact takes
_SLACK, _PROSE_SLACK = 4, 10  # tokens: a section may end this much early, about half a sentence
_HARD_AMONG_PROSE = 0.2  # `Controls.hard` with a filler


@dataclass(frozen=True)
class Controls:
    """How reports are made; an invalid value is a UsageError."""

    # the kind of fact of each site, in the order of the agenda; at most twelve
    kinds: tuple[str, ...] = (_SINGLE, _SINGLE, _SINGLE, _SINGLE, _RELAYED, _SILENT)
    hard: float = 0.4  # share of the distractors that name a site of the agenda and a firm
    alike: float = 0.1  # share of the distractors that have the words of a decision
    near: float = 0.35  # share of the facts whose decision and bids are in one section; others have a random distance
    distance: int | None = (
        None  # sections from decision to bids, in either order, for all facts; None: as `near` says
    )
    section_length: int | None = None  # tokens; None: an eighth of the report, at least 32
    sources: int = 1  # number of documents that share the sections; at most the number of sections
    redundancy: float = (
        0.0  # share of the facts that are repeated in other words: in another document or section
    )
    contradiction: float = 0.0  # share of the facts whose decision overrules an earlier one
    # "fixed": the same sites in every report. Otherwise their number, choice and order are random: the first sentence
    # names them ("told") or the query does ("asked")
    agenda: str = _FIXED
    # sentences that replace the plain distractors; a report has consecutive ones from a random place on
    prose: core.Sentences = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.kinds) <= len(language.SITES) or not set(self.kinds) <= set(
            language.SUMMARIES
        ):
            raise UsageError(
                f"kinds={self.kinds}: name 1 to {len(language.SITES)} of {', '.join(language.SUMMARIES)}"
            )
        for name in ("near", "redundancy", "contradiction"):
            core.check_value(name, getattr(self, name), core.Between(0, 1))
        if self.distance is not None and self.redundancy:
            raise UsageError(
                f"distance={self.distance} and repeated decisions exclude each other: leave one out"
            )
        core.check_minimum("sources", self.sources, 1)
        core.check_choice("agenda", self.agenda, _AGENDAS)
        if self.hard < 0 or self.alike < 0 or not self.hard + self.alike <= 1:
            raise UsageError(
                f"hard={self.hard} and alike={self.alike} must be shares with a sum of at most 1"
            )
        core.check_minimum("section_length", self.section_length, _MIN_LENGTH)

    def sites(self) -> tuple[str, ...]:
        """Return the sites that can be on an agenda, in the order of the fixed one."""
        return language.SITES if self.agenda != _FIXED else language.SITES[: len(self.kinds)]

    def kind_of(self, item: int) -> str:
        """Return the kind of fact of a site, given its index in `sites()`."""
        return self.kinds[item % len(self.kinds)]

    def num_sections(self, length: int) -> int:
        """Return the number of sections of a report with `length` tokens.

        Raises:
            UsageError: `distance` is not possible in so few sections.
        """
        section_length = self.section_length or max(_MIN_LENGTH, length // 8)
        number = max(1, length // section_length, min(self.sources, length // _MIN_LENGTH))
        if self.distance is not None and not 0 <= self.distance < number:
            raise UsageError(
                f"distance={self.distance}: a report of {length} tokens has {number} sections"
            )
        return number


_DEFAULT = Controls()


def report(length: int, seed: int, index: int, controls: Controls = _DEFAULT) -> core.Example:
    """Make one report. The same arguments always give the same report.

    The length is in tokens (words and full stops), accurate to about half a sentence. Reports below 128 cover only a
    part of the agenda; no report covers more sites than fit. A report has one document of sections (or several by
    `controls`), one reference, and a fact for each sentence of the reference. The id is "seed-length-index".

    Raises:
        UsageError: the report is too short for a fact, or has too few sections for `controls`.
    """
    if length < _MIN_LENGTH:
        raise UsageError(
            f"a report of {length} tokens is too short for a fact: it needs {_MIN_LENGTH}"
        )
    num_sections = controls.num_sections(length)
    draw = language.Draw(f"{seed} {length} {index}")
    decisions = _agenda(draw, length, controls)
    sites = [decision.site for decision in decisions]
    opening = (
        (language.AGENDA.format(sites=language.THEN.join(sites)),)
        if controls.agenda == _TOLD
        else ()
    )
    planted: list[list[core.Sentences]] = [[] for _ in range(num_sections)]
    distances = []
    for decision in decisions:
        places = _draw_sections(draw, len(decision.statements), num_sections, controls)
        for place, statement in zip(places, decision.statements, strict=True):
            planted[place].append(statement)
        placements = _other_places(draw, decision, places[0], num_sections, controls)
        for place, statement in placements:
            planted[place].append(statement)
        decided = [
            places[0],
            *(place for place, statement in placements if statement != decision.overruled),
        ]
        distances.append(min(abs(place - places[-1]) for place in decided))
    rumours = _rumours(draw, decisions, controls)
    orders = [decision.in_order() for decision in decisions if decision.overruled]
    sections = tuple(_fill_sections(draw, planted, length, rumours, controls, opening, orders))
    positions = _fact_positions(
        [decision.true_statements() for decision in decisions], chain.from_iterable(sections)
    )
    facts = tuple(
        core.Fact(
            decision.kind, decision.site, decision.firms[0], language.FIRMS, position, distance
        )
        for decision, position, distance in zip(decisions, positions, distances, strict=True)
    )
    query = language.QUESTION.format(sites=" ".join(sites)) if controls.agenda == _ASKED else None
    reference = tuple(decision.summary for decision in decisions)
    documents = tuple(_divide_sections(sections, controls))
    return core.Example(f"{seed}-{length}-{index}", None, query, documents, (reference,), facts)


def reports(
    lengths: Sequence[int], seed: int, number: int, controls: Controls = _DEFAULT
) -> Iterator[core.Example]:
    """Yield `number` reports that cycle through the lengths.

    Raises:
        UsageError: as for `report`.
    """
    return (report(lengths[index % len(lengths)], seed, index, controls) for index in range(number))


@dataclass(frozen=True)
class _Decision:
    """A decision of the council."""

    kind: str  # of the fact
    site: str  # the subject of the decision
    # the chosen firm; then the other bidder, or the firm of the overruled decision, if there is one
    firms: tuple[str, ...]
    # groups of sentences, each planted in one place: the decision; the bids, if it is about them
    statements: tuple[core.Sentences, ...]
    summary: str  # its sentence in the summary
    overruled: core.Sentences = ()  # the earlier decision, now invalid; empty if there is none
    repeated: core.Sentences = ()  # the decision in other words; empty if it is stated once

    def tokens(self) -> int:
        """Return the total length of the statements."""
        return sum(map(language.tokens_in, chain(*self.statements, self.overruled, self.repeated)))

    def in_order(self) -> list[core.Sentences]:
        """Return the statements whose order matters: the overruled one, the valid one, the repetition."""
        return [
            statement
            for statement in (self.overruled, self.statements[0], self.repeated)
            if statement
        ]

    def true_statements(self) -> list[core.Sentences]:
        return [statement for statement in (*self.statements, self.repeated) if statement]


def _agenda(draw: language.Draw, length: int, controls: Controls) -> list[_Decision]:
    """Return the decisions in the order of the agenda, as many as the length allows."""
    limit = len(controls.kinds) if controls.agenda == _FIXED else draw.one_of(_AGENDA_SITES)
    if length < _NOTE_LENGTH:
        limit = max(1, length // _NOTE_TOKENS_PER_SITE)
    covered: dict[int, _Decision] = {}
    for item in draw.shuffled(range(len(controls.sites()))):
        room = length - sum(decision.tokens() for decision in covered.values())
        if controls.agenda == _TOLD:
            room -= language.tokens_in(
                language.AGENDA.format(sites=language.THEN.join("x" * (len(covered) + 1)))
            )
        decision = _decide(
            draw, controls.kind_of(item), controls.sites()[item], _traits(draw, room, controls)
        )
        if len(covered) < limit and decision.tokens() <= room:
            covered[item] = decision
    if not covered:
        raise UsageError(
            f"a report of {length} tokens is too short for a fact and the agenda; raise the length"
        )
    return [covered[item] for item in (sorted(covered) if controls.agenda == _FIXED else covered)]


def _traits(draw: language.Draw, room: int, controls: Controls) -> tuple[str, ...]:
    """Draw whether a decision overrules another one, and whether it is repeated; () if the controls exclude both."""
    shares = {_OVERRULED: controls.contradiction, _REPEATED: controls.redundancy}
    traits = tuple(
        trait
        for trait, share in shares.items()
        if share and draw.share() < share and room >= _SPARE
    )
    return traits or (_NEITHER,) * any(shares.values())


def _decide(draw: language.Draw, kind: str, site: str, traits: Sequence[str]) -> _Decision:
    firm = draw.one_of(language.FIRMS)
    if kind == _SINGLE:
        return _decide_at_once(draw, site, firm, traits)
    rival = draw.one_of([candidate for candidate in language.FIRMS if candidate != firm])
    rank, other_rank = draw.shuffled(language.RANKS)
    bids = (
        draw.fill(language.BID, site=site, rank=rank, firm=firm),
        draw.fill(language.BID, site=site, rank=other_rank, firm=rival),
    )
    usual = language.REVISED_CHOICE if _OVERRULED in traits else language.CHOICE
    return _Decision(
        " ".join((kind, *traits)),
        site,
        (firm, rival),
        ((draw.fill(usual, site=site, rank=rank),), tuple(draw.shuffled(bids))),
        draw.fill(language.SUMMARIES[kind], site=site, firm=firm, rank=rank),
        (draw.fill(language.CHOICE, site=site, rank=other_rank),) if _OVERRULED in traits else (),
        (draw.fill(draw.one_of(language.RESTATED_CHOICE), site=site, rank=rank),)
        if _REPEATED in traits
        else (),
    )


def _decide_at_once(draw: language.Draw, site: str, firm: str, traits: Sequence[str]) -> _Decision:
    """Draw a decision for a firm, which needs one place only."""
    decided: core.Sentences = (draw.fill(draw.one_of(language.DECISIONS), site=site, firm=firm),)
    firms: tuple[str, ...] = (firm,)
    overruled: core.Sentences = ()
    if _OVERRULED in traits:
        first_firm = draw.one_of([candidate for candidate in language.FIRMS if candidate != firm])
        firms = firm, first_firm
        overruled = (draw.fill(draw.one_of(language.DECISIONS), site=site, firm=first_firm),)
        decided = (draw.fill(draw.one_of(language.REVISED), site=site, firm=firm),)
    repeated = (
        (draw.fill(draw.one_of(language.RESTATED), site=site, firm=firm),)
        if _REPEATED in traits
        else ()
    )
    summary = draw.fill(language.SUMMARIES[_SINGLE], site=site, firm=firm)
    return _Decision(
        " ".join((_SINGLE, *traits)), site, firms, (decided,), summary, overruled, repeated
    )


def _draw_sections(
    draw: language.Draw, statements: int, num_sections: int, controls: Controls
) -> list[int]:
    """Draw the sections that hold the one or two statements of a decision."""
    if statements == 1:
        return [draw.below(num_sections)]
    distance = controls.distance
    if distance is None:
        same_section = draw.share() < controls.near or num_sections == 1
        distance = 0 if same_section else 1 + draw.below(num_sections - 1)
    first = draw.below(num_sections - distance)
    return draw.shuffled((first, first + distance))


def _other_places(
    draw: language.Draw, decision: _Decision, place: int, num_sections: int, controls: Controls
) -> list[tuple[int, core.Sentences]]:
    """Draw the sections of the overruled decision, never after the valid one in `place`, and of the repetition."""
    placements = [(draw.below(place + 1), decision.overruled)] if decision.overruled else []
    if decision.repeated:
        candidates = range(place + 1 if decision.overruled else 0, num_sections)
        elsewhere = [section for section in candidates if section != place]
        document = _document_index(place, num_sections, controls)
        by_another = [
            section
            for section in elsewhere
            if _document_index(section, num_sections, controls) != document
        ]
        placements.append((draw.one_of(by_another or elsewhere or [place]), decision.repeated))
    return placements


def _document_index(section: int, num_sections: int, controls: Controls) -> int:
    """Return the document of a section; the sizes of documents differ by one section at most."""
    return section * min(controls.sources, num_sections) // num_sections


def _divide_sections(
    sections: Sequence[core.Sentences], controls: Controls
) -> Iterator[core.Document]:
    every = [
        core.Section(f"Session {number}", (text,)) for number, text in enumerate(sections, start=1)
    ]
    for number, members in groupby(
        range(len(every)), lambda section: _document_index(section, len(every), controls)
    ):
        source = f"Source {number + 1}" if controls.sources > 1 else None
        yield core.Document(source, tuple(every[section] for section in members))


def _rumours(
    draw: language.Draw, decisions: Sequence[_Decision], controls: Controls
) -> dict[str, str]:
    """Draw a losing firm for every site, which look-alikes name. It does not bid either.

    It is one firm per site because every excluded firm narrows down the true one. So only one of 24 is excluded, at any
    length.
    """
    bidders = {decision.site: decision.firms for decision in decisions}
    sites = (
        controls.sites() if controls.agenda == _FIXED else [decision.site for decision in decisions]
    )
    return {
        site: draw.one_of([firm for firm in language.FIRMS if firm not in bidders.get(site, ())])
        for site in sites
    }


def _fill_sections(
    draw: language.Draw,
    planted: Sequence[Sequence[core.Sentences]],
    length: int,
    rumours: Mapping[str, str],
    controls: Controls,
    opening: core.Sentences = (),
    orders: Iterable[Sequence[core.Sentences]] = (),
) -> Iterator[core.Sentences]:
    """Yield the sections: the planted statements at random places among as many distractors as fit.

    `rumours` maps a site to the firm that look-alikes name. `opening` begins the report. Statements of each of the
    `orders` keep their order if they are in one section.
    """
    agenda, num_tokens = tuple(rumours), sum(map(language.tokens_in, opening))
    plain, slack = _plain_sentences(draw, controls), _PROSE_SLACK if controls.prose else _SLACK
    due = [sum(map(language.tokens_in, chain.from_iterable(statements))) for statements in planted]
    for number, statements in enumerate(planted, start=1):
        end = min(
            length * number // len(planted), length - sum(due[number:])
        )  # leaves room for the later statements
        num_tokens += due[number - 1]
        stretches: list[core.Sentences] = []
        while num_tokens < end - slack or not (stretches or statements):
            sentence = _distractor(draw, agenda, rumours, controls) or next(plain)
            stretches.append((sentence,))
            num_tokens += language.tokens_in(sentence)
        for statement in statements:
            stretches.insert(draw.below(len(stretches) + 1), statement)
        for order in orders:
            _put_in_order(stretches, [statement for statement in order if statement in statements])
        yield tuple(chain(opening if number == 1 else (), *stretches))


def _put_in_order(stretches: list[core.Sentences], order: Sequence[core.Sentences]) -> None:
    """Reorder the given statements among their places."""
    places = sorted(map(stretches.index, order))
    for place, statement in zip(places, order, strict=True):
        stretches[place] = statement


def _distractor(
    draw: language.Draw, agenda: Sequence[str], rumours: Mapping[str, str], controls: Controls
) -> str | None:
    """Draw a sentence that names a site of the agenda and a firm; None if it shall be a plain one."""
    share = draw.share()
    if share < controls.hard:
        return draw.fill(
            draw.one_of(language.HARD), site=draw.one_of(agenda), firm=draw.one_of(language.FIRMS)
        )
    if share < controls.hard + controls.alike:
        site = draw.one_of(agenda)
        return draw.fill(draw.one_of(language.ALIKE), site=site, firm=rumours[site])
    return None


def _plain_sentences(draw: language.Draw, controls: Controls) -> Iterator[str]:
    """Yield the plain distractors of a report, without end."""
    if controls.prose:
        start = draw.below(len(controls.prose))
        yield from (controls.prose[place % len(controls.prose)] for place in count(start))
    while True:
        yield draw.fill(draw.one_of(language.PLAIN), site=draw.one_of(language.SITES))


def _fact_positions(facts: Sequence[Sequence[core.Sentences]], text: Iterator[str]) -> list[float]:
    """Return for each fact the share of the text before its first statement. No planted sentence occurs twice."""
    num_tokens, starts = 0, {}
    for sentence in text:
        starts[sentence] = num_tokens
        num_tokens += language.tokens_in(sentence)
    return [
        min(starts[statement[0]] for statement in statements) / num_tokens for statements in facts
    ]


def lengths_of(
    document_length: int | None = None, train_length: int | None = None
) -> dict[str, tuple[int, ...]]:
    """Return split → the lengths of its reports. Training lengths grow from short to full.

    A test report has `document_length` tokens (None: 1,024); other reports have at most `train_length` (None: as many).
    """
    tested = document_length or _DOCUMENT_LENGTH
    longest = train_length or tested
    doubled = (64 * 2**power for power in range(longest.bit_length()))
    shorter = (length for length in (40, *doubled) if length < longest)
    return {"train": (*shorter, longest), "validation": (longest,), "test": (tested,)}


def _controls_of(settings: core.DatasetSettings) -> Controls:
    values: dict[str, Any] = {name: getattr(settings, name) for name in _CONTROLS}
    values["hard"] = _HARD_AMONG_PROSE if settings.filler else None
    return Controls(**{name: value for name, value in values.items() if value is not None})


def generate_reports(settings: core.DatasetSettings) -> Iterator[tuple[str, core.Read]]:
    """Yield (split, report), at most `settings.limit` per split.

    With a filler, the first report of a split has the counts of the sentences that were left out of it.
    """
    controls, lengths = (
        _controls_of(settings),
        lengths_of(settings.document_length, settings.train_length),
    )
    prose = (
        find_prose(settings, {split: max(lengths[split]) for split in lengths})
        if settings.filler
        else {}
    )
    for split, (number, seed) in _REPORT_SPLITS.items():
        sentences, left_out = prose.get(split, NO_PROSE)
        limit, split_controls = (
            min(number, settings.limit or number),
            replace(controls, prose=sentences),
        )
        for index, example in enumerate(reports(lengths[split], seed, limit, split_controls)):
            yield split, core.Thinned(example, left_out) if left_out and index == 0 else example


def probe_inputs(settings: core.DatasetSettings) -> dict[str, Any]:
    """Return what decides the texts: generator version, options, and the number, seed and lengths of each split.

    Options with their default value are left out, so the keys of existing texts stay the same.
    """
    lengths, controls = (
        lengths_of(settings.document_length, settings.train_length),
        _controls_of(settings),
    )
    splits = {
        split: {"reports": number, "seed": seed, "lengths": list(lengths[split])}
        for split, (number, seed) in _REPORT_SPLITS.items()
    }
    options = {
        name: getattr(controls, name)
        for name in _CONTROLS
        if getattr(controls, name) != getattr(_DEFAULT, name)
    }
    inputs: dict[str, Any] = {"generator": READING_VERSION, "generated": splits}
    if settings.filler:
        filler, options["filler"] = load_filler(settings), settings.filler
        inputs["filler"] = {"fingerprint": filler.fingerprint}
        inputs["licence"] = filler.facts["licence"]  # most of the text is from there
    return {**inputs, **({"options": options} if options else {})}


CORPUS = core.Corpus(
    name="probe",
    title="Generated council reports with planted facts: built in, any length by dataset.document_length=TOKENS. "
    "9,000 to train on.",
    licence="that of the suite (Apache-2.0)",
    homepage="docs/probe.md",
    built_in=core.BuiltIn(
        generate_reports, probe_inputs, settings=core.names_deciding(core.DatasetSettings, "texts")
    ),
    metrics=("fact_recall",),
)
