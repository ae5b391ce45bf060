"""The notes above a table: budget, starts, cautions, units."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from longsumbench.api.config import LATER_SETTINGS
from longsumbench.formatting import format_count
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS, ROUGE_PARTS, _plain
from longsumbench.metrics.output_facts import output_warnings
from longsumbench.runs.record import SHORT_ID, RunRecord, measured_mean, ranked_by

PLANTED = "fact_recall"  # a measure of generated texts alone


_MEANING = {  # of measures by which runs are ranked
    "fact_recall": "Facts that the summaries state right, by how the source states them (silent same, other: put "
    "together from one section, from several), in percent ± half the 95 % interval. Ranked by all facts together "
    "(fact_recall in the CSV)"
}


_LEAD = "lead"  # the baseline that a trained system should be ahead of


HUB_NAME = re.compile(r"(?!\.\.?/)[\w.-]+/[\w.-]+")  # of a checkpoint: owner/name; others are folders


# Of the train settings, those that say nothing, or that the line on the budget tells.
_TOLD_ELSEWHERE = (
    "seed",
    "device",
    "workers",
    "max_steps",
    "batch_size",
    "batch_words",
    "batch_tokens",
    "accumulation",
)


def table_notes(members: Sequence[RunRecord], part: str = "f") -> tuple[str, ...]:
    """Say what the budget of a block was, what the block is good for, and what its numbers are."""
    lines = [
        line
        for line in (describe_budget(members), describe_training_differences(members), describe_starts(members))
        if line
    ]
    lines += [told] if (told := caution(members)) else []
    if left_out := len(members[0].empty_references):
        lines.append(f"Left out for want of a reference: {format_count(left_out, 'example')}.")
    empty = [
        f"{one.model} {one.run_id[:SHORT_ID]}: {one.empty_predictions}" for one in members if one.empty_predictions
    ]
    if empty:
        lines.append(f"Empty predictions, which score 0: {', '.join(empty)}.")
    lines += _about_outputs(members)
    if part == "f":
        lines += dict.fromkeys(told for record in members if (told := _measure_told(record)))
    if beside := dict.fromkeys(name for record in members for name in record.measured_by):
        lines.append(f"Also measured, in the CSV: {', '.join(sorted(beside))}.")
    doubt = "± half its 95 % interval"
    if any(None in (measured_mean(record, kind, part) or ()) for record in members for kind in ROUGE_HEADINGS):
        doubt += ", where the scores of each example (scores.csv) are at hand"
    lines.append(f"ROUGE {ROUGE_PARTS[part]} (0–100) {doubt}; {members[0].signature.replace('|', ' ')}")
    return tuple(lines)


def _about_outputs(members: Sequence[RunRecord]) -> list[str]:
    """Return notes on the length of the references, and on faults of each run's outputs."""
    lengths = [record.outputs["reference_words"] for record in members if "reference_words" in record.outputs]
    lines = [f"Words: the mean length of the outputs; the references have {lengths[0]:.0f}."] if lengths else []
    for record in members:
        if told := output_warnings(record.outputs, record.outputs_cut):
            lines.append(f"Warning, {record.model} {record.run_id[:SHORT_ID]}: {'; '.join(told)}.")
    return lines


def caution(members: Sequence[RunRecord]) -> str:
    """Return a note if no trained run's 95 % interval lies above Lead's, else an empty text."""
    name = ranked_by(members[0])
    highs = [high for _, high in _intervals([one for one in members if one.model == _LEAD and not one.oracle], name)]
    lows = [low for low, _ in _intervals([one for one in members if one.fit["steps"]], name)]
    if not highs or not lows or max(lows) > max(highs):
        return ""
    return (
        f"No trained system is ahead of Lead: no 95 % interval of {ROUGE_HEADINGS.get(name, name)} lies above Lead's."
    )


def _intervals(members: Iterable[RunRecord], name: str) -> list[tuple[float, float]]:
    """Return the interval of a number for each run that has it; its mean twice where there is no interval."""
    found = [number for record in members if (number := measured_mean(record, name))]
    return [(mean if low is None else low, mean if high is None else high) for mean, low, high in found]


def _measure_told(record: RunRecord) -> str:
    """Say by what a run is ranked beside ROUGE, and what chance reaches; nothing where ROUGE decides."""
    name = ranked_by(record)
    chance = record.measures.get(f"{name}_chance")
    reached = f"; chance reaches {chance['mean']:.1f}" if chance else ""
    return "" if name in ROUGE_HEADINGS else f"{_MEANING.get(name, f'Ranked by {name} (0–100)')}{reached}."


def describe_budget(members: Sequence[RunRecord]) -> str:
    """Say in one line whether the trained runs had the same optimizer steps × examples a step.

    Batches of so many tokens hold more examples the less of each is read: then it says how many there were in all.
    """
    models: dict[tuple[int, str], set[str]] = {}
    for record in members:
        if steps := record.fit["steps"]:
            models.setdefault((steps, _step_size(record.config["train"])), set()).add(record.model)
    told = [(f"{format_count(steps, 'step')} × {size}", models[steps, size]) for steps, size in sorted(models)]
    if not told:
        return "Nothing was trained for these rows."
    if len(told) == 1:
        return f"Equal budget: {told[0][0]}{_examples_of_tokens(members)}."
    return "Budgets differ: " + "; ".join(f"{text} ({', '.join(sorted(names))})" for text, names in told) + "."


def _examples_of_tokens(members: Sequence[RunRecord]) -> str:
    """Say how many examples runs whose batches go by tokens were trained on in all; nothing of others."""
    drawn = [one.fit["examples"] for one in members if one.fit["steps"] and one.config["train"].get("batch_tokens")]
    if not drawn:
        return ""
    least, most = min(drawn), max(drawn)
    return f", {least:,}{f' to {most:,}' if most > least else ''} examples in all"


def _step_size(recipe: Mapping[str, Any]) -> str:
    """Say what an optimizer step is trained on, as the recipe puts it."""
    passes = f"{recipe['accumulation']} × " if recipe["accumulation"] > 1 else ""
    if words := recipe.get("batch_words"):
        return f"{passes}batches of {words:,} source words, 4 to 64 examples"
    if tokens := recipe.get("batch_tokens"):
        return f"{passes}batches of {tokens:,} source tokens"
    return format_count(recipe["batch_size"] * recipe["accumulation"], "example")


def describe_training_differences(members: Sequence[RunRecord]) -> str:
    """Name the `train` settings in which the trained runs differ, beside the budget, and whose they are."""
    recipes = [(record.config["train"], record.run_id[:SHORT_ID]) for record in members if record.fit["steps"]]
    told = []
    for key in dict.fromkeys(key for recipe, _ in recipes for key in recipe if key not in _TOLD_ELSEWHERE):
        runs: dict[str, list[str]] = {}
        for recipe, run in recipes:
            runs.setdefault(_plain(recipe.get(key, LATER_SETTINGS.get(key))), []).append(run)
        if len(runs) > 1:
            told.append(f"{key} " + ", ".join(f"{value} ({', '.join(sorted(runs[value]))})" for value in sorted(runs)))
    return f"Rows differ in training: {'; '.join(told)}." if told else ""


def describe_starts(members: Sequence[RunRecord]) -> str:
    """Say which models' weights were random to begin with and which came from a checkpoint; nothing where none has any.

    Of a checkpoint in a folder, only the folder's own name is told.
    """
    random, loaded = set(), set()
    for record in members:
        if (init := record.config["model"].get("init")) == "random":
            random.add(record.model)
        elif isinstance(init, str):  # a system of another package may mean something else by the word
            name = init if HUB_NAME.fullmatch(init) else PurePath(init).name or init
            loaded.add(f"{record.model} ({name})")
    told = (("Weights at random to begin with", random), ("From a checkpoint", loaded))
    return " ".join(f"{how}: {', '.join(sorted(models))}." for how, models in told if models)
