"""Facts of all kinds, as they are planted in natural texts."""

from longsumbench.core import FactPart, FactStatement, PlantedFact

NEUTRAL = (
    "The committee met in the town hall.",
    "Nobody asked for a break, and the minutes were read.",
    "It rained for 3 days in May.",
    "Members from 14 towns took part.",
)


def fact_parts(*texts: str) -> tuple[FactPart, ...]:
    """Return parts written as "kind: text"."""
    return tuple(FactPart(*text.split(": ", 1)) for text in texts)


def statement_of(sentence: str, *parts: str, position: float = 0.5) -> FactStatement:
    """Return a statement with these parts."""
    return FactStatement(sentence, fact_parts(*parts), position)


def fact_of(
    kind: str,
    sentence: str,
    name: str,
    *answer: str,
    revoked: tuple[str, ...] = (),
    position: float = 0.5,
) -> PlantedFact:
    """Return a fact that one sentence states."""
    statement = statement_of(sentence, f"name: {name}", *answer, position=position)
    [subject] = fact_parts(f"name: {name}")
    return PlantedFact(
        kind, subject, fact_parts(*answer), (statement,), fact_parts(*revoked), 0.001
    )


DECISION = fact_of(
    "decision",
    "The board of Torwick Ltd approved 3.4 million euros for the Halvorsen project on 14 March 2023.",
    "Halvorsen",
    "amount: 3.4 million euros",
    "date: 14 March 2023",
    position=0.05,
)
NUMBER = fact_of(
    "number", "The Brenmark survey counted 4,127 households.", "Brenmark", "number: 4,127"
)
DATE = fact_of(
    "date", "The Lindholm inquiry ends on 9 May.", "Lindholm", "date: 9 May", position=0.99
)
NAME = fact_of(
    "name", "Ms Ingrid Ostvang designed the Korheim pavilion.", "Korheim", "name: Ms Ingrid Ostvang"
)
NEGATION = fact_of(
    "negation", "The board did not approve the Dalrup merger.", "Dalrup", "not: did not approve"
)
CORRECTION = fact_of(
    "correction",
    "The figure for the Ravstedt fair was wrong: it drew 2,310 visitors.",
    "Ravstedt",
    "number: 2,310",
    revoked=("number: 5,800",),
)
REVOKED = "The Ravstedt fair drew 5,800 visitors."
TWO_PLACES = PlantedFact(
    "two_places",
    FactPart("name", "Grimford"),
    fact_parts("name: Emil Selberg"),
    (
        statement_of(
            "File K-4127 concerns the Grimford estate.",
            "name: K-4127",
            "name: Grimford",
            position=0.2,
        ),
        statement_of(
            "Emil Selberg is in charge of file K-4127.",
            "name: Emil Selberg",
            "name: K-4127",
            position=0.8,
        ),
    ),
)
FILE = fact_of(
    "file",
    "The settings of Ulmnik are kept in config/limits-eu.toml.",
    "Ulmnik",
    "file: config/limits-eu.toml",
)
ATTEMPT = fact_of(
    "attempt",
    "Raising the pool size of Zelsky to 64 did not help.",
    "Zelsky",
    "number: 64",
    "not: did not help",
)
