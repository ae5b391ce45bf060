"""`longsumbench push`: a run's system as a model on the Hugging Face hub, which `longsumbench summarize` can use."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longsumbench.cache.hub import unreachable
from longsumbench.core import read_saved
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.exchange.model_card import hub_files
from longsumbench.files import write_atomically
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.runs.checkpoints import recorded_decoding
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.runs.run_names import describe_run, hide_folders, shorten_values
from longsumbench.runs.summarize import resolve_system

# Endings of files; never pickles
_UPLOADED = {".json", ".jinja", ".md", ".model", ".safetensors", ".spm", ".txt", ".yaml"}


def push_run(results: Results, run: str, repository: str, private: bool = False) -> str:
    """Upload a trained system with its card and its scores, in one commit; return the address of its page.

    `repository` is "OWNER/NAME". It is created if it does not exist; its other files stay.

    Raises:
        UsageError: the repository's name is invalid, there is no such run, or it has no weights here.
        EnvironmentProblem: there is no token, or the hub cannot be reached or refuses.
        DataError: the checkpoint or the record is damaged.
    """
    from huggingface_hub import get_token, hf_hub_url
    from huggingface_hub.errors import HFValidationError

    try:
        hf_hub_url(repository, "README.md")  # checks the name
        if "/" not in repository:
            raise HFValidationError("give it as OWNER/NAME")
    except HFValidationError as error:
        raise UsageError(f"cannot push to '{repository}': {error}") from error
    folder = results.find(run)
    record = RunRecord.read(folder)
    if not record.trained:
        raise UsageError(
            f"{describe_run(record)} has no weights to push: name a run that trained its system"
        )
    saved_system, _ = resolve_system(str(folder), [], results, "none")
    # Everything is checked before anything is created on the hub
    if get_token() is None:
        raise EnvironmentProblem(
            "no token of the Hugging Face hub: set HF_TOKEN, or log in with `hf auth login`"
        )
    if problem := unreachable():
        raise EnvironmentProblem(
            f"the Hugging Face hub cannot be reached ({problem}); nothing was pushed"
        )
    with TemporaryDirectory() as name:
        staged = Path(name)
        saved_system.load().save(staged)
        saved: dict[str, Any] = {**read_saved(staged), "decode": recorded_decoding(record)}
        saved["config"] = shorten_values(saved["config"])
        write_atomically(staged / "system.json", json.dumps(saved, indent=1))
        for path, content in hub_files(hide_folders(record), repository).items():
            write_atomically(staged / path, content)
        for file in staged.rglob("*"):
            if file.is_file() and file.suffix not in _UPLOADED:
                only = f"only {', '.join(sorted(_UPLOADED))} are pushed"
                raise UsageError(f"model={record.key.model} saves {file.name}: {only}")
        return _upload(staged, repository, private, f"Run {record.run_id}")


def _upload(folder: Path, repository: str, private: bool, message: str) -> str:
    """Upload a folder in one commit; return the address of the repository."""
    from huggingface_hub import HfApi

    api, state = HfApi(), "nothing was pushed"
    try:
        api.create_repo(repository, private=private or None, exist_ok=True)
        state = f"{repository} exists, without the files of this run; the same command pushes them"
        api.upload_folder(repo_id=repository, folder_path=folder, commit_message=message)
    except Exception as error:  # the library's errors have no common class
        problem = f"the Hugging Face hub refused ({describe_error(error)})"
        raise EnvironmentProblem(f"{problem}: {state}") from error
    return f"{api.endpoint}/{repository}"
