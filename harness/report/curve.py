"""The curve of a run as SVG: the metric of every submission against working time.

Colours are those of Okabe and Ito, which colour-blind people tell apart, and shapes differ too, for print. Text and
axes take the colour of the page around them.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from harness.report.numbers import SECONDS
from harness.report.summary import Summary
from harness.report.text import one_line
from harness.run.state import Submission
from harness.run.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#123456"
"""Stands for the colour of the page's text until the SVG is written."""
BLUE, ORANGE, VERMILLION, GREY = "#0072b2", "#e69f00", "#d55e00", "#808890"
CROSSES = {Verdict.INVALID: ("invalid", "x", GREY), Verdict.VIOLATION: ("violation", "X", VERMILLION)}
CORE = 0.75
"""Part of the scored submissions, best first, that the scale must show; others may lie beyond its edge."""


@dataclass(frozen=True)
class Scale:
    """What part of the metric's axis is drawn."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Say whether a value is drawn in its place."""
        return self.low <= value <= self.high


def draw(summary: Summary, submissions: Sequence[Submission], *, alone: bool = False) -> str:
    """Return the curve as one `<svg>` element without scripts, links to elsewhere or a time stamp.

    `alone` gives it a page of its own: dark ink on white.
    """
    # 0.5 s and 30 MB: only a report draws.
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Text stays text, so that it can be searched and read aloud; fixed ids make equal runs equal files.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "rsi", "font.sans-serif": ["DejaVu Sans"]}):
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        _fill(figure, summary, submissions)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return _clean(out.getvalue(), f"{summary.task}, {summary.agent}: {summary.headline()}", alone=alone)


def scale_of(summary: Summary, submissions: Sequence[Submission]) -> Scale:
    """Return an axis on which the best, the baseline and most submissions can be told apart."""
    metrics = sorted((s.metric for s in submissions if s.metric is not None), reverse=not summary.minimize)
    values = metrics[: max(1, round(CORE * len(metrics)))]
    spread = summary.noise.value if summary.noise else 0.0
    if summary.baseline:
        values += [summary.baseline.value - spread, summary.baseline.value + spread]
    if not values:
        return Scale(0.0, 1.0)
    low, high = min(values), max(values)
    span = (high - low) or abs(high) * 0.1 or 1.0
    floor = [summary.floor.value] if summary.floor else []
    # Anything that does not squeeze the rest is shown as well.
    near = [value for value in metrics + floor if low - span <= value <= high + span]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.08 * ((high - low) or span)
    return Scale(low - margin, high + margin)


def _fill(figure: "Figure", summary: Summary, submissions: Sequence[Submission]) -> None:
    axes = figure.add_subplot()
    scale = scale_of(summary, submissions)
    longest = max([summary.working_sec, *(s.working_sec for s in submissions)])
    unit = "s" if longest < 120 else "min" if longest < 7200 else "h"
    times = [s.working_sec / SECONDS[unit] for s in submissions]
    _draw_references(axes, summary, scale)
    _draw_best(axes, summary, submissions, times, longest / SECONDS[unit])
    _draw_submissions(axes, summary, submissions, times, scale)
    axes.set_ylim(scale.low, scale.high)
    axes.set_xlim(0.0, 1.02 * longest / SECONDS[unit] or 1.0)
    better = "lower is better" if summary.minimize else "higher is better"
    name = f"{summary.metric}, {summary.written_unit}" if summary.written_unit else summary.metric
    axes.set_ylabel(f"{one_line(name, 60)} ({better})", parse_math=False)
    axes.set_xlabel(f"working time of the agent ({unit})")
    axes.ticklabel_format(axis="y", useOffset=False)
    _dress(axes)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside upper left", ncols=4, frameon=False, labelcolor=INK, fontsize="small")


def _draw_references(axes: "Axes", summary: Summary, scale: Scale) -> None:
    if summary.baseline:
        value = summary.baseline.value
        if summary.noise and summary.noise.value:
            band = summary.noise.value
            axes.axhspan(value - band, value + band, color=ORANGE, alpha=0.25, linewidth=0, label="± noise")
        axes.axhline(value, color=ORANGE, linewidth=1.6, linestyle="--", label="baseline")
    if summary.floor and scale.holds(summary.floor.value):
        axes.axhline(summary.floor.value, color=GREY, linewidth=1.2, linestyle=":", label="floor")


def _draw_best(
    axes: "Axes", summary: Summary, submissions: Sequence[Submission], times: Sequence[float], end: float
) -> None:
    xs, ys = [], []
    best: float | None = None
    for submission, x in zip(submissions, times, strict=True):
        value = submission.metric
        if submission.verdict is not Verdict.SCORED or value is None:
            continue
        if best is None or (value < best if summary.minimize else value > best):
            best = value
            xs.append(x)
            ys.append(value)
    if best is not None:
        axes.plot([*xs, end], [*ys, best], drawstyle="steps-post", color=BLUE, linewidth=1.8, label="best so far")


def _draw_submissions(
    axes: "Axes", summary: Summary, submissions: Sequence[Submission], times: Sequence[float], scale: Scale
) -> None:
    groups: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in ("dots", "beyond", *CROSSES)}
    for submission, x in zip(submissions, times, strict=True):
        value, verdict = submission.metric, submission.verdict
        if verdict is Verdict.SCORED and value is not None:
            inside = scale.holds(value)
            groups["dots" if inside else "beyond"][0].append(x)
            groups["dots" if inside else "beyond"][1].append(value if inside else 0.97 if value > scale.high else 0.03)
        elif verdict in CROSSES:
            groups[verdict][0].append(x)
            groups[verdict][1].append(0.97 if summary.minimize else 0.03)  # the worse edge
    edge: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 3}
    if groups["dots"][0]:
        axes.scatter(*groups["dots"], s=28, color=BLUE, edgecolors="none", zorder=4, label="scored")
    if groups["beyond"][0]:
        axes.scatter(*groups["beyond"], s=30, marker="d", color=BLUE, label="scored, beyond the scale", **edge)
    for verdict, (label, marker, color) in CROSSES.items():
        if groups[verdict][0]:
            axes.scatter(*groups[verdict], s=36, marker=marker, color=color, label=label, **edge)


def _dress(axes: "Axes") -> None:
    """Give text and lines the colour of the page."""
    axes.tick_params(colors=INK)
    axes.grid(visible=True, color=GREY, alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in {"left", "bottom"})
        spine.set_color(INK)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(INK)


def _clean(svg: str, title: str, *, alone: bool) -> str:
    """Keep the element alone, let it grow with the page, and give it a name for those who cannot see it."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, count=1, flags=re.DOTALL)
    size = re.match(r'<svg [^>]*viewBox="([^"]+)"', svg)
    assert size, "matplotlib writes a viewBox"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{size[1]}"'
        f' role="img" aria-labelledby="curve-title">\n <title id="curve-title">{escape(one_line(title))}</title>'
    )
    if alone:
        head += "\n <style>svg { color: #1b1f24; background: #ffffff }</style>"
    body = svg[svg.index(">", size.start()) + 1 :]
    return (head + body.replace(INK, "currentColor")).rstrip() + "\n"
