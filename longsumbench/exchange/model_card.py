"""The files about a run in a model's repository on the Hugging Face hub: its card, and `.eval_results/`."""

import re
import shlex
from functools import partial
from importlib.resources import files
from typing import Any

from longsumbench.cache.hub import HUB_NAME
from longsumbench.errors import EnvironmentProblem
from longsumbench.formatting import escape_line, format_interval
from longsumbench.leaderboards import comparability
from longsumbench.leaderboards.significance import build_blocks
from longsumbench.metrics.aggregate import Estimate
from longsumbench.runs.record import RunRecord
from longsumbench.views.leaderboard import leaderboard_block
from longsumbench.views.ledger import ledger_block
from longsumbench.views.tables import escape_markdown, markdown

# The source of texts from the hub: repository and revision
_HUB_TEXTS = re.compile(r"([\w.-]+/[\w.-]+)@(\w+)")
# Measures of which a higher one is better
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
    names = _HIGHER.union(comparability.shown_measures([record]))
    numbers = {name: score.f1 for name, score in record.evaluation.scores.items()}
    for name, measure in record.evaluation.measures.items():
        if name in names:
            numbers[name] = measure.estimate
    return numbers


def shared_command(record: RunRecord) -> str:
    """Return the command of a run on one line."""
    return escape_line(shlex.join(record.command))


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

    key, texts, base = record.key, hub_texts(record), record.system.checkpoint or ""
    name, revision = texts or (key.dataset, None)
    about = partial(
        EvalResult,
        "summarization",
        name,
        key.dataset,
        dataset_split=key.split,
        dataset_revision=revision,
    )
    data = ModelCardData(
        model_name=repository,
        eval_results=[about(kind, number.mean) for kind, number in shared_numbers(record).items()],
        base_model=base if HUB_NAME.fullmatch(base) else None,
        datasets=[name] if texts else None,
    )
    (rows,) = build_blocks([record])
    blocks = [leaderboard_block(rows, [rows]), ledger_block([record], {})]
    values: dict[str, Any] = {
        "record": record,
        "repository": repository,
        "hub": texts,
        "md": escape_markdown,
        "tables": markdown(f"{key.model} on {key.dataset}", blocks),
        "command": shared_command(record),
    }
    template = files("longsumbench.views") / "templates/model_card.md"
    card = ModelCard.from_template(
        data, template_str=template.read_text(encoding="utf-8"), **values
    )
    contents = {"README.md": f"{card}\n"}
    if texts:
        contents[".eval_results/longsumbench.yaml"] = _eval_results(record, *texts)
    return contents


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
        notes = f"{texts}, 95 % interval {format_interval(low, high, '.2f')}; {record.evaluation.signature}"
        entries.append(
            EvalResultEntry(repository, name, mean, revision, date=record.finished, notes=notes)
        )
    return str(
        yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
    )
