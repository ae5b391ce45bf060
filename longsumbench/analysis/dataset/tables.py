"""What is known of a dataset as tables: blocks for reading, and one long table of all numbers.

DatasetStats --blocks--> Blocks, for the terminal, Markdown and the page
--numbers--> a row a number: split, what, name, statistic, value, n
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pandas as pd

from longsumbench.analysis.dataset.near_duplicates import SHINGLE_WORDS, SIMILARITY, SplitOverlap
from longsumbench.analysis.dataset.published_sizes import PUBLISHED_SIZES, PublishedSize
from longsumbench.analysis.dataset.stats import COUNTED, DatasetStats, SplitStats
from longsumbench.analysis.dataset.what_is_read import NO_LEDGER, Reading
from longsumbench.api.documents import Cut, Truncation
from longsumbench.formatting import format_count, percent
from longsumbench.leaderboards.truncation import cut_shares, format_share, ledger_block
from longsumbench.metrics.aggregate import aggregate, aggregate_measures
from longsumbench.metrics.extractive import Extractive
from longsumbench.metrics.novelty import NovelNgrams
from longsumbench.report.tables import Block, markdown, terminal
from longsumbench.runs.record import RunRecord, run_label, source_seen

ROUGE = {"rouge1": "R-1", "rouge2": "R-2", "rougeL": "R-L", "rougeLsum": "R-Lsum"}
STRUCTURE = COUNTED[2:]
_ABSENT = "–"
_QUANTILE = 0.95
_KEPT = {
    Extractive.columns[2]: "compression",
    Extractive.columns[0]: "coverage\n(%)",
    Extractive.columns[1]: "density\n(words)",
    **{column: f"novel\n{n} (%)" for n, column in enumerate(NovelNgrams.columns, start=1)},
}


class _Number(NamedTuple):
    """One of the numbers; `n` is how many examples, or whatever is counted, it is made from."""

    split: str
    what: str
    name: str
    statistic: str
    value: float
    n: int


class _LengthSpread(NamedTuple):
    """How a length is spread over examples."""

    n: int
    mean: float
    median: float
    p95: float
    longest: float


def summarize_lengths(values: "pd.Series[Any]") -> _LengthSpread:
    """Return mean, median, 95th percentile (between two values, in proportion) and maximum; NaN of no values."""
    known = values.dropna()
    return _LengthSpread(
        len(known), float(known.mean()), float(known.median()), float(known.quantile(_QUANTILE)), float(known.max())
    )


def format_number(value: float) -> str:
    """Write a number without decimals where it is large or whole, else with one."""
    return f"{value:,.0f}" if value >= 100 or value % 1 == 0 else f"{value:.1f}"


def lengths(split: SplitStats, num_tokenizers: int) -> dict[str, "pd.Series[Any]"]:
    """Return what is long → the lengths of its texts; targets of examples with a first reference only."""
    targets = split.counts["target_words"]
    found = {"source_words": split.counts["source_words"], "target_words": targets[targets > 0]}
    for place in range(num_tokenizers):
        for kind in ("source_tokens", "target_tokens"):
            found[f"{kind}_{place}"] = split.sampled[f"{kind}_{place}"].dropna()
    return found


def kept_measures(split: SplitStats) -> dict[str, dict[str, float]]:
    """Return what the references keep of the sources: measure → mean, 95 % interval and n."""
    columns = [*Extractive.columns, *NovelNgrams.columns]
    return aggregate_measures(split.sampled[columns], in_units=Extractive.units)


def oracle_scores(split: SplitStats) -> tuple[int, dict[str, dict[str, float]]]:
    """Return how many examples are scored, and type → the scores of their best extracts, 0–100."""
    columns = [f"{kind}_{part}" for kind in ROUGE for part in "prf"]
    scored = split.sampled[columns].dropna()
    return len(scored), aggregate(scored) if len(scored) else {}


def stats_title(stats: DatasetStats) -> str:
    """Return the heading of all."""
    return f"{stats.dataset}: what it is like"


def render_stats(stats: DatasetStats) -> str:
    """Draw all tables for a terminal."""
    return f"{terminal(stats_title(stats), stats_blocks(stats))}\n\n{stats.oracle_signature}"


def stats_markdown(stats: DatasetStats) -> str:
    """Write all tables as Markdown."""
    return f"{markdown(stats_title(stats), stats_blocks(stats))}\n`{stats.oracle_signature}`\n"


def stats_blocks(stats: DatasetStats) -> list[Block]:
    """Return all tables."""
    found = [_lengths(stats), *_published(stats.dataset), _structure(stats), _kept(stats), _oracle(stats)]
    if stats.overlaps is not None:
        found += _duplicates(stats)
    if stats.readings:
        found += [_seen(stats), *_targets(stats)]
    if stats.runs:
        found.append(ledger_block(stats.runs))
    return found


def describe_texts(stats: DatasetStats) -> list[str]:
    """Say which texts these are."""
    facts = stats.facts
    said = [f"{name}: {facts[name]}" for name in ("source", "licence") if facts.get(name)]
    lines = [f"Texts {stats.fingerprint[:12]}; {'; '.join(said)}."]
    for name, told in (("skipped", "rows that could not be used"), ("left_out", "left out on purpose")):
        counts = [
            f"{split} {count:,} × {reason}"
            for split, reasons in (facts.get(name) or {}).items()
            for reason, count in reasons.items()
        ]
        lines += [f"{told.capitalize()}: {', '.join(counts)}."] if counts else []
    return lines


def describe_sample(stats: DatasetStats) -> str:
    """Say of how many examples what takes time was computed."""
    drawn = [f"{len(one.sampled):,} of {len(one.counts):,} {one.name}" for one in stats.splits if not one.is_whole]
    if not drawn:
        return "of all examples"
    return f"of a sample drawn by seed {stats.seed}: {', '.join(drawn)} examples"


def describe_examples_read(stats: DatasetStats, name: str) -> str:
    """Say which examples of a split systems looked at."""
    split = next(one for one in stats.splits if one.name == name)
    if split.is_whole:
        return f"All {format_count(len(split.counts), 'example')} of the {name} split"
    return (
        f"{len(split.sampled):,} of the {len(split.counts):,} examples of the {name} split, drawn by seed {stats.seed}"
    )


def _lengths(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        for name, values in lengths(split, len(stats.tokens)).items():
            found = summarize_lengths(values)
            whole = [f"{found.mean:,.1f}", format_number(found.median), f"{found.p95:,.0f}", f"{found.longest:,.0f}"]
            rows.append([split.name, _text(name), f"{found.n:,}", *(whole if found.n else [_ABSENT] * 4)])
    notes = [
        *describe_texts(stats),
        "Words stand between blanks; titles, section names and queries are not counted. The target is the first"
        " reference.",
    ]
    notes += [
        f"tokens {number}: {told}, {describe_sample(stats)}." for number, told in enumerate(stats.tokens, start=1)
    ]
    columns = ("split", "text", "examples", "mean", "median", "95 %", "longest")
    return Block("Lengths", tuple(notes), columns, "llrrrrr", rows)


def _text(name: str) -> str:
    """Return what a column of lengths measures, for a reader: "source, tokens 1"."""
    kind, unit, *place = name.split("_")
    return f"{kind}, {unit}" + (f" {int(place[0]) + 1}" if place else "")


def _published(dataset: str) -> Iterator[Block]:
    columns = ("source", "counted", "examples", "source\nmean", "source\n95 %", "target\nmean", "target\n95 %")
    if rows := PUBLISHED_SIZES.get(dataset):
        yield Block("The same in print", (), columns, "lllrrrr", [_size(row) for row in rows])


def _size(row: PublishedSize) -> list[str]:
    numbers = (row.source_mean, row.source_p95, row.target_mean, row.target_p95)
    return [row.source, row.tokens, row.examples, *(number or _ABSENT for number in numbers)]


def _structure(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        means = [f"{split.counts[name].mean():,.1f}" for name in STRUCTURE[:-1]]
        queried = percent(split.counts["queries"].sum(), len(split.counts))
        rows.append([split.name, f"{len(split.counts):,}", *means, f"{queried:.1f}"])
    columns = ("split", "examples", *STRUCTURE[:-1], "with a query (%)")
    notes = ("Means an example; sections, paragraphs, sentences and references without text do not count.",)
    return Block("What an example has", notes, columns, "l" + "r" * (len(columns) - 1), rows)


def _kept(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        found = kept_measures(split)
        n = max((int(one["n"]) for one in found.values()), default=0)
        rows.append([split.name, f"{n:,}", *(_cell(found.get(name)) for name in _KEPT)])
    notes = (
        "Compression: source words for one of the reference. Coverage: the share of the reference's words that stand"
        " in fragments copied from the source; density: the length of the fragment in which a word stands (Grusky et"
        " al. 2018). Novel: the share of its n-grams that the source does not have.",
        f"Means ± half the 95 % interval, {describe_sample(stats)}; of several references their mean.",
    )
    columns = ("split", "examples", *_KEPT.values())
    return Block("What the references keep of the source", notes, columns, "l" + "r" * (len(columns) - 1), rows)


def _cell(measure: dict[str, float] | None) -> str:
    return f"{measure['mean']:,.2f} ±{(measure['hi'] - measure['lo']) / 2:.2f}" if measure else _ABSENT


def _oracle(stats: DatasetStats) -> Block:
    rows = []
    for split in stats.splits:
        n, scores = oracle_scores(split)
        cells = [
            f"{one['f']:.2f} ±{(one['f_hi'] - one['f_lo']) / 2:.2f}" if (one := scores.get(kind)) else _ABSENT
            for kind in ROUGE
        ]
        rows.append([split.name, f"{n:,}", *cells])
    told = "The sentences that a greedy search finds closest to the references, as model=oracle writes them"
    notes = (f"{told}: F1 (0–100) ± half the 95 % interval, {describe_sample(stats)}.",)
    return Block("What the best extract scores", notes, ("split", "examples", *ROUGE.values()), "lrrrrr", rows)


def _duplicates(stats: DatasetStats) -> Iterator[Block]:
    told = f"Sources whose sets of {SHINGLE_WORDS}-word sequences have a Jaccard similarity of {SIMILARITY} or more"
    notes = [f"{told}; candidates by MinHash, all examples."]
    if not stats.overlaps:
        notes = ["There is one split only."]
    rows = [
        [f"{one.one} – {one.other}", f"{one.pairs:,}", *(format_share(*part) for part in _parts(one))]
        for one in stats.overlaps or ()
    ]
    columns = ("splits", "pairs", "examples of the first", "examples of the second")
    yield Block("Near-duplicates in different splits", tuple(notes), columns, "lrrr", rows)
    if stats.nearest:
        pairs = [
            [f"{pair.similarity:.3f}", *(f"{split} {name}" for split, name in (pair.one, pair.other))]
            for pair in stats.nearest
        ]
        widths = (("one", 50), ("the other", 50))
        yield Block("The most similar", (), ("similarity", "one", "the other"), "rll", pairs, widths)


def _parts(overlap: SplitOverlap) -> tuple[tuple[int, int], tuple[int, int]]:
    return (overlap.of_one, overlap.size_of_one), (overlap.of_other, overlap.size_of_other)


def _seen(stats: DatasetStats) -> Block:
    rows = []
    for reading in stats.readings:
        if reading.whole is None:
            rows.append([reading.label, "–", _ABSENT, _ABSENT, _ABSENT, _ABSENT])
            continue
        whole = format_share(reading.whole, reading.sources)
        for place, (cause, tokens, words) in enumerate(ledger_entries(reading.source)):
            share = percent(tokens, reading.source.tokens) or 0.0
            first = (reading.label, whole) if not place else ("", "")
            counted = f"{tokens:,}" if reading.has_tokens else _ABSENT
            rows.append([first[0], cause, counted, f"{words:,}", f"{share:.1f}", first[1]])
    told = "what a system reads, and what its settings cut, cause by cause. No weights are trained"
    notes = [f"{describe_examples_read(stats, stats.read_split)}: {told}."]
    notes += _notes_of(stats.readings)
    columns = ("system", "", "tokens", "words", "%", "examples read whole")
    return Block("What each system would see", tuple(notes), columns, "llrrrr", rows, (("system", 44),))


def _notes_of(readings: Sequence[Reading]) -> Iterator[str]:
    """Yield what is to be said of some systems, of those of which it is the same at once."""
    whose: dict[str, list[str]] = {}
    for one in readings:
        merged = one.source.documents_merged
        for told, is_so in (
            (one.note, bool(one.note)),
            (NO_LEDGER, one.whole is None),
            (f"{merged:,} documents beyond max_documents share the last one's place", merged > 0),
        ):
            if is_so:
                whose.setdefault(told, []).append(one.label)
    yield from (f"{', '.join(labels)}: {told}." for told, labels in whose.items())


def ledger_entries(ledger: Truncation) -> list[tuple[str, int, int]]:
    """Return what was seen, then what was cut, largest first: (cause, tokens, words); together the whole text."""
    cuts: list[Cut] = sorted(ledger.cuts, key=lambda cut: (-cut.tokens, cut.cause))
    return [("seen", ledger.tokens_seen, ledger.words_seen), *((cut.cause, cut.tokens, cut.words) for cut in cuts)]


def _targets(stats: DatasetStats) -> Iterator[Block]:
    rows = []
    for one in stats.readings:
        if one.target is not None:
            cut = one.target.tokens - one.target.tokens_seen
            rows.append(
                [
                    one.label,
                    f"{one.targets:,}",
                    format_share(one.targets_cut, one.targets),
                    f"{one.target.tokens:,}",
                    format_share(cut, one.target.tokens),
                ]
            )
    columns = ("system", "targets", "cut", "tokens", "tokens cut")
    if rows:
        notes = (
            f"{describe_examples_read(stats, 'train')}: first references that are longer than model.decode_length.",
        )
        yield Block("What training would cut from the targets", notes, columns, "lrrrr", rows, (("system", 44),))


def number_rows(stats: DatasetStats) -> pd.DataFrame:
    """Return all numbers, a row each: dataset, split, what, name, statistic, value, n.

    Lengths and counts are in words, tokens or things; scores, measures and shares 0–100, or in the measure's unit.
    """
    found = [number for split in stats.splits for number in _numbers_of(split, stats)]
    for one in stats.overlaps or ():
        pair = f"{one.one}-{one.other}"
        found.append(_Number("", "near_duplicates", pair, "pairs", one.pairs, one.size_of_one + one.size_of_other))
        for split, (part, whole) in zip((one.one, one.other), _parts(one), strict=True):
            found.append(_Number(split, "near_duplicates", pair, "examples", part, whole))
    for reading in stats.readings:
        found += _numbers_of_reading(reading, stats.read_split)
    for record in stats.runs:
        found += _numbers_of_run(record)
    table = pd.DataFrame(found, columns=list(_Number._fields))
    table.insert(0, "dataset", stats.dataset)
    return table


def _numbers_of(split: SplitStats, stats: DatasetStats) -> Iterator[_Number]:
    every = lengths(split, len(stats.tokens)) | {name: split.counts[name] for name in STRUCTURE}
    for name, values in every.items():
        kind, _, place = name.rpartition("_")
        named = f"{kind} ({stats.tokens[int(place)]})" if place.isdecimal() else name
        what = "structure" if name in STRUCTURE else "length"
        n, *rest = summarize_lengths(values)
        for statistic, value in zip(("mean", "median", "p95", "max"), rest, strict=True):
            yield _Number(split.name, what, named, statistic, value, n)
    for name, measure in kept_measures(split).items():
        for statistic in ("mean", "lo", "hi"):
            yield _Number(split.name, "kept", name, statistic, measure[statistic], int(measure["n"]))
    n, scores = oracle_scores(split)
    for kind, score in scores.items():
        for statistic, value in score.items():
            yield _Number(split.name, "oracle", kind, statistic, value, n)


def _numbers_of_reading(reading: Reading, split: str) -> Iterator[_Number]:
    if reading.whole is not None:
        yield _Number(split, "reading", reading.label, "read_whole", reading.whole, reading.sources)
        for cause, tokens, words in ledger_entries(reading.source):
            for unit, count in (("tokens", tokens), ("words", words)):
                if unit == "words" or reading.has_tokens:
                    yield _Number(split, "reading", reading.label, f"{cause}_{unit}", count, reading.sources)
    if reading.target is not None:
        yield _Number("train", "targets", reading.label, "cut", reading.targets_cut, reading.targets)
        for cause, tokens, words in ledger_entries(reading.target):
            for unit, count in (("tokens", tokens), ("words", words)):
                yield _Number("train", "targets", reading.label, f"{cause}_{unit}", count, reading.targets)


def _numbers_of_run(record: RunRecord) -> Iterator[_Number]:
    examples = record.n + len(record.empty_references)
    if (seen := source_seen(record)) is not None:
        yield _Number(record.split, "run", run_label(record), "source_seen", seen, examples)
    for cause, share in cut_shares(record).items():
        yield _Number(record.split, "run", run_label(record), f"source_{cause}", share, examples)
    if record.fit.get("targets"):
        trained = record.corpus.get("examples", {}).get("train") or 0
        yield _Number("train", "run", run_label(record), "targets_cut", record.fit["targets_cut"], trained)
    yield _Number(record.split, "run", run_label(record), "outputs_cut", record.outputs_cut, examples)


def stats_csv(stats: DatasetStats) -> str:
    """Write all numbers as CSV."""
    return number_rows(stats).to_csv(index=False, lineterminator="\n")
