"""The screen of `longsumbench run` without other words: what a newcomer sees first.

    comparable runs on papers --describe_papers--> a table, and one sentence on who is ahead
    summaries of one paper --set_side_by_side--> columns of text
    runs on planted facts --describe_fact_rows--> a table, and a sentence for each system

Who is ahead is what the tests of the table decide (`judge_differences`).
"""

import textwrap
from collections.abc import Collection, Sequence
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
from longsumbench.views.notes import describe_unlearned
from longsumbench.views.tables import Block, terminal_block, wrap_text

OPENING = (
    "longsumbench compares summarizers of long texts: on the same texts, with the same scores, and with a test before one is"
    " called better. Two small comparisons, made here:"
)
_SUMMARY_OF = {  # model → what its summary is
    "lead": "the first words of the paper",
    "random": "sentences drawn at random",
    "lexrank": "sentences most like all others",
    "ranker": "sentences most like the title",
    "ea": "sentences chosen by the selector of EA alone, trained here on {papers}",
    "oracle": "sentences most like the abstract, which it alone sees: about the most that copying can reach",
    "highlights": "sentences that experts marked",
}
_WRITTEN_FROM = {  # reading → what the summary is
    "beginning": "written by {model}, which reads the beginning",
    "select": "written by {model}, which reads selected passages",
}
_READS = {  # model → how it reads a report
    "pagesum": "everything, page by page (Liu et al. 2022)",
    "seal": "passages selected anew for each part of its summary (Zhao et al. 2020)",
    "ea": "passages selected once (Zhao et al. 2020)",
    "trunc": "the beginning only",
}
_AMOUNTS = {  # least share, of 100 → words for it
    90: "nearly all facts",
    60: "most facts",
    40: "about half of the facts",
    10: "some facts",
    0: "hardly any fact",
}
_FACT_PLACES = {  # kind of fact → its heading, and how a sentence names it
    "single": ("one\nplace", "in one place"),
    "relayed": ("link\nsaid", "in two places with the link said"),
    "silent": ("link\nunsaid", "in two places with the link unsaid"),
}
_COLUMN_GAP = " │ "  # between two columns of text
_SUMMARY_LINES = 7  # the most of a summary that are shown
_WIDEST = 120  # columns
_NEXT = {  # question → command
    "Which system for your texts? A file or folder of texts and their reference summaries; minutes:": (
        "longsumbench recommend MY_TEXTS"
    ),
    "A language model on the papers above? FILE is a .gguf file, a folder or a name on the Hugging Face hub; a quarter of"
    " an hour or more without a GPU:": "longsumbench run model.checkpoint=FILE",
    "All results, with whole summaries, in the browser, at once:": "longsumbench site",
}


def describe_papers(comparable: ComparableRows) -> str:
    """Return the table of summaries of the same papers, and what its scores are."""
    first = comparable.rows[0].first
    score = first.evaluation.ranked_by
    lines = []
    for row in comparable.rows:
        number = row.numbers[score]
        words = "" if row.words is None else f"{row.words:.0f}"
        lines.append([name_of(row), describe_summary(row), f"{number:.1f}", words])
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
    return f"{run.key.model}:{reading}" if reading else run.key.model


def describe_summary(row: SeedGroup) -> str:
    """Say what the summaries of a system are."""
    run = row.first
    reading = run.config.model.get("reading")
    other_reading = f"written by {{model}}, with model.reading={reading}"
    text = _WRITTEN_FROM.get(reading, other_reading) if reading else _SUMMARY_OF[run.key.model]
    trained = format_count(run.train_examples or 0, "other paper")
    times = f" (mean of {len(row.runs)} trainings)" if len(row.runs) > 1 else ""
    model = checkpoint_name(run.system.checkpoint or "")
    return text.format(papers=trained, model=model) + times


def describe_verdict(comparable: ComparableRows) -> str:
    """Say in one sentence which system is ahead of which, with an interval, or that nothing is shown."""
    ranked = [row for row in comparable.rows if row.ranked]
    if len(ranked) < 2:
        return "Nothing is shown: there are no two systems to compare."
    best, *rivals = ranked
    score = best.first.evaluation.ranked_by
    below: list[SeedGroup] = []
    unclear: list[SeedGroup] = []
    for row in rivals:
        judged = comparable.tests.differences.get((row.key, score))
        if judged is not None and judged.outcome == DISTINGUISHED:
            below.append(row)
        else:
            unclear.append(row)
    # The nearest of those that are shown to be below, or the farthest of all
    compared = below[0] if below else rivals[-1]
    judged = comparable.tests.differences.get((compared.key, score))
    if judged is None:
        return f"Nothing is shown: {name_of(best)} and {name_of(compared)} have equal scores or no test."
    interval = format_interval(-judged.high, -judged.low, ".1f")
    bounds = f"{-judged.mean:.1f} points of {heading_of(score)} (interval {interval})"
    if not below:
        return (
            f"Nothing is shown: {name_of(best)} has the highest score, {bounds} from {name_of(compared)},"
            f" but {_reason_of(judged)}."
        )
    text = f"{name_of(best)} is ahead of {name_of(compared)} by {bounds}"
    if below[1:]:
        text += f", and of {_join(below[1:])} by at least as much"
    if unclear:
        text += f"; between it and {_join(unclear)} no difference is shown"
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
    parts = []
    if oracles:
        parts.append(
            f"Not compared, because they know what no summarizer may know: {_join(oracles)}."
        )
    return " ".join(filter(None, [*parts, describe_unlearned(comparable.rows, name_of)]))


def set_side_by_side(texts: Sequence[tuple[str, str]]) -> str:
    """Return texts under their headings, two side by side, each cut to a few lines; as wide as the terminal."""
    width = (min(terminal_width(), _WIDEST) - len(_COLUMN_GAP)) // 2
    columns: list[list[str]] = []
    for heading, text in texts:
        wrapped = textwrap.wrap(
            escape_line(text), width, max_lines=_SUMMARY_LINES, placeholder=" …"
        )
        columns.append([textwrap.shorten(heading, width, placeholder=" …"), *wrapped])
    blocks = []
    columns += [[]] * (len(columns) % 2)
    for left, right in zip(columns[::2], columns[1::2], strict=True):
        pairs = zip_longest(left, right, fillvalue="")
        lines = [f"{before:{width}}{_COLUMN_GAP}{after}".rstrip() for before, after in pairs]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def describe_fact_rows(rows: Sequence[SeedGroup]) -> str:
    """Explain reports with planted facts; return a table and a sentence for each system. `rows` is not empty."""
    run = rows[0].first
    length = run.config.dataset.document_length
    chance = rows[0].numbers.get(f"{PLANTED}_chance")
    texts = [
        f"{format_count(run.evaluation.n, 'made-up report')} of {length} words say which firm a council chose for what. A"
        ' fact is in one place ("the library goes to Adler") or is joined from two ("the mill goes to the lower bid", and'
        ' elsewhere "the mill has a lower bid from Price": so Price). Link said: the summary says "the lower bid", then the'
        " firm. Link unsaid: it names the firm first.",
        "Tiny versions of systems from papers learned here to write such summaries. The table has the facts that they state"
        " right, of 100. ±: half of the 95 % interval.",
    ]
    if chance:
        texts[-1] += (
            f" A guess among all firms is right in {chance.mean:.0f} of 100; for facts in two places, one between the two"
            " bids in 50."
        )
    if all(row.one_seed for row in rows):
        texts[-1] += " Each was trained once: another training may give other numbers."
    lines = []
    for row in rows:
        model = row.first.key.model
        cells = [model, _READS[model]]
        for kind in _FACT_PLACES:
            number = row.numbers.get(f"{PLANTED}_{kind}")
            cells.append(f"{number:.0f}" if number else "")
        lines.append(cells)
    headings = [heading for heading, _ in _FACT_PLACES.values()]
    table = Block("", (), ("system", "what it reads", *headings), "llrrr", lines)
    sentences = [describe_facts(row) for row in rows]
    paragraphs = [*map(wrap_text, texts), "", terminal_block(table), "", *map(wrap_text, sentences)]
    return "\n".join(paragraphs)


def describe_facts(row: SeedGroup) -> str:
    """Say in one sentence how many facts a system states right, and from where; or that it did not learn."""
    model = row.first.key.model
    if not row.learned.comparable:
        return (
            f"{model} is not shown to have learned in this short training: its numbers say nothing about its way of"
            " reading."
        )
    parts = []
    for kind, (_, words) in _FACT_PLACES.items():
        if number := row.numbers.get(f"{PLANTED}_{kind}"):
            parts.append(f"{_amount(number.mean)} {words}")
    return f"{model} states right: {'; '.join(parts)}."


def _amount(share: float) -> str:
    return next(words for least, words in _AMOUNTS.items() if round(share) >= least)


def describe_next() -> str:
    """Return three commands to type next."""
    lines = []
    for question, command in _NEXT.items():
        lines += [wrap_text(question), f"    {command}"]
    return "\n".join(lines)


def choose_paper(ids: Collection[str]) -> str:
    """Return the first id of a paper since 2020: it begins with the year. Without any, the first id."""
    # Texts of papers before 2016 may not be used by everybody
    return min([name for name in ids if name[0].isdigit()] or ids)
