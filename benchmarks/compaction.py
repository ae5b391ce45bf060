"""Compares compactors of agents' sessions: which planted decisions, files, attempts and instructions survive.

    python benchmarks/compaction.py WEIGHTS [--model dtype=bfloat16] [--device cpu]
    python benchmarks/compaction.py --write       puts tables and sentences into docs/how-to/sessions.md; --check compares

WEIGHTS is a language model's GGUF file, folder or name. It compacts in two ways, and reads what all compactors leave. The
sessions are made up, so they are made again wherever they are needed.

What was fixed before the first run:

* Texts: four sessions in the shape of each of three tools' logs, of about 4,000 words, with ten planted facts each. A
  compactor may leave 300 words; the model's prompts have at most 1,500 tokens.
* Measures: the share of planted facts that is stated right (`fact_survival`), and of questions that the model answers right
  from what is left (`answers`).
* Tests: each compactor minus the last 300 words, for both measures, all corrected together (Holm). A session is a group.
* Added after the runs: what the reader gets right from another session (version 2 of `answers`).
* Known before: the facts that the two programs keep, 6.7 and 10.8 % by version 2 of `fact_survival` (now 3).
"""

import argparse
import json
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from probe_claims import Table
from readings import BUDGET, add_common_options, run_points, show_or_write, with_interval
from real_systems import KEPT, publish

import longsumbench
from longsumbench.core import PlantedFact
from longsumbench.leaderboards.seed_groups import ResultRow, compare_groups
from longsumbench.leaderboards.significance import CorrectedDifference, correct_differences
from longsumbench.leaderboards.table import read_table
from longsumbench.metrics.fact_matching import RIGHT, WRONG, match_facts
from longsumbench.runs.predictions import read_summaries
from longsumbench.runs.results import Results
from longsumbench.views.outcomes import describe_differences

PAGE, DATASET, OUTPUTS = "docs/how-to/sessions.md", "compaction", "predictions.jsonl"
SESSIONS, SESSION_WORDS, FACTS, WORDS = 4, 4_000, 10, 300
SURVIVAL, ANSWERS = "fact_survival", "answers"
BASE = "the last words"
PROGRAMS = {BASE: "last", "the last instructions": "instructions"}
READINGS = ("ends", "stages")
PROGRAM = "benchmarks/compactor.py"

# What made-up sessions are about.
PARTS = (
    "parser",
    "scheduler",
    "cache",
    "router",
    "exporter",
    "importer",
    "indexer",
    "mailer",
    "renderer",
    "uploader",
    "validator",
    "logger",
)
TASKS = (
    "The {part} drops the last row when the input has no line break at its end.",
    "Can you make the {part} read its limits from the environment?",
    "Users say that the {part} is slow on Mondays, please find out why.",
    "Add a test for the {part} that covers an empty file.",
    "The {part} writes its warnings twice since the last release.",
    "Rename the arguments of the {part} so that they say what they are.",
)
PLANS = (
    "I will read the {part} first, and then write a test that fails.",
    "Let me look at how the {part} is called before I change anything.",
    "I start with the tests of the {part}, because they show what is expected.",
)
FINDINGS = (
    "The {part} compares lengths before it strips blanks, so the check never applies.",
    "Two callers pass the {part} a list, and one passes a tuple, which it sorts in place.",
    "The loop of the {part} reads one line further than it writes.",
    "Nothing in the {part} closes the file when a row is refused.",
)
ENDINGS = (
    "All tests pass now, and I left the public names of the {part} as they were.",
    "The change to the {part} is small: one condition and one test.",
    "Done. The {part} keeps its old behaviour unless the new argument is given.",
)
CODE = (
    "def {verb}_{noun}(rows, limit=None):",
    "    kept = [row for row in rows if row.{noun}]",
    "    if limit is not None and len(kept) > limit:",
    "        raise ValueError(f'more than {{limit}} {noun}s')",
    "    for index, row in enumerate(kept):",
    "        yield index, row.{noun}, {verb}(row)",
    "    return {verb}_{noun}(rows, limit)",
)
VERBS = ("load", "read", "merge", "split", "check", "write", "count", "sort")
NOUNS = ("header", "column", "window", "batch", "page", "cell", "token", "label")


class Turn(NamedTuple):
    """What is said, called or returned in a session; `kind` is "user", "assistant", "call" or "result"."""

    kind: str
    text: str


def make_turns(draw: random.Random) -> Iterator[Turn]:
    """Yield the turns of a session."""
    words = 0
    while words < SESSION_WORDS:
        part = draw.choice(PARTS)
        code = [line.format(verb=draw.choice(VERBS), noun=draw.choice(NOUNS)) for line in CODE * 2]
        passed = draw.randint(20, 400)
        turns = [
            Turn("user", draw.choice(TASKS)),
            Turn("assistant", draw.choice(PLANS)),
            Turn("call", "sed -n 1,40p src/{part}.py"),
            Turn("result", "\n".join(code).replace("{", "(").replace("}", ")")),
            Turn("assistant", draw.choice(FINDINGS)),
            Turn("call", "python -m pytest -q tests/test_{part}.py"),
            Turn("result", f"{passed} passed, {draw.randint(0, 3)} skipped in {passed / 50:.2f}s"),
            Turn("assistant", draw.choice(ENDINGS)),
        ]
        for turn in turns:
            filled = turn._replace(text=turn.text.format(part=part))
            words += len(filled.text.split())
            yield filled


def write_claude_code(path: Path, turns: Sequence[Turn]) -> None:
    """Write a session as Claude Code logs it: a tree of lines with blocks."""
    lines = []
    parent = None
    for number, (kind, text) in enumerate(turns):
        name = f"{path.stem}-{number}"
        call = f"toolu_{number if kind == 'call' else number - 1}"
        blocks: dict[str, dict[str, Any]] = {
            "call": {
                "type": "tool_use",
                "id": call,
                "name": "Bash",
                "input": {"command": text},
            },
            "result": {"type": "tool_result", "tool_use_id": call, "content": text},
        }
        role = "user" if kind in ("user", "result") else "assistant"
        content = [blocks.get(kind, {"type": "text", "text": text})]
        message = {"role": role, "content": content}
        lines.append({"type": role, "uuid": name, "parentUuid": parent, "message": message})
        parent = name
    write_lines(path, lines)


def write_codex(path: Path, turns: Sequence[Turn]) -> None:
    """Write a session as Codex logs it: lines with payloads."""
    payloads: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(turns):
        if kind == "call":
            arguments = json.dumps({"command": ["bash", "-lc", text]})
            call = {"name": "shell", "arguments": arguments, "call_id": f"call_{number}"}
            payloads.append({"type": "function_call", **call})
        elif kind == "result":
            output = {"call_id": f"call_{number - 1}", "output": text}
            payloads.append({"type": "function_call_output", **output})
        else:
            block = "input_text" if kind == "user" else "output_text"
            content = [{"type": block, "text": text}]
            payloads.append({"type": "message", "role": kind, "content": content})
    write_lines(path, [{"type": "response_item", "payload": payload} for payload in payloads])


def write_openai(path: Path, turns: Sequence[Turn]) -> None:
    """Write a session in the format of OpenAI's chats."""
    messages: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(turns):
        if kind == "call":
            function = {"name": "bash", "arguments": json.dumps({"command": text})}
            calls = [{"id": f"call_{number}", "type": "function", "function": function}]
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        elif kind == "result":
            messages.append({"role": "tool", "tool_call_id": f"call_{number - 1}", "content": text})
        else:
            messages.append({"role": kind, "content": text})
    write_lines(path, [{"id": path.stem, "messages": messages}])


SHAPES = {"claude": write_claude_code, "codex": write_codex, "openai": write_openai}


def write_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def make_sessions(folder: Path) -> None:
    """Write all sessions into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for shape, write in SHAPES.items():
        for number in range(SESSIONS):
            turns = list(make_turns(random.Random(f"{shape}-{number}")))  # noqa: S311 - no secret
            write(folder / f"{shape}-{number}.jsonl", turns)


def make_runs(options: argparse.Namespace) -> None:
    """Make the runs that are missing."""
    folder = options.work / "sessions"
    make_sessions(folder)
    reader = dict(word.split("=", 1) for word in options.model)
    settings = ", ".join(f"{key}: {value}" for key, value in reader.items())
    words = [
        "dataset=sessions",
        f"dataset.name={DATASET}",
        f"dataset.path={folder}",
        f"dataset.plant={FACTS}",
        f"results_dir={options.work}",
        f"device={options.device}",
        "baselines=false",
        f"score.metrics=[{ANSWERS}]",
        f"score.answer_model={options.weights}",
        f"score.judge_settings={{{settings}}}",
        f"model.length={WORDS}",
    ]
    for method in PROGRAMS.values():
        command = f"python3 {PROGRAM} {method} {{words}} {{file}}"
        run_points(words, [{"model": "command", "model.command": f"'{command}'"}])
    model = {
        "model": "prompt",
        "model.checkpoint": options.weights,
        "model.prompt": "facts",
        "model.input_length": BUDGET,
        "model.decode_length": 2 * WORDS,
        "decode.no_repeat_ngram": 4,
        "decode.batch_size": options.batch_size,
        "decode.evidence": "none",
        **{f"model.{key}": value for key, value in reader.items()},
    }
    run_points(words, [{**model, "model.reading": reading} for reading in READINGS])


def label_of(row: ResultRow) -> str:
    """Return what compacts."""
    model = row.representative.config.model
    if row.representative.key.model == "prompt":
        return f"`{model['reading']}`"
    (label,) = [name for name, method in PROGRAMS.items() if f" {method} " in model["command"]]
    return label


def read_facts(work: Path) -> dict[str, Sequence[PlantedFact]]:
    """Return the id of each session → its planted facts."""
    folder = work / "sessions"
    make_sessions(folder)
    texts = longsumbench.load_dataset("sessions", path=str(folder), plant=FACTS)
    return {example.id: example.planted for example in texts.splits["test"]}


def count_outcomes(
    row: ResultRow, results: Results, facts: Mapping[str, Sequence[PlantedFact]]
) -> dict[str, list[str]]:
    """Return kind of planted fact → the outcome of each fact of that kind."""
    outcomes: dict[str, list[str]] = defaultdict(list)
    folder = results.run_folder(row.representative)
    for summary in read_summaries(folder / OUTPUTS):
        planted = facts[summary.id]
        for fact, outcome in zip(planted, match_facts(planted, summary.text), strict=True):
            outcomes[fact.kind].append(outcome)
    return dict(sorted(outcomes.items()))


def tables_of(
    rows: Sequence[ResultRow], results: Results, facts: Mapping[str, Sequence[PlantedFact]]
) -> list[Table]:
    """Return what survives, and what survives by kind with what is stated wrong."""
    lines: list[tuple[str, ...]] = []
    kinds_lines: list[tuple[str, ...]] = []
    kinds: list[str] = []
    for row in rows:
        evaluation = row.representative.evaluation
        outputs, counts = evaluation.outputs, row.representative.ledger.counts
        assert outputs is not None
        tokens = f"{counts['prompt_tokens'] / evaluation.n:,.0f}" if "requests" in counts else ""
        wrong = row.means[f"{SURVIVAL}_wrong"].mean
        lines.append(
            (
                label_of(row),
                with_interval(row, SURVIVAL),
                f"{wrong:.1f}",
                with_interval(row, ANSWERS),
                f"{row.means['answers_wrong'].mean:.1f}",
                f"{outputs.words:.0f}",
                tokens,
            )
        )
        outcomes = count_outcomes(row, results, facts)
        kinds = list(outcomes)
        cells = []
        for of_kind in outcomes.values():
            right, false = (of_kind.count(outcome) for outcome in (RIGHT, WRONG))
            cells.append(f"{right} / {false} of {len(of_kind)}")
        kinds_lines.append((label_of(row), *cells))
    headings = ("facts right", "wrong", "answers right", "wrong", "words", "tokens sent")
    return [
        Table(PAGE, ("compactor", *headings), lines),
        Table(PAGE, ("right / wrong", *kinds), kinds_lines),
    ]


def compare(rows: Sequence[ResultRow], scores: Any) -> dict[tuple[str, str], CorrectedDifference]:
    """Return (measure, compactor) → the compactor minus BASE, all corrected together."""
    by_label = {label_of(row): row for row in rows}
    pairs = {}
    for measure in (SURVIVAL, ANSWERS):
        for label, row in by_label.items():
            if label != BASE:
                pair = compare_groups(row, by_label[BASE], measure, scores)
                if pair is not None:
                    pairs[measure, label] = pair
    return correct_differences(pairs)


def sentences_of(rows: Sequence[ResultRow], scores: Any) -> Iterator[str]:
    """Yield what the tests say, and what the reader reaches."""
    differences = compare(rows, scores)
    for measure in (SURVIVAL, ANSWERS):
        of_measure = {
            label: difference.reversed()
            for (name, label), difference in differences.items()
            if name == measure
        }
        if of_measure:
            yield f"{describe_differences(BASE, of_measure, measure)}."
    means = rows[0].means
    guessed, unrelated, source, margin = (
        means[f"answers_{suffix}"] for suffix in ("guessed", "unrelated", "source", "margin")
    )
    can = "so it can tell" if margin.low > 0 else "which does not show that it can tell"
    yield (
        f"The reader answers {guessed.mean:.1f} % of the questions by guessing, {unrelated.mean:.1f} % from the best"
        f" sentences of another session and {source.mean:.1f} % from those of the session, {can}."
    )
    shares = fmean(row.means[ANSWERS].mean - row.means[SURVIVAL].mean for row in rows)
    above = fmean(row.means[ANSWERS].mean for row in rows) - unrelated.mean
    yield (
        f"On average over the compactors, answers are right {shares:+.1f} points more often than facts are stated, and"
        f" {above:+.1f} points more often than from another session."
    )


def main() -> None:
    """Make the runs, or print tables and sentences, put them into the page, or compare them with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_options(parser, "results/compaction", 0)
    options = parser.parse_args()
    results = Results(options.results_dir)
    if options.weights:
        make_runs(options)
    if options.weights or options.publish:
        records = sorted((options.work / "runs" / DATASET).glob("*/*/record.json"))
        folders = [record.parent for record in records]
        publish(folders, [DATASET], results, files=(*KEPT, OUTPUTS))
    table = read_table(results, DATASET)
    rows = [row for row in table.comparable[0].rows if not row.representative.oracle]
    if len(rows) < len(PROGRAMS) + len(READINGS):
        sys.exit(f"{PAGE}: {len(rows)} rows: run the program with a language model first")
    tables = tables_of(rows, results, read_facts(options.work))
    show_or_write(PAGE, tables, list(sentences_of(rows, table.scores)), options)


if __name__ == "__main__":
    main()
