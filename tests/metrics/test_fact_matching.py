"""What a summary says of planted facts: forms of values worked by hand, and what copies of sentences must give."""

import datetime

import fact_matching
import pytest
from support import planted_facts
from support.planted_facts import NUMBER, fact_of
from support.waiting import assert_linear

from longsumbench.core import PlantedFact
from longsumbench.metrics.fact_matching import MISSING, RIGHT, WRONG, match_facts, read_tokens

EQUAL = {  # forms of one value
    "amount: 3.4 million euros": "3,400,000 euros|€3.4m|EUR 3.4 mn|€3.4 million|3.4-million-euro|3.4 million"
    "|3.400.000 euros|3 400 000 euros|3’400’000 EUR|3.4 M€|€3.4M|3,4 Mio. Euro|three point four million euros",
    "number: 12 per cent": "12%|12 %|twelve percent|12 percent",
    "amount: 1.2 billion dollars": "$1.2bn|US$1,200 million|1.2 billion US dollars|USD 1.2 billion",
    "amount: 12.5 euros": "€12.50|12.50 euros",
    "number: 17 ships": "seventeen ships|17 ships",
    "number: 4,831": "4 831|4’831|4'831|4.831|about 4,800|~5000|over 4,800|nearly 4,900|4.8k",
    "date: 14 March": "March 14|March 14th|the 14th of March|14 Mar.|2023-03-14|14/03/2023|03/14/2023"
    "|14.3.|14.03.|14. March|14-Mar-23|14 Mar '22|2023/03/14",
    "date: 1 October": "1st of October|first of October|October the first",
    "date: 14 March 2023": "14 March|March 14, 2023|2023-03-14|14.03.2023|14/03/23",
    "name: Ms Ingrid Ostvang": "Ingrid Ostvang|INGRID OSTVANG|Ostvang|Ms Ostvang|Minister Ostvang|Ingrid Ostvang's",
    "name: Torwick Ltd": "Torwick|Torwick Limited|Torwick, Inc.|torwick",
    "file: config/limits-eu.toml": "limits-eu.toml|config/limits-eu.toml|/srv/config/limits-eu.toml|`limits-eu.toml`",
    "words: renewed the licence": "renewing licences|renewed its licence",
}
OTHER = {
    "amount: 3.4 million euros": "3.4 billion euros|3.5 million euros|3.4 million dollars|3.4 thousand euros",
    "number: 17 ships": "7 ships|170 ships|1.7 ships",
    "number: 4,831": "about 4,900|over 4,900|nearly 4,800|4,831,000",
    "date: 14 March 2023": "14 March 2022|15 March 2023|14 May 2023|4 March 2023|March 14, 2008|14 March ’22|14.4.23",
    "name: Ms Ingrid Ostvang": "Ingrid Selberg|Marta Ostvang",
    "file: config/limits-eu.toml": "limits-us.toml|limits-eu.toml.bak",
}


def planted_value(value: str) -> PlantedFact:
    """A fact whose answer is the value, "kind: text"."""
    return fact_of("decision", f"The Halvorsen plan: {text_of(value)}.", "Halvorsen", value)


def text_of(value: str) -> str:
    return value.partition(": ")[2]


def outcome_of(fact: PlantedFact, summary: str) -> str:
    return match_facts([fact], summary)[0]


@pytest.mark.parametrize("value", EQUAL)
def test_forms_of_a_value(value: str) -> None:
    """Each form of a value is right, wherever it is in the sentence; the subject alone is not."""
    fact = planted_value(value)
    for form in EQUAL[value].split("|"):
        sentences = (
            f"Members said that Halvorsen gets {form} or so.",
            f"With {form}, Halvorsen is fine.",
        )
        assert [(form, outcome_of(fact, text)) for text in sentences] == [(form, RIGHT)] * 2
    assert outcome_of(fact, "Halvorsen was discussed.") == MISSING
    assert outcome_of(fact, f"Members agreed on {text_of(value)}.") == MISSING


@pytest.mark.parametrize("value", OTHER)
def test_other_values(value: str) -> None:
    """Another value is wrong."""
    for form in OTHER[value].split("|"):
        outcome = outcome_of(planted_value(value), f"Now Halvorsen gets {form}.")
        assert (form, outcome) == (form, WRONG)


def test_dates_in_all_formats() -> None:
    """Every day of a year is read from every format; only a format that swaps days and months has two readings."""
    day = datetime.date(2024, 1, 1)
    formats = (
        "%d %B %Y",
        "%B %d, %Y",
        "%Y-%m-%d",
        "%d.%m.%Y",
        "%d.%m.%y",
        "%d %b %Y",
        "%b. %d, %Y",
        "%d/%m/%Y",
    )
    while day.year == 2024:
        expected = {f"@{day:%m-%d}", "@2024"}
        for form in formats:
            tokens = read_tokens(f"It ends on {day.strftime(form)}, they said.")
            swapped = {f"@{day:%d-%m}"} if "/" in form else set()
            assert tokens - {"it", "end", "they", "said"} == expected | swapped, day.strftime(form)
        day += datetime.timedelta(1)


PARAPHRASES = """
DECISION right: On March 14, Torwick's board gave Halvorsen EUR 3.4 mn.
DECISION right: The board discussed Halvorsen. It approved €3.4m on 14 March.
DECISION wrong: The board approved 3.5 million euros for Halvorsen on 14 March.
DECISION missing: The board approved 3.4 million euros for Halvorsen.
DECISION wrong: The board did not approve 3.4 million euros for Halvorsen on 14 March.
DECISION right: Halvorsen got €3.4m on 14 March, which nobody had expected.
DECISION wrong: Members voted against €3.4m for Halvorsen on 14 March.
DECISION wrong: €3.4m for Halvorsen on 14 March was proposed. The motion was rejected.
DECISION right: Nobody opposed €3.4m for Halvorsen on 14 March.
DECISION wrong: Torwick, not Halvorsen, got €3.4m on 14 March.
DECISION wrong: Members turned €3.4m on 14 March for Halvorsen down.
DECISION wrong: €3.4m for Halvorsen on 14 March was a plan, but they decided otherwise.
DECISION right: Torwick's board did not give Halvorsen €3.4m until 14 March.
DECISION right: No less than €3.4m went to Halvorsen on 14 March.
DECISION right: Halvorsen got €3.4m on 14 March, although two members voted against it.
DECISION right: Halvorsen got €3.4m on 14 March. It rejected a further offer.
DECISION right: On 14 March they settled on 3.4 million euros for Halvorsen.
DECISION right: Halvorsen got €3.4m on 14 March. The board did not approve the road.
DECISION wrong: Rejected: €3.4m for Halvorsen on 14 March.
DECISION wrong: Not approved: / - Brenmark / - €3.4m for Halvorsen on 14 March
DECISION wrong: €3.4m for Halvorsen on 14 March – declined.
DECISION wrong: On 14 March €3.4m were proposed for Halvorsen, but the board said no.
DECISION wrong: On 14 March Halvorsen was to get €3.4m. That did not happen.
NAME right: Ingrid Ostvang rather than Marta Selberg designed Korheim.
NUMBER right: Brenmark counted two 500-acre farms and 4127 households.
NUMBER wrong: Brenmark counted 812 households and Torwick 4127.
NUMBER right: Brenmark: / - 4127 households
NUMBER wrong: Brenmark counted 4,172 households.
DATE wrong: Lindholm ends on 10 May.
NAME wrong: The Korheim pavilion was designed by Marta Selberg.
NEGATION right: The Dalrup merger was rejected.
NEGATION wrong: The board approved the Dalrup merger.
NEGATION wrong: The board approved the Dalrup merger, although Ms Selberg did not agree.
NEGATION wrong: The board did not hesitate and approved the Dalrup merger.
NEGATION wrong: Approved: the Dalrup merger. Not approved: the new car park.
NEGATION right: The board approved the budget, but not the Dalrup merger.
NEGATION right: The Dalrup merger was discussed, but approval was withheld.
NEGATION missing: The board did not talk about the Dalrup merger.
CORRECTION wrong: {REVOKED}
CORRECTION right: {REVOKED} In fact, Ravstedt drew 2,310.
CORRECTION wrong: Ravstedt drew 2,310 visitors. {REVOKED}
CORRECTION right: Ravstedt drew 2,310 visitors, not 5,800.
CORRECTION wrong: Ravstedt drew 5,800 visitors rather than 2,310.
CORRECTION wrong: Ravstedt was corrected from 2,310 to 5,800.
CORRECTION missing: Ravstedt did not draw 5,800 visitors.
TWO_PLACES right: Emil Selberg is in charge of the Grimford estate.
TWO_PLACES right: K-4127 is about Grimford. Selberg has file K-4127.
TWO_PLACES missing: File K-4127 concerns the Grimford estate.
TWO_PLACES wrong: File K-4127 does not concern the Grimford estate. Emil Selberg is in charge of file K-4127.
FILE right: Ulmnik's settings are in `limits-eu.toml`.
FILE wrong: Ulmnik's settings are in config/limits-us.toml.
ATTEMPT right: A pool of 64 for Zelsky failed to help.
ATTEMPT right: With a pool of 64, the error of Zelsky persisted.
ATTEMPT wrong: Setting the pool of Zelsky to 64 helped.
"""


@pytest.mark.parametrize("line", PARAPHRASES.strip().splitlines())
def test_paraphrases(line: str) -> None:
    """What a reader says of a summary, on a fact of `planted_facts`; a slash is a line break."""
    case, _, summary = line.partition(": ")
    name, outcome = case.split()
    summary = summary.replace("{REVOKED}", planted_facts.REVOKED).replace(" / ", "\n")
    assert outcome_of(vars(planted_facts)[name], summary) == outcome


def test_labelled_sentences() -> None:
    """Nearly all sentences of the labelled set are judged as their reader did."""
    pairs = list(fact_matching.read_written())
    agreeing = [pair for pair in pairs if pair.verdict == pair.label]
    assert len(agreeing) > 0.98 * len(pairs)


@pytest.mark.parametrize(
    "run", ["a", "-", "1-", "a.", "a/", "1,", "1 ", "not rejected ", "moved from 1 "]
)
def test_long_runs_take_linear_time(run: str) -> None:
    """What a broken output repeats without blanks is read once."""
    assert_linear(lambda length: outcome_of(NUMBER, "Brenmark " + run * length), 10_000)
