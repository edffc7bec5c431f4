"""The chart: each ratio that has an aim, beside that aim (matplotlib, extra `bench`)."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.figure import Row
    from benchmarks.result import Result

NOT_INSTALLED = "No chart: matplotlib is not installed (`make bench` installs it, extra `bench`)."
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
REACHED, MISSED, AIM = "#2a7f62", "#c0504d", "#222222"
TITLES = {False: "Times the yardstick's time (less is better)", True: "Times as fast as the yardstick (more is better)"}


def draw(result: Result, path: str) -> bool:
    """Writes the chart as SVG; False where matplotlib is not there."""
    if find_spec("matplotlib") is None:
        return False
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = str(result.run.seed)  # the same figures give the same file
    mpl.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot as plt

    held = [row for row in result.rows if row.aim is not None and not row.aim.of_value and row.ratio is not None]
    panels = [[row for row in held if row.aim is not None and row.aim.at_least == more] for more in TITLES]
    heights = [max(1, len(panel)) for panel in panels]
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(10, 1.8 + 0.34 * sum(heights)), height_ratios=heights, layout="constrained"
    )
    for (more, title), axis, panel in zip(TITLES.items(), axes, panels, strict=True):
        _draw_panel(axis, title, panel, logarithmic=more)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return True


def _draw_panel(axis: Any, title: str, rows: list[Row], *, logarithmic: bool) -> None:
    places = range(len(rows))
    axis.barh(
        places, [row.ratio for row in rows], color=[REACHED if row.reached else MISSED for row in rows], height=0.6
    )
    for place, row in zip(places, rows, strict=True):
        bound = row.aim.bound if row.aim is not None else 0
        axis.plot([bound, bound], [place - 0.42, place + 0.42], color=AIM, linewidth=2)
        axis.annotate(
            f"{row.ratio:.2f}",
            (0, place),
            xycoords=("axes fraction", "data"),
            xytext=(4, -3),
            textcoords="offset points",
            color="white",
            fontsize=8,
        )
    axis.set_yticks(list(places), [_label(row) for row in rows], fontsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.12)
    axis.set_title(f"{title}; the line is the aim", fontsize=10, loc="left")
    if logarithmic and rows:
        axis.set_xscale("log")
        axis.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.minorticks_off()
    axis.spines[["top", "right"]].set_visible(False)


def _label(row: Row) -> str:
    kind, _, server = row.group.partition(", PostgreSQL")
    lz4 = ", lz4" if "with lz4" in server else ""
    return f"{row.figure} / {row.yardstick}\n{kind}{lz4}"


def write(result: Result, folder: str) -> str | None:
    """The chart in the folder; or why there is none."""
    return None if draw(result, os.path.join(folder, "chart.svg")) else NOT_INSTALLED
