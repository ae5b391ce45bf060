"""Execute the cells of a notebook and store what they print, return and draw; Jupyter is not needed.

    python benchmarks/execute_notebook.py docs/get-started/notebook.ipynb [--check]

The cells run in a temporary folder, without a network. The outputs go into the notebook. --check compares the texts
among them with the stored ones instead.
"""

import ast
import base64
import contextlib
import io
import json
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot

Output = dict[str, Any]


def run_cell(source: str, names: dict[str, Any]) -> list[Output]:
    """Execute a cell; return its outputs in the format of notebooks."""
    tree, value = ast.parse(source), None
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) and source[-1] != ";" else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - the project's own notebook
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307 - the same
    outputs: list[Output] = []
    if text := printed.getvalue():
        outputs.append(
            {"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}
        )
    if value is not None:
        representations: dict[str, Any] = {"text/plain": [repr(value)]}
        if hasattr(value, "_repr_png_"):
            representations["image/png"] = base64.b64encode(value._repr_png_()).decode()
        outputs.append({"output_type": "display_data", "metadata": {}, "data": representations})
    for number in pyplot.get_fignums():
        drawn = io.BytesIO()
        pyplot.figure(number).savefig(
            drawn, format="png", dpi=100, bbox_inches="tight", metadata={"Software": None}
        )
        data = {"image/png": base64.b64encode(drawn.getvalue()).decode()}
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    pyplot.close("all")
    return outputs


def refuse(*_: Any) -> Any:
    """Raise the error of a connection without a network."""
    raise OSError("no network")


def texts_in(notebook: dict[str, Any]) -> list[list[Any]]:
    """Return the outputs of each cell without pictures."""
    texts = []
    for cell in notebook["cells"]:
        outputs = cell.get("outputs", ())
        texts.append([item.get("text", item.get("data", {}).get("text/plain")) for item in outputs])
    return texts


def main() -> None:
    """Execute the notebook that the command line names."""
    path = Path(sys.argv[1]).resolve()
    stored = path.read_text(encoding="utf-8")
    notebook = json.loads(stored)
    matplotlib.use("agg")
    socket.socket.connect = socket.getaddrinfo = refuse  # type: ignore[assignment, method-assign]
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell["outputs"] = run_cell("".join(cell["source"]), names)
        os.chdir(path.parent)
    if "--check" not in sys.argv:
        content = json.dumps(notebook, indent=1, ensure_ascii=False)
        path.write_text(content + "\n", encoding="utf-8")
    elif texts_in(notebook) != texts_in(json.loads(stored)):
        sys.exit(f"{path.name} has other outputs than its cells: run this without --check")


if __name__ == "__main__":
    main()
