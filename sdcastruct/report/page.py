"""Pieces of an HTML page that needs nothing but itself.

Text is escaped wherever it enters: only what these functions made, `Html`, goes in as it is.
"""

import io
import re
import warnings
from html import escape

INK = "#010203"  # drawn in the colour of the text around the figure, which may be dark or light
FIGURE_STYLE = {
    "svg.fonttype": "none",
    "font.size": 9.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.prop_cycle": "cycler('color', ['3b7fc4', 'd98324', '3f9b62', 'd1495b'])",
    **dict.fromkeys(
        ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    ),
}


class Html(str):
    """Markup: the only strings that are not escaped."""


def join(*parts):
    """Return parts one after the other; those that are not markup are escaped."""
    return Html("".join(part if isinstance(part, Html) else escape(str(part)) for part in parts))


def tag(name, *parts, **attributes):
    """Return an element with these parts inside.

    Attributes are written as Python writes them: ``class_`` is class, ``aria_label`` is aria-label.
    Those that are None are left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{written}>{join(*parts)}</{name}>")


def section(title, *parts):
    """Return a section of the page, which `contents` can lead to."""
    return tag("section", tag("h2", title), *parts, id=_anchor(title))


def contents(*titles):
    """Return links to sections."""
    links = (tag("a", title, href="#" + _anchor(title)) for title in titles)
    return tag("nav", *links, aria_label="Contents")


def _anchor(title):
    return title.lower().replace(" ", "-")


def table(head, rows, **attributes):
    """Return a table in a box of its own, which scrolls if it is too wide.

    The first cell of a row names it; the others are numbers.
    """
    headings = tag("tr", *(tag("th", name, scope="col") for name in head))
    body = [
        tag("tr", tag("th", first, scope="row"), *(tag("td", cell) for cell in others))
        for first, *others in rows
    ]
    written = tag("table", tag("thead", headings), tag("tbody", *body), **attributes)
    return tag("div", written, class_="scroll", tabindex=0)


def facts(pairs):
    """Return a list of names and values."""
    items = (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs)
    return tag("dl", *items, class_="facts")


def figure(draw, caption, width=4.0, height=2.6, min_width=0):
    """Return a figure as inline SVG, in the colours of the page.

    Parameters
    ----------
    draw : callable
        Draws on the axes that it is called with.
    caption : str
    width, height : float
        In inches, for letters of 9 points; the page scales the figure, by at most a half.
    min_width : int
        If the screen has fewer pixels, the figure scrolls.
    """
    from matplotlib import style  # slow to import, and not needed to train
    from matplotlib.figure import Figure

    with style.context(["default", FIGURE_STYLE]), warnings.catch_warnings():
        # The browser has letters that matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        drawing = Figure(figsize=(width, height), layout="constrained")
        draw(drawing.subplots())
        svg = _svg(drawing, caption)
    size = f"max-width:{max(108 * width, min_width):.0f}px;min-width:{min_width}px"
    box = tag("div", tag("div", svg, style=size), class_="scroll", tabindex=0)
    return tag("figure", box, tag("figcaption", caption), style=f"flex-basis:{min_width}px")


def document(title, css, *parts):
    """Return the page."""
    head = join(
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark">'),
        tag("title", title),
        Html(f"<style>{css}</style>"),
    )
    page = tag("html", tag("head", head), tag("body", tag("main", *parts)), lang="en")
    return Html(f"<!DOCTYPE html>\n{page}\n")


def _svg(drawing, name):
    """Return a drawing as an element that stands in a page."""
    from matplotlib import rc_context

    file = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with rc_context({"svg.hashsalt": name}):  # names inside differ from those of other figures
        drawing.savefig(file, format="svg", metadata=nothing)
    svg = file.getvalue()
    box = re.search(r'viewBox="[\d. ]+"', svg)[0]
    inside = svg[svg.index(">", svg.index("<svg")) + 1 :]
    inside = re.sub(r'<g id="[^"]*">', "<g>", inside)
    inside = re.sub(f"(fill|stroke): {INK}", r"\1: currentColor", inside)
    return Html(f'<svg {box} role="img" aria-label="{escape(name)}">{inside}')
