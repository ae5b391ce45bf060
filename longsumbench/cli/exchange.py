"""Results of several machines and people, and for other tools: `longsumbench merge`, `verify`, `export` and `push`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir, output_folder, results_of
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


def _add_merge_arguments(command: Parser) -> None:
    command.add_argument(
        "inputs", nargs="+", metavar="FOLDER", help="results folders, or bundles (.tar.xz)"
    )
    add_results_dir(command)


def _execute_merge(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.exchange.merge import merge_results
    from longsumbench.runs.results import Results

    for line in merge_results(
        options.inputs, Results.writable(options.results_dir, "--results-dir")
    ):
        print_text(line)


_MERGED = "merged runs are kept, and the same command merges the others"
merge_command = Command(
    "merge", "merge results folders", _MERGE_HELP, _add_merge_arguments, _execute_merge, _MERGED
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


def _add_verify_arguments(command: Parser) -> None:
    command.add_argument(
        "runs", nargs="+", metavar="RUN", help="runs, results folders, or bundles (.tar.xz)"
    )
    command.add_argument(
        "--dataset-path", metavar="PATH", help="where the texts are here, instead of dataset.path"
    )
    add_results_dir(command)


def _execute_verify(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.exchange.verify import verify_runs
    from longsumbench.runs.results import finished_folders

    folders, rows, failed = list[Path](), list[tuple[str, ...]](), 0
    for name in options.runs:
        path = Path(name).expanduser()
        several = path.is_file() or (path.is_dir() and not (path / "record.json").is_file())
        folders += finished_folders(path) if several else [results_of(options).find(name)]
    for folder, problems in verify_runs([*dict.fromkeys(folders)], options.dataset_path):
        *_, dataset, model, run_id = folder.absolute().parts
        failed += bool(problems)
        rows += [(run_id[:8], model, dataset, line) for line in problems or ["verified"]]
    print_text(plain_table(rows or [("no finished run",)]))
    if failed:
        raise DataError(
            f"{format_count(failed, 'run')} of {len({*folders}):,} not verified: see the table"
        )


_AGAIN = "the same command starts again"
verify_command = Command(
    "verify", "score outputs again", _VERIFY_HELP, _add_verify_arguments, _execute_verify, _AGAIN
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
  longsumbench push results/runs/pydoc/seal/79630ca441a5 me/seal-pydoc
  longsumbench summarize me/seal-pydoc paper.md           use it, on any machine

Uploads weights (safetensors), configuration, tokenizer, card and scores. Creates the repository if it does not exist.
The token is that in HF_TOKEN, or that of `hf auth login`. The card has no absolute path of this machine.
"""


def _add_export_arguments(command: Parser) -> None:
    command.add_argument(
        "runs", nargs="*", metavar="DATASET|RUN", help="datasets and runs (default: all datasets)"
    )
    command.add_argument(
        "--format", required=True, choices=("eee", "hub", "csv", "latex"), help="what to write"
    )
    command.add_argument(
        "--output", metavar="FOLDER", help="where to write (default: export/FORMAT in the results)"
    )
    add_results_dir(command)


def _execute_export(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.exchange.export import export_runs

    results = results_of(options)
    folder = output_folder(options.output, results.root / "export" / options.format)
    print_text(*export_runs(results, options.runs, options.format, folder))


def _add_push_arguments(command: Parser) -> None:
    command.add_argument(
        "run", metavar="RUN", help="a run's folder, its id, or the beginning of its id"
    )
    command.add_argument("repository", metavar="OWNER/NAME", help="the repository on the hub")
    command.add_argument("--private", action="store_true", help="create a private repository")
    add_results_dir(command)


def _execute_push(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.exchange.push import push_run

    print_text(push_run(results_of(options), options.run, options.repository, options.private))


_EXPORT, _PUSH = "write runs and tables for other tools", "upload a trained system to the hub"
export_command = Command("export", _EXPORT, _EXPORT_HELP, _add_export_arguments, _execute_export)
push_command = Command(
    "push", _PUSH, _PUSH_HELP, _add_push_arguments, _execute_push, "the same command pushes again"
)
