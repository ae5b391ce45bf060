"""`longsumbench import`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser
from longsumbench.formatting import print_text

_HELP = """\
Make a run of outputs that were written outside the suite. Tables, compare, inspect and score show it like any other
run, marked as imported.

  longsumbench import out.jsonl --model theirs --dataset pubmed                      {"id", "prediction"}, matched by id
  longsumbench import out.txt --model theirs --dataset jsonl dataset.path=my_texts   line n: the n-th example
  longsumbench import decoded --model theirs --dataset arxiv --split validation      a folder of NAME.dec
  longsumbench import beam5.jsonl --model theirs --variant "beam 5" --seed 2 --from https://example.org/outputs \\
      --dataset gov_report score.metrics=[novel_ngrams]

settings: dataset.*  score.*  results_dir=results  overwrite=false  baselines=true

Every example of the split needs an output. --intersect imports the examples that have one; they are in a separate
block of the table. The first import on a dataset also scores Lead, Random and Oracle. The same command again finds the
run.
More: docs/how-to/import.md
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("outputs", metavar="OUTPUTS", help="JSON lines, lines of text, or a folder of .dec files")
    command.add_argument("overrides", nargs="*", default=[], metavar="KEY=VALUE", help="settings, as listed above")
    command.add_argument("--model", required=True, metavar="NAME", help="a name for the system that wrote them")
    command.add_argument("--dataset", required=True, metavar="NAME", help="what was summarized")
    command.add_argument("--split", metavar="SPLIT", help="train, validation or test (default: test)")
    command.add_argument("--variant", default="", metavar="TEXT", help="the system's settings, in any words")
    command.add_argument("--seed", type=int, metavar="N", help="if there are outputs of several seeds")
    command.add_argument("--from", dest="origin", default="", metavar="TEXT", help="where they come from (URL, paper)")
    command.add_argument("--intersect", action="store_true", help="leave out ids that only one side has")


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.leaderboards.after_run import describe_runs
        from longsumbench.outputs.import_outputs import OutputsToImport, plan_import, run_import

    details = {name: getattr(options, name) for name in ("model", "variant", "seed", "origin", "intersect")}
    outputs = OutputsToImport(Path(options.outputs).expanduser(), **details)
    planned = plan_import(outputs, options.dataset, options.split, options.overrides)
    run_import(outputs, planned, ("longsumbench", *words), lambda *arguments: print_text(describe_runs(*arguments)))


imports_command = Command("import", "make a run of outputs of another system", _HELP, _add_arguments, _execute)
