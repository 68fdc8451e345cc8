"""Suboptimality against seconds: a panel per task, a colour per trainer, a line per repetition."""

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from suite.laboratory import PRECISIONS
from suite.trainers import TRAINERS

PANEL = 4.0, 3.2  # inches


def convergence(traces):
    """Draw what `Laboratory.traces` returns for each task."""
    n_columns = min(2, len(traces))
    n_rows = -(-len(traces) // n_columns)
    size = PANEL[0] * n_columns + 2.2, PANEL[1] * n_rows
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[len(traces) :]:
        ax.remove()
    colors = {name: f"C{k}" for k, name in enumerate(TRAINERS)}
    for ax, (task, (optimum, found)) in zip(axes, traces.items(), strict=False):
        for name, records in found.items():
            look = {"color": colors[name], "linewidth": 1.2, "label": TRAINERS[name].title}
            for record in records:
                ax.loglog(record.columns.seconds, record.columns.primal / optimum - 1.0, **look)
        ax.set_ylim(0.7 * PRECISIONS[-1], 10)
        ax.set(title=task, xlabel="seconds", ylabel="P(w) / P* - 1")
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.grid(True, which="major", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    handles = {line.get_label(): line for ax in figure.axes for line in ax.get_lines()}
    figure.legend(handles.values(), handles, loc="outside right upper", frameon=False, fontsize=9)
    return figure
