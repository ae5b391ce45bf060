"""Views of evidence in HTML: heat maps, which are tables with the value of each cell as a tooltip; and source texts.

    Weights    --weights-->    units × steps; below, the tokens in the colours of their strongest units
    Selections --selections--> segments × units, with the texts of the segments
    Relations  --relations-->  for each layer: units × attended units, of the mean over heads or of one head
    SourceText --source_text--> the tokens of the steps, which can be selected; the source, shaded by its mean marks;
                                the windows of a selected token, a lane per head; mean widths, a cell per head

A unit's number links to its text at `#unit-<number>`. The script is optional. It shows values immediately, adds the
keyboard, and highlights a token together with its column. Of a source text, single steps and tokens are shown only by
the script; its data are attributes of the text, 32-bit floats in base 64.
"""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from longsumbench.render.evidence import views
from longsumbench.render.figures import COLOURS
from longsumbench.render.html import static_text

_FILL = COLOURS[:-1]  # pages use the text colour instead of black
NUM_COLOURS = len(_FILL) + 1  # then they repeat
_MAP_WIDTH = 860  # pixels of all steps
_NARROWEST, _WIDEST = 5, 22  # pixels of a step
_ROOMY = 10  # pixels of a step from which cells have lines between them
_TICK = 34  # least pixels between the numbers of steps
_UNIT_WIDTH = 13  # pixels of a unit's column
_SQUARE, _SMALLEST, _LARGEST = 500, 13, 24  # pixels of a map of units by units, and limits of its cells
_MOST_CELLS = 100_000  # cells of single heads on a page
_BEGINNING = 200  # characters of a unit in the tooltip of its number
HINT = "Point at a cell or a token, or step through the map with the arrow keys."
_READOUT = '<p class="readout soft"></p>'
HEAT_MAP_STYLE = (
    ":root { --shade: #08519c; --cursor: #d55e00; "
    + " ".join(f"--c{place}: {colour};" for place, colour in enumerate(_FILL))
    + f" --c{len(_FILL)}: var(--ink); }}\n"
    + "\n".join(f".c{place} {{ --c: var(--c{place}); }}" for place in range(NUM_COLOURS))
    + f"\n.c{len(_FILL)} {{ --tint: .4; }}"  # lighter, because it is the text colour
    + static_text("heat_map.css")
)
HEAT_MAP_SCRIPT = static_text("heat_map.js").replace("HINT", HINT)


def colour(index: int) -> str:
    """Return the CSS class with the colour of a unit or a segment."""
    return f"c{index % NUM_COLOURS}"


def format_weight(value: float) -> str:
    """Format a value of an array."""
    return f"{value:.3g}".replace("-", "−")


def _format_share(value: float) -> str:
    return f"{100 * value:.2f} %" if np.isfinite(value) else "no number"


def weights(view: views.Weights) -> str:
    """Return the map of weights, with the tokens below."""
    scale = view.scale
    shades = scale.shades(view.values)
    text = (
        f"A row is a unit of the source, a column a step of the {view.text}. The stronger the colour, the "
        f"greater the unit's {view.name} at that step"
    )
    below = " Below, each token has the colour and the number of its strongest unit." if view.tokens else ""
    return section(
        f"{view.name}: the units at each step of the {view.text}",
        f"<p>{escape(text)} ({legend(scale)}).{below}</p>",
        _map_of_weights(view, shades),
        _tokens(view, shades) if view.tokens else "",
    )


def section(heading: str, *parts: str, kind: str = "view") -> str:
    """Return a view with its heading; `parts` are HTML."""
    body = "\n".join(part for part in parts if part)
    return f'<section class="{kind}">\n<h2>{escape(heading)}</h2>\n{body}\n</section>'


def legend(scale: views.Scale, kind: str = "scale", write: Callable[[float], str] = format_weight) -> str:
    """Return the colour scale between its lowest and highest value."""
    return f'<span class="{kind}">{write(scale.low)}<i></i>{write(scale.high)}</span>'


def _map_of_weights(view: views.Weights, shades: NDArray[np.float64]) -> str:
    num_units, num_steps = view.values.shape
    width, steps = max(_NARROWEST, min(_WIDEST, _MAP_WIDTH // num_steps)), range(num_steps)
    rows = [
        _map_row(_link(unit, "unit "), [_map_cell(_tip(view, unit, step), shades[unit, step]) for step in steps])
        for unit in range(num_units)
    ]
    strongest = (_map_cell(_tip(view, unit, step), kind=colour(unit)) for step, unit in enumerate(view.strongest))
    rows.append(_map_row("strongest", strongest).replace("<tr>", '<tr class="strongest">'))
    head = f'<tr><th class="name">step</th>{_ticks(num_steps, width)}</tr>'
    kind = "roomy" if width >= _ROOMY else "narrow"
    return _map(kind, f"calc(6.2rem + {num_steps * width}px)", num_steps, head, rows, "units by steps") + _READOUT


def _map(kind: str, width: str, num_columns: int, head: str, rows: Sequence[str], label: str) -> str:
    body = "\n".join(rows)
    return (
        f'<div class="heat scroll" tabindex="0" role="region" aria-label="{label}"><table class="map {kind}" '
        f'style="width:{width}"><colgroup><col class="name"><col span="{num_columns}"></colgroup>\n'
        f"<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>\n"
    )


def _map_row(name: str, cells: Iterable[str], kind: str = "name") -> str:
    return f'<tr><th class="{kind}" scope="row">{name}</th>{"".join(cells)}</tr>'


def _map_cell(title: str, shade: float = 0.0, kind: str = "") -> str:
    colours = f' class="{kind}"' if kind else ""
    style = f' style="--v:{shade:.3f}"' if shade >= 0.0005 else ""
    return f'<td{colours}{style} title="{escape(title)}"></td>'


def _tip(view: views.Weights, unit: int, step: int) -> str:
    token = f", “{view.tokens[step].strip()}”" if view.tokens else ""
    return f"step {step + 1}{token}, unit {unit + 1}: {format_weight(view.values[unit, step])}"


def _link(unit: int, prefix: str = "") -> str:
    return f'<a href="#unit-{unit + 1}">{prefix}{unit + 1}</a>'


def _ticks(num_steps: int, width: int) -> str:
    span = next(count for count in (2, 5, 10, 20, 50) if count * width >= _TICK)
    starts = range(0, num_steps, span)
    return "".join(f'<th class="tick" colspan="{min(span, num_steps - start)}">{start + 1}</th>' for start in starts)


def _tokens(view: views.Weights, shades: NDArray[np.float64]) -> str:
    return f'<p class="tokens">{"".join(_run(view, run, shades) for run in view.runs())}</p>'


def _run(view: views.Weights, run: views.StepRange, shades: NDArray[np.float64]) -> str:
    """Return the tokens of a range of steps; the first one starts with the unit's number."""
    assert view.tokens is not None
    parts = []
    for step in run.steps:
        token = view.tokens[step]
        if step == run.steps[0]:
            parts.append(f"{token[: len(token) - len(token.lstrip())]}<sup>{_link(run.unit)}</sup>")
            token = token.lstrip()
        shade, title = shades[run.unit, step], escape(_tip(view, run.unit, step))
        parts.append(f'<span class="t" data-i="{step}" style="--v:{shade:.3f}" title="{title}">{escape(token)}</span>')
    return f'<span class="{colour(run.unit)}">{"".join(parts)}</span>'


def selections(view: views.Selections) -> str:
    """Return the map of selections, with the texts of the segments."""
    scale = None if view.scores is None else views.scale_of(view.scores)
    name = escape(view.scores_name or "")
    background = f" The stronger the grey, the higher {name} ({legend(scale, 'scale grey')})." if scale else ""
    heading = " and ".join(filter(None, (view.name, view.scores_name)))
    return section(
        f"{heading}: the units for each segment",
        "<p>A row is a segment of the summary, a column a unit of the source. A bar marks the units that were selected "
        f"for the segment.{background} The texts of selected units are open below, with the segments' numbers, in the "
        "colour of the first segment.</p>",
        _map_of_selections(view, scale),
    )


def _map_of_selections(view: views.Selections, scale: views.Scale | None) -> str:
    num_segments, num_units = view.counts.shape
    shades = np.zeros(view.counts.shape) if scale is None or view.scores is None else scale.shades(view.scores)
    rows = []
    for segment in range(num_segments):
        text = f" {escape(view.texts[segment])}" if view.texts else ""
        cells = (_selection_cell(view, segment, unit, shades[segment, unit]) for unit in range(num_units))
        rows.append(_map_row(f"<b>{segment + 1}</b>{text}", cells, f"name {colour(segment)}"))
    units = "".join(f'<th class="unit" scope="col">{_link(unit)}</th>' for unit in range(num_units))
    head = f'<tr><th class="name">segment</th>{units}</tr>'
    width = f"calc(clamp(9rem, 30vw, 22rem) + {num_units * _UNIT_WIDTH}px)"
    return _map("roomy segments", width, num_units, head, rows, "segments by units") + _READOUT


def _selection_cell(view: views.Selections, segment: int, unit: int, shade: float) -> str:
    count = view.counts[segment, unit]
    title = f"segment {segment + 1}, unit {unit + 1}: {view.name} {count}"
    if view.scores is not None:
        title += f", {view.scores_name} {format_weight(view.scores[segment, unit])}"
    return _map_cell(title, shade, colour(segment) if count else "")


def relations(view: views.Relations) -> str:
    """Return maps for each layer: the mean over its heads and, selectable, each head."""
    text = [
        f"A row is a unit of the source, a column a unit that it attends to. The stronger the colour, the greater "
        f"the {view.name}."
    ]
    if len(view.heads) > 1:
        text.append(
            "The mean over the heads has the same colour scale in all layers. Each head can be selected and has "
            "a separate scale."
            if _can_choose_heads(view)
            else f"There are too many values ({view.values.size:,}) to show single heads here."
        )
    if absent := view.left_out:
        names = ", ".join(f"{unit + 1}" for unit in absent)
        left_out = "has no text and is" if len(absent) == 1 else "have no text and are"
        text.append(f"Unit{'s' if len(absent) > 1 else ''} {names} {left_out} left out.")
    layers = "\n".join(_layer(view, layer) for layer in range(len(view.layers)))
    return section(
        f"{view.name}: how much each unit attends to each",
        f"<p>{escape(' '.join(text))}</p>",
        f'<div class="layers">\n{layers}\n</div>',
        kind="relations",
    )


def _can_choose_heads(view: views.Relations) -> bool:
    return len(view.heads) > 1 and view.values.size <= _MOST_CELLS


def _layer(view: views.Relations, layer: int) -> str:
    cell = max(_SMALLEST, min(_LARGEST, _SQUARE // len(view.units)))
    maps = list(_maps_of_relations(view, layer, cell))
    if len(maps) == 1:
        body = f'<p class="soft">{escape(maps[0][0])}</p>{maps[0][1]}'
    else:
        group = escape(f"{layer} {view.name}")
        choices = "\n".join(
            f'<div class="one"><label><input type="radio" name="{group}"{"" if place else " checked"}>{escape(name)}'
            f"</label><div>{map_html}</div></div>"
            for place, (name, map_html) in enumerate(maps)
        )
        label = escape(f"heads of {view.layers[layer]}")
        body = f'<div class="heads" role="radiogroup" aria-label="{label}">\n{choices}\n</div>'
    width = f"--cell:{cell}px;width:max(24rem, calc(4.8rem + {len(view.units) * cell}px))"
    return f'<div class="view layer" style="{width}"><h3>{escape(view.layers[layer])}</h3>\n{body}\n{_READOUT}</div>'


def _maps_of_relations(view: views.Relations, layer: int, cell: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the HTML of each map of a layer: the mean over the heads, then each head."""
    if len(view.heads) > 1:
        means = view.means
        name = f"mean of {len(view.heads)} heads"
        yield name, _map_of_relation(view, name, means[layer], views.scale_of_weights(means), cell)
    for head, name in enumerate(view.heads):
        if len(view.heads) == 1 or _can_choose_heads(view):
            values = view.values[layer, head]
            yield name, _map_of_relation(view, name, values, views.scale_of_weights(values), cell)


def _map_of_relation(
    view: views.Relations, name: str, values: NDArray[np.float64], scale: views.Scale, cell: int
) -> str:
    """Return a map of units by units, with its colour scale above it."""
    write, shades = _format_share if view.shares else format_weight, scale.shades(values)
    rows = []
    for row, unit in enumerate(view.units):
        titles = (
            f"{name}, unit {unit + 1} to unit {attended + 1}: {write(values[row, column])}"
            for column, attended in enumerate(view.units)
        )
        rows.append(_map_row(_unit(view, unit), map(_map_cell, titles, shades[row])))
    units = "".join(f'<th class="unit" scope="col">{_unit(view, unit)}</th>' for unit in view.units)
    head = f'<tr><th class="name">from ↓ to →</th>{units}</tr>'
    width = f"calc(4.8rem + {len(view.units) * cell}px)"
    map_html = _map("roomy related", width, len(view.units), head, rows, escape(f"units by units, {name}"))
    return f'<p class="soft">{escape(view.name)} {legend(scale, write=write)}</p>\n{map_html}'


def _unit(view: views.Relations, unit: int) -> str:
    """Return the unit's number, with its beginning as tooltip."""
    text = " ".join(view.texts[unit].split())
    beginning = text if len(text) <= _BEGINNING else f"{text[: _BEGINNING - 1]}…"
    return f'<span title="{escape(beginning)}">{_link(unit)}</span>'


_MOST_VALUES = 1_000_000  # of an array on a page
_SIDE = 48  # pixels of a cell's picture, and its rows
SOURCE_TEXT_STYLE = static_text("source_text.css")
SOURCE_TEXT_SCRIPT = static_text("source_text.js")


def source_text(view: views.SourceText) -> str:
    """Return the source text, the steps and windows that can be selected, and the mean widths of the windows."""
    marks, windows = view.marks, view.windows
    heading = f"{' and '.join(view.names)}: the source text"
    parts = [_steps(marks) if marks and marks.text else "", _heading_bar(marks), _source_tokens(view)]
    if windows:
        parts += [_lanes(windows) if _can_choose_windows(windows) else "", _widths(windows)]
    return section(heading, f"<p>{_describe_source(view)}</p>", *parts)


def _describe_source(view: views.SourceText) -> str:
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


def _hint(view: views.SourceText) -> str:
    of_steps, of_windows = _can_choose_steps(view.marks), _can_choose_windows(view.windows)
    hints = []
    if of_steps and view.marks:
        hints.append(f"a token of the {view.marks.text} to see that step alone")
    if of_steps or of_windows:
        seen = " and ".join(["at which steps it weighed"] * of_steps + ["its windows"] * of_windows)
        hints.append(f"a source token to see {seen}")
    return f"Choose {', or '.join(hints)}: with the pointer, or with Tab and the arrow keys." if hints else ""


def _steps(marks: views.TokenMarks) -> str:
    texts = _written(marks.tokens, len(marks.values))
    tokens = "".join(_token("o", text, f"step {place}") for place, text in enumerate(texts, 1))
    button = '<button class="whole" type="button" hidden>all steps</button>'
    column = f'{escape(marks.name)} of <span class="whom"></span> {legend(views.scale_of_weights(marks.values))}'
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


def _heading_bar(marks: views.TokenMarks | None) -> str:
    if marks is None:
        return '<div class="bar"><h3>The source</h3></div>'
    steps = "the only step" if len(marks.values) == 1 else f"the mean over the {len(marks.values)} steps"
    note = f': <span class="what">{steps} of the {marks.text}</span>' if marks.text else ""
    scale = f"{escape(marks.name)}{note} {legend(views.scale_of_weights(marks.mean))}"
    return f'<div class="bar"><h3>The source</h3><p class="soft means">{scale}</p></div>'


def _source_tokens(view: views.SourceText) -> str:
    """Return the source, shaded by the mean of its marks, with the data of the script."""
    texts = _written(view.tokens, view.num_tokens)
    means = view.marks.mean if view.marks else np.zeros(len(texts))
    shades = views.scale_of_weights(means).shades(means)
    titles = _titles(view, texts, means)
    tokens = "".join(_token("s", *token) for token in zip(texts, titles, shades.tolist(), strict=True))
    data = "".join(f' data-{name}="{value}"' for name, value in _data(view).items())
    status = f'<p class="status soft" role="status" data-hint="{escape(_hint(view))}"></p>'
    return f'{status}\n<p class="source{"" if view.tokens else " numbers"}"{data}>{tokens}</p>'


def _titles(view: views.SourceText, texts: Sequence[str], means: NDArray[np.float64]) -> Iterator[str]:
    """Yield the tooltip of each source token: its number, its text, the mean of its marks."""
    for place, text in enumerate(texts, 1):
        name = f"source token {place}" + (f", “{text.strip()}”" if view.tokens else "")
        of_steps = " in the mean" if view.marks and view.marks.text else ""
        yield name + (f": {view.marks.name} {_format_width(means[place - 1])}{of_steps}" if view.marks else "")


def _format_width(value: float) -> str:
    return format_weight(value) if np.isfinite(value) else "no number"


def _data(view: views.SourceText) -> dict[str, str]:
    """Return the encoded values of single steps, with their scale, and of windows, if they fit on the page."""
    data: dict[str, str] = {}
    if _can_choose_steps(view.marks):
        assert view.marks is not None
        low, high = views.scale_of_weights(view.marks.values)
        data |= {"rows": _encoded(view.marks.values), "scale": f"{low:.6g} {high:.6g}"}
    if _can_choose_windows(view.windows):
        assert view.windows is not None
        data |= {"middles": _encoded(view.windows.middles), "widths": _encoded(view.windows.widths)}
    return data


def _encoded(values: NDArray[np.float64]) -> str:
    with np.errstate(over="ignore"):  # becomes infinite: no number
        return base64.b64encode(values.astype("<f4").tobytes()).decode("ascii")


def _can_choose_steps(marks: views.TokenMarks | None) -> bool:
    return marks is not None and marks.text is not None and marks.values.size <= _MOST_VALUES


def _can_choose_windows(windows: views.TokenWindows | None) -> bool:
    return windows is not None and windows.middles.size <= _MOST_VALUES


def _lanes(windows: views.TokenWindows) -> str:
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


def _widths(windows: views.TokenWindows) -> str:
    """Return a table of heads with the mean width of their windows and a picture of all windows."""
    means = windows.mean_widths
    scale = views.scale_of_weights(means)
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


def _picture(windows: views.TokenWindows, layer: int, head: int) -> str:
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
