"""How runs stand beside each other: who may be compared with whom, in what order, at what cost.

From records to blocks of a table; `leaderboard` puts the blocks together.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import groupby
from operator import itemgetter
from pathlib import PurePath
from typing import Any

from longsumbench.api.config import LATER
from longsumbench.formatting import counted, duration
from longsumbench.metrics.output_facts import output_warnings
from longsumbench.report.tables import Block, Stressed, Tied
from longsumbench.runs.record import RANKED_BY, SHORT_ID, RunRecord, mean_of, parts_of, ranked_by, source_seen

TYPES = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L", "rougeLsum": "R-Lsum"}
PARTS = {"f": "F1", "p": "precision", "r": "recall"}  # of ROUGE: as scores name them → as tables do
MEASURES = {  # what is shown of them; of a metric that is not among these, its first measure
    "fact_recall_single": "single",
    "fact_recall_relayed": "relayed",
    "fact_recall_silent_same": "silent\nsame",
    "fact_recall_silent_other": "silent\nother",
    "fact_recall_plain": "plain",
    "fact_recall_repeated": "repeated",
    "fact_recall_overruled": "over-\nruled",
}
PLANTED = "fact_recall"  # a measure of generated texts alone
MEANING = {  # of measures by which runs are ranked
    "fact_recall": "Facts that the summaries state right, by how the source states them (silent same, other: put "
    "together from one section, from several), in percent ± half the 95 % interval. Ranked by all facts together "
    "(fact_recall in the CSV)"
}
TYPES_BESIDE_MEASURES = (RANKED_BY,)  # of ROUGE; all of them stand in the CSV
LEAD = "lead"  # the baseline that a trained system should be ahead of
HUB_NAME = re.compile(r"(?!\.\.?/)[\w.-]+/[\w.-]+")  # of a checkpoint: owner/name; others are folders
# Of the train settings, those that say nothing, or that the line on the budget tells.
TOLD_ELSEWHERE = ("seed", "device", "workers", "max_steps", "batch_size", "batch_words", "batch_tokens", "accumulation")

DECIDES_NO_TEXT = ("name", "split", "workers")  # of the dataset settings

WHO, COST = ("model", "variant", "seed"), ("source\nseen", "steps", "train\ntime", "run")
VIEW = (*WHO, *TYPES.values(), *COST)
VIEW_WIDTHS = (("model", 20), ("variant", 30))
VIEW_WIDTHS_BESIDE_MEASURES = (("model", 13), ("variant", 15))


def condition(record: RunRecord) -> tuple[str, str, str, str]:
    """Return what must agree before two runs may be ranked together."""
    return record.split, record.fingerprint, record.examples, record.signature


def difference(one: RunRecord, other: RunRecord) -> str:
    """Say in what the conditions of two runs differ, from the first one's side; nothing when they agree."""
    parts = []
    if one.split != other.split:
        parts.append(f"{one.split} instead of {other.split} split")
    if one.fingerprint != other.fingerprint:
        hashes = f"{one.fingerprint[:SHORT_ID]} instead of {other.fingerprint[:SHORT_ID]}"
        parts.append(f"other texts ({unlike_dataset_settings(one, other) or hashes})")
    if one.examples != other.examples:
        numbers = f" ({one.n} instead of {other.n})" if one.n != other.n else ""
        parts.append(f"other examples{numbers}")
    pairs = zip(one.signature.split("|"), other.signature.split("|"), strict=False)
    unlike = [f"{mine} instead of {its}" for mine, its in pairs if mine != its and not mine.startswith("n:")]
    if one.signature != other.signature and not (parts or unlike):
        unlike = ["other signature"]
    return ", ".join(parts + unlike)


def unlike_dataset_settings(one: RunRecord, other: RunRecord) -> str:
    """Name the `dataset` settings that explain why two runs read other texts; empty if none does."""
    if one.dataset != other.dataset:
        return ""
    mine, its = _dataset_settings(one), _dataset_settings(other)
    keys = [key for key in {**mine, **its} if mine.get(key, "null") != its.get(key, "null")]
    return ", ".join(f"dataset.{key}={mine.get(key, 'null')} instead of {its.get(key, 'null')}" for key in keys)


def _dataset_settings(record: RunRecord) -> dict[str, str]:
    """Return the `dataset` settings that decide which texts are read; of a path only the last name."""
    settings = {key: value for key, value in record.config["dataset"].items() if key not in DECIDES_NO_TEXT}
    path = settings.get("path")
    settings["path"] = path and (PurePath(path).name or path)
    settings["strict"] = settings.get("strict") is not False  # null, the default today, is what true was in old records
    return {key: _plain(value) for key, value in settings.items()}


def rank(record: RunRecord, part: str = "f") -> tuple[bool, float, str, str, int, str]:
    """Return a sorting key by a part of ROUGE: best first, oracles last; ties by name, variant and seed."""
    score = mean_of(record, ranked_by(record, part), part)
    assert score is not None
    return record.oracle, -score[0], record.model, record.variant, record.seed or 0, record.run_id


def run_blocks(
    members: Sequence[RunRecord],
    first: RunRecord,
    tied: Set[tuple[str, str]] = frozenset(),
    tested: str = "",
    part: str = "f",
) -> list[Block]:
    """Return the ranking of comparable runs and, if there are any, their oracles.

    Args:
        members: runs that may be compared, best first.
        first: a run of the table's first group, from which the other groups are told apart.
        tied: the (run id, number) that cannot be told from the best of their column.
        tested: what is said of how that was found out; empty where nothing was tested.
        part: of ROUGE, that is shown: one of `PARTS`.
    """
    heading = f"{members[0].split} split, {counted(members[0].n, 'example')}"
    if unlike := difference(members[0], first):
        heading += f"; not comparable with the first block: {unlike}"
    ranked = [record for record in members if not record.oracle]
    oracles = [record for record in members if record.oracle]
    shown = numbers_shown(members, part)
    widths = VIEW_WIDTHS if set(shown) <= set(TYPES) else VIEW_WIDTHS_BESIDE_MEASURES
    words = any(record.outputs for record in members)
    view = (*WHO, *shown.values(), *(["words"] if words else []), *COST)
    align = f"ll{'r' * (len(view) - 3)}l"
    best = {}
    if len(ranked) > 1:
        best = {name: mean for name, (mean, _) in best_runs(ranked, shown, part).items()}
    told = (*notes(members, part), tested) if tested else notes(members, part)
    groups = _groups(shown, part, words)
    rows = [_row(one, shown, best, tied, part, words) for one in ranked]
    blocks = [Block(heading, told, view, align, rows, widths, groups)] if ranked else []
    if oracles:
        heading, told = ("", ()) if ranked else (heading, told)  # which then stand above the ranking
        told = (*told, "Oracles: they saw the references, or their lengths, and are not ranked.")
        rows = [_row(one, shown, {}, frozenset(), part, words) for one in oracles]
        blocks.append(Block(heading, told, view, align, rows, widths, groups))
    return blocks


def best_runs(ranked: Sequence[RunRecord], shown: Iterable[str], part: str = "f") -> dict[str, tuple[float, RunRecord]]:
    """Return for each number that was measured the highest mean and the run that has it, the first of several."""
    best = {}
    for name in shown:
        if found := [(number[0], record) for record in ranked if (number := mean_of(record, name, part))]:
            best[name] = max(found, key=itemgetter(0))
    return best


def _groups(shown: Iterable[str], part: str, words: bool) -> tuple[tuple[str, int], ...]:
    """Return the headings over the columns of a view: of planted facts, of ROUGE and of training."""
    kinds = [
        f"ROUGE {PARTS[part]}" if name in TYPES else "facts stated right" if name in MEASURES else "" for name in shown
    ]
    numbers = [(heading, len(list(columns))) for heading, columns in groupby(kinds)]
    return (("", len(WHO)), *numbers, ("", 1 + words), ("training", 2), ("", 1))


def numbers_shown(members: Sequence[RunRecord], part: str = "f") -> dict[str, str]:
    """Return the numbers that a block shows: name → heading; what runs are ranked by beside ROUGE comes first.

    What was asked for beside the metrics of the dataset stands in the CSV alone. Beside precision or recall of ROUGE,
    nothing else is shown.
    """
    first = ranked_by(members[0], part)
    if first in TYPES:
        return TYPES
    measured = {name for record in members for name in record.measures}
    shown = {name: heading for name, heading in MEASURES.items() if name in measured}
    return {**(shown or {first: first}), **{kind: TYPES[kind] for kind in TYPES_BESIDE_MEASURES}}


def notes(members: Sequence[RunRecord], part: str = "f") -> tuple[str, ...]:
    """Say what the budget of a block was, what the block is good for, and what its numbers are."""
    lines = [line for line in (budget(members), training_differences(members), starts(members)) if line]
    lines += [told] if (told := caution(members)) else []
    if left_out := len(members[0].empty_references):
        lines.append(f"Left out for want of a reference: {counted(left_out, 'example')}.")
    empty = [
        f"{one.model} {one.run_id[:SHORT_ID]}: {one.empty_predictions}" for one in members if one.empty_predictions
    ]
    if empty:
        lines.append(f"Empty predictions, which score 0: {', '.join(empty)}.")
    lines += _about_outputs(members)
    if part == "f":
        lines += dict.fromkeys(told for record in members if (told := measure_told(record)))
    if beside := dict.fromkeys(name for record in members for name in record.measured_by):
        lines.append(f"Also measured, in the CSV: {', '.join(sorted(beside))}.")
    doubt = "± half its 95 % interval"
    if any(None in (mean_of(record, kind, part) or ()) for record in members for kind in TYPES):
        doubt += ", where the scores of each example (scores.csv) are at hand"
    lines.append(f"ROUGE {PARTS[part]} (0–100) {doubt}; {members[0].signature.replace('|', ' ')}")
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
    highs = [high for _, high in _intervals([one for one in members if one.model == LEAD and not one.oracle], name)]
    lows = [low for low, _ in _intervals([one for one in members if one.fit["steps"]], name)]
    if not highs or not lows or max(lows) > max(highs):
        return ""
    return f"No trained system is ahead of Lead: no 95 % interval of {TYPES.get(name, name)} lies above Lead's."


def _intervals(members: Iterable[RunRecord], name: str) -> list[tuple[float, float]]:
    """Return the interval of a number for each run that has it; its mean twice where there is no interval."""
    found = [number for record in members if (number := mean_of(record, name))]
    return [(mean if low is None else low, mean if high is None else high) for mean, low, high in found]


def measure_told(record: RunRecord) -> str:
    """Say by what a run is ranked beside ROUGE, and what chance reaches; nothing where ROUGE decides."""
    name = ranked_by(record)
    chance = record.measures.get(f"{name}_chance")
    reached = f"; chance reaches {chance['mean']:.1f}" if chance else ""
    return "" if name in TYPES else f"{MEANING.get(name, f'Ranked by {name} (0–100)')}{reached}."


def budget(members: Sequence[RunRecord]) -> str:
    """Say in one line whether the trained runs had the same optimizer steps × examples a step.

    Batches of so many tokens hold more examples the less of each is read: then it says how many there were in all.
    """
    models: dict[tuple[int, str], set[str]] = {}
    for record in members:
        if steps := record.fit["steps"]:
            models.setdefault((steps, step_size(record.config["train"])), set()).add(record.model)
    told = [(f"{counted(steps, 'step')} × {size}", models[steps, size]) for steps, size in sorted(models)]
    if not told:
        return "Nothing was trained for these rows."
    if len(told) == 1:
        return f"Equal budget: {told[0][0]}{examples_of_tokens(members)}."
    return "Budgets differ: " + "; ".join(f"{text} ({', '.join(sorted(names))})" for text, names in told) + "."


def examples_of_tokens(members: Sequence[RunRecord]) -> str:
    """Say how many examples runs whose batches go by tokens were trained on in all; nothing of others."""
    drawn = [one.fit["examples"] for one in members if one.fit["steps"] and one.config["train"].get("batch_tokens")]
    if not drawn:
        return ""
    least, most = min(drawn), max(drawn)
    return f", {least:,}{f' to {most:,}' if most > least else ''} examples in all"


def step_size(recipe: Mapping[str, Any]) -> str:
    """Say what an optimizer step is trained on, as the recipe puts it."""
    passes = f"{recipe['accumulation']} × " if recipe["accumulation"] > 1 else ""
    if words := recipe.get("batch_words"):
        return f"{passes}batches of {words:,} source words, 4 to 64 examples"
    if tokens := recipe.get("batch_tokens"):
        return f"{passes}batches of {tokens:,} source tokens"
    return counted(recipe["batch_size"] * recipe["accumulation"], "example")


def training_differences(members: Sequence[RunRecord]) -> str:
    """Name the `train` settings in which the trained runs differ, beside the budget, and whose they are."""
    recipes = [(record.config["train"], record.run_id[:SHORT_ID]) for record in members if record.fit["steps"]]
    told = []
    for key in dict.fromkeys(key for recipe, _ in recipes for key in recipe if key not in TOLD_ELSEWHERE):
        runs: dict[str, list[str]] = {}
        for recipe, run in recipes:
            runs.setdefault(_plain(recipe.get(key, LATER.get(key))), []).append(run)
        if len(runs) > 1:
            told.append(f"{key} " + ", ".join(f"{value} ({', '.join(sorted(runs[value]))})" for value in sorted(runs)))
    return f"Rows differ in training: {'; '.join(told)}." if told else ""


def starts(members: Sequence[RunRecord]) -> str:
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


def _plain(value: object) -> str:
    """Write a setting's value as on the command line."""
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


def _row(
    record: RunRecord,
    shown: Iterable[str],
    best: Mapping[str, float],
    tied: Set[tuple[str, str]],
    part: str,
    words: bool,
) -> list[str]:
    oracle = record.oracle and record.model != "oracle"
    told = (", ".join(parts_of(record.variant)), *remarks(record))
    seen, seconds = source_seen(record), record.fit["seconds"]
    return [
        f"{record.model} (oracle)" if oracle else record.model,
        "; ".join(part for part in told if part),
        "" if record.seed is None else str(record.seed),
        *(_cell(record, name, best, tied, part) for name in shown),
        *([f"{record.outputs['words']:.0f}" if "words" in record.outputs else ""] if words else []),
        "" if seen is None else f"{seen:.0f} %",
        f"{record.fit['steps']:,}" if record.fit["steps"] else "",
        duration(seconds) if record.fit["steps"] else "",
        record.run_id[:SHORT_ID],
    ]


def remarks(record: RunRecord) -> list[str]:
    """Say of a run what no setting of its variant says."""
    averaged = len(record.fit.get("averaged", ()))
    told = {
        "not repeatable": not record.repeatable,
        f"mean of {len(record.checkpoints)} checkpoints": record.checkpoints,
        f"weights of {averaged} checkpoints averaged": averaged,
    }
    return [remark for remark, holds in told.items() if holds]


def _cell(record: RunRecord, name: str, best: Mapping[str, float], tied: Set[tuple[str, str]], part: str) -> str:
    if (number := mean_of(record, name, part)) is None:
        return ""
    mean, low, high = number
    cell = f"{mean:.1f}" if low is None or high is None else f"{mean:.1f} ±{(high - low) / 2:.1f}"
    if mean == best.get(name):
        return Stressed(cell)
    return Tied(cell) if (record.run_id, name) in tied else cell
