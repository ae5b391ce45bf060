"""The closed language of `probe`'s council reports: all words and all sentence templates.

A slot in braces takes one word from the list of that name. Every slot is one word and every template ends with a full
stop, so the words that fill a template do not change its length.
"""

import random
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from string import Formatter
from typing import TypeVar

# the first six are the usual agenda, in its order
SITES = tuple(
    re.findall(
        r"\w+",
        "bridge canal harbour library market mill museum park school station theatre tower",
    )
)
FIRMS = tuple(
    re.findall(
        r"\w+",
        "Adler Brandt Cole Dahl Egan Frost Grant Hale Irwin Joyce Keller Lowe Marsh Nash Olsen Price Quinn Reed Stone "
        "Thorn Unger Vance Wells York",
    )
)
RANKS = ("lower", "higher")
_WORDS = {
    "group": re.findall(r"\w+", "residents shopkeepers teachers drivers visitors farmers"),
    "month": re.findall(r"\w+", "January March April June July October"),
    "look": re.findall(r"\w+", "old new narrow quiet crowded wooden"),
    "weather": re.findall(r"\w+", "rain snow wind fog"),
}

# How the source states a fact: a decision for a firm, or a decision for a rank and the two bids.
DECISIONS = (
    "The council decided that the {site} goes to {firm}.",
    "It was agreed that the {site} goes to {firm}.",
    "After a vote the {site} goes to {firm}.",
)
CHOICE = "The council decided that the {site} goes to the {rank} bid."
BID = "The {site} has a {rank} bid from {firm}."

# The query of a random agenda.
# short, because it takes room in every unit
QUESTION = "What of {sites}?"

# How the summary states a fact, by kind.
SUMMARIES = {
    "single": "The {site} goes to {firm}.",
    # the rank comes first and can be carried along
    "relayed": "The {site} goes to the {rank} bid from {firm}.",
    # the firm comes first and must be known
    "silent": "The {site} goes to {firm} with the {rank} bid.",
}

# Distractors, which decide nothing.
HARD = (  # name a site and a firm
    "{group} hoped that {firm} would get the {site}.",
    "{group} said that {firm} knows the {site} well.",
    "{firm} sent a letter about the {site}.",
    "The mayor praised {firm} for the {site}.",
    "In {month} {firm} visited the {site}.",
)
ALIKE = (  # have the words of a decision
    "{group} asked whether the {site} goes to {firm}.",
    "Nobody believed that the {site} goes to {firm}.",
)
PLAIN = (
    "{weather} delayed the work at the {site} in {month}.",
    "{group} complained about the {look} {site}.",
    "The {site} was {look} and the {group} were patient.",
    "In {month} the {weather} kept the {group} at home.",
    "The mayor thanked the {group}.",
    "The meeting paused for tea.",
)

_TOKEN = re.compile(r"\w+(?:[-']\w+|(?<=\d)[.,:]\w+)*+|([^\w\s])\1*+")

_Shuffled = TypeVar("_Shuffled")


# most sentences occur in many reports
@lru_cache(2**16)
def tokens_in(sentence: str) -> int:
    """Return a sentence's length in tokens, about as `model.tokenizer=words` cuts it: its words and its signs."""
    return len(_TOKEN.findall(sentence))


@cache
def _slots_in(template: str) -> tuple[str, ...]:
    return tuple(name for _, name, _, _ in Formatter().parse(template) if name)


class Draw:
    """Random choices that depend only on a key, on every machine and in every version of Python.

    Python guarantees this only for `random()`, so no other method is used.
    """

    def __init__(self, key: str) -> None:
        self.share = random.Random(key).random  # noqa: S311 - must be reproducible

    def below(self, bound: int) -> int:
        """Return an integer from 0 to bound - 1."""
        return int(self.share() * bound)

    def one_of(self, items: Sequence[_Shuffled]) -> _Shuffled:
        """Return a random item."""
        return items[int(self.share() * len(items))]

    def shuffled(self, items: Sequence[_Shuffled]) -> list[_Shuffled]:
        """Return the items in random order."""
        remaining = list(items)
        return [remaining.pop(self.below(len(remaining))) for _ in items]

    def fill(self, template: str, **choices: str) -> str:
        """Return a sentence; slots without a given word get a random one."""
        words = {}
        for name in _slots_in(template):
            words[name] = choices.get(name) or self.one_of(_WORDS[name])
        sentence = template.format_map(words)
        return sentence[0].upper() + sentence[1:]
