{
const SHORTEST = 5;  // words of a copied passage
const MOST_RUNS = 6;
const get = id => document.getElementById(id);
const index = JSON.parse(get("index").textContent);
const heading = document.title;

// Elements and numbers

const make = (tag, values, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(values))
    if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  node.append(...children);
  return node;
};
const letter = run => String.fromCharCode(65 + run);
const tag = run => make("span", { class: `letter run-${run}` }, letter(run));
const count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
// As Python rounds, which all other pages show: of the ties, x.25 and x.75, toFixed rounds x.25 up
const rounded = value => (Math.abs(value % 1) === 0.25 ? Math.trunc(value * 10) / 10 : value).toFixed(1).replace("-", "−");
const digits = value => value === null || value === undefined ? "–" : rounded(value);
const signed = value => value === null ? "–" : (value > 0 ? "+" : "") + digits(value);

// Data files, each loaded once; a file calls `receive`

const requests = new Map();
window.receive = (name, value) => requests.get(name).resolve(value);
const load = name => {
  if (!requests.has(name)) {
    const request = {}, script = make("script", { src: `examples/${name}.js` });
    request.value = new Promise((resolve, reject) => Object.assign(request, { resolve, reject }));
    script.onload = script.onerror = () => {  // after `receive`, this changes nothing
      request.reject(new Error(`The file examples/${name}.js is missing or damaged: write the site again.`));
      script.remove();
    };
    requests.set(name, request);
    document.head.append(script);
  }
  return requests.get(name).value;
};
const loadItem = async (name, starts, place) => {
  const part = starts.findLastIndex(start => start <= place);
  return part < 0 ? undefined : (await load(name + part))[place - starts[part]];
};

// The address has the runs and the example in its hash; the rest is chosen on the page

const state = { measure: index.measure, sort: "data", pair: [1, 0] };
let runs = [];
const readAddress = () => {
  const hash = new URLSearchParams(location.hash.slice(1)), missing = [];
  const find = (ids, id, noun) => {
    const place = ids.indexOf(id);
    if (place < 0) missing.push(`${noun} ${id}`);
    return place;
  };
  const known = index.runs.map(run => run.id);
  const named = hash.getAll("run").map(id => find(known, id, "run")).filter(place => place >= 0);
  const ranked = [...known.keys()].sort((one, other) =>
    index.runs[other].outputs - index.runs[one].outputs || index.runs[one].oracle - index.runs[other].oracle || one - other);
  state.runs = named.length ? [...new Set(named)].slice(0, MOST_RUNS) : ranked.slice(0, 2);
  state.example = Math.max(0, hash.has("example") ? find(index.ids, hash.get("example"), "example") : 0);
  say(missing.length ? `Not on this page: ${missing.join(", ")}.` : "");
};
const address = place => {
  const hash = new URLSearchParams(state.runs.map(run => ["run", index.runs[run].id]));
  return `#${hash}&example=${encodeURIComponent(index.ids[place])}`;
};
const go = changes => {
  Object.assign(state, changes);
  location.replace(address(state.example));
  show();
};
const say = text => { get("notice").textContent = text; get("notice").hidden = !text; };

// The list of examples

let order = [];
const scoreOf = (run, place, column = state.measure) => {
  const { measures, scores } = runs[run], number = measures.findIndex(([name]) => name === column);
  return number < 0 ? null : scores[place][number];
};
const differenceOf = place => {
  const [one, other] = state.pair.map(run => scoreOf(run, place));
  return one === null || other === null ? null : one - other;
};
const columns = () => {
  const scores = runs.map((_, run) => ({ key: letter(run), show: digits, value: place => scoreOf(run, place) }));
  const name = state.pair.map(letter).join("−");
  return runs.length < 2 ? scores : [...scores, { key: "difference", name, show: signed, value: differenceOf }];
};
const sortExamples = shown => {
  const text = get("filter").value.trim().toLowerCase(), falling = state.sort.startsWith("-");
  const places = [...index.ids.keys()].filter(place => index.ids[place].toLowerCase().includes(text));
  const value = shown.find(({ key }) => key === state.sort.replace("-", ""))?.value ?? (place => place);
  const sign = falling ? -1 : 1, last = place => value(place) === null;
  return places.sort((one, other) => last(one) - last(other) || sign * (value(one) - value(other)) || one - other);
};
const showHeads = shown => {
  const head = (key, label, title) => {
    const sorted = state.sort.replace("-", "") === key, falling = state.sort.startsWith("-");
    const next = sorted ? (falling ? key : `-${key}`) : key === "data" ? key : `-${key}`;
    const button = make("button", { type: "button", id: `sort-${key}`, title }, ...label);
    button.onclick = () => go({ sort: next });
    const way = sorted && (falling ? "descending" : "ascending");
    return make("th", { scope: "col", "aria-sort": way, class: key === "data" && "l" }, button);
  };
  get("heads").replaceChildren(make("tr", {}, head("data", ["example"], "Sort in the order of the data"),
    ...shown.map(({ key, name }) => head(key, name ? [name] : [tag(key.charCodeAt(0) - 65)], `Sort by ${name ?? key}`))));
};
const showRows = () => {
  const shown = columns();
  order = sortExamples(shown);
  showHeads(shown);
  get("rows").replaceChildren(...order.map(place => {
    const current = place === state.example, id = index.ids[place];
    const link = make("a", { id: `example-${place}`, href: address(place), title: id,
      tabindex: current ? 0 : -1, "aria-current": current && "true" }, id);
    const cells = shown.map(({ value, show }) => make("td", {}, show(value(place))));
    const row = make("tr", {}, make("td", { class: "l" }, link), ...cells);
    row.onclick = event => { if (event.target !== link) go({ example: place }); };
    return row;
  }));
  const first = get("rows").querySelector("a");
  if (first && !get("rows").querySelector("[aria-current]")) first.tabIndex = 0;
  get("count").textContent = order.length === index.ids.length ? "" : `${order.length} of ${count(index.ids.length, "example")}`;
  const current = order.indexOf(state.example);
  get("place").textContent = current < 0 ? "not in the list" : `${current + 1} of ${order.length}`;
  get("previous").disabled = current <= 0;
  get("next").disabled = current === order.length - 1;
};
const step = by => {
  const place = order.indexOf(state.example), next = order[place < 0 ? 0 : place + by];
  if (next !== undefined) go({ example: next });
};

// Choosing runs and the measure

const option = (value, text, selected) => make("option", { value, selected }, text);
const showRuns = () => {
  get("chosen").replaceChildren(...state.runs.map((place, run) => {
    const select = make("select", { id: `run-${run}`, "aria-label": `Run ${letter(run)}` });
    index.runs.forEach(({ label, oracle, outputs }, other) => {
      const notes = [oracle && "sees the references", !outputs && "outputs are not here"].filter(Boolean);
      const choice = option(other, [label, ...notes].join(" · "), other === place);
      choice.disabled = other !== place && state.runs.includes(other);
      select.append(choice);
    });
    select.onchange = () => go({ runs: state.runs.with(run, +select.value) });
    const remove = make("button", { type: "button", "aria-label": `Remove run ${letter(run)}`, title: "Remove" }, "×");
    remove.disabled = state.runs.length < 2;
    remove.onclick = () => { go({ runs: state.runs.toSpliced(run, 1), pair: [1, 0] }); get("add").focus(); };
    return make("span", { class: "choice" }, tag(run), select, remove);
  }));
  const free = index.runs.findIndex((_, place) => !state.runs.includes(place));
  get("add").disabled = free < 0 || state.runs.length >= MOST_RUNS;
  get("add").onclick = () => go({ runs: [...state.runs, free] });
};
const showMeasures = () => {
  const names = new Map(runs.flatMap(run => run.measures).map(([column, name]) => [column, name]));
  get("measure").replaceChildren(...[...names].map(([column, name]) => option(column, name, column === state.measure)));
  const all = state.runs.flatMap((_, one) => state.runs.map((_, other) => [one, other])).filter(([one, other]) => one !== other);
  get("pair").replaceChildren(...all.map(pair =>
    option(pair.map(letter).join("-"), pair.map(letter).join(" − "), pair.join() === state.pair.join())));
  get("pairs").hidden = state.runs.length < 2;
};

// Words and numbers of texts

const BLANKLESS = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const WORD_OR_SIGN = new RegExp(`${BLANKLESS.source}|(?:(?!${BLANKLESS.source})[\\p{L}\\p{M}\\p{N}])+`, "gu");
const stem = word => word.replace(/(?<=\p{L}{3})(?:ing|ed|es|s|ly|e)$/u, "").replace(/(\p{L})\1$/u, "$1").replace(/y$/, "i");
const wordsIn = text => [...text.matchAll(BLANKLESS.test(text) ? WORD_OR_SIGN : WORD)].map(({ 0: word, index: start }) =>
  ({ word: word.normalize("NFKC").toLowerCase(), start, end: start + word.length }));

const SMALL = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen " +
  "seventeen eighteen nineteen").split(" ");
const TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split(" ");
const ORDINALS = { first: 1, second: 2, third: 3, fifth: 5, eighth: 8, ninth: 9, twelfth: 12 };
const SCALES = { hundred: 100, thousand: 1e3, million: 1e6, billion: 1e9, trillion: 1e12, k: 1e3, bn: 1e9 };
const VALUES = { ...Object.fromEntries(SMALL.flatMap((word, value) => [[`${word}th`, value], [word, value]])),
  ...Object.fromEntries(TENS.flatMap((word, tens) => [[`${word.slice(0, -1)}ieth`, 10 * tens + 20], [word, 10 * tens + 20]])),
  ...ORDINALS };
const SCALE = "hundred|thousand|million|billion|trillion";
const ANY = [...Object.keys(VALUES).sort((one, other) => other.length - one.length), SCALE].join("|");
const SPELLED = new RegExp(`\\b(?=[befhmnostz])(?:${ANY})\\b(?:(?:\\s+and\\s+|[\\s-]+)(?:${ANY})\\b)*`, "giu");
const DIGITS = new RegExp("(?<![\\p{L}\\d.])(\\d{1,3}(?:[,\\u00a0\\u202f]\\d{3})+(?!\\d)|\\d+)(\\.\\d+(?!\\.?\\d))?" +
  `(?:[\\s-]?(${SCALE}|k|bn)\\b)?`, "giu");
const IDIOMS = ["one", "first", "second", "zeroth", ...SCALE.split("|")];  // alone, mostly no numbers
const spelledValue = words => {
  let total = 0, part = 0;
  for (const word of words) {
    const scale = SCALES[word];
    if (scale > 100) [total, part] = [total + Math.max(part, 1) * scale, 0];
    else part = scale ? Math.max(part, 1) * scale : part + VALUES[word];
  }
  return total + part;
};
const numbersIn = text => {
  const digits = [...text.matchAll(DIGITS)].map(found => ({ start: found.index, end: found.index + found[0].length,
    value: +(found[1].replace(/\D/g, "") + (found[2] ?? "")) * (SCALES[found[3]?.toLowerCase()] ?? 1) }));
  const spelled = [...text.matchAll(SPELLED)].map(found => ({ start: found.index, end: found.index + found[0].length,
    words: found[0].toLowerCase().split(/[\s-]+/).filter(word => word !== "and") }));
  const inDigits = place => digits.some(({ start, end }) => start <= place && place < end);
  return [...digits, ...spelled.filter(({ start, words }) => !inDigits(start) && (words.length > 1 || !IDIOMS.includes(words[0])))
    .map(({ start, end, words }) => ({ start, end, value: spelledValue(words) }))];
};

// The source: its paragraphs as elements, and where its words, sentences and numbers are

const readSource = texts => {
  const nodes = [], paragraphs = [], sentences = [];
  let section;
  for (const [kind, text] of texts.source) {
    if (kind === "d" || kind === "s") {
      nodes.push(make(kind === "d" ? "h3" : "h4", {}, text));
      section = text;
      continue;
    }
    if (kind === "p") paragraphs.push({ text, section });
    else paragraphs.at(-1).text += ` ${text}`;
    const end = paragraphs.at(-1).text.length;
    sentences.push({ paragraph: paragraphs.length - 1, start: end - text.length, end });
    if (kind === "p") nodes.push(paragraphs.at(-1).node = make("p", {}));
  }
  paragraphs.forEach(({ node, text }) => node.append(text));
  const words = paragraphs.flatMap(({ text }, paragraph) => wordsIn(text).map(word => ({ ...word, paragraph })));
  const topic = [texts.title, texts.query].filter(Boolean).join(" ");
  const stems = new Set([...new Set([...words, ...wordsIn(topic)].map(({ word }) => word))].map(stem));
  const whole = [...paragraphs.map(({ text }) => text), topic].join("\n");
  const plain = whole.replace(/(?<=\d),(?=\d{3})/g, "").match(/\d+(?:\.\d+)?/g) ?? [];
  const numbers = new Set([...numbersIn(whole).map(({ value }) => value), ...plain.flatMap(text => [+text, ...text.split(".").map(Number)])]);
  const places = new Map();  // of each word
  words.forEach(({ word }, place) => places.get(word)?.push(place) ?? places.set(word, [place]));
  return { nodes, paragraphs, sentences, words, stems, numbers, places };
};

// What is marked in a text: passages that are copied, novel words, numbers that the source lacks

const marksOf = (text, source) => {
  const words = wordsIn(text), marks = [];
  for (let place = 0; place + SHORTEST <= words.length;) {
    const first = words.slice(place, place + SHORTEST).map(({ word }, by) => [source.places.get(word) ?? [], by]);
    const [rare, offset] = first.reduce((one, other) => other[0].length < one[0].length ? other : one);
    let from = -1, length = SHORTEST - 1;
    for (const start of rare) {
      let same = 0;
      while (words[place + same] && words[place + same].word === source.words[start - offset + same]?.word) same++;
      if (same > length) [from, length] = [start - offset, same];
    }
    if (from >= 0) {
      marks.push({ kind: "copied", start: words[place].start, end: words[place + length - 1].end, from, to: from + length - 1 });
    }
    place += from >= 0 ? length : 1;
  }
  const free = ({ start, end }) => marks.every(mark => mark.end <= start || end <= mark.start);
  const [known, wrong] = [true, false].map(is => numbersIn(text).filter(({ value }) => source.numbers.has(value) === is));
  marks.push(...wrong.filter(free).map(mark => ({ ...mark, kind: "number" })));
  const inNumber = word => known.some(({ start, end }) => start <= word.start && word.end <= end);
  const novel = words.filter(({ word }) => (word.length > 3 && !/\p{N}/u.test(word) || BLANKLESS.test(word))
    && !source.stems.has(stem(word)));
  marks.push(...novel.filter(word => free(word) && !inNumber(word)).map(mark => ({ ...mark, kind: "novel" })));
  return marks.sort((one, other) => one.start - other.start);
};
const TITLES = { copied: "Copied: show it in the source", novel: "No form of this word is in the source",
  number: "The source does not have this number" };
const markedText = (text, marks, sentences) => {
  const pieces = (from, to) => {
    const nodes = [];
    let at = from;
    for (const mark of marks) {
      const start = Math.max(from, mark.start), end = Math.min(to, mark.end);
      if (start >= end) continue;
      const values = { class: mark.kind, title: TITLES[mark.kind] };
      if (mark.kind === "copied") Object.assign(values, { role: "button", tabindex: 0, "data-from": mark.from, "data-to": mark.to });
      nodes.push(text.slice(at, start), make("mark", values, text.slice(start, end)));
      at = end;
    }
    return [...nodes, text.slice(at, to)];
  };
  const nodes = [];
  let at = 0;
  for (const { start, end, share, place } of sentences) {
    nodes.push(...pieces(at, start), make("span", { class: "unsupported", title: `Supported by ${share}` }, ...pieces(start, end)));
    if (place) nodes.push(make("button", { type: "button", class: "nearest", "data-sentence": place - 1,
      title: "Show the source sentence that is nearest to it" }, share));
    at = end;
  }
  return [...nodes, ...pieces(at, text.length)];
};
const lowSentences = (text, lists) => {
  const found = lists.flatMap(([, rows]) => rows.filter(([, , low]) => low)).map(([sentence, share, , place]) => {
    const words = sentence.trim().split(/\s+/).map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const match = text.match(new RegExp(words.join("\\s+"), "u"));
    return match && { start: match.index, end: match.index + match[0].length, share, place };
  }).filter(Boolean).sort((one, other) => one.start - other.start);
  return found.filter(({ start }, place) => !place || start >= found[place - 1].end);
};

// One example: source, references, outputs

let source;
const paint = (name, places) => {
  if (!globalThis.Highlight) return;
  const ranges = places.map(({ paragraph, start, end }) => {
    const range = new StaticRange({ startContainer: source.paragraphs[paragraph].node.firstChild, startOffset: start,
      endContainer: source.paragraphs[paragraph].node.firstChild, endOffset: end });
    return range;
  });
  CSS.highlights.set(name, new Highlight(...ranges));
};
const stretches = (from, to) => {  // of words, one for each paragraph
  const parts = new Map();
  for (const { paragraph, start, end } of source.words.slice(from, to + 1))
    parts.set(paragraph, { paragraph, start: parts.get(paragraph)?.start ?? start, end });
  return [...parts.values()];
};
const showPlaces = (places, words) => {
  if (!places.length) return;
  const { node, section } = source.paragraphs[places[0].paragraph], pane = get("text"), range = document.createRange();
  get("source").open = true;
  paint("found", places);
  range.setStart(node.firstChild, places[0].start);
  range.setEnd(node.firstChild, places[0].end);
  pane.scrollTop += range.getBoundingClientRect().top - pane.getBoundingClientRect().top - pane.clientHeight / 3;
  const box = range.getBoundingClientRect();
  if (box.top < 60 || box.bottom > innerHeight) get("source").scrollIntoView();
  get("where").textContent = `${words} of paragraph ${places[0].paragraph + 1}${section ? `, in ${section}` : ""}`;
};
const showPassage = ({ dataset: { from, to, sentence } }) => {
  if (!source) return;
  if (sentence === undefined) showPlaces(stretches(+from, +to), count(to - from + 1, "word"));
  else showPlaces(source.sentences.slice(+sentence, +sentence + 1), "a sentence");
};
const card = (values, title, text, words, after, sentences = []) => {
  const marks = source ? marksOf(text, source) : [];
  const body = text.trim() ? markedText(text, marks, sentences) : [make("em", { class: "soft" }, "nothing")];
  const part = make("section", values, make("h3", {}, ...title), make("p", { class: "facts" }, count(words, "word")),
    make("p", { class: "text" }, ...body), ...after);
  return { part, copied: marks.filter(({ kind }) => kind === "copied") };
};
const outputCard = (run, output) => {
  const { label, outputs, page } = index.runs[state.runs[run]], after = [];
  const [model, ...rest] = label.split(" ");
  const title = [tag(run), " ", make("a", { href: page }, model), " ", make("small", {}, rest.join(" "))];
  if (!output) {
    const reason = outputs ? "This run did not summarize the example." : "The outputs of this run are not here.";
    return { part: make("section", { class: `output run-${run}` }, make("h3", {}, ...title), scoreLine(run),
      make("p", { class: "soft" }, reason)), copied: [] };
  }
  const [text, length, complete, lists, words] = output;
  if (!complete) after.push(make("p", { class: "warning" }, "It stops at its length limit."));
  if (length > text.length) after.push(make("p", { class: "warning" }, `Shown are the first ${text.length.toLocaleString("en")} of ${count(length, "character")}.`));
  for (const [name, rows] of lists) after.push(make("details", {}, make("summary", {}, name), make("ol", {}, ...rows.map(
    ([sentence, share, low, place]) => make("li", {}, make(low ? "b" : "span", {}, share), ` ${sentence} `,
      ...(place && source ? [make("button", { type: "button", class: "nearest", "data-sentence": place - 1 }, `source sentence ${place}`)] : []))))));
  if (runs[run].pages.includes(state.example))
    after.push(make("p", {}, make("a", { href: `${page.replace(/\.html$/, "")}-evidence/${state.example}.html` }, "What the system looked at")));
  const shown = card({ class: `output run-${run}` }, title, text, words, after, lowSentences(text, lists));
  shown.part.querySelector("h3").after(scoreLine(run));
  return shown;
};
const scoreLine = run => {
  const names = runs[run].measures.filter(([column]) => column === state.measure || /^rouge[12]_f$|^rougeLsum_f$/.test(column));
  names.sort(([one], [other]) => (other === state.measure) - (one === state.measure));
  return make("p", { class: "numbers" }, ...names.map(([column, name]) => make("span", { class: column === state.measure && "main" },
    `${name} `, make("b", {}, digits(scoreOf(run, state.example, column))))));
};
const showExample = (texts, outputs) => {
  source = texts && readSource(texts);
  const id = index.ids[state.example], references = [];
  document.title = `${id} · ${heading}`;
  get("name").textContent = id;
  const topic = Object.entries({ title: texts?.title, query: texts?.query }).filter(([, text]) => text && text !== id);
  get("topic").replaceChildren(...topic.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))));
  get("source").hidden = !texts;
  if (texts) {
    const { words, all_words: all } = texts;
    get("source").querySelector("summary").textContent = `Source, ${count(all, "word")}`;
    get("text").replaceChildren(...source.nodes);
    if (words < all) get("text").append(make("p", { class: "warning" }, `Shown are the first ${count(words, "word")} of ${all.toLocaleString("en")}.`));
    texts.references.forEach((sentences, place) => references.push(card({ class: "output reference" },
      [texts.references.length > 1 ? `Reference ${place + 1}` : "Reference"], sentences.join("\n"), texts.reference_words[place], [])));
  }
  const ofRuns = outputs.map((output, run) => outputCard(run, output));
  get("references").replaceChildren(...references.map(({ part }) => part));
  get("outputs").replaceChildren(...ofRuns.map(({ part }) => part));
  get("unsupported").hidden = !get("outputs").querySelector(".unsupported");
  get("marks").hidden = !texts;
  get("where").textContent = texts ? "Shaded: what the outputs copy. Choose a copied passage to see where it is from." : "";
  if (texts && globalThis.Highlight) {
    CSS.highlights.delete("found");
    paint("used", ofRuns.flatMap(({ copied }) => copied).flatMap(({ from, to }) => stretches(from, to)));
  }
  get("text").scrollTop = 0;  // last: this computes the layout
};

// Everything follows the address

const browser = document.querySelector(".browser");
let turn = 0;
const show = async () => {
  const now = ++turn, focused = document.activeElement, inList = get("rows").contains(focused);
  showRuns();
  browser.hidden = false;
  browser.ariaBusy = "true";
  try {
    const { runs: chosen, example } = state;
    const loaded = await Promise.all(chosen.map(place => loadItem(`runs/${place}-`, [0], 0)));
    const parts = loaded.map(({ parts }, run) => loadItem(`outputs/${chosen[run]}-`, parts, example));
    const [texts, ...outputs] = await Promise.all([loadItem("texts/", index.texts, example), ...parts]);
    if (now !== turn) return;
    runs = loaded;
    showMeasures();
    showRows();
    showExample(texts, outputs);
    const link = get(`example-${example}`);
    if (inList) link?.focus();
    else if (!focused.isConnected && focused.id) get(focused.id)?.focus({ preventScroll: true });
  } catch (error) {
    if (now === turn) say(error.message);
  }
  if (now === turn) browser.ariaBusy = "false";
};
const follow = () => { readAddress(); show(); };
get("measure").onchange = event => go({ measure: event.target.value });
get("pair").onchange = event => go({ pair: event.target.value.split("-").map(name => name.charCodeAt(0) - 65) });
get("filter").oninput = () => { if (browser.ariaBusy === "false") showRows(); };  // else it is shown soon
get("previous").onclick = () => step(-1);
get("next").onclick = () => step(1);
get("marks").onchange = event => get("summaries").classList.toggle(`no-${event.target.value}`, !event.target.checked);
get("summaries").onclick = event => { const mark = event.target.closest("[data-from], [data-sentence]"); if (mark) showPassage(mark); };
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches?.("input:not([type=checkbox]), select")) return;
  if (event.target.matches?.("[data-from]") && ["Enter", " "].includes(event.key)) {
    event.preventDefault();
    showPassage(event.target);
    return;
  }
  const inList = get("rows").contains(event.target);
  const by = { j: 1, k: -1, ArrowRight: 1, ArrowLeft: -1, ...(inList ? { ArrowDown: 1, ArrowUp: -1 } : {}) }[event.key];
  if (!by) return;
  event.preventDefault();
  step(by);
});
if (matchMedia("(max-width: 60rem)").matches) get("choices").open = get("source").open = false;
window.addEventListener("hashchange", follow);
follow();
}
