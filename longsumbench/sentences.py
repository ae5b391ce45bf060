"""The sentence splitter for all corpora and predictions.

Text is first cut at blank lines and list items; a single newline is a soft wrap. In each of these stretches, white
space becomes one space. An end mark (. ! ? … and those of other scripts) before a space ends a sentence, unless the
words around it rule that out. Each decision uses only the sentence so far and the next word, so

* splitting a sentence again gives the same sentence, unless it begins with a period, and
* the time is linear in the text's length.

A lower-case word can begin a sentence only if the current sentence began in lower case. That is so in lower-cased prose
("… was seen. the cells …"), not in cased prose ("Of approx. three").
"""

import re
from collections.abc import Sequence
from itertools import chain

from longsumbench.errors import EnvironmentProblem

# In signatures; with other sentences it has another number.
SPLITTER_NAME = "longsumbench-sentences-1"
RULE_NAMES = {
    "suite": SPLITTER_NAME,
    "given": "given",
    "newline": "newline",
    "nltk": "nltk-punkt",
}  # in signatures

_CLOSERS = "\"'’”»)\\]}*_`"
_OPENING_MARKS = "\"'“‘«([{<*_`¿¡"

_STRETCHES = re.compile(
    r"\n[^\S\n]*\n\s*"  # blank lines
    r"|\n[^\S\n]*(?=(?:[-*+•‣·–—]|\(?[0-9]{1,3}[.)]|\(?[a-z]\))\s)"  # a list item on the next line
)
_OTHER_MARKS = "!?…।॥؟۔。！？｡"
# of several marks the first one decides: from the others, the same characters would be read again
_AFTER_MARK = (
    # group 1: the mark's rest; None: a CJK end
    r"(?:(?<=[.!?…।॥؟۔])(?<![.!?…].|[।॥؟۔][।॥؟۔])([.!?…।॥؟۔]*+)"
    r"(?:\[[0-9, –-]{1,20}\])*+"  # citations after the mark
    # group 2: closing quotes and brackets
    rf"([{_CLOSERS}]*+(?: (?:''|[’”»)\]}}])(?![^ {_CLOSERS}]))*+) (?=\S)"
    rf"|(?<=[。！？｡])(?<![。！？｡].)[。！？｡]*+[」』”’）{_CLOSERS}]*+ ?(?=[^\s，、；：]))"
)
_END_OF_SENTENCE = re.compile(
    f"[.{_OTHER_MARKS}]{_AFTER_MARK}"
)  # a pattern that begins with a single set is fast
# for texts without other marks; faster still
_END_AT_PERIOD = re.compile(rf"\.{_AFTER_MARK}")
_NEXT_WORD = re.compile(rf"[{re.escape(_OPENING_MARKS)}]*+([^\s.,;:!?)\]}}>'’]*)")
_INNER_PERIODS = re.compile(r"(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}")  # U.S, Ph.D, i.v
# a lone Δ is a symbol, not a sign of the casing
_LETTER = re.compile(r"[A-Za-z]|[^\W\d_]{2}")
_FIRST_LETTER_WITHIN = 200  # characters


def _parse_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Never the end of a sentence.
_BOUND = _parse_words(
    "dr mr mrs ms prof messrs mme mlle gen col sgt capt lt cmdr adm rev hon gov sen rep pres supt"
    " e.g i.e eg ie cf viz vs fig figs eq eqs ref refs tab resp approx incl esp aka"
)
# The end of a sentence unless a number follows.
_NUMBERED = _parse_words(
    "no nos nr p pp vol vols ch chap sec sect art para ex thm lem prop def cor alg app v ver ca c circa"
    " jan feb mar apr jun jul aug sep sept oct nov dec min max avg ser ed eds suppl"
)
# The end of a sentence only if the next word looks like a beginning.
_DOUBTFUL = _parse_words(
    "al etc inc ltd co corp bros jr sr st mt ft ave blvd rd dept univ assn natl intl var sp spp subsp ssp"
    " cv nov comb jan feb aug sept oct dec ed eds"
)
# Common first words of a capitalised sentence …
_BEGINNINGS = _parse_words(
    "the this these those that it its in on at for from we our they their he she his her you i a an and but or if as"
    " however moreover furthermore thus therefore then when while where what who why how although though because since"
    " after before during to with there here all both each some many most no not one two such so also another other"
    " finally first second by of see let note is are was were yet once only it's given using based under over"
)
# … and words that nearly always begin a sentence after a period, even in lower case.
_STRONG_BEGINNINGS = _parse_words(
    "the this these we it however moreover furthermore thus therefore he she they our although"
)
_ABBREVIATIONS = _BOUND | _NUMBERED | _DOUBTFUL
_ENDS_OF_ABBREVIATIONS = "|".join(sorted({word[-4:] for word in _ABBREVIATIONS if len(word) >= 4}))
# Before a capital, a period ends a sentence after a word's closing bracket, or four letters that end no abbreviation.
_PLAIN_END = re.compile(
    rf"\. (?=[A-Z])(?:(?<=[^\W_][)\]]\. )|(?<=[a-z]{{4}}\. )(?<!(?:{_ENDS_OF_ABBREVIATIONS})\. ))"
)


def split_sentences(text: str) -> tuple[str, ...]:
    """Split a text into its sentences.

    Only white space is lost; inside a sentence it becomes one space. Splitting a sentence
    again has no effect, unless it begins with a period.

    Args:
        text: prose in any casing, on one line or several.

    Returns:
        The sentences in reading order.
    """
    sentences: list[str] = []
    text = unify_line_breaks(text)
    for stretch in _STRETCHES.split(text) if "\n" in text else (text,):
        _split_stretch(
            stretch if _has_single_spaces(stretch) else " ".join(stretch.split()), sentences
        )
    return tuple(sentences)


def split_summary(text: str) -> tuple[str, ...]:
    """Split a summary: line breaks end sentences; within a line as `split_sentences` does."""
    return tuple(chain.from_iterable(map(split_sentences, text.splitlines())))


def split_for_rouge(text: str | Sequence[str], rule: str) -> Sequence[str]:
    """Split a text into sentences for ROUGE-Lsum (`score.sentences`).

    The rules "suite" (`split_summary`) and "given" (at line breaks) split running text and keep lists of sentences. As
    `rouge_score`, "newline" (at line breaks) and "nltk" (Punkt) split both, each sentence of a list on a line.

    Raises:
        EnvironmentProblem: nltk's data are not installed.
    """
    if not isinstance(text, str):
        return text if rule in ("suite", "given") else split_for_rouge("\n".join(text), rule)
    if rule != "nltk":
        return split_summary(text) if rule == "suite" else tuple(filter(None, text.split("\n")))
    import nltk

    try:
        return tuple(nltk.sent_tokenize(text))
    except LookupError as error:
        advice = (
            "install them: python -m nltk.downloader punkt_tab, or choose suite, given or newline"
        )
        raise EnvironmentProblem(
            f"nltk needs its data punkt_tab to split sentences; {advice}"
        ) from error


def unify_line_breaks(text: str) -> str:
    r"""Return a text in which each line break, also of old Macs (`\r`), is a line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def sentence_key(sentence: str) -> str:
    """Return a sentence without blanks and in lower case; sentences with the same key count as equal."""
    return "".join(sentence.casefold().split())


def _has_single_spaces(text: str) -> bool:
    """Return True only if all white space is single spaces between words; a fast check that misses a few such texts."""
    return text.isprintable() and "  " not in text and text[:1] != " " != text[-1:]


def _split_stretch(text: str, sentences: list[str]) -> None:
    # most of the ends, with a line break in place of the space
    text = _PLAIN_END.sub(".\n", text)
    start = line = searched = 0
    has_other_marks = any(mark in text for mark in _OTHER_MARKS)
    ends = _END_OF_SENTENCE if has_other_marks else _END_AT_PERIOD
    for end in ends.finditer(text):
        line = max(start, line, text.rfind("\n", searched, end.start()) + 1)
        searched = end.start()
        if end[1] is None or _ends_sentence(text, line, end):
            sentences += text[start : end.end()].rstrip(" ").split("\n")
            start = end.end()
    if start < len(text):
        sentences += text[start:].split("\n")


def _ends_sentence(text: str, start: int, end: re.Match[str]) -> bool:
    if text[end.end()] in ",;:)]}%.!?…":
        return False
    mark_end = end.end(1)
    one_period = mark_end == end.start() + 1 and text[mark_end - 1] == "."
    upcoming = _NEXT_WORD.match(text, end.end())
    assert upcoming is not None  # it can match nothing
    word = upcoming[1]
    lower = (
        word[:1].islower() and word.islower() and word.isalpha()
    )  # mRNA and p53 can begin any sentence
    if lower and not _began_in_lower_case(text, start):
        return False
    if not one_period:
        return not lower or (text[mark_end - 1] in "!?" and not end[2])
    return _period_ends_sentence(text, start, end.start(), word)


def _period_ends_sentence(text: str, start: int, period: int, upcoming: str) -> bool:
    word_start = max(start, text.rfind(" ", start, period) + 1)
    word = text[word_start:period].lstrip(_OPENING_MARKS)
    number_follows = upcoming[:1].isdigit()
    # tokenized text; "3 . 5" is one number
    if not word:
        return not (number_follows and text[period - 2 : period - 1].isdigit())
    key = word.lower()
    if key in _BOUND or (number_follows and key in _NUMBERED):
        return False
    if (
        word_start == start and len(word) <= 3 and (word.isdigit() or len(word) == 1)
    ):  # "2. Methods", "b. Methods"
        return False
    if len(word) == 1 and word.islower() and upcoming[:1].isupper():  # "after 16 h. Cells"
        return True
    if key in _DOUBTFUL or (len(word) == 1 and word.isalpha()) or _INNER_PERIODS.fullmatch(word):
        return upcoming.lower() in (_BEGINNINGS if upcoming[:1].isupper() else _STRONG_BEGINNINGS)
    return True


def _began_in_lower_case(text: str, start: int) -> bool:
    first = _LETTER.search(text, start, start + _FIRST_LETTER_WITHIN)
    return first is not None and first[0][0].islower()
