"""The generated parts of docs/papers.md: all claims of the papers, and all tables and figures with their costs.

    python benchmarks/papers_page.py [--check | --write] [--results-dir results/reference]
    python benchmarks/papers_page.py --remake TEXTS [--results-dir results/reference]

Without an option the page is printed. --check compares it with the file; --write writes the file. It shows the pages in
results/reference/papers, and the costs that benchmarks/paper_cost.py --write estimates.
"""

import argparse
import sys
import time
from pathlib import Path

from longsumbench.papers.make import paper
from longsumbench.papers.overview import papers_page
from longsumbench.papers.stored_pages import read_all_written
from longsumbench.runs.results import Results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/papers.md"


FOLDERS = {"peer_reviews": "neurips_metareview", "openstax_modules": "openstax"}  # dataset → folder of its texts


def remake(results: Path, texts: Path) -> None:
    """Make all pages of a results folder again from their runs, with the texts of their command; train nothing."""
    for page in read_all_written(Results(results)):
        names = [word.partition("=")[0].removeprefix("path.") for word in page.words if word.startswith("path.")]
        paths = {f"path.{name}": texts / FOLDERS.get(name, name) for name in names}
        if missing := [str(path) for path in paths.values() if not path.exists()]:
            print(f"{page.name}: not made again, {', '.join(missing)} is missing")
            continue
        others = [word for word in page.words if word.partition("=")[0] not in paths]
        started = time.monotonic()
        words = [f"scale={page.scale}", *others, *(f"{key}={path}" for key, path in paths.items())]
        paper(page.name, words, run=False, results_dir=results)
        print(f"{page.name}: {time.monotonic() - started:.1f} s", flush=True)


def main() -> None:
    """Print the page, compare it with the file, or write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results-dir", type=Path, default=ROOT / "results/reference", help="where the pages are")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="exit code 1 if the file is another one")
    action.add_argument("--write", action="store_true", help="write the file")
    action.add_argument("--remake", type=Path, metavar="TEXTS", help="make all pages again; TEXTS has the corpora")
    options = parser.parse_args()
    if options.remake:
        remake(options.results_dir, options.remake)
        return
    before = PAGE.read_text(encoding="utf-8")
    text = papers_page(before, Results(options.results_dir))
    if options.write:
        PAGE.write_text(text, encoding="utf-8")
    elif options.check:
        sys.exit(None if before == text else "docs/papers.md is not current: use --write")
    else:
        print(text)


if __name__ == "__main__":
    main()
