"""The notebook of the documentation: it runs, and shows what it prints."""

from pathlib import Path
from typing import Any

from support.json_files import read_json
from support.paths import ROOT
from support.processes import run_python

NOTEBOOK = ROOT / "docs/get-started/notebook.ipynb"
_WITHOUT_NETWORK = """
import runpy, socket, sys
def refuse(*_): raise OSError("no network")
socket.socket.connect = socket.getaddrinfo = refuse
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def texts_in(path: Path) -> list[tuple[Any, list[Any]]]:
    """Return each cell's source, and its outputs but for pictures."""
    texts = []
    for cell in read_json(path)["cells"]:
        outputs = []
        for output in cell.get("outputs", ()):
            outputs.append(output.get("text", output.get("data", {}).get("text/plain")))
        texts.append((cell["source"], outputs))
    return texts


def test_the_notebook_runs_and_its_stored_outputs_are_those_of_its_cells(tmp_path: Path) -> None:
    """From top to bottom, in a fresh process, without a network; benchmarks/execute_notebook.py stores new outputs."""
    script, copy = ROOT / "benchmarks/execute_notebook.py", tmp_path / "copy.ipynb"
    run_python(_WITHOUT_NETWORK, script, NOTEBOOK, copy)
    assert texts_in(copy) == texts_in(NOTEBOOK)
    assert "image/png" in copy.read_text()
