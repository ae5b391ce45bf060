"""`pydoc`, the built-in dataset: the docstrings of the standard library and of the suite's own dependencies.

Each example is a module or a class. Its input is the documentation of its members, one document each. Its reference is
the prose of its docstring, up to the first heading, list or prompt. Files are parsed, never imported. A module and its
classes share text, so a hash of the *module's* name decides the split of all of them.
"""

import ast
import gc
import importlib.metadata
import importlib.util
import platform
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

from longsumbench.core import BuiltIn, Corpus, Document, Example, Section, Sentences, count_words
from longsumbench.corpora.pydoc.docstrings import HEADING, ITEM, PARAGRAPH, Event, parse_docstring
from longsumbench.corpora.reading.clones import Clones
from longsumbench.corpora.reading.rows import split_by_hash
from longsumbench.errors import EnvironmentProblem
from longsumbench.sentences import split_sentences

# Distribution → package: the suite's runtime dependencies, direct and indirect. No other package changes the dataset.
_SAME_NAMES = (
    "accelerate datasets evaluate filelock fsspec jinja2 joblib mpmath networkx numpy omegaconf pandas "
    "platformdirs psutil pyarrow safetensors scipy sympy tabulate tokenizers torch tqdm transformers"
)
PACKAGES = {name: name for name in _SAME_NAMES.split()} | {
    "huggingface-hub": "huggingface_hub",
    "hydra-core": "hydra",
    "scikit-learn": "sklearn",
}
_INPUT_WORDS = 100  # at least
_REFERENCE_WORDS = range(10, 201)

_SKIPPED_FOLDERS = re.compile(
    r"tests?|testing|idlelib|lib2to3|turtledemo|(site|dist)-packages|externals?|_vendor|vendored|third_party|_bundled"
)
_TRIPLE_QUOTED = re.compile(rb'"""(.*?)"""|\'\'\'(.*?)\'\'\'', re.DOTALL)
_HOLDER_DOCSTRING = re.compile(
    rb"""(?:\A(?:\#[^\n]*+|\s)*+|^class\ \w[^:"']{0,400}:\s*+(?:\#[^\n]*+\s++)?)[rRuU]?(?=\"{3}|'{3})""",
    re.MULTILINE | re.VERBOSE,
)
# a sentence that only refers to a manual
_POINTER = re.compile(r"Read more in the .{1,40}\.")
_SKIPPED_FILES = re.compile(r"tests?|test_.*|.*_test|conftest|setup|__main__|.*_pb2")

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def generate_docstrings() -> Iterator[tuple[str, Example]]:
    """Yield (split, example), sorted by module name."""
    inputs, references = Clones(one_in=8), Clones()
    for module, path in source_files():
        source = path.read_bytes()
        for example in examples_in(module, source) if promising(source) else ():
            text, reference = " ".join(example.sentences()), " ".join(example.references[0])
            if not (references.contain(reference) or inputs.contain(text)):
                references.add(reference)
                inputs.add(text)
                yield split_by_hash(module), example


def package_versions() -> dict[str, Any]:
    """Return the versions of Python and of all packages that are read.

    Raises:
        EnvironmentProblem: a package is not installed.
    """
    return {
        "python": platform.python_version(),
        "packages": {name: _release_of(name) for name in sorted(PACKAGES)},
    }


def source_files() -> Iterator[tuple[str, Path]]:
    """Yield (module name, file) without tests: the standard library, then the packages, each sorted."""
    library = Path(sysconfig.get_path("stdlib"))
    for name in sorted(sys.stdlib_module_names):
        yield from _modules(name, library / name)
    for package in sorted(PACKAGES.values()):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            raise EnvironmentProblem(
                f"the package {package} is not installed: reinstall longsumbench"
            )
        origin = Path(spec.origin)
        yield from _modules(
            package, origin.parent if origin.name == "__init__.py" else origin.with_suffix("")
        )


def promising(source: bytes) -> bool:
    """Check quickly if a file can hold an example. Parsing all files would take most of the time.

    A module's or class's triple-quoted docstring must have as many words as the shortest reference. All triple-quoted
    strings together must have as many as the shortest input and reference.
    """
    words = {
        match.start(): len((match[1] or match[2] or b"").split())
        for match in _TRIPLE_QUOTED.finditer(source)
    }
    if sum(words.values()) < _INPUT_WORDS + _REFERENCE_WORDS[0]:
        return False
    return any(
        words.get(match.end(), 0) >= _REFERENCE_WORDS[0]
        for match in _HOLDER_DOCSTRING.finditer(source)
    )


def examples_in(module: str, source: bytes) -> Iterator[Example]:
    """Yield the examples of one source file: the module's, then those of its classes."""
    tree = _parse(source)
    if tree is None:
        return
    holders: list[tuple[str, ast.Module | ast.ClassDef]] = [(module, tree)]
    holders += [
        (f"{module}.{node.name}", node) for node in tree.body if isinstance(node, ast.ClassDef)
    ]
    yield from filter(None, (_docstring_example(name, holder) for name, holder in holders))


def _docstring_example(name: str, holder: ast.Module | ast.ClassDef) -> Example | None:
    """Return the example of a module or class; None if its texts are too short or too long."""
    docstring = ast.get_docstring(holder)
    reference = _reference_in(docstring) if docstring else ()
    if count_words(reference) not in _REFERENCE_WORDS:
        return None
    documents = tuple(_members(name, holder, set()))
    example = Example(name, name, None, documents, (reference,))
    return example if example.source_words() >= _INPUT_WORDS else None


def _reference_in(docstring: str) -> Sentences:
    """Return the prose up to the first heading, list or prompt, without a last sentence that introduces it."""
    sentences: list[str] = []
    for paragraph in takewhile(lambda event: event.kind == PARAGRAPH, parse_docstring(docstring)):
        sentences += split_sentences(paragraph.text)
    if sentences and sentences[-1].endswith(":"):
        sentences.pop()
    return tuple(sentence for sentence in sentences if not _POINTER.fullmatch(sentence))


def _parse(source: bytes) -> ast.Module | None:
    """Parse a file; None if it is a template or for another version of Python."""
    collects = gc.isenabled()
    # syntax trees have no cycles, and the search for them takes a quarter of the time
    gc.disable()
    try:
        with warnings.catch_warnings():
            # escapes in other people's strings
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None
    finally:
        if collects:
            gc.enable()


def _members(name: str, holder: ast.Module | ast.ClassDef, seen: set[str]) -> Iterator[Document]:
    """Yield the documentation of functions and classes; a class's members follow it."""
    for member in holder.body:
        if not isinstance(member, Definition):
            continue
        qualified, docstring = f"{name}.{member.name}", ast.get_docstring(member)
        if (
            docstring
            and docstring not in seen
            and (sections := _docstring_sections(parse_docstring(docstring)))
        ):
            seen.add(docstring)
            yield Document(qualified, sections)
        if isinstance(member, ast.ClassDef):
            yield from _members(qualified, member, seen)


def _docstring_sections(pieces: Iterable[Event]) -> tuple[Section, ...]:
    headed: list[tuple[str | None, list[Sentences]]] = [(None, [])]
    for piece in pieces:
        if piece.kind == HEADING and piece.text != headed[-1][0]:
            headed.append((piece.text, []))
        elif piece.kind in (PARAGRAPH, ITEM) and (sentences := split_sentences(piece.text)):
            headed[-1][1].append(sentences)
    return tuple(Section(name, tuple(paragraphs)) for name, paragraphs in headed if paragraphs)


def _modules(name: str, place: Path) -> Iterator[tuple[str, Path]]:
    """Yield (module name, file) of a module, or of a package and all its modules, sorted."""
    if place.with_suffix(".py").is_file():
        yield name, place.with_suffix(".py")
    elif place.is_dir() and not _SKIPPED_FOLDERS.fullmatch(place.name):
        if (place / "__init__.py").is_file():
            yield name, place / "__init__.py"
        for item in sorted(place.iterdir()):
            if item.is_dir():
                yield from _modules(f"{name}.{item.name}", item)
            elif (
                item.suffix == ".py"
                and item.stem != "__init__"
                and not _SKIPPED_FILES.fullmatch(item.stem)
            ):
                yield f"{name}.{item.stem}", item


# 30 packages, and a sweep asks for each point
@cache
def _release_of(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError as error:
        raise EnvironmentProblem(
            f"the package {distribution} is not installed: reinstall longsumbench"
        ) from error


CORPUS = Corpus(
    name="pydoc",
    title="Docstrings of the standard library and of the suite's own dependencies: built in, "
    "no download. About 2,000 examples.",
    licence="the licences of Python and of each package (PSF, BSD, MIT, Apache-2.0)",
    homepage="https://docs.python.org/3/library/",
    multi_document=True,
    built_in=BuiltIn(lambda settings: generate_docstrings(), lambda settings: package_versions()),
)
