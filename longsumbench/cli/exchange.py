"""Results of several machines and people, and for other tools: `longsumbench merge`, `verify`, `export` and `push`."""

from argparse import Namespace
from pathlib import Path

from longsumbench.cli.parser import RESULTS_DIR, RUN, Argument, Command, open_results, output_folder
from longsumbench.errors import DataError
from longsumbench.formatting import format_count, plain_table, print_text

_MERGE_HELP = """\
Copy the finished runs of results folders and bundles into one results folder, and make its tables again.

  longsumbench merge ../ours/results ../theirs/results        into results/
  longsumbench merge pubmed.tar.xz --results-dir everyone     a bundle of `longsumbench runs pack`

A run that is in several places is kept once. If its summaries or results differ, or a file cannot be used, a line says
so, everything else is merged, and the exit code is 3. Nothing is overwritten. origin.json in a run's folder says where
it came from. Marks of `longsumbench verify` are not copied: verify again. More: docs/how-to/share-results.md
"""


_MERGE_ARGUMENTS = (
    Argument("inputs", "results folders, or bundles (.tar.xz)", "FOLDER", nargs="+"),
    RESULTS_DIR,
)


def _execute_merge(options: Namespace) -> None:
    from longsumbench.exchange.merge import merge_results
    from longsumbench.runs.results import Results

    for line in merge_results(
        options.inputs, Results.writable(options.results_dir, "--results-dir")
    ):
        print_text(line)


_MERGED = "merged runs are kept, and the same command merges the others"
merge_command = Command(
    "merge", "merge results folders", _MERGE_HELP, _MERGE_ARGUMENTS, _execute_merge, _MERGED
)

_VERIFY_HELP = """\
Check the records of finished runs, compute their scores again from their outputs, and say what does not agree.

  longsumbench verify 85f3139c 19c1                  runs by their ids, or the beginnings of these
  longsumbench verify ../theirs/results              all finished runs in a results folder
  longsumbench verify pubmed.tar.xz --dataset-path ~/pubmed       those in a bundle, with the texts in a folder here

It needs the summaries (predictions.jsonl), the settings (config.yaml) and the texts. It finds changed scores, means and
summaries, other examples, other texts, and another version of a metric; labels, a run id, losses and times that do not
fit the settings; and the outputs of another run in the same folder under another seed or model. The metrics bertscore,
support and judge need models and are not computed again, nor are those of plug-ins. If all agree, verified.json in the
run's folder says so, and tables mark the run until one of its files changes; packed runs are not marked. If not, the
exit code is 3. More: docs/how-to/share-results.md
"""


_VERIFY_ARGUMENTS = (
    Argument("runs", "runs, results folders, or bundles (.tar.xz)", "RUN", nargs="+"),
    Argument("--dataset-path", "where the texts are here, instead of dataset.path", "PATH"),
    RESULTS_DIR,
)


def _execute_verify(options: Namespace) -> None:
    from longsumbench.exchange.verify import verify_runs
    from longsumbench.runs.results import check_indexes, finished_folders

    folders = dict[Path, None]()  # a run may be named twice
    for name in options.runs:
        path = Path(name).expanduser()
        is_single_run = path.is_dir() and (path / "record.json").is_file()
        if path.exists() and not is_single_run:
            folders |= dict.fromkeys(finished_folders(path))
            check_indexes(path)
        else:
            folders[open_results(options).find(name)] = None
    rows, num_failed = [], 0
    for folder, problems in verify_runs([*folders], options.dataset_path):
        *_, dataset, model, run_id = folder.absolute().parts
        num_failed += bool(problems)
        rows += [(run_id[:8], model, dataset, line) for line in problems or ["verified"]]
    print_text(plain_table(rows or [("no finished run",)]))
    # Raised at the end: all runs are checked.
    if num_failed:
        counts = f"{format_count(num_failed, 'run')} of {len(folders):,}"
        raise DataError(f"{counts} not verified: see the table")


_AGAIN = "the same command starts again"
verify_command = Command(
    "verify", "score outputs again", _VERIFY_HELP, _VERIFY_ARGUMENTS, _execute_verify, _AGAIN
)

_EXPORT_HELP = """\
Write finished runs and tables in formats that other tools read.

  longsumbench export --format eee                        all runs, for Every Eval Ever
  longsumbench export pubmed 85f3139c --format hub        the runs on a dataset, and a run by its id
  longsumbench export pubmed --format latex --output paper/tables

  eee         a JSON file for each run, in the folders of the Every Eval Ever datastore (schema 0.3.0)
  hub         a model card with its metadata for each run, and .eval_results/ if its texts are from the hub
  csv, latex  the table of each dataset

More: docs/how-to/export.md
"""
_PUSH_HELP = """\
Upload a trained system to the Hugging Face hub, with a model card that is made from its run.

  longsumbench push 85f3139c me/seal-pubmed --private
  longsumbench push results/runs/aclsum/seal/79630ca441a5 me/seal-aclsum
  longsumbench summarize me/seal-aclsum paper.md           use it, on any machine

Uploads weights (safetensors), configuration, tokenizer, card and scores. Creates the repository if it does not exist.
The token is that in HF_TOKEN, or that of `hf auth login`. The card has no absolute path of this machine.
"""


_EXPORT_ARGUMENTS = (
    Argument("runs", "datasets and runs (default: all datasets)", "DATASET|RUN", nargs="*"),
    Argument(
        "--format", "what to write", "FORMAT", required=True, choices=("eee", "hub", "csv", "latex")
    ),
    Argument("--output", "where to write (default: export/FORMAT in the results)", "FOLDER"),
    RESULTS_DIR,
)


def _execute_export(options: Namespace) -> None:
    from longsumbench.exchange.export import export_runs

    # Each format has its own folder: files of two formats may have the same names.
    results = open_results(options)
    folder = output_folder(options.output, results.root / "export" / options.format)
    print_text(*export_runs(results, options.runs, options.format, folder))


_PUSH_ARGUMENTS = (
    RUN,
    Argument("repository", "the repository on the hub", "OWNER/NAME"),
    Argument("--private", "create a private repository"),
    RESULTS_DIR,
)


def _execute_push(options: Namespace) -> None:
    from longsumbench.exchange.push import push_run

    print_text(push_run(open_results(options), options.run, options.repository, options.private))


_EXPORT, _PUSH = "write runs and tables for other tools", "upload a trained system to the hub"
export_command = Command("export", _EXPORT, _EXPORT_HELP, _EXPORT_ARGUMENTS, _execute_export)
push_command = Command(
    "push", _PUSH, _PUSH_HELP, _PUSH_ARGUMENTS, _execute_push, "the same command pushes again"
)
