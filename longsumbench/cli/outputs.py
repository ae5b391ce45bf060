"""Commands that write or read summaries: `longsumbench summarize`, `score` and `import`."""

from argparse import BooleanOptionalAction, Namespace
from pathlib import Path

from longsumbench.cli.parser import (
    OVERRIDES,
    RESULTS_DIR,
    Argument,
    Command,
    open_results,
    output_file,
    output_folder,
)
from longsumbench.errors import UsageError
from longsumbench.files import writable_folder
from longsumbench.formatting import print_text

_SUMMARIZE_HELP = """\
Summarize your own files with a trained system, or with one that needs no training.

  longsumbench summarize lexrank paper.md model.length=60    a baseline, by its name (also lead, random, ranker)
  longsumbench summarize 85f3139c paper.md                   a run, by its id or the beginning of its id
  longsumbench summarize my_checkpoint one.txt two.txt       the folder of a checkpoint or a run
  longsumbench summarize me/seal-pubmed paper.md             a system on the hub, from `longsumbench push`
  longsumbench summarize 85f3139c a.txt b.txt --together     one summary of several documents
  longsumbench summarize 85f3139c texts.jsonl --json decode.num_beams=4 device=cpu > summaries.jsonl
  longsumbench summarize 85f3139c meeting.txt --query "What was decided?"     with a system trained on questions
  longsumbench summarize lexrank my_texts --output out.jsonl      all files of a folder; run it again to continue
  longsumbench summarize seq2seq report.txt model.checkpoint=FOLDER        a checkpoint that was trained elsewhere
  pdftotext paper.pdf - | longsumbench summarize 85f3139c -

files:     .txt or no ending (blank lines separate paragraphs), .md (headings name sections), .jsonl, .json, .csv, .tsv
           and .parquet (see docs/get-started/own-texts.md; summaries are not needed), folders, - for standard input
settings:  decode.*  device=auto|cpu|cuda  seed=1; with a system's name also model.*   (longsumbench list settings)

For a run, its own decode settings are the defaults. What the system did not read is reported on stderr.
--json prints one object per line: id, summary, complete, tokens, truncation, evidence (what the system looked at:
arrays with the names of their axes, and the texts of its units; null if the system keeps none).
--output OUT.jsonl writes such lines into a file, each with its "file"; --output FOLDER writes a .txt file for each.
"""


_SUMMARIZE_ARGUMENTS = (
    Argument(
        "system",
        "a run's id, the folder of a run or a checkpoint, OWNER/NAME on the hub, or a system that needs no training",
        "SYSTEM",
    ),
    Argument("inputs", "files, folders, and settings as KEY=VALUE", "FILE", nargs="*"),
    Argument("--together", "take all files as one text of several documents"),
    Argument("--query", "the question that the summaries answer", "TEXT"),
    Argument("--json", "print one object per line, with evidence"),
    Argument("--output", "a .jsonl file or a folder for the summaries of many files", "PATH"),
    RESULTS_DIR,
)


def _execute_summarize(options: Namespace) -> None:
    from longsumbench.runs.summarize import summarize_files
    from longsumbench.runs.summarize_many import summarize_into

    arguments = (options.system, options.inputs, open_results(options))
    if options.output is None:
        return summarize_files(*arguments, options.together, options.json, options.query)
    if options.together:
        raise UsageError("--together makes one summary, which is printed: leave out --output")
    output = Path(options.output).expanduser()
    writable_folder(output.parent if output.suffix == ".jsonl" else output, "--output")
    summarize_into(output, *arguments, options.json, options.query)


summarize_command = Command(
    "summarize",
    "summarize your own files",
    _SUMMARIZE_HELP,
    _SUMMARIZE_ARGUMENTS,
    _execute_summarize,
    "the summaries so far are complete; with --output the same command continues",
)


_SCORE_HELP = """\
Compute the ROUGE of any system's outputs.

  longsumbench score out.jsonl test.jsonl       {"id", "prediction"} and {"id", "references": [...]}, matched by id
  longsumbench score out.csv test.parquet       the same in tables; usual names of columns are recognized
  longsumbench score both.jsonl                 prediction and references in the same row
  longsumbench score out.txt references.txt     one text per line, matched by line number
  longsumbench score RUN                        a finished run, by its folder or id, against its dataset's references
  longsumbench score decoded gold               folders with ID.txt; or NAME.dec and NAME.ref (or NAME.A.ref, …)
  longsumbench score out.jsonl test.jsonl --mode perl --no-stem --per-example scores.csv
  longsumbench score out.jsonl questions.jsonl --groups meeting     intervals over meetings, each with all its questions

A text is a string or a list of sentences. Lists are scored as they are. The suite splits strings at line breaks and
into sentences, in predictions and references. The signature records this. Files may be compressed (.gz). All formats,
and what the warnings mean: docs/how-to/score.md.
"""


_SCORE_ARGUMENTS = (
    Argument("texts", "PREDICTIONS, then REFERENCES if in another file", "FILE", nargs="*"),
    Argument(
        "--mode",
        "google (as rouge_score; default) or perl (as ROUGE-1.5.5)",
        "MODE",
        default="google",
    ),
    Argument("--stem", "reduce words to stems", action=BooleanOptionalAction, default=True),
    Argument("--wordnet", "perl mode: WordNet's exception lists (default: search)", "FOLDER"),
    Argument(
        "--tokenizer",
        "default (a-z, 0-9) or unicode (all scripts' letters)",
        "TOKENIZER",
        default="default",
    ),
    Argument(
        "--sentences",
        "for R-Lsum: suite (default), given, newline or nltk",
        "SENTENCES",
        default="suite",
    ),
    Argument("--max-words", "score the first N words of each prediction", "N", type=int),
    Argument("--per-example", "write one row per example: id, rouge1_p, ... 0-1", "FILE.csv"),
    Argument("--json", "print one object instead of the table"),
    Argument("--intersect", "skip ids that only one file has"),
    Argument(
        "--groups", "a field of the rows: examples with the same value share a source", "FIELD"
    ),
    Argument(
        "--empty-references",
        "references without words: skip (default), or zero (score 0)",
        "EMPTY_REFERENCES",
        default="skip",
    ),
    Argument("--resamples", "bootstrap samples (default: 1000)", "N", type=int, default=1000),
    Argument(
        "--resampling",
        "percentile (default), or perl (as ROUGE-1.5.5)",
        "RESAMPLING",
        default="percentile",
    ),
    RESULTS_DIR,
)


def _execute_score(options: Namespace) -> None:
    if not 1 <= len(options.texts) <= 2:
        raise UsageError(
            "give PREDICTIONS, and REFERENCES if in another file (see longsumbench score --help)"
        )
    from longsumbench.outputs.files import find_predictions
    from longsumbench.outputs.score import build_rouge, score_files

    rouge = build_rouge(
        mode=options.mode,
        stem=options.stem,
        tokenizer=options.tokenizer,
        wordnet=options.wordnet,
        resamples=options.resamples,
        resampling=options.resampling,
        empty_references=options.empty_references,
        sentences=options.sentences,
        max_words=options.max_words,
    )
    # Checked before texts are scored, which takes minutes
    table = output_file(options.per_example, "--per-example")
    references = Path(options.texts[1]).expanduser() if options.texts[1:] else None
    predictions = find_predictions(options.texts[0], open_results(options))
    report = score_files(predictions, references, rouge, options.intersect, options.groups)
    if table is not None:
        report.write_per_example(table)
    print_text(report.to_json() if options.json else report.render())


score_command = Command(
    "score",
    "score outputs of any system",
    _SCORE_HELP,
    _SCORE_ARGUMENTS,
    _execute_score,
    "nothing was written",
)


_IMPORT_HELP = """\
Make a run of outputs that were written outside the suite. Tables, compare, inspect and score show it like any other
run, marked as imported.

  longsumbench import out.jsonl --model theirs --dataset pubmed                      {"id", "prediction"}, matched by id
  longsumbench import out.txt --model theirs --dataset jsonl dataset.path=my_texts   line n: the n-th example
  longsumbench import out.csv --model theirs --dataset pubmed                        the same in a table; also .tsv
  longsumbench import decoded --model theirs --dataset arxiv --split validation      a folder of ID.txt or NAME.dec
  longsumbench import beam5.jsonl --model theirs --variant "beam 5" --seed 2 --from https://example.org/outputs \\
      --dataset gov_report score.metrics=[novel_ngrams]

settings: dataset.*  score.*  results_dir=results  overwrite=false  baselines=true

Every example of the split needs an output. --intersect imports the examples that have one; they are in a separate
block of the table. The first import on a dataset also scores Lead, Random and Oracle. The same command again finds the
run.
More: docs/how-to/import.md
"""


_IMPORT_ARGUMENTS = (
    Argument("outputs", "rows with ids, lines of text, or a folder of texts", "OUTPUTS"),
    OVERRIDES,
    Argument("--model", "a name for the system that wrote them", "NAME", required=True),
    Argument("--dataset", "what was summarized", "NAME", required=True),
    Argument("--split", "train, validation or test (default: test)", "SPLIT"),
    Argument("--variant", "the system's settings, in any words", "TEXT", default=""),
    Argument("--seed", "if there are outputs of several seeds", "N", type=int),
    Argument("--from", "where they come from (URL, paper)", "TEXT", dest="origin", default=""),
    Argument("--intersect", "leave out ids that only one side has"),
)


def _execute_import(options: Namespace) -> None:
    from longsumbench.progress import phase

    with phase("loading the libraries"):
        from longsumbench.outputs.import_outputs import OutputsToImport, plan_import, run_import
        from longsumbench.views.run_summary_screen import describe_runs

    outputs = OutputsToImport(
        Path(options.outputs).expanduser(),
        options.model,
        variant=options.variant,
        seed=options.seed,
        origin=options.origin,
        intersect=options.intersect,
    )
    planned = plan_import(outputs, options.dataset, options.split, options.overrides)
    run_import(
        outputs,
        planned,
        options.command_line,
        lambda *tables: print_text(describe_runs(*tables)),
    )


import_command = Command(
    "import",
    "make a run of outputs of another system",
    _IMPORT_HELP,
    _IMPORT_ARGUMENTS,
    _execute_import,
)


_AGREEMENT_HELP = """\
Measure how far metrics agree with what people judged. Writes the table as CSV and a picture as PNG and SVG.

  longsumbench agreement judged                                 documents, outputs and judgements, .jsonl, .csv …
  longsumbench agreement judged score.metrics=[extractive]      ROUGE and other metrics
  longsumbench agreement judged --where corpus=arXiv            only documents with this value of a field
  longsumbench agreement judged --leave-out human               without a system, for example the references' author

settings: score.*

For each judged aspect: Kendall's tau within documents and of the systems' means, with 95 % intervals; the share of
pairs in people's order; close pairs; what remains given the length; people's own agreement; and what three controls
reach: words, bigrams copied from the source, repeated bigrams. More: docs/how-to/agreement.md.
"""


_AGREEMENT_ARGUMENTS = (
    Argument("folder", "contains documents, outputs and judgements", "FOLDER"),
    OVERRIDES,
    Argument("--where", "only such documents", "FIELD=VALUE", action="append", default=[]),
    Argument("--leave-out", "without this system", "SYSTEM", action="append", default=[]),
    Argument("--output", "where to write (default: agreement/FOLDER in the results)", "FOLDER"),
    RESULTS_DIR,
)


def _execute_agreement(options: Namespace) -> None:
    from longsumbench.outputs.agreement import agreement, write_agreement

    result = agreement(
        options.folder, options.overrides, where=options.where, leave_out=options.leave_out
    )
    folder = output_folder(options.output, open_results(options).root / "agreement" / result.name)
    print_text(result.render(), "", *write_agreement(result, folder))


agreement_command = Command(
    "agreement",
    "measure the agreement of metrics with people",
    _AGREEMENT_HELP,
    _AGREEMENT_ARGUMENTS,
    _execute_agreement,
    "nothing was written; the same command starts again",
)
