"""The browser of examples: what its files have, and what it shows in a browser."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from support.pages import BREAKOUT, CHROMIUM, HOSTILE, Reading, shown
from support.requirements import CHROMIUM_PROGRAM
from support.run_records import record

from longsumbench.core import Document, Example, Section, Summary
from longsumbench.corpora.reading.store import SplitWriter, store_example
from longsumbench.files import digest, write_atomically
from longsumbench.metrics.aggregate import write_scores
from longsumbench.render.html import static_text
from longsumbench.runs.predictions import write_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.site import examples as browser
from longsumbench.site.examples import MOST_EXAMPLES, MOST_RUNS, write_examples

LAYOUT: dict[str, Any] = {"base": "../", "links": {"datasets": ["arxiv"], "papers": 0, "sweeps": 0, "watched": False}}
SOURCE = ("The red fox jumped over the lazy dog near 1,200 houses.", "It rained for three days in Oslo.")
BARKED = "A dog barked."


def example(name: str, *sentences: str, reference: str = "A reference.") -> Example:
    section = Section("Intro", (sentences[:1], sentences[1:]))
    return Example(name, None, None, (Document(None, (section,)),), ((reference,),))


def write_corpus(folder: Path, examples: Sequence[Example]) -> str:
    """Write the texts of a run; return their fingerprint."""
    folder.mkdir(parents=True)
    writer = SplitWriter(folder / "test.arrow")
    for item in examples:
        writer.add(store_example(item, reference_needed=False))
    writer.close()
    write_atomically(folder / "corpus.json", json.dumps({"splits": {"test": writer.fingerprint}}))
    return digest({"test": writer.fingerprint})


def write_run(
    results: Results,
    model: str,
    outputs: Mapping[str, str],
    scores: Mapping[str, float],
    examples: Sequence[Example] = (),
    **changes: Any,
) -> RunRecord:
    """Write a finished run; `scores`: id → ROUGE-Lsum F, 0–1."""
    run = record(model, 30, n=len(scores), **changes)
    folder = results.run_folder(run)
    folder.mkdir(parents=True)
    if examples:
        run = replace(run, fingerprint=write_corpus(folder / "work" / "corpus", examples))
    if outputs:
        write_summaries(folder / "predictions.jsonl", [Summary(name, text) for name, text in outputs.items()])
    table = {f"rouge{kind}_{part}": scores.values() for kind in ("1", "2", "L", "Lsum") for part in "prf"}
    write_scores(folder / "scores.csv", pd.DataFrame(table, pd.Index(list(scores), name="id")))
    run.write(folder)
    return run


def write_page(results: Results, runs: Sequence[RunRecord], site: Path) -> Path:
    """Write the browser of examples as the site does."""
    for name in ("site.css", "site.js"):
        write_atomically(site / "assets" / name, static_text(name))
    assert write_examples(results, "arxiv", runs, site / "arxiv", lambda run: f"{run.run_id}.html", **LAYOUT)
    return site / "arxiv" / "examples.html"


def data_of(page: Path, name: str) -> Any:
    """Return the value of a data file."""
    text = (page.parent / "examples" / f"{name}.js").read_text(encoding="utf-8")
    start = f'receive("{name}", '
    assert text.startswith(start)
    return json.loads(text.removeprefix(start).removesuffix(");\n"))


def index_of(page: Path) -> Any:
    """Return what the page knows before it loads a file."""
    (text,) = re.findall(r'<script type="application/json" id="index">(.*?)</script>', page.read_text(encoding="utf-8"))
    return json.loads(text)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """An empty results folder."""
    return Results(tmp_path / "results")


@pytest.fixture
def page(results: Results, tmp_path: Path) -> Path:
    """Two runs on four examples, whose marks and orders are worked out by hand."""
    names = ["e-1", "e-2", "fox-3", "e-4"]
    texts = [example(name, *SOURCE, reference="The fox jumped.") for name in names]
    first = "The red fox jumped over the fence. It cost 3 coins and 45 crowns in Oslo."
    one = write_run(results, "alpha", {"e-1": first, "e-2": BARKED}, dict(zip(names, (0.5, 0.2, 0.3, 0.4), strict=True)), texts)
    two = write_run(
        results,
        "beta",
        dict.fromkeys(names, "It rained."),
        dict(zip(names[:3], (0.1, 0.4, 0.3), strict=True)),
        fingerprint=one.fingerprint,
    )
    verdicts = {"id": "e-1", "verdicts": [[0.9, 0], [0.25, 1]]}
    write_atomically(results.run_folder(one) / "verdicts-support.jsonl", json.dumps(verdicts) + "\n")
    return write_page(results, [one, two], tmp_path / "site")


def test_files_have_what_the_page_shows(page: Path) -> None:
    """Sources keep sections and paragraphs; scores are 0–100; a missing output or score is null."""
    index = index_of(page)
    assert index["ids"] == ["e-1", "e-2", "fox-3", "e-4"]
    assert [run["label"] for run in index["runs"]] == ["alpha (alpha000)", "beta (beta0000)"]
    assert data_of(page, "texts/0")[0] == {
        "title": None,
        "query": None,
        "references": [["The fox jumped."]],
        "source": [["s", "Intro"], ["p", SOURCE[0]], ["p", SOURCE[1]]],
        "words": 18,
        "all_words": 18,
    }
    run = data_of(page, "runs/1")
    column = [name for name, *_ in run["measures"]].index("rougeLsum_f")
    assert [row[column] for row in run["scores"]] == [10.0, 40.0, 30.0, None]
    outputs = data_of(page, "outputs/0-0")
    assert [output and output[0] for output in outputs[1:]] == [BARKED, None, None]
    (heading, judged), = outputs[0][3]
    assert heading == "support, 1 of 2 sentences below 50%"
    assert judged[1] == ["It cost 3 coins and 45 crowns in Oslo.", "25%", True, 2]


COLLECT = """
window.problems = [];
const note = text => window.problems.push(String(text));
window.addEventListener("error", event => note(event.message ?? event.target.src), true);
window.addEventListener("unhandledrejection", event => note(event.reason));
document.addEventListener("securitypolicyviolation", event => note(event.blockedURI));
for (const name of ["error", "warn"]) console[name] = note;
"""
STEPS = """
{
const get = id => document.getElementById(id);
const until = async condition => { while (!condition()) await new Promise(go => setTimeout(go, 5)); };
const rest = () => new Promise(go => setTimeout(go, 100));
const press = async (key, target = document.body) => {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await rest();
};
const texts = (selector, root = document) => [...root.querySelectorAll(selector)].map(node => node.textContent);
const ids = () => texts("#rows a");
const choose = async (id, value) => { get(id).value = value; get(id).dispatchEvent(new Event("change", { bubbles: true })); await rest(); };
const answers = [];
(async () => {
  await until(() => !document.querySelector(".browser").hidden);
  await rest();
  %s
})().catch(error => answers.push(`failed: ${error}`)).finally(() => {
  const hosts = performance.getEntriesByType("resource").map(entry => entry.name).filter(name => !name.startsWith("file:"));
  document.body.dataset.answers = JSON.stringify({ answers, problems: window.problems, hosts });
});
}
"""


def ask(page: Path, steps: str, fragment: str = "", width: int = 1400) -> list[Any]:
    """Open a page in a browser, and run steps that push answers; nothing else may go wrong."""
    text = page.read_text(encoding="utf-8")
    (page.parent / "collect.js").write_text(COLLECT, encoding="utf-8")
    (page.parent / "steps.js").write_text(STEPS % steps, encoding="utf-8")
    text = text.replace("<title>", '<script src="collect.js"></script><title>', 1)
    asked = page.with_name("asked.html")
    asked.write_text(text.replace("</body>", '<script src="steps.js"></script></body>'), encoding="utf-8")
    done = shown(asked, "--virtual-time-budget=20000", f"--window-size={width},900", fragment=fragment)
    (found,) = re.findall(r'data-answers="(.*?)"', done)
    message = json.loads(unescape(found))
    assert (message["problems"], message["hosts"]) == ([], [])
    answers: list[Any] = message["answers"]
    return answers


in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason=CHROMIUM_PROGRAM)


@in_a_browser
def test_examples_are_chosen_and_sorted(page: Path) -> None:
    """B − A is −40, +20, 0 and unknown: unknown differences come last in both orders, and equal ones keep the data's."""
    answers = ask(
        page,
        """
        answers.push(ids(), get("name").textContent);
        get("sort-difference").click(); await rest();
        answers.push(ids(), texts("#rows td:last-child"));
        get("sort-difference").click(); await rest();
        answers.push(ids());
        get("sort-A").click(); await rest();
        answers.push(ids(), get("heads").querySelector("[aria-sort]").ariaSort);
        await choose("pair", "A-B");
        answers.push(texts("#rows td:last-child"));
        get("filter").value = "FOX"; get("filter").dispatchEvent(new Event("input"));
        answers.push(ids(), get("count").textContent);
        get("rows").querySelector("tr").click(); await rest();
        answers.push(get("name").textContent, texts(".card .text"));
        """,
    )
    assert answers[:2] == [["e-1", "e-2", "fox-3", "e-4"], "e-1"]
    assert answers[2:4] == [["e-2", "fox-3", "e-1", "e-4"], ["+20.0", "0.0", "−40.0", "–"]]
    assert answers[4:7] == [["e-1", "fox-3", "e-2", "e-4"], ["e-1", "e-4", "fox-3", "e-2"], "descending"]
    assert answers[7:10] == [["+40.0", "–", "0.0", "−20.0"], ["fox-3"], "1 of 4 examples"]
    assert answers[10:] == ["fox-3", ["The fox jumped.", "It rained."]]


@in_a_browser
def test_what_is_marked_in_outputs(page: Path) -> None:
    """Five words in the source's order are copied; 3 is its "three"; 45 and new words are marked; so is a bad sentence."""
    answers = ask(
        page,
        """
        const card = document.querySelector(".card.run-0");
        for (const kind of ["copied", "novel", "number"]) answers.push(texts(`mark.${kind}`, card));
        answers.push(texts(".unsupported", card), texts(".facts", card));
        card.querySelector("mark.copied").click();
        const found = () => [...CSS.highlights.get("found")].map(range => range.startContainer.data.slice(range.startOffset, range.endOffset));
        answers.push(found(), get("where").textContent);
        card.querySelector(".nearest").click();
        answers.push(found());
        const looks = () => getComputedStyle(card.querySelector("mark.novel")).textDecorationLine;
        answers.push(looks());
        get("marks").querySelector("[value=novel]").click();
        answers.push(looks());
        """,
    )
    assert answers[:3] == [["The red fox jumped over the"], ["fence", "cost", "coins", "crowns"], ["45"]]
    assert answers[3] == ["It cost 3 coins and 45 crowns in Oslo."]
    assert answers[4] == ["15 words · 40 % copied · 4 words not in the source · 1 number not in the source"]
    assert answers[5:8] == [["The red fox jumped over the"], "6 words of paragraph 1, in Intro", [SOURCE[1]]]
    assert answers[8:] == ["underline", "none"]


@in_a_browser
def test_keys_move_between_examples(page: Path) -> None:
    """J and → go on, k and ← back, not beyond the ends nor while a text is typed; in the list, ↑ and ↓ keep the focus."""
    answers = ask(
        page,
        """
        const name = () => get("name").textContent;
        for (const key of ["k", "j", "ArrowRight", "ArrowLeft"]) { await press(key); answers.push(name()); }
        await press("j", get("filter")); answers.push(name());
        get("example-1").focus();
        await press("ArrowDown", get("example-1"));
        answers.push(name(), document.activeElement.id, document.activeElement.tabIndex);
        get("next").click(); await rest();
        answers.push(name(), get("next").disabled, get("place").textContent, new URLSearchParams(location.hash.slice(1)).get("example"));
        """,
    )
    assert answers[:5] == ["e-1", "e-2", "fox-3", "e-2", "e-2"]
    assert answers[5:] == ["fox-3", "example-2", 0, "e-4", True, "4 of 4", "e-4"]


@in_a_browser
def test_the_address_names_runs_and_example(page: Path) -> None:
    """A link opens the runs in its order; what it names and the page lacks is said; changes are in the address."""
    one, two = (run["id"] for run in index_of(page)["runs"])
    answers = ask(
        page,
        """
        const models = () => texts(".card h3 a");
        answers.push(get("name").textContent, models(), get("notice").textContent);
        location.hash = location.hash.replace("fox-3", "e-4"); await rest();
        answers.push(get("name").textContent, texts(".card.run-1 p.soft"));
        get("chosen").querySelector("button").click(); await rest();
        answers.push(models(), new URLSearchParams(location.hash.slice(1)).getAll("run").length, get("pairs").hidden);
        get("add").click(); await rest();
        answers.push(models());
        """,
        fragment=f"#run={two}&run=gone&run={one}&example=fox-3",
    )
    assert answers[:3] == ["fox-3", ["beta", "alpha"], "Not on this page: run gone."]
    assert answers[3:5] == ["e-4", ["This run did not summarize the example."]]
    assert answers[5:] == [["alpha"], 1, True, ["alpha", "beta"]]


@in_a_browser
def test_a_phone_shows_the_example_first(page: Path) -> None:
    """At 400 pixels nothing is wider than the page, and the list and the source are closed."""
    steps = 'answers.push(document.documentElement.scrollWidth <= innerWidth, get("choices").open, get("source").open);'
    assert ask(page, steps, width=500) == [True, False, False]
