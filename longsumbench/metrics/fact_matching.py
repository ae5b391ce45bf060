"""Does a summary state a planted fact? Begin with `match_facts`.

    summary --_split_passages--> sentences, pairs of sentences --_stating_clause--> each fact: right, wrong or missing

Two texts state the same name, number, amount, date or file if they have the same tokens (`read_tokens`). A denial is
looked for in the clause that has the answer with its heading ("Rejected: …"), and in a later clause or sentence that
refers to it ("This did not happen."). If the source denies, clauses on the subject count.
"""

import re
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
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
_DAY = r"(?<![\w.,])(?P<day>\d\d?|first(?= of)|second(?= of)|(?<!may )(?:first|second)(?! of))(?:st|nd|rd|th)?\b"
_YEAR = r"(?:(?:,? |-)['’]?(?P<year>\d{4}|(?<=['’-])\d\d)\b)?"
_DAY_IN_DIGITS, _MONTH_IN_DIGITS = r"(?P<day>0?[1-9]|[12]\d|3[01])", r"(?P<month>0?[1-9]|1[0-2])"
_DATES = (
    rf"{_DAY}\.?(?: of)?[ -]{_MONTH}{_YEAR}",  # 14 March 2023, the 14th of Mar., 14-Mar-23
    rf"\b{_MONTH} (?:the )?{_DAY}(?![.,]\d){_YEAR}",  # March 14, 2023
    r"\b(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?P=mark)(?P<day>\d\d?)\b",  # 2023-03-14
    r"\b(?P<day>\d\d?)(?P<mark>[-./])(?P<month>\d\d?)(?P=mark)['’]?(?P<year>\d{4}|\d\d)\b",  # 14.03.2023, 14/3/23
    # 14.3., which is read as a number, too
    rf"(?<![\w.,/])(?={_DAY_IN_DIGITS}\.{_MONTH_IN_DIGITS}\.(?![\w.]))(?P<year>)",
    # on 14/3, 14/03
    rf"(?:(?<=\bon )|(?<![\w.,/])(?=\d\d/\d)){_DAY_IN_DIGITS}[./]{_MONTH_IN_DIGITS}\b(?![./]?\w| [mb]illion)(?P<year>)",
)
# What is written in several ways → in which one it is compared
_SPELLINGS = {
    r"['’]s\b": "",  # Ostvang's
    r"(?<![\w.~/\\-])[\w.~/\\-]*[/\\](?=[\w.-]+\.[a-z])": " ",  # config/limits.toml → limits.toml
    r"(?<=\d)\s?m(?=\s?(?:eur|usd|gbp|chf|[€$£]))": "e6 ",  # 3.4 M€
    r"\beuros?\b|\beur\b|€": " € ",
    r"\bus ?\$|\b(?:us[ -])?dollars?\b|\busd\b|\bbucks\b|\$": " $ ",
    r"\bpounds?\b|\bsterling\b|\bgbp\b|£": " £ ",
    r"\b(?:swiss )?francs?\b|\bs?frs?\b|\bchf\b": " ₣ ",
    r"\b(?:yen|yuan|kron\w+|rupees?|r(?:o?u)bles?|pesos?|zloty\w*|[jc][pn]y|inr|sek|nok|dkk|pln)\b|[¥₹₽]": " ¤ ",
    r"(?<=\d),(?=\d\d?(?!\d))": ".",  # 3,4 million
    r"(?<=\d)\.(?=\d{3}\.\d{3}(?!\d))|(?<=\d\.\d{3})\.(?=\d{3}(?!\d))": ",",  # 3.400.000
    r"(?<![\d.])(\d{1,3})\.(\d{3})(?!\.?\d|[\s-]?(?:[ekmb]|thousand|million)\b)": r"\g<0> \1\2",  # 3.400 may be 3,400
    r"\b(\d+\.\d)k\b": r"≈\1e3",  # 3.4k is mostly rounded
    r"(?<=\d)(?:[\s-]?thousand|k)\b": "e3",  # 3 thousand, 3k
    r" point (\d)000000\b": r".\1e6",  # three point four million, whose "four million" was read
    r"(?<=\d)(?:[\s-]?(?:million(?:en)?|mill?|mio|mln|mn)|m)\b": "e6",  # 3.4-million, 3.4 mn, 3.4m
    r"(?<=\d)(?:[\s-]?(?:billion|bn|mrd)|b)\b": "e9",
    r"(?:\b(?:about|around|roughly|approx(?:imately)?|circa|ca|some|close to)\b\.?|~)(\s{0,2}[€$£₣¤]?)\s{0,2}(?=\d)": r"\1 ≈",
    r"\b(?:over|above|more than|at least|exceeding)(\s{0,2}[€$£₣¤]?)\s{0,2}(?=\d)": r"\1 ≥",
    r"\b(?:nearly|almost|just (?:under|below)|under|up to|close on)(\s{0,2}[€$£₣¤]?)\s{0,2}(?=\d)": r"\1 ≤",
}
# Sign of a rounded number → how it was rounded
_ROUNDINGS = {"≈": ROUND_HALF_UP, "≥": ROUND_FLOOR, "≤": ROUND_CEILING}
_NUMBER = (
    r"\d{1,3}(?:[,'’ \u00a0\u2009\u202f]\d{3})+(?!\d)(?:\.\d+)?(?:e\d)?"  # 3,400,000, 3 400 000
    r"|\d+(?:\.\d+)?(?:e\d)?"  # 3.4e6
)
_FILE = r"(?<![\w.-])[\w-][\w.-]*\.[a-z]\w*"
_STATED_TOKEN = re.compile(rf"@\d\d-\d\d|@\d{{4}}|[€$£₣¤]|{_FILE}|[≈≥≤]?(?:{_NUMBER})|[^\W_\d]+")
# Neither function words, nor titles and legal forms, tell names or phrases apart
_IGNORED_WORDS = frozenset(
    re.findall(
        "[a-z]+",
        """a an the of for in on at to by with from and as its their his her this that is are was were be been has have
        had will would did do does not no never dr mr mrs ms miss prof professor sir minister
        chair chairman director president secretary mayor members somebody someone everybody everyone nobody
        ltd limited inc llc plc corp co company gmbh ag sa""",
    )
)
# Kind of a part → tokens that a summary may leave out, if it has no other ones: years and currencies
_MAY_BE_MISSING = {"date": re.compile(r"@\d{4}$"), "amount": re.compile("[€$£₣¤]")}
# Kind of a part → tokens that are another answer; small numbers are mostly no amounts
_OTHERS = {
    "number": re.compile(r"[≈≥≤]?\d[\d.]*$"),
    "amount": re.compile(r"[≈≥≤]?\d{4}|[€$£₣¤]"),
    "date": re.compile(r"@\d"),
    "file": re.compile(r".*\.[a-z]"),
}
# "not only A", "not until A" and "no more than A" state A
_STATING = (
    r"(?! (?:only|just|merely|exceed|least|long|counting|before|other|(?:one )?else|(?:more|less|fewer|later|earlier) than)\b"
    r"|(?: [^\s,;]+){0,8} (?:un?til\b|before (?:[a-z]+ )?\d))"
)
_NOT = (
    rf"(?:\b(?:not|no|never|none|nobody|nothing|neither|nor|cannot|hardly)\b|n['’]t\b){_STATING}"
    r"|\bun(?:able|available|likely|willing)"
)
# What denies in other words
_DENYING = (
    # verbs, in all their forms
    r"\b(?:fail|reject|refus|declin|den(?:y|ie)|abandon|cancel|scrap|skip|veto(?:e|ing)|oppos(?!ite)|objected|withdr[ae]w"
    r"|withh[eo]ld|block(?!s? of)|prohibit|forb[ia]d|revok|revers|rescind|repeal|annul|overturn|retract|shelv|suspend"
    r"|fr[eo]e?z|drop(?:s|p|\b)|ditch|nixed|axed|quash|thwart|derail|stalled|bann|barred|lack|miss(?:ed|es|ing)|dismiss"
    r"|defeat|overrul|lift(?:s|ed)|disapprov|disallow|disagree|resist(?:ed|s\b)|refrain|resign|quit\b|strik|struck"
    r"|cuts?\b(?! to| by)"
    r"|(?:postpon|delayed|deferr?)\w*\b(?! (?:to|until|till)\b)"
    r"|(?:stop|halt|prevent|remov)(?!\w*(?: the| all| its| any)* (?:error|leak|crash|timeout|problem|issue|bug))"
    # verbs with a particle
    r"|(?:g[ai]v\w*(?: it| this| them)? up|rul\w* out|call\w*(?: [^\s,;]+){0,6} off|put\w* (?:off|on (?:hold|ice))"
    r"|pull\w* out"
    r"|(?:turn|vot|shot)\w*(?: [^\s,;]+){0,6} down"
    r"|t[ao]ke?\w* (?:away|off)|thr[eo]w\w* out|back\w* (?:out|away)|f[ae]ll\w* (?:short|through)"
    r"|step\w* down|lost (?:the|out)|replaced by"
    r"|(?:left|leaves|leaving) (?:the|as|his|her|its)|(?:left|go\w*|went|do|did|remain\w*) without|do\w* away with"
    # expressions
    r"|(?:vot\w*|decid\w*|rul\w*|argu\w*|turn\w*|was|were|is|are) against|decided (?:not|otherwise)|vot\w* no"
    r"|sa(?:id|ys?) no|would not hear|in vain|without (?:any )?success|yet to"
    r"|former (?:chair|director|head|leader|owner)|with nothing|empty-handed"
    r"|nothing c[ao]me|(?:was|were) lost|false|wrongly|mistakenly|untrue|unfounded|unsuccessful|wrong(?=:)"
    r"|(?:is|are|was|were|been|proved|be) (?:wrong|incorrect|mistaken))\b)"
)
# They deny what follows alone
_BUT_NOT = (
    r"\b(?:rather than|instead of|in place of|as opposed to|let alone|contrary to|far from|except"
    r"|(?<!none )(?<!no )other than|unlike|and not?|not (?=\d))"
)
_NEGATION = re.compile(f"(?i){_NOT}|{_DENYING}|{_BUT_NOT}")
# What denies that something is said
_UNSAID = re.compile(
    r"(?i)\b(?:not|n['’]t|never|nobody|nothing|no)\b(?: [a-z]+){0,3}? (?:talk|discuss|mention|report|comment|said|say"
    r"|sp[eo]ak|address|describ|explain)"
)
# What a summary has → what is read in its place
_REPHRASED = {
    # Two denials are an approval: "nobody opposed", "rejected a motion to block", "without any objection"
    rf"(?i)(?:{_NOT}|{_DENYING}|\bwithout\b)[a-z]*((?: (?!(?:and|or|but|as|because|since|who|which|it)\b)[a-z]+){{0,4}}?)"
    rf" (?:{_DENYING}|\b(?:not|object|doubt|hesitat|without|lose|laps|expir|persist|return|c[ao]me back"
    r"|recur))[a-z]*": r"\1 approved",
    # "corrected from 2,605 to 5,510" denies the former
    r"(?i)(\b(?:[a-z]+ed|forward|off|back|went|up|down)) from ((?:(?!\. )[^;()\d]){0,20}\d(?:(?!\. )[^;()]){0,30}?)"
    r"(?: to (?=[^;().\d]{0,20}\d)|(?=[.,;)](?:\s|$)|$))": r"\1, not \2, ",
    # "Ada Berg replaced Jo Holm"
    r"\b(?:replace|succeed)(?:s|d|ed) ((?:[A-Z][\w.]* ?)+)": r", not \1, ",
    # Abbreviations and days that would end a sentence
    r"(?i)\b(mio|mrd|mn|mln|bn|fr)\.(?=\s(?:eur|us|dollar|pound|fran|chf|[\d€$£]))": r"\1",
    rf"(?i)(\b\d\d?)\.(?=\s{_MONTH})": r"\1",
}
# What denies, too, if the source does
_FAILURE = re.compile(
    r"(?i)\b(?:un(?:accept|approv|sign|finish|resolv|solv|chang|complet|suit|satisf|renew|fix|extend|affect)|incomplet"
    r"|inadequa|insufficien|ineffect|useless|without|no avail|against|sent [\w ]{0,30}\bback\b|laps|expir|surviv|persist"
    r"|remain|still|continu|collaps|defeat|los[et]s? (?:the|its|their)|broke)"
)
_SUCCESS = re.compile(
    r"(?i)\b(?:pass|approv|accept|adopt|renew|exten[dt]|prolong|sign(?!ific)|complet|finali[sz]"
    r"|(?:went|go\w*) (?:ahead|through)|succe|grant|receiv|obtain|got\b|gets?\b|w[io]n|help|fix|solv|resolv|cure|vanish"
    r"|disappear|keep|kept|carried"
    r"|green light|satisf|work|solution|stop|remov|prevent|improv|chang|eliminat|us(?:es?|ed|ing)\b|faster"
    r"|voted for|majority|\beffect|differen|consent)"
)
# What a later answer has replaced
_SUPERSEDED = re.compile(
    r"(?i)\b(?:earlier|previous|original|initial|former|first|once|wrong|mistake|incorrect|error)"
)
_CLAUSE_END = re.compile(
    r"(?i)[.;:,](?=\s(?!(?:19|20)\d\d\b))|[—–()]|\b(?:but|because|so that|unless|who|which|after(?= \w+ing\b))\b"
    r"|\band(?= [a-z]+ed\b)"
    rf"|(?={_BUT_NOT}|\b(?:(?<!even )though|although|even though|while|whereas|despite|in spite|now|previously|originally)\b)"
)
# The end of what has a subject and a value
_STATEMENT_END = re.compile(r"(?i)[;,](?=\s)|\b(?:and|but|while|whereas|although|not)\b")
_EXCLUDES = re.compile(rf"(?i)\W*(?:{_BUT_NOT}|not\b{_STATING})")
# "Rejected items: …": what belongs to the clause after it
_CLAUSE_HEADING = re.compile(
    r"(?i)\W*(?:(?:(?!is|was|were|has|had)[\w-]+ ){0,3}[\w-]+:"
    rf"|(?:{_NOT}|{_DENYING})[^.,;:–]{{0,80}}(?::| [–—-]))(?=\s)"
)
_LIST_ITEM = re.compile(r"\s*(?:[-*•–]|\d+[.)])\s")
# What links a clause to the one before, and what stands for that one
_LINK = (
    r"\W*(?:(?:but|and|so|yet|still|then|later|instead|however|finally|eventually|ultimately)\W+)*"
    r"(?:(?:in(?! spite)|after|at)(?: [a-z]+){1,3}?\W+)?"
)
_OWN = r"(?:its|their|his|her)\b"
_REFERRING = (
    r"(?:it|this|that|these|they|them|he|she|(?:the|this|that|these|its|their|his|her) (?:motion|application|proposal|plan"
    r"|request|idea|decision|grant|appointment|agreement|deal|offer|vote|bid|move|measure|figure|number|claim|suggestion"
    r"|nomination|change|correction|instruction|deadline)s?)\b"
)
_REFERS = re.compile(
    rf"(?i)(?!\D*\d){_LINK}(?:{_REFERRING}|{_OWN}|(?:was|were|is|has|had|did|will)\b|[a-z]+ed\W*$)|[^A-Z]*\b(?:it|them)\W*$"
)
_BE = r"(?:was|were|is|are|been|be|got)\b"
_NOT_DONE = (
    rf"(?:not|never|no longer|[a-z]+n['’]t){_STATING}(?: [a-z]+){{0,2}}?"
    r" (?:pass|approv|accept|adopt|agree|grant|happen|appear|materiali|carr|chosen|elect|appoint|true|correct|the case"
    r"|(?:go|went|gone) (?:through|ahead)|(?:take|took|taken) place|(?:get|got|receiv)\w* (?:it|them|any))"
)
# What denies the clause before, without its value
_LATER_DENIALS = (
    # it was later rejected
    rf"(?:{_REFERRING} )?(?:(?:ha[sd]|have|since|soon) )*{_BE}(?: [a-z]+){{0,2}} {_DENYING}",
    # This is not true; the motion did not pass; members never approved it
    rf"(?:{_REFERRING} )?{_BE} {_NOT_DONE}",
    rf"(?:(?!{_BE})[a-z]+ ){{0,4}}{_NOT_DONE}[a-z]*(?: {_REFERRING})?\W*$",
    rf"(?:{_REFERRING} )?[a-z]+ (?:not|nothing)\W*$|{_REFERRING} {_BE} an? (?:misunderstanding|mistake|error)"
    r"|there (?:was|is) no (?:majority|agreement|support)",
    # the mayor vetoed it; what some do denies nothing
    rf"(?:(?!{_BE}|one|two|three|some|several|few)[a-z]+ ){{0,4}}(?:{_DENYING})[a-z]*"
    rf"(?: (?:of|to|do|so|down|{_REFERRING}))*\W*$",
)
# Headings and concessions do not deny
_LATER_DENIAL = (
    r"(?![^.,;:]{0,80}:|\W*(?:(?:even )?though|although|while|whereas|despite))"
    rf"{_LINK}(?:{'|'.join(_LATER_DENIALS)})"
)
_DENIES_BEFORE = re.compile(f"(?i){_LATER_DENIAL}")
# The beginning of a sentence whose subject is in the one before
_CONTINUES = re.compile(
    rf"(?i){_LINK}(?:{_OWN}|it|they|he|she|this|that|these|those|which|the (?:amount|sum|figure|date))\b"
    rf"|{_LATER_DENIAL}|(?-i:[A-Z]?[^A-Z]*\b(?:it|them)\W*$)"
)
_ABSENT, _DENIED = (-2, -2), (-1, -1)
_stem = google_stem()


def match_facts(facts: Sequence[PlantedFact], summary: str) -> list[str]:
    """Decide for each fact whether a summary states it: "right", "wrong" or "missing".

    A fact is right if a passage has its subject and its answer, or if there is one for each of its statements. A
    passage is a sentence, or two if the second one continues the first ("It …"). A fact is wrong if a passage has its
    subject with another value, gives its answer to another subject, or denies what the source states, or the reverse.
    Of two answers, the later one in the summary counts.
    """
    passages = _split_passages(summary)
    return [_match_fact(fact, passages) for fact in facts]


def _split_passages(summary: str) -> list[str]:
    for pattern, plain_words in _REPHRASED.items():
        summary = re.sub(pattern, plain_words, summary)
    sentences: list[str] = []
    heading = ""
    for sentence in split_summary(summary):
        if heading and (_LIST_ITEM.match(sentence) or sentences[-1] == heading):
            sentences.append(f"{heading} {sentence}")
            continue
        heading = sentence if sentence.endswith(":") else ""
        sentences.append(sentence)
    passages = []
    for sentence, next_sentence in pairwise((*sentences, "")):
        passages.append(sentence)
        if _CONTINUES.match(next_sentence):
            passages.append(f"{sentence} {next_sentence}")
    return passages


def _split_clauses(passage: str) -> list[str]:
    match = _CLAUSE_HEADING.match(passage)
    heading = match[0] if match else ""
    first, *others = _CLAUSE_END.split(passage[len(heading) :])
    if _NEGATION.search(heading):
        others = [heading + clause for clause in others]
    return [heading + first, *others]


def _match_fact(fact: PlantedFact, passages: Sequence[str]) -> str:
    def last_place(parts: Sequence[FactPart]) -> tuple[int, int]:
        # A later passage may deny what an earlier one states
        last = _ABSENT
        for index, passage in enumerate(passages):
            clause = _stating_clause(passage, parts, fact)
            if clause is not None:
                last = (index, clause) if clause >= 0 else _DENIED
        return last

    answered = last_place((fact.subject, *fact.answer))
    revoked = last_place((fact.subject, *fact.revoked))
    places = [last_place(each.parts) for each in fact.statements]
    if _DENIED in (answered, *places):
        return WRONG
    if max(answered, revoked) > _DENIED:
        return RIGHT if answered >= revoked else WRONG
    if places and min(places) > _DENIED:
        return RIGHT
    return WRONG if any(_contradicts(passage, fact) for passage in passages) else MISSING


def _stating_clause(passage: str, parts: Sequence[FactPart], fact: PlantedFact) -> int | None:
    """Return the last clause that states the parts; -1 if the passage denies them, None if it does not have them."""
    denials = [part for part in parts if part.kind == "not"]
    values = [part for part in parts if part not in denials]
    if not all(_has_part(passage, part) for part in values):
        return None
    if denials:
        return _denying_clause(passage, denials, fact.subject)
    clauses = _split_clauses(passage)
    values = [part for part in values if part != fact.subject]
    if _is_misattributed(passage, values, fact):
        return -1
    if not any(_has_any(clause, values) for clause in clauses):
        clauses = [passage]
    # The source may deny something else in the same clause, and the summary, too
    source = [clause for clause in _split_clauses(_stated_source(fact)) if _has_any(clause, values)]
    if any(map(_NEGATION.search, source)):
        return len(clauses)
    last = -1
    for index, clause in enumerate(clauses):
        if not _has_any(clause, values):
            last = -1 if _DENIES_BEFORE.match(clause) else last
        elif not _NEGATION.search(clause) and not (fact.revoked and _SUPERSEDED.search(clause)):
            last = index
    return last


def _denying_clause(passage: str, denials: Sequence[FactPart], subject: FactPart) -> int | None:
    """Return the last clause on the subject that denies as the source does; -1 if one states the opposite."""
    about = []
    for clause in _split_clauses(passage):
        if _has_part(clause, subject) or _REFERS.match(clause) or _DENIES_BEFORE.match(clause):
            about.append(clause)
    for texts in (about, [passage]):
        verdicts = [_is_denied(text, denials) for text in texts]
        decided = [verdict for verdict in verdicts if verdict is not None]
        if decided:
            return 0 if decided[-1] else -1
    return None


def _is_denied(clause: str, denials: Sequence[FactPart]) -> bool | None:
    """Return whether a clause denies what the source denies; False if it states it, None without either."""
    if _DENIES_BEFORE.match(clause) or _NEGATION.search(clause):
        return None if _UNSAID.search(clause) else True
    if _SUCCESS.search(clause) or _has_any(clause, denials):
        return False
    return True if _FAILURE.search(clause) else None


def _is_misattributed(passage: str, values: Sequence[FactPart], fact: PlantedFact) -> bool:
    """Return True if a passage gives the values to another subject, and other values to the fact's."""
    # A subject that is no name may be written in other words
    if fact.subject.kind != "name":
        return False
    for clause in _split_clauses(passage):
        is_excluded = _EXCLUDES.match(clause) and _has_part(clause, fact.subject)
        if is_excluded and not _has_foreign_value(clause, "name", fact):
            return True
    statements = _STATEMENT_END.split(passage)
    about = [text for text in statements if _has_part(text, fact.subject)]
    holding = [text for text in statements if _has_any(text, values)]
    foreign = [text for text in holding if _has_foreign_value(text, "name", fact)]
    if not foreign or foreign != holding or not set(foreign).isdisjoint(about):
        return False
    return any(_has_foreign_value(text, part.kind, fact) for text in about for part in values)


def _contradicts(passage: str, fact: PlantedFact) -> bool:
    """Return True if a passage that does not state a fact has its subject with another answer, or with a denial."""
    if not _has_part(passage, fact.subject):
        return False
    lacking = {part.kind for part in fact.answer if not _has_part(passage, part)}
    clauses = _split_clauses(passage)
    is_denial = any(part.kind == "not" for part in fact.answer)
    claims = [clause for clause in clauses if is_denial or not _NEGATION.search(clause)]
    return any(_has_foreign_value("; ".join(claims), kind, fact) for kind in lacking)


def _has_foreign_value(text: str, kind: str, fact: PlantedFact) -> bool:
    """Return True if a text has a value of a kind that the fact does not have."""
    known = [_stated_source(fact), *(part.text for part in (fact.subject, *fact.answer))]
    source_tokens = read_tokens(" ".join(known))
    if kind == "name":
        return any(not name <= source_tokens for name in _find_names(text))
    form = _OTHERS.get(kind)
    return form is not None and any(map(form.match, read_tokens(text) - source_tokens))


def _stated_source(fact: PlantedFact) -> str:
    return " ".join(statement.sentence for statement in fact.statements)


def _has_any(text: str, parts: Sequence[FactPart]) -> bool:
    return any(_has_part(text, part) for part in parts)


def _has_part(passage: str, part: FactPart) -> bool:
    stated, needed = read_tokens(passage), read_tokens(part.text)
    if part.kind in _OTHERS:
        # The unit does not count: "17 ships" is 17
        needed = frozenset(token for token in needed if not token.isalpha()) or needed
    lacking, optional = needed - stated, _MAY_BE_MISSING.get(part.kind)
    if optional and not any(map(optional.match, stated)):
        lacking = frozenset(token for token in lacking if not optional.match(token))
    lacking = frozenset(token for token in lacking if stated.isdisjoint(_rounded_forms(token)))
    if not lacking:
        return True
    # A family name is enough: no two planted people share one
    return part.kind == "name" and read_tokens(part.text.split()[-1]) in _find_names(passage)


@lru_cache(10_000)
def _rounded_forms(value: str) -> Sequence[str]:
    """Return a number as it is rounded to fewer and fewer digits: 4831 → "≈4831", "≈4830", "≈4800" and so on."""
    rounded = [f"{sign}{value}" for sign in _ROUNDINGS]
    exponents = range(len(value) if re.fullmatch(r"[\d.]+", value) else 0)
    for sign, rounding in _ROUNDINGS.items():
        for exponent in exponents:
            rounded.append(f"{sign}{Decimal(value).quantize(Decimal(f'1e{exponent}'), rounding):f}")
    return rounded


def _find_names(passage: str) -> list[frozenset[str]]:
    # without initials
    return [read_tokens(re.sub(r"\b\w\b", "", name)) for name in names_in(passage, "")]


@lru_cache(10_000)  # each passage is compared with many facts
def read_tokens(text: str) -> frozenset[str]:
    """Return what a text states, independent of how it is written.

    These are the stems of words without function words, titles and legal forms; numbers in digits ("3400000"); signs of
    currencies; names of files without folders; days ("@03-14"), with their years ("@2023"). A date with slashes is read
    in two ways.
    """
    text = text.casefold()
    for match, value in reversed([*spelled_numbers(text)]):
        # "two 550" is not 2550
        rest = re.sub(r"^ (?=\d)", "  ", text[match.end() :])
        text = f"{text[: match.start()]}{value}{rest}"
    for date in _DATES:
        text = re.sub(date, _date_tokens, text)
    for spelling, compared in _SPELLINGS.items():
        text = re.sub(spelling, compared, text)
    tokens = set()
    for token in _STATED_TOKEN.findall(text):
        number = re.fullmatch(rf"([≈≥≤]?)({_NUMBER})", token)
        if number:
            digits = re.sub(r"[^\d.e]", "", number[2])
            tokens.add(f"{number[1]}{Decimal(digits).normalize():f}")
        elif token not in _IGNORED_WORDS:
            tokens.add(_stem(token) if token.isalpha() else token)
    return frozenset(tokens)


def _date_tokens(match: re.Match[str]) -> str:
    day, month, year = match["day"], match["month"], match["year"]
    day = {"first": "1", "second": "2"}.get(day, day)
    if not month.isdecimal():
        month = f"{_MONTHS.index(month[:3]) + 1}"
    tokens = f" @{month:0>2}-{day:0>2} "
    if "/" in match[0]:
        tokens += f"@{day:0>2}-{month:0>2} "
    if year:
        century = "20" if len(year) == 2 else ""
        tokens += f"@{century}{year} "
    return tokens
