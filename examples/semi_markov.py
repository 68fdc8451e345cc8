"""
Semi-Markov chains
==================

A model with an oracle written in Python: segments are scored as a whole, by their length too. A
labelling is cut into segments, its longest runs of equal labels. With s, e the first and the last
position of a segment and k its label::

    score(y) = sum over segments of segment[s, e, k] + sum over boundaries of transition[k, k']

The segments of a random labelling are a Markov chain, so p(y) is a product of marginals::

    p(y) = prod mu[s, e, k] prod mu[t, k, k'] / prod ends[t, k] / prod starts[t, k]

over its segments, over its boundaries t, and over the segments that end before a boundary or start
after one. The exponents are the counting numbers: +1, +1, -1, -1.
"""

import numpy as np
from matplotlib import pyplot

from sdcastruct.models import ChainModel, Model
from sdcastruct.samplers import Gap
from sdcastruct.solvers import SDCA
from sdcastruct.testing import check_model


class SemiMarkovModel(Model):
    """Sequences of segments; an input is an array of shape (T, n_features).

    The attributes of a segment are the sums of those of its positions, and its length as an
    indicator, where max_length stands for all longer ones too.
    """

    def __init__(self, n_states, n_features, max_length):
        self.n_states, self.n_features, self.max_length = n_states, n_features, max_length

    def states(self, x):
        return np.full(len(x), self.n_states)

    def templates(self):
        L = self.n_states
        return {"segment": (self.n_features + self.max_length, L), "transition": (1, L * (L - 1))}

    def slots(self, x):
        start, end = np.triu_indices(len(x))
        total = np.cumsum(np.vstack([np.zeros(self.n_features), x]), axis=0)
        length = np.eye(self.max_length)[np.minimum(end - start, self.max_length - 1)]
        return {
            "segment": np.hstack([total[end + 1] - total[start], length]),
            "transition": np.ones((min(len(x) - 1, 1), 1)),  # no boundary, no transition
        }

    def regions(self, x):
        T, L = len(x), self.n_states
        segments = np.arange(T * (T + 1) // 2 * L)  # each segment has a slot of its own,
        pairs = segments.size + np.tile(np.arange(L * (L - 1)), T - 1)  # all boundaries share one
        ends = starts = np.full((T - 1) * L, -1)  # and these have no score
        tables = segments, pairs, ends, starts
        counting = np.repeat([1, 1, -1, -1], [table.size for table in tables])
        return counting, np.concatenate(tables)

    def infer(self, x, theta):
        segment, transition = self._tables(x, theta)
        starts, ends = self._forward(segment, transition, np.logaddexp.reduce)
        rest, follow = self._backward(segment, transition)
        log_z = np.logaddexp.reduce(ends[-1])
        mu = self._pack(
            starts[:, None] + segment + follow,
            ends[:-1, :, None] + transition + rest[1:, None],
            ends + follow,
            starts + rest,
        )
        return np.exp(mu - log_z), log_z

    def argmax(self, x, theta):
        segment, transition = self._tables(x, theta)
        starts, ends = self._forward(segment, transition, np.maximum.reduce)
        y = np.empty(len(x), int)
        end, best = len(x) - 1, ends[-1]
        while end >= 0:
            k = np.argmax(best)
            start = np.argmax(starts[: end + 1, k] + segment[: end + 1, end, k])
            y[start : end + 1] = k
            end, best = start - 1, ends[start - 1] + transition[:, k]
        return y

    def truth(self, x, y):
        T, L = len(x), self.n_states
        segment, pair = np.zeros((T, T, L)), np.zeros((T - 1, L, L))
        boundary = np.flatnonzero(np.diff(y))
        start, end = np.append(0, boundary + 1), np.append(boundary, T - 1)
        segment[start, end, y[start]] = 1
        pair[boundary, y[boundary], y[boundary + 1]] = 1
        return self._pack(segment, pair, segment.sum(axis=0), segment.sum(axis=1))

    def _tables(self, x, theta):
        """Return the scores of segments (T, T, L) and transitions (L, L), -inf if impossible."""
        T, L = len(x), self.n_states
        n_segments = T * (T + 1) // 2
        segment, transition = np.full((T, T, L), -np.inf), np.full((L, L), -np.inf)
        segment[np.triu_indices(T)] = theta[: n_segments * L].reshape(-1, L)
        if T > 1:
            transition[~np.eye(L, dtype=bool)] = theta[n_segments * L :]
        return segment, transition

    def _forward(self, segment, transition, total):
        """Return the totals of all that comes before a segment starts at t, and until it ends."""
        starts, ends = np.zeros((2, *segment.shape[1:]))
        for t in range(len(segment)):
            if t > 0:
                starts[t] = total(ends[t - 1, :, None] + transition, axis=0)
            ends[t] = total(starts[: t + 1] + segment[: t + 1, t], axis=0)
        return starts, ends

    def _backward(self, segment, transition):
        """Return the totals of the rest from the start of a segment, and after it ends."""
        rest, follow = np.zeros((2, *segment.shape[1:]))
        for t in reversed(range(len(segment))):
            if t < len(segment) - 1:
                follow[t] = np.logaddexp.reduce(transition + rest[t + 1], axis=1)
            rest[t] = np.logaddexp.reduce(segment[t, t:] + follow[t:], axis=0)
        return rest, follow

    def _pack(self, segment, pair, ends, starts):
        """Lay the tables of all regions end to end."""
        T, L = ends.shape
        different = ~np.eye(L, dtype=bool)
        tables = segment[np.triu_indices(T)], pair[:, different], ends[:-1], starts[1:]
        return np.concatenate([table.ravel() for table in tables])


def draw_sequences(rng, n, noise):
    """Return n sequences of four segments; label k lasts 2, 5 or 8 positions, give or take one."""
    X, Y = [], []
    for _ in range(n):
        labels = np.cumsum(rng.integers(1, 3, size=4)) % 3
        y = np.repeat(labels, 2 + 3 * labels + rng.integers(-1, 2, size=4))
        X.append(np.eye(3)[y] + noise * rng.normal(size=(y.size, 3)))
        Y.append(y)
    return X, Y


# %%
# Each label has its typical length. A chain cannot know that, a semi-Markov model can.

rng = np.random.default_rng(0)
X, Y = draw_sequences(rng, 60, noise=1.0)
X_test, Y_test = draw_sequences(rng, 200, noise=1.0)
chain = ChainModel(n_states=3, n_features=3)
semi_markov = SemiMarkovModel(n_states=3, n_features=3, max_length=12)

# %%
# Is the model right? Short beginnings of sequences are enough to see.

lengths = (1, 4, 6)
tiny = [x[:T] for x, T in zip(X[:3], lengths, strict=True)]
print(check_model(semi_markov, tiny, [y[:T] for y, T in zip(Y[:3], lengths, strict=True)]))

# %%
# Train both to the same certified gap, and label new sequences:

print("                  primal    dual  relative gap  labels wrong  first test sequence")
print(f"{'truth':54s}  {''.join(map(str, Y_test[0]))}")
labellings = {"truth": Y_test}
for model in (chain, semi_markov):
    problem = model.bind(X, Y)
    solver = SDCA(sampler=Gap(non_uniformity=0.8), random_state=0)
    result = solver.solve(problem, tol=1e-3, max_epochs=200)
    predicted = model.decode(X_test, result.w)
    labellings[type(model).__name__] = predicted
    wrong = np.concatenate(predicted) != np.concatenate(Y_test)
    print(
        f"{type(model).__name__:16s} {result.primal:7.4f} {result.dual:7.4f} "
        f"{result.relative_gap:13.1e} {wrong.mean():13.1%}  {''.join(map(str, predicted[0]))}"
    )

# %%
# Four test sequences, one colour for each label:

figure, axes = pyplot.subplots(4, 1, figsize=(8, 4.5), layout="constrained")
figure.get_layout_engine().set(hspace=0.15)
longest = max(map(len, Y_test[:4]))
for i, ax in enumerate(axes):
    strips = [np.pad(Y[i] + 1.0, (0, longest - len(Y[i]))) for Y in labellings.values()]
    ax.imshow(np.ma.masked_equal(strips, 0), cmap="Set2", vmin=1, vmax=8, aspect="auto")
    ax.hlines([0.5, 1.5], -0.5, longest - 0.5, color="white", linewidth=4)
    ax.set_xticks([])
    ax.set_yticks(range(3), labellings)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
figure.savefig("semi_markov.png", dpi=150)
print("drawn in semi_markov.png")
