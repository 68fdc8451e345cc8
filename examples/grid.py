"""
Denoise images on a grid
========================

Exact inference on a graph full of loops. Each pixel is black or white, and neighbours have a score
that says how well they go together. On a 10 x 10 grid marginals, most probable images and the
certificate of training are all exact: its junction tree is small. That of a 40 x 40 grid is not, in
whatever order the pixels are eliminated, and the model says so before it allocates anything.
"""

import numpy as np
from matplotlib import pyplot
from scipy.ndimage import gaussian_filter

from sdcastruct.models import PairwiseModel
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA

FIGURE = "grid.png"


def grid_edges(height, width):
    """Return the pairs of neighbours, pixels counted row by row."""
    pixel = np.arange(height * width).reshape(height, width)
    across = np.stack([pixel[:, :-1], pixel[:, 1:]], axis=-1)
    down = np.stack([pixel[:-1], pixel[1:]], axis=-1)
    return np.concatenate([across.reshape(-1, 2), down.reshape(-1, 2)])


def row_by_row(n_nodes, cliques):
    """Eliminate the pixels as one reads them; no order has smaller largest cliques."""
    return range(n_nodes)


def draw_images(rng, n_images, size, noise):
    """Return images of smooth shapes, 0 or 1, and noisy views of them around -1 and 1."""
    waves = gaussian_filter(rng.normal(size=(n_images, size, size)), (0, 2, 2), mode="wrap")
    images = (waves > 0).astype(int)
    return images, 2 * images - 1 + noise * rng.normal(size=images.shape)


def draw_figure(truth, seen, decoded, white, path):
    """Draw a row for each image; red dots mark the errors of the most probable one."""
    columns = {
        "truth": (truth, 0, 1),
        "what we see": (seen, -3, 3),
        "most probable": (decoded, 0, 1),
        "probability of white": (white, 0, 1),
    }
    figure, axes = pyplot.subplots(len(truth), 4, figsize=(8, 5.8), layout="compressed")
    for column, (title, (shown, low, high)) in zip(axes.T, columns.items(), strict=True):
        column[0].set_title(title)
        for ax, image in zip(column, shown, strict=True):
            drawn = ax.imshow(image, cmap="gray", vmin=low, vmax=high)
            ax.set(xticks=[], yticks=[])
    for ax, wrong in zip(axes[:, 2], decoded != truth, strict=True):
        ax.plot(*np.nonzero(wrong)[::-1], "o", color="tab:red", markersize=5)
    figure.colorbar(drawn, ax=axes, aspect=40, pad=0.02)
    figure.savefig(path, dpi=150)


# %%
# The junction tree depends on the order in which pixels are eliminated:

size, n_train = 10, 30
images, noisy = draw_images(np.random.default_rng(0), n_images=130, size=size, noise=1.0)
X = [(image.reshape(-1, 1), grid_edges(size, size)) for image in noisy]
Y = [image.ravel() for image in images]

model = PairwiseModel(n_states=2, n_features=1, tied="symmetric")
reading = PairwiseModel(n_states=2, n_features=1, tied="symmetric", elimination_order=row_by_row)
for order, tree in (
    ("min-fill, the default", model.junction_tree(X[0])),
    ("row by row", reading.junction_tree(X[0])),
):
    print(f"{order:21s} width {tree.width}, clique tables of {tree.table_bytes} bytes")

# %%
# Train. The loss of an image sums over 100 pixels; lam = 1 / n would hardly be felt beside it.

problem = model.bind(X[:n_train], Y[:n_train])
solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=0)
result = solver.solve(problem, lam=10 / n_train, tol=1e-3)
print(f"primal {result.primal:.5f}, dual {result.dual:.5f}, relative gap {result.relative_gap:.1e}")
both_black, different, both_white = model.split_weights(result.w)["edges"][0]
print(f"neighbours: {both_black:.2f} black, {different:.2f} different, {both_white:.2f} white")

# %%
# Clean new images: the most probable image, and the most probable state of each pixel.

X_test, truth, seen = X[n_train:], images[n_train:], noisy[n_train:]
decoded = np.reshape(model.decode(X_test, result.w), truth.shape)
white = np.reshape([nodes[:, 1] for nodes, _ in model.marginals(X_test, result.w)], truth.shape)
for name, guess in (
    ("each pixel by itself", seen > 0),
    ("most probable image", decoded),
    ("most probable pixels", white > 0.5),
):
    print(f"{name:21s} {np.mean(guess != truth):.1%} of the pixels wrong")

# %%
# The three test images that have most nearly as much black as white:

shown = np.argsort(np.abs(truth.mean(axis=(1, 2)) - 0.5))[:3]
draw_figure(truth[shown], seen[shown], decoded[shown], white[shown], FIGURE)
print(f"three test images drawn in {FIGURE}")

# %%
# What is too large is refused:

try:
    reading.bind([(np.zeros((40 * 40, 1)), grid_edges(40, 40))])
except ValueError as error:
    print(f"40 x 40 grid: {error}")
