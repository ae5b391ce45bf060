"""Does a summary state a planted fact? Begin with `judge_facts`.

    summary --_passages_of--> sentences, pairs of sentences --tokens_of--> each fact: right, wrong or missing

Two texts state the same name, number, amount, date or file if they have the same tokens.
"""

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from longsumbench.core import FactPart, PlantedFact
from longsumbench.metrics.names_and_numbers import names_in, spelled_numbers
from longsumbench.rouge.stemmers import google_stem
from longsumbench.sentences import split_summary

RIGHT, WRONG, MISSING = "right", "wrong", "missing"

# Dates, as `_date_tokens` reads them
_MONTHS = re.findall("[a-z]+", "jan feb mar apr may jun jul aug sep oct nov dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?<![\w.,])(?P<day>\d\d?)(?:st|nd|rd|th)?\b"
_YEAR = r"(?:,? (?P<year>\d{4})\b)?"
_DATES = (
    rf"{_DAY}(?: of)? {_MONTH}{_YEAR}",  # 14 March 2023, the 14th of Mar.
    rf"\b{_MONTH} (?:the )?{_DAY}(?![.,]\d){_YEAR}",  # March 14, 2023
    r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b",  # 2023-03-14
    r"\b(?P<day>\d\d?)(?P<mark>[./])(?P<month>\d\d?)(?P=mark)(?P<year>\d{4}|\d\d)\b",  # 14.03.2023, 14/3/23
)
# What is written in several ways → in which one it is compared
_SPELLINGS = {
    r"['’]s\b": "",  # Ostvang's
    r"(?<![\w.~/\\-])[\w.~/\\-]*[/\\](?=[\w.-]+\.[a-z])": " ",  # config/limits.toml → limits.toml
    r"\beuros?\b|\beur\b|€": " € ",
    r"\bus ?\$|\b(?:us )?dollars?\b|\busd\b|\$": " $ ",
    r"\bpounds?\b|\bgbp\b|£": " £ ",
    r"\bfrancs?\b|\bchf\b": " ₣ ",
    r"(?<=\d)(?:[\s-]?thousand|k)\b": "e3",  # 3 thousand, 3k
    r"(?<=\d)(?:[\s-]?(?:million|mio|mln|mn)|m)\b": "e6",  # 3.4-million, 3.4 mn, 3.4m
    r"(?<=\d)(?:[\s-]?(?:billion|bn)|b)\b": "e9",
}
_NUMBER = (
    r"\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?(?:e\d)?|\d+(?:\.\d+)?(?:e\d)?"  # 3,400,000, 3.4e6
)
_FILE = r"(?<![\w.-])[\w-][\w.-]*\.[a-z]\w*"
_STATED_TOKEN = re.compile(rf"@\d\d-\d\d|@\d{{4}}|[€$£₣]|{_FILE}|{_NUMBER}|[^\W_\d]+")
# Neither function words, nor titles and legal forms, tell names or phrases apart
_IGNORED_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        """a an the of for in on at to by with from and as its their his her this that is are was were be been has have
        had will would did do does not no never dr mr mrs ms miss prof professor sir minister
        chair chairman director president secretary mayor ltd limited inc llc plc corp co company gmbh ag sa""",
    )
)
# Kind of a part → tokens that a summary may leave out, if it has no other ones: years and currencies
_MAY_BE_MISSING = {"date": re.compile(r"@\d{4}$"), "amount": re.compile("[€$£₣]")}
# Kind of a part → tokens that are another answer
_OTHERS = {
    "number": re.compile(r"\d[\d.]*$"),
    "amount": re.compile(r"\d{4}"),
    "date": re.compile(r"@\d\d-"),
    "file": re.compile(r".*\.[a-z]"),
}
_NEGATION = re.compile(
    # "not only A" states A; "must not exceed 3" and "no more than 3" state 3
    r"\b(?:not(?! only| exceed| more than| less than)|no(?! more than| less than| fewer than)|never|none|nobody"
    r"|neither|nor|without|cannot|un(?:able|available|successful\w*))\b|n['’]t\b"
    # verbs, in all their forms
    r"|\b(?:fail|reject|refus|declin|den(?:y|ie)|abandon|cancel|scrapp|skip|g[ai]v\w* up\b|turn\w* down\b)",
    re.I,
)
_CLAUSE_END = re.compile(
    r"[;:,](?=\s)|[—–()]|\b(?:but|although|though|while|whereas|because|who|which)\b", re.I
)
# The beginning of a sentence whose subject is in the one before
_CONTINUES = re.compile(
    r"\W*(?:it|its|they|their|he|his|she|her|this|that|these|those|which|later|instead)\b", re.I
)
_stem = google_stem()


def judge_facts(facts: Sequence[PlantedFact], summary: str) -> list[str]:
    """Decide for each fact whether a summary states it: "right", "wrong" or "missing".

    A fact is right if a passage has its subject and its answer, or if there is one for each of its statements. A
    passage is a sentence, or two if the second one continues the first ("It …"). A fact is wrong if a passage has its
    subject with another value, or denies what the source states, or the reverse. Of two answers, the later one in the
    summary counts.
    """
    passages = _passages_of(summary)
    return [_judge_fact(fact, passages) for fact in facts]


def _passages_of(summary: str) -> list[str]:
    passages = []
    for sentence, following in pairwise((*split_summary(summary), "")):
        passages.append(sentence)
        if _CONTINUES.match(following) or sentence.endswith(":"):
            passages.append(f"{sentence} {following}")
    return passages


def _judge_fact(fact: PlantedFact, passages: Sequence[str]) -> str:
    def last_place(parts: Sequence[FactPart]) -> int:
        places = (place for place, text in enumerate(passages) if _states(text, parts, fact))
        return max(places, default=-1)

    answered = last_place((fact.subject, *fact.answer))
    revoked = last_place((fact.subject, *fact.revoked)) if fact.revoked else -1
    if max(answered, revoked) >= 0:
        # Both may be in one passage: "2,310, not 5,800"
        return RIGHT if answered >= revoked else WRONG
    if fact.statements and all(last_place(each.parts) >= 0 for each in fact.statements):
        return RIGHT
    return WRONG if any(_contradicts(passage, fact) for passage in passages) else MISSING


def _states(passage: str, parts: Sequence[FactPart], fact: PlantedFact) -> bool:
    """Return True if a passage has the parts, and denies them only if the source does."""
    denials = [part for part in parts if part.kind == "not"]
    values = [part for part in parts if part.kind != "not"]
    if not all(_has_part(passage, part) for part in values):
        return False
    if denials:
        return _is_denied(passage, denials)
    # The source may deny something else in the same sentence, and the summary, too
    if _NEGATION.search(_stated_source(fact)):
        return True
    return not _is_denied(passage, [part for part in values if part != fact.subject])


def _contradicts(passage: str, fact: PlantedFact) -> bool:
    """Return True if a passage that does not state a fact has its subject with another answer, or with a denial."""
    if not _has_part(passage, fact.subject):
        return False
    lacking = [part for part in fact.answer if not _has_part(passage, part)]
    source_tokens = tokens_of(f"{_stated_source(fact)} {fact.subject.text}")
    for part in lacking:
        if part.kind == "name" and any(not name <= source_tokens for name in _names_of(passage)):
            return True
        form = _OTHERS.get(part.kind)
        if form and any(map(form.match, tokens_of(passage) - source_tokens)):
            return True
    return not lacking


def _stated_source(fact: PlantedFact) -> str:
    return " ".join(statement.sentence for statement in fact.statements)


def _has_part(passage: str, part: FactPart) -> bool:
    stated, needed = tokens_of(passage), tokens_of(part.text)
    if part.kind in _OTHERS:
        # The unit does not count: "17 ships" is 17
        needed = frozenset(token for token in needed if not token.isalpha()) or needed
    lacking, optional = needed - stated, _MAY_BE_MISSING.get(part.kind)
    if optional and not any(map(optional.match, stated)):
        lacking = frozenset(token for token in lacking if not optional.match(token))
    if not lacking:
        return True
    # A family name is enough: no two planted people share one
    return part.kind == "name" and tokens_of(part.text.split()[-1]) in _names_of(passage)


def _names_of(passage: str) -> list[frozenset[str]]:
    return [tokens_of(name) for name in names_in(passage, "")]


def _is_denied(passage: str, parts: Sequence[FactPart]) -> bool:
    """Return True if a clause with one of the parts, or else the whole passage, has a negation."""
    holding = []
    for clause in _CLAUSE_END.split(passage):
        if any(_has_part(clause, part) for part in parts):
            holding.append(clause)
    return any(map(_NEGATION.search, holding or [passage]))


@lru_cache(10_000)  # each passage is compared with many facts
def tokens_of(text: str) -> frozenset[str]:
    """Return what a text states, independent of how it is written.

    These are the stems of words without function words, titles and legal forms; numbers in digits ("3400000"); signs of
    currencies; names of files without folders; days ("@03-14"), with their years ("@2023"). A date with slashes is read
    in two ways.
    """
    text = text.casefold()
    for match, value in reversed([*spelled_numbers(text)]):
        text = f"{text[: match.start()]}{value}{text[match.end() :]}"
    for date in _DATES:
        text = re.sub(date, _date_tokens, text)
    for spelling, compared in _SPELLINGS.items():
        text = re.sub(spelling, compared, text)
    tokens = set()
    for token in _STATED_TOKEN.findall(text):
        if re.fullmatch(_NUMBER, token):
            number = Decimal(re.sub(r"[^\d.e]", "", token))
            tokens.add(f"{number.normalize():f}")
        elif token not in _IGNORED_WORDS:
            tokens.add(_stem(token) if token.isalpha() else token)
    return frozenset(tokens)


def _date_tokens(match: re.Match[str]) -> str:
    day, month, year = match["day"], match["month"], match["year"]
    if not month.isdecimal():
        month = f"{_MONTHS.index(month[:3]) + 1}"
    tokens = f" @{month:0>2}-{day:0>2} "
    if "/" in match[0]:
        tokens += f"@{day:0>2}-{month:0>2} "
    if year:
        century = "20" if len(year) == 2 else ""
        tokens += f"@{century}{year} "
    return tokens
