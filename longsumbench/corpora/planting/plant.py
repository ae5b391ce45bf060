"""Plants facts into the documents of an example. Begin with `plant_facts`.

    plant_facts(example, 8, split="test") → the example with 8 facts, whose sentences are in its documents

The id of an example decides its facts and, unless they are given, their places. So they depend neither on the other
examples nor on their order, and the same facts can be planted at other places. `PlantableText` is the example as a place
for further sentences. `templates.yaml` has the sentences that state facts, and the names and values that fill them.

A template has one sentence, or two for different places ("first | second"). Its places:

    {name}         the subject: an invented name, the same in all sentences
    {reference}    what links two sentences ("K-4127"), the same in both
    {not:…}        a denial, in the template's own words
    others         the answer, drawn anew for each sentence; the last sentence has the one that is true

Each kind has templates for train and validation, and others for test, so no system can learn those of the test split.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import chain
from operator import attrgetter, itemgetter
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import msgspec

from longsumbench.core import (
    Entry,
    Example,
    FactPart,
    FactStatement,
    PartialExample,
    PlantedFact,
    Read,
    Source,
    word_pattern,
)
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.loading.rows import split_by_hash, thinned_examples
from longsumbench.corpora.probe.language import Draw

# Raise it if the same texts get other facts.
PLANTING_VERSION = 1
# Kinds whose first sentence is revoked by the second.
REVOKED_KINDS = ("correction", "revocation")
# Slots that are the same in all sentences.
SHARED_SLOTS = ("name", "reference")


@dataclass(frozen=True)
class Slot:
    """What fills a place of a template.

    Attributes:
        kind: of the `FactPart`.
        number: how many values there are.
        forms: how a value can be written.
        refused: what a text with planted facts must not have either.
    """

    kind: str
    number: int
    forms: tuple[str, ...]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Templates:
    """The content of `templates.yaml`.

    Attributes:
        choices: name → what values are made of.
        slots: name → its values.
        registers: "prose", "meeting" or "session" → kind → "train" or "test" → templates.
    """

    choices: Mapping[str, str | tuple[str, ...]]
    slots: Mapping[str, Slot]
    registers: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]]


@cache
def read_templates() -> Templates:
    """Return the templates."""
    content = (Path(__file__).parent / "templates.yaml").read_bytes()
    return msgspec.yaml.decode(content, type=Templates)


# At the beginning of a turn: "Project Manager: …".
_SPEAKER = re.compile(r"([^\W\d_][\w .'()/-]{0,39}): ")
# Those who state facts in a session of an agent; its tools do not.
_USER = "user"
_SESSION_ROLES = {_USER, "assistant"}


class _Gap(NamedTuple):
    """A place after a sentence: words before it; numbers of section, paragraph and sentence; characters before it."""

    words: int
    section: int
    paragraph: int
    sentence: int
    end: int


class PlacedSentence(NamedTuple):
    """A sentence to plant after a share of the words; in a session, an instruction is in a user's turn."""

    share: float
    sentence: str
    is_instruction: bool


class PlantableText:
    """The sentences of an example, and the gaps for further ones.

    Attributes:
        example: the example.
        speakers: those of a transcript whose paragraphs begin with them, each once; empty for other texts.
        register: how it is written: "prose", "meeting" (a transcript) or "session" (of an agent; its turns are
            sections with a role as their name).
        positions: sentence → share of the words before it.
    """

    def __init__(self, example: Example) -> None:
        self.example = example
        self._names = [section.name for section in example.sections()]
        self.speakers = _speakers_in(example)
        self.register = "meeting" if self.speakers else "prose"
        if _SESSION_ROLES.intersection(self._names):
            self.speakers, self.register = [], "session"
        pattern = word_pattern(example.source_text())
        self._gaps: list[_Gap] = []
        words_before: dict[str, int] = {}
        words = 0
        for number, section in enumerate(example.sections()):
            spans = iter(section.sentence_spans())
            for place, paragraph in enumerate(section.paragraphs):
                for index, sentence in enumerate(paragraph, start=1):
                    words_before[sentence] = words
                    words += len(pattern.findall(sentence))
                    _, end = next(spans)
                    # A turn is not interrupted
                    if self.register == "prose" or index == len(paragraph):
                        self._gaps.append(_Gap(words, number, place, index, end))
        # Tools state no facts
        self._gaps = self._gaps_in(_SESSION_ROLES) or self._gaps
        self._num_words = max(1, words)
        self.positions = {
            sentence: before / self._num_words for sentence, before in words_before.items()
        }

    def _gaps_in(self, roles: Collection[str | None]) -> list[_Gap]:
        return [gap for gap in self._gaps if self._names[gap.section] in roles]

    def with_sentences(self, placed: Iterable[PlacedSentence]) -> Example:
        """Return the example with further sentences, none before the first one."""
        in_order = []
        for share, sentence, is_instruction in placed:
            gaps = self._gaps
            if is_instruction:
                gaps = self._gaps_in({_USER}) or gaps
            words = share * self._num_words
            gap = min(gaps, key=lambda gap: abs(gap.words - words))
            in_order.append((gap, share, sentence))
        in_order.sort(key=itemgetter(0, 1))
        plain = json.loads(json.dumps(self.example.to_dict()))
        sections = list(chain.from_iterable(item["sections"] for item in plain["documents"]))
        # The last comes first, so that the numbers of the others stay.
        for gap, _, sentence in reversed(in_order):
            section = sections[gap.section]
            blanks = " "
            if self.register == "prose":
                section["paragraphs"][gap.paragraph].insert(gap.sentence, sentence)
            else:
                blanks = "\n\n"
                section["paragraphs"].insert(gap.paragraph + 1, [sentence])
            if "text" in section:
                text = section["text"]
                section["text"] = f"{text[: gap.end]}{blanks}{sentence}{text[gap.end :]}"
        return Example.from_dict(plain)


def _speakers_in(example: Example) -> list[str]:
    """Return who speaks in a transcript, each once; none if most paragraphs do not begin with a speaker."""
    turns = [paragraph[0] for paragraph in example.texts("paragraph")]
    speakers = [match[1] for match in map(_SPEAKER.match, turns) if match]
    return list(dict.fromkeys(speakers)) if 2 * len(speakers) > len(turns) else []


# In the record.
_NO_REFERENCE = "references that are missing (planted sentences take their place)"
# A text with fewer would be mostly planted.
_SENTENCES_PER_FACT = 3
# Draws of a value that the text does not have.
_TRIES = 1_000
_WORD = re.compile(r"\w+")


def planted_source(source: Source, number: int, places: Sequence[float] | None) -> Source:
    """Return a source whose examples have planted facts; see `plant_facts`."""
    planted = {"planted": {"facts": number, "at": places, "version": PLANTING_VERSION}}

    def entries(full: set[str]) -> Iterator[Entry]:
        for entry in source.entries(full):
            yield entry._replace(load=partial(_plant_row, entry, number, places))

    return Source({**source.inputs, **planted}, {**source.metadata, **planted}, entries)


def _plant_row(entry: Entry, number: int, places: Sequence[float] | None) -> Read:
    planted = []
    split = entry.split
    for example, left_out in thinned_examples(entry.load()):
        split = split or split_by_hash(example.id)
        if not any(example.references):
            left_out = {**left_out, _NO_REFERENCE: 1}
        planted.append(PartialExample(plant_facts(example, number, places, split), left_out))
    return tuple(planted)


def plant_facts(
    example: Example, number: int, places: Sequence[float] | None = None, split: str = "test"
) -> Example:
    """Return an example with facts in its documents, each a sentence or two between others, or a turn of a transcript.

    An example without a reference gets the planted sentences, without revoked ones.

    Args:
        example: its text has no planted facts yet.
        number: of facts.
        places: shares of the text before the facts, which take them in turn; None: spread over the text.
        split: decides the templates.

    Raises:
        BadRow: the text is too short for the facts, or already has all names.
    """
    num_sentences = len(list(example.sentences()))
    if num_sentences < number * _SENTENCES_PER_FACT:
        problem = f"example '{example.id}' has {num_sentences} sentences, a fact needs {_SENTENCES_PER_FACT}"
        raise BadRow(
            "the text is too short for the facts", f"{problem}: choose a smaller dataset.plant"
        )
    text = PlantableText(example)
    facts = _FactDraw(text, split, {}).facts(number)
    planted_text = text.with_sentences(_place_sentences(facts, example.id, places))
    # The same draws give the same facts, now with the positions of their sentences.
    facts = _FactDraw(text, split, PlantableText(planted_text).positions).facts(number)
    references = example.references
    if not any(references):
        stated = chain.from_iterable(fact.statements for fact in facts)
        in_order = sorted(stated, key=attrgetter("position"))
        references = (tuple(statement.sentence for statement in in_order),)
    return replace(planted_text, references=references, planted=tuple(facts))


def _plain_words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.lower()))} "


class _FactDraw(Draw):
    """Random facts for a text, with values that neither the text nor its other facts have.

    Sentences that are not in `positions` are at 0.
    """

    def __init__(self, text: PlantableText, split: str, positions: Mapping[str, float]) -> None:
        example = text.example
        super().__init__(f"facts {example.id}")
        self._text = text
        self._split = "test" if split == "test" else "train"
        self._positions = positions
        references = chain.from_iterable(example.references)
        self._words = _plain_words(
            " ".join([example.topic or "", *example.sentences(), *references])
        )

    def facts(self, number: int) -> list[PlantedFact]:
        """Return facts, whose kinds take turns."""
        templates = read_templates().registers[self._text.register]
        facts: list[PlantedFact] = []
        kinds: list[str] = []
        while len(facts) < number:
            kinds = kinds or self.shuffled(list(templates))
            kind = kinds.pop()
            facts.append(self._fact(kind, self.one_of(templates[kind][self._split])))
        return facts

    def _fact(self, kind: str, template: str) -> PlantedFact:
        speakers = self._text.speakers
        speaker = f"{self.one_of(speakers)}: " if speakers else ""
        shared: dict[str, FactPart] = {}
        statements, answers = [], []
        for sentence in template.split(" | "):
            text = speaker
            parts, answer = [], []
            chance = 1.0
            for literal, name, denial, _ in Formatter().parse(sentence):
                text += literal
                if name is None:
                    continue
                slot = read_templates().slots[name]
                if denial:
                    part = FactPart(name, denial)
                else:
                    part = shared.get(name) or self._part(name, slot)
                if name in SHARED_SLOTS:
                    shared[name] = part
                else:
                    answer.append(part)
                    chance /= slot.number
                text += part.text
                parts.append(part)
            position = self._positions.get(text, 0.0)
            statements.append(FactStatement(text, tuple(parts), position))
            answers.append(tuple(answer))
        num_revoked = 1 if kind in REVOKED_KINDS else 0
        return PlantedFact(
            kind=kind,
            subject=shared["name"],
            answer=answers[-1],
            statements=tuple(statements[num_revoked:]),
            revoked=answers[0] if num_revoked else (),
            chance=chance,
            corrected=tuple(statements[:num_revoked]),
        )

    def _part(self, name: str, slot: Slot) -> FactPart:
        choices = read_templates().choices
        for _ in range(_TRIES):
            words = {choice: self.one_of(values) for choice, values in choices.items()}
            forms = [*self.shuffled(slot.forms), *slot.refused]
            texts = [form.format_map(words) for form in forms]
            plain_texts = [_plain_words(text) for text in texts]
            if not any(text in self._words for text in plain_texts):
                self._words += "".join(plain_texts)
                return FactPart(slot.kind, texts[0])
        problem = f"the text has too many of the {name}s that could be planted"
        raise BadRow(problem, f"example '{self._text.example.id}'; choose a smaller dataset.plant")


def _place_sentences(
    facts: Sequence[PlantedFact], identity: str, places: Sequence[float] | None
) -> Iterator[PlacedSentence]:
    draw = Draw(f"places {identity}")
    strata = draw.shuffled(range(len(facts)))
    for index, fact in enumerate(facts):
        place = (strata[index] + draw.share()) / len(facts)
        if places:
            place = places[index % len(places)]
        # Of a second sentence, or of the one that is corrected
        further_share = draw.share()
        shares = (further_share * place, place) if fact.corrected else (place, further_share)
        for share, statement in zip(shares, (*fact.corrected, *fact.statements), strict=False):
            yield PlacedSentence(share, statement.sentence, fact.kind == "revocation")
