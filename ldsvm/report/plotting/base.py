"""What every figure shares. Only this folder knows matplotlib: figures are objects here, never a global state."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

# Okabe & Ito (2008): eight colours that people with any kind of colour vision tell apart.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
FAR = 100.0  # ratio of the ends of a logarithmic axis beyond which powers of ten are labels enough
INK, GRID = "#333333", "#E3E3E3"


@dataclass(frozen=True)
class Drawing:
    """One figure in two formats: the same results give the same bytes."""

    png: bytes
    svg: bytes


def plain_log(axis: Any) -> None:
    """Label a logarithmic axis with plain numbers instead of powers, closer ones where it spans little."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high > 5 * low else (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    axis.set_major_locator(LogLocator(subs=(1.0,) if high > FAR * low else steps))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,g}"))
    axis.set_minor_formatter(NullFormatter())


def colour(k: int, n: int) -> Any:
    """Return the colour of class k of n."""
    if n <= len(OKABE_ITO):
        return OKABE_ITO[k]
    import matplotlib as mpl

    return mpl.colormaps["tab10"](k % 10) if n <= 10 else mpl.colormaps["tab20"](k % 20)


def to_rgb(name: Any) -> tuple[float, float, float]:
    """Return a colour as three numbers."""
    from matplotlib.colors import to_rgb as numbers

    return numbers(name)


def figure_of(width: float, height: float, rows: int = 1, columns: int = 1, *, shared: bool = True) -> tuple[Any, Any]:
    """Return an empty figure, in inches, and its axes. shared: whether rows share x, and columns y."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)
    found = figure.subplots(rows, columns, sharex=shared and rows > 1, sharey=shared and columns > 1)
    for axes in np.ravel(found):
        axes.grid(color=GRID, lw=0.7)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK, labelsize=9)
        axes.title.set(fontsize=11, color=INK)
    return figure, found


def plain(text: object) -> str:
    """Return a text in which matplotlib takes no sign for mathematics."""
    return str(text).replace("$", r"\$")


def drawn(figure: Any) -> Drawing:
    """Return a finished figure."""
    import matplotlib as mpl

    figure.align_ylabels()
    files = {}
    with mpl.rc_context({"svg.hashsalt": "ldsvm", "svg.fonttype": "none"}):  # else names in the file are random
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            stream = io.BytesIO()
            figure.savefig(stream, format=kind, metadata=metadata)
            files[kind] = stream.getvalue()
            figure.set_layout_engine(None)  # the axes stay where the first format has them
    return Drawing(**files)
