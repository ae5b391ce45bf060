"""PageSum, Table 4: the coherence of references, shuffled references and summaries."""

import pandas as pd

from longsumbench.analysis.coherence.plot import draw_coherence
from longsumbench.papers.long_table import TableNumber, long_table
from longsumbench.papers.numbers.conditions import describe_conditions
from longsumbench.papers.numbers.orderings import decide_claims
from longsumbench.papers.numbers.ours import read_ours
from longsumbench.papers.page import Job, Page
from longsumbench.papers.texts.coherence_table import ScoredTable
from longsumbench.papers.texts.coherent_texts import load_next_sentence_model, score_rows
from longsumbench.papers.texts.reachable import read_datasets

_PAPERS_BERT = "bert-large-uncased"


def check_coherence(job: Job) -> None:
    """Check that the option `bert` names a next-sentence model.

    Raises:
        UsageError: it does not.
        EnvironmentProblem: the model is not on this machine, and the hub cannot be reached.
    """
    load_next_sentence_model(job)


def coherence_page(job: Job) -> Page:
    """Return the coherence of references, shuffled references and each row's outputs, 0–100.

    Options: `bert` is the folder or hub name of a BERT for next-sentence prediction; `sample` is the number of
    examples, null for all that the runs summarized; `device` is auto, cpu or cuda.

    A row of the artifact without runs is a text: its `published` system is "reference summary" or "random oracle".

    Raises:
        UsageError: the option `bert` is missing or not a next-sentence model, or no dataset can be read.
        EnvironmentProblem: no dataset can be read, or the model cannot be downloaded.
        DataError: no example has a reference, or a file is damaged.
    """
    metric = load_next_sentence_model(job)
    reached = read_datasets(job)
    ours = read_ours(job)
    blocks, numbers, scores, pictures = [], list[TableNumber](), dict[str, pd.DataFrame](), {}
    conditions = [*reached.conditions, *describe_conditions(job, ours)]
    for dataset in reached.datasets:
        scored = score_rows(job, dataset, metric)
        table = ScoredTable(job.artifact, dataset, scored, ours)
        blocks.append(table.block())
        numbers += table.numbers()
        scores |= scored.frames()
        conditions += [
            f"{label} on {dataset.name}: {lacking.what}; {lacking.advice}."
            for label, lacking in scored.missing.items()
            if lacking.what
        ]
        pictures[dataset.picture_name(job)] = draw_coherence(scored.found)["png"]
    verdicts = decide_claims(job, ours._replace(scores=scores))
    if job.options["bert"] != _PAPERS_BERT:
        conditions.append(f"The paper's model is {_PAPERS_BERT}; ours: {metric.signature(0).split('|')[1]}.")
    return Page(
        blocks=tuple(blocks),
        numbers=long_table([*numbers, *ours.learned_numbers()], verdicts),
        verdicts=verdicts,
        conditions=tuple(dict.fromkeys(conditions)),
        pictures=pictures,
    )
