"""The notes above a table: training budget, initial weights, warnings, units."""

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from longsumbench.api import Recipe, names_deciding
from longsumbench.formatting import format_count, format_plain_value
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, ROUGE_PARTS
from longsumbench.metrics.aggregate import Estimate
from longsumbench.metrics.output_facts import output_warnings
from longsumbench.runs.record import SHORT_ID, RecordedTraining, RunRecord, measured_mean, ranking_score

PLANTED = "fact_recall"
_MEANING = {  # of measures by which runs are ranked
    "fact_recall": "Facts that the summaries state right, in percent ± half the 95 % interval, by how the source "
    "states them (silent same or other: combined from one or several sections). Ranked by all facts together "
    "(fact_recall in the CSV)"
}
_LEAD = "lead"  # the baseline that trained systems should exceed
HUB_NAME = re.compile(r"(?!\.\.?/)[\w.-]+/[\w.-]+")  # owner/name of a checkpoint on the Hub; others are folders


def table_notes(members: Sequence[RunRecord], part: str = "f") -> tuple[str, ...]:
    """Return the notes on a block: training, warnings, and the meaning of its numbers.

    `part` of ROUGE, a key of `ROUGE_PARTS`, is what the runs' scores have as F.
    """
    notes = (
        describe_budget(members),
        describe_training_differences(members),
        describe_starts(members),
        caution(members),
    )
    lines = [note for note in notes if note]
    if left_out := len(members[0].empty_references):
        lines.append(f"Left out because they have no reference: {format_count(left_out, 'example')}.")
    if empty := [f"{one.label}: {one.empty_predictions}" for one in members if one.empty_predictions]:
        lines.append(f"Empty predictions, which score 0: {', '.join(empty)}.")
    lines += _about_outputs(members)
    lines += dict.fromkeys(note for record in members if (note := _about_ranking(record)))
    if additional := dict.fromkeys(name for record in members for name in record.measured_by):
        lines.append(f"Also measured, in the CSV: {', '.join(sorted(additional))}.")
    interval = "± half its 95 % interval"
    if any(math.isnan(score.f_lo) for record in members for score in record.scores.values()):
        interval += ", where the scores of each example (scores.csv) exist"
    lines.append(f"ROUGE {ROUGE_PARTS[part]} (0–100) {interval}; {members[0].signature.replace('|', ' ')}")
    return tuple(lines)


def _about_outputs(members: Sequence[RunRecord]) -> list[str]:
    lengths = [one.outputs.reference_words for one in members if one.outputs and one.outputs.reference_words]
    lines = [f"Words: the mean length of the outputs; the references have {lengths[0]:.0f}."] if lengths else []
    for record in members:
        if warnings := output_warnings(record.outputs, record.outputs_cut):
            lines.append(f"Warning, {record.label}: {'; '.join(warnings)}.")
    return lines


def caution(members: Sequence[RunRecord]) -> str:
    """Return a warning if no trained run's 95 % interval lies above Lead's; empty otherwise."""
    name = ranking_score(members[0])
    leads = _estimates([one for one in members if one.model == _LEAD and not one.oracle], name)
    trained = _estimates([one for one in members if one.trained], name)
    if not leads or not trained or max(one.low for one in trained) > max(one.high for one in leads):
        return ""
    return (
        f"No trained system is ahead of Lead: no 95 % interval of {ROUGE_HEADINGS.get(name, name)} lies above Lead's."
    )


def _estimates(members: Iterable[RunRecord], name: str) -> list[Estimate]:
    """Return a number of each run that has it, with its interval."""
    found = [number for record in members if (number := measured_mean(record, name))]
    return [one for one in found if not math.isnan(one.low)]


def _about_ranking(record: RunRecord) -> str:
    """Describe the measure by which a run is ranked, and its value at chance; empty if ranked by ROUGE."""
    name = ranking_score(record)
    chance = record.measures.get(f"{name}_chance")
    reached = f"; chance reaches {chance.mean:.1f}" if chance else ""
    return "" if name in ROUGE_HEADINGS else f"{_MEANING.get(name, f'Ranked by {name} (0–100)')}{reached}."


def describe_budget(members: Sequence[RunRecord]) -> str:
    """Describe the training budget: optimizer steps × examples per step, and the total for batches by tokens."""
    models: dict[tuple[int, str], set[str]] = {}
    for record in members:
        if record.trained:
            models.setdefault((record.fit.steps, _step_size(record.settings.train)), set()).add(record.model)
    budgets = [(f"{format_count(steps, 'step')} × {size}", models[steps, size]) for steps, size in sorted(models)]
    if not budgets:
        return "" if any(record.imported for record in members) else "Nothing was trained for these rows."
    if len(budgets) == 1:
        return f"Equal budget: {budgets[0][0]}{_examples_of_tokens(members)}."
    return "Budgets differ: " + "; ".join(f"{text} ({', '.join(sorted(names))})" for text, names in budgets) + "."


def _examples_of_tokens(members: Sequence[RunRecord]) -> str:
    """Describe how many examples runs with batches by tokens were trained on; empty for others."""
    drawn = [one.fit.examples for one in members if one.trained and one.settings.train.batch_tokens]
    if not drawn:
        return ""
    least, most = min(drawn), max(drawn)
    return f", {least:,}{f' to {most:,}' if most > least else ''} examples in all"


def _step_size(recipe: RecordedTraining) -> str:
    passes = f"{recipe.accumulation} × " if recipe.accumulation > 1 else ""
    if recipe.batch_words:
        return f"{passes}batches of {recipe.batch_words:,} source words, 4 to 64 examples"
    if recipe.batch_tokens:
        return f"{passes}batches of {recipe.batch_tokens:,} source tokens"
    return format_count(recipe.batch_size * recipe.accumulation, "example")


def describe_training_differences(members: Sequence[RunRecord]) -> str:
    """Describe the `train` settings other than the budget in which the trained runs differ; empty if none."""
    recipes = [(record.config["train"], record.run_id[:SHORT_ID]) for record in members if record.trained]
    differences = []
    ignored = names_deciding(Recipe, "budget", "seed", "nothing")
    for key in dict.fromkeys(key for recipe, _ in recipes for key in recipe if key not in ignored):
        runs: dict[str, list[str]] = {}
        for recipe, run in recipes:
            runs.setdefault(format_plain_value(recipe.get(key)), []).append(run)
        if len(runs) > 1:
            values = ", ".join(f"{value} ({', '.join(sorted(runs[value]))})" for value in sorted(runs))
            differences.append(f"{key} {values}")
    return f"Rows differ in training: {'; '.join(differences)}." if differences else ""


def describe_starts(members: Sequence[RunRecord]) -> str:
    """Describe which models started from random weights and which from a checkpoint; empty if neither applies.

    Folders of checkpoints are reduced to their last name.
    """
    random, loaded = set(), set()
    for record in members:
        if (init := record.settings.model.get("init")) == "random":
            random.add(record.model)
        elif isinstance(init, str):  # in a plugin, `init` may have another meaning
            name = init if HUB_NAME.fullmatch(init) else PurePath(init).name or init
            loaded.add(f"{record.model} ({name})")
    starts = (("Random initial weights", random), ("From a checkpoint", loaded))
    return " ".join(f"{start}: {', '.join(sorted(models))}." for start, models in starts if models)
