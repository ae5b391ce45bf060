"""ACLSum: 250 papers of the ACL Anthology in full, with summaries and highlights by experts (Takeshita et al. 2024).

Paper: https://arxiv.org/abs/2403.05303. The texts are in the package `aclsum`, as Grobid parsed them. `abstract_example`
and `aspect_examples` make two datasets of them:

* `aclsum`: the paper → its abstract, which is not in the source. Authors repeat themselves, so a paragraph is left out
  and counted if over half of its 8-grams are in the abstract, or over a third of the abstract's are in it. In seven
  papers Grobid's abstract runs on into a footnote, a table or the introduction. It stays as the package has it.
* `aclsum_aspects`: the paper, its abstract as the first section, and a question for each aspect → the experts' sentence
  on it. Questions suit language models. They name an aspect by two words, which rankers look for.

The source has the sections and paragraphs of the body. References, tables and captions are separate in the parse and
are not read, and neither is what follows the body. A few captions that Grobid took for paragraphs stay. Footnotes,
which have no section, acknowledgements and paragraphs that are only a formula are left out and counted.

Experts highlighted sentences of abstract, introduction and conclusion. The package has these sentences tokenized
("terms ."), with the characters of the parse. So a highlight is the stretch of the source with these characters. An
example of `aclsum` has the highlights of all aspects, without those of the abstract.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

from longsumbench.core import (
    BuiltIn,
    Corpus,
    Document,
    Example,
    PartialExample,
    Read,
    Section,
    Sentences,
)
from longsumbench.corpora.loading.text_files import lines_of
from longsumbench.errors import DataError, EnvironmentProblem
from longsumbench.files import BadFile, parse_json, read_json
from longsumbench.rouge.tokenizer import distinct_grams
from longsumbench.sentences import split_sentences

ASPECT_QUERIES = {
    "challenge": "Which challenge or problem does the paper address?",
    "approach": "Which approach or method does the paper propose?",
    "outcome": "Which outcome or results does the paper report?",
}
# names in the record
REPEATED = "paragraphs that repeat the abstract"
NOT_PROSE = "footnotes, acknowledgements and paragraphs that are only a formula"
LOST = "highlights in paragraphs that were left out"

# split → name of its file
_FILES = {"train": "train", "validation": "val", "test": "test"}
# What a paragraph of a formula has not.
_WORD = re.compile(r"[^\W\d_]{3}")
# What Grobid writes in the place of a formula.
_PLACEHOLDER = "EQUATION"
_ACKNOWLEDGEMENTS = re.compile(r"acknowledge?ments?", re.IGNORECASE)


@dataclass(frozen=True)
class ParsedParagraph:
    """A paragraph of the parse; a footnote has the section ""."""

    text: str
    section: str


@dataclass(frozen=True)
class PaperText:
    """What is read of the parse."""

    abstract: tuple[ParsedParagraph, ...]
    body_text: tuple[ParsedParagraph, ...]


@dataclass(frozen=True)
class _ParseFile:
    pdf_parse: PaperText


@dataclass(frozen=True)
class Annotations:
    """The experts' work on a paper.

    Attributes:
        id: of the paper in the ACL Anthology.
        title: of the paper.
        summary: aspect → a sentence.
        sentences: "abstract", "introduction" or "conclusion" → tokenized sentences.
        highlights: aspect → section → 1 for each sentence that is highlighted, else 0.
    """

    id: str
    title: str
    summary: Mapping[str, str]
    sentences: Mapping[str, tuple[str, ...]]
    highlights: Mapping[str, Mapping[str, tuple[int, ...]]]

    def highlighted(self, aspect: str, sections: Collection[str]) -> Iterator[str]:
        """Yield the highlighted sentences of an aspect, tokenized."""
        for section in sections:
            labels = self.highlights[aspect][section]
            for sentence, label in zip(self.sentences[section], labels, strict=True):
                if label:
                    yield sentence


_ToExamples = Callable[[Annotations, PaperText], Read]


def abstract_example(annotations: Annotations, paper: PaperText) -> PartialExample:
    """Return the Example whose reference is the abstract."""
    prose = _prose(paper.body_text)
    abstract = distinct_grams([paragraph.text for paragraph in paper.abstract], 8)
    body = [paragraph for paragraph in prose if not _repeats(paragraph.text, abstract)]
    # The experts marked sentences for each aspect; some are marked for several.
    highlighted: set[str] = set()
    for aspect in ASPECT_QUERIES:
        highlighted.update(annotations.highlighted(aspect, ("introduction", "conclusion")))
    source = _document(body)
    highlights = find_tokenized(source, highlighted)
    example = Example(
        annotations.id,
        annotations.title,
        query=None,
        documents=(source,),
        references=(tuple(_document(paper.abstract).sentences()),),
        highlights=highlights,
    )
    left_out = {
        NOT_PROSE: len(paper.body_text) - len(prose),
        REPEATED: len(prose) - len(body),
        LOST: len(highlighted) - len(highlights),
    }
    return PartialExample(example, left_out)


def aspect_examples(annotations: Annotations, paper: PaperText) -> tuple[PartialExample, ...]:
    """Return an Example for each aspect; its id joins paper and aspect."""
    prose = _prose(paper.body_text)
    source = _document((*paper.abstract, *prose))
    examples = []
    for aspect, query in ASPECT_QUERIES.items():
        highlighted = annotations.highlighted(aspect, annotations.sentences)
        example = Example(
            f"{annotations.id}-{aspect}",
            annotations.title,
            query,
            documents=(source,),
            references=(split_sentences(annotations.summary[aspect]),),
            highlights=find_tokenized(source, highlighted),
        )
        examples.append(PartialExample(example, {NOT_PROSE: len(paper.body_text) - len(prose)}))
    return tuple(examples)


def _prose(body: Iterable[ParsedParagraph]) -> list[ParsedParagraph]:
    """Return the paragraphs that are prose."""
    prose = []
    for paragraph in body:
        is_formula = paragraph.text == _PLACEHOLDER or not _WORD.search(paragraph.text)
        is_note = not paragraph.section or _ACKNOWLEDGEMENTS.fullmatch(paragraph.section)
        if not is_formula and not is_note:
            prose.append(paragraph)
    return prose


def _document(paragraphs: Iterable[ParsedParagraph]) -> Document:
    sections = []
    for name, members in groupby(paragraphs, key=attrgetter("section")):
        texts = tuple(split_sentences(paragraph.text) for paragraph in members)
        sections.append(Section(name, texts))
    return Document(None, tuple(sections))


def find_tokenized(source: Document, tokenized: Iterable[str]) -> Sentences:
    """Return the stretches of a source that equal tokenized sentences except for blanks, in the order of the source.

    Sentences that the source does not have are left out.
    """
    text = " ".join(source.sentences())
    spans = set()
    for sentence in tokenized:
        # Blanks between two characters do not matter.
        characters = " *".join(map(re.escape, "".join(sentence.split())))
        if match := re.search(characters, text):
            spans.add(match.span())
    return tuple(text[start:end] for start, end in sorted(spans))


def _repeats(paragraph: str, abstract: set[tuple[str, ...]]) -> bool:
    """Return True if over half of a paragraph is in the abstract, or over a third of the abstract in the paragraph."""
    grams = distinct_grams([paragraph], 8)
    num_shared = len(grams & abstract)
    return 2 * num_shared > len(grams) or 3 * num_shared > len(abstract)


def _read_papers(to_examples: _ToExamples, settings: Any) -> Iterator[tuple[str, Read]]:
    """Yield (split, examples of a paper) in the order of the package's files.

    Raises:
        DataError: a file of the package is damaged or missing.
        EnvironmentProblem: the package is not installed.
    """
    folder = Path(str(_package().locate_file("aclsum"))) / "dataset"
    for split, name in _FILES.items():
        file = folder / f"{name}.jsonl"
        for line in lines_of(file):
            with _naming_file(file):
                annotations = parse_json(line, Annotations)
            parse = folder / "paper_jsons" / f"{annotations.id}.json"
            with _naming_file(parse):
                paper = read_json(parse, _ParseFile).pdf_parse
            with _naming_file(file):
                examples = to_examples(annotations, paper)
            yield split, examples


@contextmanager
def _naming_file(file: Path) -> Iterator[None]:
    """Raise what a damaged file causes as a DataError with its name."""
    try:
        yield
    except (BadFile, FileNotFoundError, KeyError, ValueError) as error:
        problem = f"damaged ({error}): pip install --force-reinstall aclsum"
        raise DataError(problem, file) from error


def _package() -> Distribution:
    try:
        return distribution("aclsum")
    except PackageNotFoundError as error:
        problem = "the package aclsum, which has the texts, is not installed: pip install aclsum"
        raise EnvironmentProblem(problem) from error


def _built_in(to_examples: _ToExamples) -> BuiltIn:
    read = partial(_read_papers, to_examples)
    return BuiltIn(read, lambda settings: {"aclsum": _package().version})


CORPUS = Corpus(
    name="aclsum",
    title="ACLSum: papers of the ACL Anthology in full → their abstracts, with highlights: "
    "in the package aclsum. 250 papers.",
    licence="MIT; the papers: CC BY 4.0, those before 2016 CC BY-NC-SA 3.0",
    homepage="https://github.com/sobamchan/aclsum",
    built_in=_built_in(abstract_example),
    published="2024-03",
)
ASPECTS = replace(
    CORPUS,
    name="aclsum_aspects",
    title="ACLSum: papers of the ACL Anthology in full and a question on challenge, approach or outcome, which is the "
    "query → the experts' sentence.",
    built_in=_built_in(aspect_examples),
)
