"""The generated parts of docs/papers.md: all claims of the papers, and all tables and figures with their costs.

    python benchmarks/papers_page.py [--check | --write] [--results-dir results/reference]

Without an option the page is printed. --check compares it with the file; --write writes the file. It shows the pages in
results/reference/papers, and the costs that benchmarks/paper_cost.py --write estimates.
"""

import argparse
import sys
from pathlib import Path

from longsumbench.papers.overview import papers_page
from longsumbench.runs.results import Results

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/papers.md"


def main() -> None:
    """Print the page, compare it with the file, or write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results-dir", type=Path, default=ROOT / "results/reference", help="where the pages are")
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--check", action="store_true", help="exit code 1 if the file is another one")
    action.add_argument("--write", action="store_true", help="write the file")
    options = parser.parse_args()
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
