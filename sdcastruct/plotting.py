"""Figures of training runs, drawn with matplotlib."""

from collections.abc import Mapping

import numpy as np

AXES = {
    "epoch": "epochs",
    "seconds": "seconds",
    "n_updates": "parameter updates",
    "n_oracle_calls": "oracle calls",
}


def convergence(results, x="epoch", optimum=None, ax=None):
    """Draw how the certified gap, or the primal suboptimality, falls.

    Certified values are marked; between them the line follows the running estimate of the gap.

    Parameters
    ----------
    results : Result, list of Result or dict of str to Result
        The keys of a dict become the legend.
    x : {"epoch", "seconds", "n_updates", "n_oracle_calls"}
    optimum : float, optional
        Optimal primal value; if given, the primal suboptimality is drawn instead of the gap.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if x not in AXES:
        raise ValueError(f"x={x!r}: expected one of {', '.join(map(repr, AXES))}")
    if ax is None:
        from matplotlib import pyplot  # slow to import, and not needed to train

        _, ax = pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")
    for name, result in _named(results).items():
        _draw_run(ax, name, result.history, x, optimum)
    ax.set_yscale("log")
    ax.set_xlabel(AXES[x])
    ax.set_ylabel("duality gap" if optimum is None else "primal suboptimality")
    ax.grid(True, which="major", alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False)
    return ax


def _draw_run(ax, name, history, x, optimum):
    along = history[x]
    certified = ~np.isnan(history.gap)
    if optimum is None:
        height = np.where(certified, history.gap, history.gap_estimate)
    else:
        along, height = along[certified], history.primal[certified] - optimum
        certified = np.ones(height.shape, bool)
    (line,) = ax.plot(along, height, label=name)
    ax.plot(along[certified], height[certified], "o", markersize=3.5, color=line.get_color())


def _named(results):
    if isinstance(results, Mapping):
        return results
    if isinstance(results, list | tuple):
        return {f"run {k + 1}": result for k, result in enumerate(results)}
    return {None: results}
