"""Commands on finished runs: `longsumbench compare`, `inspect` and `runs`."""

import sys
from argparse import Namespace
from dataclasses import replace

from longsumbench.cli.parser import (
    RESULTS_DIR,
    RUN,
    Argument,
    Command,
    open_results,
    output_folder,
    split_names,
)
from longsumbench.formatting import escape_line, print_text

_UNCHANGED = "the run is unchanged; the same command starts again"  # after Ctrl-C
_COMPARE_HELP = """\
Compare finished runs, example by example. The first run is the baseline.

  longsumbench compare 85f3139c 36e2dc94                  runs by their ids, or the beginnings of these
  longsumbench compare lead theirs                        models with one run each, such as imported ones
  longsumbench compare 85f3139c 36e2 c6f0 --all-pairs     every pair of runs, corrected together
  longsumbench compare 85f3139c 36e2dc94 --measures rouge2,copied_bigrams
  longsumbench compare 85f3139c results/runs/aclsum/lead/c6f0ec26c16b --output lead_or_not

For every measure: both means, their difference, p of a paired test, alone and corrected for the whole table (Holm), the
interval of the corrected test, and the smallest difference that it could detect. All runs must have the same texts and
the same scoring. If they have different examples, --intersect compares the examples in common.
Prints the table and writes it as .csv and .md. `longsumbench site` shows both outputs of each example.
"""


_COMPARE_ARGUMENTS = (
    Argument(
        "runs", "a run's folder, its id or its beginning, or a model with one run", "RUN", nargs="*"
    ),
    Argument("--all-pairs", "compare every pair, not only with the first run"),
    Argument("--intersect", "compare the examples that all runs have"),
    Argument(
        "--measures",
        "scores to test, separated by commas (default: rouge1,rouge2,rougeLsum and what ranks the runs)",
        "NAMES",
    ),
    Argument("--output", "where to write (default: comparisons/IDS in the results)", "FOLDER"),
    RESULTS_DIR,
)


def _execute_compare(options: Namespace) -> None:
    from longsumbench.outputs.compare import compare, comparison_folder, write_comparison

    comparison = compare(
        *options.runs,
        results_dir=options.results_dir,
        intersect=options.intersect,
        all_pairs=options.all_pairs,
        measures=split_names(options.measures),
    )
    folder = output_folder(
        options.output, comparison_folder(open_results(options), comparison.runs)
    )
    files = write_comparison(comparison, folder)
    print_text(comparison.render(), "", *files)


compare_command = Command(
    "compare",
    "compare finished runs",
    _COMPARE_HELP,
    _COMPARE_ARGUMENTS,
    _execute_compare,
    "the runs are unchanged; the same command starts again",
)


_INSPECT_HELP = """\
Show what a system read, wrote, and looked at while it wrote summaries of a finished run.

  longsumbench inspect 85f3139c 0                         the first example of the run's split
  longsumbench inspect 85f3139c journal.pone.0163477      an example by its id
  longsumbench inspect 85f3139c 0 1 2 3                   four pages, each with links to the previous and the next
  longsumbench inspect results/runs/aclsum/seal/79630ca441a5 3 --output figures

Prints the beginning of the source, the summary, its references, its scores and what was read. Writes NUMBER.html, a
page in one file, and with --picture NUMBER.png, a figure for a paper. They show the evidence that the run stored: the
weight of each source unit at each step of the summary, the units selected for each segment, and any other array as a
heat map, together with the texts of the units.
A run stores evidence of its first 20 examples. Run the same `run` command with decode.evidence=all to add the others.
With decode.keep_inputs=all it also stores the text as the system read it, and the page shows it.
Without evidence the page shows what the output shares with the source and the references.
What the views mean: docs/how-to/inspect.md.
"""


_INSPECT_ARGUMENTS = (
    RUN,
    Argument(
        "examples",
        "examples by their ids, or their numbers in the split, from 0",
        "EXAMPLE",
        nargs="+",
    ),
    Argument("--output", "where to write (default: inspections/ID in results)", "FOLDER"),
    Argument("--picture", "also write the views as NUMBER.png, for a paper"),
    RESULTS_DIR,
)


def _execute_inspect(options: Namespace) -> None:
    from longsumbench.outputs.inspection import inspect, inspection_folder, write_inspection

    inspections = [
        inspect(options.run, example, options.results_dir) for example in options.examples
    ]
    folder = output_folder(
        options.output, inspection_folder(open_results(options), inspections[0].record)
    )
    # Pages link to each other, so all are read before the first is written.
    for inspection in inspections:
        linked = replace(inspection, pages=sorted(item.number for item in inspections))
        print_text(linked.render(), "", *write_inspection(linked, folder, options.picture))
        if linked.evidence is None:
            print(escape_line(linked.no_evidence), file=sys.stderr)


inspect_command = Command(
    "inspect",
    "show what a system looked at",
    _INSPECT_HELP,
    _INSPECT_ARGUMENTS,
    _execute_inspect,
    _UNCHANGED,
)


_RUNS_HELP = """\
Pack all finished runs into one file for each dataset. Nothing is deleted.

  longsumbench runs pack                        results/bundles/<dataset>.tar.xz, and a list of its runs as .csv
  longsumbench runs pack --results-dir trials

Tables and all commands read packed runs where the run has no finished folder, so the folders may be deleted:
rm -r results/runs. No command changes a packed run. The folder `work` of a run (logs, links to the cache, the changes
of the code) is not packed. To unpack: tar -xkf results/bundles/pubmed.tar.xz -C results

To delete a run, or to move it to another results folder, use rm and mv; `longsumbench list runs` shows the ids, and
`longsumbench leaderboard` makes the table again. Stages in the cache stay (longsumbench cache prune).
"""


_RUNS_ARGUMENTS = (
    Argument("action", "pack", "ACTION", choices=("pack",)),
    RESULTS_DIR,
)


def _execute_runs(options: Namespace) -> None:
    from longsumbench.runs.results import pack_runs

    is_empty = True
    for line in pack_runs(open_results(options)):
        print_text(line)
        is_empty = False
    if is_empty:
        print_text("nothing to pack: there is no finished run outside the bundles")


_PACK = "nothing is lost, and the same command packs again"
runs_command = Command(
    "runs", "pack finished runs", _RUNS_HELP, _RUNS_ARGUMENTS, _execute_runs, _PACK
)
