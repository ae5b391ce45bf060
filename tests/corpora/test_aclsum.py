"""ACLSum: papers become two datasets, and highlights are stretches of the source."""

import json
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from support.built_once import shared_cache
from support.packages import install_package
from support.toys import one_line

from longsumbench.cache.artifacts import ArtifactCache
from longsumbench.core import DatasetSettings, Document, Example, Section
from longsumbench.corpora import aclsum
from longsumbench.corpora.loading.load import Texts, load_texts
from longsumbench.errors import EnvironmentProblem

ABSTRACT = "We count the words of a long text, and find that most of them are short."
PARSE = """
{"paper_id": "X1", "pdf_parse": {
  "abstract": [
    {"text": "We count the words of a long text, and find that most of them are short.", "section": "Abstract"}],
  "body_text": [
    {"text": "Texts are long. We don't read (all of) them.", "section": "Introduction"},
    {"text": "We count the words of a long text, and find more.", "section": "Introduction"},
    {"text": "EQUATION", "section": "Method"},
    {"text": "x = 1", "section": "Method"},
    {"text": "Count words.", "section": "Method"},
    {"text": "We thank all.", "section": "Acknowledgments"},
    {"text": "http://words.org", "section": ""},
    {"text": "Most are short.", "section": "Conclusion"}],
  "back_matter": [{"text": "An appendix.", "section": "A"}],
  "ref_entries": {"TABREF0": {"text": "Table 1: words", "type_str": "table"}}}}
"""
ANNOTATIONS: dict[str, Any] = json.loads("""
{"title": "Counting Words",
 "summary": {"challenge": "Texts are long.", "approach": "They count.", "outcome": "Short ones."},
 "sentences": {
   "abstract": ["We count the words of a long text , and find that most of them are short ."],
   "introduction": [
     "Texts are long .",
     "We do n't read ( all of ) them .",
     "We count the words of a long text , and find more ."],
   "conclusion": ["Most are short ."]},
 "highlights": {
   "challenge": {"abstract": [0], "introduction": [1, 1, 0], "conclusion": [0]},
   "approach": {"abstract": [1], "introduction": [0, 0, 1], "conclusion": [0]},
   "outcome": {"abstract": [1], "introduction": [0, 0, 0], "conclusion": [1]}}}
""")


def install(site: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, str]) -> None:
    """Install a package with one paper in each split; `changed` has other contents of its files."""
    files = {}
    for number, name in enumerate(("train", "val", "test")):
        files[f"{name}.jsonl"] = json.dumps({**ANNOTATIONS, "id": f"X{number}"}) + "\n"
        files[f"paper_jsons/X{number}.json"] = PARSE
    files |= changed
    install_package(
        site, "aclsum", {f"aclsum/dataset/{name}": text for name, text in files.items()}, {}
    )
    monkeypatch.syspath_prepend(site)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package is installed, with one paper in each split."""
    install(tmp_path / "site", monkeypatch, {})


def read(name: str, cache: ArtifactCache) -> Texts:
    """Read one of the two datasets."""
    return load_texts(DatasetSettings(name), cache)


def test_a_paper_and_its_abstract(tiny: None, cache: ArtifactCache) -> None:
    """The source has the prose of the body, without the paragraph that repeats the abstract; what is missing is counted."""
    texts = read("aclsum", cache)
    introduction = ("Texts are long.", "We don't read (all of) them.")
    sections = (
        Section("Introduction", (introduction,)),
        Section("Method", (("Count words.",),)),
        Section("Conclusion", (("Most are short.",),)),
    )
    assert texts.splits["validation"][0] == Example(
        "X1",
        "Counting Words",
        None,
        (Document(None, sections),),
        ((ABSTRACT,),),
        highlights=(*introduction, "Most are short."),
    )
    counts = {aclsum.NOT_PROSE: 4, aclsum.REPEATED: 1, aclsum.LOST: 1}
    assert texts.metadata["left_out"] == dict.fromkeys(texts.splits, counts)
    assert texts.metadata["aclsum"] == "1.0"


def test_a_paper_and_its_aspects(tiny: None, cache: ArtifactCache) -> None:
    """Each aspect is an example with a question; the abstract is the first section, and no paragraph is too much."""
    examples = list(read("aclsum_aspects", cache).splits["test"])
    introduction = ("Texts are long.", "We don't read (all of) them.")
    copied = "We count the words of a long text, and find more."
    expected = {
        "challenge": ("Texts are long.", introduction),
        "approach": ("They count.", (ABSTRACT, copied)),
        "outcome": ("Short ones.", (ABSTRACT, "Most are short.")),
    }
    for example, (aspect, (summary, highlights)) in zip(examples, expected.items(), strict=True):
        assert (example.id, example.query) == (f"X2-{aspect}", aclsum.ASPECT_QUERIES[aspect])
        assert (example.references, example.highlights) == (((summary,),), highlights)
    for example in examples:
        (document,) = example.documents
        names = [section.name for section in document.sections]
        assert names == ["Abstract", "Introduction", "Method", "Conclusion"]
        assert len(document.sections[1].paragraphs) == 2


def test_a_missing_package_is_named(cache: ArtifactCache, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install, with the exit code of the environment."""

    def not_installed(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(aclsum, "distribution", not_installed)
    with pytest.raises(EnvironmentProblem, match=r"not installed: pip install aclsum$"):
        read("aclsum", cache)


PAPER = "paper_jsons/X1.json"
ONE_LABEL = {"challenge": {"introduction": [1], "conclusion": [0]}}


@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        (PAPER, '{"pdf_parse": {"body_text": []}}', "`abstract`"),
        ("val.jsonl", json.dumps({**ANNOTATIONS, "id": "X1", "highlights": ONE_LABEL}), "shorter"),
    ],
)
def test_a_damaged_file_is_named(
    file: str,
    content: str,
    problem: str,
    tmp_path: Path,
    cache: ArtifactCache,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line has the file, what is wrong with it, and how to replace it."""
    install(tmp_path, monkeypatch, {file: content})
    line = one_line(lambda: read("aclsum", cache))
    assert line.startswith(f"{tmp_path / 'aclsum/dataset' / file}: damaged (")
    assert problem in line
    assert line.endswith("pip install --force-reinstall aclsum")


def test_the_package_reads_the_same() -> None:
    """Ids, titles, summaries and highlights are those of the package's class, but for the blanks of its tokens."""
    package = pytest.importorskip("aclsum")
    papers, aspects = (read(name, shared_cache()).splits for name in ("aclsum", "aclsum_aspects"))
    for name, split in (("train", "train"), ("val", "validation"), ("test", "test")):
        examples = iter(aspects[split])
        for document, paper in zip(package.ACLSum(name), papers[split], strict=True):
            assert (paper.id, paper.title) == (document.id, document.title)
            abstract = without_blanks("".join(document.sentences["abstract"]))
            assert without_blanks("".join(paper.references[0])) == abstract
            of_paper: list[str] = []
            for aspect in aclsum.ASPECT_QUERIES:
                example = next(examples)
                assert (example.id, example.title) == (f"{document.id}-{aspect}", document.title)
                summary = " ".join(document.summaries[aspect].split())
                assert " ".join(example.references[0]) == summary
                highlighted = document.get_all_highlighted_sentences(aspect)
                assert equal_but_for_blanks(example.highlights, highlighted)
                sections = ["introduction", "conclusion"]
                of_paper += document.get_all_highlighted_sentences(aspect, sections)
            source = without_blanks(paper.source_text())
            in_source = [sentence for sentence in of_paper if without_blanks(sentence) in source]
            assert equal_but_for_blanks(paper.highlights, in_source)
            assert abstract not in source


def equal_but_for_blanks(sentences: Iterable[str], others: Iterable[str]) -> bool:
    """Compare sentences without their order."""
    return set(map(without_blanks, sentences)) == set(map(without_blanks, others))


def without_blanks(text: str) -> str:
    """Remove white space."""
    return "".join(text.split())
