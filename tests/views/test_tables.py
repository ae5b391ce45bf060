"""Tables on the terminal, in Markdown and in LaTeX: widths, marks and escaped names."""

import re
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from longsumbench.views.tables import (
    Block,
    Stressed,
    Tied,
    csv_text,
    latex,
    markdown,
    rounded_frame,
    terminal,
)

Columns = Callable[[int], None]
NUMBERS = Block(
    "pubmed_small, test split",
    (),
    ("", "system", "settings", "R-1", "R-2", "steps", "source\nseen", "run"),
    "rllrrrrl",
    [
        [
            "1",
            "hierarchical_transformer",
            "",
            Stressed("121.3 ±10.5"),
            Stressed("3.9 ±0.9"),
            "12,600",
            "6 %",
            "90b7e52b",
        ],
        [
            "2",
            "random & co",
            "a=[1,2], b=x_y^z~\\{#$%}<|>",
            Tied("19.9 ±1.5"),
            "3.0",
            "",
            "",
            "686b236e",
        ],
        ["3", "trunc", "length=train", "-7.4 ±1.2", Tied("2.3 ±0.5"), "600", "22 %", "3fa61efb"],
    ],
    groups=("", "", "", "ROUGE F1", "ROUGE F1", "", "", ""),
    optional=("steps", "source\nseen", "R-2"),
    tied="not distinguishable from the best (paired test)",
    footnotes=("ROUGE F1 ± half the 95 % interval, ≥ 0; 2 × 3.", "Signature: n:3"),
)
LONG = Block(
    "Oracles",
    ("Not ranked.",),
    ("system", "R-1"),
    "lr",
    [[f"oracle_{n}", f"{n}.5"] for n in range(60)],
)


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> Columns:
    """Set the width of the terminal."""
    return lambda number: monkeypatch.setenv("COLUMNS", str(number))


@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(columns: Columns, width: int) -> None:
    """Each line fits, and no cell loses a character: what is not shown is named."""
    columns(width)
    text = terminal("longsumbench", [NUMBERS, LONG])
    assert max(map(len, text.splitlines())) <= width
    shown = "".join(cell for row in NUMBERS.rows for cell in row[1:3]).replace(" ", "")
    assert Counter(text) >= Counter(shown)
    assert "90b7e52b" in text


def test_the_most_important_columns_that_fit_are_kept(columns: Columns) -> None:
    """The least important are missing first; a narrow one is kept in the room that a wide one would not fit in."""
    found = {}
    for width in range(200, 50, -1):
        columns(width)
        left_out = re.search(
            r"Left out at \d+ columns: ([^.]*)\.", terminal("", [NUMBERS]).replace("\n", " ")
        )
        found[left_out[1] if left_out else ""] = width
    assert list(found) == [
        "",
        "steps",
        "steps, source seen",
        "steps, R-2",
        "steps, source seen, R-2",
    ]


def test_marks_are_explained_below(columns: Columns) -> None:
    """A legend below each table names the marks that it has, and only these."""
    columns(100)
    assert (
        "\n* best of its column; ≈ not distinguishable from the best (paired test).\n"
        in terminal("", [NUMBERS])
    )
    assert "**Bold** best of its column; ≈ not distinguishable" in markdown("", [NUMBERS])
    assert "best of its column" not in terminal("", [LONG]) + markdown("", [LONG]) + latex(
        "", [LONG]
    )
    tied = Block("", (), ("a",), "l", [[Tied("1")]])
    assert terminal("", [tied]).endswith("\n≈ not distinguishable from it.")


def test_empty_columns() -> None:
    """A column that is empty in all rows is left out, with its group and its alignment."""
    block = Block(
        "", (), ("a", "b", "c"), "lrl", [["1", "", "2"], ["3", "", ""]], groups=("x", "y", "z")
    )
    kept = block.without_empty_columns()
    assert (kept.columns, kept.align, kept.groups) == (("a", "c"), "ll", ("x", "z"))
    assert kept.rows == [["1", "2"], ["3", ""]]


def test_latex_text() -> None:
    """Numbers are in columns of siunitx with the digits that they need; captions and labels can be filled in."""
    text = latex("pubmed", [NUMBERS, LONG])
    assert (
        r"\begin{tabular}{S[table-format=1]llS[table-format=-3.1(3)]S[table-format=1.1(1)]S[table-format=5]rl}"
        in text
    )
    assert r"\bfseries 121.3 +- 10.5" in text
    assert (
        r"random \& co & a=[1,2], b=x\_y\textasciicircum{}z\textasciitilde{}\textbackslash{}\{\#\$\%\}"
        in text
    )
    assert r"\multicolumn{3}{c}{} & \multicolumn{2}{c}{ROUGE F1} & \multicolumn{3}{c}{} \\" in text
    assert r"\caption{pubmed, pubmed\_small, test split}\label{tab:pubmed-1}" in text
    assert text.count(r"\begin{longtable}") == text.count(r"\end{longtable}") == 1
    assert not {"±", "≈", "≥", "×"} & set(text.partition("\n")[2])


@pytest.mark.latex
def test_latex_compiles(tmp_path: Path) -> None:
    """A real LaTeX typesets a table with everything that tables have, without an error or an undefined reference."""
    packages = r"\usepackage{adjustbox,booktabs,longtable,siunitx}"
    body = latex("pubmed_small", [NUMBERS, LONG])
    document = rf"\documentclass{{article}}{packages}\begin{{document}}{body}See \ref{{tab:pubmed_small-1}}.\end{{document}}"
    (tmp_path / "table.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    for _ in range(2):  # the second time, references are known
        done = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, errors="replace"
        )
    assert done.returncode == 0, done.stdout[-2000:]
    assert "undefined" not in done.stdout
    assert "multiply defined" not in done.stdout
    assert (tmp_path / "table.pdf").stat().st_size > 10_000


def test_a_csv_is_that_of_pandas() -> None:
    """Floats are rounded, missing and infinite values empty, texts quoted where they must be."""
    rows: list[dict[str, object]] = [
        {"name": 'a,"b"\nc', "n": 3, "score": 1 / 3, "whole": 2.0, "known": True},
        {"n": None, "score": float("nan"), "later": -1e-9, "name": ""},
    ]
    assert csv_text(rows) == rounded_frame(rows).to_csv(index=False, lineterminator="\n")
    assert csv_text([{"x": float("inf"), "y": 0.123456789}], decimals=6) == "x,y\n,0.123457\n"
