"""Does a summary state a planted fact? Begin with `judge_facts`.

    summary --> passages (a sentence, or two that belong together) --tokens_of--> right, wrong or missing

Two texts state the same name, number, amount, date, file or phrase if they have the same tokens.
"""

import re
from collections.abc import Collection, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from longsumbench.core import FactPart, PlantedFact
from longsumbench.metrics.names_and_numbers import names_in, spelled_numbers
from longsumbench.rouge.stemmers import google_stem
from longsumbench.sentences import sentence_key, split_summary

RIGHT, WRONG, MISSING = "right", "wrong", "missing"

_MONTH_STARTS = re.findall("[a-z]+", "jan feb mar apr may jun jul aug sep oct nov dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY, _YEAR = r"(?<![\w.,])(?P<day>\d\d?)(?:st|nd|rd|th)?\b", r"(?:,? (?P<year>\d{4})\b)?"
_DATES = (
    rf"{_DAY}(?: day)?(?: of)? {_MONTH}{_YEAR}",
    rf"\b{_MONTH} (?:the )?{_DAY}(?![.,]\d){_YEAR}",
    r"\b(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)\b",
    r"(?<![\w.])(?P<day>\d\d?)\. ?(?P<month>\d\d?)\.(?: ?(?P<year>\d{4}|\d\d)\b)?(?!\d)",
    r"(?<![\w/])(?P<day>\d\d?)/(?P<month>\d\d?)(?:/(?P<year>\d{4}|\d\d))?(?![\w/])",
)
_SIGNS = {  # what replaces units and scales; per cent and folders are left out
    "": r"\bper ?cent\b|%|[\w.~-]*[/\\](?=[\w./\\-]*\.[a-z])",
    "€": r"\b(?:euros?|eur)\b|€",
    r"\1.\2 €": r"\b(\d+)\s+€\s+(?:and\s+)?(\d\d)\s+cents?\b",
    "$": r"\bus ?\$|\b(?:us )?dollars?\b|\busd\b|\$",
    "£": r"\bpounds?(?: sterling)?\b|\bgbp\b|£",
    "₣": r"\b(?:francs?|chf)\b",
    "e3": r"(?<=\d)(?:[\s-]?thousand|k)\b",
    "e6": r"(?<=\d)(?:[\s-]?(?:million|mio|mln|mn)|m)\b",
    "e9": r"(?<=\d)(?:[\s-]?(?:billion|bn)|b)\b",
}
_NUMBER = r"\d{1,3}(?:[,\u00a0\u202f]\d{3})+(?:\.\d+)?(?:e\d)?|\d+(?:\.\d+)?(?:e\d)?"
_STATED_TOKEN = re.compile(
    rf"@\d\d-\d\d|@\d{{4}}|[€$£₣]|[\w-][\w.-]*\.[a-z]\w*|{_NUMBER}|[^\W_\d]+(?:['’][^\W_]+)*"
)
# Neither function words, nor titles and legal forms, tell names or phrases apart
_IGNORED_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        """a an the of for in on at to by with from and as its their his her this that is are was were be been has have
        had will would did do does not no never dr mr mrs ms miss prof professor sir minister
        chair chairman director president secretary mayor ltd limited inc llc plc corp co company gmbh ag sa""",
    )
)
_YEARS, _CURRENCIES = re.compile(r"@\d{4}$"), re.compile("[€$£₣]")
_OTHERS = {  # kind → form of the tokens of other answers
    "number": re.compile(r"\d[\d.]*$"),
    "amount": re.compile(r"\d{4}"),
    "date": re.compile(r"@\d\d-"),
    "file": re.compile(r".*\.[a-z]"),
}
_NEGATION = re.compile(
    r"\b(?:not(?! only| just| exceed| more than| less than)|no(?! more than| less than| fewer than)|never|none|nobody"
    r"|neither|nor|without|cannot|un(?:able|available|successful\w*|signed)|ineffective|g[ai]v\w* up)\b|n['’]t\b"
    r"|\b(?:fail|reject|refus|declin(?!\w* (?:by|from|in|to \d))|den(?:y|ie)|turn\w* down|voted (?:down|against)"
    r"|abandon|cancel|scrapp|skip)"
)
_CLAUSE_END = re.compile(
    r"[;:](?=\s)|[—–()]|,(?! (?:however|therefore|instead|again),)(?<!however,)(?<!therefore,)(?<!instead,)(?<!again,)(?=\s)"
    r"|\b(?:but|although|though|while|whereas|because|who|which)\b"
    r"|\band (?=(?:did|was|were|had|has|have|is|are|will|would|could|it|they|he|she|we|\w+ed)\b)",
    re.I,
)
_CONTINUES = re.compile(
    r"\W*(?:it|its|they|their|he|his|she|her|this|that|these|those|which|later|instead)\b", re.I
)
_stem = google_stem()


def judge_facts(facts: Sequence[PlantedFact], summary: str) -> list[str]:
    """Decide for each fact of an example whether its summary states it: "right", "wrong" or "missing".

    A fact is right if a passage has its subject and its answer, or if there is one for each of its statements. A
    passage is a sentence, or two if the second one continues the first ("It …"). A fact is wrong if a passage has its
    subject with another value, or denies what the source states, or the reverse. Of two answers, the later one in the
    summary counts.
    """
    sentences, passages = split_summary(summary), list[str]()
    for sentence, following in pairwise((*sentences, "")):
        passages.append(sentence)
        if _CONTINUES.match(following) or sentence.endswith(":"):
            passages.append(f"{sentence} {following}")
    families = _family_names(facts)
    return [_Matcher(fact, families).judge(summary, passages) for fact in facts]


@lru_cache(10_000)  # each passage of a few examples is compared with many facts
def tokens_of(text: str) -> frozenset[str]:
    """Return what a text states, independent of how it is written.

    These are the stems of words without function words, titles and legal forms; numbers in digits ("3400000"); signs of
    currencies; names of files without folders; days ("@03-14"), with their years ("@2023"). A date that can be read in
    two ways is there twice.
    """
    text = text.casefold()
    for match, value in reversed([*spelled_numbers(text)]):
        text = f"{text[: match.start()]}{value}{text[match.end() :]}"
    for date in _DATES:
        text = re.sub(date, _date_tokens, text)
    for sign, words in _SIGNS.items():
        text = re.sub(words, sign if sign.startswith("e") else f" {sign} ", text)
    tokens = set()
    for token in _STATED_TOKEN.findall(text):
        if re.fullmatch(_NUMBER, token):
            number = Decimal(re.sub(r"[^\d.e]", "", token))
            token = f"{number.normalize():f}"
        token = re.sub("['’]s$", "", token)
        if token not in _IGNORED_WORDS:
            tokens.add(_stem(token) if token.isalpha() else token)
    return frozenset(tokens)


def _date_tokens(match: re.Match[str]) -> str:
    year, day, word = match["year"] or "", int(match["day"]), match["month"]
    month = int(word) if word.isdecimal() else _MONTH_STARTS.index(word[:3]) + 1
    readings = [(month, day)]
    if "/" in match[0]:
        readings.append((day, month))
    tokens = [
        f"@{first:02}-{second:02}" for first, second in readings if first <= len(_MONTH_STARTS)
    ]
    if year:
        tokens.append(f"@20{year}" if len(year) == 2 else f"@{year}")
    elif word.isdecimal():
        # "12.5." may also be a number at the end of a sentence
        tokens.append(match[0])
    return f" {' '.join(tokens)} "


def _family_names(facts: Sequence[PlantedFact]) -> list[frozenset[str]]:
    """Return the last words of the facts' names, without those of several names."""
    names = {}
    for fact in facts:
        for part in (fact.subject, *fact.answer, *fact.revoked):
            if part.kind == "name":
                names[tokens_of(part.text)] = tokens_of(part.text.split()[-1])
    last_words = list(names.values())
    return [last for last in last_words if last and last_words.count(last) == 1]


def _may_lack(token: str, stated: frozenset[str]) -> bool:
    """Return True for a year or a currency where no other one is stated."""
    forms = [form for form in (_YEARS, _CURRENCIES) if form.match(token)]
    return bool(forms) and not any(map(forms[0].match, stated))


def _names_of(passage: str) -> list[frozenset[str]]:
    return [tokens_of(name) for name in names_in(passage, "")]


class _Matcher:
    """Compares a fact with passages; `families` are the family names that mean a whole name."""

    def __init__(self, fact: PlantedFact, families: Collection[frozenset[str]]) -> None:
        self._fact = fact
        self._families = families
        self._source = " ".join(statement.sentence for statement in fact.statements)

    def judge(self, summary: str, passages: Sequence[str]) -> str:
        fact = self._fact
        answered = self._places(passages, (fact.subject, *fact.answer))
        revoked = self._places(passages, (fact.subject, *fact.revoked)) if fact.revoked else []
        if answered and revoked:
            return RIGHT if answered[-1] >= revoked[-1] else WRONG
        if answered or self._is_restated(summary, passages):
            return RIGHT
        if revoked or any(map(self._contradicts, passages)):
            return WRONG
        return MISSING

    def _places(self, passages: Sequence[str], parts: Sequence[FactPart]) -> list[int]:
        return [place for place, passage in enumerate(passages) if self._states(passage, parts)]

    def _is_restated(self, summary: str, passages: Sequence[str]) -> bool:
        """Return True if the summary copies, or states, each of the fact's sentences."""
        text, restated = sentence_key(summary), []
        for statement in self._fact.statements:
            is_copied = sentence_key(statement.sentence) in text
            restated.append(is_copied or bool(self._places(passages, statement.parts)))
        return bool(restated) and all(restated)

    def _states(self, passage: str, parts: Sequence[FactPart]) -> bool:
        denials = [part for part in parts if part.kind == "not"]
        if not self._has(passage, [part for part in parts if part.kind != "not"]):
            return False
        if not denials and _NEGATION.search(self._source.casefold()):
            return True
        return bool(denials) == self._is_denied(passage, denials or parts[1:])

    def _has(self, passage: str, parts: Sequence[FactPart]) -> bool:
        return all(self._has_part(passage, part) for part in parts)

    def _has_part(self, passage: str, part: FactPart) -> bool:
        tokens, stated = tokens_of(part.text), tokens_of(passage)
        values = {token for token in tokens if not token.isalpha()}
        # "17 ships" is 17, of whatever unit
        needed = values if part.kind in _OTHERS and values else tokens
        if all(_may_lack(token, stated) for token in needed - stated):
            return True
        if part.kind != "name":
            return False
        family = tokens_of(part.text.split()[-1])
        return family in self._families and family in _names_of(passage)

    def _is_denied(self, passage: str, parts: Sequence[FactPart]) -> bool:
        """Return True if a clause with one of the parts, or else the whole passage, has a negation."""
        holding = []
        for clause in _CLAUSE_END.split(passage):
            if any(self._has_part(clause, part) for part in parts):
                holding.append(clause)
        return any(_NEGATION.search(text.casefold()) for text in holding or [passage])

    def _contradicts(self, passage: str) -> bool:
        """Return True if a passage that does not state the fact states another answer."""
        if not self._has_part(passage, self._fact.subject):
            return False
        answer = self._fact.answer
        return self._has(passage, answer) or any(self._has_other(passage, part) for part in answer)

    def _has_other(self, passage: str, part: FactPart) -> bool:
        """Return True if a passage has, in place of a part, another one of its kind that the source does not have."""
        known = tokens_of(f"{self._source} {self._fact.subject.text}")
        if self._has_part(passage, part):
            return False
        if part.kind == "name":
            return any(not name <= known for name in _names_of(passage))
        form = _OTHERS.get(part.kind)
        return form is not None and any(map(form.match, tokens_of(passage) - known))
