"""`longsumbench summarize`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser, add_results_dir, results_of

_HELP = """\
Summarize your own files with a trained system.

  longsumbench summarize 85f3139c paper.md                   a run, by its id or the beginning of its id
  longsumbench summarize my_checkpoint one.txt two.txt       the folder of a checkpoint or a run
  longsumbench summarize 85f3139c a.txt b.txt --together     one summary of several documents
  longsumbench summarize 85f3139c texts.jsonl --json decode.num_beams=4 device=cpu > summaries.jsonl
  longsumbench summarize 85f3139c meeting.txt --query "What was decided?"     with a system trained on questions
  pdftotext paper.pdf - | longsumbench summarize 85f3139c -

files:     .txt or no ending (blank lines separate paragraphs), .md (headings name sections), .jsonl[.gz] (see
           docs/get-started/own-texts.md; summaries are not needed), - for text from standard input
settings:  decode.*  device=auto|cpu|cuda  seed=1                                 (longsumbench list settings)

For a run, its own decode settings are the defaults. What the system did not read is reported on stderr.
--json prints one object per line: id, summary, complete, tokens, truncation, evidence (what the system looked at:
arrays with the names of their axes, and the texts of its units; null if the system keeps none).
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("checkpoint", metavar="CHECKPOINT", help="the folder of a checkpoint or a run, or a run's id")
    command.add_argument("inputs", nargs="*", metavar="FILE", help="files, and settings as KEY=VALUE")
    command.add_argument("--together", action="store_true", help="take all files as one text of several documents")
    command.add_argument("--query", metavar="TEXT", help="the question that the summaries answer")
    command.add_argument("--json", action="store_true", help="print one object per line, with evidence")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.runs.summarize import summarize_files

    results = results_of(options)
    summarize_files(options.checkpoint, options.inputs, results, options.together, options.json, options.query)


_INTERRUPTED = "the printed summaries are complete"
summarize_command = Command("summarize", "summarize your own files", _HELP, _add_arguments, _execute, _INTERRUPTED)
