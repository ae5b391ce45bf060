"""The table of published numbers."""

from collections.abc import Sequence

from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_STATISTICS
from longsumbench.leaderboards.published import COLUMNS, Published, read_published
from longsumbench.runs.record import RunRecord
from longsumbench.views.tables import Block

# Papers of the suite's systems; the terminal shows only what they report of these
OUR_PAPERS = ("liu2019hiersumm", "liu2022pagesum", "you2019etads", "zhao2020seal")


def published_blocks(
    dataset: str,
    runs: Sequence[RunRecord],
    brief: bool = False,
    statistic: str = "f",
    chosen: Sequence[Published] = (),
) -> list[Block]:
    """Return a block of the published numbers on a dataset, or of those chosen instead; empty if there are none.

    If runs may be on other texts than the official ones, a note warns. A brief block has only the best row of each of
    the suite's systems, and the number of others.
    """
    published = chosen or read_published(dataset, statistic)
    if not published:
        return []
    rows = _best_system_rows(published) if brief and not chosen else published
    # Notes are one paragraph, each sentence only if it applies
    notes = [
        f"As printed, on the official data, scored as in each source: {ROUGE_STATISTICS[statistic]}, not ranked with our"
        " rows."
    ]
    columns = set().union(*(row.scores for row in rows))
    if any(name.startswith("R-L") for name in columns):
        notes.append(
            "Sentence-level and summary-level R-L of one output can differ by 10–20 points."
        )
    if any(row.doubted for row in rows):
        notes.append(
            "† Another publication or table contradicts this row: see the note in published.csv."
        )
    if any(run.config.dataset.path for run in runs):
        notes.append(
            "Our texts came from local files (dataset.path); nothing shows that they are the official ones."
        )
    if len(rows) < len(published):
        place = f"leaderboard/{dataset}.md" if statistic == "f" else "published.csv"
        notes.append(f"In {place}: {format_count(len(published) - len(rows), 'more row')}.")
    headings = [name.replace(" ", "\n") for name in COLUMNS.values()]
    block = Block(
        "Published numbers",
        (),
        ("system", "variant", "input\ntokens", *headings, "split", "source"),
        "llr" + "r" * len(headings) + "ll",
        [_format_published(row) for row in rows],
        optional=("input\ntokens", "split", "R-2"),
        footnotes=(" ".join(notes),),
    )
    return [block.without_empty_columns()]


def _best_system_rows(published: Sequence[Published]) -> list[Published]:
    """Return the best row that a paper of ours reports of its own system."""
    best: dict[str, Published] = {}
    for row in published:
        if row.provenance == "own" and row.key in OUR_PAPERS:
            rows = [best.get(row.system, row), row]
            best[row.system] = max(rows, key=lambda row: float(row.scores.get("R-1", 0)))
    return list(best.values())


def _format_published(row: Published) -> list[str]:
    scores = [row.scores.get(column, "") for column in COLUMNS.values()]
    source = f"{row.source} †" if row.doubted else row.source
    return [row.system, row.variant, row.input_tokens, *scores, row.test_set, source]
