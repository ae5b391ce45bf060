"""`longsumbench summarize`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir, results_of
from longsumbench.errors import UsageError
from longsumbench.files import writable_folder

_HELP = """\
Summarize your own files with a trained system, or with one that needs no training.

  longsumbench summarize lexrank paper.md model.length=60    a baseline, by its name (also lead, random, ranker)
  longsumbench summarize 85f3139c paper.md                   a run, by its id or the beginning of its id
  longsumbench summarize my_checkpoint one.txt two.txt       the folder of a checkpoint or a run
  longsumbench summarize 85f3139c a.txt b.txt --together     one summary of several documents
  longsumbench summarize 85f3139c texts.jsonl --json decode.num_beams=4 device=cpu > summaries.jsonl
  longsumbench summarize 85f3139c meeting.txt --query "What was decided?"     with a system trained on questions
  longsumbench summarize lexrank my_texts --output out.jsonl      all files of a folder; run it again to continue
  longsumbench summarize seq2seq report.txt model.checkpoint=FOLDER        a checkpoint that was trained elsewhere
  pdftotext paper.pdf - | longsumbench summarize 85f3139c -

files:     .txt or no ending (blank lines separate paragraphs), .md (headings name sections), .jsonl[.gz], .csv and
           .parquet (see docs/get-started/own-texts.md; summaries are not needed), folders, - for standard input
settings:  decode.*  device=auto|cpu|cuda  seed=1; with a system's name also model.*   (longsumbench list settings)

For a run, its own decode settings are the defaults. What the system did not read is reported on stderr.
--json prints one object per line: id, summary, complete, tokens, truncation, evidence (what the system looked at:
arrays with the names of their axes, and the texts of its units; null if the system keeps none).
--output OUT.jsonl writes such lines into a file, each with its "file"; --output FOLDER writes a .txt file for each.
"""


def _add_arguments(command: Parser) -> None:
    system_help = "a run's id, the folder of a run or a checkpoint, or the name of a system that needs no training"
    command.add_argument("system", metavar="SYSTEM", help=system_help)
    command.add_argument("inputs", nargs="*", metavar="FILE", help="files, folders, and settings as KEY=VALUE")
    command.add_argument("--together", action="store_true", help="take all files as one text of several documents")
    command.add_argument("--query", metavar="TEXT", help="the question that the summaries answer")
    command.add_argument("--json", action="store_true", help="print one object per line, with evidence")
    command.add_argument("--output", metavar="PATH", help="a .jsonl file or a folder for the summaries of many files")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.runs.summarize import summarize_files, summarize_into

    arguments = (options.system, options.inputs, results_of(options))
    if options.output is None:
        return summarize_files(*arguments, options.together, options.json, options.query)
    if options.together:
        raise UsageError("--together makes one summary, which is printed: leave out --output")
    output = Path(options.output).expanduser()
    writable_folder(output.parent, "--output")
    summarize_into(output, *arguments, options.json, options.query)


_INTERRUPTED = "the summaries so far are complete; with --output the same command continues"
summarize_command = Command("summarize", "summarize your own files", _HELP, _add_arguments, _execute, _INTERRUPTED)
