"""
Trees: which stations of a river are polluted?
==============================================

A river network is a tree: brooks join, and all water leaves at the mouth. What enters a brook
flows downstream, so neighbours tell something about each other, and not the same in both
directions. Each station has a noisy sensor, and every third one is silent. ``TreeModel`` labels all
stations of a network together, and a certificate says how good its weights are.
"""

import numpy as np
from matplotlib import pyplot

from sdcastruct.models import MulticlassModel, TreeModel
from sdcastruct.solvers import SDCA

# %%
# Rivers
# ------
#
# Station 0 is the mouth; water flows from every other station into one with a smaller number. The
# rule: pollution enters at a station with probability 0.06, goes on to the next one with
# probability 0.95, and is seen by the sensor with much noise.


def draw_river(rng, n_stations=40):
    """Return edges (from, into), whether each station is polluted, and attributes of stations."""
    into = [0]  # station 1 flows into the mouth
    for station in range(2, n_stations):
        free = [s for s in range(1, station) if into.count(s) < 2]  # at most two inflows each
        into.append(rng.choice(free[:6]))
    edges = np.column_stack([np.arange(1, n_stations), into])
    polluted = rng.random(n_stations) < 0.06
    for source, target in edges[::-1]:  # upstream first
        polluted[target] |= polluted[source] and rng.random() < 0.95
    sensor = polluted + 0.6 * rng.normal(size=n_stations)
    heard = rng.random(n_stations) > 1 / 3
    attributes = np.column_stack([np.ones(n_stations), heard, heard * sensor])
    return edges, polluted.astype(int), attributes


rng = np.random.default_rng(0)
rivers = [draw_river(rng) for _ in range(300)]
X = [(attributes, edges) for edges, _, attributes in rivers]
Y = [polluted for _, polluted, _ in rivers]
X_train, Y_train, X_test, Y_test = X[:100], Y[:100], X[100:], Y[100:]

# %%
# Together, or each by itself
# ---------------------------
#
# Attributes of a station: a constant, whether its sensor speaks, and what it says. The model of
# single stations has the same ones, but no edges.

tree = TreeModel(n_states=2, n_features=3)
problem = tree.bind(X_train, Y_train)
result = SDCA(random_state=0).solve(problem, tol=1e-3, max_epochs=1000)
print(f"primal {result.primal:.5f}, dual {result.dual:.5f}, relative gap {result.relative_gap:.1e}")

single = MulticlassModel(n_states=2, n_features=3)
rows = np.concatenate([attributes for attributes, _ in X_train])
alone = SDCA(random_state=0).solve(single.bind(rows, np.concatenate(Y_train)), tol=1e-3)

truth = np.concatenate(Y_test)
attributes = np.concatenate([attributes for attributes, _ in X_test])
silent = attributes[:, 1] == 0
for name, labels in (
    ("all clean", np.zeros_like(truth)),
    ("each by itself", single.decode(attributes, alone.w)),
    ("whole tree", np.concatenate(tree.decode(X_test, result.w))),
):
    wrong = labels != truth
    with_sensor, without = wrong[~silent].mean(), wrong[silent].mean()
    print(f"{name:15s} {with_sensor:6.1%} wrong with a sensor, {without:6.1%} without")

# %%
# The weights of edges say what was learned, from a clean or polluted station (row) into a clean or
# polluted one (column): pollution hardly ever ends.

print(tree.split_weights(result.w)[1][0, 0].round(2))

# %%
# One of the new rivers, the mouth below. Red is polluted, blue is clean, hollow is a silent sensor;
# circles mark what is more wrong than right.


def positions(edges):
    """Return where to draw the stations: a source is one step wide, others as their inflows."""
    n_stations = len(edges) + 1
    width = 1.0 - np.isin(np.arange(n_stations), edges[:, 1])
    for source, target in edges[::-1]:
        width[target] += width[source]
    left, taken, height = np.zeros((3, n_stations))
    for source, target in edges:
        left[source] = taken[source] = taken[target]
        taken[target] += width[source]
        height[source] = height[target] + 1
    return np.column_stack([left + width / 2, height])


def draw_network(ax, title, edges, polluted, colours):
    """Draw the stations of a river in colours from 0, blue, to 1, red; NaN is hollow."""
    place = positions(edges)
    ax.plot(*place[edges].T, color="lightgray", zorder=0)
    hollow = np.isnan(colours)
    ax.scatter(*place[hollow].T, c="white", edgecolors="gray", s=60)
    ax.scatter(*place[~hollow].T, c=colours[~hollow], cmap="coolwarm", vmin=0, vmax=1, s=60)
    wrong = ~hollow & ((colours > 0.5) != polluted)
    ax.scatter(*place[wrong].T, s=150, facecolors="none", edgecolors="black")
    ax.set_title(title)
    ax.axis("off")


shown = np.argmin([abs(y.mean() - 0.35) for y in Y_test])
attributes, edges = X_test[shown]
panels = {
    "truth": Y_test[shown],
    "what the sensors say": np.where(attributes[:, 1] == 1, attributes[:, 2], np.nan),
    "each by itself": single.marginals(attributes, alone.w)[:, 1],
    "whole tree": tree.marginals([X_test[shown]], result.w)[0][0][:, 1],
}
figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
for ax, (title, colours) in zip(axes.flat, panels.items(), strict=True):
    draw_network(ax, title, edges, Y_test[shown], colours)
figure.savefig("tree.png", dpi=150)
print("drawn in tree.png")
