"""`longsumbench export` and `longsumbench push`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser, add_results_dir, output_folder, results_of
from longsumbench.formatting import print_text

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
  longsumbench push results/runs/pydoc/seal/693c8b750af2 me/seal-pydoc
  longsumbench summarize me/seal-pydoc paper.md           use it, on any machine

Uploads weights (safetensors), configuration, tokenizer, card and scores. Creates the repository if it does not exist.
The token is that in HF_TOKEN, or that of `hf auth login`. The card has no absolute path of this machine.
"""


def _add_export_arguments(command: Parser) -> None:
    command.add_argument("runs", nargs="*", metavar="DATASET|RUN", help="datasets and runs (default: all datasets)")
    command.add_argument("--format", required=True, choices=("eee", "hub", "csv", "latex"), help="what to write")
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: export/FORMAT in the results)")
    add_results_dir(command)


def _execute_export(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.site.export import export_runs

    results = results_of(options)
    folder = output_folder(options.output, results.root / "export" / options.format)
    print_text(*export_runs(results, options.runs, options.format, folder))


def _add_push_arguments(command: Parser) -> None:
    command.add_argument("run", metavar="RUN", help="a run's folder, its id, or the beginning of its id")
    command.add_argument("repository", metavar="OWNER/NAME", help="the repository on the hub")
    command.add_argument("--private", action="store_true", help="create a private repository")
    add_results_dir(command)


def _execute_push(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.site.push import push_run

    print_text(push_run(results_of(options), options.run, options.repository, options.private))


_EXPORT, _PUSH = "write runs and tables for other tools", "upload a trained system to the hub"
export_command = Command("export", _EXPORT, _EXPORT_HELP, _add_export_arguments, _execute_export)
push_command = Command("push", _PUSH, _PUSH_HELP, _add_push_arguments, _execute_push, "the same command pushes again")
