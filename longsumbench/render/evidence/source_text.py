"""The source text in HTML: how much each of its tokens weighed, and which window of the text each one looks at.

    SourceText --source_text--> the tokens of the steps, which can be selected; the source, shaded by its mean marks;
                                the windows of a selected token, a lane per head; mean widths, a cell per head

Without the script the page shows means only. The script shows single steps and tokens. Its data are attributes of the
text: 32-bit floats in base 64.
"""

import base64
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from longsumbench.render.evidence.heat_map import format_weight, legend, section
from longsumbench.render.evidence.views import SourceText, TokenMarks, TokenWindows, scale_of_weights

_MOST_VALUES = 1_000_000  # of an array on a page
_SIDE = 48  # pixels of a cell's picture, and its rows
SOURCE_TEXT_STYLE = """
:root { --on: #000; --deep: #fff; --turn: .75; --look: #009e73; }
@media (prefers-color-scheme: dark) { :root { --on: #fff; --deep: #000; --turn: .55; --look: #2fc79a; } }
.shaded { background: color-mix(in srgb, var(--shade) calc(var(--v, 0) * 100%), var(--card));
  color: color-mix(in srgb, var(--deep) calc(clamp(0, (var(--v, 0) - var(--turn)) * 9999, 1) * 100%), var(--on)); }
.steps, .source { white-space: pre-wrap; overflow-wrap: anywhere; max-width: none; margin: .4rem 0 1rem;
  padding: .9rem 1rem; border: 1px solid var(--line); border-radius: .5rem; line-height: 1.9; }
.source { max-height: 56rem; overflow-y: auto; position: relative; }
:is(.s, .o) { border-radius: .2em; padding: .12em .14em; }
.steps:not(.weighed) .o { background: none; color: inherit; }
.s { border-bottom: .2em solid transparent; background-clip: padding-box; }
.s.seen { border-bottom-color: var(--look); border-radius: .2em .2em 0 0; }
.s.middle { border-bottom-width: .38em; }
.live :is(.s, .o, .lane, .wide) { cursor: pointer; }
.live :is(.s, .o):hover { box-shadow: 0 0 0 1px var(--soft); }
.live :is(.s, .o)[aria-selected=true], .live :is(.s, .o):focus-visible { outline: 2px solid var(--cursor);
  outline-offset: 1px; }
.bar { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; margin: 1rem 0 0; }
.bar h3 { margin: 0; } .bar .soft { margin: 0; }
.whole { font: inherit; font-size: .85rem; padding: .1rem .6rem; border: 1px solid var(--soft); border-radius: .4rem;
  background: var(--card); color: inherit; cursor: pointer; } .whole:disabled { opacity: .45; cursor: default; }
.status { min-height: 1.6em; font-variant-numeric: tabular-nums; margin: 0; max-width: none; }
.lanes { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: .4rem 2rem; }
.lanes h4, .lanes ul { margin: .5rem 0 .1rem; padding: 0; font-size: .9rem; } .lanes ul { list-style: none; }
:is(.lane, .under) { display: grid; grid-template-columns: 4.6rem 1fr 7.2rem; gap: .6rem; align-items: center;
  font-size: .8rem; line-height: 1.3; padding: .06rem .3rem; border-radius: .3rem; font-variant-numeric: tabular-nums; }
.lane .name { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.lane .span { text-align: right; white-space: nowrap; }
.lane[aria-selected=true] { background: var(--card); box-shadow: inset 0 0 0 1px var(--look); font-weight: 600; }
.track { position: relative; height: 1rem; background: var(--card); border-radius: .15rem; overflow: hidden; }
.track i { position: absolute; top: 0; bottom: 0; }
.track .from-to { left: calc(var(--from) * 100%); width: calc((var(--to) - var(--from)) * 100%); min-width: 1px;
  top: .15rem; bottom: .15rem; background: color-mix(in srgb, var(--look) 45%, transparent); }
.track .center { left: calc(var(--center) * 100% - 1px); width: 3px; background: var(--look); }
.track .self { left: calc(var(--self) * 100% - 1px); width: 2px; background: var(--cursor); }
.nowhere .track :is(.from-to, .center) { display: none; }
.ends { grid-column: 2; display: flex; justify-content: space-between; }
.wides { border-collapse: separate; border-spacing: .3rem; } .wides :is(th, td) { border: 0; padding: 0; }
.wides th { padding: 0 .3rem; text-align: center; font-weight: 400; } .wides tbody th { text-align: left; }
.wide { width: 4.6rem; } .wide b { display: block; text-align: center; font-weight: 400; padding: .1rem .3rem; }
.wide svg { display: block; width: 100%; height: 3.6rem; background: var(--card); }
.wide path { fill: none; stroke: var(--look); } .wide .far { opacity: .45; }
.wide.chosen { outline: 2px solid var(--look); }
@media print { .source { max-height: none; } }
"""
SOURCE_TEXT_SCRIPT = """
{
const floats = codes => codes && new Float32Array(Uint8Array.from(atob(codes), one => one.charCodeAt(0)).buffer);
const text = number => !isFinite(number) ? "no number" : `${+number.toPrecision(3)}`.replace("-", "−");
const clip = number => Math.min(1, Math.max(0, number));
const explore = source => {
  const view = source.closest(".view"), one = name => view.querySelector(name);
  const [rows, middles, widths] = ["rows", "middles", "widths"].map(name => floats(source.dataset[name]));
  const scale = source.dataset.scale?.split(" ").map(Number);
  const share = place => clip((rows[place] - scale[0]) / (scale[1] - scale[0]) || 0).toFixed(3);
  const all = { s: true, o: rows, lane: middles, wide: middles };
  for (const kind in all) all[kind] = all[kind] ? [...view.querySelectorAll(`.${kind}`)] : [];
  const chosen = { s: -1, o: -1, lane: middles ? 0 : -1 }, count = all.s.length;
  const means = all.s.map(token => token.style.getPropertyValue("--v"));
  const named = (kind, place) => `${kind === "s" ? "source token" : "step"} ${place + 1}` +
    (all[kind][place].closest(".numbers") ? "" : `, “${all[kind][place].textContent}”`);
  const steps = one(".steps"), column = one(".column"), what = one(".what"), legend = one(".means .scale");
  const mean = what && [what, legend.firstChild, legend.lastChild].map(node => node.textContent);
  const whole = one(".whole"), hint = one(".status").textContent = one(".status").dataset.hint;
  const shade = () => {
    const [step, token] = [chosen.o, chosen.s];
    all.s.forEach((other, place) => other.style.setProperty(
      "--v", step < 0 ? means[place] : share(step * count + place)));
    all.o.forEach((other, place) => other.style.setProperty(
      "--v", token < 0 ? "0" : share(place * count + token)));
    steps?.classList.toggle("weighed", token >= 0 && all.o.length > 0);
    if (column) column.hidden = token < 0 || !all.o.length;
    if (column && token >= 0) column.querySelector(".whom").textContent = named("s", token);
    if (!what) return;
    const shown = step < 0 ? mean : [named("o", step), ...scale.map(text)];
    [what, legend.firstChild, legend.lastChild].forEach((node, place) => node.textContent = shown[place]);
    whole.disabled = step < 0;
  };
  const windowOf = (lane, token) => {
    const place = lane * count + token;
    return token < 0 ? [NaN, NaN] : [middles[place], widths[place]];
  };
  const look = () => {
    const token = chosen.s;
    if (!middles) return;
    one(".of-token").hidden = token < 0;
    one(".whose").textContent = token < 0 ? "" : `Windows of ${named("s", token)}`;
    all.lane.forEach((lane, place) => {
      const [middle, width] = windowOf(place, token), digits = count > 999 ? 0 : 1;
      lane.classList.toggle("nowhere", isNaN(middle));
      lane.querySelector(".span").textContent =
        isNaN(middle) ? "no number" : `${(middle + 1).toFixed(digits)} ± ${width.toFixed(digits)}`;
      const places = { from: middle - width, to: middle + width, center: middle, self: token };
      for (const name in places) lane.style.setProperty(`--${name}`, clip((places[name] + .5) / count));
    });
    const [middle, width] = windowOf(chosen.lane, token);
    all.s.forEach((other, place) => {
      other.classList.toggle("seen", Math.abs(place - middle) <= width || place === Math.round(middle));
      other.classList.toggle("middle", place === Math.round(middle));
    });
  };
  const describe = token => {
    const at = chosen.o < 0 ? "" : `; ${text(rows[chosen.o * count + token])} at ${named("o", chosen.o)}`;
    one(".status").textContent = token < 0 ? hint : all.s[token].title + at;
  };
  const choose = (kind, place) => {
    chosen[kind] = place;
    all[kind].forEach((other, number) => {
      other.setAttribute("aria-selected", number === place);
      other.tabIndex = number === Math.max(place, 0) ? 0 : -1;
    });
    if (kind === "lane") all.wide.forEach((cell, number) => cell.classList.toggle("chosen", number === place));
    shade(); look(); describe(chosen.s);
  };
  const locate = target => {
    const found = target.closest?.(".s, .o, .lane, .wide");
    const kind = Object.keys(all).find(name => all[name].includes(found));
    return kind ? [kind === "wide" ? "lane" : kind, all[kind].indexOf(found)] : [];
  };
  view.addEventListener("click", event => {
    const [kind, place] = locate(event.target);
    if (event.target === whole) choose("o", -1);
    else if (kind) choose(kind, kind !== "lane" && chosen[kind] === place ? -1 : place);
  });
  view.addEventListener("keydown", event => {
    const [kind, place] = locate(event.target), { key } = event, list = all[kind];
    if (!kind || event.ctrlKey || event.altKey || event.metaKey) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[key];
    const ends = { Home: 0, End: list.length - 1, Escape: kind === "lane" ? place : -1, Enter: place, " ": place }[key];
    if ((step ?? ends) === undefined) return;
    event.preventDefault();
    const next = ends ?? (chosen[kind] < 0 ? place : place + step);
    if (next >= list.length || next < -1 || (next < 0 && key !== "Escape")) return;
    choose(kind, next);
    list[Math.max(next, 0)].focus();
  });
  source.addEventListener("pointerover", event => describe(locate(event.target)[1] ?? chosen.s));
  source.addEventListener("pointerleave", () => describe(chosen.s));
  view.classList.add("live");
  for (const list of [all.s, all.o, all.lane]) list.forEach(other => {
    other.setAttribute("role", "option");
    other.parentElement.setAttribute("role", "listbox");
  });
  if (whole) whole.hidden = !all.o.length;
  for (const kind in chosen) choose(kind, chosen[kind]);
};
document.querySelectorAll(".source").forEach(explore);
}
"""


def source_text(view: SourceText) -> str:
    """Return the source text, the steps and windows that can be selected, and the mean widths of the windows."""
    marks, windows = view.marks, view.windows
    heading = f"{' and '.join(view.names)}: the source text"
    parts = [_steps(marks) if marks and marks.text else "", _heading_bar(marks), _source_tokens(view)]
    if windows:
        parts += [_lanes(windows) if _can_choose_windows(windows) else "", _widths(windows)]
    return section(heading, f"<p>{_describe_source(view)}</p>", *parts)


def _describe_source(view: SourceText) -> str:
    marks, windows = view.marks, view.windows
    text = []
    if marks:
        step = f" at a step of the {marks.text}" if marks.text else ""
        text.append(f"The stronger the background of a source token, the greater its {escape(marks.name)}{step}.")
        if marks.text and not _can_choose_steps(marks):
            text.append(f"There are too many values ({marks.values.size:,}) to show single steps on a page.")
    if windows:
        text.append(
            f"In {escape(windows.name)}, every head looks from every source token at a window of the text: a middle "
            "± a width."
        )
        if not _can_choose_windows(windows):
            text.append(f"There are too many windows ({windows.middles.size:,}) to show single ones on a page.")
    return " ".join(text)


def _hint(view: SourceText) -> str:
    of_steps, of_windows = _can_choose_steps(view.marks), _can_choose_windows(view.windows)
    hints = []
    if of_steps and view.marks:
        hints.append(f"a token of the {view.marks.text} to see that step alone")
    if of_steps or of_windows:
        seen = " and ".join(["at which steps it weighed"] * of_steps + ["its windows"] * of_windows)
        hints.append(f"a source token to see {seen}")
    return f"Choose {', or '.join(hints)}: with the pointer, or with Tab and the arrow keys." if hints else ""


def _steps(marks: TokenMarks) -> str:
    texts = _written(marks.tokens, len(marks.values))
    tokens = "".join(_token("o", text, f"step {place}") for place, text in enumerate(texts, 1))
    button = '<button class="whole" type="button" hidden>all steps</button>'
    column = f'{escape(marks.name)} of <span class="whom"></span> {legend(scale_of_weights(marks.values))}'
    heading = f'<div class="bar"><h3>The {marks.text}</h3>{button}<p class="soft column" hidden>{column}</p></div>'
    return f'{heading}\n<p class="steps{"" if marks.tokens else " numbers"}">{tokens}</p>'


def _written(tokens: Sequence[str] | None, count: int) -> list[str]:
    """Return the texts of tokens, or their numbers if the texts are unknown."""
    return list(tokens) if tokens else [f" {place}" for place in range(1, count + 1)]


def _token(kind: str, text: str, title: str, shade: float = 0.0) -> str:
    """Return a token without the blanks around it; a token of blanks is shown as a sign."""
    style = f' style="--v:{shade:.3f}"' if shade >= 0.0005 else ""
    body = text.strip()
    indent, trailing = text[: len(text) - len(text.lstrip())] if body else "", text[len(text.rstrip()) :]
    content = escape(body) or ("↵" if "\n" in text else "·")
    return f'{indent}<span class="{kind} shaded"{style} title="{escape(title)}">{content}</span>{trailing}'


def _heading_bar(marks: TokenMarks | None) -> str:
    if marks is None:
        return '<div class="bar"><h3>The source</h3></div>'
    steps = "the only step" if len(marks.values) == 1 else f"the mean over the {len(marks.values)} steps"
    note = f': <span class="what">{steps} of the {marks.text}</span>' if marks.text else ""
    scale = f"{escape(marks.name)}{note} {legend(scale_of_weights(marks.mean))}"
    return f'<div class="bar"><h3>The source</h3><p class="soft means">{scale}</p></div>'


def _source_tokens(view: SourceText) -> str:
    """Return the source, shaded by the mean of its marks, with the data of the script."""
    texts = _written(view.tokens, view.num_tokens)
    means = view.marks.mean if view.marks else np.zeros(len(texts))
    shades = scale_of_weights(means).shades(means)
    titles = _titles(view, texts, means)
    tokens = "".join(_token("s", *token) for token in zip(texts, titles, shades.tolist(), strict=True))
    data = "".join(f' data-{name}="{value}"' for name, value in _data(view).items())
    status = f'<p class="status soft" role="status" data-hint="{escape(_hint(view))}"></p>'
    return f'{status}\n<p class="source{"" if view.tokens else " numbers"}"{data}>{tokens}</p>'


def _titles(view: SourceText, texts: Sequence[str], means: NDArray[np.float64]) -> Iterator[str]:
    """Yield the tooltip of each source token: its number, its text, the mean of its marks."""
    for place, text in enumerate(texts, 1):
        name = f"source token {place}" + (f", “{text.strip()}”" if view.tokens else "")
        of_steps = " in the mean" if view.marks and view.marks.text else ""
        yield name + (f": {view.marks.name} {_format_width(means[place - 1])}{of_steps}" if view.marks else "")


def _format_width(value: float) -> str:
    return format_weight(value) if np.isfinite(value) else "no number"


def _data(view: SourceText) -> dict[str, str]:
    """Return the encoded values of single steps, with their scale, and of windows, if they fit on the page."""
    data: dict[str, str] = {}
    if _can_choose_steps(view.marks):
        assert view.marks is not None
        low, high = scale_of_weights(view.marks.values)
        data |= {"rows": _encoded(view.marks.values), "scale": f"{low:.6g} {high:.6g}"}
    if _can_choose_windows(view.windows):
        assert view.windows is not None
        data |= {"middles": _encoded(view.windows.middles), "widths": _encoded(view.windows.widths)}
    return data


def _encoded(values: NDArray[np.float64]) -> str:
    with np.errstate(over="ignore"):  # becomes infinite: no number
        return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def _can_choose_steps(marks: TokenMarks | None) -> bool:
    return marks is not None and marks.text is not None and marks.values.size <= _MOST_VALUES


def _can_choose_windows(windows: TokenWindows | None) -> bool:
    return windows is not None and windows.middles.size <= _MOST_VALUES


def _lanes(windows: TokenWindows) -> str:
    """Return a lane per head, in which the script shows the window of a token."""
    count = windows.num_tokens
    track = '<span class="track"><i class="from-to"></i><i class="center"></i><i class="self"></i></span>'
    ends = f'<div class="under soft"><span class="ends"><span>1</span><span>{count}</span></span></div>'
    groups = []
    for layer in windows.layers:
        lanes = "".join(
            f'<li class="lane"><span class="name">{escape(head)}</span>{track}<span class="span"></span></li>'
            for head in windows.heads
        )
        groups.append(f"<div><h4>{escape(layer)}</h4><ul>{lanes}</ul>{ends}</div>")
    note = (
        '<p class="soft">From left to right, the source: a window and its middle in green, the token itself in orange. '
        "Select a head here or below: it gets a frame, and its window is underlined in the text.</p>"
    )
    return f'<div class="of-token" hidden><h3 class="whose"></h3>{note}<div class="lanes">{"".join(groups)}</div></div>'


def _widths(windows: TokenWindows) -> str:
    """Return a table of heads with the mean width of their windows and a picture of all windows."""
    means = windows.mean_widths
    scale = scale_of_weights(means)
    shades = scale.shades(means)
    rows = []
    for layer, name in enumerate(windows.layers):
        cells = [
            f'<td class="wide">{_picture(windows, layer, head)}<b class="shaded" style="--v:{shades[layer, head]:.3f}">'
            f"{_format_width(means[layer, head])}</b></td>"
            for head in range(len(windows.heads))
        ]
        rows.append(f'<tr><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>')
    heads = "".join(f'<th scope="col">{escape(head)}</th>' for head in windows.heads)
    body = "\n".join(rows)
    table = f"<thead><tr><th></th>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>"
    note = (
        "The number is the mean width over all source tokens, in source tokens. The picture has a row per source "
        "token, the first on top. Each row shows the source from left to right, with the token's window and its middle."
    )
    return (
        f'<div class="bar"><h3>How wide the windows are, and where</h3><p class="soft">mean width {legend(scale)}</p>'
        f'</div>\n<p class="soft">{note}</p>\n'
        f'<div class="scroll"><table class="wides">{table}</table></div>'
    )


def _picture(windows: TokenWindows, layer: int, head: int) -> str:
    """Return an SVG of a head's windows: a row per source token, evenly sampled if there are many."""
    num_rows = min(windows.num_tokens, _SIDE)
    sampled = ((np.arange(num_rows) + 0.5) * windows.num_tokens / num_rows).astype(int)
    height = _SIDE / num_rows
    shares = _SIDE * windows.shares()[:, layer, head, sampled].T
    rows = [(height * (row + 0.5), *window) for row, window in enumerate(shares)]
    rows = [row for row in rows if not np.isnan(row[1])]
    bars = "".join(f"M{begin:.3g},{y:.3g}H{end:.3g}" for y, begin, _, end in rows)
    centers = "".join(f"M{middle - 0.5:.3g},{y:.3g}h1" for y, _, middle, _ in rows)
    paths = f'<path class="far" d="{bars}"></path><path d="{centers}"></path>'
    box = f'viewBox="0 0 {_SIDE} {_SIDE}" preserveAspectRatio="none" stroke-width="{height:.3g}" aria-hidden="true"'
    return f"<svg {box}>{paths}</svg>"
