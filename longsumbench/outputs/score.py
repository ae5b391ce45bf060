"""`longsumbench score`: scores the outputs of any system.

files --read_pairs--> pairs --split_sides--> two TextTables --evaluate--> a row per example, means --> Report

Examples that share a source are one group (`Example.source_group`). Texts do not show it, so users name groups.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from longsumbench.arguments import as_texts, public_function
from longsumbench.core import (
    Document,
    Example,
    Scored,
    Scoring,
    Sentences,
    check_value,
    collect_bounds,
)
from longsumbench.core.terminal_text import remove_control_codes
from longsumbench.corpora.loading.fields import id_in
from longsumbench.corpora.loading.row_files import (
    FOLDER,
    LINES,
    detect_format,
    file_rows,
    parse_rows,
)
from longsumbench.corpora.loading.text_damage import (
    CutTexts,
    describe_end,
    describe_marks,
    marks_in,
)
from longsumbench.errors import DataError, UsageError
from longsumbench.formatting import format_count, format_examples
from longsumbench.leaderboards.comparability import ROUGE_HEADINGS
from longsumbench.metrics.aggregate import (
    GROUP,
    MEAN_RESAMPLES,
    MeasureMean,
    RougeMeans,
    write_scores,
)
from longsumbench.metrics.evaluate import RawText, agreement_clause, default_metrics, evaluate
from longsumbench.metrics.output_stats import OutputStats, output_warnings
from longsumbench.metrics.rouge import Rouge
from longsumbench.outputs.files import PairedTexts, ScoredPair, first_ids, pair_texts, read_pairs
from longsumbench.rouge.tokenizer import dropped_share
from longsumbench.sentences import RULE_NAMES, SPLITTER_NAME, split_for_rouge, split_summary
from longsumbench.views.tables import Block, terminal

_log = logging.getLogger(__name__)

_PERL_DECIMALS = 5
_UNREAD = Document(None, ())  # ROUGE does not use the source
_NO_END = "and ends no sentence, which lowers R-Lsum most; replace it by a line break"
_EXTRA_WORD = "which changes every score; remove it"
# What systems write between and around sentences → its effect
_MARKS = {
    **dict.fromkeys(("<n>", "<q>", "[SEP]", "[X_SEP]"), _NO_END),
    **dict.fromkeys(("<s>", "</s>", "<t>", "</t>", "[CLS]", "<pad>"), _EXTRA_WORD),
}
_GIVEN = "given"  # in a signature: the texts are lists of sentences
_MANY, _FEW = 0.5, 0.1  # shares of a side's texts
_LONG_SENTENCE = 60  # words; a longer sentence is probably unsplit text
_DROPPED_SHARE = 0.02  # of the letters and digits; a few accents stay below it

_WORD_IN = re.compile(r"[a-z]+", re.IGNORECASE)
_ALNUM_BEYOND_ASCII = re.compile(r"(?![\x00-\x7f])[^\W_]")


@dataclass(frozen=True)
class Report:
    """The result of `longsumbench score`.

    Attributes:
        scored: per-example scores, and the number of empty texts.
        warnings: probable errors in the texts.
        left_out: "empty_references", "only_predicted" and "only_referenced" → ids that are in no mean.
        outputs: statistics of the predictions, from `describe_outputs`.
        measures: means of the default metrics, for a run whose sources are known.
        groups: number of sources; None if each example has its own.
    """

    scores: Mapping[str, RougeMeans]
    scored: Scored
    mode: str
    signature: str
    warnings: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    outputs: OutputStats
    measures: Mapping[str, MeasureMean] = field(default_factory=dict)
    groups: int | None = None

    @property
    def f1(self) -> dict[str, float]:
        """F1 by type ("rouge1", "rouge2", "rougeL", "rougeLsum"), 0–100."""
        return {kind: score.f for kind, score in self.scores.items()}

    def render(self) -> str:
        """Return the table for the terminal, with counts and the signature."""
        counts = [format_examples(len(self.scored.per_example), self.groups)]
        for why, ids in self.left_out.items():
            if ids:
                counts.append(f"{len(ids):,} left out ({why.replace('_', ' ')})")
        if empty := self.scored.empty_predictions:
            counts.append(f"{empty:,} of them with an empty prediction, which scores 0")
        words, reference_words = self.outputs.words, self.outputs.reference_words or 0
        counts.append(f"{words:.0f} words a prediction, {reference_words:.0f} a reference")
        rows, means = [], []
        for kind, score in self.scores.items():
            heading = ROUGE_HEADINGS[kind]
            rows.append((heading, f"{score.p:.2f}", f"{score.r:.2f}", f"{score.f1:.2f}"))
        for name, mean in self.measures.items():
            means.append((name, f"{mean.estimate:.2f}", f"{mean.n:,}", agreement_clause(name)))
        blocks = [Block("", (), ("", "P", "R", "F"), "lrrr", rows)]
        if means:
            blocks.append(Block("", (), ("", "mean", "examples", ""), "lrrl", means))
        return f"{terminal('; '.join(counts), blocks)}\n\n{self.signature}"

    def to_json(self) -> str:
        """Return everything except per-example scores as a JSON object on one line."""
        values: dict[str, Any] = {kind: asdict(score) for kind, score in self.scores.items()}
        values["n"] = len(self.scored.per_example)
        if self.groups:
            values["groups"] = self.groups
        if self.measures:
            values["measures"] = {name: asdict(mean) for name, mean in self.measures.items()}
        values |= {
            "signature": self.signature,
            "warnings": self.warnings,
            "left_out": self.left_out,
            "empty_predictions": self.scored.empty_predictions,
            "outputs": asdict(self.outputs),
        }
        return json.dumps(values, ensure_ascii=False, allow_nan=False)

    def write_per_example(self, path: Path) -> None:
        """Write per-example scores as CSV, 0–1: in full precision, or with five digits in perl mode."""
        write_scores(path, self.scored.per_example, _PERL_DECIMALS if self.mode == "perl" else None)


def build_rouge(**options: Any) -> Rouge:
    """Return ROUGE with the options of `longsumbench score`, as `score` explains them.

    Raises:
        UsageError: an option is invalid.
        EnvironmentProblem: WordNet's lists are missing.
    """
    for name in ("resamples", "resampling", "empty_references", "sentences", "max_words"):
        check_value(f"--{name.replace('_', '-')}", options[name], collect_bounds(Scoring)[name])
    if options["resampling"] == "perl" and options["mode"] != "perl":
        raise UsageError(
            "--resampling perl needs --mode perl: it computes the intervals of ROUGE-1.5.5"
        )
    return Rouge(Scoring(**options))


@public_function
def score(
    predictions: Iterable[str | Sequence[str]] | Mapping[str, str | Sequence[str]],
    references: Iterable[str | Sequence[str | Sequence[str]]]
    | Mapping[str, str | Sequence[str | Sequence[str]]],
    *,
    mode: str = "google",
    stem: bool = True,
    tokenizer: str = "default",
    wordnet: str | None = None,
    resamples: int = MEAN_RESAMPLES,
    resampling: str = "percentile",
    empty_references: str = "skip",
    sentences: str = "suite",
    max_words: int | None = None,
    groups: Sequence[str | int] | Mapping[str, str | int] | None = None,
) -> Report:
    """Compute the ROUGE of any texts, as `longsumbench score` does for files.

        score(["The cat sat."], ["A cat sat down."]).f1["rouge1"]

    Args:
        predictions: for each example, a text or a list of its sentences; a list, a generator, or a dictionary by id. Two
            pandas Series are paired by their labels.
        references: for each example, a text or a list of references; each of these a text or a list of its sentences.
            A dictionary if `predictions` is one, with the same ids in any order.
        mode: "google", as rouge_score, or "perl", as ROUGE-1.5.5.
        stem: whether words are reduced to stems.
        tokenizer: "default" (a-z and 0-9) or "unicode" (the letters of all scripts).
        wordnet: the folder of WordNet's exception lists, for perl mode; "none": without them.
        resamples: of the bootstrap for the 95 % intervals.
        resampling: "percentile", or "perl" for the intervals of ROUGE-1.5.5.
        empty_references: "skip" leaves out an example whose references hold no word, "zero" scores it 0.
        sentences: how texts are split for R-Lsum: "suite" (running text; lists are kept), "given" (lists and lines are
            kept), "newline" (at line breaks, as rouge_score) or "nltk" (Punkt).
        max_words: score only the first words of each prediction. None: all words.
        groups: for each example, what it shares with others, such as the meeting of a question: a list or a dictionary
            as `predictions`. Intervals are drawn over groups. None: each example is independent.

    Returns:
        The scores, 0-100, with intervals, the scores of each example and the signature.

    Raises:
        UsageError: an option is invalid.
        DataError: the two sides differ in length or ids, an item is neither text nor a list of texts, or an example has
            no group.
        EnvironmentProblem: WordNet's lists or nltk's data are missing.
    """
    rouge = build_rouge(
        mode=mode,
        stem=stem,
        tokenizer=tokenizer,
        wordnet=wordnet,
        resamples=resamples,
        resampling=resampling,
        empty_references=empty_references,
        sentences=sentences,
        max_words=max_words,
    )
    paired = pair_texts(predictions, references)
    return _score_pairs(paired, rouge, {} if groups is None else _check_groups(groups, paired))


def score_files(
    predictions: Path,
    references: Path | None,
    rouge: Rouge,
    intersect: bool = False,
    group_field: str | None = None,
) -> Report:
    """Score files of any system; print warnings about the texts on stderr before scoring.

    `read_pairs` explains the files and `intersect`; `rouge` is from `build_rouge`. `group_field` is a field of the rows
    of the references, or else of the predictions. A run has the groups of its sources.

    Raises:
        SuiteError: a file, an option or the environment is invalid.
    """
    paired = read_pairs(predictions, references, intersect)
    groups = {}
    if paired.examples is not None:
        if group_field:
            raise UsageError("a run has the groups of its sources: leave out --groups")
        groups = {example.id: example.source_group() for example in paired.examples}
    elif group_field:
        groups = _read_groups([references or predictions, predictions], group_field)
    return _score_pairs(paired, rouge, groups)


def _check_groups(groups: Any, paired: PairedTexts) -> dict[str, str]:
    """Return id → group, of a dictionary by id, or of a list for texts without ids, which are numbered from 1."""
    given = as_texts(groups, "groups")
    named = dict(given if isinstance(given, Mapping) else enumerate(given, start=1))
    values = {str(name): value for name, value in named.items()}
    ids = {pair.id for pair in paired.pairs}
    if values.keys() != ids or not all(isinstance(value, str | int) for value in values.values()):
        examples = format_count(len(ids), "example")
        raise DataError(
            f"groups: give a text or a number for each of {examples}, in a list or by id"
        )
    return values


def _read_groups(paths: Sequence[Path], field: str) -> dict[str, str]:
    """Return id → value of a field, from the first of these files that has it."""
    for path in paths:
        if detect_format(path) not in (LINES, FOLDER) and field in next(file_rows(path)).load():
            rows = parse_rows(path, ["id"], lambda row: (id_in(row, "id"), id_in(row, field)))
            return dict(entry for _, entry in rows)
    raise UsageError(f"--groups {field}: the first row of {paths[0]} has no such field")


def _score_pairs(paired: PairedTexts, rouge: Rouge, groups: Mapping[str, str]) -> Report:
    """Score texts; what seems wrong with them is reported on stderr, before they are scored.

    `groups` are by id; an id without one is a group of its own.
    """
    # Sentences are split here, not in ROUGE: warnings and signature tell how
    rule = rouge.scoring.sentences
    predictions, references = split_sides(paired.pairs, rule)
    rouge.splitting = (
        describe_splitting(predictions, references) if rule == "suite" else RULE_NAMES[rule]
    )
    rouge.scoring = replace(rouge.scoring, sentences=_GIVEN)  # they are split now
    drops = rouge.scoring.tokenizer == "default"
    warnings = [*_describe_left_out(paired), *find_warnings(predictions, references, drops)]
    _print_warnings(warnings)
    # The references of all examples are in one list, in the order of the examples
    targets = iter(references.split)
    examples = []
    for pair in paired.pairs:
        texts = tuple(islice(targets, len(pair.references)))
        group = groups.get(pair.id, "")
        examples.append(Example(pair.id, None, None, (_UNREAD,), texts, group=str(group)))
    scored = evaluate([predictions.split], examples, [rouge], rouge.scoring)
    evaluation = scored.evaluation
    assert evaluation.outputs is not None  # unknown only in records of other versions
    about_outputs = output_warnings(evaluation.outputs)
    if ids := evaluation.empty_references:
        share = f"{len(ids):,} of {len(paired.pairs):,} examples"
        reason = f"no reference has a word that the tokenizer keeps ({first_ids(ids)})"
        about_outputs.append(f"left out of the means: {share}, because {reason}")
    _print_warnings(about_outputs)
    table, measures = scored.per_example, dict[str, MeasureMean]()
    # Of a run the sources are known, too: it also has the default metrics
    if paired.examples is not None:
        by_id = {pair.id: pair.prediction for pair in paired.pairs}
        selected = paired.examples.select(table.index)
        predicted = [[by_id[name] for name in selected.ids]]
        metrics = default_metrics(rouge.scoring)
        measured = evaluate(predicted, selected, (), rouge.scoring, metrics)
        table = table.drop(columns=GROUP, errors="ignore").join(measured.per_example)
        measures = dict(measured.evaluation.measures)
    return Report(
        evaluation.scores,
        Scored(table, evaluation.empty_references, evaluation.empty_predictions),
        rouge.scoring.mode,
        evaluation.signature,
        (*warnings, *about_outputs),
        left_out={
            "empty_references": evaluation.empty_references,
            "only_predicted": paired.only_predicted,
            "only_referenced": paired.only_referenced,
        },
        outputs=evaluation.outputs,
        measures=measures,
        groups=evaluation.groups,
    )


def _describe_left_out(paired: PairedTexts) -> Iterator[str]:
    if ids := paired.only_predicted:
        yield f"{format_count(len(ids), 'prediction')} without references left out ({first_ids(ids)})"
    if ids := paired.only_referenced:
        yield f"{format_count(len(ids), 'reference')} without a prediction left out ({first_ids(ids)})"


def _print_warnings(warnings: Sequence[str]) -> None:
    for line in warnings:
        _log.warning(f"warning: {line}")


@dataclass(frozen=True)
class TextTable:
    """All predictions or all references, one row per text.

    Attributes:
        name: "predictions" or "references".
        texts: the texts as read.
        rule: how they are split, as in `split_for_rouge`.
    """

    name: str
    ids: Sequence[str]
    texts: Sequence[RawText]
    rule: str

    @cached_property
    def split(self) -> list[Sentences]:
        """The sentences to be scored."""
        return [tuple(split_for_rouge(text, self.rule)) for text in self.texts]

    def describe(self, rows: Sequence[int]) -> str:
        """Describe `rows` by their number and the first id: "3 of 10 references (e.g. 'a')"."""
        return f"{len(rows):,} of {len(self.ids):,} {self.name} (e.g. {self.ids[rows[0]]!r})"


def split_sides(pairs: Sequence[ScoredPair], rule: str = "suite") -> tuple[TextTable, TextTable]:
    """Split the texts of both sides into sentences; `rule` as in `split_for_rouge`."""
    owners, references = list[str](), list[RawText]()
    for pair in pairs:
        owners += [pair.id] * len(pair.references)
        references += pair.references
    ids = [pair.id for pair in pairs]
    predictions = [*remove_control_codes((pair.id, pair.prediction) for pair in pairs)]
    return (
        TextTable("predictions", ids, predictions, rule),
        TextTable("references", owners, references, rule),
    )


def describe_splitting(predictions: TextTable, references: TextTable) -> str:
    """Return the part of the signature that names the sentence splitter of each side."""
    ways = []
    for side in (predictions, references):
        names = {_GIVEN if isinstance(text, tuple) else SPLITTER_NAME for text in side.texts}
        ways.append("+".join(sorted(names)))
    return ways[0] if ways[0] == ways[1] else f"predictions={ways[0]},references={ways[1]}"


def find_warnings(predictions: TextTable, references: TextTable, drops: bool) -> list[str]:
    """Return a sentence about each probable error; `drops` means that the tokenizer keeps only a–z and 0–9."""
    messages = [*_literal_marks(predictions), *_literal_marks(references)]
    for find in (_unsplit, _lower_cased):
        messages += find(predictions, references)
        messages += find(references, predictions)
    messages += _find_cut_texts(references)
    if drops:
        messages += [*_dropped(predictions), *_dropped(references)]
    return messages


def _find_cut_texts(side: TextTable) -> list[str]:
    cut = CutTexts()
    for name, text in zip(side.ids, side.texts, strict=True):
        cut.add(name, [describe_end(text if isinstance(text, str) else " ".join(text))])
    return cut.describe(side.name)


def _literal_marks(side: TextTable) -> Iterator[str]:
    texts = [text if isinstance(text, str) else "\n".join(text) for text in side.texts]
    marked = zip(side.ids, map(marks_in, texts), strict=True)
    yield from describe_marks(marked, len(texts), side.name)
    for mark, effect in _MARKS.items():
        if rows := [row for row, text in enumerate(texts) if mark in text]:
            words = " ".join(_WORD_IN.findall(mark)).lower()
            yield f"literal {mark} in {side.describe(rows)}: it is scored as '{words}', {effect}"


def _unsplit(side: TextTable, other_side: TextTable) -> Iterator[str]:
    """Find texts of one line if the other side's texts are split."""
    # A few unsplit texts among many are normal, and so is a side of single sentences
    lines = [_count_lines(text) for text in side.texts]
    split_here = sum(count > 1 for count in lines)
    split_there = sum(_count_lines(text) > 1 for text in other_side.texts)
    if split_there < _MANY * len(other_side.texts) or split_here > _FEW * len(lines):
        return
    rows = [
        row for row, count in enumerate(lines) if count == 1 and _looks_unsplit(side.texts[row])
    ]
    if len(rows) < max(1, _MANY * len(lines)):
        return
    effect = "the splitter splits both sides into sentences, this one by its marks alone; split both alike, for R-Lsum"
    if any(isinstance(side.texts[row], tuple) for row in rows):
        effect = "one-item lists are scored as one sentence, which changes R-Lsum by 20 to 30 points; split both alike"
    yield f"{side.describe(rows)} are one unsplit line, while the {other_side.name} are split into sentences: {effect}"


def _count_lines(text: RawText) -> int:
    if isinstance(text, tuple):
        return len(text)
    return sum(bool(line.strip()) for line in text.splitlines())


def _looks_unsplit(text: RawText) -> bool:
    line = text if isinstance(text, str) else text[0]
    return len(line.split()) > _LONG_SENTENCE or len(split_summary(line)) > 1


def _lower_cased(side: TextTable, other_side: TextTable) -> Iterator[str]:
    """Find lower-cased texts if the other side has capitals."""
    rows = [row for row, sentences in enumerate(side.split) if " ".join(sentences).islower()]
    without = sum(" ".join(sentences).islower() for sentences in other_side.split)
    most = len(rows) >= (1 - _FEW) * len(side.split)
    if rows and most and without <= _FEW * len(other_side.split):
        effect = "words still match, but such text is often tokenized differently (ca n't, -lrb-); compare a few"
        yield f"{side.describe(rows)} are lower-cased, the {other_side.name} are not: {effect}"


def _dropped(side: TextTable) -> Iterator[str]:
    """Find texts whose letters and digits the default tokenizer drops."""
    joined = [" ".join(sentences) for sentences in side.split]
    rows = [
        row
        for row, text in enumerate(joined)
        if not text.isascii() and _ALNUM_BEYOND_ASCII.search(text)
    ]
    share = dropped_share(" ".join(joined[row] for row in rows))
    if share >= _DROPPED_SHARE:
        advice = "only a–z and 0–9 can match; --tokenizer unicode keeps the others"
        yield f"the tokenizer drops {100 * share:.0f} % of the letters and digits of {side.describe(rows)}: {advice}"
