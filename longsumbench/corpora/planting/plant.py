"""Plants facts into the documents of an example. Begin with `plant_facts`.

    plant_facts(example, 8, split="test") → the example with 8 facts, whose sentences stand in its documents

The id of an example decides its facts and, unless they are given, their places. So they depend neither on the other
examples nor on their order, and the same facts can be planted at other places.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from string import Formatter

from longsumbench.core import (
    Example,
    FactPart,
    FactStatement,
    PlantedFact,
    Read,
    Thinned,
)
from longsumbench.corpora.planting.plantable_text import PlantableText
from longsumbench.corpora.planting.templates import REVOKED_KINDS, SHARED_SLOTS, SLOTS, TEMPLATES
from longsumbench.corpora.probe.language import Draw
from longsumbench.corpora.reading.fields import BadRow
from longsumbench.corpora.reading.rows import split_by_hash, thinned_examples

# In the record.
NO_REFERENCE = "references that are missing (planted sentences take their place)"
# A text with fewer would be mostly planted.
_SENTENCES_PER_FACT = 3
# Draws of a value that the text does not have.
_TRIES = 1_000
_WORD = re.compile(r"\w+")


def plant_row(
    load_row: Callable[[], Read], split: str | None, number: int, places: Sequence[float] | None
) -> Read:
    """Return the examples of a row with planted facts; see `plant_facts`. Without a split, a hash of the id decides it."""
    planted = []
    for example, left_out in thinned_examples(load_row()):
        split = split or split_by_hash(example.id)
        counts = dict(left_out)
        if not any(example.references):
            counts[NO_REFERENCE] = 1
        planted.append(Thinned(plant_facts(example, number, places, split), counts))
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
    text = PlantableText(example)
    if len(text.sentences) < number * _SENTENCES_PER_FACT:
        needed = f"example '{example.id}' has {len(text.sentences)} sentences, {number} facts need"
        raise BadRow(
            "the text is too short for the facts",
            f"{needed} {number * _SENTENCES_PER_FACT}: choose a smaller dataset.plant",
        )
    drafts = list(_draw_facts(text, number, split))
    statements = []
    for draft, shares in zip(drafts, _draw_places(drafts, example.id, places), strict=True):
        statements += zip(shares, draft.sentences, strict=True)
    planted_text = text.with_sentences(sorted(statements, key=lambda statement: statement[0]))
    positions = PlantableText(planted_text).positions()
    facts = tuple(draft.fact(positions) for draft in drafts)
    references = example.references
    if not any(references):
        stated = chain.from_iterable(fact.statements for fact in facts)
        in_order = sorted(stated, key=lambda statement: statement.position)
        references = (tuple(statement.sentence for statement in in_order),)
    return replace(planted_text, references=references, planted=facts)


def _plain_words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.lower()))} "


class _Values:
    """Draws values that neither a text nor its other facts have."""

    def __init__(self, text: PlantableText, draw: Draw) -> None:
        example = text.example
        texts = [example.topic or "", *text.sentences, *chain.from_iterable(example.references)]
        self._words = _plain_words(" ".join(texts))
        self._example, self._draw = example.id, draw

    def draw_part(self, name: str) -> FactPart:
        """Return a new value for a slot."""
        slot = SLOTS[name]
        for _ in range(_TRIES):
            forms = slot.write(self._draw)
            words = [_plain_words(form) for form in forms]
            if not any(form in self._words for form in words):
                self._words += "".join(words)
                return FactPart(slot.kind, forms[0])
        raise BadRow(
            f"the text has every {name} that could be planted", f"example '{self._example}'"
        )


@dataclass(frozen=True)
class _Draft:
    """A fact without places: its kind, and its sentences with slot → part."""

    kind: str
    sentences: tuple[str, ...]
    parts: tuple[Mapping[str, FactPart], ...]

    def answer(self, index: int) -> tuple[FactPart, ...]:
        """Return what a sentence says of the subject."""
        return tuple(part for slot, part in self.parts[index].items() if slot not in SHARED_SLOTS)

    def fact(self, positions: Mapping[str, float]) -> PlantedFact:
        """Return the fact; `positions` has its sentences."""
        statements = []
        for sentence, parts in zip(self.sentences, self.parts, strict=True):
            statements.append(FactStatement(sentence, tuple(parts.values()), positions[sentence]))
        chance = 1.0
        for slot in self.parts[-1].keys() - SHARED_SLOTS:
            chance /= SLOTS[slot].number if slot in SLOTS else 2
        num_revoked = 1 if self.kind in REVOKED_KINDS else 0
        return PlantedFact(
            kind=self.kind,
            subject=self.parts[0]["name"],
            answer=self.answer(-1),
            statements=tuple(statements[num_revoked:]),
            revoked=self.answer(0) if num_revoked else (),
            chance=chance,
            corrected=tuple(statements[:num_revoked]),
        )


def _draw_facts(text: PlantableText, number: int, split: str) -> Iterator[_Draft]:
    draw = Draw(f"facts {text.example.id}")
    values = _Values(text, draw)
    templates = TEMPLATES[text.register]
    kinds: list[str] = []
    for _ in range(number):
        kinds = kinds or draw.shuffled(list(templates))
        kind = kinds.pop()
        template = draw.one_of(templates[kind].of_split(split))
        speaker = f"{draw.one_of(text.speakers)}: " if text.speakers else ""
        yield _fill_template(kind, template, values, speaker)


def _fill_template(kind: str, template: str, values: _Values, speaker: str) -> _Draft:
    shared: dict[str, FactPart] = {}
    sentences, parts = [], []
    for sentence in template.split(" | "):
        written, slots = speaker, dict[str, FactPart]()
        for literal, slot, words, _ in Formatter().parse(sentence):
            written += literal
            if slot is None:
                continue
            if slot == "not":
                slots[slot] = FactPart("not", words or "")
            else:
                slots[slot] = shared.get(slot) or values.draw_part(slot)
            if slot in SHARED_SLOTS:
                shared[slot] = slots[slot]
            written += slots[slot].text
        sentences.append(written)
        parts.append(slots)
    return _Draft(kind, tuple(sentences), tuple(parts))


def _draw_places(
    drafts: Sequence[_Draft], identity: str, places: Sequence[float] | None
) -> Iterator[tuple[float, ...]]:
    """Yield the places of each fact's sentences, as shares of the text."""
    draw = Draw(f"places {identity}")
    strata = draw.shuffled(range(len(drafts)))
    for index, draft in enumerate(drafts):
        if places:
            place = places[index % len(places)]
        else:
            place = (strata[index] + draw.share()) / len(drafts)
        other = draw.share()
        if len(draft.sentences) == 1:
            yield (place,)
        elif draft.kind in REVOKED_KINDS:
            yield other * place, place
        else:
            yield place, other
