"""Runs language models with strategies for long texts, and compares the strategies at equal length.

    python benchmarks/strategies.py WEIGHTS --name NAME [--parts one several questions] [--device cuda]
    python benchmarks/strategies.py --write       puts tables into docs/readings.md and front pages; --check compares

WEIGHTS is a GGUF file, a folder or a name on the hub; NAME is what the page calls the model. Run it again to continue it:
finished runs are kept in `--work`. Each run is scored twice, at its own length and as the first words that were asked for.
Elsewhere, unpack results/reference/bundles/strategies_aclsum.tar.xz into `--work`, and run it in the folder of the weights
with their bare name: published runs know no more of a path.

What was fixed before the first run:

* Texts: PART.examples test examples, in the order of the dataset. Prompts have at most 1,500 tokens, but those of
  `beginning of 7900`. Models write greedily, without a repeated 4-gram, so there is one answer to a prompt.
* Measure: R-Lsum of the first words that were asked for. R-Lsum at its own length is shown, too.
* Tests: each strategy of a part minus `beginning`, for each model, all of a part together (Holm); and for each strategy the
  difference of these differences between the two models, all of a part together. Questions about a paper are one group.
* Known before: R-Lsum of Qwen2.5-Coder-0.5B with six readings of eight papers of `aclsum`, and that of SmolLM2-135M with
  eight readings of 100 papers (docs/readings.md).
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from probe_claims import FRONT_PAGES, ROOT, Table, differences, picture_differences, put_tables
from readings import (
    BUDGET,
    LARGE_BUDGET,
    SETS,
    add_common_options,
    costs_of,
    extracts_of,
    label_of,
    prompted_model,
    run_points,
    show_or_write,
    with_interval,
    words_of,
)
from real_systems import KEPT, publish

import longsumbench
from longsumbench.formatting import format_interval
from longsumbench.leaderboards.seed_groups import (
    PairDifference,
    ResultRow,
    ScoresOfRuns,
    aligned_scores,
    compare_examples,
    compare_groups,
)
from longsumbench.leaderboards.significance import (
    CorrectedDifference,
    Outcome,
    correct_differences,
)
from longsumbench.leaderboards.table import read_table
from longsumbench.runs.record import RunRecord, source_seen
from longsumbench.runs.results import Results
from longsumbench.views.figures import (
    COLOURS,
    GREY,
    TEXT,
    add_title_and_notes,
    plain_axes,
    render_picture,
)
from longsumbench.views.outcomes import describe_differences, describe_pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE, SCORE = "docs/readings.md", "rougeLsum"
PERCENT = 100
OUTPUTS = "predictions.jsonl"
BASE = "beginning"
COMMON = {
    "reading": BASE,
    "input_length": BUDGET,
    "merge_with": None,
    "shrink": 1.0,
    "final": False,
}
STRATEGIES: dict[str, dict[str, Any]] = {  # name → what differs from COMMON
    BASE: {},
    "ends": {"reading": "ends"},
    "select": {"reading": "select"},
    "beginning of 7900": {"input_length": LARGE_BUDGET},
    "stages": {"reading": "stages"},
    "merging with the summary before": {
        "reading": "stages",
        "merge_with": "previous",
        "shrink": 0.65,
    },
    "merging with passages": {"reading": "stages", "merge_with": "passages"},
    "refine": {"reading": "refine"},
    "chain of agents": {"reading": "refine", "final": True},
}


class Part(NamedTuple):
    """Strategies that are tested together.

    Attributes:
        title: of its table.
        texts: a name of SETS.
        examples: how many test examples are read.
        strategies: what is compared with BASE.
    """

    title: str
    texts: str
    examples: int
    strategies: tuple[str, ...]

    @property
    def dataset(self) -> str:
        """The name of its texts in the results."""
        return f"strategies_{self.texts}"


PARTS = {
    "one": Part("ACLSum papers", "aclsum", 40, ("ends", "select", "beginning of 7900")),
    "several": Part(
        "ACLSum papers in parts",
        "aclsum",
        40,
        (
            "stages",
            "merging with the summary before",
            "merging with passages",
            "refine",
            "chain of agents",
        ),
    ),
    "questions": Part("Questions about papers", "aclsum_aspects", 99, ("ends", "select")),
}


class Row(NamedTuple):
    """A model with a strategy, at its own length and cut to the asked one."""

    uncut: ResultRow
    cut: ResultRow


Rows = Mapping[tuple[str, str], Row]  # by model and strategy
FRONT_PART = PARTS["one"]
PICTURE = "docs/pictures/readings.png"
IN_WORDS = {  # a strategy of FRONT_PART or an extract → what it does
    BASE: "reads the beginning",
    "ends": "reads the beginning and the end",
    "select": "reads the most central sentences",
    "beginning of 7900": "reads the first 7,900 tokens",
    "ranker by embedding_lexrank": "copies the sentences nearest to all others",
    "lexrank": "copies the sentences that share words with most others",
    "lead": "copies the first 120 words",
    "random": "copies random sentences",
}


def make_runs(part: Part, options: argparse.Namespace) -> None:
    """Make the runs of a part that are missing, and those of extracts."""
    texts = SETS[part.texts]
    options.examples = part.examples
    words = words_of(texts, part.dataset, options)
    run_points(words, extracts_of(texts, options.encoder))
    model = prompted_model(texts, options)
    for strategy in (BASE, *part.strategies):
        settings = {f"model.{key}": value for key, value in STRATEGIES[strategy].items()}
        run_points(words, [{**model, "model.input_length": BUDGET, **settings}])
        cut_outputs(part, strategy, options)


def cut_outputs(part: Part, strategy: str, options: argparse.Namespace) -> None:
    """Import the outputs of a strategy with a limit on their words."""
    results = Results(options.work)
    of_model = {**COMMON, **STRATEGIES[strategy], "checkpoint": options.weights}
    texts = SETS[part.texts]
    settings: dict[str, Any] = {"dataset.name": part.dataset, "results_dir": options.work}
    settings["score.max_words"] = texts.words
    for run in results.records(part.dataset):
        if of_model.items() <= run.config.model.items():
            longsumbench.import_outputs(
                results.run_folder(run),
                model=options.name,
                variant=strategy,
                dataset={"name": texts.reader},
                intersect=True,
                baselines=False,
                **settings,
            )


def writes_text(run: RunRecord) -> bool:
    """Return True for a run of a language model, whose outputs may be imported."""
    return run.imported is not None or run.key.model == "prompt"


def publish_parts(parts: Sequence[Part], options: argparse.Namespace) -> None:
    """Pack the runs of some parts, those of language models with their outputs; extracts are sentences of others."""
    results = Results(options.work)
    published = Results(options.results_dir)
    for name in sorted({part.dataset for part in parts}):
        folders: dict[bool, list[Path]] = {True: [], False: []}
        for run in results.records(name):
            folders[writes_text(run)].append(results.run_folder(run))
        publish(folders[True], [name], published, keep=True, files=(*KEPT, OUTPUTS))
        if folders[False]:
            publish(folders[False], [name], published, keep=True)


def read_rows(results: Results, part: Part) -> tuple[Rows, list[ResultRow], ScoresOfRuns]:
    """Return the rows of a part that have runs, the rows that copy sentences, and the scores of all."""
    table = read_table(results, part.dataset)
    uncut: dict[str, ResultRow] = {}
    extracts: list[ResultRow] = []
    cut: list[ResultRow] = []
    for block in table.comparable:
        for row in block.rows:
            if row.representative.imported:
                cut.append(row)
            elif row.representative.key.model == "prompt":
                uncut[row.representative.run_id] = row
            else:
                extracts.append(row)
    rows = {}
    for row in cut:
        model, strategy = row.representative.key.model, row.representative.variant
        if strategy in (BASE, *part.strategies):
            rows[model, strategy] = Row(uncut[imported_from(row.representative)], row)
    return rows, extracts, table.scores


def imported_from(record: RunRecord) -> str:
    """Return the id of the run whose outputs were imported."""
    assert record.imported is not None
    return record.imported.file


def models_of(rows: Rows) -> list[str]:
    """Return the models that have a row of BASE."""
    return sorted(model for model, strategy in rows if strategy == BASE)


def missing_rows(rows: Rows, part: Part) -> list[str]:
    """Return what two models need before a part is tested: its tests are corrected together."""
    models = models_of(rows)
    missing = ["a second model"] if len(models) < 2 else []
    for model in models:
        missing += [f"{model}, {name}" for name in part.strategies if (model, name) not in rows]
    return missing


def gains_of(rows: Rows, part: Part, scores: ScoresOfRuns) -> dict[tuple[str, str], PairDifference]:
    """Return (model, strategy) → the strategy minus BASE, at equal length."""
    pairs = {}
    for model in models_of(rows):
        for strategy in part.strategies:
            if (model, strategy) in rows:
                pair = compare_groups(
                    rows[model, strategy].cut, rows[model, BASE].cut, SCORE, scores
                )
                assert pair is not None
                pairs[model, strategy] = pair
    return pairs


def interactions_of(
    rows: Rows, part: Part, scores: ScoresOfRuns
) -> dict[tuple[str, str, str], PairDifference]:
    """Return (strategy, model, other model) → the gain over BASE of the first model minus that of the second."""
    pairs = {}
    for first, second in combinations(models_of(rows), 2):
        for strategy in part.strategies:
            names = [(first, strategy), (first, BASE), (second, strategy), (second, BASE)]
            if all(name in rows for name in names):
                runs = [rows[name].cut.representative for name in names]
                aligned = aligned_scores(runs, SCORE, scores)
                assert aligned is not None
                gains = aligned.values[:, [0, 2]] - aligned.values[:, [1, 3]]
                differences = PERCENT * (gains[:, [0]] - gains[:, [1]])
                pair = compare_examples(differences, groups=aligned.groups)
                assert pair is not None
                pairs[strategy, first, second] = pair
    return pairs


def table_of(
    part: Part,
    rows: Rows,
    extracts: Sequence[ResultRow],
    gains: Mapping[tuple[str, str], CorrectedDifference],
) -> Table:
    """Return the rows of a part by model, and those that copy sentences."""
    lines = []
    for model in models_of(rows):
        for strategy in (BASE, *part.strategies):
            if (model, strategy) not in rows:
                continue
            uncut, cut = rows[model, strategy]
            seen = source_seen(uncut.representative)
            lines.append(
                (
                    model,
                    f"`{strategy}`",
                    with_interval(cut, SCORE),
                    gain_cell(gains.get((model, strategy))),
                    f"{uncut.means[SCORE].mean:.1f}",
                    f"{mean_words(uncut):.0f}",
                    "" if seen is None else f"{seen:.0f} %",
                    *costs_of(uncut)[:2],
                )
            )
    for row in extracts:
        if not row.representative.oracle:
            score = f"{row.means[SCORE].mean:.1f}"
            read = "" if row.representative.key.model == "random" else "100 %"
            length = f"{mean_words(row):.0f}"
            interval = with_interval(row, SCORE)
            lines.append(("copied", label_of(row), interval, "", score, length, read, "", ""))
    words = SETS[part.texts].words
    headings = (f"first {words} words", f"minus `{BASE}`", "own length", "words", "read")
    return Table(PAGE, (part.title, "strategy", *headings, "tokens sent", "requests"), lines)


def gain_cell(gain: CorrectedDifference | None) -> str:
    """Return a strategy minus BASE with its interval; nothing for BASE."""
    if gain is None:
        return ""
    return f"{gain.mean:+.2f} ({format_interval(gain.low, gain.high, '+.2f')})"


def mean_words(row: ResultRow) -> float:
    """Return the mean words of a row's outputs."""
    outputs = row.representative.evaluation.outputs
    assert outputs is not None
    return outputs.words


def sentences_of(part: Part, rows: Rows, scores: ScoresOfRuns) -> Iterator[str]:
    """Yield what the tests of a part say: in numbers, of each model, of each pair of models, of further tokens."""
    gains = correct_differences(gains_of(rows, part, scores))
    interactions = correct_differences(interactions_of(rows, part, scores))
    yield f"{part.title}. {count_outcomes(rows, gains, interactions)}"
    for model in models_of(rows):
        of_model = {
            f"`{strategy}`": gain.reversed()
            for (name, strategy), gain in gains.items()
            if name == model
        }
        yield f"{part.title}, {model}: {describe_differences(f'`{BASE}`', of_model, SCORE)}."
    for (strategy, first, second), difference in interactions.items():
        of_first, of_second = (
            f"the gain of `{strategy}` with {model}" for model in (first, second)
        )
        yield f"{part.title}: {describe_pair(of_first, of_second, difference, SCORE)}."
    for (model, strategy), gain in gains.items():
        if "input_length" in STRATEGIES[strategy]:
            yield f"{part.title}, {model}: {describe_tokens(rows, model, strategy, gain)}."


def count_outcomes(
    rows: Rows,
    gains: Mapping[tuple[str, str], CorrectedDifference],
    interactions: Mapping[tuple[str, str, str], CorrectedDifference],
) -> str:
    """Say how many strategies are shown to differ from BASE, and how many gains between models, in sentences."""
    sentences = []
    for model in models_of(rows):
        of_model = [gain for (name, _), gain in gains.items() if name == model]
        means = [gain.mean for gain in of_model if gain.outcome == Outcome.AHEAD]
        above = sum(mean > 0 for mean in means)
        sentences.append(
            f"With {model}, of {len(of_model)} strategies {above} are shown to be above `{BASE}`"
            f" and {len(means) - above} below it."
        )
    differing = [each for each in interactions.values() if each.outcome == Outcome.AHEAD]
    sentences.append(f"For {len(differing)} the gain is shown to differ between the models.")
    return " ".join(sentences)


def describe_tokens(rows: Rows, model: str, strategy: str, gain: CorrectedDifference) -> str:
    """Say what a thousand further tokens change, without a period."""
    sent = []
    for name in (BASE, strategy):
        run = rows[model, name].uncut.representative
        sent.append(run.ledger.counts["prompt_tokens"] / run.evaluation.n)
    thousands = (sent[1] - sent[0]) / 1_000
    interval = format_interval(gain.low / thousands, gain.high / thousands, "+.2f")
    return (
        f"from {sent[0]:,.0f} to {sent[1]:,.0f} tokens, a thousand more change R-Lsum by"
        f" {gain.mean / thousands:+.2f} points ({interval})"
    )


def front_tables(rows: Rows, gains: Mapping[tuple[str, str], CorrectedDifference]) -> list[Table]:
    """Return the strategies of FRONT_PART for the front pages, the models side by side."""
    words = SETS[FRONT_PART.texts].words
    headings: tuple[str, ...] = ("what it does",)
    for model in models_of(rows):
        headings += (f"{model}, {words} words", f"minus `{BASE}`", "words", "tokens sent")
    lines: list[tuple[str, ...]] = []
    for strategy in (BASE, *FRONT_PART.strategies):
        cells: tuple[str, ...] = (IN_WORDS[strategy],)
        for model in models_of(rows):
            uncut, cut = rows[model, strategy]
            gain = gain_cell(gains.get((model, strategy)))
            tokens = costs_of(uncut)[0]
            cells += (f"{cut.means[SCORE].mean:.1f}", gain, f"{mean_words(uncut):.0f}", tokens)
        lines.append(cells)
    return [Table(page, headings, lines) for page in FRONT_PAGES]


def draw_picture(rows: Rows, extracts: Sequence[ResultRow]) -> bytes:
    """Draw R-Lsum of the first words of each row of FRONT_PART but the oracle, with its interval; return a PNG."""
    models = models_of(rows)
    points = []
    for (model, strategy), row in rows.items():
        points.append((f"{model} {IN_WORDS[strategy]}", COLOURS[models.index(model)], row.cut))
    for extract in extracts:
        if not extract.representative.oracle:
            points.append((IN_WORDS[label_of(extract)], GREY, extract))
    points.sort(key=lambda point: point[2].means[SCORE].mean)

    def draw(figure: "Figure") -> None:
        notes = (
            f"R-Lsum of the first {SETS[FRONT_PART.texts].words} words with the abstract, 0–100; bars: 95 % intervals over"
            f" {FRONT_PART.examples} papers of ACL.\n"
            f"In colour: a model, with prompts of {BUDGET:,} tokens where nothing else is said. Grey: copied sentences."
        )
        add_title_and_notes(figure, "Two language models read papers in different ways", notes)
        plot = figure.subplots()
        for place, (_, colour, row) in enumerate(points):
            mean, low, high = row.means[SCORE]
            plot.plot([low, high], [place, place], color=colour, linewidth=2.4, alpha=0.6)
            plot.plot([mean], [place], "o", color=colour, markersize=7)
            plot.annotate(
                f"{mean:.1f}",
                (high, place),
                (5, 0),
                textcoords="offset points",
                fontsize=TEXT - 1,
                color=colour,
                va="center",
            )
        plain_axes(plot, "x")
        plot.set_yticks(range(len(points)), [label for label, _, _ in points], fontsize=TEXT)

    return render_picture((8.0, 4.8), draw, ("png",))["png"]


def write_front(
    tables: Sequence[Table], sentences: Sequence[str], picture: bytes, write: bool
) -> list[str]:
    """Put tables and picture of FRONT_PART into the front pages; return what these lack, a line each."""
    if write:
        put_tables(tables)
        (ROOT / PICTURE).write_bytes(picture)
    lacking = differences(tables, [(page, words) for page in FRONT_PAGES for words in sentences])
    return lacking + picture_differences(picture, PICTURE)


def main() -> None:
    """Make the runs of some parts; or print tables and sentences, put them into the page, or compare them with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_common_options(parser, "results/strategies", 0)
    parser.add_argument("--name", help="of the model, on the page")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    parts = [PARTS[name] for name in options.parts]
    if options.weights:
        for part in parts:
            make_runs(part, options)
    if options.weights or options.publish:
        publish_parts(parts, options)
    results = Results(options.results_dir)
    tables: list[Table] = []
    sentences: list[str] = []
    problems: list[str] = []
    for part in parts:
        if not results.bundle(part.dataset).is_file():
            continue
        rows, extracts, scores = read_rows(results, part)
        if missing := missing_rows(rows, part):
            untested = f"{part.title}: not tested without {'; '.join(missing)}"
            print(untested, file=sys.stderr)
            problems += [untested] if part == FRONT_PART else []
            continue
        gains = correct_differences(gains_of(rows, part, scores))
        tables.append(table_of(part, rows, extracts, gains))
        of_part = list(sentences_of(part, rows, scores))
        sentences += of_part
        if part == FRONT_PART and (options.write or options.check):
            picture = draw_picture(rows, extracts)
            problems += write_front(front_tables(rows, gains), of_part[:1], picture, options.write)
    show_or_write(PAGE, tables, sentences, options, problems)


if __name__ == "__main__":
    main()
