"""A model in production over time: its errors, real and estimated, and how far each input has drifted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ldsvm.datasets.words import cut
from ldsvm.production.timeline import Event, Share
from ldsvm.report.plotting.base import INK, OKABE_ITO, Drawing, drawn, figure_of, plain

MOST_COLUMNS = 20
MOST_EVENTS = 60  # of the drift by column, the latest ones


def errors_over_time(events: Sequence[Event], title: str) -> Drawing:
    """Return a figure of the champion's errors over the dates: on labelled rows and estimated, with intervals.

    A line stands where another version became the champion, a triangle where there was an alarm.
    """
    figure, axes = figure_of(8.0, 3.8)
    both = [(one, share) for one in events for share in dict.fromkeys((one.error, one.champion_error))]
    for values, name, ink, marker in (
        (both, "error on labelled rows", OKABE_ITO[0], "o"),
        ([(one, one.estimate) for one in events], "estimated without labels", OKABE_ITO[4], "s"),
    ):
        _points(axes, values, name, ink, marker)
    for before, event in zip([None, *events], events, strict=False):
        if event.champion and (before is None or before.champion != event.champion):
            axes.axvline(_date(event), color=INK, lw=0.9, ls=":")
            axes.annotate(
                f" v{event.champion}", (_date(event), 1.0), xycoords=("data", "axes fraction"), va="top", fontsize=8,
                color=INK,
            )  # fmt: skip
    if alarms := [event for event in events if event.outcome == "alarm"]:
        axes.plot(
            [_date(event) for event in alarms], [0.03] * len(alarms), "^", color=OKABE_ITO[1], ms=7, label="alarm",
            transform=axes.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    axes.set(title=plain(title), ylabel="error (%)")
    axes.set_ylim(bottom=0)
    _dated(axes)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawn(figure)


def _points(axes: Any, values: Sequence[tuple[Event, Share | None]], name: str, ink: str, marker: str) -> None:
    known = [(_date(event), share) for event, share in values if share is not None]
    if not known:
        return
    middle, low, high = 100 * np.array([share for _, share in known]).T
    bars = np.maximum([middle - low, high - middle], 0.0)
    axes.errorbar(
        [date for date, _ in known], middle, bars, color=ink, marker=marker, ms=4, lw=1.0, elinewidth=0.8, capsize=2,
        label=name,
    )  # fmt: skip


def drift_over_time(events: Sequence[Event], large: float, title: str) -> Drawing:
    """Return a figure of the stability index of each input, a row, at each comparison, a column.

    The MOST_COLUMNS inputs are drawn that are darkest over the latest MOST_EVENTS comparisons. large: the index that
    counts as drift, beyond which a cell is dark. A cross marks what counts as drifted. Empty: not among the most
    drifted then.
    """
    shown = events[-MOST_EVENTS:]
    dark: dict[str, float] = {}  # as drawn, so that one comparison alone does not choose the inputs
    for event in shown:
        for name, psi in event.drift.items():
            dark[name] = dark.get(name, 0.0) + min(psi / large, 2.0)
    names = sorted(dark, key=lambda name: -dark[name])[:MOST_COLUMNS]
    table = np.array([[event.drift.get(name, np.nan) for event in shown] for name in names])
    figure, axes = figure_of(8.0, 1.4 + 0.22 * len(names))
    image = axes.imshow(np.minimum(table / large, 2.0), cmap="Blues", vmin=0.0, vmax=2.0, aspect="auto")
    crosses = [(i, k) for i, event in enumerate(shown) for k, name in enumerate(names) if name in event.drifted]
    if crosses:
        axes.plot(*np.array(crosses).T, "x", color=OKABE_ITO[1], ms=5)
    axes.set_yticks(range(len(names)), [plain(cut(name)) for name in names])
    step = -(-len(shown) // 12)
    places = range(0, len(shown), step)
    axes.set_xticks(places, [f"{shown[i].when:%Y-%m-%d}" for i in places], rotation=45, ha="right")
    axes.grid(visible=False)
    axes.set(title=plain(title))
    bar = figure.colorbar(image, ax=axes, ticks=[0.0, 1.0, 2.0])
    bar.ax.set_yticklabels(["0", f"{large:g}", f"≥ {2 * large:g}"])
    bar.set_label("stability index", fontsize=9)
    return drawn(figure)


def _date(event: Event) -> Any:
    return event.when.replace(tzinfo=None)


def _dated(axes: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator: Any = AutoDateLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
