"""The browser of examples: what its files have, and what it shows in a browser."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape, unescape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.pages import BREAKOUT, CHROMIUM, HOSTILE, Reading, shown
from support.requirements import CHROMIUM_PROGRAM
from support.run_records import changed, record

import longsumbench
from longsumbench.core import Document, Example, Section, Summary
from longsumbench.corpora.loading.store import SplitWriter, store_example
from longsumbench.files import digest, write_atomically
from longsumbench.metrics.aggregate import write_scores
from longsumbench.runs.predictions import write_summaries
from longsumbench.runs.record import RunRecord
from longsumbench.runs.results import Results
from longsumbench.site import examples as browser
from longsumbench.site.examples import write_examples
from longsumbench.site.pages import Links
from longsumbench.views.html import static_text

SOURCE = (
    "The red fox jumped over the lazy dog near 1,200 houses.",
    "It rained for three days in Oslo.",
)
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
        run = changed(run, fingerprint=write_corpus(folder / "work" / "corpus", examples))
    if outputs:
        write_summaries(
            folder / "predictions.jsonl", [Summary(name, text) for name, text in outputs.items()]
        )
    table = {
        f"rouge{kind}_{statistic}": scores.values()
        for kind in ("1", "2", "L", "Lsum")
        for statistic in "prf"
    }
    write_scores(folder / "scores.csv", pd.DataFrame(table, pd.Index(list(scores), name="id")))
    run.write(folder)
    return run


def write_page(results: Results, runs: Sequence[RunRecord], site: Path) -> Path:
    """Write the browser of examples as the site does."""
    for name in ("site.css", "site.js"):
        write_atomically(site / "assets" / name, static_text(name))
    assert write_examples(results, "arxiv", runs, site, Links(["arxiv"]))
    return site / "arxiv" / "examples.html"


def data_of(page: Path, name: str) -> Any:
    """Return the values of a data file."""
    text = (page.parent / "examples" / f"{name}.js").read_text()
    start = f'receive("{name}", '
    assert text.startswith(start)
    return json.loads(text.removeprefix(start).removesuffix(");\n"))


def index_file(page: Path) -> Any:
    """Return what the page knows before it loads a file."""
    (text,) = re.findall(
        r'<script type="application/json" id="index">(.*?)</script>',
        page.read_text(),
    )
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
    one = write_run(
        results,
        "alpha",
        {"e-1": first, "e-2": BARKED},
        dict(zip(names, (0.5, 0.2, 0.3, 0.4), strict=True)),
        texts,
    )
    two = write_run(
        results,
        "beta",
        dict.fromkeys(names, "It rained."),
        dict(zip(names[:3], (0.1, 0.4, 0.3), strict=True)),
        fingerprint=one.key.fingerprint,
    )
    verdicts = {"id": "e-1", "verdicts": [[0.9, 0], [0.25, 1]]}
    write_atomically(
        results.run_folder(one) / "verdicts-support.jsonl", json.dumps(verdicts) + "\n"
    )
    return write_page(results, [one, two], tmp_path / "site")


def test_files_have_what_the_page_shows(page: Path) -> None:
    """Sources keep sections and paragraphs; scores are 0–100; a missing output or score is null."""
    index = index_file(page)
    assert index["ids"] == ["e-1", "e-2", "fox-3", "e-4"]
    assert [run["label"] for run in index["runs"]] == ["alpha (alpha000)", "beta (beta0000)"]
    assert data_of(page, "texts/0")[0] == {
        "title": None,
        "query": None,
        "references": [["The fox jumped."]],
        "reference_words": [3],
        "source": [["s", "Intro"], ["p", SOURCE[0]], ["p", SOURCE[1]]],
        "words": 18,
        "all_words": 18,
    }
    run = data_of(page, "runs/1-0")[0]
    column = [name for name, *_ in run["measures"]].index("rougeLsum_f")
    assert [row[column] for row in run["scores"]] == [10.0, 40.0, 30.0, None]
    outputs = data_of(page, "outputs/0-0")
    assert [output and output[0] for output in outputs[1:]] == [BARKED, None, None]
    ((heading, judged),) = outputs[0][3]
    assert heading == "support, 1 of 2 sentences below 50%"
    assert judged[1] == ["It cost 3 coins and 45 crowns in Oslo.", "25%", True, 2]


def test_a_run_has_the_same_numbers_everywhere(results: Results, tmp_path: Path) -> None:
    """Scores that round differently in two steps, and words with signs between them, are the same in every view."""
    scores = {"e-1": 0.443497, "e-2": 0.3125, "e-3": 0.1 + 0.2}
    outputs = dict(
        zip(scores, ("It doesn't - or: does it?", "Sea-side e.g. houses", ""), strict=True)
    )
    texts = [example(name, *SOURCE, reference="No - it isn't.") for name in scores]
    one = write_run(results, "alpha", outputs, scores, texts)
    page = write_page(results, [one], tmp_path / "site")
    content = data_of(page, "runs/0-0")[0]
    column = [name for name, *_ in content["measures"]].index("rougeLsum_f")
    table = longsumbench.load_outputs(one, results.root)
    for place, name in enumerate(scores):
        value = content["scores"][place][column]
        words = data_of(page, "outputs/0-0")[place][4]
        assert value == table["rougeLsum_f"][name] * 100
        assert words == table["words"][name] == len(outputs[name].split())
        screen = longsumbench.inspect(one, name, results.root).render()
        assert f"R-Lsum {value:.1f}" in screen
        assert f"summary, {words} word" in screen
    assert data_of(page, "texts/0")[0]["reference_words"] == [4]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_the_browser_rounds_as_all_other_views() -> None:
    """Ties, values next to them, and any others get the digits that Python gives them."""
    draw = np.random.default_rng(1)
    values = [0.25, 12.25, 31.75, -6.25, 44.35, 44.3497, 0.05, 100.0, *draw.uniform(-99, 99, 500)]
    line = re.search(r"const rounded = .*", static_text("examples.js"))
    assert line
    program = f"{line[0]}; console.log(JSON.stringify({json.dumps(values)}.map(rounded)))"
    texts = subprocess.run(["node", "-e", program], capture_output=True, check=True).stdout
    assert json.loads(texts) == [f"{value:.1f}".replace("-", "−") for value in values]


def test_only_the_first_examples_and_latest_runs_are_shown(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a row with several seeds, the latest run is shown; the page says what it leaves out."""
    monkeypatch.setattr(browser, "SHOWN_EXAMPLES", 2)
    names = ["e-1", "e-2", "e-3"]
    runs = [
        write_run(
            results,
            "alpha",
            dict.fromkeys(names, f"Output of seed {seed}."),
            dict.fromkeys(names, 0.5),
            run_id=f"{seed}" * 12,
            seed=seed,
            config={"train": {"seed": seed}, "decode": {"seed": seed}},
            finished=f"2026-01-0{day}T00:00:00+00:00",
        )
        for seed, day in ((1, 1), (2, 3), (3, 2))
    ]
    page = write_page(results, runs, tmp_path / "site")
    assert (index_file(page)["ids"], [run["id"] for run in index_file(page)["runs"]]) == (
        names[:2],
        ["2" * 12],
    )
    assert data_of(page, "outputs/0-0")[1][0] == "Output of seed 2."
    text = " ".join(Reading(page.read_text()).text.split())
    assert (
        "The first 2 of 3 examples of the test split. 1 of 3 runs: the latest one of each row"
        in text
    )
    assert "the texts are not on the machine that made this page" in text


def test_no_file_is_too_large(results: Results, tmp_path: Path) -> None:
    """Long texts are in several files, each below 500 kB; what is longer still is cut, with its length."""
    sentence = "The <quick> fox ran. " * 2_000
    texts = [example(f"e-{place}", *[sentence] * 4) for place in range(6)] + [
        example("long", *[sentence] * 40)
    ]
    names = [text.id for text in texts]
    outputs = dict.fromkeys(names, sentence) | {"long": sentence * 10}
    page = write_page(
        results,
        [write_run(results, "alpha", outputs, dict.fromkeys(names, 0.5), texts)],
        tmp_path / "site",
    )
    assert max(path.stat().st_size for path in page.parent.rglob("*") if path.is_file()) < 500_000
    starts = index_file(page)["texts"]
    values = [value for place in range(len(starts)) for value in data_of(page, f"texts/{place}")]
    assert [value["all_words"] for value in values] == [32_000] * 6 + [320_000]
    assert values[0]["words"] == 32_000
    assert 32_000 < values[-1]["words"] < 320_000
    parts = data_of(page, "runs/0-0")[0]["parts"]
    cut_output, length, *_ = data_of(page, f"outputs/0-{len(parts) - 1}")[-1]
    assert length == len(outputs["long"]) > len(cut_output)


def test_damaged_files_are_named_once(
    results: Results, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A torn line, a file that is no table, damaged verdicts and texts: one line each, and the rest is shown."""
    names = ["e-1", "e-2"]
    outputs, scores = dict.fromkeys(names, "Out."), dict.fromkeys(names, 0.5)
    torn, clean = (
        write_run(results, name, outputs, scores, fingerprint="f") for name in ("torn", "clean")
    )
    folder = results.run_folder(torn)
    predictions = (folder / "predictions.jsonl").read_text()
    (folder / "predictions.jsonl").write_text(predictions[:-20])
    (folder / "scores.csv").write_bytes(b"id,rougeLsum_f\ne-1,\xff\n")
    (folder / "verdicts-support.jsonl").write_text("{")
    page = write_page(results, [torn, clean], tmp_path / "site")
    reports = [message for message in caplog.messages if message.startswith("left out: ")]
    assert sorted(Path(line.split(": ")[1].rsplit(":", 1)[0]).name for line in reports) == [
        "predictions.jsonl",
        "scores.csv",
        "verdicts-support.jsonl",
    ]
    assert [run["outputs"] for run in index_file(page)["runs"]] == [True, True]
    assert [
        output and output[0] for place in (0, 1) for output in data_of(page, f"outputs/{place}-0")
    ].count("Out.") == 3


def test_a_dataset_without_examples_has_no_page(results: Results, tmp_path: Path) -> None:
    """Of runs with neither outputs nor scores nothing is written, and an older page is removed."""
    run = write_run(results, "alpha", {}, {"e-1": 0.5})
    page = write_page(results, [run], tmp_path / "site")
    assert (index_file(page)["ids"], index_file(page)["runs"][0]["outputs"]) == (["e-1"], False)
    (results.run_folder(run) / "scores.csv").unlink()
    assert not write_examples(results, "arxiv", [run], tmp_path / "site", Links())
    assert not page.exists()


def hostile_page(results: Results, site: Path) -> Path:
    """Return a page on which everything that can be a text tries to leave it."""
    section = Section(BREAKOUT, ((HOSTILE, BREAKOUT),))
    text = Example(
        BREAKOUT, HOSTILE, BREAKOUT, (Document(BREAKOUT, (section,)),), ((HOSTILE, BREAKOUT),)
    )
    run = write_run(
        results,
        "alpha",
        {BREAKOUT: f"{HOSTILE} {BREAKOUT}"},
        {BREAKOUT: 0.5},
        [text],
        variant=f"a={BREAKOUT}",
    )
    return write_page(results, [run], site)


def test_no_text_leaves_the_page_or_its_data(results: Results, tmp_path: Path) -> None:
    """Whatever ids, texts, outputs and names of runs have in them, elements nest, and data files have no element."""
    page = hostile_page(results, tmp_path / "site")
    read = Reading(page.read_text())
    assert (read.open, read.elements.count("script")) == (
        [],
        3,
    )  # of the layout, the index, of the browser
    assert all(not address.startswith(("http", "//")) for address in read.loaded)
    assert all("<" not in path.read_text() for path in (page.parent / "examples").glob("*/*.js"))


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
const rest = async () => {
  await new Promise(go => setTimeout(go, 50));
  await until(() => document.querySelector(".browser").ariaBusy === "false");
};
const press = async (key, target = document.body) => {
  target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  await rest();
};
const texts = (selector, root = document) => [...root.querySelectorAll(selector)].map(node => node.textContent);
const ids = () => texts("#rows a");
const choose = async (id, value) => {
  get(id).value = value;
  get(id).dispatchEvent(new Event("change", { bubbles: true }));
  await rest();
};
const answers = [];
(async () => {
  await rest();
  %s
})().catch(error => answers.push(`failed: ${error}`)).finally(() => {
  const loaded = performance.getEntriesByType("resource").map(entry => entry.name);
  const hosts = loaded.filter(name => !name.startsWith("file:"));
  document.body.dataset.answers = JSON.stringify({ answers, problems: window.problems, hosts });
  parent.postMessage(document.body.dataset.answers, "*");
});
}
"""


FRAME = """<body><iframe src="asked.html%s" width="%d" height="800"></iframe>
<script>onmessage = event => { document.body.dataset.answers = event.data; };</script></body>"""


def ask(page: Path, steps: str, fragment: str = "", width: int = 1400) -> list[Any]:
    """Open a page in a frame of a width, and run steps that push answers; nothing else may go wrong."""
    text = page.read_text()
    (page.parent / "collect.js").write_text(COLLECT)
    (page.parent / "steps.js").write_text(STEPS % steps)
    text = text.replace("<title>", '<script src="collect.js"></script><title>', 1)
    asked = page.with_name("asked.html")
    asked.write_text(text.replace("</body>", '<script src="steps.js"></script></body>'))
    frame = page.with_name("frame.html")
    frame.write_text(FRAME % (escape(fragment), width))
    done = shown(frame, "--virtual-time-budget=20000", "--window-size=1500,900")
    (found,) = re.findall(r'data-answers="(.*?)"', done)
    message = json.loads(unescape(found))
    assert (message["problems"], message["hosts"]) == ([], [])
    answers: list[Any] = message["answers"]
    return answers


in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason=CHROMIUM_PROGRAM)


@in_a_browser
def test_examples_are_chosen_and_sorted(page: Path) -> None:
    """B − A is −40, +20, 0 and unknown: an unknown difference comes last, whether up or down."""
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
        answers.push(get("name").textContent, texts("#summaries .text"));
        """,
    )
    assert answers[:2] == [["e-1", "e-2", "fox-3", "e-4"], "e-1"]
    assert answers[2:4] == [["e-2", "fox-3", "e-1", "e-4"], ["+20.0", "0.0", "−40.0", "–"]]
    assert answers[4:7] == [
        ["e-1", "fox-3", "e-2", "e-4"],
        ["e-1", "e-4", "fox-3", "e-2"],
        "descending",
    ]
    assert answers[7:10] == [["+40.0", "–", "0.0", "−20.0"], ["fox-3"], "1 of 4 examples"]
    assert answers[10:] == ["fox-3", ["It rained.", "The fox jumped."]]


@in_a_browser
def test_what_is_marked_in_outputs(page: Path) -> None:
    """Five words in the source's order are copied, and 3 is its "three"; new words and a new number are marked."""
    answers = ask(
        page,
        """
        const card = document.querySelector("#outputs .run-0");
        for (const kind of ["copied", "novel", "number"]) answers.push(texts(`mark.${kind}`, card));
        answers.push(texts(".unsupported", card), texts(".facts", card));
        card.querySelector("mark.copied").click();
        const textOf = range => range.startContainer.data.slice(range.startOffset, range.endOffset);
        const found = () => [...CSS.highlights.get("found")].map(textOf);
        answers.push(found(), get("where").textContent);
        card.querySelector(".nearest").click();
        answers.push(found());
        const looks = () => getComputedStyle(card.querySelector("mark.novel")).textDecorationLine;
        answers.push(looks());
        get("marks").querySelector("[value=novel]").click();
        answers.push(looks());
        """,
    )
    assert answers[:3] == [
        ["The red fox jumped over the"],
        ["fence", "cost", "coins", "crowns"],
        ["45"],
    ]
    assert answers[3] == ["It cost 3 coins and 45 crowns in Oslo."]
    assert answers[4] == ["16 words"]
    assert answers[5:8] == [
        ["The red fox jumped over the"],
        "6 words of paragraph 1, in Intro",
        [SOURCE[1]],
    ]
    assert answers[8:] == ["underline", "none"]


@in_a_browser
def test_the_address_names_runs_and_example(page: Path) -> None:
    """A link opens the runs in its order; what it names and the page lacks is said; changes are in the address."""
    one, two = (run["id"] for run in index_file(page)["runs"])
    answers = ask(
        page,
        """
        const models = () => texts(".output h3 a");
        answers.push(get("name").textContent, models(), get("notice").textContent);
        location.hash = location.hash.replace("fox-3", "e-4"); await rest();
        answers.push(get("name").textContent, texts("#outputs .run-1 p.soft"));
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
    steps = """answers.push(innerWidth, get("choices").open, get("source").open);
    get("choices").open = get("source").open = true; await rest();
    answers.push(document.documentElement.scrollWidth === document.documentElement.clientWidth);"""
    assert ask(page, steps, width=400) == [400, False, False, True]


@in_a_browser
def test_texts_stay_texts_in_a_browser(results: Results, tmp_path: Path) -> None:
    """Nothing of a hostile text runs; the page shows it letter by letter."""
    page = hostile_page(results, tmp_path / "site")
    steps = """answers.push(get("name").textContent, texts("#summaries .text"), document.title.includes("· Examples"));
    answers.push(texts("#text h3, #text h4, dd"), document.querySelectorAll("#example img, #example script").length);"""
    answers = ask(page, steps)
    assert answers[:3] == [BREAKOUT, [f"{HOSTILE} {BREAKOUT}", f"{HOSTILE}\n{BREAKOUT}"], True]
    assert answers[3:] == [[HOSTILE, BREAKOUT, BREAKOUT], 0]  # the query is the id


@in_a_browser
def test_without_texts_the_outputs_are_shown(results: Results, tmp_path: Path) -> None:
    """Where the texts or the outputs are not here, scores and the other are shown, and no mark is offered."""
    runs = [
        write_run(results, "alpha", {"e-1": BARKED}, {"e-1": 0.5}),
        write_run(results, "beta", {}, {"e-1": 0.25}),
    ]
    page = write_page(results, runs, tmp_path / "site")
    steps = """answers.push(texts("#summaries .text"), texts(".output p.soft"), texts("#rows td"));
    answers.push(get("marks").hidden, get("source").hidden, document.querySelectorAll("mark[role]").length);"""
    assert ask(page, steps) == [
        [BARKED],
        ["The outputs of this run are not here."],
        ["e-1", "50.0", "25.0", "−25.0"],
        *(True, True, 0),
    ]
