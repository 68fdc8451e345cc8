"""The figures: a panel per task, a line per run, one legend for all."""

import io

import numpy as np

from sdcastruct.reproduce.solvers import SOLVERS

LABELS = {
    "n_updates": "parameter updates / n",
    "n_oracle_calls": "oracle calls / n",
    "seconds": "CPU seconds",
}
PANEL = 3.2, 2.7  # inches
FLOOR = 1e-7  # of the relative suboptimality that is shown


def convergence(runs, lines, column="n_updates"):
    """Draw the relative primal suboptimality along a column.

    Parameters
    ----------
    runs : dict
        `TaskRuns` of each task.
    lines : dict
        Names of runs by their labels; runs that were not done are left out.
    column : {"n_updates", "n_oracle_calls", "seconds"}
    """

    def draw(ax, task, name, look):
        below = np.maximum(task.suboptimality(name), FLOOR)
        ax.plot(task.along(name, column), below, **look)
        ax.set_yscale("log")

    figure = _panels(runs, lines, draw, LABELS[column], "primal suboptimality / optimum")
    for ax, task in zip(figure.axes, runs.values(), strict=True):
        # The axes end with the stochastic runs; the others may be far behind.
        shown = [name for name in lines.values() if name in SOLVERS]
        ax.set_xlim(0, 1.02 * max(task.along(name, column)[-1] for name in shown))
        lowest = min(task.suboptimality(name).min() for name in shown)
        ax.set_ylim(bottom=0.5 * max(lowest, FLOOR))
    return figure


def test_error(runs, lines):
    """Draw the error on the test sequences."""

    def draw(ax, task, name, look):
        ax.plot(task[name].epoch[1:], 100.0 * task[name].test_error[1:], **look)
        ax.set_xlim(1, 20)

    return _panels(runs, lines, draw, "epochs", "test error (%)")


def gap_ratio(runs, lines):
    """Draw estimated over true gap, from where every sample has been visited."""

    def draw(ax, task, name, look):
        known = task[name].n_unseen == 0
        ax.plot(task[name].epoch[known], task.gap_ratios(name), **look)
        ax.axhspan(0.5, 2.0, color="0.94", zorder=0)
        ax.set_yscale("log", base=2)
        ax.set_ylim(0.25, 4.0)

    return _panels(runs, lines, draw, "epochs", "estimated gap / true gap")


def save(figure, stem):
    """Write a figure as PNG, of few colours to be small, and as SVG."""
    from PIL import Image  # comes with matplotlib

    pixels = io.BytesIO()
    figure.savefig(pixels, format="png", dpi=100)
    few = Image.open(pixels).convert("RGB").quantize(128, Image.Quantize.MAXCOVERAGE)
    few.save(stem.with_suffix(".png"), optimize=True)
    figure.savefig(stem.with_suffix(".svg"))


def _panels(runs, lines, draw, xlabel, ylabel):
    """Return a figure with `draw(ax, task, name, look)` called for every line of every panel."""
    from matplotlib.figure import Figure  # slow to import, and not needed for --list

    n_columns = min(2, len(runs))
    n_rows = -(-len(runs) // n_columns)
    size = PANEL[0] * n_columns + 2.2, PANEL[1] * n_rows + 0.4
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[len(runs) :]:
        ax.remove()
    for ax, (name_of_task, task) in zip(axes, runs.items(), strict=False):
        for k, (label, name) in enumerate(lines.items()):
            look = {"color": f"C{k}", "linestyle": ("-", "--")[k // 10], "linewidth": 1.3}
            if name in task:
                draw(ax, task, name, {**look, "label": label})
        ax.set_title(name_of_task, fontsize=10)
        ax.set(xlabel=xlabel, ylabel=ylabel)
        if xlabel != LABELS["seconds"]:
            ax.xaxis.get_major_locator().set_params(integer=True)
        ax.grid(True, which="major", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
    handles = {line.get_label(): line for ax in figure.axes for line in ax.get_lines()}
    figure.legend(handles.values(), handles, loc="outside right upper", frameon=False, fontsize=9)
    return figure
