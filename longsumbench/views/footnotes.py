"""The lines below a table: units, tests, training budget, warnings, signature. Begin with `footnotes`.

A function whose sentence does not apply returns an empty text.
"""

import math
from collections.abc import Collection, Iterable, Sequence, Set

from longsumbench.core import TrainConfig
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import PLANTED, ROUGE_HEADINGS, ROUGE_STATISTICS
from longsumbench.leaderboards.seed_groups import NOT_SHOWN, UNKNOWN, ResultRow, collect_runs
from longsumbench.leaderboards.significance import LeaderboardBlock
from longsumbench.runs.record import RunRecord, describe_unanswered, output_problems
from longsumbench.runs.run_names import name_checkpoint
from longsumbench.views.outcomes import (
    describe_undecided,
    describe_unlearned,
    join_names,
    shorten_list,
)

_FEW_TEXTS = 10  # below, degrees of freedom are few
_WITHOUT_SUMMARY = {
    "answers_source": "right from the source",
    "answers_unrelated": "from a text about another source",
    "answers_guessed": "by guessing",
}
_MOST_IN_SET = 10  # most systems of the set of best ones that are named


def join(*sentences: str) -> str:
    """Join the sentences that are not empty."""
    return " ".join(sentence for sentence in sentences if sentence)


def footnotes(
    comparable: LeaderboardBlock, columns: Set[str], statistic: str = "f"
) -> tuple[str, ...]:
    """Return the lines below a block: what its numbers mean, tests, training, warnings, the signature.

    `columns` are the names of the shown ones, and `statistic` is that of ROUGE that the rows have as F.
    """
    rows, runs = comparable.rows, collect_runs(comparable.rows)
    lines = [
        _describe_numbers(rows, columns, statistic),
        join(describe_undecided(comparable), _describe_best_set(comparable)),
        _describe_ranking(runs),
        _describe_judge(runs),
        _describe_reader(runs),
        describe_budget(runs),
        describe_unlearned(rows),
        describe_equal(rows),
        _describe_unanswered(runs),
    ]
    if left_out := len(runs[0].evaluation.empty_references):
        lines.append(
            f"Left out because they have no reference: {format_count(left_out, 'example')}."
        )
    if any(run.oracle for run in runs):
        lines.append("Oracles, in rows without a place, saw the references or their lengths.")
    lines.append(f"Signature: {runs[0].evaluation.signature.replace('|', ' ')}")
    return tuple(line for line in lines if line)


def _describe_unanswered(runs: Sequence[RunRecord]) -> str:
    problems = {run.label: describe_unanswered(run) for run in runs}
    clauses = [f"{label} ({problem})" for label, problem in problems.items() if problem]
    return f"Missing answers: {shorten_list(clauses)}." if clauses else ""


def describe_untrained(rows: Iterable[ResultRow]) -> str:
    """Describe which rows are checkpoints that were not trained here."""
    names = []
    for run in collect_runs(rows):
        if run.zero_shot:
            names.append(f"{run.key.model} ({name_checkpoint(run)})")
    if not names:
        return ""
    return f"Not trained here: {shorten_list(names)}. Their training texts may include these."


def _describe_numbers(rows: Sequence[ResultRow], columns: Set[str], statistic: str) -> str:
    means = []
    for row in rows:
        means += [mean for name, mean in row.means.items() if name in columns]
    if not means:
        return ""
    unit = (
        f"ROUGE {ROUGE_STATISTICS[statistic]}, 0–100; " if columns & ROUGE_HEADINGS.keys() else ""
    )
    seeds = " and seeds" if any(len(row.runs) > 1 for row in rows) else ""
    where = ""
    if any(math.isnan(mean.low) for mean in means):
        where = "; –: unknown, for a single example or without scores.csv"
    over = "examples"
    # Questions about one text are no independent cases
    if groups := [
        row.representative.evaluation.groups for row in rows if row.representative.evaluation.groups
    ]:
        over = "texts (each with all its examples)"
        if min(groups) < _FEW_TEXTS:
            where += f"; with fewer than {_FEW_TEXTS} texts it is rough"
    return f"{unit}±: half the 95 % interval over {over}{seeds}{where}."


def _describe_best_set(comparable: LeaderboardBlock) -> str:
    labels = [row.label for row in comparable.rows if row.key in comparable.best_set]
    decided = comparable.decide()
    marked = () if decided is None else (decided.best, *decided.undecided)
    # The marks in the table often say the same
    if not labels or labels == [row.label for row in marked]:
        return ""
    systems = join_names(labels) if len(labels) <= _MOST_IN_SET else shorten_list(labels)
    return f"Set of best systems (95 %, model confidence set): {systems}."


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


def warnings_on_outputs(runs: Sequence[RunRecord], limit: int = 4) -> list[str]:
    """Return a line for each run, of `limit` runs, with a problem of many of its outputs."""
    warnings = []
    for record in runs:
        if problems := output_problems(record, record.evaluation.outputs):
            warnings.append(f"Warning, {record.label}: {'; '.join(problems)}.")
    if len(warnings) > limit:
        more = format_count(len(warnings) - limit, "more run")
        warnings[limit:] = [f"Such warnings for {more} (outputs_* in the CSV)."]
    return warnings


def describe_equal(rows: Sequence[ResultRow]) -> str:
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
    return f"Equal outputs: {shorten_list(equal, '; ')}." if equal else ""


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


def _describe_judge(runs: Sequence[RunRecord]) -> str:
    """Say whether the judge tells references apart, which is the same for all runs, or gives all the same recall."""
    ends = set()
    for run in runs:
        measures = run.evaluation.measures
        if recall := measures.get("judge_recall"):
            ends |= {recall.lo, recall.hi}
        margin = measures.get("judge_margin")
        if margin and margin.lo is not None:  # of one example it is unknown
            finds = f"finds {margin.mean:.1f} points more of a reference there than in another one"
            doubt = "" if margin.lo > 0 else "; that it tells anything apart is not shown"
            return f"judge: it {finds}{doubt}."
    if len(ends) == 1 and None not in ends:
        return "judge: all summaries have the same recall, so it tells nothing apart."
    return ""


def _describe_reader(runs: Sequence[RunRecord]) -> str:
    """Say what the reader of `answers` reaches without a summary; this is the same for all runs."""
    for run in runs:
        measures = run.evaluation.measures
        if margin := measures.get("answers_margin"):
            reaches = []
            for column, words in _WITHOUT_SUMMARY.items():
                if column in measures:
                    reaches.append(f"{measures[column].mean:.1f} % {words}")
            is_shown = margin.lo is None or margin.lo > 0  # of one example it is unknown
            cannot = "" if is_shown else ": this reader cannot tell"
            return f"answers: the reader answers {join_names(reaches)}{cannot}."
    return ""


def describe_budget(runs: Sequence[RunRecord]) -> str:
    """Describe the training budget: optimizer steps × examples per step."""
    models: dict[tuple[int, str], set[str]] = {}
    for run in runs:
        if run.trained:
            recipe = run.config.train
            budget = (run.fit.steps, describe_step_size(recipe))
            models.setdefault(budget, set()).add(run.key.model)
    budgets = []
    # Small budgets first
    for (steps, size), names in sorted(models.items()):
        users = shorten_list(sorted(names))
        budgets.append((f"{format_count(steps, 'step')} × {size}", users))
    if not budgets:
        return ""
    if len(budgets) > 1:
        texts = [f"{text} ({users})" for text, users in budgets]
        return f"Budgets differ: {shorten_list(texts, '; ')}."
    return f"Equal budget: {budgets[0][0]}."


def describe_step_size(recipe: TrainConfig) -> str:
    """Describe the examples, source words or source tokens of an optimizer step."""
    passes = f"{recipe.accumulation} × " if recipe.accumulation > 1 else ""
    if recipe.batch_words:
        return f"{passes}batches of {recipe.batch_words:,} source words, 4 to 64 examples"
    if recipe.batch_tokens:
        return f"{passes}batches of {recipe.batch_tokens:,} source tokens"
    return format_count(recipe.batch_size * recipe.accumulation, "example")
