"""Draws the pictures of the site for the documentation, docs/pictures/site-*.png; needs Chromium and takes a minute.

python benchmarks/site_pictures.py
"""

import io
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

import longsumbench
from longsumbench.runs.results import Results
from longsumbench.site.build import write_site
from longsumbench.site.pages import page_name

ROOT = Path(__file__).parents[1]
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "chromium"
)
SIZE = (1280, 860)
COLOURS = 128


def main() -> None:
    """Write the site of the published results into a temporary folder, and draw a page of each kind.

    The published runs have no texts of others; the examples are those of two baselines on `probe`.
    """
    results = Results(ROOT / "results" / "reference")
    trained = next(
        run for run in results.records("peer_reviews") if run.key.model == "seal" and run.trained
    )
    with tempfile.TemporaryDirectory() as folder:
        index = write_site(results, Path(folder) / "site")
        for model in ("lead", "lexrank"):
            longsumbench.run(
                model=model, dataset="probe", baselines=False, results_dir=f"{folder}/results"
            )
        examples = (
            write_site(Results(Path(folder) / "results"), Path(folder) / "examples").parent
            / "probe"
        )
        pages = {
            "overview": index,
            "examples": examples / "examples.html",
            "dataset": index.parent / "qmsum" / "index.html",
            "run": index.parent / "peer_reviews" / page_name(trained),
            "papers": index.parent / "papers.html",
        }
        for name, page in pages.items():
            shot = Path(folder) / "shot.png"
            flags = (
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--hide-scrollbars",
                "--virtual-time-budget=3000",
            )
            window = (f"--window-size={SIZE[0]},{SIZE[1]}", f"--user-data-dir={folder}/profile")
            subprocess.run(
                [CHROMIUM, *flags, *window, f"--screenshot={shot}", page.as_uri()],
                check=True,
                capture_output=True,
            )
            picture = Image.open(io.BytesIO(shot.read_bytes())).convert("RGB").quantize(COLOURS)
            path = ROOT / "docs" / "pictures" / f"site-{name}.png"
            picture.save(path, optimize=True)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
