"""The site in a browser, from the disk: sorting, filtering, dark colours, a narrow screen, reloading, accessibility."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from support.pages import CHROMIUM, opened, shown
from support.requirements import CHROMIUM_PROGRAM
from support.stored_runs import small_results

from longsumbench.runs.results import Results
from longsumbench.site.build import write_site
from longsumbench.site.pages import page_name

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=CHROMIUM_PROGRAM)
DARK = "--blink-settings=preferredColorScheme=0"
NEEDS_AXE = "--axe FILE: axe.min.js of axe-core (npm pack axe-core)"

ASK = """<script>
addEventListener("load", async () => {
  const all = (choice, root = document) => [...root.querySelectorAll(choice)];
  const name = row => row.querySelector("th a").textContent;
  const rows = id => all(`#${id} tbody tr`).filter(row => !row.hidden).map(name);
  const head = (id, name) => all(`#${id} thead th`).find(cell => cell.textContent === name);
  const type = (text, box = document.querySelector(".tools input[type=search]")) => {
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
  };
  document.title = JSON.stringify(await (async () => { %s })());
});
</script></body>"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = small_results(tmp_path_factory.mktemp("browser") / "results")
    return write_site(Results(root), root / "site").parent


def every_page(folder: Path) -> list[Path]:
    """Return a page of each kind."""
    run = next(run for run in Results(folder.parent).records("arxiv") if run.trained)
    return [
        folder / name
        for name in ("index.html", "sweeps.html", "arxiv/index.html", f"arxiv/{page_name(run)}")
    ]


def answer(page: Path, script: str, *flags: str) -> object:
    """Run a script in a copy of a page, which allows it; return its result."""
    text = re.sub(r"<meta http-equiv=[^>]*>", "", page.read_text())
    copy = page.with_name(f"asked-{page.name}")
    copy.write_text(text.replace("</body>", ASK % script))
    found = shown(copy, "--virtual-time-budget=10000", *flags)
    copy.unlink()
    return json.loads(unescape(re.findall(r"<title>(.*?)</title>", found, re.DOTALL)[0]))


def test_a_click_on_a_heading_sorts(folder: Path) -> None:
    """The first click puts the highest number first, the second the lowest; the heading says so to screen readers."""
    script = """
      const button = head("table-1", "R-1").querySelector("button"), found = [];
      for (let click = 0; click < 2; click++) {
        button.click();
        found.push([...rows("table-1"), head("table-1", "R-1").ariaSort]);
      }
      head("table-1", "system").querySelector("button").click();
      return [...found, [...rows("table-1"), head("table-1", "R-1").ariaSort]];
    """
    assert answer(folder / "arxiv" / "index.html", script) == [
        ["oracle", "seal", "lead", "random", "descending"],
        ["random", "lead", "seal", "oracle", "ascending"],
        ["lead", "oracle", "random", "seal", None],
    ]


def test_filter_and_columns(folder: Path) -> None:
    """All typed words must occur in a row; the number of rows is announced; a box shows and hides its columns."""
    script = """
      type("SEA 31.5");
      const found = [rows("table-1"), document.querySelector(".tools [role=status]").textContent];
      const box = document.querySelector("input[value=scores]"), row = document.querySelector("#table-1 tbody tr");
      const hidden = () => [head("table-1", "R-2").hidden, row.querySelectorAll("td[hidden]").length];
      found.push(hidden());
      box.click();
      found.push(hidden());
      type("");
      return [...found, rows("table-1").length];
    """
    page = folder / "arxiv" / "index.html"
    expected = [["seal"], "1 of 4 rows", [False, 4], [True, 7], 4]
    assert answer(page, script, "--window-size=1600,900") == expected


@pytest.mark.parametrize(
    ("flags", "colour"), [((), "rgb(255, 255, 255)"), ((DARK,), "rgb(18, 21, 26)")]
)
def test_dark_colours(folder: Path, flags: tuple[str, ...], colour: str) -> None:
    """The system's preference decides."""
    script = "return getComputedStyle(document.body).backgroundColor;"
    assert answer(folder / "index.html", script, *flags) == colour


def test_a_phone_needs_no_sideways_scrolling(folder: Path) -> None:
    """At 400 pixels no page is wider than the screen: only tables scroll in themselves."""
    script = """
      all("script").forEach(script => script.remove());
      const frame = Object.assign(document.createElement("iframe"), { width: 400, height: 800 });
      frame.style.border = 0;
      frame.srcdoc = document.documentElement.outerHTML;
      await new Promise(done => { frame.onload = done; document.body.append(frame); });
      return [frame.contentWindow.innerWidth, frame.contentDocument.documentElement.scrollWidth];
    """
    for page in every_page(folder):
        assert answer(page, script, "--hide-scrollbars") == [400, 400], page


def test_keyboard_reaches_tables(folder: Path) -> None:
    """Headings are buttons, and wide tables can be scrolled by keys."""
    script = """
      const headings = all(".sorts thead th:not(.plain)").every(cell => cell.querySelector("button"));
      return [headings, all(".scroll").every(box => box.tabIndex === 0)];
    """
    assert answer(folder / "arxiv" / "index.html", script) == [True, True]


def test_no_message_on_the_console(folder: Path) -> None:
    """Pages as they are, with their Content-Security-Policy, cause no error and no refused request."""
    for page in every_page(folder):
        assert "CONSOLE" not in opened(page, "--dump-dom", "--enable-logging=stderr").stderr, page


def test_axe_finds_no_serious_fault(folder: Path, request: pytest.FixtureRequest) -> None:
    """axe-core finds nothing serious or critical on any kind of page, light or dark."""
    axe = request.config.getoption("axe")
    if axe is None:
        pytest.skip(NEEDS_AXE)
    script = f"""
      const script = document.createElement("script");
      script.src = {json.dumps(axe.resolve().as_uri())};
      await new Promise(done => {{ script.onload = done; document.head.append(script); }});
      const found = (await axe.run()).violations;
      return found.filter(fault => ["serious", "critical"].includes(fault.impact)).map(fault => fault.id);
    """
    for page in every_page(folder):
        for flags in ((), (DARK,)):
            assert answer(page, script, *flags) == [], (page, flags)
