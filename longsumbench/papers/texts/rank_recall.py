"""Hierarchical Transformer, Table 1: the ROUGE-L recall of a ranker's best paragraphs."""

from collections.abc import Iterator

from longsumbench.analysis.dataset.rank_recall import KEPT, RankRecall, RankRecallSettings, rank_recall
from longsumbench.api import UNRANKED, RankerSettings, build_settings
from longsumbench.leaderboards.published import read_rank_recalls
from longsumbench.metrics.aggregate import PERCENT, Estimate
from longsumbench.papers.claims import Claim, compare_examples, judge_claims
from longsumbench.papers.long_table import DIFFERENCE, OURS, PRINTED, TableNumber, format_change, long_table
from longsumbench.papers.page import Job, Page
from longsumbench.papers.texts.reachable import ReadableDataset, options_named, read_datasets
from longsumbench.report.tables import Block

_PRINTED_ON = "WikiSum"
_PRINTED_AS = {"tfidf": "Similarity (tf-idf)", "lstm": "Ranking (LSTM regressor)"}  # ranker → system in published.csv
_HIGHER, _LOWER = "lstm", "tfidf"
_RANKER = "ranker."  # options with this prefix are settings of learned rankers
_COLUMNS = ("ranker", "", *(f"best {kept}" for kept in KEPT))


def rank_recall_page(job: Job) -> Page:
    """Return the recall of each ranker's best 5, 10, 20 and 40 paragraphs, 0–100.

    The options `rank`, `unit`, `seed`, `device` and `ranker.KEY` are those of `longsumbench stats` with rankers.

    The claim is that the learned ranker finds more than tf-idf similarity, for each number of paragraphs (§4).

    Raises:
        UsageError: no dataset can be read, an option is invalid, or an example has no title.
        EnvironmentProblem: no dataset can be read.
        DataError: a file is damaged, or a dataset has no training split.
    """
    reached = read_datasets(job)
    settings = build_settings(RankRecallSettings, dict(options_named(job, "rank", "unit", "seed", "device")), "")
    typed = {name.removeprefix(_RANKER): job.options[name] for name in job.options if name.startswith(_RANKER)}
    inherited = {"unit": settings.unit, "seed": settings.seed, "device": settings.device}
    ranker: RankerSettings = build_settings(RankerSettings, {**inherited, **typed}, _RANKER)
    blocks, numbers, claims = [], list[TableNumber](), list[Claim]()
    for dataset in reached.datasets:
        found = rank_recall(dataset.settings, settings, ranker)
        printed = _printed() if dataset.name == _PRINTED_ON else {}
        ours = _ours(found)
        blocks.append(_block(dataset, found, ours, printed))
        numbers += _numbers(job, dataset, found, ours, printed)
        claims += _claims(dataset, found)
    verdicts = judge_claims(claims)
    training = f"Ours: learned rankers train for {ranker.steps:,} steps of {ranker.batch_size} titles"
    sizes = f"vectors of {ranker.dimension} and a vocabulary of {ranker.vocabulary_size:,} entries"
    return Page(
        blocks=tuple(blocks),
        numbers=long_table(numbers, verdicts),
        verdicts=verdicts,
        conditions=(
            *reached.conditions,
            "The paper does not say on which split it measures, nor which ROUGE-L: of a sentence or of a summary.",
            f"{training}, with {sizes}. The paper gives neither steps nor batch.",
        ),
    )


def _printed() -> dict[str, dict[int, str]]:
    """Return ranker → number of paragraphs → printed recall, 0–100."""
    found = {name.partition(" (liu2019hiersumm")[0]: recalls for name, recalls in read_rank_recalls(_PRINTED_ON)}
    return {ranker: found[system] for ranker, system in _PRINTED_AS.items()}


def _ours(found: RankRecall) -> dict[tuple[str, int], Estimate]:
    """Return (ranker, number of paragraphs) → recall, 0–100."""
    rows = found.table().itertuples(index=False)
    return {(name, kept): Estimate(mean, low, high) for name, kept, mean, low, high in rows}


def _change(ours: Estimate, printed: str) -> Estimate:
    return Estimate(*(number - float(printed) for number in ours))


def _block(
    dataset: ReadableDataset,
    found: RankRecall,
    ours: dict[tuple[str, int], Estimate],
    printed: dict[str, dict[int, str]],
) -> Block:
    cells = []
    for name in found.recalls:
        label = f"{name} (order of the text)" if name == UNRANKED else name
        recalls = printed.get(name, {})
        if recalls:
            cells.append([_PRINTED_AS[name], "printed", *(recalls[kept] for kept in KEPT)])
        cells.append([label, "ours", *(f"{ours[name, kept]:.2f}" for kept in KEPT)])
        if recalls:
            changes = (format_change(_change(ours[name, kept], recalls[kept])) for kept in KEPT)
            cells.append(["", "ours − printed", *changes])
    return Block(dataset.label, tuple(found.notes()), _COLUMNS, "ll" + "r" * len(KEPT), cells)


def _numbers(
    job: Job,
    dataset: ReadableDataset,
    found: RankRecall,
    ours: dict[tuple[str, int], Estimate],
    printed: dict[str, dict[int, str]],
) -> Iterator[TableNumber]:
    size = len(found.texts_of_each)
    for (name, kept), number in ours.items():
        measure = _measure(kept)
        if value := printed.get(name, {}).get(kept):
            source = f"{job.artifact.source} {job.artifact.prints}"
            yield TableNumber(PRINTED, dataset.name, name, measure, float(value), source=source)
            yield TableNumber(DIFFERENCE, dataset.name, name, measure, *_change(number, value), n=size)
        yield TableNumber(OURS, dataset.name, name, measure, *number, n=size)


def _measure(kept: int) -> str:
    return f"ROUGE-L recall of the best {kept}"


def _claims(dataset: ReadableDataset, found: RankRecall) -> Iterator[Claim]:
    lacking = [name for name in (_HIGHER, _LOWER) if name not in found.recalls]
    for place, kept in enumerate(KEPT):
        claim = f"{_HIGHER} > {_LOWER}", _measure(kept), dataset.name
        if lacking:
            yield Claim(*claim, None, f"rank= does not name {' and '.join(lacking)}")
            continue
        more = int((found.texts_of_each > kept).sum())
        reason = f"{more:,} of them have more than {kept} {found.unit}s"
        if not more:
            yield Claim(*claim, None, f"no example has more than {kept} {found.unit}s")
            continue
        gaps = PERCENT * (found.recalls[_HIGHER][:, place] - found.recalls[_LOWER][:, place])
        yield Claim(*claim, compare_examples(gaps), reason)
