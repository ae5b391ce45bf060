"""The tables and numbers that docs/ states about `probe`, computed from the scores of its runs.

    longsumbench run -m dataset=probe model=trunc,ca,ea,seal seed=1,2,3
    longsumbench run -m dataset=probe model=ea,seal model.extractive_length=128 seed=1,2,3
    longsumbench run -m dataset=probe model=pagesum train.max_steps=3000 train.unlock=0.4 seed=1,2,3
    SLOWER="train.learning_rate=0.002 train.max_steps=6000 seed=1,2,3"
    longsumbench run -m dataset=probe model=pagesum model.decoding=global train.eval_steps=1000 $SLOWER
    longsumbench run -m dataset=probe dataset.document_length=256 model=etads 'model.focus_layers=null,[]'
        'model.saliency_layers=null,[]' train.eval_steps=500 $SLOWER
    longsumbench run -m dataset=probe model=hierarchical_transformer,flat_transformer train.eval_steps=1000 $SLOWER
    longsumbench run -m dataset=probe model=hierarchical_transformer model.global_layers=0 train.eval_steps=1000 $SLOWER
    longsumbench run -m dataset=probe dataset.filler=sumpubmed dataset.path=FOLDER dataset.document_length=512
        model.tokenizer=words model.vocabulary_size=4000 seed=1,2,3 …   (docs/findings.md)
    python benchmarks/probe_claims.py [--check | --write] [--results-dir results/reference]

Without an option the tables are printed. --check prints the numbers of docs/probe.md next to the computed ones and names
what differs in docs/; --write puts the tables there, draws docs/pictures/facts.png from the runs of the table of
docs/probe.md, and names the sentences that have to be changed by hand. docs/probe.md has the command of the table of lengths.

Systems that did not learn (`gate_rows`) are marked in every table.

A number is a recall in percent: the mean over examples and all committed seeds, with the 95 % interval of the tables
(`interval_over_seeds`), then the number of seeds and the range of their means. "Steps to 0.12 nats": the first
validation, every 500 steps, at which the loss was LEARNED or less. A system that knows the facts in one place and guesses
the others is about there.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from probe_lengths import FACT_PANELS, WHOLE, LengthCurves, systems_at_lengths
from tabulate import tabulate

from longsumbench.core import DatasetSettings, names_deciding
from longsumbench.leaderboards.learned import gate_rows
from longsumbench.leaderboards.seed_groups import ResultRow
from longsumbench.leaderboards.significance import build_blocks, read_all_scores
from longsumbench.metrics.aggregate import read_scores
from longsumbench.metrics.statistics import interval_over_seeds
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.views.recall import PANELS, recall_figure, recall_lines
from longsumbench.views.series import draw_series

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "reference"
PROBE, FINDINGS, PICTURE = "docs/probe.md", "docs/findings.md", "docs/pictures/facts.png"
FRONT_PAGES = (
    "README.md",
    "docs/index.md",
)  # they have parts of the tables of other pages, with a verdict
SEEDS, EXAMPLES = (1, 2, 3), 400
RECIPE = {"batch_words": 2_048, "learning_rate": 0.003, "unlock": 0.6}  # of scale=probe
SINGLE, RELAYED, SILENT = "fact_recall_single", "fact_recall_relayed", "fact_recall_silent"
ALL, SILENT_OTHER, CHANCE = "fact_recall", "fact_recall_silent_other", "fact_recall_chance"
TENTHS = [f"fact_recall_single_position_{tenth}" for tenth in range(10)]
READ, PAST_WINDOW = TENTHS[:2], TENTHS[3:]  # of 1,024 tokens: before and past the first 256
LEARNED = 0.12  # nats per target token


@dataclass(frozen=True)
class Claim:
    """Runs of one system that a claim rests on, one for each seed; all else is as `dataset=probe` has it."""

    model: str
    variant: str = ""
    steps: int = 1_500
    document_length: int | None = None
    training: tuple[tuple[str, float], ...] = ()  # settings that differ from RECIPE
    filler: str | None = None
    examples: int = EXAMPLES
    seeds: tuple[int, ...] = SEEDS

    def fits(self, record: RunRecord) -> bool:
        """Return whether a run, whatever its seed, is one of these."""
        deciding = {"limit", *names_deciding(DatasetSettings, "texts")}
        dataset = vars(record.config.dataset)
        texts = {
            key: value for key, value in dataset.items() if key in deciding and value is not None
        }
        recipe = vars(record.config.train)
        return (
            (record.key.model, record.variant, record.config.scale)
            == (self.model, self.variant, "probe")
            and (record.key.split, record.evaluation.n) == ("test", self.examples)
            and texts == self.texts
            and recipe == {**recipe, **RECIPE, **dict(self.training), "max_steps": self.steps}
        )

    @property
    def texts(self) -> dict[str, Any]:
        """The settings of the generated texts that differ from the defaults."""
        chosen = {"document_length": self.document_length, "filler": self.filler}
        return {name: value for name, value in chosen.items() if value}

    def __str__(self) -> str:
        length = f", {self.document_length} tokens" if self.document_length else ""
        return (
            " ".join([self.model, *filter(None, [self.variant])])
            + f" ({self.steps:,} steps{length})"
        )


@dataclass(frozen=True)
class Run:
    """A run with its scores of each example, 0–1."""

    record: RunRecord
    scores: pd.DataFrame


Runs = dict[Claim, list[Run]]


@dataclass(frozen=True)
class Table:
    """A Markdown table in a file, which is found by its heading; printed alone where the file is empty."""

    file: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]

    def lines(self) -> list[str]:
        """Return it as Markdown."""
        cells = [self.columns, *self.rows]
        header, *rows = [f"| {' | '.join(row)} |" for row in cells]
        return [header, "|---" * len(self.columns) + "|", *rows]

    def place_in(self, lines: Sequence[str]) -> slice:
        """Return where the table with the same heading is."""
        heading = self.lines()[0]
        if heading not in lines:
            sys.exit(f"{self.file} has no table with the heading {heading}")
        begin = lines.index(heading)
        end = next(
            (place for place in range(begin, len(lines)) if not lines[place].startswith("|")),
            len(lines),
        )
        return slice(begin, end)

    def put_into(self, text: str) -> str:
        """Return a text with this table in the place of the one with the same heading."""
        lines = text.splitlines()
        lines[self.place_in(lines)] = self.lines()
        return "\n".join(lines) + "\n"

    def next_to(self, text: str) -> str:
        """Return the computed numbers, without the second column, next to those of the same table of a text."""
        lines = text.splitlines()
        stated = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in lines[self.place_in(lines)][2:]
        ]
        numbers = {row[0]: "  ".join(row[2:]) for row in stated}
        rows = [
            (row[0], "  ".join(row[2:]), numbers.get(row[0], "(no such row)")) for row in self.rows
        ]
        heading = (self.columns[0], f"computed: {'; '.join(self.columns[2:])}", self.file)
        return tabulate(rows, heading, disable_numparse=True)


KINDS = (
    "facts in one place right, % (95 % interval over examples and seeds; seeds and their range)",
    "two places, link said",
    "two places, link unsaid",
)  # headings
TRUNC = Claim("trunc")
SEAL_FAMILY = {  # claim → how its row begins
    Claim("seal"): ("`seal`", "256"),
    Claim("ea"): ("`ea`", "256"),
    Claim("seal", "extractive_length=128"): ("`seal`", "128"),
    Claim("ea", "extractive_length=128"): ("`ea`", "128"),
    Claim("ca"): ("`ca`", "256 vectors"),
    TRUNC: ("`trunc`", "the first 256"),
}
EARLIER: dict[str, Any] = {"steps": 3_000, "training": (("unlock", 0.4),)}
SLOWER: dict[str, Any] = {"steps": 6_000, "training": (("learning_rate", 0.002),)}
PAGESUM = Claim("pagesum", **EARLIER)
PAGESUMS = {
    PAGESUM: ("`pagesum`, 3,000 steps", "all, a page at a time"),
    Claim("pagesum", "decoding=global", **SLOWER): (
        "the same, 6,000 steps, rate 0.002, `decoding=global`",
        "all",
    ),
}
ETADS = {
    Claim("etads", variant, document_length=256, **SLOWER): name
    for variant, name in {
        "focus_layers=[],saliency_layers=[]": "basic model",
        "saliency_layers=[]": "with focus",
        "focus_layers=[]": "with saliency",
        "": "both",
    }.items()
}
FLAT = Claim("flat_transformer", **SLOWER)
HIERARCHICAL = {
    Claim("hierarchical_transformer", **SLOWER): "`hierarchical_transformer`",
    Claim(
        "hierarchical_transformer", "global_layers=0", **SLOWER
    ): "the same, `model.global_layers=0`",
    FLAT: "`flat_transformer`",
}
PROSE_WORDS = "tokenizer=words,vocabulary_size=4000"
ONE_SEED: dict[str, Any] = {"seeds": (1,)}
PROSE = {
    Claim(model, variant + PROSE_WORDS, document_length=512, filler="sumpubmed", **others): head
    for model, variant, others, head in (
        ("seal", "extractive_length=128,", {}, ("`seal`", "128")),
        ("ea", "extractive_length=128,", {}, ("`ea`", "128")),
        ("seal", "", ONE_SEED, ("`seal`", "256")),
        ("ea", "", ONE_SEED, ("`ea`", "256")),
        ("trunc", "", ONE_SEED, ("`trunc`", "the first 256")),
        (
            "pagesum",
            "",
            {**EARLIER, **ONE_SEED},
            ("`pagesum`, 3,000 steps", "all, a page at a time"),
        ),
    )
}
SHORT: dict[str, Any] = {
    "document_length": 256,
    "training": (("batch_words", 1_024),),
    "examples": 200,
}
SAME_SIZE = {
    Claim("pagesum", "", **SHORT): "`pagesum`, pages of at most 256 tokens, one a section",
    **{
        Claim("seq2seq", f"checkpoint={folder},init=random", **SHORT): f"`seq2seq`: {name}"
        for folder, name in {
            "longt5-d1a52790": "LongT5, transient-global, neighbourhood of 128",
            "bart-126dfecd": "BART",
            "led-6092dadb": "LED, window of 128",
        }.items()
    },
}
SEAL_128, EA_128 = (Claim(model, "extractive_length=128") for model in ("seal", "ea"))
EQUAL_TOTALS = [  # EA once, SEAL for each of two segments
    Claim(
        model,
        length,
        document_length=512,
        training=(("batch_words", 1_024),),
        examples=200,
        seeds=(7, 8, 9, 10, 11, 12),
    )
    for model, length in (
        ("ea", "extractive_length=128"),
        ("seal", "extractive_length=64"),
        ("ea", ""),  # 256
        ("seal", "extractive_length=128"),
    )
]
HOW_THEY_READ = {  # rows of the table of docs/probe.md
    SEAL_128: "selects 128 tokens for every segment of the summary",
    EA_128: "selects 128 tokens once",
    PAGESUM: "page by page, with twice the training steps",
    Claim("ca"): "compresses all of them to 256 vectors",
    TRUNC: "the first 256 tokens",
}
CLAIMS = (*EQUAL_TOTALS, *SEAL_FAMILY, *PAGESUMS, *ETADS, *HIERARCHICAL, *PROSE, *SAME_SIZE)
AT_LENGTHS = {  # model → how its row begins
    "pagesum": "`pagesum`, pages of 128 tokens",
    "hierarchical_transformer": "`hierarchical_transformer`, paragraphs of 128 tokens",
    **{model: f"`{model}`" for model in ("ea", "ca", "seal", "tdmca")},
}
NEAR_CHANCE = ("trunc", "etads", "flat_transformer")


def main() -> None:
    """Print the tables, compare them with what is stated, or put them there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results-dir", type=Path, default=RESULTS, help="where the runs are")
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--check",
        action="store_true",
        help="compare with what is stated; exit code 1 if it differs",
    )
    action.add_argument("--write", action="store_true", help="put tables and picture into docs/")
    options = parser.parse_args()
    results = Results(options.results_dir)
    runs = read_runs(results, CLAIMS)
    tables = (
        kinds_table,
        seal_table,
        etads_table,
        hierarchical_table,
        prose_table,
        same_size_table,
    )
    found = [*(table(runs) for table in tables), lengths_table(results)]
    sentences = [*seal_sentences(runs), *totals_sentences(runs), *other_sentences(runs)]
    if not (options.check or options.write):
        print("\n\n".join("\n".join(table.lines()) for table in [*found, by_distance(runs)]))
        print("", *(f"{file}: {words}" for file, words in sentences), sep="\n")
        return
    picture = kinds_picture(runs)
    if options.write:
        put_tables(found)
        (ROOT / PICTURE).write_bytes(picture)
    stated = (ROOT / PROBE).read_text(encoding="utf-8")
    wrong = [*differences(found, sentences), *picture_differences(picture)]
    print(found[0].next_to(stated), end="\n\n")
    print(
        f"{len(found)} tables, {len(sentences)} sentences and {PICTURE} were compared; {len(wrong)} differences."
    )
    sys.exit("\n".join(wrong) or None)


def put_tables(found: Iterable[Table]) -> None:
    """Put tables into the files that state them."""
    for table in found:
        path = ROOT / table.file
        path.write_text(table.put_into(path.read_text(encoding="utf-8")), encoding="utf-8")


def differences(found: Sequence[Table], sentences: Sequence[tuple[str, str]]) -> list[str]:
    """Name the rows and the words that their files do not have, a line each."""
    rows = [(table.file, row) for table in found for row in table.lines()]
    files = {file for file, _ in [*rows, *sentences]}
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files}
    missing = [
        f"{file} lacks the row: {row}" for file, row in rows if row not in texts[file].splitlines()
    ]
    flat = {file: " ".join(text.split()) for file, text in texts.items()}
    return missing + [
        f"{file} lacks the words: {words}" for file, words in sentences if words not in flat[file]
    ]


def picture_differences(picture: bytes, file: str = PICTURE) -> list[str]:
    """Return a line if a file has another picture."""
    path = ROOT / file
    same = path.is_file() and path.read_bytes() == picture
    return (
        []
        if same
        else [f"{file} is not the picture of these runs, drawn with this release of matplotlib"]
    )


def read_runs(results: Results, claims: Sequence[Claim]) -> Runs:
    """Return the runs of each claim, in the order of their seeds; end the command where one is missing."""
    records, runs, missing = list(results.records("probe")), Runs(), []
    for claim in claims:
        fitting = [record for record in records if claim.fits(record)]
        paths = {record.key.seed: results.run_folder(record) / "scores.csv" for record in fitting}
        lacking = [seed for seed in claim.seeds if seed not in paths or not paths[seed].is_file()]
        if lacking:
            missing.append(f"{claim}, seed {', '.join(map(str, lacking))}")
        elif len(fitting) > len(paths):
            sys.exit(f"{claim}: {len(fitting)} runs of {len(paths)} seeds; remove those not meant")
        else:
            ordered = sorted(fitting, key=lambda record: record.key.seed or 0)
            runs[claim] = [Run(record, read_scores(paths[record.key.seed])) for record in ordered]
    if missing:
        sys.exit(f"runs, or their scores.csv, are missing in {results.root}: {'; '.join(missing)}")
    return runs


def kinds_table(runs: Runs) -> Table:
    """Return how systems read, what they find, and whether they learned."""
    rows = []
    for claim, how in HOW_THEY_READ.items():
        means = [mean(runs[claim], measure) for measure in (SINGLE, RELAYED, SILENT, ALL)]
        rows.append((f"`{claim.model}`", how, *means, "no" if not_learned(runs[claim]) else "yes"))
    columns = (
        "facts in one place right, %",
        "two places, link said",
        "two places, link unsaid",
        "all facts",
        "learned",
    )
    return Table(PROBE, ("system", "how it reads 1,024 tokens", *columns), rows)


def kinds_rows(runs: Runs) -> tuple[ResultRow, ...]:
    """Return the systems of that table, best first."""
    shown = [run for claim in HOW_THEY_READ for run in runs[claim]]
    scores = {run.record.run_id: run.scores for run in shown}
    (block,) = build_blocks([run.record for run in shown], scores, names=())
    return block.rows


def kinds_picture(runs: Runs) -> bytes:
    """Draw the picture of that table; return a PNG."""
    rows = kinds_rows(runs)
    numbers = sorted({len(runs[claim]) for claim in HOW_THEY_READ})
    seeds = f"{numbers[0]} to {numbers[-1]} seeds"
    texts = f"{EXAMPLES} reports of 1,024 tokens, {seeds}; seal and ea select 128 tokens"
    title = f"Planted facts that summaries state right: {texts}"
    figure = recall_figure(title, recall_lines(rows), PANELS, "facts stated right (%)")
    return draw_series(figure)["png"]


def seal_table(runs: Runs) -> Table:
    """Return what SEAL's family and PageSum find."""
    facts = KINDS[0]
    rows: list[tuple[str, ...]] = [
        (
            head + not_learned(runs[claim]),
            tokens,
            recall(runs[claim], SINGLE),
            recall(runs[claim], ALL),
        )
        for claim, (head, tokens) in {**SEAL_FAMILY, **PAGESUMS}.items()
    ]
    return Table(FINDINGS, ("system", "tokens the decoder sees", facts, "all facts right, %"), rows)


def etads_table(runs: Runs) -> Table:
    """Return what ETADS's variants find, and when they had learned."""
    rows = [
        (
            head + not_learned(runs[claim]),
            *kinds(runs[claim]),
            ", ".join(map(steps_needed, runs[claim])),
        )
        for claim, head in ETADS.items()
    ]
    return Table(FINDINGS, ("`etads`", *KINDS, f"steps to {LEARNED} nats, by seed"), rows)


def hierarchical_table(runs: Runs) -> Table:
    """Return what the Hierarchical Transformer and its baseline find."""
    rows = [
        (head + not_learned(runs[claim]), *kinds(runs[claim]))
        for claim, head in HIERARCHICAL.items()
    ]
    return Table(FINDINGS, ("system", *KINDS), rows)


def prose_table(runs: Runs) -> Table:
    """Return what SEAL's family and PageSum find among the sentences of papers."""
    rows = [
        (head + not_learned(runs[claim]), tokens, *kinds(runs[claim]))
        for claim, (head, tokens) in PROSE.items()
    ]
    return Table(FINDINGS, ("system, prose of SumPubMed", "tokens the decoder sees", *KINDS), rows)


def same_size_table(runs: Runs) -> Table:
    """Return what encoder-decoders of one size find, from random weights."""
    rows = [
        (head + not_learned(runs[claim]), *kinds(runs[claim])) for claim, head in SAME_SIZE.items()
    ]
    return Table(FINDINGS, ("architecture", *KINDS), rows)


def by_distance(runs: Runs) -> Table:
    """Return what the same find by the sections between the two places of a fact."""
    distances = (0, 1, 4, 7)
    columns = [
        f"{kind.rpartition('_')[2]}, {far} between"
        for kind in (RELAYED, SILENT)
        for far in distances
    ]
    names = [f"{kind}_distance_{far}" for kind in (RELAYED, SILENT) for far in distances]
    rows = [
        (head, *(recall(runs[claim], name) for name in names))
        for claim, head in HIERARCHICAL.items()
    ]
    return Table("", ("system", *columns), rows)


def lengths_table(results: Results) -> Table:
    """Return what systems find in longer texts than they were trained on."""
    records = list(results.records("probe"))
    systems = {
        one.model: one for one in systems_at_lengths(records, read_all_scores(results, records))
    }
    if missing := [name for name in (*AT_LENGTHS, *NEAR_CHANCE) if name not in systems]:
        sys.exit(f"runs at several lengths are missing in {results.root}: {', '.join(missing)}")
    lengths = sorted(systems["pagesum"].tested)
    rows = [
        (head + word, *(at_length([system], length) for length in lengths))
        for head, system in ((head, systems[name]) for name, head in AT_LENGTHS.items())
        for word in ["" if system.learned.comparable else f", {system.learned.word}"]
    ]
    near_chance = [systems[name] for name in NEAR_CHANCE]
    (word,) = {system.learned.word for system in near_chance}
    names = ", ".join(f"`{name}`" for name in NEAR_CHANCE)
    rows.append(
        (
            f"{names}, {word}: the highest of them",
            *(at_length(near_chance, length) for length in lengths),
        )
    )
    return Table(
        FINDINGS,
        (
            "facts right, %: one place / link said / link unsaid",
            *(f"{length:,}" for length in lengths),
        ),
        rows,
    )


def at_length(systems: Sequence[LengthCurves], length: int) -> str:
    """Return the highest recalls of some systems at a length; of one alone also how much it saw, if not all."""
    points = [[system.point(kind, length) for system in systems] for kind in FACT_PANELS]
    highest = " / ".join(f"{max(one.mean for one in of_kind if one):.0f}" for of_kind in points)
    seen = systems[0].seen(length)
    return (
        highest
        if len(systems) > 1 or seen is None or seen >= WHOLE
        else f"{highest}, sees {seen:.0f} %"
    )


def seal_sentences(runs: Runs) -> list[tuple[str, str]]:
    """Return (file, words): the numbers that sentences next to the tables of docs/ state."""
    page, whole = (recall(runs[claim], SILENT_OTHER).partition(";")[0] for claim in PAGESUMS)
    seal, ea = (runs[Claim(model)] for model in ("seal", "ea"))
    read, past = (
        described([run.scores[places].mean(axis=1) for run in runs[TRUNC]])
        for places in (READ, PAST_WINDOW)
    )
    chance = 100 * runs[TRUNC][0].scores[CHANCE].mean()
    relayed = max(of_seeds(runs[PAGESUM], RELAYED))
    return [
        (PROBE, f"{minutes(runs, HOW_THEY_READ)} minutes per run"),
        (PROBE, f"{mean(runs[SEAL_128], SINGLE)} against {mean(runs[EA_128], SINGLE)} %"),
        (
            "README.md",
            f"states {mean(runs[SEAL_128], SINGLE)} % of the facts right that are in one place; EA, which selects 128 once,"
            f" {mean(runs[EA_128], SINGLE)} %",
        ),
        (PROBE, f"of all facts, {mean(runs[SEAL_128], ALL)} against {mean(runs[EA_128], ALL)} %"),
        (
            PROBE,
            f"With 256 tokens, they state {mean(seal, SINGLE)} and {mean(ea, SINGLE)} % of the facts in one place right",
        ),
        (PROBE, f"Chance is {chance:.1f} %"),
        (FINDINGS, f"{page.replace(' (', ' % of the facts whose link is unsaid (')})"),
        (
            FINDINGS,
            f"With one decoder for all pages and 6,000 steps it finds {whole.replace(' (', ' % (')})",
        ),
        (FINDINGS, f"By pages, one seed of three states {relayed:.0f} % of them right"),
        (
            FINDINGS,
            f"in the first two tenths it states {read.partition(';')[0].replace(' (', ' % right (')})",
        ),
        (
            FINDINGS,
            f"in the last seven {past.partition(';')[0].replace(' (', ' % (')}), where chance is {chance:.1f}",
        ),
    ]


def totals_sentences(runs: Runs) -> list[tuple[str, str]]:
    """Return the same for equal totals of tokens that EA and SEAL attend to."""
    ea_128, seal_64, ea_256, seal_128 = (mean(runs[claim], ALL) for claim in EQUAL_TOTALS)
    page = json.loads((ROOT / "results/reference/papers/seal-section3.json").read_text())
    with_128, with_256 = (claim["outcome"] for claim in page["claims"])
    outcomes = f"{with_128} with 128 tokens in all, {with_256} with 256"
    numbers = (
        f"EA states {ea_128} % with 128 tokens and SEAL {seal_64} % with 2 × 64; EA {ea_256} % with 256 and SEAL"
        f" {seal_128} % with 2 × 128"
    )
    return [(FINDINGS, numbers), *((file, outcomes) for file in ("README.md", FINDINGS, PROBE))]


def other_sentences(runs: Runs) -> list[tuple[str, str]]:
    """Return the same for the tables of ETADS and the Hierarchical Transformer."""
    worst, middle, best = of_seeds(runs[FLAT], SINGLE)
    return [
        *((FINDINGS, f"{minutes(runs, claims)} minutes a run") for claims in (ETADS, HIERARCHICAL)),
        (FINDINGS, f"one did not learn ({worst:.0f} % of the facts in one place)"),
        (FINDINGS, f"two were still learning ({middle:.0f} and {best:.0f} %)"),
    ]


def minutes(runs: Runs, claims: Iterable[Claim]) -> str:
    """Return how long the trainings took, from the shortest to the longest."""
    seconds = [run.record.fit.seconds for claim in claims for run in runs[claim]]
    return f"{min(seconds) / 60:.1f} to {max(seconds) / 60:.1f}"


def steps_needed(run: Run) -> str:
    """Return after how many steps a run had learned."""
    learned = [step for step, loss in run.record.fit.validation_losses if loss <= LEARNED]
    return f"{learned[0]:,}" if learned else "not learned"


def not_learned(runs: Sequence[Run]) -> str:
    """Return the end of a row's first cell: ", not learned in 1 of 3 seeds"; empty if the system learned in all."""
    scores = {run.record.run_id: run.scores for run in runs}
    judged = gate_rows([ResultRow((run.record,)) for run in runs], scores).values()
    words = Counter(verdict.word for verdict in judged if not verdict.comparable)
    parts = [
        word if count == len(runs) else f"{word} in {count} of {len(runs)} seeds"
        for word, count in words.items()
    ]
    return "".join(f", {part}" for part in parts)


def mean(runs: Sequence[Run], measure: str) -> str:
    """Return the mean of a measure over examples and seeds."""
    return recall(runs, measure).partition(" ")[0]


def of_seeds(runs: Sequence[Run], measure: str) -> list[float]:
    """Return the mean of a measure in each seed, 0–100, from the lowest to the highest."""
    return sorted(100 * float(run.scores[measure].mean()) for run in runs)


def kinds(runs: Sequence[Run]) -> list[str]:
    """Return the recalls of the three kinds of facts."""
    return [recall(runs, measure) for measure in (SINGLE, RELAYED, SILENT)]


def recall(runs: Sequence[Run], measure: str) -> str:
    """Return a measure of the runs of a claim as a table states it."""
    return described([run.scores[measure] for run in runs])


def described(seeds: Sequence[pd.Series]) -> str:
    """Write the mean over seeds and examples, its interval, and the range of the seeds' means, 0–100."""
    values = pd.concat(list(seeds), axis=1, join="inner").dropna().to_numpy()  # [examples, seeds]
    low, high = (100 * bound for bound in interval_over_seeds(values, is_share=True))
    means = 100 * values.mean(axis=0)
    interval = "no interval" if np.isnan(low) else f"{low:.1f} to {high:.1f}"
    ends = (
        f"{len(means)} seeds: {means.min():.1f} to {means.max():.1f}"
        if len(means) > 1
        else "1 seed"
    )
    return f"{100 * values.mean():.1f} ({interval}; {ends})"


if __name__ == "__main__":
    main()
