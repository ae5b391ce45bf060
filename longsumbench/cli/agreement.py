"""`longsumbench agreement`."""

import argparse
from collections.abc import Sequence

from longsumbench.cli.parser import Command, Parser, add_results_dir, output_folder, results_of
from longsumbench.formatting import print_text

_HELP = """\
Measure how far metrics agree with what people judged. Writes the table as CSV and a picture as PNG and SVG.

  longsumbench agreement judged                                 documents.jsonl, outputs.jsonl, judgements.jsonl
  longsumbench agreement judged score.metrics=[extractive]      ROUGE and other metrics
  longsumbench agreement judged --where corpus=arXiv            only documents with this value of a field
  longsumbench agreement judged --leave-out human               without a system, for example the references' author

settings: score.*

For each judged aspect: Kendall's tau within documents and of the systems' means, with 95 % intervals; the share of
pairs in people's order; close pairs; what remains given the length; people's own agreement; and what three controls
reach: words, bigrams copied from the source, repeated bigrams. More: docs/how-to/agreement.md.
"""


def _add_arguments(command: Parser) -> None:
    command.add_argument("folder", metavar="FOLDER", help="contains documents, outputs and judgements")
    command.add_argument("overrides", nargs="*", default=[], metavar="KEY=VALUE", help="settings, as listed above")
    command.add_argument("--where", action="append", default=[], metavar="FIELD=VALUE", help="only such documents")
    command.add_argument("--leave-out", action="append", default=[], metavar="SYSTEM", help="without this system")
    command.add_argument("--output", metavar="FOLDER", help="where to write (default: agreement/FOLDER in the results)")
    add_results_dir(command)


def _execute(options: argparse.Namespace, words: Sequence[str]) -> None:
    from longsumbench.outputs.agreement import agreement
    from longsumbench.outputs.agreement_figure import write_agreement

    settings = {name: getattr(options, name) for name in ("where", "leave_out")}
    result = agreement(options.folder, options.overrides, **settings)
    folder = output_folder(options.output, results_of(options).root / "agreement" / result.name)
    print_text(result.render(), "", *write_agreement(result, folder))


_INTERRUPTED = "nothing was written; the same command starts again"
agreement_command = Command(
    "agreement", "measure the agreement of metrics with people", _HELP, _add_arguments, _execute, _INTERRUPTED
)
