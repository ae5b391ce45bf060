"""The screen of `longsumbench run` without other words: what a newcomer sees first.

    comparable runs on papers --describe_papers--> a table, and one sentence on who is ahead
    summaries of one paper --set_side_by_side--> columns of text
    runs on planted facts --describe_facts--> a sentence for each system

Who is ahead is what the tests of the table decide (`judge_differences`). Of facts, two numbers differ if their 95 %
intervals do not meet.
"""

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

from longsumbench.cache.hub import checkpoint_name
from longsumbench.formatting import escape_line, format_count, format_interval, terminal_width
from longsumbench.leaderboards.comparability import PLANTED, heading_of
from longsumbench.leaderboards.seed_groups import SeedGroup
from longsumbench.leaderboards.significance import (
    DISTINGUISHED,
    SINGLE_SEED,
    ComparableRows,
    JudgedDifference,
)
from longsumbench.metrics.aggregate import Estimate
from longsumbench.views.notes import describe_unlearned
from longsumbench.views.tables import Block, terminal_block, wrap_text

_WRITES = {  # model → what its summary is
    "lead": "the first words of the paper",
    "random": "sentences drawn by lot",
    "lexrank": "the sentences most like all others",
    "ranker": "the sentences most like the title",
    "ea": "sentences chosen by a small network that learned from {papers} here",
    "oracle": "the sentences most like the abstract, which it alone sees: about the most that copying can reach",
    "highlights": "the sentences that experts marked",
}
_LANGUAGE_MODEL = {  # reading → what the summary is
    "beginning": "written by {model}, which reads the beginning",
    "select": "written by {model}, which reads selected passages",
}
_READS = {  # model → how it reads a report
    "pagesum": "reads everything, page by page",
    "seal": "selects passages anew for each part of its summary",
    "ea": "selects passages once, before it writes",
    "trunc": "reads the beginning only",
}
_FIRST_TENTH, _LAST_TENTH = f"{PLANTED}_single_position_0", f"{PLANTED}_single_position_9"
_GAP = " │ "  # between two columns of text
_MOST_LINES = 7  # of a summary
_WIDEST = 120  # columns
_NEXT = {  # question → command
    "Which summarizer for your own texts (a file or a folder)?": "longsumbench recommend MY_TEXTS",
    "And a language model? FILE is a .gguf file, a folder or a name on the Hugging Face hub:": (
        "longsumbench run model.checkpoint=FILE"
    ),
    "All results, with every summary, in the browser:": "longsumbench site",
}


def describe_papers(comparable: ComparableRows) -> str:
    """Return the table of summaries of the same papers, and what its scores are."""
    first = comparable.rows[0].first
    score = first.evaluation.ranked_by
    lines = []
    for row in comparable.rows:
        number = row.numbers[score]
        cell = f"{number.mean:.1f} ±{(number.high - number.low) / 2:.1f}"
        words = "" if row.words is None else f"{row.words:.0f}"
        lines.append([name_of(row), _describe_summary(row), cell, words])
    heading = heading_of(score)
    meaning = (
        f"{heading}: ROUGE-Lsum, 0 to 100: how many words a summary shares, in the same order, with the abstract that"
        " the authors wrote. ±: half of the 95 % interval."
    )
    columns = ("system", "its summary of a paper", heading, "words")
    table = Block("", (), columns, "llrr", lines, footnotes=(meaning,))
    return terminal_block(table)


def name_of(row: SeedGroup) -> str:
    """Return the name of a system on this screen: its model; of a language model, also what it reads."""
    run = row.first
    reading = run.config.model.get("reading")
    return f"{run.key.model} {reading}" if reading else run.key.model


def _describe_summary(row: SeedGroup) -> str:
    run = row.first
    text = _LANGUAGE_MODEL.get(str(run.config.model.get("reading"))) or _WRITES[run.key.model]
    trained = f"{format_count(run.train_examples or 0, 'paper')}"
    times = f" (mean of {len(row.runs)} trainings)" if len(row.runs) > 1 else ""
    model = checkpoint_name(run.system.checkpoint or "")
    return text.format(papers=trained, model=model) + times


def describe_verdict(comparable: ComparableRows) -> str:
    """Say in one sentence which system is ahead of which, with an interval, or that nothing is shown."""
    ranked = [row for row in comparable.rows if row.ranked]
    if len(ranked) < 2:
        return "Nothing is shown: there are no two systems to compare."
    best, *others = ranked
    score = best.first.evaluation.ranked_by
    behind, unclear = [], []
    for row in others:
        judged = comparable.tests.differences.get((row.key, score))
        is_behind = judged is not None and judged.outcome == DISTINGUISHED
        (behind if is_behind else unclear).append(row)
    # The nearest of those that are behind, or the farthest of all if none is
    compared = behind[0] if behind else others[-1]
    judged = comparable.tests.differences.get((compared.key, score))
    if judged is None:
        return f"Nothing is shown: {name_of(best)} and {name_of(compared)} have equal scores or no test."
    bounds = f"{-judged.mean:.1f} points (interval {format_interval(-judged.high, -judged.low)})"
    if not behind:
        return (
            f"Nothing is shown: {name_of(best)} has the highest score, {bounds} from {name_of(compared)},"
            f" but {_reason_of(judged)}."
        )
    ahead = f"{name_of(best)} is ahead of {_join(behind)}"
    nearest = f", of {name_of(compared)}" if behind[1:] else ""
    text = f"{ahead}{nearest} by {bounds}"
    if unclear:
        return f"{text}; whether it is ahead of {_join(unclear)}, is not shown."
    return f"{text}."


def _reason_of(judged: JudgedDifference) -> str:
    if judged.outcome == SINGLE_SEED:
        return "one of the two was trained once, and another training may give another score"
    return "that may be chance"


def _join(rows: Sequence[SeedGroup]) -> str:
    *names, last = map(name_of, rows)
    return f"{', '.join(names)} and {last}" if names else last


def describe_reservations(comparable: ComparableRows) -> str:
    """Name the systems that take no part in the comparison, with the reason; empty without any."""
    oracles = [row for row in comparable.rows if row.first.oracle]
    sentence = (
        "They only show what is possible" if oracles[1:] else "It only shows what is possible"
    )
    parts = [f"Not compared: {_join(oracles)}. {sentence}."] if oracles else []
    return " ".join(filter(None, [*parts, describe_unlearned(comparable.rows)]))


def set_side_by_side(texts: Sequence[tuple[str, str]]) -> str:
    """Return texts under their headings, two side by side, each cut to a few lines; as wide as the terminal."""
    width = (min(terminal_width(), _WIDEST) - len(_GAP)) // 2
    columns = []
    for heading, text in texts:
        wrapped = textwrap.wrap(escape_line(text), width, max_lines=_MOST_LINES, placeholder=" …")
        columns.append([heading[:width].upper(), *wrapped])
    blocks = []
    for left, right in zip_longest(columns[::2], columns[1::2], fillvalue=[]):
        lines = [f"{a:{width}}{_GAP}{b}" for a, b in zip_longest(left, right, fillvalue="")]
        blocks.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(blocks)


def describe_fact_rows(rows: Sequence[SeedGroup]) -> str:
    """Explain the reports with planted facts, and describe each system in a sentence; `rows` is not empty."""
    run = rows[0].first
    length = run.config.dataset.document_length
    chance = rows[0].numbers.get(f"{PLANTED}_chance")
    guess = f" A guess is right in {chance.mean:.0f} of 100." if chance else ""
    once = " Each was trained once: another training may give other numbers."
    texts = [
        f"{format_count(run.evaluation.n, 'made-up report')} of {length} words on what a council decided, about who gets"
        ' what. A fact is in one place ("the library goes to Adler") or in two ("the mill goes to the lower bid", and'
        ' elsewhere "the mill has a lower bid from Price"). The summary states the link first ("the lower bid from'
        ' Price": link said) or the answer ("Price with the lower bid": link unsaid).',
        f"Systems of published papers, at a tiny size, learned to write such summaries here.{guess}"
        + (once if any(row.one_seed for row in rows) else ""),
        *(f"* {describe_facts(row)}" for row in rows),
    ]
    return "\n".join(map(wrap_text, texts))


def describe_facts(row: SeedGroup) -> str:
    """Say in one sentence how many facts a system states right, and from where; or that it did not learn."""
    system = f"{row.first.key.model} {_READS[row.first.key.model]}"
    total = _out_of_100(row, PLANTED)
    if not row.learned.comparable:
        return (
            f"{system}, but is {row.learned.word} after this short training ({row.learned.reason}): its {total} of 100"
            " facts say nothing about its way of reading."
        )
    first, last = row.numbers.get(_FIRST_TENTH), row.numbers.get(_LAST_TENTH)
    where = f": {_compare_ends(first, last)}" if first and last else ""
    return (
        f"{system} and states {total} of 100 facts right{where}; in one place {_out_of_100(row, f'{PLANTED}_single')}, in"
        f" two places {_out_of_100(row, f'{PLANTED}_relayed')} (link said) and"
        f" {_out_of_100(row, f'{PLANTED}_silent')} (link unsaid)."
    )


def _compare_ends(first: Estimate, last: Estimate) -> str:
    beginning, end = f"{first.mean:.0f} from the first tenth", f"{last.mean:.0f} from the last"
    if first.low > last.high:
        return f"more from the beginning of a report ({beginning}, {end})"
    if last.low > first.high:
        return f"more from the end of a report ({beginning}, {end})"
    return f"no difference is shown between beginning and end of a report ({beginning}, {end})"


def _out_of_100(row: SeedGroup, name: str) -> str:
    number = row.numbers.get(name)
    return "none known" if number is None else f"{number.mean:.0f}"


def describe_next() -> str:
    """Return three commands to type next."""
    lines = []
    for question, command in _NEXT.items():
        lines += [wrap_text(question), f"    {command}"]
    return "\n".join(lines)


def newest_form(ids: Sequence[str]) -> str:
    """Return the first id of a paper since 2020: it begins with the year. Without any, the first id."""
    # Texts of papers before 2016 may not be used by everybody
    return min([name for name in ids if name[0].isdigit()] or ids)
