"""Words per sentence, and counts of discouraged words, in README, docs and docstrings.

    python benchmarks/prose.py                # median, 90th percentile and maximum; counts
    python benchmarks/prose.py --longest 10   # also the longest sentences of each group, with file and line

Code, tables, headings and pictures have no sentences. A sentence ends at ". ! ? :" or with its paragraph or list item.
"""

import argparse
import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[1]
DISCOURAGED = (
    *("told", "stands?", "beside", "behind", "likewise"),
    *("of its own", "cannot be meant", "for want of", "the plain word"),
)
PAGES = (
    "docs/**/*.md",
    "models/**/README.md",
    "results/README.md",
    "benchmarks/RESULTS.md",
    "CONTRIBUTING.md",
)
NO_END = re.compile(r"\b(e\.g|i\.e|al|cf|vs|Eqs?|Figs?|No)\.$")
ITEM = re.compile(
    r"\s*([*+-]|\d+\.)\s|\s+\w+(, \w+)*: "
)  # a list's item, or an argument in a docstring

Text = tuple[str, int, str]  # file, number of the first line, text


def main() -> None:
    """Print a row for each group, and on request its longest sentences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--longest",
        type=int,
        default=0,
        metavar="N",
        help="print the N longest sentences of a group",
    )
    longest = parser.parse_args().longest
    for group, texts in groups().items():
        found = sorted((sentence for text in texts for sentence in sentences(text)), reverse=True)
        lengths = [length for length, _, _ in found]
        print(
            f"{group}: {sum(len(text.split()) for _, _, text in texts):,} words; words per sentence: "
            f"median {median(lengths):g}, 90th percentile {quantiles(lengths, n=10)[-1]:g}, maximum {max(lengths)}"
        )
        counts = {
            word: sum(len(re.findall(rf"\b{word}\b", text)) for _, _, text in texts)
            for word in DISCOURAGED
        }
        print(
            f"  discouraged: {sum(counts.values())}",
            {word: count for word, count in counts.items() if count},
        )
        for length, place, sentence in found[:longest]:
            print(f"  {length:3} {place}: {sentence}")


def groups() -> dict[str, list[Text]]:
    """Return the texts of README, docs and docstrings."""
    pages = [path for pattern in PAGES for path in sorted(ROOT.glob(pattern))]
    modules = [
        path
        for folder in ("longsumbench", "models")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    return {
        "README": [whole(ROOT / "README.md")],
        "docs": [whole(path) for path in pages],
        "docstrings": [text for path in modules for text in docstrings(path)],
    }


def whole(path: Path) -> Text:
    """Return all of a file."""
    return str(path.relative_to(ROOT)), 1, path.read_text(encoding="utf-8")


def docstrings(path: Path) -> Iterator[Text]:
    """Yield the docstrings of a module, its classes and its functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (
            text := ast.get_docstring(node)
        ):
            yield str(path.relative_to(ROOT)), node.body[0].lineno, text


def sentences(text: Text) -> Iterator[tuple[int, str, str]]:
    """Yield (words, "file:line", sentence) for each sentence of three words or more."""
    file, first, content = text
    words: list[str] = []
    begin = first
    for number, line in enumerate([*prose_lines(content), ""], first):
        if words and (not line or ITEM.match(line)):
            yield from counted(words, f"{file}:{begin}")
            words = []
        for word in ITEM.sub("", line, count=1).split() if ITEM.match(line) else line.split():
            begin = begin if words else number
            words.append(word)
            bare = word.rstrip("*_)\"'`]")
            if bare.endswith((".", "!", "?", ":")) and not NO_END.search(bare):
                yield from counted(words, f"{file}:{begin}")
                words = []


def counted(words: list[str], place: str) -> Iterator[tuple[int, str, str]]:
    """Yield a sentence, if it has three words."""
    if len(words) > 2:
        yield len(words), place, " ".join(words)


def prose_lines(text: str) -> Iterator[str]:
    """Yield each line, or an empty one for code, tables, headings, pictures and markers."""
    fenced = code = False
    before = ""
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        fenced = fenced != fence
        code = line.startswith("    ") and (code or not before.strip())
        other = line.startswith(("|", "#", "!", "<", ">>>")) or set(line.strip()) <= set("-|: ")
        yield "" if fenced or fence or code or other else line
        before = line


if __name__ == "__main__":
    main()
