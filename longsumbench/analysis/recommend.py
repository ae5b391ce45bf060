"""Which system for some texts? Runs systems on a sample, and says in three sentences what their table shows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from longsumbench.errors import SuiteError, UsageError
from longsumbench.formatting import format_count, format_duration
from longsumbench.leaderboards.blocks import row_cells, table_block
from longsumbench.leaderboards.columns import columns_of
from longsumbench.leaderboards.comparability import comparison_key, heading_of
from longsumbench.leaderboards.learned import judge_learning
from longsumbench.leaderboards.notes import describe_unlearned, describe_untrained
from longsumbench.leaderboards.seed_groups import Difference, ScoresOfRuns, SeedGroup, difference, group_by_seed
from longsumbench.leaderboards.significance import ComparableRows, against_best, read_all_scores
from longsumbench.report.tables import terminal_block, wrap_text
from longsumbench.runs.overrides import format_overrides
from longsumbench.runs.record import RunRecord, ranking_score, source_seen
from longsumbench.runs.results import Results
from longsumbench.sweeps.run import plan_launch
from longsumbench.sweeps.tables import updating_tables

SAMPLE = 100  # examples that are summarized
_FEWEST = 20  # examples from which systems can be told apart
_WHOLE = 99.5  # percent of a text
_COLUMNS = ("source_seen", "seconds", "summarize_seconds", "peak_memory_gb", "price", "run")


def texts_overrides(words: Sequence[str]) -> list[str]:
    """Return settings of a dataset: as typed, or those of one file or folder of JSON lines.

    Raises:
        UsageError: several paths, or a path and `dataset=`.
    """
    paths = [word for word in words if "=" not in word or Path(word).exists()]
    settings = [word for word in words if word not in paths]
    named = any(word.startswith("dataset=") for word in settings)
    if len(paths) > 1 or (paths and named):
        raise UsageError("name one file or folder of JSON lines, or dataset=NAME with its dataset.* settings")
    if not paths:
        return settings
    path = Path(paths[0]).expanduser()
    name = f"texts-{re.sub(r'[^a-zA-Z0-9_.-]', '-', path.name.partition('.')[0])}"[:60]
    split = {"dataset.split_by_hash": True} if path.is_file() else {}
    given = {"dataset": "jsonl", "dataset.name": name, "dataset.path": str(path), **split}
    typed = {word.partition("=")[0] for word in settings}
    return [*format_overrides({key: value for key, value in given.items() if key not in typed}), *settings]


def recommend(
    words: Sequence[str], more: Sequence[Sequence[str]], command: tuple[str, ...], show: Callable[[str], None]
) -> None:
    """Run baselines, trained scorers and other systems on a sample of some texts, and show what to choose.

    All systems are checked before the first one runs. Those that fail do not affect the others.

    Args:
        words: the texts, and settings for all systems.
        more: the settings of each further system, such as a checkpoint.
        command: everything as typed, for the records.
        show: is given the table and the sentences.

    Raises:
        SuiteError: settings are invalid, or a system failed; the others are shown before.
    """
    texts = texts_overrides(words)
    if not any(word.startswith("decode.limit=") for word in texts):
        texts.append(f"decode.limit={SAMPLE}")
    launches = [plan_launch(["experiment=recommend", *texts], True, None, command)]
    launches += [plan_launch([*texts, "scale=paper", "baselines=false", *own], False, None, command) for own in more]
    failed: list[SuiteError] = []
    for launch in launches:
        try:
            with updating_tables(launch):
                launch.start()
        except SuiteError as problem:
            failed.append(problem)
    results = Results(Path(launches[0].points[0].config.results_dir).expanduser())
    runs = list({run.run_id: run for launch in launches for run in launch.finished}.values())
    if runs:
        show(describe_recommendation(runs, read_all_scores(results, runs)))
    if failed:
        raise failed[0]


def describe_recommendation(runs: Sequence[RunRecord], scores: ScoresOfRuns) -> str:
    """Return the table of systems on the same examples, and three sentences: what to choose, what it reads, its cost.

    Args:
        runs: on the same examples; others than those of the first one are left out.
        scores: their scores per example, 0–1.
    """
    same = [run for run in runs if comparison_key(run) == comparison_key(runs[0])]
    rows = group_by_seed(same, scores)
    learned, first = judge_learning(rows, scores), runs[0]
    rows = tuple(replace(row, learned=learned[row.key]) for row in rows)
    block = ComparableRows(rows, against_best(rows, scores))
    known = columns_of(same)
    columns = [known[name] for name in ("system", "settings", ranking_score(first), *_COLUMNS)]
    heading = f"{first.dataset}, {first.split} split, {format_count(first.n, 'example')}"
    table = terminal_block(table_block(columns, row_cells(block, columns)))
    sentences = [*describe_choice(rows, scores), describe_untrained(rows), describe_unlearned(rows)]
    return "\n".join([heading, "", table, "", *(wrap_text(sentence) for sentence in sentences if sentence)])


def describe_choice(rows: Sequence[SeedGroup], scores: ScoresOfRuns) -> list[str]:
    """Return three sentences about comparable rows, best first; one if there is nothing to choose from."""
    ranked = [row for row in rows if row.ranked]
    if not ranked:
        return ["No system can be recommended: none of them learned."]
    best, name = ranked[0], ranking_score(rows[0].first)
    ahead = {row.key: difference(best, row, name, scores) for row in ranked[1:]}
    alike = [best, *(row for row in ranked[1:] if not _is_clear(ahead[row.key]))]
    chosen = min(alike, key=_cost)
    return [_describe_quality(chosen, ranked, alike, name, ahead), _describe_reading(chosen), _describe_cost(chosen)]


def _is_clear(found: Difference | None) -> bool:
    """Return True if the whole 95 % interval is above 0."""
    return found is not None and found.examples >= _FEWEST and found.low > 0


def _cost(row: SeedGroup) -> tuple[float, float]:
    """Return the price in US dollars and the seconds of a row's first run."""
    run = row.first
    return run.counts.get("price", 0.0), run.fit.seconds + run.timings.summarize


def _describe_quality(
    chosen: SeedGroup,
    ranked: Sequence[SeedGroup],
    alike: Sequence[SeedGroup],
    name: str,
    ahead: dict[str, Difference | None],
) -> str:
    best, heading, n = ranked[0], heading_of(name), ranked[0].first.n
    if n < _FEWEST:
        return f"Choose {chosen.label} for now: {format_count(n, 'example')} cannot tell the systems apart."
    if len(alike) > 1:
        others = " or ".join(row.label for row in alike if row is not chosen)
        return f"Choose {chosen.label}: in {heading} no difference from {others} is shown, and it costs the least."
    if len(ranked) == 1:
        return f"Choose {best.label}: it is the only one with a place."
    found = ahead[ranked[1].key]
    assert found is not None
    bounds = f"{found.mean:+.1f} (95 % interval {found.low:+.1f} to {found.high:+.1f})"
    return f"Choose {best.label}: its {heading} is {bounds} from the next, {ranked[1].label}."


def _describe_reading(row: SeedGroup) -> str:
    seen = source_seen(row.first)
    if seen is None:
        return f"How much of a text {row.label} reads is not known."
    if seen >= _WHOLE:
        return f"{row.label} reads the texts to their ends."
    return f"{row.label} never reads {100 - seen:.0f} % of the texts: what is only there is in no summary."


def _describe_cost(row: SeedGroup) -> str:
    run = row.first
    trained = f"{format_duration(run.fit.seconds)} of training, then " if run.trained else ""
    each = run.timings.summarize / max(1, run.num_outputs)
    price = run.counts.get("price", 0.0) / max(1, run.num_outputs)
    dollars = f", and US$ {1_000 * price:,.2f} for 1,000 texts" if price else ""
    return f"{row.label} takes {trained}{each:.2g} s a text{dollars}."
