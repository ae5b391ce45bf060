"""`longsumbench push`: a run's system as a model on the Hugging Face hub, which `longsumbench summarize` can use."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from longsumbench.cache.hub import unreachable
from longsumbench.core import read_saved
from longsumbench.errors import EnvironmentProblem, UsageError
from longsumbench.exchange.model_card import hub_files
from longsumbench.files import write_atomically
from longsumbench.modeling.checkpoints import describe_error
from longsumbench.runs.record import RunRecord, run_label
from longsumbench.runs.results import Results
from longsumbench.runs.summarize import find_system, recorded_decoding

_UPLOADED = {
    ".json",
    ".jinja",
    ".md",
    ".model",
    ".safetensors",
    ".spm",
    ".txt",
    ".yaml",
}  # never pickles


def push_run(results: Results, run: str, repository: str, private: bool = False) -> str:
    """Upload a trained system with its card and its scores, in one commit; return the address of its page.

    `repository` is "OWNER/NAME". It is created if it does not exist; its other files stay.

    Raises:
        UsageError: the repository's name is invalid, there is no such run, or it has no weights here.
        EnvironmentProblem: there is no token, or the hub cannot be reached or refuses.
        DataError: the checkpoint or the record is damaged.
    """
    from huggingface_hub import HfApi, get_token, hf_hub_url
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
            f"{run_label(record)} has no weights to push: name a run that trained its system"
        )
    found, _ = find_system(str(folder), [], results, "none")
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
        found.load().save(staged)
        saved = {**read_saved(staged), "decode": recorded_decoding(record)}
        for path, content in {
            "system.json": json.dumps(saved, indent=1),
            **hub_files(record, repository),
        }.items():
            write_atomically(staged / path, content)
        if refused := [
            path.name
            for path in staged.rglob("*")
            if path.is_file() and path.suffix not in _UPLOADED
        ]:
            raise UsageError(
                f"model={record.key.model} saves {refused[0]}: only {', '.join(sorted(_UPLOADED))} are pushed"
            )
        api, state = HfApi(), "nothing was pushed"
        try:
            api.create_repo(repository, private=private or None, exist_ok=True)
            state = (
                f"{repository} exists, without the files of this run; the same command pushes them"
            )
            api.upload_folder(
                repo_id=repository, folder_path=staged, commit_message=f"Run {record.run_id}"
            )
        except Exception as error:  # the library's errors have no common class
            raise EnvironmentProblem(
                f"the Hugging Face hub refused ({describe_error(error)}): {state}"
            ) from error
    return f"{api.endpoint}/{repository}"
