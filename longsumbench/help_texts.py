"""What `longsumbench --help` says of each command: examples first."""

DESCRIPTION = """\
Compare long-input summarizers on the same documents, with the same ROUGE, under the same budget.

  longsumbench run                              train a tiny system on built-in text, print the table (minutes)
  longsumbench run model=lead dataset=pubmed dataset.path=FOLDER
  longsumbench run -m model=lead,random,oracle,trunc model.input_length=64,256 seed=1,2
  longsumbench status                           what a running sweep is at
  longsumbench leaderboard pydoc                print a table again
  longsumbench summarize RUN paper.md           summarize a file of your own
  longsumbench score out.jsonl test.jsonl       the ROUGE of any system's outputs
  longsumbench compare RUN RUN                  whether two runs differ, and on which examples
  longsumbench inspect RUN 0                    what a system looked at while it wrote a summary
  longsumbench stats dataset=pydoc              what a dataset is like, and what systems would see of it
  longsumbench analyze fusion dataset=pydoc     how far apart the sentences stand that summaries join
  longsumbench repro RUN --check                repeat a run, and see whether it comes out the same
  longsumbench list models                      what can be named
"""

RUN = """\
Run one point, or with -m every combination of the comma-separated values.

groups:    model=NAME  dataset=NAME  scale={scales}       (longsumbench list models|datasets|scales)
           experiment=NAME, settings that go together                                    (longsumbench list experiments)
settings:  model.*  dataset.*  train.*  decode.*  score.*                         (longsumbench list settings [MODEL])
top level: seed=1  device=auto|cpu|cuda  results_dir=results  overwrite=false  baselines=true  timeout_minutes=null
sweeps:    hydra/launcher=joblib|slurm_cpu|slurm_gpu|slurm_preemptible  hydra/sweeper=optuna  and hydra.launcher.*,
           hydra.sweeper.*, the settings of these plug-ins of Hydra                                    (docs/sweeps.md)

  longsumbench run model=trunc model.input_length=512 train.max_minutes=8
  longsumbench run dataset=jsonl dataset.path=my_texts scale=tiny
  longsumbench run -m seed=1,2,3 --show         what would be run, without running it
  longsumbench run -m seed=1,2,3 hydra/launcher=joblib                   side by side, on all cores
  longsumbench run -m seed=1,2,3 hydra/launcher=slurm_gpu hydra.launcher.partition=gpu       as an array job of SLURM
  torchrun --nproc-per-node=4 -m longsumbench.cli run model=seal         one point by four processes
  longsumbench run -m experiment=etads-table5 dataset=cnn_dailymail      points that an experiment names itself

Running the same command again continues it: what is finished is skipped, what was broken off is resumed.
In a sweep, all points are checked before the first one runs; one that fails, hangs or is killed later leaves the
others untouched, and points that differ in nothing their system depends on are done once. Where one or two settings
were swept over, the score is drawn against them. An experiment may name a sweep of its own (`sweep:` in its file),
which is combined with the values typed. `longsumbench status`, from any shell, shows how far it is.
Lead, Random and Oracle are scored beside the first run on a dataset (baselines=false: not).
A value with a comma, a bracket or a blank in it is quoted twice: "dataset.path='my texts'". Lists are typed as they
are: "model.focus_layers=[1,2]", and to sweep over "model.focus_layers=[],[1,2]".
"""

STATUS = """\
Show what a sweep is at: which points are done, running, failed or waiting, and how long it will take.

  longsumbench status                           the sweeps that are running, or the last one
  longsumbench status 3fa2 --watch              one of them, again and again
  longsumbench status --results-dir /shared/results            of another folder

It reads the sweep's files alone, so it may be asked from another shell, or another machine that sees the folder.
"""

LEADERBOARD = """\
Rebuild the tables of finished runs, and print them.

  longsumbench leaderboard                      every dataset with results
  longsumbench leaderboard pydoc --latex        one of them, for a paper
  longsumbench leaderboard pydoc --measure recall          by ROUGE's recall, or precision, instead of F1
  longsumbench leaderboard pydoc --ledger       what was not read (by which setting), not learned, not finished
  longsumbench leaderboard pydoc --against segment_length          also draw scores against a setting that was swept
  longsumbench leaderboard pydoc --against page_size --against decode.num_beams --kind rouge2        … or two

results/leaderboard/ holds each table as .csv (all columns), .md and .tex, by F1 whatever is printed, and where planted
facts were looked for, a picture of what the systems found. --against writes <dataset>-<setting>.csv, .png and .svg.
"""

SUMMARIZE = """\
Summarize files of your own with a system that was fitted before.

  longsumbench summarize 85f3139c paper.md                   by a run's id, or its beginning
  longsumbench summarize my_checkpoint one.txt two.txt       by a checkpoint's folder, or a run's
  longsumbench summarize 85f3139c a.txt b.txt --together     one summary of several documents
  longsumbench summarize 85f3139c texts.jsonl --json decode.num_beams=4 device=cpu > summaries.jsonl
  longsumbench summarize 85f3139c meeting.txt --query "What was decided?"     by a system trained on questions
  pdftotext paper.pdf - | longsumbench summarize 85f3139c -

files:     .txt or no ending (blank lines separate paragraphs), .md (headings name sections), .jsonl[.gz] (see
           docs/jsonl.md; summaries are not needed), - for text from standard input
settings:  decode.*  device=auto|cpu|cuda  seed=1                                 (longsumbench list settings)

A run's own decode settings are used, where it is named by run. What was not read is told on stderr.
--json prints an object a line: id, summary, complete, tokens, truncation, evidence (what the system looked at:
arrays with the names of their axes, and the texts of its units; null for a system that keeps none).
"""

SCORE = """\
Compute the ROUGE of any system's outputs.

  longsumbench score out.jsonl test.jsonl       {"id", "prediction"} and {"id", "references": [...]}, matched by id
  longsumbench score both.jsonl                 prediction and references in the same row
  longsumbench score out.txt references.txt     one a line: line n of one belongs to line n of the other
  longsumbench score RUN                        a finished run, by its folder or id, against its dataset's references
  longsumbench score decoded gold               folders: NAME.dec and NAME.ref (or NAME.A.ref, …), a sentence a line
  longsumbench score out.jsonl test.jsonl --mode perl --no-stem --per-example scores.csv

A text is running text or a list of sentences. Lists are scored as they are; running text is split at its line breaks
and by the suite's splitter, on both sides alike; the signature says which. All formats, and what the warnings mean:
docs/score.md. Files may be packed (.gz).
"""

COMPARE = """\
Compare finished runs, example by example; the first one is the baseline.

  longsumbench compare 85f3139c 36e2dc94                  runs by their ids, or the beginnings of these
  longsumbench compare 85f3139c 36e2 c6f0 --all-pairs     each with each, corrected together
  longsumbench compare 85f3139c results/runs/pydoc/lead/c6f0ec26c16b --output lead_or_not --examples 30

Of every measure: both means, their difference with its 95 % interval, p by approximate randomization, p corrected for
the whole table (Holm), and the smallest difference that could have been seen. Runs must have been scored in the same
way on the same texts; where they have different examples, --intersect compares those in common.
The table is printed, and written as .csv, .md and .html; the two latter show the examples that moved most, with both
outputs. The page needs nothing beside itself.
"""

INSPECT = """\
Show what a system looked at while it wrote one summary of a finished run.

  longsumbench inspect 85f3139c 0                         the first example of the run's split
  longsumbench inspect 85f3139c journal.pone.0163477      an example by its id
  longsumbench inspect results/runs/pydoc/seal/9ebc3b974286 3 --output figures

Written are <place>.html, a page that needs nothing beside itself, and <place>.png, the same for a paper. What they show
follows from the evidence that the run has kept: how much each unit of the source weighed at each step of the summary,
which units were selected for each of its segments, and any other array as a heat map; the units' texts stand beside.
A run keeps evidence of its first 20 examples; the same `run` command with decode.evidence=all adds that of the others.
What the views mean: docs/inspect.md.
"""

STATS = """\
Print what a dataset is like; with rank=, how much of its references the best paragraphs say.

  longsumbench stats                                              the built-in text
  longsumbench stats dataset=elife dataset.path=FOLDER --output elife_stats      also as CSV, Markdown and a page
  longsumbench stats dataset=probe model=trunc,seal,pagesum model.init=random    what each of them would see
  longsumbench stats model=trunc scale=small model.input_length=512,1024         of one system, under several settings
  longsumbench stats run=all                                      also what finished runs on these texts have cut
  longsumbench stats dataset=wiki_sections dataset.path=FOLDER rank=tfidf,lexrank,lstm

Examples, documents, sections, paragraphs and sentences are counted, and lengths in words and, where a model is named,
in its tokens; then what the references keep of the source, what the best extract scores, near-duplicates in different
splits, and what each model would see of dataset.split and cut from the training targets: under the settings that `run`
would use, without training. What takes time is computed of a sample.

settings:  dataset=NAME  dataset.*  sample=1000|null (all)  seed=1  duplicates=true|false
           run=all|RUN[,RUN...]  results_dir=results
           model=NAME[,NAME...]  model.*  scale=NAME  experiment=NAME  train.*  train_ranker=false|true
with rank: rank=NAME[,NAME...]  unit=paragraph|section  seed=1  device=auto|cpu|cuda
           ranker.{dimension,steps,batch_size,vocabulary_size}       (longsumbench list rankers|datasets; docs/stats.md)

With rank= the best 5, 10, 20 and 40 paragraphs of every example are joined in the ranker's order and scored against
its first reference by ROUGE-L recall (0-100); "in order" are the first ones of the text (Hierarchical Transformer,
Table 1).
A ranker that learns (lstm) is trained on the training split, once for the same texts and settings; what is finished is
kept in the cache, and a training that was broken off continues.

Nothing is written but with --csv FILE (all numbers) or --output FOLDER (these, Markdown, and a page with pictures).
"""

ANALYZE = """\
Analyze the texts of a dataset, and what runs made of them: CSV, PNG and SVG (PageSum, Figures 1 and 4, Table 4).

  longsumbench analyze locality dataset=pubmed                       how alike two sentences are, by their distance
  longsumbench analyze locality encoder=FOLDER sample=50             by a sentence encoder instead of tf-idf
  longsumbench analyze fusion dataset=elife dataset.path=FOLDER      how far apart stand the sentences a summary joins
  longsumbench analyze fusion run=85f3139c,36e2dc94                  and whether the runs' summaries say both
  longsumbench analyze coherence model=bert-large-uncased run=85f3139c

settings:  dataset=NAME  dataset.*  sample=200|null  seed=1; run=RUN[,RUN...] of fusion and coherence
locality:  encoder=FOLDER or hub name  pooling=auto|mean|cls|max  distance=50  batch_size=64  device=auto|cpu|cuda
fusion:    rouge=1|2|L  overlap=20  rise=10  bins=10  appears=50  shown=20
coherence: model=FOLDER or hub name (a BERT for next-sentence prediction)  device=auto|cpu|cuda

Runs are named by their ids, the beginnings of these, or their folders, and must have read the same texts. fusion also
writes every pair as JSON lines, and a page with the pairs behind each bar. What the numbers mean: docs/analyze.md.
"""

CACHE = """\
Show what the cache holds, verify it, or delete of it.

  longsumbench cache                            each kind of stage: how many, how large, last used, who builds one
  longsumbench cache --all --kind checkpoint    one by one, with their keys
  longsumbench cache verify                     read every file and compare it with its checksum
  longsumbench cache prune                      delete what was not used for 30 days, and what was left over
  longsumbench cache prune --unused-for 12h --kind units ranker-rows --dry-run
  longsumbench cache prune 3f2a91               one stage, by the beginning of its key
  longsumbench cache prune --all                everything

Runs share the stages in it: read corpora, tokenizers, units, labels, rankers, checkpoints. What is deleted is made
again when it is asked for; runs and tables do not change. What is in use or being built is kept, and said.
A run compares sizes and times of the files it uses; verify also compares their contents. The next run that needs a
damaged stage builds it anew; the damaged one is kept as left over.
Left over is what killed processes began. The same command would continue it, so prune deletes it after a day, or with
--left-over at once (and nothing else). The folder is the user's cache folder, or what the environment variable
LONGSUMBENCH_CACHE names (docs/cache.md).
"""

REPRO = """\
Say what it takes to repeat a finished run: code, packages, texts, and the command of its own point.

  longsumbench repro 85f3139c                    a page to follow; of a sweep's point, the command for it alone
  longsumbench repro 85f3139c --output again     also as again/repro.sh, with patch, constraints and configuration
  longsumbench repro 85f3139c --check            repeat it here and now, and compare what is written

The command is found from the run's record, under today's settings; what these cannot say is named. --check trains,
summarizes and scores from nothing, in a folder of its own, on texts that may have been read before. It compares with
the run's predictions or, where it came without them, with its scores. What differs from the machine and the versions
of the run is said first; where a prediction differs, the repeat is kept, and the exit code is 1. docs/repro.md
"""

LIST = """\
Print what can be named on the command line, with a line about each.

  longsumbench list models                      also those that other installed packages add
  longsumbench list settings trunc              every setting, its default and what it means
"""

EXIT_CODES = """\
exit codes: 0 done, 1 some points failed, 2 wrong usage or configuration, 3 bad data,
4 environment (network, disk, memory), 70 unexpected error (see the log that it names), 130 interrupted
"""
