"""PageSum, Figure 1: the similarity of two sentences of a source by their distance."""

from msgspec import structs

from longsumbench.analysis.locality.locality import Locality, LocalitySettings, analyze_locality, draw_locality
from longsumbench.core import build_settings
from longsumbench.metrics.aggregate import PERCENT
from longsumbench.papers.claims import (
    OURS,
    Claim,
    TableNumber,
    claim_about_texts,
    compare_examples,
    judge_claims,
    long_table,
)
from longsumbench.papers.page import Job, Page
from longsumbench.papers.texts.reachable import ReadableDataset, options_named, read_datasets
from longsumbench.render.tables import Block

_LIMIT = 10  # sentences; pairs up to this distance are near
_SIMILARITY_MEASURE = "cosine × 100"
_LOCALITY_OPTIONS = ("encoder", "pooling", "sample", "distance", "batch_size", "device")


def similarity_page(job: Job) -> Page:
    """Return the curve of each dataset.

    The options `encoder`, `pooling`, `sample`, `distance`, `batch_size` and `device` are those of
    `longsumbench analyze locality`. `encoder` is null for tf-idf vectors.

    The claim of the paper table is that near sentences are more similar than far ones. Near are pairs up to 10
    sentences apart. The paper gives no such limit.

    Raises:
        UsageError: no dataset can be read, or the encoder cannot be used.
        EnvironmentProblem: no dataset can be read.
        DataError: a file is damaged, or no source of a dataset has two sentences.
    """
    readable = read_datasets(job)
    settings = build_settings(LocalitySettings, dict(options_named(job, *_LOCALITY_OPTIONS)), "")
    settings.distance = max(_LIMIT, settings.distance)  # so that no bin has near and far pairs
    blocks, numbers, claims, pictures = [], list[TableNumber](), list[Claim](), {}
    for dataset in readable.datasets:
        locality = analyze_locality(dataset.settings, settings)
        block = locality.block()
        blocks.append(Block(dataset.label, block.notes, block.columns, block.align, block.rows))
        numbers += _curve_numbers(dataset, locality)
        comparison = compare_examples(PERCENT * locality.near_minus_far(_LIMIT)[:, None])
        reason = f"near: up to {_LIMIT} sentences apart" if comparison else f"no source has {_LIMIT + 2} sentences"
        papers = [structs.replace(paper, on=_SIMILARITY_MEASURE) for paper in job.paper_table.orderings]
        claims += [claim_about_texts(paper, dataset.name, comparison, reason) for paper in papers]
        pictures[dataset.picture_name(job)] = draw_locality(locality)["png"]
    verdicts = judge_claims(claims)
    return Page(
        blocks=tuple(blocks),
        numbers=long_table(numbers, verdicts),
        verdicts=verdicts,
        conditions=(*readable.conditions, *_describe_vectors(settings)),
        pictures=pictures,
    )


def _curve_numbers(dataset: ReadableDataset, locality: Locality) -> list[TableNumber]:
    rows = []
    for _, row in locality.table().iterrows():
        at_distance = row["pairs of"] == "a distance"
        span = f"{row['from']}–{row['to']}" if row["from"] < row["to"] else f"{row['from']}"
        name = f"distance {span}" if at_distance else row["pairs of"]
        mean, low, high = (PERCENT * row[column] for column in ("similarity", "low", "high"))
        rows.append(TableNumber(OURS, dataset.name, name, _SIMILARITY_MEASURE, mean, low, high, int(row["examples"])))
    return rows


def _describe_vectors(settings: LocalitySettings) -> list[str]:
    printed = "The paper prints a curve without numbers, from sentence vectors of SimCSE (Gao et al. 2021)"
    if settings.encoder is None:
        return [f"{printed}; ours are tf-idf vectors (encoder=FOLDER or a hub name sets an encoder)."]
    return [f"{printed}; ours are those of {settings.encoder}."]
