"""The lines below a table: units, tests, training budget, warnings, signature. Begin with `footnotes`.

A function whose sentence does not apply returns an empty text.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from operator import attrgetter

from longsumbench.core import Recipe
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import (
    PLANTED,
    ROUGE_HEADINGS,
    ROUGE_PARTS,
)
from longsumbench.leaderboards.seed_groups import (
    NEVER_RANKED,
    NOT_RANKED,
    NOT_SHOWN,
    UNKNOWN,
    SeedGroup,
)
from longsumbench.leaderboards.significance import (
    DISTINGUISHED,
    FEW_EXAMPLES,
    AgainstBest,
    ComparableRows,
)
from longsumbench.runs.record import SHORT_ID, RunRecord, length_ratio, output_problems
from longsumbench.runs.run_names import name_checkpoint

LEAD = "lead"  # the baseline that trained systems should exceed
_MOST_IN_LINE = 4  # most runs, budgets or values in a line
_ABOUT_PERSON = (
    "The row another person is a reference against the others, so it has one reference fewer than other rows. "
    "These have as few, averaged, with score.references=jackknife."
)
_LENGTHS_APART = 1.5  # ratio of the longest outputs to the shortest, above which lengths differ
_MOST_IN_SET = 10  # most systems that are all named


def join(*sentences: str) -> str:
    """Join the sentences that are not empty."""
    return " ".join(sentence for sentence in sentences if sentence)


def shorten_list(names: Sequence[str], between: str = ", ") -> str:
    """Join names; after the first ones only their number follows."""
    more = f" and {len(names) - _MOST_IN_LINE} more" if len(names) > _MOST_IN_LINE else ""
    return between.join(names[:_MOST_IN_LINE]) + more


def _list_names(start: str, names: Iterable[str], between: str = ", ") -> str:
    """Return a sentence that lists different names; empty without any."""
    different = list(dict.fromkeys(names))
    return f"{start}: {shorten_list(different, between)}." if different else ""


def footnotes(comparable: ComparableRows, columns: Set[str], part: str = "f") -> tuple[str, ...]:
    """Return the lines below a block: what its numbers mean, tests, training, warnings, the signature.

    `columns` are the names of the shown ones, and `part` is the part of ROUGE that the rows have as F.
    """
    rows, runs = comparable.rows, runs_of(comparable.rows)
    lines = [
        join(_describe_numbers(rows, columns, part), _describe_tests(comparable.tests, rows)),
        _describe_ranking(runs),
        describe_budget(runs),
        describe_unlearned(rows),
        describe_lengths(rows, part),
        describe_equal(rows),
        *_about_outputs(runs),
    ]
    origins = dict.fromkeys(run.imported.origin for run in runs if run.imported)
    origins.pop("", None)
    if origins:
        lines.append(f"Imported from: {'; '.join(origins)}.")
    if any(run.oracle for run in runs):
        lines.append("Oracles, in rows without a place, saw the references or their lengths.")
    if any(run.key.model == "person" for run in runs):
        lines.append(_ABOUT_PERSON)
    lines.append(f"Signature: {runs[0].evaluation.signature.replace('|', ' ')}")
    return tuple(line for line in lines if line)


def runs_of(rows: Iterable[SeedGroup]) -> list[RunRecord]:
    """Return the runs of all rows."""
    runs: list[RunRecord] = []
    for row in rows:
        runs += row.runs
    return runs


def describe_imported(comparable: ComparableRows) -> str:
    """Return the only line that the terminal shows below imported outputs; empty if a system was trained here."""
    rows, runs = comparable.rows, runs_of(comparable.rows)
    if any(run.trained for run in runs) or not any(run.imported for run in runs):
        return ""
    undecided = describe_undecided(comparable.tests, rows)
    return join(undecided, describe_unlearned(rows), "The .md file has all notes.")


def describe_untrained(rows: Iterable[SeedGroup]) -> str:
    """Describe which rows are checkpoints that were not trained here."""
    names = []
    for run in runs_of(rows):
        if run.zero_shot:
            names.append(f"{run.key.model} ({name_checkpoint(run)})")
    sentence = _list_names("Not trained here", names)
    return f"{sentence} Their training texts may include these." if sentence else ""


def _describe_numbers(rows: Sequence[SeedGroup], columns: Set[str], part: str) -> str:
    numbers = []
    for row in rows:
        numbers += [number for name, number in row.numbers.items() if name in columns]
    if not numbers:
        return ""
    unit = f"ROUGE {ROUGE_PARTS[part]}, 0–100; " if columns & ROUGE_HEADINGS.keys() else ""
    seeds = " and seeds" if any(len(row.runs) > 1 for row in rows) else ""
    where = ""
    if any(math.isnan(number.low) for number in numbers):
        where = "; –: unknown, for a single example or without scores.csv"
    return f"{unit}±: half the 95 % interval over examples{seeds}{where}."


def _describe_tests(tests: AgainstBest, rows: Sequence[SeedGroup]) -> str:
    labels = {row.key: f"{row.label} ({row.key[:SHORT_ID]})" for row in rows}
    untested = _list_names(
        "Not tested, because its scores.csv or that of the best row is missing",
        [labels[key] for key in tests.untested],
    )
    return join(describe_undecided(tests, rows), _describe_best_set(tests, rows), untested)


def _describe_best_set(tests: AgainstBest, rows: Sequence[SeedGroup]) -> str:
    """Name the rows in the set of best systems, unless the marks in the table say the same."""
    ranked_by = rows[0].first.evaluation.ranked_by
    labels = [row.label for row in rows if row.key in tests.best_set]
    # If all others are marked as worse, the set says nothing new
    far = {key for key, column in tests.with_outcome(DISTINGUISHED) if column == ranked_by}
    outside = {row.key for row in rows if row.ranked and row.key not in tests.best_set}
    if not labels or far == outside:
        return ""
    systems = ", ".join(labels) if len(labels) <= _MOST_IN_SET else shorten_list(labels)
    return f"Set of best systems (95 %, model confidence set): {systems}."


def describe_undecided(tests: AgainstBest, rows: Sequence[SeedGroup]) -> str:
    """Name the rows about which no test can decide: those of one seed, and those with too few examples."""
    ranked_by = rows[0].first.evaluation.ranked_by
    few = [row.label for row in rows if (row.key, ranked_by) in tests.with_outcome(FEW_EXAMPLES)]
    ranked = [row for row in rows if row.ranked]
    one_seed = [row.label for row in ranked if row.one_seed] if len(ranked) > 1 else []
    return join(
        _list_names("Of one seed, so without a verdict (another may differ)", one_seed),
        _list_names("Too few examples for a test against the best", few),
    )


def describe_intervals(several: Collection[bool]) -> str:
    """Say over what numbers are means, with their intervals; `several` is True for each number of several seeds."""
    if all(several):
        return "examples and seeds"
    return "examples (and seeds, where there are several)" if any(several) else "examples"


def describe_mark(mark: str, words: Collection[str]) -> str:
    """Say what a mark in a picture means, given the words of what has it."""
    unknown = {*words} & {UNKNOWN, NOT_SHOWN}
    kinds = ["that did not learn"] if {*words} - unknown else []
    kinds += ["of which it is not known whether they learned"] if unknown else []
    return f"{mark}: systems {' or '.join(kinds)}." if kinds else ""


def _about_outputs(runs: Sequence[RunRecord]) -> list[str]:
    failed = []
    for run in runs:
        if count := run.ledger.counts.get("failed"):
            failed.append(f"{run.label}: {count:,}")
    lines = []
    if left_out := len(runs[0].evaluation.empty_references):
        examples = format_count(left_out, "example")
        lines.append(f"Left out because they have no reference: {examples}.")
    scored = "left out" if runs[0].left_out else "scored as empty"
    return [
        *lines,
        _list_names(f"Without an answer of the model, {scored}", failed),
        *warnings_on_outputs(runs),
    ]


def warnings_on_outputs(runs: Sequence[RunRecord], limit: int = _MOST_IN_LINE) -> list[str]:
    """Return a line for each run, of `limit` runs, with a problem of many of its outputs."""
    warnings = []
    for record in runs:
        if problems := output_problems(record, record.evaluation.outputs):
            warnings.append(f"Warning, {record.label}: {'; '.join(problems)}.")
    if len(warnings) > limit:
        more = format_count(len(warnings) - limit, "more run")
        warnings[limit:] = [f"Such warnings for {more} (outputs_* in the CSV)."]
    return warnings


def describe_equal(rows: Sequence[SeedGroup]) -> str:
    """Name the rows and seeds whose outputs are equal. Older records do not say."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        digests = tuple(run.outputs_digest for run in row.runs)
        if all(digests):
            labels.setdefault(digests, []).append(row.label)
    equal = [" = ".join(names) for names in labels.values() if len(names) > 1]
    for row in rows:
        if row.equal_seeds:
            seeds = ", ".join(map(str, row.equal_seeds))
            equal.append(f"seeds {seeds} of {row.label}, counted once")
    return _list_names("Equal outputs", equal, "; ")


def describe_unlearned(
    rows: Sequence[SeedGroup], name_of: Callable[[SeedGroup], str] = attrgetter("label")
) -> str:
    """Name the rows that are not ranked because they did not learn, and those of which that is not known or shown."""
    # Reason → rows
    unranked: dict[str, list[str]] = {}
    doubtful: dict[str, list[str]] = {}
    for row in rows:
        learned = row.learned
        if row.ranked and not learned.comparable:
            doubtful.setdefault(learned.reason, []).append(name_of(row))
        elif learned.word in NEVER_RANKED:
            why = "" if learned.word == NOT_RANKED else f"{learned.word}: "
            unranked.setdefault(f"{why}{learned.reason}", []).append(name_of(row))
    if not rows[0].has_place:
        unranked["no system scores above 0"] = ["all rows"]
    start = "Ranked, although it is not known whether outputs depend on their sources"
    return join(_list_by_reason("Not ranked", unranked), _list_by_reason(start, doubtful))


def _list_by_reason(start: str, rows: Mapping[str, Sequence[str]]) -> str:
    groups = [f"{shorten_list(names)} ({reason})" for reason, names in rows.items()]
    return _list_names(start, groups, "; ")


def describe_lengths(rows: Sequence[SeedGroup], part: str = "f") -> str:
    """Return a line if ranked rows differ so much in length that F1 may rank by it."""
    if part != "f" or rows[0].first.evaluation.ranked_by not in ROUGE_HEADINGS:
        return ""
    ratios: dict[float, str] = {}
    for row in rows:
        known = [length_ratio(run) for run in row.runs] if row.ranked else []
        ratios |= {ratio: row.label for ratio in known if ratio}
    if not ratios or max(ratios) <= _LENGTHS_APART * min(ratios):
        return ""
    shortest, longest = min(ratios), max(ratios)
    return (
        f"Lengths differ: outputs have {shortest:.2f} ({ratios[shortest]}) to {longest:.2f} "
        f"({ratios[longest]}) times the words of the references. F1 may then rank by length: "
        "see precision and recall (rouge1_p, rouge1_r, … in the CSV)."
    )


def _describe_ranking(runs: Sequence[RunRecord]) -> str:
    name = runs[0].evaluation.ranked_by
    if name in ROUGE_HEADINGS:
        return ""
    meaning = f"Ranked by {name}, 0–100"
    if name == PLANTED:
        meaning = (
            "facts: planted facts that the summaries state right, in percent; one place: a sentence has all; "
            "two places: the summary says which bid won before the firm (link said), or not (link unsaid)"
        )
    for run in runs:
        if chance := run.evaluation.measures.get(f"{name}_chance"):
            # A summary that does not guess is below it
            guesses = "chance" if name == PLANTED else "a guess about each fact"
            return f"{meaning}; {guesses} reaches {chance.mean:.1f}."
    return f"{meaning}."


def describe_budget(runs: Sequence[RunRecord]) -> str:
    """Describe the training budget: optimizer steps × examples per step, and the total for batches by tokens."""
    models: dict[tuple[int, str], set[str]] = {}
    drawn = []  # numbers of examples
    for run in runs:
        if run.trained:
            recipe = run.config.train
            budget = (run.fit.steps, describe_step_size(recipe))
            models.setdefault(budget, set()).add(run.key.model)
            if recipe.batch_tokens:
                drawn.append(run.fit.examples)
    budgets = []
    # Small budgets first
    for (steps, size), names in sorted(models.items()):
        users = shorten_list(sorted(names))
        budgets.append((f"{format_count(steps, 'step')} × {size}", users))
    if not budgets:
        return ""
    if len(budgets) > 1:
        return _list_names("Budgets differ", [f"{text} ({users})" for text, users in budgets], "; ")
    total = ""
    if drawn:
        most = f" to {max(drawn):,}" if max(drawn) > min(drawn) else ""
        total = f", {min(drawn):,}{most} examples in all"
    return f"Equal budget: {budgets[0][0]}{total}."


def describe_step_size(recipe: Recipe) -> str:
    """Describe the examples, source words or source tokens of an optimizer step."""
    passes = f"{recipe.accumulation} × " if recipe.accumulation > 1 else ""
    if recipe.batch_words:
        return f"{passes}batches of {recipe.batch_words:,} source words, 4 to 64 examples"
    if recipe.batch_tokens:
        return f"{passes}batches of {recipe.batch_tokens:,} source tokens"
    return format_count(recipe.batch_size * recipe.accumulation, "example")
