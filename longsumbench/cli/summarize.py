"""`longsumbench summarize`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir

_HELP = """\
Summarize files of your own with a system that was fitted before.

  longsumbench summarize 85f3139c paper.md                   by a run's id, or its beginning
  longsumbench summarize my_checkpoint one.txt two.txt       by a checkpoint's folder, or a run's
  longsumbench summarize 85f3139c a.txt b.txt --together     one summary of several documents
  longsumbench summarize 85f3139c texts.jsonl --json decode.num_beams=4 device=cpu > summaries.jsonl
  longsumbench summarize 85f3139c meeting.txt --query "What was decided?"     by a system trained on questions
  pdftotext paper.pdf - | longsumbench summarize 85f3139c -

files:     .txt or no ending (blank lines separate paragraphs), .md (headings name sections), .jsonl[.gz] (see
           docs/get-started/own-texts.md; summaries are not needed), - for text from standard input
settings:  decode.*  device=auto|cpu|cuda  seed=1                                 (longsumbench list settings)

A run's own decode settings are used, where it is named by run. What was not read is told on stderr.
--json prints an object a line: id, summary, complete, tokens, truncation, evidence (what the system looked at:
arrays with the names of their axes, and the texts of its units; null for a system that keeps none).
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("checkpoint", metavar="CHECKPOINT", help="a checkpoint's folder, a run's, or a run's id")
    command.add_argument("inputs", nargs="*", metavar="FILE", help="files, and settings as KEY=VALUE")
    command.add_argument("--together", action="store_true", help="take all files as one text of several documents")
    command.add_argument("--query", metavar="TEXT", help="the question that the summaries shall answer")
    command.add_argument("--json", action="store_true", help="print an object a line, with evidence")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.runs.record import Results
    from longsumbench.runs.summarize import summarize_files

    results = Results(Path(options.results_dir).expanduser())
    try:
        summarize_files(options.checkpoint, options.inputs, results, options.together, options.json, options.query)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("the summaries that are printed are whole") from None


summarize_command = Command("summarize", "summarize files of your own", _HELP, _add_arguments, _execute)
