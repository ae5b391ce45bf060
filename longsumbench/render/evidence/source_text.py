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
from longsumbench.render.html import static_text

_MOST_VALUES = 1_000_000  # of an array on a page
_SIDE = 48  # pixels of a cell's picture, and its rows
SOURCE_TEXT_STYLE = static_text("source_text.css")
SOURCE_TEXT_SCRIPT = static_text("source_text.js")


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
