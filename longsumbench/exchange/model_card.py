"""The files about a run in a model's repository on the Hugging Face hub: its card, and `.eval_results/`."""

import re
import shlex
from functools import partial
from importlib.resources import files
from typing import Any

from longsumbench.cache.hub import HUB_NAME
from longsumbench.errors import EnvironmentProblem
from longsumbench.formatting import escape_line
from longsumbench.leaderboards import comparability
from longsumbench.leaderboards.significance import comparable_rows
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.ledger import ledger_block
from longsumbench.views.tables import escape_markdown, markdown

_HUB_TEXTS = re.compile(
    r"([\w.-]+/[\w.-]+)@(\w+)"
)  # the source of texts from the hub: repository and revision
_FOLDERS = re.compile(
    r"(?:^|(?<=[=,\[]))[~/][^,]*/(?=[^,\]])"
)  # in a word of a command or a setting's value
_HIGHER = {
    "entity_precision",
    "number_precision",
    "support",
    "bertscore_f",
    "judge_recall",
    "judge_precision",
}


def shared_numbers(record: RunRecord) -> dict[str, Estimate]:
    """Return name → mean of ROUGE (F1) and of the measures of which a higher one is better, 0–100."""
    names = _HIGHER.union(comparability.numbers_shown([record]))
    measures = {
        name: measure.estimate
        for name, measure in record.evaluation.measures.items()
        if name in names
    }
    return {name: score.f1 for name, score in record.evaluation.scores.items()} | measures


def shared_command(record: RunRecord) -> str:
    """Return the command of a run on one line, without the folders of its machine."""
    return escape_line(shlex.join(map(without_folders, record.command)))


def without_folders(word: str) -> str:
    """Return a word of a command, or a setting's value, with only the last name of an absolute path."""
    return _FOLDERS.sub("", word)


def hub_texts(record: RunRecord) -> tuple[str, str] | None:
    """Return repository and revision of the texts that a run read from the hub; None for other texts."""
    match = _HUB_TEXTS.fullmatch(record.texts.source or "")
    return (match[1], match[2]) if match else None


def hub_files(record: RunRecord, repository: str) -> dict[str, str]:
    """Return path → content of the files about a run: the card, and the scores if the texts are from the hub.

    Raises:
        EnvironmentProblem: huggingface_hub is too old to write the scores.
    """
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    (rows,), texts, base = (
        comparable_rows([record]),
        hub_texts(record),
        record.system.checkpoint or "",
    )
    name, revision = texts or (record.key.dataset, None)
    about = partial(
        EvalResult, "summarization", name, record.key.dataset, dataset_split=record.key.split
    )
    scores = [
        about(kind, number.mean, dataset_revision=revision)
        for kind, number in shared_numbers(record).items()
    ]
    values: dict[str, Any] = {
        "record": record,
        "repository": repository,
        "hub": texts,
        "md": escape_markdown,
    }
    card = ModelCard.from_template(
        ModelCardData(
            model_name=repository,
            eval_results=scores,
            base_model=base if HUB_NAME.fullmatch(base) else None,
            datasets=[name] if texts else None,
        ),
        template_str=files("longsumbench.views")
        .joinpath("templates/model_card.md")
        .read_text(encoding="utf-8"),
        tables=markdown(
            f"{record.key.model} on {record.key.dataset}",
            [leaderboard_block(rows, [rows]), ledger_block([record])],
        ),
        command=shared_command(record),
        **values,
    )
    listed = {".eval_results/longsumbench.yaml": _eval_results(record, *texts)} if texts else {}
    return {"README.md": f"{card}\n", **listed}


def _eval_results(record: RunRecord, repository: str, revision: str) -> str:
    import yaml  # type: ignore[import-untyped] # not annotated

    try:
        from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    except ImportError as error:
        problem = "this huggingface_hub cannot write .eval_results"
        raise EnvironmentProblem(f"{problem}: pip install --upgrade huggingface_hub") from error
    entries = []
    for name, (mean, low, high) in shared_numbers(record).items():
        texts = f"{record.key.split} split, n={record.evaluation.n}"
        notes = f"{texts}, 95 % interval {low:.2f} to {high:.2f}; {record.evaluation.signature}"
        entries.append(
            EvalResultEntry(repository, name, mean, revision, date=record.finished, notes=notes)
        )
    return str(
        yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
    )
