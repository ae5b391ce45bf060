"""The lines below a table: units, tests, training budget, initial weights, warnings, signature."""

import math
from collections.abc import Collection, Iterable, Sequence, Set

from longsumbench.cache.hub import checkpoint_name
from longsumbench.core import Recipe, names_deciding
from longsumbench.formatting import format_count, format_plain_value
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, ROUGE_PARTS, heading_of
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
    UNDISTINGUISHED,
    AgainstBest,
    ComparableRows,
)
from longsumbench.runs.record import SHORT_ID, RunRecord, length_ratio, output_problems

_MEANING = {  # of measures by which runs are ranked
    "fact_recall": "facts: planted facts that the summaries state right, in percent; then by how the source states "
    "them (silent same or other: combined from one or several sections)"
}
LEAD = "lead"  # the baseline that trained systems should exceed
_LENGTHS_APART = 1.5  # ratio of two length ratios, above which a line warns
_LARGEST = 100.0  # difference of two shares in percent
_MOST_IN_LINE = 4  # most runs, budgets or values in a line
_MOST_IN_SET = 10  # most systems that are all named


def describe_untrained(rows: Iterable[SeedGroup]) -> str:
    """Describe which rows are checkpoints that were not trained here; empty if none is."""
    runs = [run for row in rows for run in row.runs if run.zero_shot]
    names = dict.fromkeys(
        f"{run.key.model} ({checkpoint_name(run.system.checkpoint or '')})" for run in runs
    )
    return (
        f"Not trained here: {shorten_list([*names])}. Their training texts may include these."
        if names
        else ""
    )


def footnotes(comparable: ComparableRows, columns: Set[str], part: str = "f") -> tuple[str, ...]:
    """Return the lines below a block: what its numbers mean, tests, training, warnings, the signature.

    `columns` are the names of the shown ones, and `part` is the part of ROUGE that the rows have as F.
    """
    rows, members = comparable.rows, [run for row in comparable.rows for run in row.runs]
    tested = _describe_tests(comparable.tests, rows)
    lines = [join(_describe_numbers(rows, columns, part), tested), _about_ranking(members)]
    lines += [
        join(
            describe_budget(members),
            describe_training_differences(members),
            describe_starts(members),
        )
    ]
    lines += [caution(rows), describe_unlearned(rows), describe_lengths(rows, part)]
    lines += [describe_equal(rows), *_about_outputs(members)]
    if origins := dict.fromkeys(
        run.imported.origin for run in members if run.imported and run.imported.origin
    ):
        lines.append(f"Imported from: {'; '.join(origins)}.")
    if any(run.oracle for run in members):
        lines.append("Oracles, in rows without a place, saw the references or their lengths.")
    if additional := dict.fromkeys(
        name for record in members for name in record.evaluation.measured_by
    ):
        lines.append(
            f"Also measured: {', '.join(sorted(additional))} (see --columns help, and the CSV)."
        )
    lines.append(f"Signature: {members[0].evaluation.signature.replace('|', ' ')}")
    return tuple(line for line in lines if line)


def _describe_numbers(rows: Sequence[SeedGroup], columns: Set[str], part: str = "f") -> str:
    numbers = [row.numbers[name] for row in rows for name in row.numbers if name in columns]
    if not numbers:
        return ""
    unit = f"ROUGE {ROUGE_PARTS[part]}, 0–100" if columns & ROUGE_HEADINGS.keys() else ""
    seeds = " and seeds" if any(len(row.runs) > 1 for row in rows) else ""
    interval = f"±: half the 95 % interval over examples{seeds}"
    if any(math.isnan(number.low) for number in numbers):
        interval += ", where the scores of each example (scores.csv) exist"
    return f"{'; '.join(text for text in (unit, interval) if text)}."


def _describe_tests(tests: AgainstBest, rows: Sequence[SeedGroup]) -> str:
    sentences = []
    ranked_by = rows[0].first.evaluation.ranked_by
    judged = [test for (_, name), test in tests.differences.items() if name == ranked_by]
    smallest = [
        test.detectable for test in judged if test.outcome in (DISTINGUISHED, UNDISTINGUISHED)
    ]
    if differences := [difference for difference in smallest if difference <= _LARGEST]:
        low, high = f"{min(differences):.1f}", f"{max(differences):.1f}"
        bounds = low if low == high else f"{low} to {high}, by row"
        heading = heading_of(ranked_by)
        sentences.append(
            f"The smallest difference in {heading} that this test finds with 80 % power: {bounds}."
        )
    if blind := len(smallest) - len(differences):
        blind_rows = format_count(blind, "row")
        sentences.append(
            f"For {blind_rows} there are too few examples or seeds to find any difference."
        )
    sentences += [describe_undecided(tests, rows), _describe_best_set(tests, rows)]
    if tests.untested:
        labels = {row.key: f"{row.label} ({row.key[:SHORT_ID]})" for row in rows}
        untested = shorten_list([labels[key] for key in tests.untested])
        sentences.append(
            f"Not tested, because its scores.csv or that of the best row is missing: {untested}."
        )
    return join(*sentences)


def _describe_best_set(tests: AgainstBest, rows: Sequence[SeedGroup]) -> str:
    """Name the rows in the set of best systems; empty if it is unknown, or the marks in the table say the same."""
    name, labels = (
        rows[0].first.evaluation.ranked_by,
        [row.label for row in rows if row.key in tests.best_set],
    )
    far = {key for key, column in tests.with_outcome(DISTINGUISHED) if column == name}
    if not labels or far == {row.key for row in rows if row.ranked} - set(tests.best_set):
        return ""
    systems = ", ".join(labels) if len(labels) <= _MOST_IN_SET else shorten_list(labels)
    return f"Set of best systems (95 %, model confidence set): {systems}."


def describe_undecided(tests: AgainstBest, rows: Sequence[SeedGroup]) -> str:
    """Name the rows about which no test can decide: those of one seed, and those with too few examples."""
    ranked_by = rows[0].first.evaluation.ranked_by
    few = [row.label for row in rows if (row.key, ranked_by) in tests.with_outcome(FEW_EXAMPLES)]
    ranked = [row for row in rows if row.ranked]
    one_seed = [row.label for row in ranked if row.one_seed] if len(ranked) > 1 else []
    starts = {
        "Of one seed, so without a verdict (another may differ)": one_seed,
        "Too few examples for a test against the best": few,
    }
    return join(
        *(f"{start}: {shorten_list(labels)}." for start, labels in starts.items() if labels)
    )


def describe_intervals(several: Collection[bool]) -> str:
    """Say over what numbers are means, with their intervals; `several` is True for each number of several seeds."""
    if all(several):
        return "examples and seeds"
    return "examples (and seeds, where there are several)" if any(several) else "examples"


def describe_mark(mark: str, words: Collection[str]) -> str:
    """Say what a mark in a picture means, given the words of what has it; empty if nothing has it."""
    unknown = {*words} & {UNKNOWN, NOT_SHOWN}
    kinds = ["that did not learn"] if {*words} - unknown else []
    kinds += ["of which it is not known whether they learned"] if unknown else []
    return f"{mark}: systems {' or '.join(kinds)}." if kinds else ""


def join(*sentences: str) -> str:
    """Join the sentences that are not empty."""
    return " ".join(sentence for sentence in sentences if sentence)


def shorten_list(names: Sequence[str], between: str = ", ") -> str:
    """Join names; after the first ones only their number follows."""
    more = f" and {len(names) - _MOST_IN_LINE} more" if len(names) > _MOST_IN_LINE else ""
    return between.join(names[:_MOST_IN_LINE]) + more


def _about_outputs(members: Sequence[RunRecord]) -> list[str]:
    lines = []
    if left_out := len(members[0].evaluation.empty_references):
        lines.append(
            f"Left out because they have no reference: {format_count(left_out, 'example')}."
        )
    if empty := [
        f"{run.label}: {run.evaluation.empty_predictions}"
        for run in members
        if run.evaluation.empty_predictions
    ]:
        lines.append(f"Empty predictions, which score 0: {shorten_list(empty)}.")
    if refusals := [
        f"{run.label}: {run.ledger.counts['refused']:,}"
        for run in members
        if run.ledger.counts.get("refused")
    ]:
        lines.append(f"Refused by the model: {shorten_list(refusals)}.")
    if failed := [
        f"{run.label}: {run.ledger.counts['failed']:,}"
        for run in members
        if run.ledger.counts.get("failed")
    ]:
        scored = "left out" if members[0].left_out else "scored as empty"
        lines.append(f"Without an answer of the model, {scored}: {shorten_list(failed)}.")
    return lines + warnings_on_outputs(members)


def warnings_on_outputs(members: Sequence[RunRecord], limit: int = _MOST_IN_LINE) -> list[str]:
    """Return a line for each run, of `limit` runs, with a problem of many of its outputs."""
    warnings = []
    for record in members:
        if problems := output_problems(record, record.evaluation.outputs):
            warnings.append(f"Warning, {record.label}: {'; '.join(problems)}.")
    if len(warnings) > limit:
        more = format_count(len(warnings) - limit, "more run")
        warnings[limit:] = [f"Such warnings for {more} (outputs_* in the CSV)."]
    return warnings


def caution(rows: Sequence[SeedGroup]) -> str:
    """Return a line if the mean of no trained system is above that of Lead; empty otherwise."""
    name = rows[0].first.evaluation.ranked_by
    measured = [row for row in rows if name in row.numbers]
    leads = [
        row.numbers[name].mean
        for row in measured
        if row.first.key.model == LEAD and not row.first.oracle
    ]
    trained = [row.numbers[name].mean for row in measured if row.first.trained]
    if not leads or not trained or max(trained) > max(leads):
        return ""
    return f"No trained system is above Lead in {heading_of(name)}."


def describe_equal(rows: Sequence[SeedGroup]) -> str:
    """Name the rows and seeds whose outputs are equal; empty if there are none. Older records do not say."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        digests = tuple(run.outputs_digest for run in row.runs)
        labels.setdefault(digests, []).append(row.label)
    equal = [" = ".join(names) for digests, names in labels.items() if names[1:] and all(digests)]
    seeds = {row.label: ", ".join(map(str, row.equal_seeds)) for row in rows if row.equal_seeds}
    equal += [f"seeds {numbers} of {label}, counted once" for label, numbers in seeds.items()]
    return f"Equal outputs: {shorten_list(equal, '; ')}." if equal else ""


def describe_unlearned(rows: Sequence[SeedGroup]) -> str:
    """Name the rows that are not ranked because they did not learn, and those of which that is not known or shown."""
    starts = {
        "Not ranked": NEVER_RANKED,
        "Ranked, although it is not known whether outputs depend on their sources": (
            UNKNOWN,
            NOT_SHOWN,
        ),
    }
    sentences = []
    for start, words in starts.items():
        labels = []
        for row in (row for row in rows if row.learned.word in words):
            why = (
                ""
                if row.learned.word in (NOT_RANKED, UNKNOWN, NOT_SHOWN)
                else f"{row.learned.word}: "
            )
            labels.append(f"{row.label} ({why}{row.learned.reason})")
        sentences += [f"{start}: {shorten_list(labels, '; ')}."] if labels else []
    return join(*sentences)


def describe_lengths(rows: Sequence[SeedGroup], part: str = "f") -> str:
    """Return a line if ranked rows differ so much in length that F1 may rank by it; empty otherwise."""
    if part != "f" or rows[0].first.evaluation.ranked_by not in ROUGE_HEADINGS:
        return ""
    ratios = {
        ratio: row.label
        for row in rows
        if row.ranked
        for run in row.runs
        if (ratio := length_ratio(run))
    }
    if not ratios or max(ratios) <= _LENGTHS_APART * min(ratios):
        return ""
    return (
        f"Lengths differ: outputs have {min(ratios):.2f} ({ratios[min(ratios)]}) to {max(ratios):.2f} "
        f"({ratios[max(ratios)]}) times the words of the references. F1 may then rank by length: "
        "see precision and recall (rouge1_p, rouge1_r, … in the CSV)."
    )


def _about_ranking(members: Sequence[RunRecord]) -> str:
    name = members[0].evaluation.ranked_by
    chance = next(
        (
            run.evaluation.measures[f"{name}_chance"]
            for run in members
            if f"{name}_chance" in run.evaluation.measures
        ),
        None,
    )
    chance_note = f"; chance reaches {chance.mean:.1f}" if chance else ""
    return (
        ""
        if name in ROUGE_HEADINGS
        else f"{_MEANING.get(name, f'Ranked by {name}, 0–100')}{chance_note}."
    )


def describe_budget(members: Sequence[RunRecord]) -> str:
    """Describe the training budget: optimizer steps × examples per step, and the total for batches by tokens."""
    models: dict[tuple[int, str], set[str]] = {}
    for record in members:
        if record.trained:
            models.setdefault(
                (record.fit.steps, describe_step_size(record.config.train)), set()
            ).add(record.key.model)
    budgets = [
        (f"{format_count(steps, 'step')} × {size}", models[steps, size])
        for steps, size in sorted(models)
    ]
    if not budgets:
        return (
            ""
            if any(record.imported for record in members)
            else "Nothing was trained for these rows."
        )
    if len(budgets) == 1:
        return f"Equal budget: {budgets[0][0]}{_examples_of_tokens(members)}."
    described = [f"{text} ({shorten_list(sorted(names))})" for text, names in budgets]
    return f"Budgets differ: {shorten_list(described, '; ')}."


def _examples_of_tokens(members: Sequence[RunRecord]) -> str:
    num_examples = [
        run.fit.examples for run in members if run.trained and run.config.train.batch_tokens
    ]
    if not num_examples:
        return ""
    low, high = min(num_examples), max(num_examples)
    return f", {low:,}{f' to {high:,}' if high > low else ''} examples in all"


def describe_step_size(recipe: Recipe) -> str:
    """Describe the examples, source words or source tokens of an optimizer step."""
    passes = f"{recipe.accumulation} × " if recipe.accumulation > 1 else ""
    if recipe.batch_words:
        return f"{passes}batches of {recipe.batch_words:,} source words, 4 to 64 examples"
    if recipe.batch_tokens:
        return f"{passes}batches of {recipe.batch_tokens:,} source tokens"
    return format_count(recipe.batch_size * recipe.accumulation, "example")


def describe_training_differences(members: Sequence[RunRecord]) -> str:
    """Describe the `train` settings other than the budget in which the trained runs differ; empty if none."""
    recipes = [
        (vars(record.config.train), record.run_id[:SHORT_ID])
        for record in members
        if record.trained
    ]
    differences = []
    ignored = names_deciding(Recipe, "budget", "seed", "nothing")
    for key in dict.fromkeys(key for recipe, _ in recipes for key in recipe if key not in ignored):
        runs: dict[str, list[str]] = {}
        for recipe, run in recipes:
            runs.setdefault(format_plain_value(recipe.get(key)), []).append(run)
        if len(runs) > 1:
            values = [f"{value} ({shorten_list(sorted(runs[value]))})" for value in sorted(runs)]
            differences.append(f"{key} {shorten_list(values)}")
    return f"Rows differ in training: {shorten_list(differences, '; ')}." if differences else ""


def describe_starts(members: Sequence[RunRecord]) -> str:
    """Describe which models started from random weights and which from a checkpoint; empty if neither applies."""
    random, loaded = set(), set()
    for record in members:
        init = record.config.model.get("init")
        name = record.system.checkpoint or init
        if init == "random":
            random.add(record.key.model)
        elif (
            isinstance(name, str) and not record.zero_shot
        ):  # in a plugin, `init` may have another meaning
            loaded.add(f"{record.key.model} ({checkpoint_name(name)})")
    starts = (("Random initial weights", random), ("From a checkpoint", loaded))
    return " ".join(f"{start}: {', '.join(sorted(models))}." for start, models in starts if models)
