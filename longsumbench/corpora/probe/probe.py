"""`probe`, a generated dataset: council reports with planted facts, so each fact that a system found can be checked.

    report(1024, seed=7, index=0) → Example with its facts

A report decides on six sites in a fixed order; its summary states the decisions in that order. The place of a decision,
and the distance of two places that belong together, are random. All other sentences are drawn without looking at the
decisions, so they reveal nothing about them. Only look-alikes avoid the true decision. Sentences that name no site and
no firm can be those of another dataset (`filler.py`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

from longsumbench import core
from longsumbench.core.versions import LOADING_VERSION
from longsumbench.corpora.probe import language
from longsumbench.corpora.probe.filler import NO_PROSE, find_prose, load_filler
from longsumbench.errors import UsageError

# tokens of a validation or test report, and of the longest training reports
_DOCUMENT_LENGTH = 1024
# tokens: the longest fact and a little more
_MIN_LENGTH = 32
# tokens; shorter reports cover only a few sites of the agenda
_NOTE_LENGTH = 128
_NOTE_TOKENS_PER_SITE = 20  # in such a short report
# number of reports, seed
_REPORT_SPLITS = {"train": (9_000, 1), "validation": (100, 2), "test": (400, 3)}

_SINGLE, _RELAYED, _SILENT = language.SUMMARIES
# The kind of fact follows from the site: the sites have these kinds in turn.
_KINDS = (_SINGLE, _SINGLE, _SINGLE, _SINGLE, _RELAYED, _SILENT)
_FIXED, _ASKED = "fixed", "asked"
_FIXED_AGENDA = language.SITES[: len(_KINDS)]
_AGENDA_SITES = range(4, 9)  # sites of a random agenda

# share of the distractors that name a site of the agenda and a firm
_HARD = 0.4
_HARD_AMONG_PROSE = 0.2
# share of the distractors that have the words of a decision
_ALIKE = 0.1
# share of the facts whose decision and bids are in one section; others are uniformly far
_NEAR = 0.35
# tokens: a section may end this much early, about half a sentence
_SLACK = 4
_PROSE_SLACK = 10


@dataclass(frozen=True)
class Controls:
    """What reports can vary in, besides their length."""

    # number of documents that share the sections; at most the number of sections
    sources: int = 1
    # "fixed": the same sites in every report. "asked": their number, choice and order are random, and the query names them
    agenda: str = _FIXED
    # sentences that replace the plain distractors; a report has consecutive ones from a random place on
    prose: core.Sentences = field(default=(), repr=False)


_DEFAULT = Controls()


def report(length: int, seed: int, index: int, controls: Controls = _DEFAULT) -> core.Example:
    """Make one report. The same arguments always give the same report.

    The length is in tokens (words and full stops), accurate to about half a sentence. Reports below 128 cover only a
    part of the agenda; no report covers more sites than fit. A report has one document of sections (or several by
    `controls`), one reference, and a fact for each sentence of the reference. The id is "seed-length-index".

    Raises:
        UsageError: the report is too short for a fact.
    """
    if length < _MIN_LENGTH:
        raise UsageError(
            f"a report of {length} tokens is too short for a fact: it needs {_MIN_LENGTH}"
        )
    draw = language.Draw(f"{seed} {length} {index}")
    decisions = _draw_agenda(draw, length, controls.agenda)
    num_sections = _num_sections(length, controls.sources)
    planted: list[list[core.Sentences]] = [[] for _ in range(num_sections)]
    distances = []
    for decision in decisions:
        places = _draw_places(draw, len(decision.statements), len(planted))
        for place, statement in zip(places, decision.statements, strict=True):
            planted[place].append(statement)
        distances.append(abs(places[0] - places[-1]))
    rumours = _draw_rumours(draw, decisions, controls.agenda)
    sections = list(_fill_sections(draw, planted, length, rumours, controls.prose))

    positions = _find_positions(decisions, chain.from_iterable(sections))
    facts = []
    for decision, position, distance in zip(decisions, positions, distances, strict=True):
        kind, site, firm = decision.kind, decision.site, decision.firms[0]
        facts.append(core.Fact(kind, site, firm, language.FIRMS, position, distance))
    query = None
    if controls.agenda == _ASKED:
        sites = " ".join(decision.site for decision in decisions)
        query = language.QUESTION.format(sites=sites)
    return core.Example(
        id=f"{seed}-{length}-{index}",
        title=None,
        query=query,
        documents=_divide_sections(sections, controls.sources),
        references=(tuple(decision.summary for decision in decisions),),
        facts=tuple(facts),
    )


def reports(
    lengths: Sequence[int], seed: int, number: int, controls: Controls = _DEFAULT
) -> Iterator[core.Example]:
    """Yield `number` reports that cycle through the lengths.

    Raises:
        UsageError: as for `report`.
    """
    for index in range(number):
        yield report(lengths[index % len(lengths)], seed, index, controls)


@dataclass(frozen=True)
class _Decision:
    """A decision of the council."""

    kind: str  # of the fact
    site: str  # the subject of the decision
    # the chosen firm; then the other bidder, if there is one
    firms: tuple[str, ...]
    # groups of sentences, each planted in one place: the decision; the bids, if it is about them
    statements: tuple[core.Sentences, ...]
    summary: str  # its sentence in the summary

    def tokens(self) -> int:
        """Return the total length of the statements."""
        return sum(map(language.tokens_in, chain.from_iterable(self.statements)))


def _num_sections(length: int, sources: int) -> int:
    section_length = max(_MIN_LENGTH, length // 8)
    return max(1, length // section_length, min(sources, length // _MIN_LENGTH))


def _draw_agenda(draw: language.Draw, length: int, agenda: str) -> list[_Decision]:
    """Return the decisions in the order of the agenda, as many as the length allows."""
    sites, limit = _FIXED_AGENDA, len(_FIXED_AGENDA)
    if agenda == _ASKED:
        sites, limit = language.SITES, draw.one_of(_AGENDA_SITES)
    if length < _NOTE_LENGTH:
        limit = max(1, length // _NOTE_TOKENS_PER_SITE)
    covered: dict[int, _Decision] = {}
    room = length
    for item in draw.shuffled(range(len(sites))):
        decision = _decide(draw, _KINDS[item % len(_KINDS)], sites[item])
        if len(covered) < limit and decision.tokens() <= room:
            covered[item] = decision
            room -= decision.tokens()
    order = sorted(covered) if agenda == _FIXED else list(covered)
    return [covered[item] for item in order]


def _decide(draw: language.Draw, kind: str, site: str) -> _Decision:
    firm = draw.one_of(language.FIRMS)
    if kind == _SINGLE:
        decided = draw.fill(draw.one_of(language.DECISIONS), site=site, firm=firm)
        summary = draw.fill(language.SUMMARIES[kind], site=site, firm=firm)
        return _Decision(kind, site, (firm,), ((decided,),), summary)
    rival = draw.one_of([candidate for candidate in language.FIRMS if candidate != firm])
    rank, other_rank = draw.shuffled(language.RANKS)
    bids = [
        draw.fill(language.BID, site=site, rank=rank, firm=firm),
        draw.fill(language.BID, site=site, rank=other_rank, firm=rival),
    ]
    chosen = draw.fill(language.CHOICE, site=site, rank=rank)
    summary = draw.fill(language.SUMMARIES[kind], site=site, firm=firm, rank=rank)
    return _Decision(kind, site, (firm, rival), ((chosen,), tuple(draw.shuffled(bids))), summary)


def _draw_places(draw: language.Draw, statements: int, num_sections: int) -> list[int]:
    """Draw the sections that hold the one or two statements of a decision."""
    if statements == 1:
        return [draw.below(num_sections)]
    distance = 0
    if draw.share() >= _NEAR and num_sections > 1:
        distance = 1 + draw.below(num_sections - 1)
    first = draw.below(num_sections - distance)
    return draw.shuffled((first, first + distance))


def _divide_sections(sections: Sequence[core.Sentences], sources: int) -> tuple[core.Document, ...]:
    """Return the documents; their sizes differ by one section at most."""
    number = min(sources, len(sections))
    divided: dict[int, list[core.Section]] = defaultdict(list)
    for index, text in enumerate(sections):
        section = core.Section(f"Session {index + 1}", (text,))
        divided[index * number // len(sections) + 1].append(section)
    documents = []
    for source, members in divided.items():
        documents.append(core.Document(f"Source {source}" if sources > 1 else None, tuple(members)))
    return tuple(documents)


def _draw_rumours(
    draw: language.Draw, decisions: Sequence[_Decision], agenda: str
) -> dict[str, str]:
    """Draw a losing firm for every site, which look-alikes name. It does not bid either.

    It is one firm per site because every excluded firm narrows down the true one. So only one of 24 is excluded, at any
    length.
    """
    bidders = {decision.site: decision.firms for decision in decisions}
    rumours = {}
    for site in _FIXED_AGENDA if agenda == _FIXED else bidders:
        losers = [firm for firm in language.FIRMS if firm not in bidders.get(site, ())]
        rumours[site] = draw.one_of(losers)
    return rumours


def _fill_sections(
    draw: language.Draw,
    planted: Sequence[Sequence[core.Sentences]],
    length: int,
    rumours: Mapping[str, str],
    prose: core.Sentences,
) -> Iterator[core.Sentences]:
    """Yield the sections: the planted statements at random places among as many distractors as fit.

    `rumours` maps a site to the firm that look-alikes name.
    """
    hard, slack = (_HARD_AMONG_PROSE, _PROSE_SLACK) if prose else (_HARD, _SLACK)
    plain = _plain_sentences(draw, prose)
    due = [sum(map(language.tokens_in, chain.from_iterable(statements))) for statements in planted]
    num_tokens = 0
    for number, statements in enumerate(planted, start=1):
        # leaves room for the later statements
        end = min(length * number // len(planted), length - sum(due[number:]))
        num_tokens += due[number - 1]
        stretches: list[core.Sentences] = []
        while num_tokens < end - slack or not (stretches or statements):
            sentence = _draw_distractor(draw, rumours, hard) or next(plain)
            stretches.append((sentence,))
            num_tokens += language.tokens_in(sentence)
        for statement in statements:
            stretches.insert(draw.below(len(stretches) + 1), statement)
        yield tuple(chain.from_iterable(stretches))


def _draw_distractor(draw: language.Draw, rumours: Mapping[str, str], hard: float) -> str | None:
    """Draw a sentence that names a site of the agenda and a firm; None if it shall be a plain one."""
    share, agenda = draw.share(), tuple(rumours)
    if share < hard:
        template = draw.one_of(language.HARD)
        site = draw.one_of(agenda)
        return draw.fill(template, site=site, firm=draw.one_of(language.FIRMS))
    if share < hard + _ALIKE:
        site = draw.one_of(agenda)
        return draw.fill(draw.one_of(language.ALIKE), site=site, firm=rumours[site])
    return None


def _plain_sentences(draw: language.Draw, prose: core.Sentences) -> Iterator[str]:
    """Yield the plain distractors of a report, without end."""
    if prose:
        for place in count(draw.below(len(prose))):
            yield prose[place % len(prose)]
    while True:
        yield draw.fill(draw.one_of(language.PLAIN), site=draw.one_of(language.SITES))


def _find_positions(decisions: Sequence[_Decision], text: Iterator[str]) -> list[float]:
    """Return for each decision the share of the text before its first statement. No planted sentence occurs twice."""
    num_tokens, starts = 0, {}
    for sentence in text:
        starts[sentence] = num_tokens
        num_tokens += language.tokens_in(sentence)
    positions = []
    for decision in decisions:
        first = min(starts[statement[0]] for statement in decision.statements)
        positions.append(first / num_tokens)
    return positions


def choose_report_lengths(
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


def generate_reports(settings: core.DatasetSettings) -> Iterator[tuple[str, core.Read]]:
    """Yield (split, report), at most `settings.limit` per split.

    With a filler, the first report of a split has the counts of the sentences that were left out of it.
    """
    lengths = choose_report_lengths(settings.document_length, settings.train_length)
    prose = {}
    if settings.filler:
        prose = find_prose(settings, {split: max(lengths[split]) for split in lengths})
    for split, (number, seed) in _REPORT_SPLITS.items():
        sentences, left_out = prose.get(split, NO_PROSE)
        limit = min(number, settings.limit or number)
        controls = Controls(settings.sources or 1, settings.agenda or _FIXED, sentences)
        for example in reports(lengths[split], seed, limit, controls):
            yield split, core.PartialExample(example, left_out)
            left_out = {}


def probe_inputs(settings: core.DatasetSettings) -> dict[str, Any]:
    """Return what decides the texts: generator version, options, and the number, seed and lengths of each split.

    Options with their default value are left out, so the keys of existing texts stay the same.
    """
    lengths = choose_report_lengths(settings.document_length, settings.train_length)
    splits = {}
    for split, (number, seed) in _REPORT_SPLITS.items():
        splits[split] = {"reports": number, "seed": seed, "lengths": list(lengths[split])}
    inputs: dict[str, Any] = {"generator": LOADING_VERSION, "generated": splits}
    usual = {"sources": (None, 1), "agenda": (None, _FIXED), "filler": (None, "")}
    options = {name: vars(settings)[name] for name in usual}
    options = {name: value for name, value in options.items() if value not in usual[name]}
    if settings.filler:
        filler = load_filler(settings)
        inputs["filler"] = {"fingerprint": filler.fingerprint}
        inputs["licence"] = filler.metadata["licence"]  # most of the text is from there
    return {**inputs, "options": options} if options else inputs


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
