"""Plants facts into the documents of an example. Begin with `plant_facts`.

    plant_facts(example, 8, split="test") → the example with 8 facts, whose sentences are in its documents

The id of an example decides its facts and, unless they are given, their places. So they depend neither on the other
examples nor on their order, and the same facts can be planted at other places.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter
from string import Formatter

from longsumbench.core import (
    Entry,
    Example,
    FactPart,
    FactStatement,
    PartialExample,
    PlantedFact,
    Read,
    Source,
)
from longsumbench.corpora.loading.fields import BadRow
from longsumbench.corpora.loading.rows import split_by_hash, thinned_examples
from longsumbench.corpora.planting.plantable_text import PlacedSentence, PlantableText
from longsumbench.corpora.planting.templates import (
    PLANTING_VERSION,
    REVOKED_KINDS,
    SHARED_SLOTS,
    Slot,
    read_templates,
)
from longsumbench.corpora.probe.language import Draw

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

    return Source({**source.inputs, **planted}, {**source.facts, **planted}, entries)


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
