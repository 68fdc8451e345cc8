"""A task as flat arrays in a file: what every measured process reads, ours or a peer's.

The file is small, and nobody holds lists of strings, so that peak memory is that of the trainer.
Attributes are named by their numbers; all have the value 1, because Wapiti knows no other.
"""

from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from sdcastruct.models import ChainModel


class Corpus(NamedTuple):
    """Labelled chains with binary attributes.

    Attributes
    ----------
    n_states, n_features : int
    dense : bool
        Whether our model is given arrays instead of sparse matrices.
    starts : array of shape (n + 1,)
        Chain i has the nodes starts[i], ..., starts[i + 1] - 1.
    indptr, indices : array
        Attributes of all nodes, in CSR form.
    labels : array
        Labels of all nodes.
    """

    n_states: int
    n_features: int
    dense: bool
    starts: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    labels: np.ndarray

    @property
    def n_chains(self):
        return len(self.starts) - 1

    def save(self, path):
        """Write the corpus to a file."""
        np.savez(path, **self._asdict())

    def chains(self):
        """Return the samples X, Y of a chain model."""
        shape = len(self.labels), self.n_features
        matrix = sparse.csr_array((np.ones(len(self.indices)), self.indices, self.indptr), shape)
        if self.dense:
            matrix = matrix.toarray()
        spans = list(pairwise(self.starts))
        return [matrix[a:b] for a, b in spans], [self.labels[a:b] for a, b in spans]

    def bind(self):
        """Return the problem of a chain model on these samples."""
        return ChainModel(self.n_states, self.n_features).bind(*self.chains())

    def attribute_names(self):
        """Yield the attribute lists of the nodes of each chain."""
        for first, last in pairwise(self.starts):
            ends = self.indptr[first : last + 1]
            yield [[str(a) for a in self.indices[p:q].tolist()] for p, q in pairwise(ends)]

    def label_names(self):
        """Yield the labels of each chain."""
        for first, last in pairwise(self.starts):
            yield [str(k) for k in self.labels[first:last].tolist()]

    def every(self, step):
        """Return every step-th chain, with the weights of all."""
        chains = range(0, self.n_chains, step)
        nodes = np.concatenate([np.arange(*self.starts[i : i + 2]) for i in chains])
        lengths, counts = np.diff(self.starts)[::step], np.diff(self.indptr)[nodes]
        picked = [self.indices[self.indptr[t] : self.indptr[t + 1]] for t in nodes]
        return self._replace(
            starts=_ends(lengths),
            indptr=_ends(counts),
            indices=np.concatenate(picked),
            labels=self.labels[nodes],
        )


def load(path):
    """Read a corpus from a file."""
    with np.load(Path(path)) as arrays:
        found = {name: arrays[name] for name in Corpus._fields}
    numbers = {name: found[name].item() for name in ("n_states", "n_features", "dense")}
    return Corpus(**{**found, **numbers})


def from_task(task):
    """Return the training samples of a task of `sdcastruct.reproduce.tasks`.

    Labels that do not occur are left out, because the peers do not know of them.
    """
    classes, labels = np.unique(np.concatenate(task.Y), return_inverse=True)
    dense = not sparse.issparse(task.X[0])
    matrix = sparse.csr_array(np.vstack(task.X) if dense else sparse.vstack(task.X, "csr"))
    if (matrix.data != 1.0).any():
        raise ValueError(f"{task.name} has attributes with values other than 1, expected none")
    return Corpus(
        n_states=len(classes),
        n_features=task.model.n_features,
        dense=dense,
        starts=_ends([len(y) for y in task.Y]),
        indptr=matrix.indptr,
        indices=matrix.indices,
        labels=labels,
    )


def synthetic(n_chains, length, n_states, n_features=10_000, per_node=5, seed=0):
    """Return chains of one length with random attributes and labels."""
    rng = np.random.default_rng(seed)
    n_nodes = n_chains * length
    # Without doubles: one attribute of each of per_node equal parts of all.
    part = n_features // per_node
    drawn = rng.integers(part, size=(n_nodes, per_node)) + part * np.arange(per_node)
    return Corpus(
        n_states=n_states,
        n_features=n_features,
        dense=False,
        starts=np.arange(0, n_nodes + 1, length),
        indptr=np.arange(0, n_nodes * per_node + 1, per_node),
        indices=drawn.ravel().astype(np.int32),
        labels=rng.integers(n_states, size=n_nodes),
    )


def _ends(counts):
    """Return 0 and the running sums."""
    return np.concatenate([[0], np.cumsum(counts)])
