"""How runs stand beside each other: who may be compared with whom, in what order, at what cost.

From records to blocks of a table; `leaderboard` puts the blocks together.
"""

from collections.abc import Sequence

from longsumbench.records import RunRecord
from longsumbench.tables import Block, Stressed

TYPES = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L", "rougeLsum": "R-Lsum"}
RANKED_BY = "rougeLsum"
SMALL_BUDGET = 100_000  # training examples, repetitions counted, below which no system has learned to write
SHORT_ID = 8
TOLD_ELSEWHERE = ("seed", "device", "workers", "max_steps", "batch_size", "accumulation")  # of the train settings

VIEW = ("model", "variant", "seed", *TYPES.values(), "source\nseen", "steps", "train\ntime", "run")
VIEW_ALIGN = "llrrrrrrrrl"
VIEW_WIDTHS = (("model", 20), ("variant", 30))


def condition(record: RunRecord) -> tuple[str, str, str, str]:
    """Return what must agree before two runs may be ranked together."""
    return record.split, record.fingerprint, record.examples, record.signature


def difference(one: RunRecord, other: RunRecord) -> str:
    """Say in what the conditions of two runs differ, from the first one's side; nothing when they agree."""
    parts = []
    if one.split != other.split:
        parts.append(f"{one.split} instead of {other.split} split")
    if one.fingerprint != other.fingerprint:
        parts.append(f"other texts ({one.fingerprint[:SHORT_ID]} instead of {other.fingerprint[:SHORT_ID]})")
    if one.examples != other.examples:
        parts.append(f"other examples ({one.n} instead of {other.n})")
    pairs = zip(one.signature.split("|"), other.signature.split("|"), strict=False)
    unlike = [f"{mine} instead of {its}" for mine, its in pairs if mine != its and not mine.startswith("n:")]
    if one.signature != other.signature and not (parts or unlike):
        unlike = ["other signature"]
    return ", ".join(parts + unlike)


def rank(record: RunRecord) -> tuple[bool, float, str, str, int, str]:
    """Return a sorting key: best first, oracles last; ties by name, variant and seed."""
    score = record.scores[RANKED_BY]["f"]
    return record.oracle, -score, record.model, record.variant, record.seed or 0, record.run_id


def source_seen(record: RunRecord) -> float | None:
    """Return the share of the source that was not cut, in percent of tokens; None without a ledger."""
    if record.source is None:
        return None
    unit = "tokens" if record.source["tokens"] else "words"
    whole = record.source[unit]
    return percent(whole - sum(cut[unit] for cut in record.source["cuts"]), whole)


def percent(part: float, whole: float | None) -> float | None:
    """Return a share in percent; None where there is no whole."""
    return 100.0 * part / whole if whole else None


def run_blocks(members: Sequence[RunRecord], first: RunRecord) -> list[Block]:
    """Return the ranking of comparable runs and, if there are any, their oracles.

    Args:
        members: runs that may be compared, best first.
        first: a run of the table's first group, from which the other groups are told apart.
    """
    heading = f"{members[0].split} split, {members[0].n:,} examples"
    if unlike := difference(members[0], first):
        heading += f"; not comparable with the first block: {unlike}"
    ranked = [record for record in members if not record.oracle]
    oracles = [record for record in members if record.oracle]
    best = {kind: max(record.scores[kind]["f"] for record in ranked) for kind in TYPES} if len(ranked) > 1 else {}
    blocks = [Block(heading, notes(members), VIEW, VIEW_ALIGN, [_row(one, best) for one in ranked], VIEW_WIDTHS)]
    if oracles:
        told = ("Oracles: they saw the references, or their lengths, and are not ranked.",)
        blocks.append(Block("", told, VIEW, VIEW_ALIGN, [_row(one, {}) for one in oracles], VIEW_WIDTHS))
    return blocks


def notes(members: Sequence[RunRecord]) -> tuple[str, ...]:
    """Say what the budget of a block was, what the block is good for, and what its numbers are."""
    lines = [line for line in (budget(members), training_differences(members)) if line]
    trained = [record for record in members if record.fit["steps"]]
    if any(record.scale == "tiny" or record.fit["examples"] < SMALL_BUDGET for record in trained):
        lines.append(
            "A check that everything works on real text, not a comparison of systems: "
            "after so little training no model has learned to write."
        )
    if left_out := len(members[0].empty_references):
        lines.append(f"Left out for want of a reference: {left_out:,} examples.")
    empty = [
        f"{one.model} {one.run_id[:SHORT_ID]}: {one.empty_predictions}" for one in members if one.empty_predictions
    ]
    if empty:
        lines.append(f"Empty predictions, which score 0: {', '.join(empty)}.")
    lines.append(f"ROUGE F1 (0–100) ± half its 95 % interval; {members[0].signature.replace('|', ' ')}")
    return tuple(lines)


def budget(members: Sequence[RunRecord]) -> str:
    """Say in one line whether the trained runs had the same optimizer steps × examples a step."""
    models: dict[tuple[int, int], set[str]] = {}
    for record in members:
        if steps := record.fit["steps"]:
            recipe = record.config["train"]
            models.setdefault((steps, recipe["batch_size"] * recipe["accumulation"]), set()).add(record.model)
    told = [(f"{steps:,} steps × {size} examples", models[steps, size]) for steps, size in sorted(models)]
    if not told:
        return "Nothing was trained for these rows."
    if len(told) == 1:
        return f"Equal budget: {told[0][0]}."
    return "Budgets differ: " + "; ".join(f"{text} ({', '.join(sorted(names))})" for text, names in told) + "."


def training_differences(members: Sequence[RunRecord]) -> str:
    """Name the `train` settings in which the trained runs differ, beside the budget, and whose they are."""
    recipes = [(record.config["train"], record.run_id[:SHORT_ID]) for record in members if record.fit["steps"]]
    told = []
    for key in dict.fromkeys(key for recipe, _ in recipes for key in recipe if key not in TOLD_ELSEWHERE):
        runs: dict[str, list[str]] = {}
        for recipe, run in recipes:
            runs.setdefault(_plain(recipe.get(key)), []).append(run)
        if len(runs) > 1:
            told.append(f"{key} " + ", ".join(f"{value} ({', '.join(sorted(runs[value]))})" for value in sorted(runs)))
    return f"Rows differ in training: {'; '.join(told)}." if told else ""


def _plain(value: object) -> str:
    """Write a setting's value as on the command line."""
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))


def _row(record: RunRecord, best: dict[str, float]) -> list[str]:
    oracle = record.oracle and record.model != "oracle"
    variant = record.variant.replace(",", ", ")
    seen, seconds = source_seen(record), record.fit["seconds"]
    return [
        f"{record.model} (oracle)" if oracle else record.model,
        variant if record.repeatable else f"{variant}{'; ' if variant else ''}not repeatable",
        "" if record.seed is None else str(record.seed),
        *(_score(record, kind, best) for kind in TYPES),
        "" if seen is None else f"{seen:.0f} %",
        f"{record.fit['steps']:,}" if record.fit["steps"] else "",
        duration(seconds) if record.fit["steps"] else "",
        record.run_id[:SHORT_ID],
    ]


def _score(record: RunRecord, kind: str, best: dict[str, float]) -> str:
    score = record.scores[kind]
    cell = f"{score['f']:.1f} ±{(score['f_hi'] - score['f_lo']) / 2:.1f}"
    return Stressed(cell) if score["f"] == best.get(kind) else cell


def duration(seconds: float) -> str:
    """Write a time for people: "42 s", "7.5 min", "3.2 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6_000 else f"{seconds / 3600:.1f} h"
