"""`longsumbench score`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from longsumbench.cli.parser import Command, Parser, add_results_dir, output_file, results_of
from longsumbench.errors import UsageError
from longsumbench.formatting import print_text

_HELP = """\
Compute the ROUGE of any system's outputs.

  longsumbench score out.jsonl test.jsonl       {"id", "prediction"} and {"id", "references": [...]}, matched by id
  longsumbench score both.jsonl                 prediction and references in the same row
  longsumbench score out.txt references.txt     one text per line, matched by line number
  longsumbench score RUN                        a finished run, by its folder or id, against its dataset's references
  longsumbench score decoded gold               folders with NAME.dec and NAME.ref (or NAME.A.ref, …), a sentence a line
  longsumbench score out.jsonl test.jsonl --mode perl --no-stem --per-example scores.csv

A text is a string or a list of sentences. Lists are scored as they are. The suite splits strings at line breaks and
into sentences, in predictions and references. The signature records this. Files may be compressed (.gz). All formats,
and what the warnings mean: docs/how-to/score.md.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("texts", nargs="*", metavar="FILE", help="PREDICTIONS, then REFERENCES if in another file")
    command.add_argument("--mode", default="google", help="google (as rouge_score; default) or perl (as ROUGE-1.5.5)")
    command.add_argument("--stem", action=argparse.BooleanOptionalAction, default=True, help="reduce words to stems")
    command.add_argument("--wordnet", metavar="FOLDER", help="perl mode: WordNet's exception lists (default: search)")
    command.add_argument("--tokenizer", default="default", help="default (a-z, 0-9) or unicode (all scripts' letters)")
    command.add_argument("--per-example", metavar="FILE.csv", help="write one row per example: id, rouge1_p, ... 0-1")
    command.add_argument("--json", action="store_true", help="print one object instead of the table")
    command.add_argument("--intersect", action="store_true", help="skip ids that only one file has")
    command.add_argument(
        "--empty-references", default="skip", help="references without words: skip (default), or zero (score 0)"
    )
    command.add_argument("--resamples", type=int, default=1_000, metavar="N", help="bootstrap samples (default: 1000)")
    command.add_argument("--resampling", default="percentile", help="percentile (default), or perl (as ROUGE-1.5.5)")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    for word in options.texts:
        setting, sign, value = word.removeprefix("score.").partition("=")
        if sign and word.startswith("score."):
            raise UsageError(f"'{word}' is for `run`; here write --{setting.replace('_', '-')} {value}")
    if not 1 <= len(options.texts) <= 2:
        raise UsageError("give PREDICTIONS, and REFERENCES if in another file (see longsumbench score --help)")
    from longsumbench.outputs.files import find_predictions
    from longsumbench.outputs.score import rouge_of, score_files

    how = (options.mode, options.stem, options.tokenizer, options.wordnet)
    rouge = rouge_of(*how, options.resamples, options.resampling, options.empty_references)
    table = output_file(options.per_example, "--per-example")
    references = Path(options.texts[1]).expanduser() if options.texts[1:] else None
    predictions = find_predictions(options.texts[0], results_of(options))
    report = score_files(predictions, references, rouge, options.intersect)
    if table is not None:
        report.write_per_example(table)
    print_text(report.to_json() if options.json else report.render())


score_command = Command("score", "score outputs of any system", _HELP, _add_arguments, _execute, "nothing was written")
